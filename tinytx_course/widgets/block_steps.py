"""What one block does to shapes: each step with its code, its axes and what it learns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One line of a block.

    Attributes
    ----------
    name, code : str
        What it is called, and how it is written.
    axes : str
        The letters of the result's shape, such as "BHTK".
    n_params : int
        How many numbers it learns.
    formula : str
        The same in letters, empty where nothing is learned.
    say : str
        What happens, in a sentence or two.
    of : str
        What is drawn: "x", "q", "k", "v" and so on, one letter for each tensor.
    copies : int
        How many tensors of this shape there are.
    in_heads : bool
        True where the numbers of a row belong to heads.
    """

    name: str
    code: str
    axes: str
    n_params: int = 0
    formula: str = ""
    say: str = ""
    of: str = "x"
    copies: int = 1
    in_heads: bool = False


def block_steps(d_model: int, d_ff: int) -> list[Step]:
    """Return the steps of a block with its norms first, as `tinytx.model.Block` takes them.

    Parameters
    ----------
    d_model, d_ff : int
        D and F. The number of heads changes no count, and so is not asked for.

    Examples
    --------
    >>> sum(step.n_params for step in block_steps(64, 128))
    33472
    """
    square, norm = d_model * d_model + d_model, 2 * d_model
    up, down = d_model * d_ff + d_ff, d_ff * d_model + d_model
    return [
        Step("input", "x", "BTD", say="One vector of D numbers for each token."),
        Step(
            "norm", "h = attn_norm(x)", "BTD", norm, "2·D", of="h",
            say="Each token’s vector is brought to one size, on its own.",
        ),
        Step(
            "projections", "q, k, v = q_proj(h), k_proj(h), v_proj(h)", "BTD", 3 * square, "3·(D·D + D)",
            of="qkv", copies=3, in_heads=True,
            say="Three maps from D numbers to D. Each number of q is made of all the numbers of its token.",
        ),
        Step(
            "cut into heads", "q = q.unflatten(-1, (H, K))", "BTHK", of="q", copies=3, in_heads=True,
            say="A row of D is read as H lots of K. Nothing is computed, no number moves; k and v alike.",
        ),
        Step(
            "heads forward", "q = q.transpose(1, 2)", "BHTK", of="q", copies=3, in_heads=True,
            say="Axes T and H change places: each head now has its own table of T rows; k and v alike.",
        ),
        Step(
            "scores", "scores = q @ k.transpose(-2, -1) / K**0.5", "BHTS", of="s", in_heads=True,
            say="In each head every query t meets every key s. The length enters twice.",
        ),
        Step(
            "weights", "weights = scores.softmax(-1)", "BHTS", of="w", in_heads=True,
            say="Each row becomes shares that sum to 1.",
        ),
        Step(
            "context", "context = weights @ v", "BHTK", of="c", in_heads=True,
            say="Each row of weights takes a mean of its head’s values: S is summed away, K comes back.",
        ),
        Step(
            "heads back", "context = context.transpose(1, 2)", "BTHK", of="c", in_heads=True,
            say="Axes H and T change places again.",
        ),
        Step(
            "join heads", "context = context.flatten(2)", "BTD", of="c", in_heads=True,
            say="H lots of K are read as one row of D: every entry stands in the column it came from.",
        ),
        Step(
            "out projection", "a = out_proj(context)", "BTD", square, "D·D + D", of="a",
            say="Here the heads meet: each number is made of all heads of its token.",
        ),
        Step("add", "x = x + a", "BTD", say="Added to what came in: the shapes must be the same."),
        Step(
            "norm", "h = ff_norm(x)", "BTD", norm, "2·D", of="h",
            say="As before attention, with numbers of its own.",
        ),
        Step(
            "feed-forward up", "u = act(up_proj(h))", "BTF", up, "D·F + F", of="u",
            say="Each token by itself: from D numbers to F.",
        ),
        Step(
            "feed-forward down", "f = down_proj(u)", "BTD", down, "F·D + D", of="f",
            say="And back from F to D.",
        ),
        Step("add", "x = x + f", "BTD", say="The same shape that came in: the next block can follow."),
    ]  # fmt: skip
