"""Search: the definitions in loops, every prefix read from its beginning; batches as singles."""

import math

import pytest
import torch
from torch.testing import assert_close

from tests.tinytx.against_torch import shaken
from tinytx.beam import Hypothesis, Search, beam_search
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.generate import unwritten_ids
from tinytx.tokenizer import Tokenizer
from tinytx.translate import translate_ids

BOS, EOS, V = 2, 3, 12
SOURCES = [[7, 9, 11, 8], [10], [8, 8, 9, 7, 10, 11, 9], [11, 7]]


def make_model(seed=0, **changes):
    torch.manual_seed(seed)
    sizes = {"vocab_size": V, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 20, "max_len": 14}
    return shaken(Translator(TransformerConfig(**sizes | changes)).double(), by=0.4)


def make_step(model, source):
    """Log-probabilities after a prefix, from the whole model at each call."""
    src_ids = torch.tensor([[*source, EOS]])
    forbidden = [i for i in unwritten_ids(Tokenizer) if i < model.config.vocab_size]

    @torch.no_grad()
    def step(prefix):
        logits = model(src_ids, torch.tensor([prefix]))[0, -1]
        logits[forbidden] = -torch.inf
        return logits.log_softmax(-1)

    return step


def beam_by_definition(step, beam_size, max_len, length_penalty):
    beams, finished = [([BOS], 0.0)], []
    while beams and len(beams[0][0]) < max_len:
        longer = []
        for ids, total in beams:
            longer += [([*ids, i], total + p) for i, p in enumerate(step(ids).tolist()) if p > -math.inf]
        best = sorted(longer, key=lambda one: -one[1])[:beam_size]
        finished += [one for one in best if one[0][-1] == EOS]
        beams = [one for one in best if one[0][-1] != EOS]
    return max(finished + beams, key=lambda one: one[1] / (len(one[0]) - 1) ** length_penalty)


@pytest.mark.parametrize(
    ("changes", "beam_size", "length_penalty"),
    [
        ({"norm": "first"}, 1, 0.3),  # greedy: the penalty plays no part
        ({"norm": "last"}, 1, 1.0),
        ({}, 2, 0.0),
        ({}, 4, 2.0),
        ({"positions": "learned"}, 2, 0.6),
        ({"positions": "rotary"}, 4, 1.0),
        ({"positions": "alibi"}, 3, -0.5),
    ],
)
def test_a_search_is_its_definition_together_or_alone(changes, beam_size, length_penalty, monkeypatch):
    for seed in (0, 1):
        model = make_model(seed, **changes)
        search = Search(beam_size=beam_size, length_penalty=length_penalty, max_factor=1.0, max_extra=3)
        for tokens_per_batch in (4096, 1):
            monkeypatch.setitem(translate_ids.__globals__, "TOKENS_PER_BATCH", tokens_per_batch)
            found = translate_ids(model, SOURCES, search=search)
            for source, answer in zip(SOURCES, found, strict=True):
                step, max_len = make_step(model, source), 1 + len(source) + 3
                ids, total = beam_by_definition(step, beam_size, max_len, length_penalty)
                assert [BOS, *answer.token_ids] == ids and answer.finished is (ids[-1] == EOS)
                assert_close(answer.log_prob, total)


