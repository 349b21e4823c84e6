"""The bank of questions: right options are computed, nothing is given away by form, quizzes are shown."""

import ast
import math
import re
from dataclasses import replace

import pytest
import torch
from scipy.stats import binom

import tinytx as tx
import tinytx_course as course
from tests.course.outline import outline_of
from tinytx_course.inventory.items import FORMS, read_items
from tinytx_course.lessons import LESSONS, Lesson, project_root
from tinytx_course.quizzes.bank import LETTERS, Option, Question, questions, votes, with_twins
from tinytx_course.quizzes.quiz import question_card, quiz

QUIZ = [question for lesson in LESSONS for question in questions(lesson)]
VOTED = [vote for lesson in LESSONS for vote in votes(lesson)]
VOTES = with_twins(VOTED)


def each(asked):
    return pytest.mark.parametrize("asked", asked, ids=[f"{one.lesson.slug}-{one.key}" for one in asked])


def headings(lesson):
    source = project_root() / "notebooks" / "src" / f"{lesson.name}.py"
    return re.findall(r"^# ## (.+)", source.read_text(encoding="utf-8"), flags=re.M)


def value_of(code):
    """The value of the last expression of some code."""
    *steps, last = ast.parse(code.strip()).body
    names = {"math": math, "torch": torch, "tx": tx, "F": torch.nn.functional, "nn": torch.nn}
    torch.manual_seed(0)
    exec(compile(ast.Module(steps, []), "check", "exec"), names)
    return eval(compile(ast.Expression(last.value), "check", "eval"), names)


def same(value, other):
    """Whether two values are equal, numbers up to half a hundredth or a hundredth of their size."""
    if isinstance(value, float) or isinstance(other, float):
        return not isinstance(other, str) and value == pytest.approx(other, rel=0.01, abs=0.005, nan_ok=True)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(same, value, other))
    return type(value) is type(other) and value == other


def test_a_lesson_has_a_quiz_and_two_votes_with_a_twin_each_about_its_sections(lesson):
    asked, voted = questions(lesson), votes(lesson)
    assert 3 <= len(asked) <= 5 and not any(one.twin for one in asked)
    assert len({one.shuffled.index(one.right) for one in asked}) > 1
    assert len(voted) == 2 and all(one.twin is not None and one.twin.twin is None for one in voted)
    first, second = (headings(lesson).index(one.section) for one in voted)
    assert first <= second, "in the order of the lesson"


@each([one for one in QUIZ + VOTES if one.check])
def test_the_right_option_is_the_one_that_comes_out(asked):
    computed = value_of(asked.check)
    matches = [same(computed, option.value) for option in asked.options]
    assert matches == [letter == asked.answer for letter in LETTERS], computed


def test_most_answers_to_votes_are_computed():
    assert sum(not one.check for one in VOTES) <= len(VOTES) / 3


# ---- nothing is given away by form


def words(text):
    return set(re.findall(r"\w+", text.lower()))


def length(option, asked):
    return len(option.text)


def overlap(option, asked):
    """How many of its words are in the question."""
    return len(words(option.text) & words(asked.prompt))


def likeness(option, asked):
    """How many of its words other options have, too."""
    return sum(len(words(one.text) & words(option.text)) for one in asked.options if one is not option)


@pytest.mark.parametrize("sign", [1, -1], ids=["most", "least"])
@pytest.mark.parametrize("cue", [length, overlap, likeness])
def test_no_cue_of_form_predicts_the_answer_to_a_vote(cue, sign):
    hits = 0.0
    for vote in VOTES:
        scores = [sign * cue(option, vote) for option in vote.options]
        best = [letter for letter, score in zip(LETTERS, scores, strict=True) if score == max(scores)]
        hits += (vote.answer in best) / len(best)
    # What a guesser among four reaches with less than one chance in 40.
    assert hits <= binom.ppf(0.975, len(VOTES), 1 / len(LETTERS))


