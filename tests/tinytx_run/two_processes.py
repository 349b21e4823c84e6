"""What each of two processes does for `test_distributed.py`; torchrun starts it with a folder as argument.

Everything is small and in double precision (losses apart), so that only a mistake can make a difference.
"""

import contextlib
import faulthandler
import json
import shutil
import sys
from pathlib import Path

import torch

from tests.tinytx_run.interrupted import in_step, press_ctrl_c
from tinytx.classifier import Classifier
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.loop import TrainingStep
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.masking import Masking
from tinytx.objectives import (
    CausalObjective,
    ClassificationObjective,
    HybridObjective,
    MaskedObjective,
    TranslationObjective,
)
from tinytx.settings import TrainingSettings
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx_run.distributed import Processes, ShardedStep, SharedStep, joined, train
from tinytx_run.runs import Checkpoints

CONFIG = TransformerConfig(
    vocab_size=30, d_model=6, n_heads=2, n_layers=2, d_ff=7, max_len=24, tie_embeddings=True
)
SETTINGS = TrainingSettings(
    n_steps=8, lr=1e-2, clip_norm=0.3, tokens_per_batch=90, precision="fp32", log_every=3, checkpoint_every=4
)
MARKS = {"bos_id": 2, "eos_id": 3, "pad_id": 0}
WORDS = ["le", "la", "chat", "chien", "mange", "voit", "un", "une", "belle", "petit", "grand"]


def texts(n):
    """Texts of 1 to 11 words, so that parts of a batch differ in their number of targets."""
    drawn = torch.randint(len(WORDS), (n, 11), generator=torch.Generator().manual_seed(1)).tolist()
    return [" ".join(WORDS[word] for word in row[: 1 + 7 * i % 11]) for i, row in enumerate(drawn)]


def make(name):
    """A model with fixed weights, and an objective, by name."""
    ids = [[6 + number % 24 for number in range(i, i * i % 11 + i + 1)] for i in range(23)]
    torch.manual_seed(5)
    if name == "causal":
        return LanguageModel(CONFIG).double(), CausalObjective(ids, max_len=9, **MARKS)
    if name == "classification":
        labels = [i % 3 for i in range(len(ids))]
        return Classifier(CONFIG, 3).double(), ClassificationObjective(ids, labels, pad_id=0)
    if name == "translation":
        model = Translator(CONFIG).double()
        return model, TranslationObjective(ids, ids[::-1], max_len=24, label_smoothing=0.2, **MARKS)
    tokenizer = Tokenizer.train(texts(60), vocab_size=CONFIG.vocab_size)
    masking = Masking(next_sentence=name == "masked+nsp", causal_share=1e-9 if name == "hybrid" else 0.0)
    config = CONFIG.replace(n_segments=2 if masking.next_sentence else 0)
    lines = [f"{a} . {b} ." for a, b in zip(texts(20), texts(40)[20:], strict=True)]
    if name == "hybrid":  # all batches that are drawn here are masked ones
        return LanguageModel(CONFIG).double(), HybridObjective(
            tokenizer, lines, max_len=CONFIG.max_len, masking=masking
        )
    objective = MaskedObjective(tokenizer, lines, max_len=CONFIG.max_len, masking=masking)
    return MaskedLanguageModel(config, next_sentence=masking.next_sentence).double(), objective


OBJECTIVES = ("causal", "classification", "translation", "masked", "masked+nsp", "hybrid")
LAYOUTS = ("copies", "sharded")  # of the model in two processes
# Objective, layout, and what is changed.
CASES = {f"{name}/{layout}": (name, layout, {}) for name in OBJECTIVES for layout in LAYOUTS}
CASES |= {f"bf16/{layout}": ("causal", layout, {"precision": "bf16"}) for layout in LAYOUTS}
CASES["frozen/copies"] = ("classification", "copies", {"frozen": True})
# Optimizer, layout, and how it began: new, or resumed from one process that got half way.
RUNS = (
    ("adamw", "copies", "new"),
    ("adamw", "copies", "resumed"),
    ("adamw", "sharded", "new"),
    ("adamw", "sharded", "resumed"),
    ("muon", "copies", "new"),
    ("muon", "sharded", "resumed"),
)


class SecondOfThree(SharedStep):
    """A step of the second of three processes, which hears nothing of the others."""

    def __init__(self, *of_one):
        super().__init__(*of_one)
        self.processes = Processes(1, 3)


