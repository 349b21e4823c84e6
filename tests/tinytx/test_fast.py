"""What is fast equals what is plain: dropout, output loss, attention; and memory is reused and given back."""

import json
import subprocess
import sys
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from tests.tinytx.against_torch import copy_weights, parameter_pairs
from tinytx import fast
from tinytx.attention import attention, fused_attention, record_attention
from tinytx.classifier import Classifier
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import DecoderBlock
from tinytx.fast import IGNORE_ID, Dropout, dropout, output_loss
from tinytx.generate import Sampling, continue_rows
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.masks import causal_mask
from tinytx.transformer import Block, LanguageModel, record_hidden_states

V, B, S, T = 11, 3, 7, 5
CONFIG = TransformerConfig(vocab_size=V, d_model=6, n_heads=3, n_layers=2, d_ff=5, max_len=13)
DROPPING = CONFIG.replace(dropout=0.1)

# --- dropout: its share, its mean, its gradient, and when it does nothing


@pytest.mark.parametrize("p", [0.1, 0.3, 0.999])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_share_is_right_and_the_rest_is_scaled_so_that_the_mean_stays(p, dtype):
    dropped = dropout(torch.ones(401, 257, dtype=dtype), p)
    level = min(round(p * 256), 255)
    assert abs((dropped == 0).double().mean().item() - level / 256) < 0.01
    (scale,) = dropped[dropped != 0].unique().tolist()
    assert_close(scale, torch.tensor(256 / (256 - level), dtype=dtype).item())


def test_the_gradient_passes_where_the_number_passed():
    x = torch.randn(7, 11, 3, requires_grad=True)
    dropped = dropout(x, 0.4)
    weighting = torch.randn_like(dropped)
    (dropped * weighting).sum().backward()
    assert_close(x.grad, weighting * dropped.detach() / x.detach())


def test_equal_seeds_drop_the_same_and_neighbours_are_independent():
    x = torch.ones(100_003)
    torch.manual_seed(3)
    first, second = dropout(x, 0.25), dropout(x, 0.25)
    torch.manual_seed(3)
    assert torch.equal(dropout(x, 0.25), first) and not torch.equal(first, second)
    zeros = (first == 0).double()
    for lag in (1, 2, 7, 8, 64):
        assert abs((zeros[lag:] * zeros[:-lag]).mean().item() - 0.25**2) < 0.01


def test_outside_training_and_at_0_the_input_is_returned_itself():
    x = torch.randn(3, 5)
    assert Dropout(0.5).eval()(x) is x and Dropout(0.0)(x) is x
    assert not torch.equal(Dropout(0.5)(x), x)


@pytest.fixture
def a_factor(monkeypatch):
    """Each dropout becomes a factor of 0.7: one that is missing, or in another place, changes the output."""
    for kind in (nn.Dropout, Dropout):
        monkeypatch.setattr(kind, "forward", lambda self, x: 0.7 * x if self.p else x)


@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("kind", [Block, DecoderBlock])
def test_it_acts_where_it_does_in_the_layers_of_torch(a_factor, norm, kind):
    layer = nn.TransformerEncoderLayer if kind is Block else nn.TransformerDecoderLayer
    ours = kind(DROPPING.replace(norm=norm)).double()
    how = {"dropout": 0.1, "activation": "gelu", "batch_first": True, "norm_first": norm == "first"}
    theirs = layer(6, 3, 5, **how).double()
    copy_weights(parameter_pairs([], [(ours, theirs)]), theirs)
    for attn in (*ours.modules(), *theirs.modules()):
        if isinstance(getattr(attn, "dropout", None), float):
            assert attn.dropout == 0.1
            attn.dropout = 0.0
    x, memory = (torch.randn(2, n, 6, dtype=torch.float64) for n in (7, 5))
    inputs = (x,) if kind is Block else (x, memory)
    assert_close(ours(*inputs), theirs(*inputs))