@pytest.mark.parametrize(("length_penalty", "seeds"), [(-1.0, (17, 21)), (1.0, (16, 17))])
def test_no_search_ends_while_a_longer_hypothesis_may_still_win(length_penalty, seeds):
    """With a bound for the next length alone, or for the limit alone, one of these searches ends early."""
    search = Search(beam_size=3, length_penalty=length_penalty, max_factor=0.0, max_extra=8)
    for seed in seeds:
        model = make_model(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(2)
        for source, answer in zip(SOURCES, translate_ids(model, SOURCES, search=search), strict=True):
            ids, _ = beam_by_definition(make_step(model, source), 3, 9, length_penalty)
            assert [BOS, *answer.token_ids] == ids


def test_forbidden_repeats_and_a_shortest_length():
    model = make_model(1)
    plain = translate_ids(model, SOURCES, search=Search())
    assert any(len(set(one.token_ids)) < len(one.token_ids) for one in plain)
    for one in translate_ids(model, SOURCES, search=Search(forbid_repeats=True, beam_size=2)):
        assert len(set(one.token_ids)) == len(one.token_ids)
    longer = translate_ids(model, SOURCES, search=Search(min_factor=1.5))
    for source, one in zip(SOURCES, longer, strict=True):
        assert EOS not in one.token_ids[: int(1.5 * len(source))]


class Steps:
    """Steps whose logits are a function of the prefixes; counts its calls and records the rows."""

    def __init__(self, logits_of):
        self.logits_of, self.calls, self.rows = logits_of, 0, []

    def logits(self, prefixes):
        self.calls += 1
        return self.logits_of(prefixes)

    def select(self, rows):
        self.rows.append(rows.tolist())


def by_table(probs, otherwise=None):
    """Steps whose probabilities after a prefix, and after all others, are given by hand."""
    return Steps(
        lambda prefixes: torch.tensor([probs.get((*p[1:],), otherwise) for p in prefixes.tolist()]).log()
    )


def test_by_hand_a_beam_of_2_finds_what_greed_misses():
    """Two words, 0 and 1, and the end mark 2."""
    # Greedy takes 0 (0.6), after which nothing is likely; 1 (0.4) ends surely.
    table = {(): [0.6, 0.4, 0.0], (0,): [0.3, 0.3, 0.4], (1,): [0.0, 0.0, 1.0]}
    table |= {(0, 0): [0.1, 0.1, 0.8], (0, 1): [0.1, 0.1, 0.8]}
    ask = {"bos_id": 9, "eos_id": 2}
    (greedy,) = beam_search(by_table(table), [2], search=Search(), **ask)
    assert greedy.token_ids == (0, 2) and greedy.log_prob == pytest.approx(math.log(0.24))
    steps = by_table(table)
    (found,) = beam_search(steps, [3], search=Search(beam_size=2), **ask)
    assert found == Hypothesis((1, 2), pytest.approx(math.log(0.4)), True)
    assert steps.calls == 2  # (0, 2), worth 0.24, has ended as well


def test_beams_whose_children_change_places_keep_their_rows():
    table = {(): [0.6, 0.4, 0.0], (0,): [0.6, 0.4, 0.0], (1,): [1.0, 0.0, 0.0]}
    steps = by_table(table, otherwise=[0.0, 0.0, 1.0])
    beam_search(steps, [3], bos_id=9, eos_id=2, search=Search(beam_size=2))
    assert steps.rows == [[0, 0], [0, 1]]


def test_settings_have_a_range_and_a_translation_at_most_max_len_tokens():
    out_of_range = ({"beam_size": 0}, {"beam_size": 2.5}, {"min_factor": -1}, {"max_extra": 1.5})
    not_finite = ({"max_factor": math.inf}, {"length_penalty": math.nan})
    for wrong in (*out_of_range, *not_finite):
        ((name, got),) = wrong.items()
        with pytest.raises(ValueError, match=f"{name} must .* got {got}"):
            Search(**wrong)
    assert Search().max_tokens(100, max_len=60) == 60
    assert Search(max_factor=0.0, max_extra=0).max_tokens(5, max_len=60) == 1


def test_a_source_for_which_no_id_is_allowed_is_named():
    even = Steps(lambda prefixes: torch.zeros(len(prefixes), 6))
    settings = {"search": Search(forbid_repeats=True), "min_tokens": [6, 0], "forbidden_ids": (0, 1, 2)}
    words = "at least one id must have a probability above zero at every step, got none for 1 sources"
    with pytest.raises(ValueError, match=words):
        beam_search(even, [6, 6], bos_id=2, eos_id=3, **settings)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_forced_ids_begin_every_result_and_cost_nothing(beam_size):
    model, search, ids = make_model(), Search(beam_size=beam_size), [9, BOS]
    steps = Steps(lambda prefixes: model(torch.tensor([[7, EOS]]).expand(len(prefixes), 2), prefixes)[:, -1])
    (best,) = beam_search(
        steps, [5], bos_id=BOS, eos_id=EOS, search=search, forbidden_ids=[BOS, EOS], forced_ids=ids
    )
    assert len(best.token_ids) == 5 and list(best.token_ids[:2]) == ids
    log_probs = 0.0
    for t in range(3, 6):
        logits = model(torch.tensor([[7, EOS]]), torch.tensor([[BOS, *best.token_ids[: t - 1]]]))[0, -1]
        logits[[BOS, EOS]] = -torch.inf
        log_probs += logits.log_softmax(-1)[best.token_ids[t - 1]].item()
    assert best.log_prob == pytest.approx(log_probs)


@pytest.mark.parametrize("beam_size", [2, 3])
def test_a_hypothesis_that_nothing_can_follow_leaves_the_others_in_the_search(beam_size):
    probs = {(): [0.5, 0.3, 0.0, 0.2], (0,): [0.0] * 4}  # nothing may follow id 0
    search = Search(beam_size=beam_size, length_penalty=0.0)
    steps = by_table(probs, otherwise=[0.0, 0.0, 0.0, 1.0])  # after all else the end is certain
    (found,) = beam_search(steps, [4], bos_id=BOS, eos_id=EOS, search=search)
    assert found.token_ids == (1, EOS) and math.isclose(found.log_prob, math.log(0.3), rel_tol=1e-6)


def test_a_search_leaves_the_logits_that_it_gets_as_they_are():
    logits = torch.tensor([[0.0, 1.0, 2.0, 3.0]])

    how = {"bos_id": 0, "eos_id": 3, "search": Search(), "forbidden_ids": (1,)}
    beam_search(Steps(lambda prefixes: logits), [4], min_tokens=[2], **how)
    assert logits.tolist() == [[0.0, 1.0, 2.0, 3.0]]
