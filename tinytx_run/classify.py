"""Name the class of texts: batches of similar length, long texts cut, results in the order of the texts.

Shape letters: N texts, B rows of a batch, T tokens, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn

from tinytx.classifier import Classifier
from tinytx.generate import check_vocabulary
from tinytx.inference import evaluate_rows
from tinytx.tokenizer import Tokenizer, several, warn_of_unknown
from tinytx_run.letters import canonical_label, is_blank


@dataclass(frozen=True)
class Classification:
    """A text and the class that a model gives it; ``str()`` gives the class and its probability."""

    text: str
    predicted: str | int | None  # the name of the class, or its index where it has none; None of a blank text
    probabilities: dict[str | int, float]  # of each class, in their order; none of a blank text

    def __str__(self) -> str:
        if self.predicted is None:
            return ""
        return f"{self.predicted}\t{self.probabilities[self.predicted]:.4f}"


def classify(
    model: Classifier,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    class_names: Sequence[str] | None = None,
    *,
    report: Callable[[str], None] = print,
    first_line: int = 1,
) -> list[Classification]:
    """Name the class of texts; each result is that of the text alone.

    Parameters
    ----------
    model : Classifier
    tokenizer : Tokenizer
        The one that the model was trained with.
    texts : sequence of N str
        A text longer than the model reads loses its end, as in fine-tuning, and is reported.
    class_names : sequence of C str, optional
        In the order of the classes, as a `Checkpoint` has them; by default classes are numbered from 0.
    report : callable
        Gets one line for each text that was cut.
    first_line : int
        Number of the first text in these lines.

    Returns
    -------
    list of N Classification
        In the order of the texts; without a class for a blank text.

    Examples
    --------
    A head whose weights are zero adds its bias alone: odds of 3 to 1 for every text.

    >>> import math, torch, tinytx as tx
    >>> tokenizer = tx.Tokenizer.train(["un beau livre", "un livre raté"], vocab_size=20)
    >>> model = tx.Classifier(tx.PRESETS["tiny"].replace(vocab_size=20), n_classes=2)
    >>> _ = model.head.weight.data.zero_()
    >>> _ = model.head.bias.data.copy_(torch.tensor([0.0, math.log(3)]))
    >>> print(*classify(model, tokenizer, ["un beau livre"], ["no", "yes"]))
    yes     0.7500
    """
    model, texts = require_classifier(model), several(texts)
    names: Sequence[str | int] = range(model.head.out_features)
    if class_names is not None:
        names = check_names(class_names, model)
    found = {i: Classification(text, None, {}) for i, text in enumerate(texts)}
    read = [i for i, text in enumerate(texts) if not is_blank(text)]
    if not read:
        return list(found.values())
    warn_of_unknown(tokenizer, [texts[i] for i in read], "the texts to classify")
    logits, cut = class_logits(model, tokenizer, [texts[i] for i in read])
    for i in cut:
        report(
            f"line {first_line + read[i]}: the text exceeds the {model.config.max_len} tokens that the model "
            "reads, and loses its end"
        )
    for i, row in zip(read, logits.double().softmax(dim=-1), strict=True):
        probabilities = dict(zip(names, row.tolist(), strict=True))
        found[i] = Classification(texts[i], names[int(row.argmax())], probabilities)
    return list(found.values())


def check_names(names: Iterable[str], model: nn.Module) -> tuple[str, ...]:
    """Names of the classes of a model; ValueError unless there is one for each class."""
    if not isinstance(model, Classifier):
        raise ValueError(f"class_names must be of a classifier, got a {type(model).__name__}")
    names, n_classes = tuple(several(names, "class_names")), model.head.out_features
    if not len({canonical_label(name) for name in names}) == len(names) == n_classes:
        raise ValueError(f"class_names must be {n_classes} different words, one for each class, got {names}")
    return names


def require_classifier(model: nn.Module) -> Classifier:
    """The model, if it is a classifier; ValueError says how to get one."""
    if not isinstance(model, Classifier):
        raise ValueError(
            f"classifying needs a classifier, got a {type(model).__name__}: make one of it by fine-tuning on "
            "labelled texts first (tinytx finetune, or tx.finetune)"
        )
    return model


def classifier_inputs(
    tokenizer: Tokenizer, texts: Sequence[str], max_len: int, *, causal: bool = True
) -> tuple[list[list[int]], list[int]]:
    """Ids of texts as a classifier reads them, and the indices of the texts that were cut.

    A row looks as in pretraining: it begins with ``bos`` for a causal model, and is framed by ``cls`` and
    ``sep`` for one that is not. A text that is too long loses its end.
    """
    begin, end = ([tokenizer.bos_id], []) if causal else ([tokenizer.cls_id], [tokenizer.sep_id])
    room = max_len - len(begin) - len(end)
    texts_ids = tokenizer.encode_batch(texts)
    rows = [[*begin, *ids[:room], *end] for ids in texts_ids]
    return rows, [i for i, ids in enumerate(texts_ids) if len(ids) > room]


def class_probabilities(model: Classifier, tokenizer: Tokenizer, texts: Sequence[str]) -> np.ndarray:
    """``P(class | text)`` of each text, cut as in `classifier_inputs`: shape (N, C), float64."""
    return class_logits(model, tokenizer, texts)[0].double().softmax(dim=-1).numpy()


def class_logits(model: Classifier, tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Tensor, list[int]]:
    """Scores (N, C) of some texts, and the indices of those that were cut."""
    check_vocabulary(model, tokenizer)
    pad_id = tokenizer.pad_id
    rows, cut = classifier_inputs(tokenizer, texts, model.config.max_len, causal=model.config.causal)
    return evaluate_rows(model, rows, lambda ids, _: model(ids, ids != pad_id), pad_id=pad_id), cut
