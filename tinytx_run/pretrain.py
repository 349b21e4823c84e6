"""Training with new weights, and a new tokenizer: a language model on texts, or a translator on pairs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

from tinytx.beam import Search
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.objectives import CausalObjective, FreshObjective, HybridObjective, MaskedObjective
from tinytx.settings import require
from tinytx.tokenizer import SPECIAL_PIECES, Tokenizer, plain, several
from tinytx.transformer import LanguageModel
from tinytx.translate import GREEDY
from tinytx_run.bleu import TranslationEvaluation, evaluate_translator, translation_objective
from tinytx_run.corpora import Corpus, at_hand, load_corpus
from tinytx_run.evaluate import Evaluation, evaluate_split
from tinytx_run.pairs import PairCorpus, load_pairs
from tinytx_run.recipes import Recipe, corpus_kind, pair_kind, plan
from tinytx_run.splits import TextHashes
from tinytx_run.training import DEFAULTS, Changes, PathLike, Run, RunOptions, TrainingResult, seeded

TOKENIZERS: dict[str, dict[str, Any]] = {
    "world": {"model_type": "bpe", "split_by_script": False},
    "pairs": {"model_type": "bpe"},
}


def pretrain(
    corpus: PathLike | Corpus,
    *,
    objective: str = "causal",
    vocab_size: int | None = None,
    budget: str | float | None = None,
    seed: int = 0,
    out: PathLike | None = None,
    model_changes: Changes = None,
    training_changes: Changes = None,
    masking_changes: Changes = None,
    options: RunOptions = DEFAULTS,
) -> TrainingResult:
    """Train a language model and a tokenizer on the training split of a corpus; evaluate on valid.

    Parameters
    ----------
    corpus : str, path or Corpus
        A name, a file, whose labels are not read, or a corpus at hand.
    objective : {"causal", "masked", "masked+nsp", "hybrid"}
        Predict the next token; predict masked tokens, as BERT; that, and whether one sentence follows
        another; the first two in turn, in one causal model.
    vocab_size : int, optional
        Exactly so many tokens; by default the budget's, or fewer where the text cannot fill them.
    budget : str or float, optional
        Name or seconds; by default that of the environment, see `default_budget`.
    seed : int
        Of first weights, data order, masks and dropout.
    out : path, optional
        Run folder for checkpoints; None writes nothing.
    model_changes, training_changes, masking_changes : mapping, optional
        Fields of `TransformerConfig`, `TrainingSettings` and `Masking` that replace those of the recipe.
    options : RunOptions
        Resuming, device, folder of the data, and what is reported.

    Returns
    -------
    TrainingResult

    Examples
    --------
    >>> from tinytx_run.corpora import Corpus, Split
    >>> texts = Split(("le chat dort", "un chien mange"))
    >>> run = pretrain(Corpus("two", texts, texts), budget="smoke", training_changes={"n_steps": 60})
    1 layers of width 32, ...; 60 steps of ...
    >>> run.history.loss[-1] < run.history.loss[0] / 2
    True
    """
    if objective == "translation":
        raise ValueError("objective must be one of texts, got 'translation': train_translator learns pairs")
    if objective in ("causal", "hybrid") and (model_changes or {}).get("causal") is False:
        raise ValueError(f"causal must be True for the objective {objective}, got False")
    run = Run(out, budget, seed, model_changes, training_changes, options)
    data = at_hand(corpus, Corpus, functools.partial(load_corpus, labels=False), options.data_dir)
    kind, masking, exact = corpus_kind(data), dict(masking_changes or {}), vocab_size is not None
    recipe, tokenizer = run.plan(
        objective,
        data,
        _masked(plan(kind, objective, run.budget, seed=seed), objective, masking),
        lambda size: train_tokenizer(data.train.texts, size, exact=exact, kind=kind),
        vocab_size=vocab_size,
        masking=masking,
    )
    model, learning = new_model(recipe, seed).to(run.device), corpus_objective(recipe, tokenizer, data)
    recipe = run.schedule(recipe, model, learning)

    def evaluate() -> Evaluation:
        return evaluate_split(model, tokenizer, data, "valid")

    learned = (TextHashes.of(data.train.texts),)
    return run.train(model, tokenizer, learning, recipe, evaluate, label="pretraining", learned=learned)


def _masked(recipe: Recipe, objective: str, changes: dict[str, Any]) -> Recipe:
    if not changes:
        return recipe
    if recipe.masking is None:
        raise ValueError(f"only a masked model has masking, got {', '.join(changes)} for another one")
    masking = dataclasses.replace(recipe.masking, **changes)
    fits = (masking.causal_share > 0) == (objective == "hybrid")
    rule = "causal_share must be above 0 for the objective hybrid, and 0 for others"
    require(fits, rule, f"{masking.causal_share} for {objective}")
    return recipe.replace(masking=masking)


def train_translator(
    pairs: PathLike | PairCorpus,
    *,
    search: Search | None = GREEDY,
    vocab_size: int | None = None,
    budget: str | float | None = None,
    seed: int = 0,
    out: PathLike | None = None,
    model_changes: Changes = None,
    training_changes: Changes = None,
    options: RunOptions = DEFAULTS,
) -> TrainingResult:
    """Train a translator on the training split of a corpus of sentence pairs.

    Parameters
    ----------
    pairs : str, path or PairCorpus
        A name, a file, or pairs at hand.
    search : Search, optional
        How the valid split is translated at the end; None leaves that out.
    vocab_size, budget, seed, out, model_changes, training_changes, options
        As in `pretrain`; the tokens are those of both languages together.

    Examples
    --------
    >>> from tinytx_run.pairs import PairCorpus, Pairs
    >>> pairs = Pairs(("the cat sleeps", "a dog eats"), ("le chat dort", "un chien mange"))
    >>> corpus = PairCorpus("two", pairs, pairs)
    >>> run = train_translator(corpus, search=None, budget="smoke", training_changes={"n_steps": 60})
    1 layers of width 32, ...; 60 steps of ...
    >>> run.history.loss[-1] < run.history.loss[0] / 2
    True
    """
    run = Run(out, budget, seed, model_changes, training_changes, options)
    data = at_hand(pairs, PairCorpus, load_pairs, options.data_dir)
    texts, exact = (*data.train.sources, *data.train.targets), vocab_size is not None
    recipe, tokenizer = run.plan(
        "translation",
        data,
        plan(pair_kind(data.name), "translation", run.budget, seed=seed),
        lambda size: train_tokenizer([plain(text) for text in texts], size, exact=exact, kind="pairs"),
        vocab_size=vocab_size,
    )
    smoothing = recipe.label_smoothing or 0.0
    learning = translation_objective(tokenizer, data.train, recipe.config.max_len, smoothing)
    model = seeded(lambda: Translator(recipe.config), seed).to(run.device)
    recipe, found = run.schedule(recipe, model, learning), {"n_left_out": learning.n_left_out}

    def evaluate() -> TranslationEvaluation | None:
        if search is None:
            return None
        return evaluate_translator(model, tokenizer, data, split="valid", search=search)

    how: dict[str, Any] = {"label": "translation", "data": found}
    how["learned"] = (TextHashes.of(data.train.sources),)
    return run.train(model, tokenizer, learning, recipe, evaluate, **how)


def corpus_objective(recipe: Recipe, tokenizer: Tokenizer, corpus: Corpus) -> Any:
    """What is learned from a training split; of a generated language, new texts in each further pass."""
    train, draw = corpus.train.texts, corpus.draw

    def of_pass(epoch: int) -> CausalObjective | MaskedObjective:
        return objective_for(recipe, tokenizer, draw(epoch) if epoch and draw else train)

    return FreshObjective(of_pass) if draw else of_pass(0)


def objective_for(
    recipe: Recipe, tokenizer: Tokenizer, texts: Sequence[str]
) -> CausalObjective | MaskedObjective:
    """What the language model of a recipe learns from some texts."""
    if recipe.masking is None:
        return causal_objective(tokenizer, texts, recipe.config.max_len)
    maker = HybridObjective if recipe.masking.causal_share else MaskedObjective
    return maker(tokenizer, texts, max_len=recipe.config.max_len, masking=recipe.masking)


def causal_objective(tokenizer: Tokenizer, texts: Sequence[str], max_len: int) -> CausalObjective:
    """Next-token prediction over all of some texts."""
    ids = {"bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id, "pad_id": tokenizer.pad_id}
    return CausalObjective(tokenizer.encode_batch(texts), max_len=max_len, **ids)


def new_model(recipe: Recipe, seed: int) -> LanguageModel | MaskedLanguageModel:
    """The language model of a recipe, causal or masked, whose first weights are drawn from ``seed``."""
    masking = recipe.masking
    if masking is None or masking.causal_share:
        return new_language_model(recipe.config, seed)
    heads = {"transform": masking.transform, "next_sentence": masking.next_sentence}
    return seeded(lambda: MaskedLanguageModel(recipe.config, **heads), seed)


def new_language_model(config: TransformerConfig, seed: int) -> LanguageModel:
    """A language model whose first weights are drawn from ``seed``."""
    return seeded(lambda: LanguageModel(config), seed)


def train_tokenizer(
    texts: Sequence[str], vocab_size: int, *, exact: bool = True, kind: str = "text"
) -> Tokenizer:
    """Learn a subword vocabulary from texts.

    Parameters
    ----------
    texts : sequence of str
    vocab_size : int
    exact : bool
        False: texts with more characters than that get more tokens, those too poor to fill them fewer.
    kind : str
        Of the corpus, see `corpus_kind`, or "pairs". The few words of the world are merged into tokens that
        are mostly whole words ("l'" among them), so its texts are short.
    """
    how: dict[str, Any] = TOKENIZERS.get(kind, {})
    if exact:
        return Tokenizer.train(texts, vocab_size=vocab_size, **how)
    texts = several(texts)
    n_characters = len(set().union(*texts) | {" "})
    smallest = len(SPECIAL_PIECES) + n_characters
    size = max(vocab_size, smallest + n_characters // 2)
    while size > smallest:
        try:
            return Tokenizer.train(texts, vocab_size=size, **how)
        except ValueError:
            size = smallest + (size - smallest) * 2 // 3
    return Tokenizer.train(texts, vocab_size=smallest, **how)
