"""Lesson 17: exact answers, probes, heads and hidden states replaced, induction."""

import numpy as np
import pytest
import torch

from tinytx.attention import record_attention
from tinytx.config import TransformerConfig
from tinytx.transformer import LanguageModel, Transformer, record_hidden_states
from tinytx_course.labs import lesson_17 as lab
from tinytx_course.labs import one_word
from tinytx_run.pretrain import train_tokenizer

CONFIG = TransformerConfig(
    vocab_size=11, d_model=15, n_heads=3, n_layers=2, d_ff=7, max_len=13, positions="alibi", bias=False
)


@pytest.fixture(scope="module")
def forms(world):
    return lab.WordForms(world)


@pytest.fixture(scope="module")
def reviews(world):
    return world.reviews(24, seed=5)


@pytest.fixture(scope="module")
def tokenizer(world):
    """One token a word, nearly."""
    texts = [" ".join(review.words) for review in world.reviews(3000, seed=6)]
    return train_tokenizer(texts, 1500, exact=False, kind="world")


@pytest.fixture(scope="module")
def reader(tokenizer):
    torch.manual_seed(0)
    config = CONFIG.replace(vocab_size=tokenizer.vocab_size, max_len=128)
    return LanguageModel(config).eval()


@pytest.fixture
def body():
    torch.manual_seed(0)
    return Transformer(CONFIG).eval()


def drawn(*shape, seed=1):
    return torch.randint(CONFIG.vocab_size, shape, generator=torch.Generator().manual_seed(seed))


# What could be known


def test_the_exact_posteriors_are_distributions_and_end_at_that_of_the_whole_review(world, forms, reviews):
    exact = lab.exact_variables(world, forms, reviews)
    n_words = [len(review.words) for review in reviews]
    for name, one in exact.items():
        np.testing.assert_allclose(one.posterior.sum(axis=1), 1.0)
        assert one.posterior.shape == (len(one.drawn), len(one.classes))
        own = np.repeat(np.arange(len(reviews)), n_words)
        assert (own[one.row] == one.review).all(), name
    ends = np.cumsum(n_words) - 1
    expected = [world.label_posterior(review.words) for review in reviews]
    np.testing.assert_allclose(exact["polarity"].posterior[ends, 1], expected)
    assert exact["polarity"].drawn[ends].tolist() == [review.label for review in reviews]


SHOWN = {"gender": [{"m"}, {"f"}], "number": [{"3sg", "sg"}, {"3pl", "pl"}]}


@pytest.mark.parametrize(("name", "feature"), [("gender", 0), ("number", 1)])
def test_what_is_awaited_is_certain_and_that_of_the_next_word(world, forms, reviews, name, feature):
    exact, french = lab.exact_variables(world, forms, reviews)[name], forms.forms
    words = [word for review in reviews for word in review.words]
    assert len(exact.drawn) > 10 and set(exact.drawn.tolist()) == {0, 1}
    assert (exact.posterior[np.arange(len(exact.drawn)), exact.drawn] > 1 - 1e-9).all()
    for row, drawn in zip(exact.row, exact.drawn.tolist(), strict=True):
        word = words[row + 1]
        shapes = [*french.adjectives.get(word, ()), *french.participles.get(word, ())]
        shown = {shape[feature] for shape in shapes}
        shown |= french.verbs.get(word, set()) - {"1sg"} if name == "number" else set()
        assert shown and shown <= SHOWN[name][drawn], word


@pytest.mark.parametrize(
    ("word", "gender", "number"),
    [("belle", 1, 0), ("beaux", 0, 1), ("ennuyeux", 0, None), ("sont", None, 1), ("aime", None, None),
     ("absurdes", None, 1), ("lues", 1, 1), (".", None, None)],
)  # fmt: skip
def test_a_form_counts_where_it_shows_its_gender_or_number_alone(world, forms, word, gender, number):
    for group, expected in ((forms.gender, gender), (forms.number, number)):
        row = group[world.vocabulary.index(word)]
        assert row.tolist() == [float(expected == place) for place in range(2)]


def test_hidden_states_after_words_are_those_of_each_review_alone(reader, tokenizer, reviews):
    together = lab.hidden_after_words(reader, tokenizer, reviews)
    alone = [lab.hidden_after_words(reader, tokenizer, [review]) for review in reviews]
    assert len(together) == CONFIG.n_layers + 1
    for level, states in enumerate(together):
        torch.testing.assert_close(states, torch.cat([one[level] for one in alone]))
    ids = [tokenizer.bos_id, *tokenizer.encode(" ".join(reviews[0].words))]
    with torch.no_grad(), record_hidden_states(reader.body) as levels:
        reader.body(torch.tensor([ids]))
    torch.testing.assert_close(alone[0][1][-1], levels[1][0, -1])


# Scores


def test_reviews_count_alike_however_long_they_are():
    got = lab.by_review(np.array([1.0, 3.0, 10.0]), np.array([4, 4, 7]))
    assert got.tolist() == [2.0, 10.0]


def test_a_probe_reads_what_is_there_and_shuffled_labels_end_at_the_prior():
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet((0.5, 0.5), size=3000)
    labels = (rng.random(3000) < posterior[:, 1]).astype(int)
    log_odds = np.log(posterior[:, 1] / posterior[:, 0])
    x = torch.tensor(np.stack([log_odds, *rng.normal(size=(4, 3000))], axis=1)).float()
    exact = lab.Exact(("no", "yes"), posterior, labels, np.arange(3000), np.arange(3000))
    prior = lab.prior_excess(exact, exact).mean()
    assert lab.probe_excess((x, exact), (x, exact)).mean() < 0.02 * prior
    shuffled = lab.probe_excess((x, exact), (x, exact), labels=rng.permutation(labels)).mean()
    assert shuffled == pytest.approx(prior, rel=0.05)
    blind = lab.probe_excess((x[:, 1:], exact), (x[:, 1:], exact)).mean()
    assert blind == pytest.approx(prior, rel=0.05)


