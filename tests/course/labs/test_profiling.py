"""A profile holds every operation, forward and backward, and leaves the task as it is."""

import pytest
import torch
from torch import nn

from tinytx_course.labs.profiling import KINDS, PRODUCTS, REST, kind_of, profile


def test_a_step_has_its_products_forward_and_backward_and_its_update():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.LayerNorm(5), nn.Linear(5, 2))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x = torch.randn(7, 3)

    def step():
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    found = profile(step, n_calls=2)
    assert found.calls["addmm"] == 2
    assert found.calls["mm"] == 3  # two gradients of weights, and one of an input: x needs none
    assert found.calls["native_layer_norm_backward"] == 1
    assert any(kind_of(name) == "optimizer" for name in found.calls)
    assert set(found.by_kind()) == {*KINDS, REST}
    assert sum(found.by_kind().values()) == pytest.approx(found.total)
    assert all(seconds >= 0 for seconds in found.seconds.values())


def test_what_is_watched_gives_the_same_result():
    torch.manual_seed(0)
    a, seen = torch.randn(5, 5), []
    profile(lambda: seen.append(a @ a), n_warmup=0)
    torch.testing.assert_close(seen[0], a @ a)


def test_large_products_own_the_time_of_a_task_that_has_little_else():
    torch.set_num_threads(1)
    a = torch.randn(300, 300)
    kinds = profile(lambda: (a @ a).relu(), n_calls=3).by_kind()
    assert kinds[PRODUCTS] > kinds[REST]


def test_nothing_measured_is_refused():
    with pytest.raises(ValueError, match="n_calls must be at least 1, got 0"):
        profile(lambda: None, n_calls=0)
