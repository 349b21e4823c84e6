"""Whatever a learner's function does, a verdict comes of it, and nothing is left behind."""

import functools
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest
import torch
from torch import nn

import tinytx as tx
import tinytx_course as course
from tests.solutions.collection import SOLUTIONS
from tinytx_course.exercises import checking


def lower_triangle(seq_len, *, device="cpu"):
    return torch.ones(seq_len, seq_len, device=device).tril() > 0


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(checking, "TIME_LIMIT", 0.2)


def verdict(function, name="causal_mask"):
    return course.check(name, function, display=False)


def stub_dots(seq_len): ...


def stub_docstring(seq_len):
    """Return the causal mask."""


def stub_raises(seq_len):
    raise NotImplementedError


def stub_prints(seq_len):
    print("to do")


def stub_with_given_lines(seq_len):
    place = torch.arange(seq_len)  # noqa: F841  (a stub with a line given)
    mask = ...  # compare place with itself
    return mask


def stub_half_filled(seq_len):
    mask = ...
    return mask.bool()


STUBS = [stub_dots, stub_docstring, stub_raises, stub_prints, stub_with_given_lines, stub_half_filled]
STUBS += [lambda n: None, lambda n: ..., lambda n: (..., ...), None, ...]


@pytest.mark.parametrize("stub", STUBS)
def test_a_stub_is_neither_passed_nor_a_mistake(stub):
    found = verdict(stub)
    assert (found.passed, found.mistake, found.attempted) == (False, None, False)
    assert "not attempted yet" in str(found)


def busy(n):
    while True:
        pass


def prints_for_ever(n):
    while True:
        print("again")


ENDLESS = [busy, lambda n: time.sleep(1e9), prints_for_ever]


@pytest.mark.parametrize("endless", ENDLESS)
def test_an_endless_loop_is_ended(endless, quick):
    found = verdict(endless)
    assert found.mistake == "time-limit" and not found.passed
    assert "still running" in found.message


@pytest.mark.parametrize("endless", [busy, prints_for_ever])
def test_an_endless_loop_is_ended_in_another_thread_and_its_thread_ends(endless, quick):
    before, found = threading.active_count(), []
    worker = threading.Thread(target=lambda: found.append(verdict(endless)))
    worker.start()
    worker.join(15)
    assert [v.mistake for v in found] == ["time-limit"]
    give_up = time.monotonic() + 3
    while threading.active_count() > before and time.monotonic() < give_up:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_handler_and_timer_of_before_are_put_back(quick):
    def before(signum, frame): ...

    handler = signal.signal(signal.SIGALRM, before)
    timer = signal.setitimer(signal.ITIMER_REAL, 300.0, 7.0)
    try:
        assert verdict(busy).mistake == "time-limit"
        left, interval = signal.getitimer(signal.ITIMER_REAL)
        assert 200 < left < 299.8 and interval == 7.0
        assert signal.getsignal(signal.SIGALRM) is before
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


def test_what_is_to_be_done_at_the_end_is_done_when_time_is_up(quick):
    closed = []

    def tidy(n):
        try:
            while True:
                pass
        finally:
            closed.append(n)

    assert verdict(tidy).mistake == "time-limit" and closed == [1]


def fails(n):
    a = torch.ones(2, 3)
    return a @ a


def recursive(n):
    return recursive(n)


def raiser(problem):
    def raises(n):
        raise problem

    return raises


class Unsayable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def test_an_exception_from_a_library_is_shown_with_the_learners_own_line():
    found = verdict(fails)
    assert found.mistake == "error" and "RuntimeError" in found.message
    assert f"in your line {fails.__code__.co_firstlineno + 2}: `return a @ a`" in found.message


@pytest.mark.parametrize(
    "problem", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), Unsayable(), MemoryError()]
)
def test_whatever_is_raised_is_caught(problem):
    found = verdict(raiser(problem))
    assert not found.passed and found.attempted and found.mistake in ("error", "interrupted")


