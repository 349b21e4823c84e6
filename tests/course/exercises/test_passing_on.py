"""A function that only passes on to a ready-made answer is refused, one that compares with it is not."""

import sys
import threading
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.exercises.passing_on import passed_on


def keywords(q, k, v, mask=None):
    return F.scaled_dot_product_attention(query=q, key=k, value=v, attn_mask=mask)


def with_zeros(q, k, v, mask):
    context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return torch.where(mask.any(-1, keepdim=True), context, 0.0)


def filled_in_place(q, k, v, mask):
    context = torch.zeros_like(q @ v.mT @ v)
    context[mask.any(-1)] = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)[mask.any(-1)]
    return context


def by_name_only(*, q, k, v, mask):
    return tx.attention(q, k, v, mask)


def in_a_thread(seq_len):
    made = []
    thread = threading.Thread(target=lambda: made.append(tx.causal_mask(seq_len)))
    thread.start()
    thread.join()
    return made[0]


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("attention", tx.attention),
        ("attention", partial(tx.attention)),
        ("attention", lambda q, k, v, mask: tx.attention(q, k, v, mask)),
        ("attention", keywords),
        ("attention", by_name_only),
        ("attention", lambda *arguments: EXERCISES["attention"].solve(*arguments)),
        ("alibi_bias", lambda n_heads, seq_len: tx.alibi_bias(n_heads, seq_len)),
        ("attention", lambda q, k, v, mask: tx.attention(q, k, v, mask).clone()),
        ("attention", lambda *arguments: EXERCISES["attention"].solve(*arguments) * 1),
        ("causal_mask", lambda seq_len: tx.causal_mask(seq_len)[:]),
        ("causal_mask", lambda seq_len: ~~tx.causal_mask(seq_len)),
        ("causal_mask", lambda seq_len: tx.causal_mask(seq_len).float().bool()),
        ("causal_mask", lambda seq_len: (mask := tx.causal_mask(seq_len)) | mask),
        ("causal_mask", in_a_thread),
        ("perplexity", lambda total_nats, n_tokens: EXERCISES["perplexity"].solve(total_nats, n_tokens) + 0),
        ("merge_pair", lambda *arguments: list(EXERCISES["merge_pair"].solve(*arguments))),
        ("attention", with_zeros),
        ("attention", filled_in_place),
        ("layer_norm", lambda x, gamma, beta, eps: F.layer_norm(x, x.shape[-1:], gamma, beta, eps)),
        ("layer_norm", lambda x, gamma, beta, eps: F.layer_norm(x, x.shape[-1:], eps=eps) * gamma + beta),
        ("layer_norm", lambda x, gamma, beta, eps: beta + gamma * nn.LayerNorm(len(gamma), eps, False)(x)),
        ("layer_norm", lambda x, *rest: F.group_norm(x.flatten(0, 1), 1, *rest).view(x.shape)),
        ("rms_norm", lambda x, gamma, eps: nn.RMSNorm(len(gamma), eps, False)(x) * gamma),
    ],
)
def test_passing_on_is_no_solution(name, function):
    verdict = course.check(name, function, display=False)
    assert verdict.attempted and not verdict.passed and verdict.mistake == "calls-the-answer"


def test_a_wrong_result_is_explained_first():
    unscaled = course.check("attention", lambda q, k, v, mask: tx.attention(3 * q, k, v, mask), display=False)
    assert not unscaled.passed and unscaled.mistake != "calls-the-answer"


def test_comparing_with_an_answer_is_allowed():
    def own(x, gamma, beta, eps):
        made = gamma * (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, correction=0) + eps).sqrt()
        torch.testing.assert_close(made + beta, F.layer_norm(x, x.shape[-1:], gamma, beta, eps))
        return made + beta

    def compared(seq_len):
        mask = torch.ones(seq_len, seq_len).tril().bool()
        assert torch.equal(mask, tx.causal_mask(seq_len))
        return mask

    assert course.check("causal_mask", compared, display=False).passed
    assert course.check("layer_norm", own, display=False).passed


def test_the_answer_is_named_and_a_profiler_of_before_is_put_back():
    q, k, v = (torch.randn(3, 2) for _ in range(3))
    before = sys.getprofile()
    assert passed_on(lambda: tx.attention(q, k, v), "attention") == "attention"
    assert passed_on(lambda: tx.attention(q, k, v) + 0, "attention") == "attention"
    assert passed_on(lambda: tx.attention(q, k, v) + 1, "attention") == ""
    fused = F.scaled_dot_product_attention
    assert passed_on(lambda: fused(q, k, v), "x", [fused]).endswith("scaled_dot_product_attention")
    with pytest.raises(ZeroDivisionError):
        passed_on(lambda: 1 // 0, "attention")
    assert sys.getprofile() is before is threading.getprofile()
