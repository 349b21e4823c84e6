"""What a message shows: cells that differ, which of two results it is, digits that differ, texts."""

import re

import pytest
import torch
from torch import nn

import tinytx_course as course
from tests.solutions.collection import SOLUTIONS
from tests.solutions.masking import masking_one_number as masked
from tinytx_course.exercises.card import as_html, as_text
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.exercises.comparing import Reading, token_pairs, tokens
from tinytx_course.exercises.observation import Failure
from tinytx_course.exercises.telling import describe_difference


def check(name, function):
    return course.check(name, function, display=False)


def test_the_row_shown_of_mask_tokens_holds_the_first_marked_cell():
    def late(token_ids, *rest):
        inputs, labels = masked(token_ids, *rest)
        if token_ids.shape[1] == 20:  # rows longer than what is shown
            for row in (2, 4):
                place = int((labels[row, 15:] == -100).nonzero()[0]) + 15
                labels[row, place] = 5 + (token_ids[row, place] - 4) % 55  # another id
        return inputs, labels

    assert check("mask_tokens", masked).passed
    found = check("mask_tokens", late)
    assert found.mistake == "wrong-labels"
    assert re.search(r"labels\[2\], positions 8 to 19\n.*\[\d+\]", found.message)
    assert "wrong at the marked positions: labels." in found.message


MASKING = [solution for solution in SOLUTIONS if solution.exercise == "mask_tokens"]


@pytest.mark.parametrize("solution", MASKING, ids=lambda solution: solution.name)
def test_every_row_shown_of_mask_tokens_has_a_mark_in_what_is_wrong(solution):
    message = check("mask_tokens", solution.function).message
    if "marked positions" in message:
        wrong = re.search(r"marked positions: (\w+)(?: and (\w+))?\.", message).groups()
        for name in filter(None, wrong):
            assert re.search(rf"{name}\[\d+\].*\n.*\[-?\d+\]", message), message


def test_of_two_results_the_one_that_differs_is_named():
    targets = check("shift_targets", lambda ids: (ids[:, :-1], ids[:, 1:] + 1)).message
    assert "In the result (inputs, targets), targets differ; inputs are as expected." in targets
    assert "targets: expected    targets: yours" in targets and "inputs: " not in targets
    inputs = check("shift_targets", lambda ids: (ids[:, :-1] + 1, ids[:, 1:])).message
    assert "inputs differ; targets are as expected" in inputs and "inputs: yours" in inputs
    both = check("shift_targets", lambda ids: (ids[:, 1:], ids[:, :-1])).message
    assert "inputs and targets differ." in both and "inputs: yours" in both and "targets: yours" in both


def test_a_shape_or_type_of_one_of_two_results_says_which():
    assert "The shape of targets should be" in check("shift_targets", lambda x: (x[:, :-1], x)).message
    floats = check("shift_targets", lambda ids: (ids[:, :-1], ids[:, 1:].float()))
    assert "Targets: Token ids are integers, got dtype torch.float32" in floats.message
    words = check("mask_tokens", lambda *arguments: ("a", arguments[0]))
    assert "Inputs: An integer tensor is due, got a str." in words.message


def grids(mine, due):
    readings = [Reading((torch.as_tensor(values, dtype=torch.float64),)) for values in (mine, due)]
    return as_text(describe_difference(*readings))


@pytest.mark.parametrize(("mine", "due"), [(1.00045, 1.0), (0.9995, 0.99995), (100.0, 100.04)])
def test_numbers_that_differ_look_different(mine, due):
    left, right = grids(mine, due).splitlines()[-1].split()
    assert left != right.strip("[]")


def test_a_number_near_one_is_not_shown_as_one():
    assert " 0.99995 " in grids([0.0, 0.99995], [0.5, 0.99995])
    assert " 1 " in grids([0.0, 1.0], [0.5, 1 - 1e-8])  # what float32 makes of 1


def test_backticks_become_code_in_a_card_and_stay_in_text():
    html = as_html("heading", ("use `a < b` here, a lone ` there",))
    assert "use <code>a &lt; b</code> here, a lone ` there" in html
    html = as_html("heading", ('Where to read: lesson 02, section "The causal mask".',))
    assert '<a href="02_attention_and_masks.ipynb#The-causal-mask">lesson 02, section' in html
    found = check("causal_mask", lambda n: torch.ones(n, n).tril())
    assert "`.bool()`" in found.message and "<code>.bool()</code>" in found._repr_html_()


