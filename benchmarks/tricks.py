"""Tricks that others report from races: ``tinytx+NAME`` is today's racer with one, ``tinytx+A+B`` with two.

They are compared at equal steps, paired by seed, as by ``python -m benchmarks race --racer tinytx+bigrams
--steps 600``. Each keeps the learning rates of that racer. What a trick adds to a model starts where it
changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from benchmarks.trained import StreamObjective, Trained
from tinytx.config import TransformerConfig
from tinytx.transformer import LanguageModel


def _before(x: Tensor) -> Tensor:
    """One token back, (B, T, ...): zeros come before the first one."""
    return torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], dim=1)


def _attentions(model: LanguageModel) -> list[Any]:
    return [block.attn for block in model.body.blocks]


def bigrams(model: LanguageModel) -> None:
    """Each pair of neighbouring characters has an embedding, which is added to that of the second one."""
    vocab_size, width = model.config.vocab_size, model.config.d_model
    pairs = model.body.pair_embed = nn.Embedding(vocab_size**2, width)
    nn.init.zeros_(pairs.weight)

    def added(module: nn.Module, inputs: tuple[Tensor], embedded: Tensor) -> Tensor:
        return embedded + pairs(_before(inputs[0]) * vocab_size + inputs[0])

    model.body.token_embed.register_forward_hook(added)


def smear(model: LanguageModel) -> None:
    """A share of the embedding before, learned for each of its numbers, is added to each embedding."""
    share = model.body.smear = nn.Parameter(torch.zeros(model.config.d_model))
    model.body.token_embed.register_forward_hook(lambda module, inputs, x: x + share * _before(x))


class SquaredReLU(nn.Module):
    """``max(0, x)²`` (So et al., "Primer", arXiv 2109.08668, section 4.2)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of each number."""
        return x.relu().square()


def squared_relu(model: LanguageModel) -> None:
    """Squared ReLU takes the place of ReLU."""
    blocks: list[Any] = list(model.body.blocks)
    for block in blocks:
        block.ff.activation = SquaredReLU()


def gates(model: LanguageModel) -> None:
    """What a head has read is multiplied by a gate, from 0 to 2, that its token computes."""
    n_heads, width = model.config.n_heads, model.config.d_model
    for attn in _attentions(model):
        gate = attn.gate = nn.Linear(width, n_heads, bias=False)
        nn.init.zeros_(gate.weight)
        opened: list[Tensor] = []
        attn.register_forward_pre_hook(partial(_open, gate, opened))
        attn.out_proj.register_forward_pre_hook(partial(_gated, opened))


def _open(gate: nn.Module, opened: list[Tensor], module: nn.Module, inputs: tuple[Tensor]) -> None:
    opened[:] = [2 * gate(inputs[0]).sigmoid()]  # (B, T, H)


def _gated(opened: list[Tensor], module: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
    heads = inputs[0].unflatten(-1, (opened[0].shape[-1], -1))  # (B, T, H, K)
    return ((heads * opened[0][..., None]).flatten(-2),)


def first_values(model: LanguageModel) -> None:
    """Values are mixed with those of the first layer; each layer learns its share, which starts at zero."""
    values: list[Tensor] = []
    first, *others = _attentions(model)
    first.v_proj.register_forward_hook(partial(_kept, values))
    for attn in others:
        share = attn.first_share = nn.Parameter(torch.zeros(()))
        attn.v_proj.register_forward_hook(partial(_mixed, share, values))


def _kept(values: list[Tensor], module: nn.Module, inputs: tuple[Tensor], v: Tensor) -> None:
    values[:] = [v]


def _mixed(
    share: Tensor, values: list[Tensor], module: nn.Module, inputs: tuple[Tensor], v: Tensor
) -> Tensor:
    return torch.lerp(v, values[0], share.to(v.dtype))


class Averaged(Trained):
    """Judged with the mean of the weights of its last tenth of steps."""

    def make(self, ids: Tensor, n_characters: int, seed: int) -> None:
        """Draw the weights and prepare the optimizer; there is no mean yet."""
        super().make(ids, n_characters, seed)
        self._mean = AveragedModel(self._model)

    def step(self, share: float) -> None:
        """One batch, and its weights into the mean."""
        super().step(share)
        if share >= 0.9:
            self._mean.update_parameters(self._model)

    def score(self, ids: Tensor) -> Tensor:
        """Logits of the mean."""
        self._model = self._mean.module
        return super().score(ids)


class Growing(Trained):
    """Windows of half the length in the first half, and as many characters a batch."""

    def make(self, ids: Tensor, n_characters: int, seed: int) -> None:
        """Draw the weights and prepare the optimizer and both kinds of batches."""
        super().make(ids, n_characters, seed)
        self._whole = self._step.objective, self._batches
        half = StreamObjective(ids, self.seq_len // 2)
        most = self.settings.tokens_per_batch
        batches = (half.epoch_batches(seed=seed, epoch=epoch, tokens_per_batch=most) for epoch in count())
        self._take(half, (batch for epoch in batches for batch in epoch))

    def _take(self, objective: Any, batches: Any) -> None:
        self._step.loss, self._batches = partial(objective.loss, self._model), batches

    def step(self, share: float) -> None:
        """One batch."""
        if share >= 0.5:
            self._take(*self._whole)
        super().step(share)


class ScheduledDecay(Trained):
    """Weight decay falls to zero in a straight line; the mean over all steps stays what it was."""

    def step(self, share: float) -> None:
        """One batch, with the decay of this moment."""
        for group in self._step.optimizer.param_groups:
            group["weight_decay"] = (
                2 * (1 - share) * self.settings.weight_decay if group["weight_decay"] else 0.0
            )
        super().step(share)


class CautiousDecay(Trained):
    """A number decays only where its update makes it smaller, too."""

    def step(self, share: float) -> None:
        """One batch, and the decay after it."""
        groups = self._step.optimizer.param_groups
        decayed = [group["params"] for group in groups if group.setdefault("cautious", group["weight_decay"])]
        weights = [weight for group in decayed for weight in group]
        before = [weight.detach().clone() for weight in weights]
        for group in groups:
            group["weight_decay"] = 0.0
        super().step(share)
        factor = groups[0]["lr"] * self.settings.weight_decay
        with torch.no_grad():
            for weight, old in zip(weights, before, strict=True):
                weight -= factor * old * (old * (weight - old) < 0)


#: By the name of a trick: the change of the model, or how it is trained and judged.
CHANGES: dict[str, Callable[[LanguageModel], None]] = {
    "bigrams": bigrams,
    "smear": smear,
    "squared-relu": squared_relu,
    "gates": gates,
    "first-values": first_values,
}
TRAININGS: dict[str, type[Trained]] = {
    "averaged": Averaged,
    "growing": Growing,
    "scheduled-decay": ScheduledDecay,
    "cautious-decay": CautiousDecay,
}


def tricky(racer: Trained, name: str) -> Trained:
    """The racer with one trick more; of those that train otherwise it may have one.

    Raises
    ------
    ValueError
        If there is no such trick, or the racer trains otherwise already.
    """
    named = replace(racer, name=f"{racer.name} + {name}")
    if name in CHANGES:

        def make(config: TransformerConfig) -> nn.Module:
            model: Any = racer.model_class(config)
            CHANGES[name](model)
            return model

        return replace(named, model_class=make)
    if name not in TRAININGS:
        raise ValueError(f"a trick must be one of {', '.join([*CHANGES, *TRAININGS])}, got {name!r}")
    if type(racer) is not Trained:
        raise ValueError(f"one trick at most may train otherwise, got {name!r} and {type(racer).__name__}")
    return TRAININGS[name](**vars(named))