# Heads and hidden states replaced


def test_heads_without_their_columns_of_out_proj_are_the_same_as_ablated_ones(body):
    ids = drawn(2, 7)
    with lab.heads_replaced(body, {(0, 2): 0.0, (1, 1): 0.0, (1, 2): 0.0}):
        ablated = body(ids)
    with torch.no_grad():
        body.blocks[0].attn.out_proj.weight[:, 10:] = 0
        body.blocks[1].attn.out_proj.weight[:, 5:] = 0
    torch.testing.assert_close(ablated, body(ids))


def test_heads_replaced_by_their_own_outputs_change_nothing(body):
    ids, others = drawn(2, 7), drawn(2, 7, seed=2)
    with lab.record_heads(body) as heads:
        whole = body(ids)
    own = {(layer, head): heads[layer][:, :, head] for layer in range(2) for head in range(3)}
    with lab.heads_replaced(body, own):
        torch.testing.assert_close(body(ids), whole)
        moved = body(others)
    assert not torch.allclose(moved, whole) and not torch.allclose(moved, body(others))


def test_a_head_that_does_not_exist_is_named(body):
    with pytest.raises(ValueError, match=r"\(2, 0\)"), lab.heads_replaced(body, {(2, 0): 0.0}):
        pass


# Pairs


@pytest.mark.parametrize("kind", ["polarity", "gender"])
def test_pairs_differ_in_one_word_and_matter_in_the_exact_language(world, forms, tokenizer, reader, kind):
    pairs = one_word.one_word_pairs(world, forms, tokenizer, world.reviews(80, seed=9), kind)
    assert len(pairs) >= 5
    groups = one_word.group_tokens(world, tokenizer, getattr(forms, kind))
    assert groups.any(dim=0).all() and not groups.all(dim=1).any()
    for pair in pairs:
        different = [i for i, (a, b) in enumerate(zip(pair.first, pair.second, strict=True)) if a != b]
        assert different == [pair.changed] and pair.exact[0] - pair.exact[1] >= one_word.LEAST_EFFECT
        assert min(map(world.automaton.forward, (pair.first, pair.second)), key=lambda s: s.total).total > 0
    run = one_word.PairRuns(reader, tokenizer, pairs, groups)
    assert run.effects().shape == run.attention_to_change().shape == (2, 3, len(pairs))


def test_log_odds_are_those_of_the_first_tokens_of_both_groups(world, forms, tokenizer, reader):
    (pair,) = one_word.one_word_pairs(world, forms, tokenizer, world.reviews(80, seed=9), "polarity")[:1]
    groups = one_word.group_tokens(world, tokenizer, forms.polarity)
    run = one_word.PairRuns(reader, tokenizer, [pair], groups)
    odds = []
    for words in (pair.first, pair.second):
        with torch.no_grad():
            probs = reader(torch.tensor([[tokenizer.bos_id, *tokenizer.encode(" ".join(words))]]))[
                0, -1
            ].softmax(0)
        odds.append((probs[groups[:, 1]].sum() / probs[groups[:, 0]].sum()).log().item())
    assert run.whole[0] == pytest.approx(odds[0] - odds[1], abs=1e-4)


def test_an_unknown_kind_of_pair_is_named(world, forms, tokenizer, reviews):
    with pytest.raises(ValueError, match="'length'"):
        one_word.one_word_pairs(world, forms, tokenizer, reviews, "length")


# Induction


def test_rows_repeat_with_their_period_and_no_token_recurs_within_it():
    rows, period = lab.repeated_rows(7, 24, 16, (5, 11), torch.Generator().manual_seed(0))
    for row, p in zip(rows, period.tolist(), strict=True):
        assert 5 <= p <= 11 and torch.equal(row[p:], row[:-p]) and len(set(row[:p].tolist())) == p


def test_the_induction_score_is_the_mean_weight_one_after_the_earlier_copy():
    torch.manual_seed(0)
    model = LanguageModel(CONFIG).eval()
    rows, _ = lab.repeated_rows(4, 10, CONFIG.vocab_size, (5, 5), torch.Generator().manual_seed(1))
    with torch.no_grad(), record_attention(model) as recorded:
        model(rows)
    by_hand = torch.zeros(2, 3)
    for layer, weights in enumerate(recorded.values()):
        for head in range(3):
            picked = [weights[b, head, t, t - 4].item() for b in range(4) for t in range(5, 10)]
            by_hand[layer, head] = sum(picked) / len(picked)
    torch.testing.assert_close(lab.induction_scores(model, 5, n_rows=4), by_hand)


def test_an_untrained_model_copies_nothing_and_the_nats_are_cross_entropies():
    torch.manual_seed(0)
    first, second = lab.copy_nats(LanguageModel(CONFIG), 5, n_rows=6)
    assert first.shape == second.shape == (6,)
    assert first.mean() == pytest.approx(np.log(11), abs=0.2) and second.mean() == pytest.approx(
        first.mean(), abs=0.2
    )


def test_training_on_repeats_does_not_depend_on_what_was_drawn_before():
    models = []
    for _ in range(2):
        torch.rand(3)
        models.append(lab.train_on_repeats(lab.repeats_config(), 2, seed=3))
    torch.testing.assert_close(models[0].state_dict(), models[1].state_dict())