RAW_ERRORS = [
    (lambda x: x @ x, "last but one"),
    (lambda x: x[None] @ x[None], "last but one"),
    (lambda x: max(0, x), "torch.maximum"),
    (lambda x: x.transpose(0, 1).view(-1), "reshape"),
    (lambda x: x - x.mean(dim=1), "keepdim"),
    (lambda x: x.view(4, 2), "as many numbers"),
    (lambda x: x.sum(dim=2), "fewer axes"),
    (lambda x: 1 - (x > 0), "mask"),
    (lambda x: x @ torch.ones(3, 2, dtype=torch.long), "kinds of numbers"),
    (lambda x: x.view(2, 6 / 2), "`//` gives"),
    (lambda x: x[: 4 / 2], "`//` gives"),
    (lambda x: nn.ReLU(x) @ x, "called then"),
    (lambda x: x[None] @ x.expand(4, 2, 3).T, "`.mT`"),
    (lambda x: x[5], "count from 0"),
    (lambda x: x[-5], "from the end"),
    (lambda x: x.gather(0, torch.full_like(x, -100).long()), "left out"),
    (lambda x: torch.nn.functional.cross_entropy(x[None], torch.zeros(1, 3).long()[:, :1]), "axis 1"),
]


@pytest.mark.parametrize(("function", "meant"), RAW_ERRORS)
def test_errors_of_torch_are_explained(function, meant):
    verdict = course.check("merge_heads", lambda context: function(torch.ones(2, 3)), display=False)
    assert verdict.mistake == "error" and meant in str(verdict)


N_HEADS = 2


def half_a_power(query, keys):
    return (keys @ query / len(query) ** 1 / 2).softmax(0)


def heads_from_outside(x, n_heads):
    return x.unflatten(-1, (N_HEADS, -1)).transpose(1, 2)


def fresh_layers(x, w_up, b_up, w_down, b_down):
    return nn.Linear(*w_down.shape)(nn.Linear(*w_up.shape)(x).relu())


def not_drawn(layer, rank):
    layer.requires_grad_(False)
    layer.lora_a = nn.Parameter(torch.empty(rank, layer.in_features))
    layer.lora_b = nn.Parameter(torch.zeros(layer.out_features, rank))
    return layer


def returns_on_one_way(tokens):
    if tokens:
        return "".join(tokens).replace("▁", " ")[1:]


def returns_what_append_returns(tokens):
    return [].append("".join(tokens))


def returns_within_only(tokens):
    def joined():
        return "".join(tokens)

    joined()


def a_tuple_of_one(seq_len):
    return (torch.ones(seq_len, seq_len).tril() > 0,)


@pytest.mark.parametrize(
    ("name", "function", "said"),
    [
        ("attention_row", half_a_power, "write `a ** 0.5`"),
        ("split_heads", heads_from_outside, "takes `N_HEADS` from outside"),
        ("feed_forward", fresh_layers, "`nn.Linear` draws"),
        ("lora_start", not_drawn, "`torch.empty` is not drawn"),
        ("decode_bpe", returns_on_one_way, "no `return` is reached"),
        ("decode_bpe", returns_what_append_returns, "give nothing back"),
        ("decode_bpe", returns_within_only, "its last line should `return`"),
        ("causal_mask", a_tuple_of_one, "a comma at the end"),
    ],
)
def test_what_the_source_shows_is_said(name, function, said):
    found = check(name, function)
    assert not found.passed and found.attempted and said in found.message


def test_a_right_power_is_no_slip_and_a_warning_is_no_print():
    assert (
        "`a **"
        not in check("attention_row", lambda query, keys: keys @ query * len(query) ** (-1 / 2)).message
    )

    def warns(seq_len):
        print("/tmp/x.py:3: UserWarning: the mask is old\n  line")
        return torch.ones(seq_len, seq_len).tril() > 0

    assert check("causal_mask", warns).message.endswith("Python warns, UserWarning: the mask is old")


def test_labels_of_mask_tokens_taken_from_an_input_changed_in_place_are_named():
    def mask_tokens(token_ids, mask_id, special_ids, vocab_size, p, generator):
        inputs, labels = EXERCISES["mask_tokens"].solve(
            token_ids, mask_id, special_ids, vocab_size, p, generator
        )
        token_ids.copy_(inputs)
        return token_ids, torch.where(labels != -100, token_ids, -100)

    verdict = check("mask_tokens", mask_tokens)
    assert verdict.mistake == "labels-are-new-ids" and "changed in place" in str(verdict)


