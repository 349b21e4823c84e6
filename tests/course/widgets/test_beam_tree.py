"""The beam tree: its best hypotheses compared with the search of the package, its sums with the model."""

import pytest
import torch

import tinytx as tx
import tinytx_course as course
from tests.course.widgets.conftest import changed
from tinytx.training.beam import Search
from tinytx.training.translate import translate_ids
from tinytx_course.widgets.beam_tree import PENALTIES, search_tree
from tinytx_course.widgets.fill_blank import shown

TEXTS = ["The book is short.", "The novel is good."]


@pytest.fixture(scope="module")
def tokenizer(world):
    return tx.Tokenizer.train([text for pair in world.pairs(300, seed=0) for text in pair], vocab_size=200)


@pytest.fixture(scope="module")
def model(tokenizer):
    torch.manual_seed(0)
    model = tx.Translator(tx.PRESETS["tiny"].replace(vocab_size=tokenizer.vocab_size, head_bias=True)).eval()
    with torch.no_grad():
        model.head.bias[tokenizer.eos_id] = 2.5  # some hypotheses end
    return model


@pytest.fixture(scope="module")
def explorer(model, tokenizer):
    return course.widgets.beam_tree(model, tokenizer, TEXTS)


def test_the_best_hypothesis_is_that_of_the_package_for_every_beam_and_penalty(
    node, explorer, model, tokenizer
):
    for penalty in PENALTIES:
        for size in (1, 2, 3, 4):
            search = Search(beam_size=size, length_penalty=penalty)
            expected = translate_ids(model, tokenizer.encode_batch(TEXTS), search=search, tokenizer=tokenizer)
            states = [explorer.state() | {"source": i, "beam_size": size} for i in (0, 1)]
            best = node("beam_tree", f"js.winner(js.treeOf(get), Infinity, {penalty})", *states)
            for (path, log_prob, score, _), hypothesis in zip(best, expected, strict=True):
                assert path == [shown(tokenizer, i) for i in hypothesis.token_ids]
                assert log_prob == pytest.approx(hypothesis.log_prob, abs=1e-3)
                assert score == pytest.approx(hypothesis.score(penalty), abs=1e-3)


def test_each_step_extends_what_the_step_before_kept_and_prunes_only_what_is_worse(model, tokenizer):
    fates = set()
    for size in (1, 2, 3, 4):
        steps = search_tree(model, tokenizer, TEXTS[0], size)
        for before, nodes in zip([None, *steps], steps, strict=False):
            log_probs = [log_prob for _, _, log_prob, _ in nodes]
            assert log_probs == sorted(log_probs, reverse=True) and len(nodes) == size + 3
            assert sum(fate != "pruned" for *_, fate in nodes) == size
            fates |= {fate for *_, fate in nodes}
            for parent, _, log_prob, _ in nodes if before else []:
                assert before[parent][3] == "kept" and log_prob <= before[parent][2]
    assert {"kept", "pruned", "finished"} <= fates


def test_sums_are_those_of_the_model(model, tokenizer):
    steps = search_tree(model, tokenizer, TEXTS[1], 2)
    path, (_, _, total, _) = [], steps[1][0]
    at = 0
    for nodes in (steps[1], steps[0]):
        path.insert(0, nodes[at][1])
        at = nodes[at][0]
    source = torch.tensor([[*tokenizer.encode(TEXTS[1]), tokenizer.eos_id]])
    with torch.no_grad():
        logits = model(source, torch.tensor([[tokenizer.bos_id, path[0]]]))[0]
    special = {tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id}
    logits[:, [*special, tokenizer.mask_id, tokenizer.cls_id, tokenizer.sep_id]] = -torch.inf
    log_probs = logits.double().log_softmax(-1)
    assert total == pytest.approx(float(log_probs[0, path[0]] + log_probs[1, path[1]]), abs=1e-4)


def test_with_a_beam_of_one_greedy_is_the_kept_path(node, explorer):
    state = explorer.state() | {"beam_size": 1}
    (marks,) = node(
        "beam_tree",
        "js.treeOf(get).map((nodes, step) => nodes.map((_, i) => js.onGreedy(get)(step, i)))",
        state,
    )
    assert all(row == [True] + [False] * 3 for row in marks)


def test_what_is_said_counts_what_the_step_did(describe, explorer):
    (text,) = describe(changed(explorer, step=1, beam_size=3, source=0))
    fates = [fate for *_, fate in explorer.trees[0][2][0]]
    assert text.startswith(f"Beam size 3, step 1 of {len(explorer.trees[0][2])}: {fates.count('kept')} kept")
    assert f"log P {explorer.trees[0][2][0][0][2]:.2f}".replace("-", "−") in text


def test_it_opens_where_the_beam_is_ahead_most(node, explorer):
    ((leads, gains),) = node(
        "beam_tree",
        "[get('trees').map((trees, i) => trees[1].map((_, n) => js.leadOf(get, n + 1, i))), js.gains(get)]",
        explorer.state(),
    )
    assert explorer.source == max(range(len(TEXTS)), key=lambda i: (gains[i]["end"], gains[i]["most"]))
    way = leads[explorer.source]
    assert explorer.step == min(1 + way.index(max(way)), len(way) - 1)


def test_the_lead_of_the_beam_at_the_end_is_that_of_the_winners(node, explorer):
    ((gains, sums),) = node(
        "beam_tree",
        "[js.gains(get),"
        " get('trees').map((trees) => [1, 0].map((i) => js.winner(trees[i], Infinity, 1)[1]))]",
        explorer.state(),
    )
    for each, (beam, greedy) in zip(gains, sums, strict=True):
        assert each["end"] == pytest.approx(beam - greedy) and each["most"] >= each["end"] - 1e-9


def test_what_does_not_fit_is_refused(model, tokenizer):
    with pytest.raises(ValueError, match="1 to 6 texts"):
        course.widgets.beam_tree(model, tokenizer, [])
    with pytest.raises(ValueError, match=r"beam_size .* 1\.\.4, got 5"):
        course.widgets.beam_tree(model, tokenizer, TEXTS, beam_size=5)
