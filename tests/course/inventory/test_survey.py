"""Answers before and after: hand numbers, what is left out and said, and the page."""

import json

import numpy as np
import pytest

from tinytx_course.cli import main
from tinytx_course.inventory.forms import empty_answers
from tinytx_course.inventory.items import FORMS, LETTERS, read_items
from tinytx_course.inventory.survey import analyse, group_gain

KEYS = {"A": "ABCDA", "B": "CDABB"}  # of five questions


def asked(key):
    slugs = iter(("one", "two", "three"))
    return {"key": key, "options": [{"reveals": None if x == key else next(slugs)} for x in LETTERS]}


ITEMS = [
    {
        "number": number + 1, "concept": "masks", "function": "causal_mask" if number < 2 else "attention",
        "words": {slug: f"What {slug} is." for slug in ("one", "two", "three")},
        "forms": {form: asked(KEYS[form][number]) for form in FORMS},
    }
    for number in range(5)
]  # fmt: skip


@pytest.fixture
def survey(tmp_path, monkeypatch):
    """Analyse rows of the wide layout, or any text."""

    monkeypatch.setattr("tinytx_course.inventory.survey.read_items", lambda: ITEMS)

    def run(*rows, head="learner,form,time,1,2,3,4,5"):
        path = tmp_path / "answers.csv"
        path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
        return analyse(path)

    return run


def row(learner, form, time, n_right):
    """A sitting whose first answers are right."""
    wrong = "".join(next(x for x in LETTERS if x != key) for key in KEYS[form])
    return ",".join([learner, form, time, *KEYS[form][:n_right], *wrong[n_right:]])


TWO = (
    row("ada", "A", "pre", 2),
    row("ada", "B", "post", 4),
    row("bo", "B", "pre", 1),
    row("bo", "A", "post", 3),
)


def test_the_normalised_gain_is_what_was_gained_of_what_was_missing(survey):
    found = survey(*TWO)
    assert (found.gain.n, found.gain.before, found.gain.after) == (2, pytest.approx(0.3), pytest.approx(0.7))
    assert found.gain.gain == pytest.approx(0.4 / 0.7)
    assert found.gain.difference.mean == pytest.approx(0.4)
    assert found.problems == []


def test_the_interval_is_that_of_all_equally_likely_draws_of_learners(survey):
    """With two learners: both, or one of them twice; the ends are the gains of one learner alone."""
    found = survey(*TWO).gain
    assert found.low == pytest.approx(0.5) and found.high == pytest.approx(0.4 / 0.6)


def test_the_interval_covers_the_gain_of_its_source_about_95_times_in_100():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        before = rng.binomial(32, 0.4, size=40) / 32
        after = np.minimum(1, before + rng.normal(0.3, 0.1, size=40))
        shares = np.stack([before, after], axis=1)
        found = group_gain(shares)
        covered += found.low <= 0.5 <= found.high
    assert 180 <= covered <= 199
    assert found == group_gain(shares)  # equal answers, equal intervals


def test_long_and_wide_tables_say_the_same(survey):
    wide = survey(*TWO)
    long = [
        f"{learner};{form};{time};{number};{answer.lower()}"
        for learner, form, time, *answers in (line.split(",") for line in TWO)
        for number, answer in enumerate(answers, 1)
    ]
    assert survey(*long, head="Learner;Form;Time;Item;Answer") == wide


def test_each_item_has_its_shares_and_each_misconception_its_counts(survey):
    found = survey(*TWO)
    assert [(one["pre"], one["post"]) for one in found.items] == [(1, 1), (0.5, 1), (0, 1), (0, 0.5), (0, 0)]
    chosen = {(one["function"], one["misconception"]): one for one in found.misconceptions}
    assert chosen["causal_mask", "one"]["pre"] == 1 and chosen["causal_mask", "one"]["post"] == 0
    assert chosen["causal_mask", "one"]["offered"] == {"pre": 4, "post": 4}
    assert sum(one["pre"] for one in found.misconceptions) == 7


@pytest.mark.parametrize("other", ["Zo\u00e9", "zoe\u0301", "Zoe\u0301 "])
def test_two_spellings_of_a_learner_are_one(survey, other):
    found = survey(row("Zoe\u0301", "A", "pre", 2), row(other, "B", "post", 4))
    assert found.gain.n == 1 and ("another spelling" in str(found)) == (other.strip() != "Zoe\u0301")


@pytest.mark.parametrize("odd", ["a\u2028b", "a\u0085b", "a\x1b[2Jb"])
def test_a_name_neither_cuts_its_row_nor_steers_a_terminal(survey, odd):
    found = survey(row(odd, "A", "pre", 2), row("bo", "A", "pre", 2))
    assert [one.learner[:1] for one in found.sittings] == ["a", "b"] and odd not in str(found)


@pytest.mark.parametrize(("head", "mark"), [("sep=;\n", ";"), ('"sep=;"\n', ";"), ("", "\t")])
def test_what_excel_writes_is_read(survey, head, mark):
    lines = [line.replace(",", mark) for line in TWO]
    assert survey(*lines, head=head + mark.join(["learner", "form", "time", *"12345"])) == survey(*TWO)


# ---- what cannot be used

