"""`tinytx-course hint`: what it says of an answer, and that it never says the answer."""

import contextlib
import inspect
import json
import re

import pytest

from tests.solutions import SOLUTIONS
from tinytx_course.cli import main
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.exercises.telling import tell_failure
from tinytx_course.grading.grades import Grade
from tinytx_course.grading.hint import hints_for

pytestmark = pytest.mark.usefixtures("forked_workers")
SETUP = "import torch\n"
UPPER = "def causal_mask(n):\n    return torch.ones(n, n).triu() > 0\n"


def quotes(text):
    """Five tokens in a row, and five words of code."""
    rows = re.findall(r"\w+|[^\s\w`]", text), re.findall(r"\w+", text)
    return {tuple(row[i : i + 5]) for row in rows for i in range(len(row) - 4)}


def solutions():
    for exercise in EXERCISES.values():
        yield getattr(exercise.solve, "text", "")
    for solution in SOLUTIONS:
        if solution.slug is None:
            with contextlib.suppress(OSError):  # another one with a few changes, it has no text
                yield inspect.getsource(inspect.unwrap(solution.function))


def hints_on(exercise, mistake):
    verdict = tell_failure(exercise, None, mistake=mistake)
    return hints_for(exercise, Grade(exercise=exercise.name, status="failed", verdict=verdict))


def test_no_hint_shares_five_tokens_in_a_row_with_a_right_solution():
    right = set().union(*(quotes(re.sub("#.*", "", text)) for text in solutions()))
    assert len(right) > 5_000
    for name, exercise in EXERCISES.items():
        for mistake in exercise.mistakes:
            given = hints_on(exercise, mistake)
            assert 2 <= len(given.hints) <= 3 and given.words == given.hints[1]
            for hint in given.hints:
                assert not quotes(hint) & right, f"{name}, {mistake.slug}: {hint}"


def first_way(name, slug):
    return hints_on(EXERCISES[name], next(one for one in EXERCISES[name].mistakes if one.slug == slug))


@pytest.mark.parametrize(
    ("name", "slug", "step"),
    [
        ("attention", "not-scaled", "look at number 2, which computes `scores`."),
        (
            "attention",
            "mask-after-softmax",
            "number 3, which computes `scores`, and at 5, which computes `we",
        ),
        ("attention", "returns-weights", "look at number 6, which gives the result."),
        ("learn_merges", "pair-reversed", "which changes `merges`."),
        ("multi_head_attention", "view-without-transpose", "which gives the result of `split`."),
        ("encode_bpe", "longest-merge-first", "look at what comes before number 1, which"),
    ],
)
def test_the_third_hint_names_the_step_that_the_edit_of_a_mistake_touches(name, slug, step):
    assert step in first_way(name, slug).hints[2]


def test_words_keep_their_prose_and_quote_no_code():
    assert first_way("attention", "scale-by-keys").words.endswith("the width K of a query.")
    assert first_way("split_heads", "heads-last").words == "The heads come last: return B × H × T × K."
    assert "K instead of sqrt(K) (or by sqrt(K) twice)" in first_way("attention", "scale-without-root").words


def test_a_notebook_gets_a_verdict_the_smallest_input_and_hints(tmp_path, write_copy, capsys):
    path = write_copy(tmp_path / "x.ipynb", SETUP, UPPER, "course.check('causal_mask', causal_mask)")
    assert main(["hint", str(path), "--exercise", "causal_mask", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [*answer] == ["verdict", "mistake", "words", "input", "expected", "got", "hints"]
    assert (answer["verdict"], answer["mistake"], answer["input"]) == (
        "not yet",
        "transposed",
        "causal_mask(2)",
    )
    assert (answer["expected"], answer["got"]) == (
        "(1 = True)\n 1   0\n 1   1",
        "(1 = True)\n 1  [1]\n[0]  1",
    )
    assert 'lesson 02, section "The causal mask"' in answer["hints"][0] and len(answer["hints"]) == 3
    assert main(["hint", str(path), "--exercise", "causal_mask"]) == 0
    assert capsys.readouterr().out.startswith("not yet")


@pytest.mark.parametrize(
    ("body", "verdict", "mistake", "n_hints", "got"),
    [
        ("return torch.ones(n, n).tril() > 0", "passed", None, 0, ""),
        ("...", "not attempted", None, 1, ""),
        ("return (torch.ones(n, n) * torch.arange(n)) == 3", "not yet", None, 1, "[0]"),
        ("return torch.nothing", "not yet", "error", 2, "AttributeError"),
        ("return (", "not yet", "cell-error", 2, ""),
    ],
)
def test_a_python_file_gets_no_more_hints_than_is_known(
    tmp_path, capsys, body, verdict, mistake, n_hints, got
):
    path = tmp_path / "mine.py"
    path.write_text(f"{SETUP}def causal_mask(n):\n    {body}\n", encoding="utf-8")
    assert main(["hint", str(path), "--exercise", "causal_mask", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["verdict"], answer["mistake"], len(answer["hints"])) == (verdict, mistake, n_hints)
    assert got in answer["got"] and "code cell" not in answer["words"]


@pytest.mark.parametrize(
    ("name", "content", "exercise", "complaint"),
    [
        ("x.py", UPPER, "casual_mask", "did you mean 'causal_mask'"),
        ("x.py", UPPER, "padding_mask", "x.py must define a function padding_mask"),
        ("x.py", None, "causal_mask", "must be a file"),
    ],
)
def test_what_gets_no_hints_ends_in_one_clear_line(tmp_path, capsys, name, content, exercise, complaint):
    path = tmp_path / name
    if content is not None:
        path.write_text(content, encoding="utf-8")
    assert main(["hint", str(path), "--exercise", exercise]) == 2
    out, err = capsys.readouterr()
    (line,) = (line for line in err.splitlines() if "error" in line)
    assert out == "" and complaint in line and "Traceback" not in err
