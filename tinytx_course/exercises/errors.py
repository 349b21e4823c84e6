"""What errors of torch and Python mean in an answer, in words for a learner."""

import re

#: What the message of an error holds, and what it means.
_MEANT = (
    (
        r"(batch2|must match the size of tensor b).*\.T\b",
        "`.T` turns all axes round: `.mT` swaps the last two.",
    ),
    (
        "shapes cannot be multiplied|first two dimensions of batch2|inconsistent tensor size",
        "In a product `a @ b` the last axis of `a` and the last but one of `b` are summed over and must be "
        "equally long: print both shapes; often one of the two is to be transposed.",
    ),
    (
        "Boolean value of Tensor with more than one value",
        "`if`, `and`, `not`, `max` and `min` of Python decide on a single value. For each number of a tensor "
        "there are `torch.where`, `&`, `~`, `torch.maximum` and `clamp`.",
    ),
    (
        "view size is not compatible",
        "After a transpose the numbers lie in another order, and `view` cannot regroup them: `reshape` can.",
    ),
    (
        "must match the size of tensor b",
        "Shapes are compared from the right; two axes must be equally long, or one of length 1. `[:, None]` "
        "adds one to (B,), and `keepdim=True` keeps the one that a mean or sum removes.",
    ),
    (
        r"shape '.*' is invalid for input of size",
        "A new shape must hold as many numbers as the old one: multiply its axes to see how many it holds.",
    ),
    ("Dimension out of range|has no dimensions", "The tensor has fewer axes than that: print its shape."),
    ("with a bool tensor is not supported", "`~` turns a boolean mask round."),
    (
        r"operand .*'(ReLU|GELU|SiLU|Sigmoid|Tanh|Softmax)'|Softmax.* multiple values",
        "A layer is made first and called then, `nn.ReLU()(h)`; `torch.relu(h)` does it at once.",
    ),
    (
        "same dtype|can't be cast to|expected scalar type",
        "Two kinds of numbers meet, such as int64 and float32: convert one, for example with `.float()`.",
    ),
    (
        "multiply sequence by non-int",
        "A list is no tensor: `torch.tensor(...)` makes one of it, or a loop goes through its numbers.",
    ),
    (
        r"TypeError.*(\bint.*\bfloat\b|\bfloat\b.*\bint|__index__)",
        "`/` gives a float, even where nothing is left over: `//` gives an int.",
    ),
    ("requires grad. Use|leaf Variable that requires grad", "Gradients are recorded here: `detach` first."),
    ("on the same device", "One tensor is on another device: make new ones with `device=x.device`."),
    (
        "(index|Target) -100 is out of bounds",
        "-100 is no id: it marks the positions that are left out, so choose those where `labels != -100`.",
    ),
    (r"index -\d+ is out of bounds", "A negative index counts from the end: the axis is shorter than that."),
    ("list index out of range", "This index is beyond the end of its list, which may be empty."),
    (
        "Expected target size|to match target batch_size",
        "`cross_entropy` wants the classes on axis 1: flatten both first.",
    ),
    ("out of bounds|index out of range", "An index is as large as the axis or larger: indices count from 0."),
)


def meaning(message: str) -> str:
    """What the message of an error means; empty where nothing is known."""
    return next((meant for pattern, meant in _MEANT if re.search(pattern, message)), "")