def test_it_acts_on_embeddings_and_before_the_classes(a_factor):
    token_ids = torch.randint(11, (2, 7))
    model = Classifier(DROPPING)
    with record_hidden_states(model.body) as hidden:
        logits = model(token_ids)
    x = model.body.token_embed(token_ids) * 6**0.5
    assert_close(hidden[0], 0.7 * model.body.pos_embed(x))
    assert_close(logits, model.head(0.7 * hidden[-1].mean(dim=1)))


# --- the loss of an output layer: torch's own, gradients included, and a hand number


@pytest.fixture(autouse=True)
def chunks_of_four_rows(monkeypatch):
    monkeypatch.setattr(fast, "CHUNK", 4 * V)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("ignored", [False, True])
def test_equals_torch_forward_and_backward(smoothing, biased, ignored):
    hidden = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(V, 3, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(V, dtype=torch.float64, requires_grad=True) if biased else None
    targets = torch.randint(1, V, (2, 5))
    if ignored:
        targets[1, 3:] = 0
    leaves = [leaf for leaf in (hidden, weight, bias) if leaf is not None]
    ours = output_loss(hidden, weight, targets, bias=bias, ignore_id=0, label_smoothing=smoothing)
    logits = F.linear(hidden, weight, bias).flatten(0, 1)
    its = F.cross_entropy(logits, targets.flatten(), ignore_index=0, label_smoothing=smoothing)
    assert_close(ours, its)
    assert_close(torch.autograd.grad(ours * 3, leaves), torch.autograd.grad(its * 3, leaves))


def test_every_target_ignored_gives_nan_as_in_torch_and_the_smoothing_is_checked():
    inputs = torch.randn(2, 3), torch.randn(4, 3), torch.tensor([IGNORE_ID] * 2)
    assert output_loss(*inputs).isnan()
    with pytest.raises(ValueError, match="1.5"):
        output_loss(*inputs, label_smoothing=1.5)


def test_targets_of_another_shape_are_refused():
    """As they are by torch: fewer targets would be taken for those of the first positions."""
    model, token_ids = LanguageModel(CONFIG), torch.randint(V, (B, S))
    for targets in (token_ids[:, 1:], token_ids[:1], token_ids.flatten()):
        with pytest.raises(ValueError, match=r"targets must have shape \(3, 7\), got"):
            model.loss(token_ids, targets)


def test_targets_and_labels_may_be_int32():
    token_ids, labels = torch.randint(V, (B, S)), torch.randint(2, (B,))
    masked, classes = MaskedLanguageModel(CONFIG, next_sentence=True), Classifier(CONFIG)
    both = masked.losses(token_ids, token_ids, next_labels=labels)
    assert_close(masked.losses(token_ids.int(), token_ids.int(), next_labels=labels.int()), both)
    assert_close(classes.loss(token_ids.int(), labels.int()), classes.loss(token_ids, labels))


def test_a_second_derivative_is_refused_rather_than_left_out():
    hidden, weight = torch.randn(2, 3, requires_grad=True), torch.randn(4, 3)
    with pytest.raises(RuntimeError, match="create_graph=True"):
        torch.autograd.grad(output_loss(hidden, weight, torch.tensor([1, 2])), hidden, create_graph=True)


def test_logits_far_apart_leave_loss_and_gradients_finite():
    weight = torch.tensor([[0.0], [500.0], [-500.0]], requires_grad=True)
    loss = output_loss(torch.tensor([[1.0]], requires_grad=True), weight, torch.tensor([2]))
    assert loss.item() == 1000.0
    loss.backward()
    assert_close(weight.grad, torch.tensor([[0.0], [1.0], [-1.0]]))


def gradients(loss, model):
    return torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)


@pytest.mark.parametrize("tied", [False, True])
def test_the_loss_in_bfloat16_stays_close_and_is_a_float32(tied):
    model = LanguageModel(CONFIG.replace(tie_embeddings=tied))
    token_ids, targets = torch.randint(V, (B, T)), torch.randint(V, (B, T))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model.loss(token_ids, targets)
        its = F.cross_entropy(model(token_ids).flatten(0, 1).float(), targets.flatten())
    assert loss.dtype == torch.float32
    assert_close(loss, its, rtol=0.01, atol=0)
    for ours, other in zip(gradients(loss, model), gradients(its, model), strict=True):
        assert ours.dtype == torch.float32
        assert (ours - other).norm() <= 0.05 * other.norm() + 1e-3


