"""Greedy generation and beam search, against `generate` of `transformers` with the same weights.

Both generate the same tokens; no sequence ends early. Tried without success, on two cores with bfloat16
instructions: weights in bfloat16. For one row the conversion costs what reading half the bytes saves
("products of few rows" in the results).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.ceiling import Ceiling
from benchmarks.report import OURS, Record, compare
from benchmarks.settings import BenchSettings
from tinytx.hf.convert import FAMILIES, GPT2, to_transformers
from tinytx.model.config import TransformerConfig
from tinytx.model.counting import count_parameters
from tinytx.model.encoder_decoder import Translator
from tinytx.model.kv_cache import few_rows
from tinytx.model.transformer import LanguageModel
from tinytx.training.beam import CachedSteps, Search, beam_search
from tinytx.training.generate import continue_rows
from tinytx_course.labs.timing import Times, Turns, take_turns

THEIRS = "transformers' generate"
ANEW = "tinytx, every prefix read anew"
WARM_UP = 4  # tokens
COMPARED = 48  # tokens that both must have in common
SAMPLED = 4  # lengths at which generation without cache is timed where all of them would take minutes
BOS = 2


@dataclass(frozen=True)
class _Sizes:
    """Lengths of prompts and sources, and how many tokens follow them."""

    vocab_sizes: tuple[int, ...] = (8_000, 1_000)
    batch_sizes: tuple[int, ...] = (1, 32)
    prompt: int = 16
    new: int = 256
    n_sources: tuple[int, ...] = (1, 16)
    source: int = 20
    n_beams: int = 4
    translated: int = 64
    d_model: int = 256
    n_layers: int = 6

    def of_model(self, vocab_size: int) -> dict[str, Any]:
        """Sizes of a model that holds all of it."""
        return {
            "vocab_size": vocab_size,
            "d_model": self.d_model,
            "n_heads": 4,
            "n_layers": self.n_layers,
            "d_ff": 4 * self.d_model,
            "max_len": max(self.prompt + self.new, self.source + 1, self.translated + 1),
        }


TINY = _Sizes((50,), (1, 3), 3, 5, (2,), 4, 2, 5, 16, 2)


def measure(settings: BenchSettings, ceiling: Ceiling) -> Iterator[tuple[str, Record]]:
    """Time greedy generation and beam search, and the products of few rows that take most of a step."""
    sizes = TINY if settings.tiny else _Sizes()
    yield "products of few rows", _products(sizes, settings)
    for vocab_size in sizes.vocab_sizes:
        torch.manual_seed(0)
        model = LanguageModel(TransformerConfig(**sizes.of_model(vocab_size), **GPT2))
        model.to(settings.device).eval()
        for batch_size in sizes.batch_sizes:
            key = f"greedy, {sizes.new} tokens, vocabulary {vocab_size:,}, batch {batch_size}"
            yield key, _greedy(model, sizes, batch_size, settings)
    torch.manual_seed(0)
    translator = Translator(TransformerConfig(**sizes.of_model(sizes.vocab_sizes[0]), **_marian()))
    translator.to(settings.device).eval()
    for n_sources in sizes.n_sources:
        key = f"{sizes.n_beams} beams, {sizes.translated} tokens, {n_sources} sources"
        yield key, _beams(translator, sizes, n_sources, settings)


def _greedy(model: LanguageModel, sizes: _Sizes, batch_size: int, settings: BenchSettings) -> Record:
    prompts = torch.randint(model.config.vocab_size, (batch_size, sizes.prompt))
    tasks: dict[str, Callable[[int], Any]] = {
        OURS: lambda n: _continued(model, prompts, n),
    }
    theirs, left_out = _theirs(model)
    if theirs is not None:
        tasks[THEIRS] = lambda n: _generated(theirs, prompts.to(settings.device), n)
    sampled = batch_size > 1
    if not sampled:
        tasks[ANEW] = lambda n: _continued(model, prompts, n, cached=False)
    for task in tasks.values():
        task(WARM_UP)
    timed: dict[str, Callable[[], Any]] = {name: partial(task, sizes.new) for name, task in tasks.items()}
    if sampled:
        timed[ANEW] = partial(_read_anew, model, prompts, sizes)
    turns = _in_turn(timed, settings)
    if sampled:
        turns = _scaled(turns, ANEW, sizes.new / SAMPLED)
    record = compare(
        turns,
        details={name: _rate(turns, name, batch_size * sizes.new, model) for name in timed},
        groups={
            "equal precision": [THEIRS] if theirs is not None else [],
            "no cache": [ANEW],
        },
    )
    record["contestants"][ANEW]["lengths_timed"] = SAMPLED if sampled else sizes.new
    if theirs is not None:
        n = min(sizes.new, COMPARED)
        ours_ids, their_ids = tasks[OURS](n), tasks[THEIRS](n)[:, sizes.prompt :].cpu()
        record["same_ids"] = (torch.tensor(ours_ids) == their_ids).double().mean().item()
    return {**record, "left_out": left_out}


def _continued(model: LanguageModel, prompts: Tensor, n: int, **how: Any) -> list[list[int]]:
    return continue_rows(model, prompts.tolist(), eos_id=-1, max_new_tokens=n, top_k=1, **how)


@torch.inference_mode()
def _read_anew(model: LanguageModel, prompts: Tensor, sizes: _Sizes) -> None:
    """Run the model on whole sequences of a few lengths, evenly spread from the first to the last."""
    for i in range(SAMPLED):
        length = sizes.prompt + int((i + 0.5) * sizes.new / SAMPLED)
        ids = torch.randint(model.config.vocab_size, (len(prompts), length), device=model.head.weight.device)
        model.head(model.body(ids)[:, -1]).argmax(dim=-1)


def _beams(model: Translator, sizes: _Sizes, n_sources: int, settings: BenchSettings) -> Record:
    shape = (n_sources, sizes.source)
    src_ids = torch.randint(BOS + 1, model.config.vocab_size, shape, device=settings.device)
    tasks: dict[str, Callable[[int], Any]] = {
        OURS: lambda n: _searched(model, src_ids, sizes.n_beams, n),
    }
    theirs, left_out = _theirs(model, decoder_start_token_id=BOS, pad_token_id=0)
    if theirs is not None:
        tasks[THEIRS] = lambda n: _generated(theirs, src_ids, n, num_beams=sizes.n_beams)
    for task in tasks.values():
        task(WARM_UP)
    turns = _in_turn({name: partial(task, sizes.translated) for name, task in tasks.items()}, settings)
    record = compare(
        turns,
        details={name: _rate(turns, name, n_sources * sizes.translated, model) for name in tasks},
        groups={"equal precision": [THEIRS] if theirs is not None else []},
    )
    if theirs is not None:
        their_ids = tasks[THEIRS](sizes.translated)[:, 1:].cpu()
        record["same_ids"] = (tasks[OURS](sizes.translated) == their_ids).double().mean().item()
    return {**record, "left_out": left_out}


@torch.inference_mode()
def _searched(model: Translator, src_ids: Tensor, n_beams: int, n: int) -> Tensor:
    steps = CachedSteps(model, src_ids, torch.ones_like(src_ids, dtype=torch.bool), n_beams, n)
    most, search = [n] * len(src_ids), Search(beam_size=n_beams)
    found = beam_search(steps, most, bos_id=BOS, eos_id=-1, search=search, forbidden_ids=(0,))
    return torch.tensor([one.token_ids for one in found])


def _theirs(model: LanguageModel | Translator, **settings: Any) -> tuple[Any, dict[str, str]]:
    """The same model in `transformers`, or the reason why it is missing."""
    try:
        theirs: Any = to_transformers(model, **settings)
    except ImportError as missing:
        return None, {THEIRS: str(missing)}
    return theirs.to(next(model.parameters()).device), {}


@torch.inference_mode()
def _generated(theirs: Any, ids: Tensor, n: int, **how: Any) -> Tensor:
    """Ids by their own `generate`, without an end."""
    return theirs.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=n,
        eos_token_id=None,
        pad_token_id=0,
        use_cache=True,
        **how,
    )


def _marian() -> dict[str, Any]:
    """Settings with which a `Translator` is a Marian."""
    return {
        "scale_embeddings": True,
        "activation": "silu",
        **FAMILIES["marian"].settings,
    }


def _in_turn(tasks: dict[str, Callable[[], Any]], settings: BenchSettings) -> Turns:
    how: dict[str, Any] = {"device": settings.device, "label": "generation", "progress": settings.progress}
    return take_turns(tasks, n_rounds=settings.n_rounds, n_warmup=0, **how)


def _scaled(turns: Turns, name: str, factor: float) -> Turns:
    """The same, with the times of one candidate multiplied."""
    return replace(
        turns,
        **{
            clock: {**times, name: Times(tuple(each * factor for each in times[name].seconds))}
            for clock, times in (("wall", turns.wall), ("processor", turns.processor))
        },
    )


def _rate(turns: Turns, name: str, n_tokens: int, model: nn.Module) -> Record:
    return {
        "precision": "fp32",
        "n_params": count_parameters(model),
        "tokens_per_second": n_tokens / turns.wall[name].median,
    }


def _products(sizes: _Sizes, settings: BenchSettings) -> Record:
    """Products of one layer and of the head with few rows: as in torch, packed, and in bfloat16."""
    d = sizes.d_model
    shapes = [(d, 3 * d), (d, d), (d, 4 * d), (4 * d, d), (d, sizes.vocab_sizes[0])]
    maps = [nn.Linear(n_in, n_out, device=settings.device) for n_in, n_out in shapes]
    tasks: dict[str, Callable[[], Any]] = {}
    for n_rows in sizes.batch_sizes:
        rows = [torch.randn(n_rows, n_in, device=settings.device) for n_in, _ in shapes]
        laid_out = [few_rows([each], n_rows) for each in maps]
        ways: dict[str, Sequence[Callable[[Tensor], Tensor]]] = {
            "torch.nn.Linear": maps,
            "laid out": laid_out,
            "bfloat16": [_in_half(each) for each in maps],
        }
        for name, products in ways.items():
            tasks[f"{name}, {n_rows} rows"] = partial(_multiply, products, rows)
    turns = take_turns(
        tasks, n_rounds=10 * settings.n_rounds, n_calls=3, device=settings.device, progress=settings.progress
    )
    return {
        "kind": "products of few rows",
        "shapes": shapes,
        "times": {name: turns.times_of(name) for name in tasks},
        "ratios": {  # how many times as fast as torch.nn.Linear
            f"{way}, {n} rows": turns.ratio(f"torch.nn.Linear, {n} rows", f"{way}, {n} rows").to_dict()
            for way in ("laid out", "bfloat16")
            for n in sizes.batch_sizes
        },
    }


def _in_half(full: nn.Linear) -> Callable[[Tensor], Tensor]:
    half = copy.deepcopy(full).to(torch.bfloat16)
    return lambda x: half(x.to(torch.bfloat16)).float()


@torch.inference_mode()
def _multiply(products: Sequence[Callable[[Tensor], Tensor]], rows: Sequence[Tensor]) -> None:
    for product, x in zip(products, rows, strict=True):
        product(x)
