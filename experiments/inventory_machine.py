"""Items of the concept inventory on the parts of a transformer, and on counting them."""

from __future__ import annotations

import random
from typing import Any

import torch

from experiments.inventory_items import Function, Question, Shown, item, mask, table, words
from tinytx_course.exercises.calling import copied

ADJECTIVES = ("red", "small", "old", "tired", "happy", "quiet")
NOUNS = ("cat", "bird", "child", "king", "horse", "girl")
VERBS = ("saw", "found", "heard", "met", "sold", "drew")


def sentence(rng: random.Random) -> list[str]:
    """Six words, all different."""
    subject, thing = rng.sample(NOUNS, 2)
    return ["the", rng.choice(ADJECTIVES), subject, rng.choice(VERBS), "a", thing]


def whole(rng: random.Random, low: int, high: int, *shape: int) -> torch.Tensor:
    """Random whole numbers from low to high, in float32."""
    n = int(torch.Size(shape).numel())
    return torch.tensor([float(rng.randint(low, high)) for _ in range(n)]).reshape(shape)


def call(function: Function, *arguments: object) -> Any:
    """What an implementation returns; it gets copies and cannot change the inputs."""
    return function(*copied(arguments))


def tensor(function: Function, *arguments: object) -> torch.Tensor:
    """The same as a Tensor."""
    return torch.as_tensor(call(function, *arguments))


# ---- masks


@item("masks", "causal_mask", "transposed", "diagonal-blocked", "reversed")
def causal_row(rng: random.Random) -> Question:
    spoken, t = sentence(rng), rng.choice((2, 3))

    def answer(function: Function) -> Shown:
        row = mask(call(function, 6)).cells[t]
        return words([word for word, allowed in zip(spoken, row, strict=True) if allowed])

    prompt = (
        f"A causal language model reads “{' '.join(spoken)}”, one token a word. "
        f"To which words may the position of “{spoken[t]}” attend?"
    )
    return Question(prompt, answer)


@item("masks", "cross_attention_mask", "target-padding-too", "causal-too", "causal-too+target-padding-too")
def cross_mask(rng: random.Random) -> Question:
    pad, n_src, n_tgt = 0, rng.choice((3, 4)), rng.choice((2, 3))
    src = torch.tensor([[*rng.sample(range(2, 9), n_src), *[pad] * (5 - n_src)]])
    tgt = torch.tensor([[*rng.sample(range(2, 9), n_tgt), *[pad] * (4 - n_tgt)]])
    source, target = (["‹pad›" if i == pad else f"{s}{n}" for n, i in enumerate(row.tolist()[0], 1)]
                      for s, row in (("s", src), ("t", tgt)))  # fmt: skip

    def answer(function: Function) -> Shown:
        return mask(call(function, src, tgt, pad)[0], rows=target, columns=source)

    prompt = (
        f"A translator reads the source {' '.join(source)} and writes the target {' '.join(target)}. "
        "Which mask does its cross-attention use? A row is a target position, a column a source position; "
        "a filled cell may be attended to. "
        "What is computed at padded target positions is ignored later."
    )
    return Question(prompt, answer)


# ---- attention and its scale


@item("attention", "attention_row", "without-exp", "argmax", "power-of-two")
def weights(rng: random.Random) -> Question:
    query, keys = whole(rng, 0, 2, 4), whole(rng, 0, 2, 3, 4)
    if (keys @ query).min() < 1 or len(set((keys @ query).tolist())) < 3:
        return Question("", refuse)
    prompt = (
        "Scaled dot-product attention, keys of width 4: which weights does this query give to the three keys?"
    )
    given = table([query.tolist(), *keys.tolist()], digits=0, rows=["query", "key 1", "key 2", "key 3"])
    return Question(prompt, lambda function: table(call(function, query, keys)), (given,))


def refuse(function: Function) -> Shown:
    """No answer: these inputs make no question."""
    raise ValueError("no question")