GOOD = row("cy", "A", "pre", 3)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (row("di", "A", "pre", 1).replace("A", "C", 1), "row 3: form must be A or B, got 'C'"),
        (row("di", "A", "pre", 1).replace("pre", "later"), "row 3: time must be pre or post, got 'later'"),
        (row("", "A", "pre", 1), "row 3: no learner"),
        (row("cy", "B", "pre", 1), "cy, pre: two forms mixed in one sitting"),
        (row("cy", "A", "pre", 1), "cy, pre: answers given twice in one sitting"),
        ("di,A,pre,A,,C,,A", "di, pre: no answer to 2, 4: counted as not right"),
        ("di,A,pre,A,X,C,D,A", "row 3, item 2: 'X' is no answer: read as empty"),
        ("di,A,pre,A,AB,C,D,A", "row 3, item 2: 'AB' is no answer: read as empty"),
        (row("di", "A", "pre", 1) + ",B", "row 3: more cells than columns: 'B' is not read"),
        ("di,A,pre", "di, pre: no answer to 1, 2, 3, 4, 5: counted as not right"),
    ],
)  # fmt: skip
def test_what_is_wrong_takes_one_line_and_the_rest_is_done(survey, line, said):
    found = survey(GOOD, line, *TWO)
    assert sum(problem.startswith(said) for problem in found.problems) == 1
    assert found.gain == survey(*TWO).gain


def test_unknown_items_are_left_out_in_one_line(survey):
    lines = [f"{line},A" for line in TWO]
    found = survey(*lines, head="learner,form,time,1,2,3,4,5,99")
    assert found.problems == ["unknown item '99': left out"] and found.gain == survey(*TWO).gain


def test_who_was_there_once_is_named_and_counts_for_the_items(survey):
    found = survey(*TWO, GOOD)
    assert found.problems == ["cy: only pre: not in the gain"] and found.gain.n == 2
    assert found.items[0]["pre"] == 1 and len(found.sittings) == 5


def test_the_same_form_both_times_is_named_and_counted(survey):
    found = survey(row("di", "A", "pre", 1), row("di", "A", "post", 4))
    assert (
        found.problems == ["di: form A both times: counted, but questions were known"] and found.gain.n == 1
    )
    assert found.gain.low is None and "without an interval" in str(found)


def test_nothing_is_left_to_gain_where_all_was_right(survey):
    found = survey(row("di", "A", "pre", 5), row("di", "B", "post", 5))
    assert found.gain.gain is None and "nothing was left to gain" in str(found)


def test_a_draw_in_which_all_was_right_before_leaves_no_interval():
    assert group_gain(np.array([[1.0, 1.0], [0.5, 0.75]])).low is None


@pytest.mark.parametrize(
    ("head", "rows", "match"),
    [("learner,form,1", ["di,A,A"], "got no time"), ("", [], "got no learner"),
     ("learner,form,time,1,1", ["di,A,pre,A,B"], "each column once, got 1 2 times"),
     ("learner,form,time,1", ["di,C,pre,A"], "got none: row 2: form")],
)  # fmt: skip
def test_a_file_without_a_usable_sitting_is_refused(survey, head, rows, match):
    with pytest.raises(ValueError, match=match):
        survey(*rows, head=head)


# ---- the command


@pytest.fixture
def answers(tmp_path):
    """A file of sittings of the real items, filled into the empty table that the forms bring."""
    items = read_items()
    lines = [empty_answers(len(items)).strip()]
    for n, learner in enumerate(("<i>eve</i>", "fay", "gil")):
        for time, n_right in (("pre", 8 + n), ("post", 20 + 3 * n)):
            form = FORMS[(n + (time == "post")) % 2]
            keys = [item["forms"][form]["key"] for item in items]
            wrong = [next(x for x in LETTERS if x != key) for key in keys]
            lines.append(",".join([learner, form, time, *keys[:n_right], *wrong[n_right:]]))
    path = tmp_path / "answers.csv"
    path.write_text("\n".join([*lines, "<i>eve</i>,Q,pre"]), encoding="utf-8")
    return path


def test_the_command_prints_the_gain_and_writes_a_page(answers, tmp_path, capsys):
    report = tmp_path / "report.html"
    assert main(["survey", str(answers), "--report", str(report), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["gain"]["n"] == 3 and found["gain"]["before"] == pytest.approx(9 / 32)
    assert found["gain"]["low"] <= found["gain"]["gain"] <= found["gain"]["high"]
    page = report.read_text(encoding="utf-8")
    assert page.count('<circle class="after"') == len(found["items"]) == 32
    assert "95 % interval" in page and "has not been tried on people" in page
    assert "<i>" not in page and "form must be A or B" in page
    assert "http:" not in page and "https:" not in page and "<script" not in page
    assert "default-src 'none'" in page


def test_a_circle_is_where_its_share_is(answers, tmp_path, capsys):
    report = tmp_path / "report.html"
    main(["survey", str(answers), "--report", str(report)])
    page = report.read_text(encoding="utf-8")
    places = [float(part.split('"')[0]) for part in page.split('class="before" cx="')[1:]]
    shares = [one["pre"] for one in analyse(answers).items]
    assert places == pytest.approx([190 + 420 * share for share in shares], abs=0.1)


@pytest.mark.parametrize("wrong", ["missing.csv", "binary.csv", "wide.csv"])
def test_an_unreadable_file_is_one_line(tmp_path, capsys, wrong):
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "wide.csv").write_text("learner,form,time\n" + "x" * 200_000)
    assert main(["survey", str(tmp_path / wrong)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_report_replaces_no_answers_and_needs_a_folder_that_exists(answers, tmp_path, capsys):
    before = answers.read_text(encoding="utf-8")
    for report, said in ((answers, f"ends in .html, got {answers}"), (tmp_path / "no" / "x.html", "exists")):
        assert main(["survey", str(answers), "--report", str(report)]) == 2
        assert said in capsys.readouterr().err
    assert answers.read_text(encoding="utf-8") == before