def test_losses_keep_the_digits_of_float64():
    model = MaskedLanguageModel(CONFIG.replace(n_segments=2), next_sentence=True).double()
    token_ids, real = torch.randint(V, (B, T)), torch.ones(B, T, dtype=torch.bool)
    losses = model.losses(token_ids, token_ids, real, torch.zeros(B, T, dtype=torch.long), torch.ones(B))
    classified = Classifier(CONFIG, n_classes=5).double().loss(token_ids, torch.tensor([0, 4, 2]), real)
    assert all(loss.dtype == torch.float64 for loss in (*losses, classified))


def test_without_masked_positions_the_masked_loss_and_its_gradients_are_zero():
    model = MaskedLanguageModel(CONFIG)
    loss = model.loss(torch.randint(V, (B, T)), torch.full((B, T), IGNORE_ID))
    assert loss.item() == 0
    assert not any(gradient.any() for gradient in gradients(loss, model))  # and none is missing


# --- attention


def test_compiled_blocks_compute_the_same_by_one_graph_which_reads_no_causal_mask(monkeypatch):
    graphs = []

    def keep(graph, inputs):
        graphs.append(str(graph.graph))
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=keep))
    monkeypatch.setattr(fast, "find_spec", lambda name: name == "triton")
    monkeypatch.setattr(fast, "which", lambda name: name)  # a compiler of C, which the graph does not need
    model, token_ids = LanguageModel(CONFIG.replace(n_layers=5)), torch.randint(V, (B, T))
    assert not fast.Compiled(model, 1000).calls
    long = fast.Compiled(model, int(fast.WORTH_COMPILING))
    expected = model(token_ids)
    assert not graphs
    with long:
        assert torch.equal(model(token_ids), expected)
    assert len(graphs) == 1 and "is_causal: True" in graphs[0]
    model(token_ids[:, 1:])
    assert len(graphs) == 1


def test_where_nothing_beats_the_formula_attention_is_the_formula(monkeypatch):
    monkeypatch.setattr(fast, "FUSED", ())
    q, k, v = torch.randn(3, B, T, 2)
    for mask in (None, causal_mask(T), torch.zeros(T, T, dtype=torch.bool)):
        assert torch.equal(fused_attention(q, k, v, mask), attention(q, k, v, mask))
    assert (fused_attention(q, k, v, dropout=0.5) != attention(q, k, v)).any()


# --- memory: a step reuses what the one before it freed, and gaps are given back in the end

needs_glibc = pytest.mark.skipif(not fast.HAS_GLIBC, reason="only glibc lets a process choose")


def probed(code):
    """What a fresh process finds, as its settings stay for as long as it lives."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@needs_glibc
def test_training_steps_do_not_ask_the_system_for_the_same_memory_again():
    before, after = probed("""
import json, resource, torch
from tinytx.config import TransformerConfig
from tinytx.transformer import LanguageModel
from tinytx.loop import TrainingStep
from tinytx.objectives import CausalObjective
from tinytx.settings import TrainingSettings
def page_faults():
    start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        torch.ones(10_000_000)  # 40 MB, more than glibc retains by itself
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - start
page_faults()
before = page_faults()
config = TransformerConfig(vocab_size=11, max_len=7, d_model=6, n_heads=2, n_layers=1, d_ff=5)
objective = CausalObjective([[5, 6]], bos_id=1, eos_id=2, pad_id=0, max_len=7)
TrainingStep(LanguageModel(config), objective, TrainingSettings(n_steps=1, lr=1e-3))
page_faults()
print(json.dumps([before, page_faults()]))
""")
    assert after < before / 100


@needs_glibc
def test_gaps_between_blocks_in_use_are_given_back():
    given_back, total = probed("""