@item("attention", "attention", "softmax-over-queries", "argmax", "no-softmax")
def outputs(rng: random.Random) -> Question:
    q, k, v = whole(rng, 0, 2, 2, 1), whole(rng, 0, 2, 2, 1), whole(rng, 1, 9, 2, 1)
    allowed = torch.ones(2, 2, dtype=torch.bool)
    prompt = (
        "Attention of two queries over two keys, all of width 1, without a mask. "
        "What is the output of the first query?"
    )
    numbers = torch.cat([q, k, v], dim=1).T
    given = table(numbers, digits=0, rows=["q", "k", "v"], columns=["position 1", "position 2"])
    return Question(prompt, lambda function: table(tensor(function, q, k, v, allowed)[0, 0]), (given,))


@item("scaling", "attention_row", "not-scaled", "scale-without-root", "scale-multiplied")
def root_of_width(rng: random.Random) -> Question:
    query, keys = whole(rng, 0, 1, 4), whole(rng, 0, 2, 2, 4)
    if abs(float((keys[0] - keys[1]) @ query)) != 2 or (keys @ query).min() < 1:
        return Question("", refuse)
    prompt = "Attention as in the transformer, width 4: which weights does this query give to the two keys?"
    given = table([query.tolist(), *keys.tolist()], digits=0, rows=["query", "key 1", "key 2"])
    return Question(prompt, lambda function: table(call(function, query, keys)), (given,))


@item("scaling", "attention_row", "scale-by-keys", "not-scaled", "scale-after-softmax")
def which_root(rng: random.Random) -> Question:
    query, keys = whole(rng, 0, 2, 4), whole(rng, 0, 2, 3, 4)
    if len(set((keys @ query).tolist())) < 3:
        return Question("", refuse)
    prompt = "Attention as in the transformer: which weights does a query of width 4 give to its three keys?"
    given = table([query.tolist(), *keys.tolist()], digits=0, rows=["query", "key 1", "key 2", "key 3"])
    return Question(prompt, lambda function: table(call(function, query, keys)), (given,))


# ---- positions


@item("positions", "sinusoidal_positions", "halves", "sine-and-cosine-exchanged",
      "halves+sine-and-cosine-exchanged")  # fmt: skip
def sinusoids(rng: random.Random) -> Question:
    t = rng.randint(1, 5)
    prompt = (
        "Sinusoidal positions of width 4, with the base 10,000 as in the paper: which vector is added at "
        f"position {t}, where the first position is 0?"
    )
    return Question(prompt, lambda function: table(tensor(function, 6, 4)[t]))


@item("positions", "alibi_bias", "sign-forgotten", "slopes-from-zero", "sign-forgotten+slopes-from-zero")
def linear_biases(rng: random.Random) -> Question:
    t, h = rng.randint(2, 4), rng.randint(0, 2)
    prompt = (
        f"ALiBi with four heads: what is added to the scores of query {t} with keys 0 to {t}, in head {h}? "
        "Heads are counted from 0."
    )
    return Question(prompt, lambda function: table(tensor(function, 4, 5)[h, t, : t + 1], digits=3))


@item("positions", "rotate", "positions-ignored", "only-cosines", "sinusoids-added")
def turned_pair(rng: random.Random) -> Question:
    x, places = whole(rng, 1, 4, 2).expand(2, 2), torch.tensor(rng.sample(range(1, 7), 2))
    a, b = (int(number) for number in x[0])
    prompt = (
        f"Rotary positions, width 2, one radian a position: query and key are both ({a}, {b}), the query at "
        f"position {places[0]}, the key at position {places[1]}. What is their dot product, rotated?"
    )

    def answer(function: Function) -> Shown:
        query, key = tensor(function, x, places)
        return table(query @ key)

    return Question(prompt, answer)


# ---- heads