def batches_of(name, objective):
    """Rows of all lengths, a usual batch, a single row, and two masked rows, one without a drawn token."""
    batches = objective.epoch_batches(seed=0, epoch=0, tokens_per_batch=90)
    chosen = [list(range(11)), batches[0], batches[0][:1]]
    if name in ("masked", "hybrid"):
        drawn = [int((objective.batch([i])[1] >= 0).sum()) for i in range(20)]
        chosen.append([drawn.index(max(drawn)), drawn.index(0)])
    if name == "hybrid":  # rows of several lengths see their sep or not, as their batch has it
        del chosen[0]
    return chosen


def whole(tensor):
    """A tensor of which each process holds a part, in one piece."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor.detach().clone()


STEPS = {"alone": TrainingStep, "copies": SharedStep, "sharded": ShardedStep}


def gradients(name, layout, *, frozen=False, precision="fp32"):
    """Of each batch the loss and the length of its gradient, and the gradients, by number and name."""
    model, objective = make(name)
    if precision == "bf16":
        model.float()
    if frozen:
        model.body.requires_grad_(False)
    settings = SETTINGS.replace(precision=precision)
    step = STEPS[layout](model, objective, settings)
    if layout != "alone":
        step.restore(model, step.optimizer, settings)
    numbers, tensors = [], {}
    for number, batch in enumerate(batches_of(name, objective)):
        loss = step.backward(batch).item()
        for key, parameter in step.model.named_parameters():
            if parameter.grad is not None:
                tensors[f"{number}/{key}"] = whole(parameter.grad)
        numbers.append([loss, step.update(0.0).item()])  # with a rate of 0 the weights stay
    return numbers, tensors


def run(folder, *, optimizer="adamw", shard=False, dropout=0.0, on_step=None):
    """Train in a folder, alone or with the others; the history and the model."""
    model, objective = make("causal")
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = dropout
    settings = SETTINGS.replace(optimizer=optimizer)
    with contextlib.ExitStack() as stack:
        checkpoints = None
        if folder is not None and Processes.current().first:
            kept = Checkpoints(folder, {"plan": "test"})
            checkpoints = stack.enter_context(kept.opened())
        how = {"checkpoints": checkpoints, "shard": shard, "on_step": on_step}
        history = train(model, objective, settings, **how)
    return history, model


def half_way(done, folder):
    """A copy of a finished run when half of it was done."""
    shutil.copytree(done, folder)
    shutil.rmtree(folder / f"step-{SETTINGS.n_steps:06d}")
    return folder


def all_gradients():
    """Numbers and tensors of every objective in every layout."""
    answers, tensors = {}, {}
    for key, (name, layout, changes) in CASES.items():
        answers[key], found = gradients(name, layout, **changes)
        tensors |= {f"{key}/{rest}": tensor for rest, tensor in found.items()}
    return answers, tensors


def all_runs(folder):
    """Histories and last weights of every run."""
    answers, tensors = {}, {}
    for optimizer, layout, begun in RUNS:
        key = f"{optimizer}-{layout}-{begun}"
        history, model = run(folder / key, optimizer=optimizer, shard=layout == "sharded")
        answers[key] = vars(history)
        tensors |= {f"{key}/{name}": value for name, value in model.state_dict().items()}
    return answers, tensors


def looked_at(folder, processes):
    """The steps that a callback sees in a run with dropout, and again after half of it was lost."""
    seen = []
    run(folder / "dropout", dropout=0.3, on_step=lambda step, model: seen.append(step))
    if processes.first:
        half_way(folder / "dropout", folder / "dropout-resumed")
    run(folder / "dropout-resumed", dropout=0.3, on_step=lambda step, model: seen.append(step))
    return seen


def agreements(folder, processes):
    """What becomes of a Ctrl-C in the second process, and of an error in the first."""
    answers = {"any": [processes.any(processes.rank == 1), processes.any(False)]}
    try:
        with in_step(3 if processes.rank == 1 else None, press_ctrl_c):
            run(folder / "poked")
    except KeyboardInterrupt as stop:
        answers["stopped"] = str(stop)

    def refuse():
        raise ValueError(f"as process {processes.rank} finds")

    try:
        processes.agree(refuse)
    except ValueError as error:
        answers["refused"] = str(error)
    return answers


def main(folder):
    """All that the tests look at, left in a folder; where a process dies, it says in which line."""
    faulthandler.enable()
    torch.set_num_threads(1)
    with joined("cpu") as processes:
        answers = {"looked at": looked_at(folder, processes), **agreements(folder, processes)}
        answers["gradients"], grads = all_gradients()
        answers["runs"], weights = all_runs(folder)
        (folder / f"answers-{processes.rank}.json").write_text(json.dumps(answers))
        torch.save(grads | weights, folder / f"tensors-{processes.rank}.pt")
        if processes.first:
            print(json.dumps({"n": processes.n}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
