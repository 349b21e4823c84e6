"""The model on a GPU: the same numbers as on the CPU, by whatever kernel torch chooses there."""

import contextlib

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close

from tests.gpu.device import DEVICE, PRETENDED
from tinytx.attention import attention, fused_attention
from tinytx.config import PRESETS, TransformerConfig
from tinytx.masks import causal_mask
from tinytx.optim import orthogonalised
from tinytx.transformer import LanguageModel

pytestmark = pytest.mark.gpu

CONFIG = TransformerConfig(vocab_size=101, d_model=96, n_heads=3, n_layers=3, d_ff=110, max_len=64)


def make_batch(config):
    token_ids = torch.randint(config.vocab_size, (5, 37))
    return token_ids, torch.arange(37) < torch.tensor([[37], [23], [11], [5], [1]])


@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi"])
def test_gpu_equals_cpu_in_float64_forward_and_backward(norm, causal, padded, positions):
    model = LanguageModel(CONFIG.replace(norm=norm, causal=causal, positions=positions)).double()
    token_ids, real = make_batch(CONFIG)
    results = []
    for device in ("cpu", DEVICE):
        model = model.to(device)
        model.zero_grad()
        logits = model(token_ids.to(device), real.to(device) if padded else None)
        logits.square().sum().backward()
        # copies: gradients of the CPU model would move to the GPU along with it
        gradients = [parameter.grad.cpu().clone() for parameter in model.parameters()]
        results.append([logits.detach().cpu(), *gradients])
    for on_cpu, on_gpu in zip(*results, strict=True):
        assert_close(on_gpu, on_cpu, rtol=1e-8, atol=1e-8)


KERNELS = {"chosen": None, **{backend.name: backend for backend in SDPBackend.__members__.values()}}
KERNELS = {name: KERNELS[name] for name in sorted(KERNELS) if name not in ("ERROR", "OVERRIDEABLE")}
if PRETENDED:  # it has plain products alone, whichever kernel is asked for
    KERNELS = {"chosen": None}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["none", "causal", "marked", "padding", "both", "some blind", "blind"])
def test_every_kernel_gives_zeros_to_blind_queries_and_equals_the_plain_path(dtype, kind, kernel):
    q, k, v = (torch.randn(5, 3, 37, 32, device=DEVICE, dtype=dtype, requires_grad=True) for _ in range(3))
    _, real = make_batch(CONFIG)
    mask = {
        "causal": causal_mask(37, device=DEVICE),
        "marked": causal_mask(37, device=DEVICE),
        "padding": real.to(DEVICE)[:, None, None, :],
        "both": real.to(DEVICE)[:, None, None, :] & causal_mask(37, device=DEVICE),
        "some blind": torch.arange(37, device=DEVICE)[:, None] > torch.arange(37, device=DEVICE) + 4,
        "blind": torch.zeros(37, 37, dtype=torch.bool, device=DEVICE),
        "none": None,
    }[kind]
    if kind == "marked":  # as a model marks its own
        mask.is_lower_triangle = True
    only = contextlib.nullcontext() if KERNELS[kernel] is None else sdpa_kernel(KERNELS[kernel])
    try:
        with only:
            context = fused_attention(q, k, v, mask)
            gradients = torch.autograd.grad(context.double().square().sum(), (q, k, v))
    except RuntimeError as refusal:  # a kernel may refuse a mask or a dtype: what it computes is right
        assert kernel not in ("chosen", "MATH"), refusal
        return
    exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
    expected = attention(*exact, mask)
    wanted = torch.autograd.grad(expected.square().sum(), exact)
    tolerance = {torch.float64: 1e-10, torch.float32: 1e-4}.get(dtype, 3e-2)
    assert_close(context.double(), expected, rtol=0, atol=tolerance)
    for found, right in zip(gradients, wanted, strict=True):
        assert_close(found.double(), right, rtol=tolerance, atol=3 * tolerance)
    if kind == "blind":
        assert (context == 0).all() and all((gradient == 0).all() for gradient in gradients)


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("n", [37, 64, 128, 192])
def test_gradients_are_finite_where_all_scores_lie_far_below_zero(n, biased):
    q, k, v = (torch.randn(2, 3, n, 32, device=DEVICE) for _ in range(3))
    q[..., 0], k[..., 0] = 1.0, -120 * 32**0.5  # all scores are about -120
    bias = torch.zeros(3, n, n, device=DEVICE) if biased else None
    given = [x.bfloat16().requires_grad_() for x in (q, k, v)]
    context = fused_attention(*given, causal_mask(n, device=DEVICE), bias)
    for gradient in torch.autograd.grad(context.sum(), given):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi"])
def test_bfloat16_autocast_on_gpu_stays_close_to_float32_on_cpu(padded, positions):
    model = LanguageModel(PRESETS["seed-lab"].replace(positions=positions))
    token_ids, real = make_batch(CONFIG.replace(vocab_size=100))
    inputs = (token_ids, real) if padded else (token_ids,)
    with torch.no_grad():
        expected = model(*inputs)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        logits = model.to(DEVICE)(*(x.to(DEVICE) for x in inputs))
    assert_close(logits.float().cpu(), expected, rtol=0, atol=0.1)


@pytest.mark.parametrize("shape", [(3, 37, 23), (3, 23, 37), (37, 23)])
def test_muon_turns_matrices_alike_on_gpu_and_cpu(shape):
    matrices = torch.randn(shape, dtype=torch.float64)
    assert_close(orthogonalised(matrices.to(DEVICE)).cpu(), orthogonalised(matrices), rtol=1e-8, atol=1e-8)