@pytest.mark.parametrize("extreme", [max, min])
def test_the_right_option_of_a_quiz_is_the_longest_or_the_shortest_no_more_often_than_by_chance(extreme):
    conspicuous = 0
    for one in QUIZ:
        lengths = [len(option.text) for option in one.options]
        conspicuous += lengths.count(extreme(lengths)) == 1 and len(one.right.text) == extreme(lengths)
    assert conspicuous <= len(QUIZ) / len(LETTERS)


@each(QUIZ + VOTES)
def test_each_option_reveals_something_of_its_own_and_none_is_conspicuous_by_its_length(asked):
    lengths = [len(option.text) for option in asked.options]
    reveals = [option.reveals for option in asked.options]
    assert len(set(reveals)) == len(reveals)
    if asked.section:
        assert max(lengths) - min(lengths) <= 26
        assert all(6 <= len(text.split()) <= 26 and text.endswith(".") for text in reveals)
    else:
        assert max(lengths) <= 1.6 * min(lengths) and all(len(text.split()) >= 5 for text in reveals)


def test_votes_are_right_at_each_letter_equally_often_and_a_twin_at_another_one():
    answers = [vote.answer for vote in VOTES]
    assert {letter: answers.count(letter) for letter in LETTERS} == dict.fromkeys(LETTERS, len(VOTES) // 4)
    assert all(vote.answer != vote.twin.answer for vote in VOTED)
    shifts = [(LETTERS.index(vote.twin.answer) - LETTERS.index(vote.answer)) % 4 for vote in VOTED]
    assert max(map(shifts.count, shifts)) <= binom.ppf(0.975, len(VOTED), 1 / 3)


def test_a_quiz_is_right_at_every_letter_and_at_none_most_of_the_time():
    places = [one.shuffled.index(one.right) for one in QUIZ]
    assert all(0.1 < places.count(place) / len(places) < 0.4 for place in range(4))


def test_the_order_of_a_quiz_follows_from_the_texts_and_not_from_how_they_are_written_down():
    shuffled = QUIZ[0].shuffled
    for order in (shuffled, shuffled[::-1], shuffled[2:] + shuffled[:2]):
        assert replace(QUIZ[0], options=tuple(order)).shuffled == shuffled


def test_no_vote_is_a_question_of_a_quiz_or_of_the_inventory():
    elsewhere = [one.prompt for one in QUIZ]
    elsewhere += [item["forms"][form]["prompt"] for item in read_items() for form in FORMS]
    for vote in VOTES:
        for prompt in elsewhere:
            both = words(vote.prompt), words(prompt)
            assert len(set.intersection(*both)) < 0.5 * len(set.union(*both)), (vote.prompt, prompt)


# ---- what is wrong in a file is said


def options(*changed, n=4):
    texts = [*changed, *(f"text {i}" for i in range(n - len(changed)))]
    return tuple(Option(text=text, reveals="why") for text in texts)


def question(**fields):
    whole = {"lesson": LESSONS[2], "key": "k", "prompt": "?", "options": options(), "answer": "A"}
    return Question(**{**whole, **fields})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"options": options(n=3)}, "four different options, got 3"),
        ({"options": options("text 0")}, "four different options"),
        ({"options": options(" ")}, "must not be empty"),
        ({"answer": "E"}, "one of ABCD, got 'E'"),
        ({"answer": "AB"}, "one of ABCD, got 'AB'"),
        ({"check": "1"}, "four values and a check or none, got 0"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused_by_name(fields, said):
    question()
    with pytest.raises(ValueError, match=f"{said}.* in 02_attention_and_masks/k$"):
        question(**fields)


def test_a_lesson_without_questions_is_named():
    with pytest.raises(ValueError, match="quizzes/77_new.toml"):
        votes(Lesson(number=77, slug="new", title="New", question="?", seconds=1))


# ---- names


@pytest.mark.parametrize(
    ("name", "slug"),
    [("positions", "positions"), ("Positions", "positions"), ("attention and masks", "attention_and_masks"),
     ("masks", "attention_and_masks"), ("heads", "many_heads"), ("03_positions.ipynb", "positions"),
     *((name, one.slug) for one in LESSONS for name in (one.number, f"{one.number:02d}", one.name))],
)  # fmt: skip
def test_a_quiz_is_found_by_slug_number_file_or_a_word_of_its_own(name, slug):
    assert all(one["key"].startswith(f"{slug}/") for one in course.quiz(name).questions)


@pytest.mark.parametrize(("name", "near"), [("position", "'positions'"), ("mask", "'masks'")])
def test_an_unknown_quiz_is_answered_with_the_nearest(name, near):
    with pytest.raises(ValueError, match=f"got '{name}'; did you mean .*{near}"):
        course.quiz(name)


@pytest.mark.parametrize("name", [99, "", "the", "zzz", None])
def test_what_resembles_no_quiz_is_refused_without_a_guess(name):
    with pytest.raises(ValueError) as caught:
        course.quiz(name)
    assert "did you mean" not in str(caught.value)


# ---- on the screen


def test_without_a_script_each_choice_folds_its_own_feedback(lesson):
    card, asked = quiz(lesson.slug), questions(lesson)
    bundle, _ = card._repr_mimebundle_()
    assert card.still() in bundle["text/html"]
    outline = outline_of(bundle["text/html"])
    texts = [option.text.replace("`", "") for one in asked for option in one.shuffled]
    assert [summary[3:] for summary in outline.summaries] == texts
    assert "<script" not in bundle["text/html"] and "style=" not in bundle["text/html"]
    assert card.still().count("<p>Right. ") == len(asked)
    assert "Right." not in bundle["text/plain"] and asked[0].prompt[:20] in repr(card)


def test_characters_of_html_are_escaped():
    shown = question_card(
        "", [question(prompt="`a<b`? *So* 2 * 3.", options=options("n < d & so", "<b>"))]
    ).to_html()
    assert "<code>a&lt;b</code>? <em>So</em> 2 * 3." in shown
    assert "n &lt; d &amp; so" in shown and "<b>" not in shown


# ---- facts that explanations state


def test_the_module_of_torch_does_with_masks_what_explanations_say():
    module = torch.nn.MultiheadAttention(6, 2, batch_first=True)
    x, real = torch.randn(1, 3, 6), torch.ones(1, 3, dtype=torch.bool)
    assert module(x, x, x, key_padding_mask=real)[0].isnan().all()  # True is "blocked" there
    silent, _ = module(x, x, x, key_padding_mask=real, need_weights=False)
    torch.testing.assert_close(silent, module.out_proj.bias.expand_as(x))


def test_numbers_of_the_question_on_layer_norm():
    token = torch.tensor([1.0, 3.0, 5.0, 7.0])
    (asked,) = [one for one in QUIZ if one.key == "biased-variance"]
    biased, uncentred = asked.options[:2]
    assert f"{torch.nn.functional.layer_norm(token, (4,)).max():.2f}" in biased.reveals
    assert f"{(token / token.square().mean().sqrt()).max():.2f}" in uncentred.reveals


@pytest.mark.slow
def test_looking_right_helps_articles_more_than_stops_nouns_and_last_words(world):
    articles = {"le", "la", "les", "l'", "un", "une", "des"}
    gains = {"article": [], "stop": [], "noun": [], "last": []}
    for review in world.reviews(12, seed=5):
        words = review.words
        for t, word in enumerate(words[1:], 1):
            kinds = {
                "article": word in articles,
                "stop": word == ".",
                "noun": words[t - 1] in articles,
                "last": t == len(words) - 2,
            }
            kind = next((kind for kind, holds in kinds.items() if holds), None)
            if kind is not None:
                before, both = world.next_word(words[:t])[word], world.fill(words, t)[word]
                gains[kind].append(math.log(both / before))
    means = {kind: sum(values) / len(values) for kind, values in gains.items()}
    assert min(len(values) for values in gains.values()) >= 8
    assert means["article"] > 1.2 * max(mean for kind, mean in means.items() if kind != "article"), means
