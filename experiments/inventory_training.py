"""Items of the concept inventory on training, padding, transfer, decoding and leakage."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from experiments.inventory_items import Function, Question, Shown, item, mask, table, words
from experiments.inventory_machine import ADJECTIVES, NOUNS, call, sentence, tensor, whole
from tinytx.masking import mask_tokens
from tinytx_course.museum.patients import SMOKE_STEPS, Patient

PAD = "‹pad›"
IGNORED = -100


def shares(rng: random.Random, *shape: int) -> Tensor:
    """Probabilities, all multiples of 5 %, over the last axis."""
    rows = []
    for _ in range(math.prod(shape[:-1])):
        cuts = sorted(rng.sample(range(1, 20), shape[-1] - 1))
        rows.append([(b - a) / 20 for a, b in pairwise([0, *cuts, 20])])
    return torch.tensor(rows).reshape(shape)


# ---- loss and shift


@item("loss and shift", "shift_targets", "not-shifted", "exchanged", "shifted-by-two")
def next_words(rng: random.Random) -> Question:
    spoken = sentence(rng)[:5]

    def answer(function: Function) -> Shown:
        inputs, targets = (part[0].tolist() for part in call(function, torch.arange(5)[None]))
        if len(inputs) != len(targets):
            raise ValueError("each input must have a target")
        return Shown([[f"{spoken[i]} → {spoken[t]}"] for i, t in zip(inputs[:3], targets[:3], strict=True)])

    prompt = (
        f"A language model is trained on “{' '.join(spoken)}”. Which are the first three pairs of an input "
        "and its target?"
    )
    return Question(prompt, answer)


@item("loss and shift", "perplexity", "base-2", "exp-forgotten", "one-token-too-many")
def perplexity(rng: random.Random) -> Question:
    n = rng.randint(3, 6)
    total = n * rng.randint(1, 3) + rng.randint(1, n - 1)
    prompt = f"The losses of {n} tokens add up to {total} nats. What is the perplexity?"
    return Question(prompt, lambda function: table(call(function, float(total), n)))


# ---- padding


@item("padding", "language_model_loss", "padding-counted", "divided-by-all", "mean-of-means")
def padded_loss(rng: random.Random) -> Question:
    probs = torch.tensor([[rng.randint(1, 19) / 20 for _ in range(3)] for _ in range(2)])
    targets = torch.tensor([[1, 1, 1], [1, 0, 0]])  # id 0 is padding

    def answer(function: Function) -> Shown:
        return table(call(function, torch.stack([1 - probs, probs], dim=-1).log(), targets, 0))

    read = probs.clone()
    read[1, 1:] = 1 - probs[1, 1:]
    prompt = (
        "Two texts, the second padded. The table has the probability that the model gives to each target. "
        "What is the mean loss a token, in nats?"
    )
    cells = [[f"{p:.2f}" for p in row] for row in read.tolist()]
    cells[1][1:] = [f"{PAD} {p}" for p in cells[1][1:]]
    return Question(prompt, answer, (Shown(cells, rows=["text 1", "text 2"]),))


@item("padding", "padding_mask", "reversed", "pad-id-0-assumed", "reversed+pad-id-0-assumed")
def padding_mask(rng: random.Random) -> Question:
    pad = rng.randint(1, 5)
    n_real = rng.randint(3, 5)
    ids = [0, *rng.sample(range(6, 30), n_real - 1)]
    rng.shuffle(ids)
    token_ids = torch.tensor([[*ids, *[pad] * (6 - n_real)]])
    prompt = f"The padding id of this batch is {pad}. Which positions may be attended to (filled)?"
    given = table(token_ids, digits=0, rows=["token ids"])
    return Question(prompt, lambda function: mask(call(function, token_ids, pad)), (given,))


# ---- transfer


@item("transfer", "mean_pool", "padding-counted", "not-divided", "maximum")
def mean_pool(rng: random.Random) -> Question:
    hidden = whole(rng, 1, 9, 1, 5, 2)
    real = torch.tensor([[True, True, True, False, False]])
    prompt = "A classifier reads the mean of the hidden states. What does it read of this padded text?"
    given = table(hidden[0], digits=0, rows=["token 1", "token 2", "token 3", PAD, PAD])
    return Question(prompt, lambda function: table(tensor(function, hidden, real)[0]), (given,))


@item("transfer", "last_token", "last-place", "first-token", "one-too-early")
def last_token(rng: random.Random) -> Question:
    hidden = whole(rng, 1, 9, 1, 5, 3)
    real = torch.tensor([[True, True, True, False, False]])
    prompt = (
        "A classifier on a causal model reads one hidden state of this padded text. Which one should it be?"
    )
    given = table(hidden[0], digits=0, rows=["token 1", "token 2", "token 3", PAD, PAD])
    return Question(prompt, lambda function: table(tensor(function, hidden, real)[0], digits=0), (given,))


class _Model(nn.Module):
    def __init__(self, layers: Sequence[str], frozen: Sequence[str]) -> None:
        super().__init__()
        self.body = nn.ModuleDict({name: nn.Linear(1, 1, bias=False) for name in layers})
        self.head = nn.Linear(1, 2, bias=False)
        for name, parameter in self.named_parameters():
            parameter.requires_grad_(not any(part in name for part in frozen))


@item("transfer", "freeze", "reversed", "head-not-thawed", "everything-trained")
def frozen_parts(rng: random.Random) -> Question:
    layers = rng.sample(("embedding", "attention", "feed_forward", "final_norm"), 3)
    before = [rng.choice(layers), "head"]
    parts = [*layers, "head"]

    def answer(function: Function) -> Shown:
        model = _Model(layers, before)
        function(model)
        trained = [name for name, p in model.named_parameters() if p.requires_grad]
        cells = ["trained" if any(part in name for name in trained) else "frozen" for part in parts]
        return Shown([[cell] for cell in cells], rows=parts)

    prompt = (
        f"A pretrained body consists of {', '.join(layers)}; a head is new. Somebody has frozen "
        f"{before[0]} and the head. What must be trained and what frozen for a probe?"
    )
    return Question(prompt, answer)


@item("transfer", "gain_interval", "not-paired", "spread-of-folds", "without-theirs")
def paired_gain(rng: random.Random) -> Question:
    theirs = [rng.randint(60, 75) for _ in range(4)]
    ours = [number + rng.randint(1, 8) for number in theirs]
    prompt = (
        "Accuracy in percent, with pretraining and without, for four seeds. Which is the 95 % interval of "
        "the gain from low to high (t = 3.18)?"
    )
    names, seeds = ["pretrained", "from scratch"], [f"seed {n}" for n in range(4)]
    given = table([ours, theirs], digits=0, rows=names, columns=seeds)

    def answer(function: Function) -> Shown:
        numbers = ([float(n) for n in row] for row in (ours, theirs))
        return table([float(end) for end in call(function, *numbers, 3.18)], digits=1)

    return Question(prompt, answer, (given,))


# ---- masked against causal


@item("masked against causal", "masked_loss", "all-positions", "divided-by-all", "shifted")
def masked_loss(rng: random.Random) -> Question:
    spoken = sentence(rng)[:4]
    places = sorted(rng.sample(range(4), 2))
    probs = shares(rng, 1, 4, 4)
    labels = torch.tensor([[t if t in places else IGNORED for t in range(4)]])
    blanked = [f"[{word}]" if t in places else word for t, word in enumerate(spoken)]
    prompt = (
        f"In “{' '.join(blanked)}” the two words in brackets were masked. A row has the probabilities at "
        "one position. What is the loss of the masked language model, in nats?"
    )
    given = table(probs[0], rows=[f"position {t + 1}" for t in range(4)], columns=spoken)
    return Question(prompt, lambda function: table(call(function, probs.log(), labels)), (given,))


def real_masking(
    ids: Tensor, mask_id: int, special_ids: list[int], vocab_size: int, p: float, rng: Any
) -> Any:
    """The masking that trains the models of the course; the exercise has no single right answer."""
    rule: dict[str, Any] = {"mask_id": mask_id, "special_ids": special_ids, "vocab_size": vocab_size, "p": p}
    return mask_tokens(ids, **rule, generator=rng)


@item("masked against causal", "mask_tokens", "labels-everywhere", "labels-are-new-ids", "kept-without-label")
def masked_labels(rng: random.Random) -> Question:
    spoken, seed = sentence(rng)[:5], rng.randrange(10**6)
    names = ["[mask]", *spoken, *(word for word in (*NOUNS, *ADJECTIVES) if word not in spoken)]
    ids = torch.arange(1, 6)[None]

    def masked(function: Function) -> tuple[list[int], list[int]]:
        rng = torch.Generator().manual_seed(seed)
        inputs, labels = function(ids.clone(), 0, [0], len(names), 0.75, rng)
        return inputs[0].tolist(), labels[0].tolist()

    read, labels = masked(real_masking)
    unchanged = [t for t in range(5) if labels[t] == read[t]]
    random_ids = [t for t in range(5) if labels[t] != IGNORED and read[t] not in (0, t + 1)]

    def answer(function: Function) -> Shown:
        inputs, given = masked(function)
        if inputs != read or (len(unchanged), len(random_ids)) != (1, 1) or IGNORED not in labels:
            raise ValueError("other words were drawn")
        return words([names[label] if label != IGNORED else "–" for label in given])

    read_words = " ".join(names[i] for i in read)
    prompt = (
        f"BERT's masking has drawn some words of “{' '.join(spoken)}”, among them one that it left as it "
        f"was: “{names[read[unchanged[0]]] if unchanged else ''}”. The model reads “{read_words}”. "
        "Which labels is it trained on (– is no label)?"
    )
    return Question(prompt, answer)


# ---- decoding


class Step:
    """The next word depends on the word before it alone: a table of log-probabilities."""

    def __init__(self, probs: Tensor) -> None:
        self.probs = probs

    def __call__(self, prefix: Any) -> Tensor:
        return self.probs[int(torch.as_tensor(prefix).reshape(-1)[-1])].log()


def _chain(rng: random.Random) -> tuple[Step, Shown]:
    names = ["‹begin›", "‹end›", "a", "b", "c"]
    probs = torch.zeros(5, 5)
    for row in (0, 2, 3, 4):
        columns = [column for column in range(1, 5) if (row, column) != (0, 1)]
        probs[row, columns] = shares(rng, 1, len(columns))[0]
    probs[1, 1:] = 0.25  # nothing follows the end
    given = table(
        probs[[0, 2, 3, 4]][:, 1:], rows=[f"after {names[i]}" for i in (0, 2, 3, 4)], columns=names[1:]
    )
    return Step(probs), given


def _spoken(ids: Any) -> Shown:
    names = ["‹begin›", "‹end›", "a", "b", "c"]
    return words([names[int(i)] for i in torch.as_tensor(ids).reshape(-1)])


@item("decoding", "greedy_decode", "prefix-not-extended", "second-best", "max-len-new-tokens")
def greedy(rng: random.Random) -> Question:
    step, given = _chain(rng)
    prompt = (
        "The table has the probability of the next word after each word. What does greedy decoding write, "
        "with at most five words in all?"
    )
    return Question(prompt, lambda function: _spoken(function(step, 0, 1, 5)), (given,))


@item("decoding", "beam_search", "one-beam", "only-last-step", "finished-forgotten")
def two_beams(rng: random.Random) -> Question:
    step, given = _chain(rng)
    prompt = (
        "The table has the probability of the next word after each word. What does beam search write, with "
        "two beams, four words in all and no length penalty?"
    )
    return Question(prompt, lambda function: _spoken(function(step, 0, 1, 2, 4, 0.0)), (given,))


@item("decoding", "next_token_probs", "not-renormalised", "crossing-dropped",
      "not-renormalised+crossing-dropped")  # fmt: skip
def nucleus(rng: random.Random) -> Question:
    probs, top_p = shares(rng, 1, 4)[0], rng.choice((0.5, 0.6, 0.7, 0.8))
    prompt = (
        f"The next token is to be drawn with top-p {top_p} from these probabilities. "
        "From which is it really drawn?"
    )
    given = table(probs, columns=list("abcd"))

    def answer(function: Function) -> Shown:
        return table(call(function, probs.log(), 1.0, None, top_p), columns=list("abcd"))

    return Question(prompt, answer, (given,))


# ---- leakage

#: Outputs that depend on inputs ahead, on those before, on their own alone, and on all of them.
RULES = {
    "the input that follows": lambda x: x.roll(-1, 0),
    "the last input": lambda x: x[-1:].expand_as(x),
    "the input before": lambda x: x.roll(1, 0) * (torch.arange(len(x)) > 0)[:, None],
    "the sum of the inputs up to here": lambda x: x.cumsum(0),
    "its own input, doubled": lambda x: 2 * x,
    "its own input, negated": lambda x: -x,
    "its own input minus the mean of all": lambda x: x - x.mean(0),
    "the largest of all inputs": lambda x: x.amax(0, keepdim=True).expand_as(x),
}


@item("leakage", "leaks_future", "own-output-counted", "past-instead-of-future", "every-movement-counted")
def leaking_layers(rng: random.Random) -> Question:
    names = list(RULES)
    chosen = [names[2 * kind + rng.randrange(2)] for kind in range(4)]
    rng.shuffle(chosen)
    x = torch.tensor([[4.0], [1.0], [3.0], [2.0]])

    def answer(function: Function) -> Shown:
        found = [bool(call(function, RULES[name], x)) for name in chosen]
        return Shown([["leaks" if leaks else "causal"] for leaks in found], rows=list("PQRS"))

    outputs = "; ".join(f"{letter}: {name}" for letter, name in zip("PQRS", chosen, strict=True))
    prompt = (
        f"Four layers return at each position: {outputs}. Which of them show a language model its future?"
    )
    return Question(prompt, answer)


@item("leakage", "repeated_texts", "case-only", "order-lost", "word-for-word")
def leaked_texts(rng: random.Random) -> Question:
    one, two, three = sentence(rng), sentence(rng), sentence(rng)
    swapped = [*three[3:], *three[:3]]
    test = [" ".join(one), " ".join(two).upper(), " ".join(three).capitalize() + " !", " ".join(swapped)]
    rng.shuffle(test)
    train = [" ".join(one), " ".join(two), " ".join(three)]

    def answer(function: Function) -> Shown:
        found = set(call(function, train, test))
        return Shown([["leaked" if n in found else "new"] for n in range(4)], rows=list("PQRS"))

    given = (
        Shown([[text] for text in train], caption="trained on"),
        Shown([[text] for text in test], rows=list("PQRS"), caption="tested on"),
    )
    prompt = (
        "Texts count as the same if they have the same words in the same order. Which test texts are leaked?"
    )
    return Question(prompt, answer, given)


@cache
def trained(seed: int, fault: str | None, smoke: bool = False) -> Shown:
    """The held-out curve of a language model of lesson 18, and the bound of its texts."""
    patient = Patient(fault, task="language model", seed=seed, n_steps=SMOKE_STEPS if smoke else None)
    return Shown(patient.history.held_out, kind="curve", bound=round(patient.bound, 3))


def museum_question(rng: random.Random, what: str) -> Question:
    """Which curve belongs to a language model with one line wrong?"""
    seed = rng.randrange(1_000)
    prompt = (
        f"A small language model is trained for 220 steps, but {what}. Which is its loss on held-out text? "
        "The dashed line is the entropy of the language, the lowest loss to be expected."
    )
    return Question(prompt, lambda function: function(seed))


@item(
    "leakage", "museum:mask_transposed", "museum:healthy", "museum:gradient_cut", "museum:targets_not_shifted"
)
def curve_of_a_leak(rng: random.Random) -> Question:
    return museum_question(rng, "each word attends to itself and to all that follows")


@item("loss and shift", "museum:gradient_cut", "museum:healthy", "museum:weight_decay_on_everything",
      "museum:norm_on_wrong_axis")  # fmt: skip
def curve_without_gradient(rng: random.Random) -> Question:
    return museum_question(rng, "no gradient reaches the layers below the output layer")