@item("heads", "split_heads", "view-without-transpose", "interleaved", "heads-reversed")
def one_head(rng: random.Random) -> Question:
    tokens = sentence(rng)[1:4]
    x = torch.tensor(rng.sample(range(10, 40), 12)).reshape(1, 3, 4).float()
    prompt = "Four features a token are split over two heads. What does the first head read?"
    given = table(x[0], digits=0, rows=tokens)
    return Question(prompt, lambda function: table(tensor(function, x, 2)[0, 0], digits=0), (given,))


@item("heads", "merge_heads", "reshape-without-transpose", "interleaved", "heads-reversed")
def merged_heads(rng: random.Random) -> Question:
    context = torch.tensor(rng.sample(range(10, 40), 8)).reshape(1, 2, 2, 2).float()
    prompt = "Two heads return two features for each of two tokens. What do their results become, merged?"
    given = tuple(
        table(context[0, h], digits=0, rows=["token 1", "token 2"], caption=f"head {h + 1}") for h in range(2)
    )
    return Question(prompt, lambda function: table(tensor(function, context)[0], digits=0), given)


# ---- norm and residual


@item("norm and residual", "layer_norm", "over-tokens", "not-centred", "no-root")
def layer_norm(rng: random.Random) -> Question:
    x = torch.tensor([[[float(n) for n in rng.sample(range(1, 10), 3)] for _ in range(2)]])
    gamma, beta = torch.ones(3), torch.zeros(3)
    prompt = "Layer norm, before its learned scale and shift: what does this table become?"
    given = table(x[0], digits=0, rows=["token 1", "token 2"])

    def answer(function: Function) -> Shown:
        return table(tensor(function, x, gamma, beta, 1e-12)[0], digits=1)

    return Question(prompt, answer, (given,))


@item(
    "norm and residual", "block", "always-post-norm", "residual-missing", "always-post-norm+residual-missing"
)
def pre_norm(rng: random.Random) -> Question:
    x = float(rng.randint(3, 8))
    times, plus, minus = rng.randint(2, 4), rng.randint(2, 5), rng.randint(1, 2)
    prompt = (
        f"A toy block reads the number {x:.0f}. Its attention multiplies by {times}, its feed-forward part "
        f"adds {plus}, and in place of a norm {minus} is subtracted. It is a pre-norm block. "
        "What does it return?"
    )

    def answer(function: Function) -> Shown:
        def norm(number: torch.Tensor) -> torch.Tensor:
            return number - minus

        parts = (lambda y: y * times, lambda y: y + plus, norm, norm, True)
        return table(tensor(function, torch.tensor([[[x]]]), *parts).reshape(1), digits=0)

    return Question(prompt, answer)


# ---- counting


@item("counting", "count_language_model", "embedding-tied", "output-projection-forgotten",
      "feed-forward-width-4d")  # fmt: skip
def language_model_size(rng: random.Random) -> Question:
    sizes = (10 * rng.randint(5, 9), 10, rng.randint(2, 4), 10 * rng.randint(2, 3))
    names = ("tokens in the vocabulary", "width", "layers", "width of the feed-forward part")
    prompt = (
        "How many parameters does this language model have? Biases everywhere, sinusoidal positions, two "
        "norms a layer, no final norm, and an output layer of its own, not tied to the embedding."
    )
    given = table([[n] for n in sizes], digits=0, rows=names)
    return Question(prompt, lambda function: table(call(function, *sizes), digits=0), (given,))


@item("counting", "count_gpt2", "positions-forgotten", "output-layer-not-tied",
      "positions-forgotten+output-layer-not-tied")  # fmt: skip
def gpt2_size(rng: random.Random) -> Question:
    sizes = (100 * rng.randint(2, 5), 10 * rng.randint(3, 9), 20, 2, rng.randint(2, 4))
    names = ("tokens in the vocabulary", "longest text", "width", "heads", "layers")
    prompt = (
        "How many parameters does a GPT-2 of these sizes have? Its feed-forward part is four times as wide; "
        "biases and norms are as in GPT-2."
    )
    given = table([[n] for n in sizes], digits=0, rows=names)
    return Question(prompt, lambda function: table(call(function, *sizes), digits=0), (given,))
