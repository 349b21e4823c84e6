"""The faults: each is one line of `program.py`, healthy and broken; a patient has one of them.

>>> print(FAULTS["mask_transposed"].diff())
- mask = mask & tx.causal_mask(seq_len)  # (B, 1, T, T)
+ mask = mask & tx.causal_mask(seq_len).T  # (B, 1, T, T)
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType

PROGRAM = Path(__file__).with_name("program.py")


@dataclass(frozen=True)
class Fault:
    """One line that is wrong, and still runs.

    Attributes
    ----------
    name : str
        What a diagnosis calls it.
    meaning : str
        What is wrong, in a few words.
    task : {"language model", "classifier", "translator"}
        What its patient was to become.
    healthy, broken : str
        The line without its indentation, as it is in `program.py` and as it is in the patient.
    test : str
        The name of the test that finds it.
    symptom : str
        What is seen without a test.
    """

    name: str
    meaning: str
    task: str
    healthy: str
    broken: str
    test: str
    symptom: str

    def source(self) -> str:
        """The program with this one line changed.

        Raises
        ------
        ValueError
            If the healthy line is not in the program exactly once.
        """
        lines = PROGRAM.read_text(encoding="utf-8").splitlines()
        places = [number for number, line in enumerate(lines) if line.strip() == self.healthy]
        if len(places) != 1:
            raise ValueError(
                f"the healthy line must be in the program once, got {len(places)}: {self.healthy}"
            )
        indent = lines[places[0]][: -len(self.healthy)]
        lines[places[0]] = indent + self.broken
        return "\n".join(lines) + "\n"

    def diff(self) -> str:
        """The line removed and the line that took its place."""
        return f"- {self.healthy}\n+ {self.broken}"


_ALL = (
    Fault(
        "gradient_cut", "the hidden states are detached, so no gradient reaches the layers below the head",
        "language model", "hidden = self.body(token_ids)  # (B, T, D)",
        "hidden = self.body(token_ids).detach()  # (B, T, D)", "gradients",
        "The loss falls a little, then stays far above the bound.",
    ),
    Fault(
        "targets_not_shifted", "the targets are the inputs themselves, not the words that follow",
        "language model", "inputs, targets = token_ids[:, :-1], token_ids[:, 1:]",
        "inputs, targets = token_ids[:, :-1], token_ids[:, :-1]", "copying",
        "The loss falls to nearly zero. The model writes one word again and again.",
    ),
    Fault(
        "mask_transposed", "the causal mask is transposed: each word attends to itself and what follows",
        "language model", "mask = mask & tx.causal_mask(seq_len)  # (B, 1, T, T)",
        "mask = mask & tx.causal_mask(seq_len).T  # (B, 1, T, T)", "attention_ahead",
        "The loss falls far below the bound. The texts are rubbish.",
    ),
    Fault(
        "mask_after_softmax", "the mask is applied to the weights after softmax, not to the scores before",
        "language model", "weights = tx.attention_weights(q, k, mask)  # (B, H, T, S)",
        "weights = tx.attention_weights(q, k) * mask  # (B, H, T, S)", "attention_sums",
        "The loss is lower than that of a healthy model, with nothing to explain it.",
    ),
    Fault(
        "no_scale", "the scores are not divided by the root of the head width",
        "language model", "weights = tx.attention_weights(q, k, mask)  # (B, H, T, S)",
        "weights = tx.attention_weights(q * math.sqrt(q.shape[-1]), k, mask)  # (B, H, T, S)",
        "attention_at_start",
        "It learns, only more slowly. Attention is sharp from the first step on.",
    ),
    Fault(
        "positions_missing", "no positions are added to the embeddings",
        "translator", "x = self.dropout(x + tx.sinusoidal_positions(seq_len, width))",
        "x = self.dropout(x)", "permute",
        "No symptom in the curve. Word order is ignored.",
    ),
    Fault(
        "padding_read", "the classifier averages padding along with the words",
        "classifier", "real = tx.padding_mask(token_ids, PAD)",
        "real = torch.ones_like(token_ids, dtype=torch.bool)", "singles",
        "The same text gets another answer next to other texts.",
    ),
    Fault(
        "softmax_twice", "softmax is applied before a cross-entropy that applies it again",
        "classifier", "logits = self(token_ids)",
        "logits = self(token_ids).softmax(dim=-1)", "overfit",
        "The loss stays above 0.31 for two classes, while most answers are right.",
    ),
    Fault(
        "dropout_in_evaluation", "dropout is left on when the model is evaluated",
        "translator", "model.eval()", "model.train()", "twice",
        "The held-out loss is above the training loss, and differs from call to call.",
    ),
    Fault(
        "no_zero_grad", "gradients are never set to zero, so those of all steps add up",
        "translator", "optimizer.zero_grad()", "optimizer.zero_grad  # no call", "gradient_growth",
        "After a few steps the loss rises, above that of a uniform guess.",
    ),
    Fault(
        "weight_decay_on_everything", "weight decay acts on all parameters, at a huge rate",
        "language model", "optimizer = torch.optim.AdamW(parameter_groups(model), lr=lr)",
        "optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=10.0)", "weights",
        "The loss hardly falls, in training too.",
    ),
    Fault(
        "norm_on_wrong_axis", "the norm takes mean and variance over the positions, not over the features",
        "language model",
        "variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)",
        "variance, mean = torch.var_mean(x, dim=1, correction=0, keepdim=True)", "leak",
        "The loss is below the bound, though no attention goes ahead.",
    ),
    Fault(
        "wrong_source", "cross-attention reads the source of another row",
        "translator", "memory = self.encoder(src_ids)  # (B, S, D)",
        "memory = self.encoder(src_ids.roll(1, dims=0))  # (B, S, D)", "swap_sources",
        "Fluent sentences that translate something else.",
    ),
    Fault(
        "evaluation_data_in_training", "the rows held out for evaluation are trained on, too",
        "classifier", "return rows[n_held_out:], held_out", "return rows, held_out", "fresh_text",
        "The held-out loss is below the exact bound, with more right answers than possible.",
    ),
    Fault(
        "tied_weights_too_large", "the tied embedding is drawn with standard deviation 1",
        "language model", "nn.init.normal_(head.weight, std=0.25 * embedding.embedding_dim**-0.5)",
        "nn.init.normal_(head.weight, std=1.0)", "first_loss",
        "The first loss is many times ln V, and the model never catches up.",
    ),
)  # fmt: skip
FAULTS: MappingProxyType[str, Fault] = MappingProxyType({fault.name: fault for fault in _ALL})

#: By number of the patient; the lesson solves patient 0 as an example.
PATIENTS = ("gradient_cut",) + tuple(_ALL[i].name for i in (13, 2, 9, 14, 6, 4, 12, 1, 11, 7, 3, 8, 10, 5))


@cache
def load(fault: str | None) -> ModuleType:
    """The program as a module, with the line of a fault changed."""
    source = FAULTS[fault].source() if fault else PROGRAM.read_text(encoding="utf-8")
    name = f"tinytx_course.museum._{fault or 'healthy'}"
    module = ModuleType(name)
    sys.modules[name] = module  # dataclasses and annotations look there
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)
    return module


def name_of(number: int) -> str:
    """How a patient is called, also in the record of the learner."""
    return f"patient {number}"


#: Those that a learner diagnoses, as `course.status` counts them.
PATIENT_NAMES = tuple(name_of(number) for number in range(1, len(PATIENTS)))


def check_number(number: object) -> int:
    """The number of a patient.

    Raises
    ------
    ValueError
        If there is none of this number; where it is a name that resembles one, that is suggested.
    """
    if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(PATIENTS):
        return number
    near = nearest(number, PATIENT_NAMES) if isinstance(number, str) else ""
    raise ValueError(f"patient must be a number from 1 to {len(PATIENTS) - 1}, got {number!r}{near}")


def check_fault(name: object) -> Fault:
    """The fault of this name.

    Raises
    ------
    ValueError
        If there is none; the nearest is suggested.
    """
    if isinstance(name, str) and name in FAULTS:
        return FAULTS[name]
    near = nearest(str(name), FAULTS)
    raise ValueError(f"fault must be one of {', '.join(FAULTS)}, got {name!r}{near}")


def nearest(word: str, known: Iterable[str]) -> str:
    """A suggestion to append to an error, or nothing."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.4)
    return f"; did you mean {found[0]!r}?" if found else ""