import json, torch
from tinytx.fast import retain_memory, trim_memory
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
retain_memory()
blocks = [torch.ones(250_000) for _ in range(400)]  # 1 MB each
del blocks[::2]  # gaps that no larger block fits
before = resident()
trim_memory()
print(json.dumps([before - resident(), sum(block.sum().item() for block in blocks)]))
""")
    assert given_back > 100e6
    assert total == 200 * 250_000  # what is in use is untouched


@pytest.mark.parametrize("n_rows", [1, 5])
@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@torch.no_grad()
def test_laid_out_layers_compute_what_they_computed_and_come_back(monkeypatch, n_rows, onednn, bias):
    monkeypatch.setattr(fast, "_ONEDNN", onednn and fast._ONEDNN)
    model, seen = nn.Sequential(nn.Linear(7, 11, bias=bias), nn.Linear(11, 2, bias=bias)), []
    model[1].forward = lambda x: seen.append(x) or x[..., :2]  # a forward of its own stays
    hook = model[0].register_forward_hook(lambda layer, x, y: seen.append(y))
    for shape in ((n_rows, 1, 7), (3, 4, 7)):  # others than were announced, too
        x = torch.randn(shape)
        expected = model(x)
        with fast.laid_out(model, n_rows), fast.laid_out(model, 2):
            assert_close(model(x), expected)
    assert len(seen) == 8 and vars(model[0]).keys().isdisjoint({"forward"}) and "forward" in vars(model[1])
    hook.remove()
    with pytest.raises(KeyError), fast.laid_out(model, n_rows):
        raise KeyError
    assert "forward" not in vars(model[0])


@pytest.mark.parametrize("with_bias", [True, False])
def test_sums_over_many_positions_do_not_overflow_in_float16(with_bias):
    hidden = (torch.randn(4_096, 3) + 16).half()
    weight, bias = torch.randn(V, 3).half(), torch.randn(V).half() if with_bias else None
    targets = torch.full((4_096,), 5)
    given = [x.requires_grad_() for x in (hidden, weight, bias) if x is not None]
    exact = [x.detach().double().requires_grad_() for x in given]
    output_loss(hidden, weight, targets, bias=bias).backward()
    F.cross_entropy(F.linear(*exact), targets).backward()
    for mine, right in zip(given, exact, strict=True):
        assert_close(mine.grad.double(), right.grad, rtol=2e-3, atol=1e-6)


def test_a_call_with_another_default_device_spoils_no_later_one():
    q = torch.randn(1, 19, 6)
    mask = causal_mask(19)
    fast._triangle.cache_clear()
    with torch.device("meta"):
        fused_attention(q, q, q, mask)
    assert_close(fused_attention(q, q, q, mask), attention(q, q, q, mask))


def test_a_mask_of_a_model_that_is_changed_in_place_is_read():
    model, ids = LanguageModel(CONFIG).eval(), torch.randint(V, (B, T))
    with torch.no_grad():
        plain = model(ids)
        for block in model.body.blocks:
            block.register_forward_pre_hook(lambda module, args: (args[0], args[1].fill_(True), args[2]))
        changed = model(ids)
        with record_attention(model):
            torch.testing.assert_close(model(ids), changed, rtol=1e-4, atol=1e-5)
    assert (plain - changed).abs().max() > 0.01


def test_several_rows_are_written_under_autocast():
    model = LanguageModel(CONFIG).eval()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rows = continue_rows(model, [[1, 2], [1, 3]], Sampling(max_new_tokens=3), eos_id=-1)
    assert [len(row) for row in rows] == [3, 3]


def test_blocks_that_were_compiled_before_stay_so(monkeypatch):
    monkeypatch.setattr(fast, "find_spec", lambda name: True)
    monkeypatch.setattr(fast, "which", lambda name: name)
    model = LanguageModel(CONFIG)
    own = [object() for _ in model.body.blocks]
    for block, call in zip(model.body.blocks, own, strict=True):
        block._compiled_call_impl = call
    with fast.Compiled(model, int(1e12)):
        pass
    assert [block._compiled_call_impl for block in model.body.blocks] == own
