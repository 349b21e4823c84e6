"""Masked tokens: BERT's 15 %, 80, 10 and 10. Pairs of sentences: half of them follow one another."""

import numpy as np
import pytest
import torch

from tinytx.masking import Masking, draw_pairs, make_passages, mask_tokens
from tinytx.tokenizer import Tokenizer

RULE = {"mask_id": 4, "special_ids": (0, 1, 2), "vocab_size": 30}
IDS = torch.randint(5, 30, (200, 500), generator=torch.Generator().manual_seed(3))
IDS[:, 0] = 2
IDS[:, -3:] = 0
TEXTS = ["le chat . la table ! un chien", "un chat", "la", "une table . une table . une table . une table ."]
TOKENIZER = Tokenizer.train(TEXTS * 5, vocab_size=25)


def masked(seed=0, **changes):
    return mask_tokens(IDS, **{**RULE, **changes}, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("p", [0.15, 0.4])
def test_shares_are_those_of_the_paper(p):
    inputs, labels = masked(p=p)
    drawn = labels != -100
    n = IDS.numel() - 4 * 200

    def share_is(found, of, expected):
        spread = (expected * (1 - expected) / of) ** 0.5
        assert abs(found / of - expected) < 5 * spread

    share_is(drawn.sum().item(), n, p)
    n_drawn = drawn.sum().item()
    share_is((inputs[drawn] == 4).sum().item(), n_drawn, 0.8)
    # One exchanged token in 26 becomes itself again.
    changed = (inputs != IDS) & (inputs != 4)
    share_is(changed.sum().item(), n_drawn, 0.1 * 25 / 26)


def test_only_chosen_tokens_change_and_special_ones_are_neither_chosen_nor_put_in():
    before = IDS.clone()
    inputs, labels = masked(p=0.9)
    drawn = labels != -100
    assert (labels[drawn] == IDS[drawn]).all() and (inputs[~drawn] == IDS[~drawn]).all()
    assert (before == IDS).all()
    special = torch.isin(IDS, torch.tensor([0, 1, 2, 4]))
    assert not drawn[special].any()
    assert not torch.isin(inputs[~special], torch.tensor([0, 1, 2])).any()


def test_whole_words_are_drawn_with_all_their_pieces():
    words = (torch.rand(IDS.shape, generator=torch.Generator().manual_seed(1)) < 0.4).flatten().cumsum(0)
    inputs, labels = masked(words=words.view(IDS.shape))
    drawn, ordinary = (labels != -100).flatten(), ~torch.isin(IDS, torch.tensor([0, 2])).flatten()
    n_pieces = torch.bincount(words[ordinary])
    n_drawn = torch.bincount(words[ordinary & drawn], minlength=len(n_pieces))
    assert ((n_drawn == 0) | (n_drawn == n_pieces)).all()
    assert abs((n_drawn > 0).sum() / (n_pieces > 0).sum() - 0.15) < 0.01
    assert (n_pieces > 1).sum() > 1000


def test_equal_generators_draw_alike_and_others_do_not():
    assert all(torch.equal(a, b) for a, b in zip(masked(1), masked(1), strict=True))
    assert not torch.equal(masked(1)[1], masked(2)[1])


def test_impossible_requests_are_refused():
    with pytest.raises(ValueError, match=r"1\.5"):
        Masking(p=1.5)
    with pytest.raises(ValueError, match="vocab_size=3"):
        mask_tokens(IDS, mask_id=2, special_ids=(0, 1), vocab_size=3)
    with pytest.raises(ValueError, match="two texts .* got 1"):
        draw_pairs(make_passages(TOKENIZER, TEXTS[:1], 50), 50, np.random.default_rng(0))
    with pytest.raises(ValueError, match="at least 2 ids, got 1"):
        make_passages(TOKENIZER, TEXTS, 1)


def text_of(ids):
    return TOKENIZER.decode(ids)


def test_passages_hold_whole_texts_and_are_cut_between_sentences():
    passages = make_passages(TOKENIZER, TEXTS, room=100)
    assert [one.text for one in passages] == [0, 1, 3]  # one word cannot be cut in two
    assert [text_of(one.ids) for one in passages] == [TEXTS[0], TEXTS[1], TEXTS[3]]
    first, words, last = passages
    assert [text_of(first.ids[cut:]) for cut in first.cuts] == ["la table ! un chien", "un chien"]
    assert [text_of(words.ids[cut:]) for cut in words.cuts] == ["chat"]
    assert len(last.cuts) == 3


def test_half_of_the_seconds_come_from_another_text():
    texts = [f"{a} chat . {b} table ." for a in ("le", "un", "la", "une") for b in ("la", "une")]
    passages = make_passages(TOKENIZER, texts * 200, room=60)
    pairs = draw_pairs(passages, 60, np.random.default_rng(0))
    assert abs(np.mean(pairs.labels) - 0.5) < 5 * 0.5 / len(passages) ** 0.5
    for passage, first, second, label in zip(
        passages, pairs.firsts, pairs.seconds, pairs.labels, strict=True
    ):
        assert first == passage.ids[: len(first)]
        if label == 0:
            assert first + second == passage.ids
    again = draw_pairs(passages, 60, np.random.default_rng(0))
    assert again == pairs and draw_pairs(passages, 60, np.random.default_rng(1)) != pairs


def test_a_strange_second_is_never_of_the_same_text():
    passages = make_passages(TOKENIZER, ["le chien . " * 4 + "la", "un chat . une table ."], 9)
    assert len(passages) > 2
    for seed in range(20):
        pairs = draw_pairs(passages, 9, np.random.default_rng(seed))
        for passage, second, label in zip(passages, pairs.seconds, pairs.labels, strict=True):
            own_words = {"le", "chien"} if passage.text == 0 else {"un", "chat", "une"}
            if label == 1:
                assert not own_words & set(text_of(second).split())


def test_long_texts_are_spread_over_passages_and_both_parts_of_a_pair_fit():
    room = 7
    passages = make_passages(TOKENIZER, [TEXTS[3], " ".join(["chien"] * 30)], room)
    assert all(len(one.ids) <= room for one in passages)
    assert text_of([i for one in passages if one.text == 0 for i in one.ids]) == TEXTS[3]
    for seed in range(20):
        pairs = draw_pairs(passages, room, np.random.default_rng(seed))
        assert all(len(x) + len(y) <= room and y for x, y in zip(pairs.firsts, pairs.seconds, strict=True))
