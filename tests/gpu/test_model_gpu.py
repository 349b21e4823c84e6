"""The model on a GPU: the same numbers as on the CPU, by whatever kernel torch chooses there."""

import pytest
import torch
from torch.testing import assert_close

from tinytx.attention import attention, fused_attention
from tinytx.classifier import Classifier
from tinytx.config import PRESETS, TransformerConfig
from tinytx.masks import causal_mask
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
    for device in ("cpu", "cuda"):
        model = model.to(device)
        model.zero_grad()
        logits = model(token_ids.to(device), real.to(device) if padded else None)
        logits.square().sum().backward()
        # copies: gradients of the CPU model would move to the GPU along with it
        gradients = [parameter.grad.cpu().clone() for parameter in model.parameters()]
        results.append([logits.detach().cpu(), *gradients])
    for on_cpu, on_gpu in zip(*results, strict=True):
        assert_close(on_gpu, on_cpu, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["causal", "padding", "both", "blind"])
def test_every_kernel_gives_zeros_to_blind_queries_and_equals_the_plain_path(dtype, kind):
    q, k, v = (torch.randn(5, 3, 37, 32, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3))
    _, real = make_batch(CONFIG)
    mask = {
        "causal": causal_mask(37, device="cuda"),
        "padding": real.cuda()[:, None, None, :],
        "both": real.cuda()[:, None, None, :] & causal_mask(37, device="cuda"),
        "blind": torch.zeros(37, 37, dtype=torch.bool, device="cuda"),
    }[kind]
    context = fused_attention(q, k, v, mask)
    expected = attention(q.float(), k.float(), v.float(), mask)
    tolerance = 1e-4 if dtype == torch.float32 else 3e-2
    assert_close(context.float(), expected, rtol=0, atol=tolerance)
    gradients = torch.autograd.grad(context.float().square().sum(), (q, k, v))
    assert all(gradient.isfinite().all() for gradient in gradients)
    if kind == "blind":
        assert (context == 0).all() and all((gradient == 0).all() for gradient in gradients)


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi"])
def test_bfloat16_autocast_on_gpu_stays_close_to_float32_on_cpu(padded, positions):
    model = LanguageModel(PRESETS["seed-lab"].replace(positions=positions))
    token_ids, real = make_batch(CONFIG.replace(vocab_size=100))
    inputs = (token_ids, real) if padded else (token_ids,)
    expected = model(*inputs)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = model.cuda()(*(x.cuda() for x in inputs))
    assert_close(logits.float().cpu(), expected, rtol=0, atol=0.1)


@pytest.mark.parametrize("pooling", ["mean", "last", "first"])
def test_classifier_on_gpu_equals_cpu(pooling):
    model = Classifier(CONFIG, n_classes=5, pooling=pooling).double()
    token_ids, real = make_batch(CONFIG)
    expected = model(token_ids, real)
    assert_close(model.cuda()(token_ids.cuda(), real.cuda()).cpu(), expected)