async def asynchronous(n):
    return lower_triangle(n)


def yielding(n):
    yield lower_triangle(n)


class Odd:
    def __eq__(self, other):
        raise RuntimeError("odd")

    def __bool__(self):
        raise RuntimeError("odd")

    def __repr__(self):
        raise RuntimeError("odd")


ODD = {
    "endless-recursion": recursive,
    "async": asynchronous,
    "yields": yielding,
    "wrong-type": lambda n: "mask",
    "not-boolean": lambda n: lower_triangle(n).to(torch.bfloat16),
    "wrong-shape": lambda n: torch.tensor(True),
    "numpy-array": lambda n: np.tril(np.ones((n, n), dtype=bool)),
    "too-many-results": lambda n: (lower_triangle(n), 1),
    "wrong-parameters": lambda a, b: None,
    "not-a-function": torch.ones(2, 2).bool(),
}


@pytest.mark.parametrize("slug", ODD)
def test_odd_functions_and_results_are_named(slug):
    assert verdict(ODD[slug]).mistake == slug


@pytest.mark.parametrize(
    "value",
    [Odd(), {}, [], (), 3, "x", b"x", object(), torch.tensor([]), torch.ones(1, device="meta"), Odd, {1}, 1j],
)
@pytest.mark.parametrize(
    "name", ["causal_mask", "attention", "perplexity", "greedy_decode", "shift_targets", "mask_tokens"]
)
def test_no_result_is_too_odd_for_a_verdict(name, value):
    found = verdict(lambda *arguments: value, name)
    assert not found.passed and found.attempted and str(found)


def test_right_ones_of_every_kind_of_callable_pass():
    class Callable:
        def __call__(self, seq_len, *, device="cpu"):
            return lower_triangle(seq_len)

    class Module(nn.Module):
        def forward(self, seq_len):
            return lower_triangle(seq_len)

    class Named:
        @staticmethod
        def static(n):
            return lower_triangle(n)

        def method(self, n, extra=1):
            return lower_triangle(n)

    def keyword_only(*, seq_len):
        return lower_triangle(seq_len)

    wrapped = functools.partial(lower_triangle, device="cpu"), functools.lru_cache(lower_triangle)
    functions = (
        Callable(),
        Module(),
        Named.static,
        Named().method,
        lambda *n: lower_triangle(*n),
        keyword_only,
    )
    for function in (*functions, *wrapped, torch.jit.ignore(lower_triangle)):
        assert verdict(function).passed, function


