"""Scores of translations: sacreBLEU's own figures, a bootstrap interval, loss and grammar of a translator."""

import random
import sys

import numpy as np
import pytest
import torch
from sacrebleu.metrics import BLEU, CHRF

from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.tokenizer import Tokenizer
from tinytx.translate import Translation as Translated
from tinytx_run import bleu as bleu_module
from tinytx_run.bleu import RESAMPLING_SEED, evaluate_translator, pair_nats, score_translations
from tinytx_run.corpora import Corpus, Split
from tinytx_run.evaluate import evaluate
from tinytx_run.pairs import PairCorpus, Pairs

WORDS = ["le", "la", "un", "chat", "chien", "mange", "voit", "bien", "très", "peu", "souvent", "."]


def noisy(n, seed):
    rng = random.Random(seed)
    references = [" ".join(rng.choice(WORDS) for _ in range(rng.randint(4, 12))) for _ in range(n)]
    return [" ".join(w for w in r.split() if rng.random() > 0.1) for r in references], references


def test_equals_sacrebleu_called_directly_on_whole_and_on_resampled_texts(monkeypatch):
    monkeypatch.setattr(bleu_module, "N_RESAMPLES", 200)
    translations, references = noisy(40, 1)
    singles = [[r] for r in references]
    score = score_translations(translations, singles)
    bleu, chrf = BLEU(), CHRF()
    whole = bleu.corpus_score(translations, [references])
    assert (score.bleu, score.brevity, list(score.precisions)) == (whole.score, whole.bp, whole.precisions)
    assert score.chrf == chrf.corpus_score(translations, [references]).score
    assert score.signature == str(bleu.get_signature())
    rng, scores = np.random.default_rng(RESAMPLING_SEED), []
    for _ in range(200):
        rows = rng.integers(40, size=40)
        scores.append(
            bleu.corpus_score([translations[i] for i in rows], [[references[i] for i in rows]]).score
        )
    assert tuple(score.interval) == pytest.approx(tuple(np.quantile(scores, [0.025, 0.975])))


def test_references_may_differ_in_number():
    translations, references = noisy(20, 2)
    several = [[r, "autre chose"] if i % 3 else [r] for i, r in enumerate(references)]
    streams = [references, [None if i % 3 == 0 else "autre chose" for i in range(20)]]
    score = score_translations(translations, several)
    assert score.bleu == BLEU().corpus_score(translations, streams).score
    score = score_translations(references, [["rien", r] for r in references])
    assert score.bleu == pytest.approx(100)


def test_translations_without_reference_raise(monkeypatch):
    for translations, references in (([], []), (["a"], [[]]), (["a", "b"], [["a"]])):
        with pytest.raises(ValueError, match="every translation needs a reference"):
            score_translations(translations, references)
    with pytest.raises(TypeError, match="a sequence of str for each translation, got one str"):
        score_translations(["le chat dort ici"], ["le chat dort ici"])
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(ValueError, match="sacrebleu"):
        score_translations(["a"], [["a"]])


SENTENCES = Pairs(
    ("It is a novel.", "a short book", "It is a novel.", "the cat reads"),
    ("C'est un roman.", "un livre bref", "C'est un livre.", "le chat lit"),
)


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train([*SENTENCES.sources, *SENTENCES.targets], vocab_size=60, model_type="bpe")


@pytest.fixture(scope="module")
def model(tokenizer):
    torch.manual_seed(1)
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, d_model=12, n_heads=3, n_layers=1, d_ff=20, max_len=24
    )
    return Translator(config).eval()


def test_pair_nats_are_the_mean_over_single_pairs(model, tokenizer):
    too_long = Pairs(("chat " * 40,), ("un",))
    both = Pairs(SENTENCES.sources + too_long.sources, SENTENCES.targets + too_long.targets)
    total = n = 0.0
    for source, target in zip(SENTENCES.sources, SENTENCES.targets, strict=True):
        src_ids = torch.tensor([[*tokenizer.encode(source), 3]])
        ids = [2, *tokenizer.encode_targets([target])[0], 3]
        log_probs = model(src_ids, torch.tensor([ids[:-1]])).log_softmax(-1)[0]
        total -= log_probs[range(len(ids) - 1), ids[1:]].sum().item()
        n += len(ids) - 1
    assert pair_nats(model, tokenizer, both) == pytest.approx(total / n, rel=1e-4)
    assert pair_nats(model, tokenizer, too_long) is None


@pytest.mark.parametrize(("n_ids", "fits"), [(22, True), (23, False)])
def test_all_marks_of_a_source_count_to_what_the_model_reads(model, tokenizer, monkeypatch, n_ids, fits):
    monkeypatch.setattr(Tokenizer, "source_frame", ((), (3, 4)))  # as of some published translators
    monkeypatch.setattr(Tokenizer, "encode_batch", lambda self, texts: [[9] * n_ids for _ in texts])
    nats = pair_nats(model, tokenizer, Pairs(("chat",), ("un",)))
    assert (nats is not None) == fits  # max_len is 24


def test_several_references_of_a_source_are_used_together(model, tokenizer):
    found = evaluate(model, PairCorpus("world", SENTENCES, SENTENCES), tokenizer=tokenizer)
    assert found.split == "valid" and found.score.n == 4 and found.all_references.n == 3
    assert found.translations[0] == found.translations[2]
    assert "nrefs:var" in found.all_references.signature
    assert found.grammar.n_errors > 0 and "grammar errors" in str(found)
    single = Pairs(SENTENCES.sources[:2], SENTENCES.targets[:2])
    found = evaluate_translator(model, tokenizer, PairCorpus("two", SENTENCES, single))
    assert found.all_references is None and found.grammar is None
    texts = Split(("a",))
    with pytest.raises(ValueError, match="the texts of x"):
        evaluate(model, Corpus("x", texts, texts), tokenizer=tokenizer)
    with pytest.raises(ValueError, match="got 'all'"):
        evaluate(model, PairCorpus("two", SENTENCES, single), tokenizer=tokenizer, split="all")


def test_sources_without_an_end_and_in_parts_are_counted(model, tokenizer, monkeypatch):
    rows = [
        Translated(source, "un", (9, 3), -1.0, finished=i != 0, n_parts=1 + (i > 0))
        for i, source in enumerate(SENTENCES.references())
    ]
    monkeypatch.setattr(bleu_module, "translate", lambda *texts, **how: rows)
    found = evaluate_translator(model, tokenizer, PairCorpus("two", SENTENCES, SENTENCES))
    assert (found.n_unfinished, found.n_cut) == (1, 2)


def test_one_sentence_says_nothing_about_others():
    score = score_translations(["le chat dort bien"], [["le chat dort bien"]])
    assert score.bleu == pytest.approx(100) and score.interval == (0, 100)
