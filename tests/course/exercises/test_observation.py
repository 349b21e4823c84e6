"""What a judge sees: plain values that survive JSON, and verdicts that are the same in another process."""

import json

import numpy as np
import pytest
import torch
from torch import nn

import tinytx as tx
from tests.solutions.collection import SOLUTIONS
from tinytx_course.exercises import calling
from tinytx_course.exercises.calling import SLOWER_ELSEWHERE, copied, observe
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.exercises.judging import judge
from tinytx_course.exercises.observation import Failure, Observation, Opaque, Record, plain


def sent(record):
    """A record as it comes out of another process."""
    return Record.from_dict(json.loads(json.dumps(record.to_dict())))


def value_sent(value):
    return sent(Record(calls=(Observation(plain(value)),))).calls[0].value


TENSORS = [
    torch.tensor([[True, False, True]]),
    torch.randn(2, 3, 5),
    torch.randn(3, 2).half(),
    torch.randn(3).bfloat16(),
    torch.tensor(float("nan"), dtype=torch.float64),
    torch.arange(6, dtype=torch.uint8).view(2, 3).T,
    torch.randn(2, dtype=torch.complex64).conj(),
    torch.empty(0, 3, dtype=torch.int64),
    torch.randn(1, 3)[:, :1].T,
    nn.Parameter(torch.ones(2)),
]


@pytest.mark.parametrize("tensor", TENSORS, ids=lambda tensor: f"{tensor.dtype}".split(".")[1])
def test_a_tensor_comes_back_with_its_dtype_shape_and_values(tensor):
    found = value_sent(tensor)
    assert type(found) is torch.Tensor and not found.requires_grad
    torch.testing.assert_close(found, tensor.detach(), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    "value",
    [None, True, 7, -1.5, float("inf"), "été", [1, (2, [3.5])], {"a": [True], "b": None}, (), [[], {}]],
)
def test_plain_values_come_back_as_they_were(value):
    found = value_sent(value)
    assert found == value and type(found) is type(value)


def test_arrays_stay_arrays_and_what_is_not_plain_says_what_it_is():
    assert isinstance(value_sent(np.float64(2)), np.ndarray)
    np.testing.assert_array_equal(value_sent(np.eye(2, 3)), np.eye(2, 3))
    assert value_sent({1, 2}) == Opaque("a set") and value_sent(1j) == Opaque("a complex")
    assert isinstance(value_sent(torch.ones(1).expand(10**9)), Opaque)
    around = []
    around.append(around)
    assert "list" in json.dumps(Record(calls=(Observation(plain(around)),)).to_dict())
    assert value_sent(2**80) == 2**62 and value_sent("\ud800") == "?"


def test_a_module_comes_back_as_its_state_dict_with_the_names_of_what_would_be_trained():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 5))
    model[0].requires_grad_(False)
    found = value_sent(model)
    assert found.kind == "a Sequential" and found.trained == ("1.weight", "1.bias")
    torch.testing.assert_close(found.state, dict(model.state_dict()), rtol=0, atol=0)


def test_a_verdict_is_the_same_wherever_the_record_was_made(exercise):
    own = [one for one in SOLUTIONS if one.exercise == exercise.name and one.slug != "time-limit"]
    # What a record holds depends on the exercise and on whether it passes on, less on the mistake.
    for solution in own[::4] + [one for one in own if one.slug == "calls-the-answer"]:
        record = observe(exercise, solution.function, 0, 5.0)
        assert judge(exercise, sent(record)) == judge(exercise, record)


RIGHT = observe(EXERCISES["causal_mask"], lambda n: torch.ones(n, n).tril() > 0, 0, 5.0).to_dict()


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        5,
        [],
        {},
        {**RIGHT, "calls": [5]},
        {**RIGHT, "calls": [{**RIGHT["calls"][0], "value": {"pickle": "x"}}]},
        {**RIGHT, "calls": [{**RIGHT["calls"][0], "value": {"tensor": ["bool", [2], "AA=="]}}]},
        {**RIGHT, "calls": [{**RIGHT["calls"][0], "value": {"tensor": ["bool", [1], "Aw=="]}}]},
        {**RIGHT, "calls": [{**RIGHT["calls"][0], "value": {"tensor": ["bool", [10**9, -1], "AA=="]}}]},
        {**RIGHT, "calls": [{**RIGHT["calls"][0], "printed": 5}]},
        {**RIGHT, "refusal": ["\x1b[2J", "x", True]},
        {**RIGHT, "refusal": ["x"]},
    ],
)
def test_what_is_no_record_is_refused(wrong):
    with pytest.raises(ValueError):
        Record.from_dict(wrong)


def test_a_record_that_ends_early_without_a_reason_does_not_pass():
    assert judge(EXERCISES["causal_mask"], Record.from_dict(RIGHT)).passed
    for key in ("calls", "repeats"):
        with pytest.raises(ValueError, match="5 calls"):
            judge(EXERCISES["causal_mask"], Record.from_dict({**RIGHT, key: RIGHT[key][:1]}))
    late = Observation(failure=Failure("time-limit", "It was still running."))
    short = Record(calls=(Observation(tx.causal_mask(1)), late))
    assert judge(EXERCISES["causal_mask"], short).mistake == "time-limit"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_copied_optimizer_moves_the_copied_model_and_leaves_the_given_one_alone(order):
    own = nn.Embedding(3, 5)
    own.weight.grad = torch.ones(3, 5)
    given = own, torch.optim.SGD(own.parameters(), lr=0.5)
    before = own.weight.detach().clone()
    copies = copied([given[i] for i in order])
    model, optimizer = (copies[order.index(i)] for i in (0, 1))
    optimizer.step()
    torch.testing.assert_close(own.weight.detach(), before)
    torch.testing.assert_close(model.weight.detach(), before - 0.5)  # the gradient came along
    model.weight.grad.zero_()
    assert own.weight.grad.sum() == 15


@pytest.mark.parametrize(("device", "times"), [("cpu", 1), ("meta", SLOWER_ELSEWHERE)])
def test_a_function_has_more_seconds_where_it_works_on_another_device(monkeypatch, device, times):
    given, within = [], calling.call_within

    def noted(seconds, *call, **named):
        given.append(seconds)
        return within(seconds, *call, **named)

    monkeypatch.setattr(calling, "call_within", noted)
    monkeypatch.setattr(calling, "working_device", lambda: torch.device(device))
    observe(EXERCISES["causal_mask"], lambda n: [[True] * n] * n, 0, 7.0)
    assert 7 * times - 1 < max(given) <= 7 * times