@pytest.mark.parametrize(
    ("which", "does"), [(13, lambda: 1 // 0), (14, lambda: busy(1)), (16, lambda: 1 // 0)]
)
def test_every_call_of_an_exercise_on_chance_is_read(which, does, quick):
    """The last of the first thirteen, then the first and the third of those that repeat them."""
    right, calls = checking.EXERCISES["mask_tokens"].solve, []

    def mask_tokens(*arguments):
        calls.append(arguments)
        return does() if len(calls) == which else right(*arguments)

    found = verdict(mask_tokens, "mask_tokens")
    assert not found.passed and found.mistake in ("error", "time-limit")


def test_an_answer_of_200_000_ids_is_explained_in_short():
    found = verdict(lambda *_: torch.ones(200_000, dtype=torch.uint8), "greedy_decode")
    assert not found.passed and "and 199,968 more: log-probabilities" in found.message


def test_results_that_require_grad_are_views_or_sit_anywhere_pass():
    linear = nn.Linear(1, 1)

    def attention(q, k, v, mask):
        return tx.attention(q, k, v, mask) + 0 * linear.weight.sum()

    assert verdict(attention, "attention").passed
    assert verdict(lambda x, n: x.unflatten(-1, (n, -1)).transpose(1, 2), "split_heads").passed
    assert verdict(lambda x, n: x.unflatten(-1, (n, -1)).transpose(1, 2).to_sparse(), "split_heads").passed


def test_parameters_in_another_order_are_named():
    def attention(mask, q, k, v):
        return tx.attention(q, k, v, mask)

    assert verdict(attention, "attention").mistake == "parameter-order"


def test_what_is_kept_between_calls_is_found():
    calls = []

    def counts(n):
        calls.append(n)
        return lower_triangle(n) if len(calls) <= 5 else ~lower_triangle(n)

    assert verdict(counts).mistake == "changes-between-calls"


KEPT: list[int] = []


def test_results_of_earlier_calls_are_named_and_what_holds_them_is_put_back():
    def smallest(n):
        KEPT.append(n)
        return lower_triangle(min(KEPT))

    assert verdict(smallest).mistake == "remembers-earlier-calls" and KEPT[:2] == [1, 2]


def test_a_list_that_was_handed_over_and_changed_is_found():
    def masking(token_ids, mask_id, special_ids, vocab_size, p, generator):
        special_ids.append(mask_id)
        return token_ids, torch.full_like(token_ids, -100)

    found = verdict(masking, "mask_tokens")
    assert found.mistake == "input-modified" and "special_ids" in found.message


def test_output_is_kept_off_the_screen_and_quoted_when_it_fails(capsys):
    def chatty(n):
        print("first line")
        print("warning", file=sys.stderr)
        return ~lower_triangle(n)

    found = verdict(chatty)
    assert capsys.readouterr() == ("", "")
    assert "| first line" in found.message and "| warning" in found.message
    passed = verdict(lambda n: print("x" * 10_000) or lower_triangle(n))
    assert passed.passed and "prints" in passed.message and len(passed.message) < 300


def test_stdout_is_given_back_even_if_the_function_takes_it():
    def grabs(n):
        sys.stdout = open("/dev/null", "w")  # noqa: SIM115
        return lower_triangle(n)

    before = sys.stdout
    assert verdict(grabs).passed
    assert sys.stdout is before


def test_random_states_are_left_alone():
    def draws(n):
        torch.manual_seed(5)
        np.random.seed(5)  # noqa: NPY002
        random.seed(5)
        return lower_triangle(n)

    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    for name, function in [("causal_mask", draws), ("mask_tokens", lambda *a: (a[0], a[0]))]:
        verdict(function, name)
    assert torch.equal(torch.get_rng_state(), before[0]) and random.getstate() == before[1]
    assert np.array_equal(np.random.get_state()[1], before[2])  # noqa: NPY002


@pytest.mark.proof
def test_other_defaults_and_modes_reject_no_right_solution():
    torch.set_default_dtype(torch.float64)
    try:
        with torch.inference_mode():
            for solution in SOLUTIONS:
                if solution.slug is None:
                    found = verdict(solution.function, solution.exercise)
                    assert found.passed, (solution.name, str(found))
            assert torch.get_default_dtype() == torch.float64 and torch.is_inference_mode_enabled()
    finally:
        torch.set_default_dtype(torch.float32)


def test_checks_in_several_threads_do_not_mix_their_screens(capsys):
    def loud(n):
        print("loud")
        return lower_triangle(n)

    workers = [threading.Thread(target=lambda: verdict(loud)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print("mine")
    assert capsys.readouterr().out == "mine\n"


def test_a_function_that_indexes_with_dots_is_no_stub_and_einsum_speaks_of_no_gap():
    def without_a_return(x, n_heads):
        """Half of them ..."""
        heads = x.clone()
        heads[..., : x.shape[-1] // n_heads] = 0

    found = checking.check("split_heads", without_a_return)
    assert found.attempted and found.mistake == "nothing-returned"
    found = checking.check("attention_row", lambda query, keys: torch.einsum("k,sk->s", query[None], keys))
    assert found.attempted and found.mistake == "error" and "einsum" in str(found)
    found = checking.check(
        "mean_pool", lambda hidden, mask: [x[m].mean(0) for x, m in zip(hidden, mask, strict=True)]
    )
    assert "torch.stack" in str(found)
