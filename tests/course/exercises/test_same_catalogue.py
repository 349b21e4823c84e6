"""The files of exercises say what the catalogue in Python said. This test goes with the last of that.

``python tests/course/exercises/test_same_catalogue.py`` lists the differences, and pairs that are new.
"""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import asdict
from functools import cache
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
BEFORE = "a1ea4b3"  # the last commit with all mistakes in Python
GONE = {"heads-taken-for-maps"}  # computed what a mistake before it does, which gave its name
UNUSED = {"imports": "", "check": ""}  # by a problem with the name of an exercise
CONVERTED = sorted(
    path.stem
    for path in (ROOT / "tinytx_course" / "exercises").glob("*.toml")
    if path.stem not in ("texts", "by_hand")
)


def collect(names):
    """What the catalogue on the path computes: results of mistakes, and verdicts on solutions."""
    from tests.solutions import try_all
    from tests.solutions.collection import SOLUTIONS
    from tinytx_course.exercises.checking import EXERCISES
    from tinytx_course.exercises.judging import read_known
    from tinytx_course.widgets.parsons import problem_names, read_problem

    # A problem that is made from mistakes is new.
    problems = [name for name in problem_names() if getattr(EXERCISES.get(name), "puzzle", True)]
    found = {}
    for name in names:
        exercise = EXERCISES[name]

        def results(function, exercise=exercise):
            readings = (read_known(exercise, function, c) for seed in range(3) for c in exercise.calls(seed))
            return [reading and reading.tensors for reading in readings]

        own = [one for one in SOLUTIONS if one.exercise == name and one.slug != "time-limit"]
        found[name] = {
            "right": results(exercise.solve),
            "puzzle": asdict(read_problem(name)) | UNUSED if name in problems else None,
            "about": [exercise.signature, exercise.lesson, exercise.section, exercise.rule],
            "texts": {m.slug: (m.words, m.section, m.lesson, m.tolerance) for m in exercise.mistakes},
            "wrongs": {m.slug: [results(wrong) for wrong in m.wrongs] for m in exercise.mistakes},
            "verdicts": {t.solution.name: (t.passed, t.mistake) for t in try_all([0], own)},
        }
    return found


@cache
def before():
    """The same of the catalogue as it was, in a process of its own."""
    archive = subprocess.run(
        ["git", "archive", BEFORE, "tinytx", "tinyworld", "tinytx_run", "tinytx_course", "tests"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
            packed.extractall(folder, filter="data")
        command = [sys.executable, __file__, "collect", *CONVERTED]
        subprocess.run(command, cwd=folder, check=True, env=os.environ | {"PYTHONPATH": folder})
        return torch.load(Path(folder, "found.pt"), weights_only=False)


@cache
def after():
    return collect(CONVERTED)


def same(one, other, tolerance=0.0):
    from tinytx_course.exercises.comparing import Reading

    def readings(results):
        return [None if tensors is None else Reading(tensors, max(2e-4, tolerance)) for tensors in results]

    pairs = zip(readings(one), readings(other), strict=True)
    return all(a is b if a is None or b is None else a.agrees_with(b) for a, b in pairs)


def differences(name):
    old, new = before()[name], after()[name]
    if name != "mask_tokens" and not same(old["right"], new["right"]):  # it had a stand-in: shares are judged
        yield "right"
    if old["puzzle"] != new["puzzle"]:
        yield f"puzzle: {old['puzzle']} became {new['puzzle']}"
    if old["about"] != new["about"]:
        yield f"about: {new['about']}"
    singles = [[slug for slug in one["texts"] if "+" not in slug and slug not in GONE] for one in (old, new)]
    if [slug for slug in singles[1] if slug in singles[0]] != singles[0]:
        yield f"order: {singles[1]}"
    for slug, text in old["texts"].items():
        if slug in GONE:
            continue
        for number, way in enumerate(old["wrongs"][slug]):
            likewise = [
                other for other, ways in new["wrongs"].items() if any(same(way, w, text[3]) for w in ways)
            ]
            if "+" in slug and likewise and "+" not in likewise[0]:
                continue  # this pair computes what one of its mistakes does, and never gave its name
            if name == "next_token_probs" and number > 1 and "temperature-after-softmax" in slug:
                continue  # counting shares of what top-k left takes the temperature out again
            if slug not in likewise:
                yield f"{slug}: way {number} is lost; now {likewise}"
            elif text != new["texts"][slug]:
                yield f"{slug}: {new['texts'][slug]}"
    for solution, verdict in old["verdicts"].items():
        if new["verdicts"].get(solution, verdict) != verdict:
            yield f"{solution}: {verdict} became {new['verdicts'][solution]}"


@pytest.mark.parametrize("name", CONVERTED)
def test_results_words_and_verdicts_are_the_same(name):
    assert list(differences(name)) == []


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["collect"]:
        torch.save(collect(sys.argv[2:]), "found.pt")
    else:
        CONVERTED = sys.argv[1:] or CONVERTED
        for name in CONVERTED:
            print(name, *differences(name), sep="\n  ")
            new = sorted(set(after()[name]["texts"]) - set(before()[name]["texts"]))
            print(f"  {len(new)} new: {', '.join(new)}")
