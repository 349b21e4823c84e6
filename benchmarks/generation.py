"""Reading a prompt, greedy generation and beam search, against `generate` of `transformers`, same weights.

Both generate the same tokens; no sequence ends early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.report import EQUAL, OURS, Record, compare
from benchmarks.settings import BenchSettings
from tinytx.beam import Search, TranslatorSteps, beam_search
from tinytx.config import TransformerConfig
from tinytx.counting import count_parameters
from tinytx.encoder_decoder import Translator
from tinytx.fast import laid_out
from tinytx.generate import Sampling, continue_rows
from tinytx.transformer import LanguageModel
from tinytx_course.labs.timing import Spent, spend, take_turns
from tinytx_run.hf.convert import to_transformers
from tinytx_run.hf.families import FAMILIES, GPT2

THEIRS = "transformers' generate"
ANEW = "tinytx, every prefix read anew"
PRODUCTS = "tinytx, products of its matrices alone"  # the limit: no token is generated without them
GROUPS = {THEIRS: EQUAL, ANEW: "no cache", PRODUCTS: "limit"}
WARM_UP = 4  # tokens
COMPARED = 48  # tokens that both must have in common
SAMPLED = 4  # lengths at which generation without cache is timed where all of them would take minutes
BOS = 2
Task = Callable[[int], Any]  # generates so many tokens a row


@dataclass(frozen=True)
class _Sizes:
    """Lengths of prompts and sources, and how many tokens follow them."""

    vocab_sizes: tuple[int, ...] = (8_000, 1_000)
    batch_sizes: tuple[int, ...] = (1, 32)
    prompt: int = 16
    new: int = 256
    long_prompt: int = 512
    n_sources: tuple[int, ...] = (1, 16)
    source: int = 20
    n_beams: int = 4
    translated: int = 64
    d_model: int = 256
    n_layers: int = 6

    def of_model(self, vocab_size: int) -> dict[str, Any]:
        """Sizes of a model that holds all of it."""
        lengths = (self.prompt + self.new, self.long_prompt + WARM_UP, self.source + 1, self.translated + 1)
        widths = {"d_model": self.d_model, "n_heads": 4, "d_ff": 4 * self.d_model}
        return {**widths, "vocab_size": vocab_size, "n_layers": self.n_layers, "max_len": max(lengths)}


TINY = _Sizes((50,), (1, 3), 3, 5, 7, (2,), 4, 2, 5, 16, 2)


def measure(settings: BenchSettings) -> Iterator[tuple[str, Record]]:
    """Time greedy generation, long prompts and beam search."""
    sizes, device = TINY if settings.tiny else _Sizes(), settings.device
    for vocab_size in sizes.vocab_sizes:
        torch.manual_seed(0)
        model = LanguageModel(TransformerConfig(**sizes.of_model(vocab_size), **GPT2)).to(device).eval()
        for batch_size in sizes.batch_sizes:
            key = f"greedy, {sizes.new} tokens, vocabulary {vocab_size:,}, batch {batch_size}"
            yield key, _greedy(model, sizes, batch_size, settings)
            if vocab_size == sizes.vocab_sizes[0]:
                key = f"prompt of {sizes.long_prompt} tokens, vocabulary {vocab_size:,}, batch {batch_size}"
                yield key, _prompt(model, sizes, batch_size, settings)
    torch.manual_seed(0)
    marian = {"scale_embeddings": True, "activation": "silu", **FAMILIES["marian"].settings}
    translator = Translator(TransformerConfig(**sizes.of_model(sizes.vocab_sizes[0]), **marian))
    translator.to(device).eval()
    for n_sources in sizes.n_sources:
        key = f"{sizes.n_beams} beams, {sizes.translated} tokens, {n_sources} sources"
        yield key, _beams(translator, sizes, n_sources, settings)


def _greedy(model: LanguageModel, sizes: _Sizes, batch_size: int, settings: BenchSettings) -> Record:
    prompts = torch.randint(model.config.vocab_size, (batch_size, sizes.prompt))
    ours = partial(_continued, model, prompts)
    anew = partial(_read_anew, model, prompts) if batch_size > 1 else partial(ours, cached=False)
    others = {PRODUCTS: partial(_products_alone, model, batch_size), ANEW: anew}
    return _compared(model, ours, prompts, sizes.new, settings, others)


def _prompt(model: LanguageModel, sizes: _Sizes, batch_size: int, settings: BenchSettings) -> Record:
    """Time until the first token after a long prompt: all of it is read at once."""
    prompts = torch.randint(model.config.vocab_size, (batch_size, sizes.long_prompt))
    return _compared(model, partial(_continued, model, prompts), prompts, 1, settings)


def _beams(model: Translator, sizes: _Sizes, n_sources: int, settings: BenchSettings) -> Record:
    shape = n_sources, sizes.source
    src_ids = torch.randint(BOS + 1, model.config.vocab_size, shape, device=settings.device)
    ours = partial(_searched, model, src_ids, sizes.n_beams)
    return _compared(model, ours, src_ids, sizes.translated, settings, num_beams=sizes.n_beams)


def _compared(
    model: LanguageModel | Translator,
    ours: Task,
    ids: Tensor,
    n: int,
    settings: BenchSettings,
    others: Mapping[str, Task] | None = None,
    **how: Any,
) -> Record:
    """Time n tokens a row of each candidate in turn, and compare.

    Candidates are our task, `generate` of the same model in `transformers`, and others.
    """
    tasks: dict[str, Task] = {OURS: ours}
    special = {"decoder_start_token_id": BOS, "pad_token_id": 0} if isinstance(model, Translator) else {}
    left_out = {}
    try:
        theirs: Any = to_transformers(model, **special)
        tasks[THEIRS] = partial(_generated, theirs.to(settings.device), ids.to(settings.device), how)
    except ImportError as missing:
        left_out[THEIRS] = str(missing)
    tasks |= others or {}
    for task in tasks.values():
        task(WARM_UP)
    timed = {name: partial(task, n) for name, task in tasks.items()}
    turns = take_turns(
        timed, n_rounds=settings.n_rounds, n_warmup=0, device=settings.device, label="generation"
    )
    about = {"precision": "fp32", "n_params": count_parameters(model)}
    details = {name: about if name == OURS else {**about, "group": GROUPS[name]} for name in tasks}
    record = compare(turns, details)
    if THEIRS in tasks:
        ours_ids, their_ids = (tasks[name](min(n, COMPARED)).cpu() for name in (OURS, THEIRS))
        record["same_ids"] = (ours_ids == their_ids).double().mean().item()
    return {**record, "left_out": left_out}


def _continued(model: LanguageModel, prompts: Tensor, n: int, **how: Any) -> Tensor:
    rows = continue_rows(model, prompts.tolist(), Sampling(max_new_tokens=n, top_k=1), eos_id=-1, **how)
    return torch.tensor(rows)


@torch.inference_mode()
def _products_alone(model: LanguageModel, n_rows: int, n: int) -> Spent:
    """The time of the products with all matrices of a model, n times."""
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    rows = [torch.randn(n_rows, each.in_features, device=model.head.weight.device) for each in layers]

    def multiply() -> None:
        for _ in range(n):
            for layer, x in zip(layers, rows, strict=True):
                layer(x)

    return spend(multiply, 1, model.head.weight.is_cuda)


def _read_anew(model: LanguageModel, prompts: Tensor, n: int) -> Spent:
    """The time of n tokens without cache, from whole sequences of a few lengths, evenly spread."""
    weight = model.head.weight
    n_rows, first = prompts.shape

    @torch.inference_mode()
    def read() -> None:
        for i in range(SAMPLED):
            shape = n_rows, first + int((i + 0.5) * n / SAMPLED)
            ids = torch.randint(model.config.vocab_size, shape, device=weight.device)
            model.head(model.body(ids)[:, -1]).argmax(dim=-1)

    spent = spend(read, 1, weight.is_cuda)
    return Spent(spent.wall * n / SAMPLED, spent.processor * n / SAMPLED)


@torch.inference_mode()
def _searched(model: Translator, src_ids: Tensor, n_beams: int, n: int) -> Tensor:
    steps = TranslatorSteps(model, src_ids, torch.ones_like(src_ids, dtype=torch.bool), n_beams, n)
    most, search = [n] * len(src_ids), Search(beam_size=n_beams)
    with laid_out(model, n_beams * len(src_ids)):  # as in `translate_ids`, which would end at the end mark
        found = beam_search(steps, most, bos_id=BOS, eos_id=-1, search=search, forbidden_ids=(0,))
    return torch.tensor([one.token_ids for one in found])


@torch.inference_mode()
def _generated(theirs: Any, ids: Tensor, how: Mapping[str, Any], n: int) -> Tensor:
    """The new ids by their own `generate`, without an end."""
    fixed = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0, "use_cache": True}
    rows = theirs.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=n, **fixed, **how)
    return rows[:, -n:]