def test_a_small_input_with_four_axes_is_spelled_out():
    assert "context[0][1] =" in check("head_contributions", lambda context, w_o: context.sum(1)).message


def test_an_error_on_every_input_is_an_error_though_wrong_programs_have_it_too():
    assert check("answer_loss", lambda *arguments: 1 // 0).mistake == "error"


def chrf_without_import(translation, reference):
    texts = ["".join(text.split()) for text in (translation, reference)]
    lengths = range(1, 1 + min(map(len, texts)))
    return sum(Counter(text[:n] for text in texts).total() for n in lengths)  # noqa: F821


def repeated_by_a_list_of_signs(train, test):
    seen, asked = (
        [re.sub("[-.,!?:;/'’«»…]", " ", one.lower()).split() for one in some] for some in (train, test)
    )
    return [place for place, text in enumerate(asked) if text in seen]


def attention_of_keys_to_keys(q, k, v, mask):
    return EXERCISES["grouped_query_attention"].solve(
        k.repeat_interleave(q.shape[1] // k.shape[1], 1), k, v, mask
    )


def start_with_capitals(layer, rank):
    layer.requires_grad_(False)
    layer.lora_A = nn.Parameter(torch.randn(rank, layer.in_features))
    layer.lora_B = nn.Parameter(torch.zeros(layer.out_features, rank))
    return layer


def search_with_a_beam_more(step, bos_id, eos_id, beam_size, max_len, length_penalty):
    return EXERCISES["beam_search"].solve(step, bos_id, eos_id, beam_size + 1, max_len, length_penalty)


@pytest.mark.parametrize(
    ("name", "function", "mistake"),
    [
        ("chrf", chrf_without_import, "error"),
        ("chrf", lambda translation, reference: 0.0, None),
        ("repeated_texts", repeated_by_a_list_of_signs, None),
        ("grouped_query_attention", attention_of_keys_to_keys, "wrong-shape"),
        ("lora_start", start_with_capitals, None),
        ("beam_search", search_with_a_beam_more, None),
    ],
)
def test_what_happens_to_look_like_a_known_mistake_does_not_get_its_name(name, function, mistake):
    verdict = check(name, function)
    assert not verdict.passed and verdict.mistake == mistake


def test_half_of_the_pairs_is_said_of_both_ways_to_lose_it():
    said = check("attention_flops", lambda n, d, h: 8 * n * d**2 + 2 * n**2 * d).message
    assert "they meet twice" in said and "a multiply-add counts as two" in said


def test_who_draws_alone_is_told_to_let_draw_choose():
    def generate(model, token_ids, n_new, max_len, draw):
        return [*token_ids, *torch.randint(5, (n_new,)).tolist()]

    assert "Let `draw` choose." in check("generate", generate).message


# ---- texts


@pytest.mark.parametrize(
    ("one", "other"),
    [(["ab"], ["a", "b"]), (["a"], ["a", ""]), ([""], []), (["é"], ["e\u0301"]), (["a", "b"], ["b", "a"])],
)
def test_lists_of_tokens_agree_only_when_they_are_equal(one, other):
    assert tokens(one).agrees_with(tokens(list(one))) and tokens(one).agrees_with(tokens(tuple(one)))
    assert not tokens(one).agrees_with(tokens(other))


def test_pairs_agree_only_when_each_half_does():
    due = [("l", "e"), ("le", "s")]
    assert token_pairs(due).agrees_with(token_pairs([["l", "e"], ["le", "s"]]))
    for other in (due[:1], due[::-1], [("l", "e"), ("l", "es")], []):
        assert not token_pairs(due).agrees_with(token_pairs(other))


@pytest.mark.parametrize(
    "value", [["le"], [("l", "e", "s")], [("l", 1)], "le", {("l", "e"): 1}, [[("l", "e"), 2]]]
)
def test_what_is_no_list_of_pairs_is_a_wrong_type(value):
    found = token_pairs(value)
    assert isinstance(found, Failure) and found.mistake == "wrong-type"


def test_a_message_shows_the_tokens_and_marks_those_that_differ():
    message = check("encode_bpe", lambda word, merges: list(word)).message
    assert "expected    yours" in message
    assert " le " in message and "[l]" in message and "[e]" in message


def test_a_dict_that_is_emptied_is_reported_and_restored_for_the_next_call():
    def emptied(words, n_merges):
        copied = dict(words)
        words.clear()
        return solution(copied, n_merges)

    solution = EXERCISES["learn_merges"].solve
    found = check("learn_merges", emptied)
    assert found.mistake == "input-modified" and "`words`" in found.message
