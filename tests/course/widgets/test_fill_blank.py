"""The explorer of a blank: its numbers compared with the world, with the model, and with torch."""

import pytest
import torch

import tinytx as tx
import tinytx_course as course
from tinytx.generate import unwritten_ids
from tinytx_course.widgets.fill_blank import shown


@pytest.fixture(scope="module")
def filler(reader):
    torch.manual_seed(1)
    tokenizer = reader[1]
    return tx.MaskedLanguageModel(tx.PRESETS["tiny"].replace(vocab_size=tokenizer.vocab_size)).eval()


@pytest.fixture(scope="module")
def reviews(world):
    return world.reviews(3, seed=1)  # those of the explorer


@pytest.fixture(scope="module")
def explorer(filler, reader):
    return course.widgets.fill_blank(filler, reader[1])


def test_where_words_are_tokens_the_exact_rows_are_those_of_the_world(
    filler, reader, world, reviews, explorer
):
    tokenizer, words = reader[1], reviews[0].words
    assert len(explorer.tokens[0]) == len(explorer.blanks[0]) == len(tokenizer.encode(" ".join(words)))
    n_whole, position = 0, 0
    for t, word in enumerate(words):
        if len(tokenizer.word_pieces(word)) == 1:
            truth = world.fill(words, t)
            rows = {row[0]: row for row in explorer.blanks[0][position]["rows"]}
            assert word in rows  # the hidden token is always shown
            if all(len(tokenizer.word_pieces(other)) == 1 for other in truth):
                n_whole += 1
                for name, both, *_ in rows.values():
                    assert both == pytest.approx(truth.get(name, 0.0), abs=1e-5)
                assert explorer.blanks[0][position]["possible"] == len(truth)
        position += len(tokenizer.word_pieces(word))
    assert n_whole > 3


def test_the_model_sees_the_mask_between_cls_and_sep(filler, reader, reviews, explorer):
    tokenizer = reader[1]
    ids = tokenizer.encode(" ".join(reviews[0].words))
    row = torch.tensor([[tokenizer.cls_id, *ids[:4], tokenizer.mask_id, *ids[5:], tokenizer.sep_id]])
    texts = torch.tensor(sorted({*range(200)} - {*unwritten_ids(tokenizer), tokenizer.eos_id}))
    with torch.no_grad():
        logits = filler(row)[0, 5, texts].double()
    probs = dict(zip([shown(tokenizer, i) for i in texts.tolist()], logits.softmax(-1).tolist(), strict=True))
    for name, _, _, guess in explorer.blanks[0][4]["rows"]:
        assert guess == pytest.approx(probs.get(name, 0.0), abs=2e-5)


def test_the_left_knows_no_more_than_both_sides(explorer):
    for blank in sum(explorer.blanks, []):
        assert blank["left"] > -1e-9 and blank["model"] > 0
        for name, both, left, _ in blank["rows"]:
            assert both == 0 or left > 0, name  # what both sides allow, the left allows


def test_every_row_is_ordered_by_the_exact_distribution(explorer):
    for blank in sum(explorer.blanks, []):
        both = [row[1] for row in blank["rows"]]
        assert both == sorted(both, reverse=True)


def test_the_verdict_on_a_choice_says_whether_it_can_be_and_whether_it_was_hidden(node):
    rows = [["Le", 0.75, 0.5, 0.5], ["La", 0.25, 0.5, 0.25], ["et", 0, 0.25, 0.25]]
    blank = {"rows": rows, "left": 1, "model": 1, "possible": 2, "impossible": 0.25}
    state = {"tokens": [["Le"]], "blanks": [[blank]], "review": 0, "position": 0, "revealed": False}
    states = [state | {"guess": guess} for guess in ("Le", "La", "et", "?")]
    answers = node("fill_blank", "[js.verdictOf(get)?.mark ?? null, js.describe(get)]", *states)
    said = [
        "“Le”: ✓ possible, and the hidden token (both sides 75.0%, ",
        "“La”: ✓ possible, but not the hidden token (both sides 25.0%, ",
        "“et”: ✗ impossible here, so not the hidden token (both sides 0.0%, left only 25.0%, ",
    ]
    assert [mark for mark, _ in answers] == ["✓", "✓", "✗", None] and "You chose" not in answers[3][1]
    for (_, text), words in zip(answers, said, strict=False):
        assert f" You chose {words}" in text


def test_what_is_said_names_the_hidden_token_only_when_it_is_shown(node, explorer):
    start = explorer.state() | {"review": 0, "position": 0}
    last = max(map(len, explorer.tokens)) - 1
    changes = [{}, {"guess": "?"}, {"guess": "?", "revealed": True}, {"position": last}]
    asked, before, after, beyond = node("fill_blank", "js.describe(get)", *(start | each for each in changes))
    assert asked.endswith("Which would you fill in?")
    assert not any(word in asked for word in ("%", "nats", "possible"))
    blank, token = explorer.blanks[0][0], explorer.tokens[0][0]
    assert "The hidden token" not in before
    assert f"model {blank['model']:.3f} nats, left side only {blank['left']:.3f} nats" in before
    assert after == before.replace("\n", f" The hidden token: “{token}”.\n")
    n = len(explorer.tokens[0])
    assert beyond.startswith(f"Token {n} of {n} is hidden")


def test_it_begins_where_both_sides_help_most_and_the_model_is_near_them(explorer):
    assert explorer.position == explorer.clearest[0]
    for row, clear in zip(explorer.blanks, explorer.clearest, strict=True):
        assert all(row[clear]["left"] - row[clear]["model"] >= each["left"] - each["model"] for each in row)


def test_a_model_that_is_not_masked_is_refused(reader):
    with pytest.raises(TypeError, match="MaskedLanguageModel, got LanguageModel"):
        course.widgets.fill_blank(*reader)


def test_the_english_line_hides_the_word_that_the_hidden_token_is_a_part_of(node, explorer, reader, reviews):
    n_pieces = [len(reader[1].word_pieces(word)) for word in reviews[0].words]
    due = [i for i, n in enumerate(n_pieces) for _ in range(n)]
    states = [explorer.state() | {"review": 0, "position": at} for at in range(len(due))]
    assert max(n_pieces) > 1 and node("fill_blank", "js.wordOf(js.blankOf(get))", *states) == due
    assert len(explorer.english[0]) == len(reviews[0].words)
