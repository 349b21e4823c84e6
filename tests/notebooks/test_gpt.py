"""GPT on one page and by hand: one model, whose loss and gradients equal those of tinytx in float64."""

import ast
import importlib.util
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import tinytx as tx

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
FILES = {
    "gpt_one_page": (90, {"gzip", "json", "pathlib", "sys", "torch"}),
    "gpt_by_hand": (215, {"sys", "math", "random"}),
}
SIZES = {"vocab_size": 11, "d_model": 6, "n_heads": 3, "n_layers": 2, "max_len": 7}
IDS = [3, 10, 0, 3, 7]  # shorter than max_len, with an id that occurs twice


def imported(name):
    spec = importlib.util.spec_from_file_location(name, NOTEBOOKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page():
    """The model of the page with random weights, also those of its norms, and gradients of a loss."""
    torch.manual_seed(0)
    model = imported("gpt_one_page").GPT(**SIZES).double()
    for weight in model.parameters():
        torch.nn.init.normal_(weight)
    logits = model(torch.tensor([IDS[:-1]]))[0]
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(IDS[1:]))
    loss.backward()
    return model, loss.item()


def names_of_tinytx(weights):
    """Weights of the page under the names of `tinytx.LanguageModel`."""
    renamed = {}
    for name, weight in weights.items():
        name = name.replace("qkv_proj", "attn.qkv_proj").replace("out_proj", "attn.out_proj")
        name = name.replace("up_proj", "ff.up_proj").replace("down_proj", "ff.down_proj")
        name = name.replace("pos_embed.weight", "pos_embed.table")
        name = name if name.startswith("head") else f"body.{name}"
        parts = dict(zip("qkv", weight.chunk(3), strict=True)) if "qkv" in name else {"": weight}
        renamed |= {name.replace("qkv", part): each for part, each in parts.items()}
    return renamed


def test_the_page_has_the_loss_and_the_gradients_of_tinytx(page):
    model, loss = page
    config = tx.TransformerConfig(
        **SIZES, d_ff=24, positions="learned", activation="relu", bias=False, scale_embeddings=False
    )
    twin = tx.LanguageModel(config).double()
    twin.load_state_dict(names_of_tinytx(model.state_dict()))
    twin_loss = twin.loss(torch.tensor([IDS[:-1]]), torch.tensor([IDS[1:]]))
    twin_loss.backward()
    assert twin_loss.item() == pytest.approx(loss, abs=1e-6)
    gradients = names_of_tinytx({name: weight.grad for name, weight in model.named_parameters()})
    assert gradients.keys() == dict(twin.named_parameters()).keys()
    for name, weight in twin.named_parameters():
        torch.testing.assert_close(gradients[name], weight.grad, rtol=0, atol=1e-6, msg=name)
        assert weight.grad.abs().max() > 1e-4


def test_the_gradients_by_hand_are_those_of_the_page_and_add_up(page):
    model, loss = page
    by_hand = imported("gpt_by_hand").GPT(**SIZES)
    weights = {name.removesuffix(".weight"): weight for name, weight in model.named_parameters()}
    assert weights.keys() == by_hand.weights.keys()
    for name, weight in weights.items():
        by_hand.weights[name][:] = torch.atleast_2d(weight).tolist()
    for times in (1, 2):  # a second batch adds its gradients to those of the first
        assert by_hand.loss(IDS) == pytest.approx(loss, abs=1e-6)
        for name, weight in weights.items():
            found = torch.tensor(by_hand.grads[name], dtype=torch.float64)
            torch.testing.assert_close(found, times * torch.atleast_2d(weight.grad), rtol=0, atol=1e-6)


def test_adam_by_hand_takes_the_steps_of_torch():
    module = imported("gpt_by_hand")
    random.seed(1)
    model = module.GPT(5, d_model=4, n_heads=2, max_len=3)
    twins = {name: torch.tensor(w, dtype=torch.float64).requires_grad_() for name, w in model.weights.items()}
    optimizer = torch.optim.Adam(twins.values(), lr=0.01, betas=(0.9, 0.99))
    mean, square = ({name: module.zeros_like(w) for name, w in model.weights.items()} for _ in range(2))
    for step in (1, 2, 3):
        model.loss([step, 0, 4, 1])
        for name, twin in twins.items():
            twin.grad = torch.tensor(model.grads[name], dtype=torch.float64)
        optimizer.step()
        module.adam(model, mean, square, step)
        assert not any(number for grad in model.grads.values() for row in grad for number in row)
    for name, twin in twins.items():
        found = torch.tensor(model.weights[name], dtype=torch.float64)
        torch.testing.assert_close(found, twin.detach(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", FILES)
def test_it_is_short_and_needs_no_tinytx(name):
    longest, allowed = FILES[name]
    text = (NOTEBOOKS / f"{name}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= longest
    nodes = list(ast.walk(ast.parse(text)))
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert modules <= allowed


@pytest.mark.parametrize("name", FILES)
def test_it_runs_on_any_text_file_and_the_loss_falls(name, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("Où est le chat ?\nLe chat est là.\n" * 9, encoding="utf-8")

    def run(*arguments):
        command = [sys.executable, str(NOTEBOOKS / f"{name}.py"), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    steps = (1, 2, 4, 6) if name == "gpt_one_page" else (1, 2, 4, 8, 16, 20)  # the other draws without a seed
    done = run(text, steps[-1])
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split(",")[0] for line in lines] == [f"step {n}" for n in steps]
    losses = [float(line.split("loss ")[1].split(" ")[0]) for line in lines]
    assert losses[-1] < losses[0] - 0.5  # without a step of the optimizer it falls by less than 0.1
    text.write_text("too short", encoding="utf-8")
    refused = [((text,), "got 9"), *([((), "FILE [STEPS]")] if name == "gpt_by_hand" else [])]
    for arguments, words in refused:
        done = run(*arguments)
        assert done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr


def test_without_a_file_the_page_reads_the_novels_and_a_temperature_near_zero_writes_what_is_likeliest():
    module = imported("gpt_one_page")
    assert module.NOVELS.exists()
    torch.manual_seed(0)
    model = module.GPT(11, d_model=8, n_heads=2, max_len=7)
    best = [3]
    for _ in range(9):
        best.append(model(torch.tensor([best[-7:]]))[0, -1].argmax().item())
    assert model.generate([3], 9, temperature=1e-6) == best
