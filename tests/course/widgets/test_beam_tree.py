"""The beam tree: its best hypotheses compared with the search of the package, its sums with the model."""

import pytest

import tinytx_course as course
from tests.tinytx.test_beam import by_table
from tinytx.beam import Search, beam_search
from tinytx.translate import translate_ids
from tinytx_course.widgets.beam_tree import PENALTIES, search_tree
from tinytx_course.widgets.fill_blank import shown

TEXTS = ["The book is short.", "The novel is good."]
GREEDY = [[[0, "un", -1, "kept"]], [[0, "(the end)", -2, "finished"]]]
WIDE = [
    [[0, "un", -1, "kept"], [0, "d", -1.2, "kept"]],
    [[1, "-eux", -1.5, "finished"], [0, "(the end)", -2, "finished"]],
]
DEUX = {"trees": [[GREEDY, WIDE]], "source": 0, "beam_size": 2, "step": 2, "length_penalty": 1}


@pytest.fixture(scope="module")
def model(translator, tokenizer):
    translator.head.bias.data[tokenizer.eos_id] = 2.5  # some hypotheses end
    return translator


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
            for (path, log_prob, score, *_), hypothesis in zip(best, expected, strict=True):
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


def test_with_a_beam_of_one_greedy_is_the_kept_path(node, explorer):
    state = explorer.state() | {"beam_size": 1}
    expression = "js.treeOf(get).map((nodes, step) => nodes.map((_, i) => js.onGreedy(get)(step, i)))"
    (marks,) = node("beam_tree", expression, state)
    assert all(row == [True] + [False] * 3 for row in marks)


def test_what_is_said_counts_what_the_step_did_and_reads_the_best(node, explorer):
    state = explorer.state() | {"step": 1, "beam_size": 3, "source": 0}
    tree = explorer.trees[0][2]
    (text,) = node("beam_tree", "js.describe(get)", state)
    fates = [fate for *_, fate in tree[0]]
    assert text.startswith(f"Step 1 of {len(tree)}: the best of 3 beams is “")
    kept = [f" {p:.2f}".replace("-", "−") for *_, p, fate in tree[0] if fate == "kept"]
    assert f"At this step kept {len(kept)}: “" in text and all(p in text for p in kept)
    assert f"pruned {fates.count('pruned')}: “" in text
    assert f"log P {tree[0][0][2]:.2f}".replace("-", "−") in text
    expression = "[js.describe(get), js.winner(js.treeOf(get), Infinity, 1)[1]]"
    ((text, log_prob),) = node("beam_tree", expression, state | {"step": len(tree)})
    finding = text.split("\n")[0]
    assert (
        f": the best of 3 beams is “{finding.split('“')[1].split('”')[0]}”, log P −{-log_prob:.2f}" in finding
    )
    assert "reference" not in finding  # none is given


def test_the_end_is_compared_with_the_reference_where_there_is_one(node):
    said = {"deux": "Only that of the beam is", "un": "Only that of greedy decoding is"}
    said["trois"] = "Neither is"
    texts = node("beam_tree", "js.describe(get)", *(DEUX | {"references": [right]} for right in said))
    for text, end in zip(texts, said.values(), strict=True):
        assert text.split("\n")[0].endswith(f"{end} the reference.")
    assert texts[0].startswith(
        "Step 2 of 2: the best of 2 beams is “deux”, log P −1.50; greedy decoding has “un”, −2.00. "
    )
    assert " Beam is ahead by 0.50 nats." in texts[0]
    (alone,) = node("beam_tree", "js.describe(get)", DEUX | {"references": ["un"], "beam_size": 1})
    assert alone.split("\n")[0].endswith("log P −2.00. It is the reference.")


def candidates(*ends):
    """A state whose beam of two has ended with these texts, lengths and log-probabilities."""
    tree = [[[0, text, p / 2, "kept"] for text, _, p in ends]]
    for length in range(2, max(length for _, length, _ in ends) + 1):
        fates = ["finished" if length == end else "kept" if length < end else None for _, end, _ in ends]
        tree.append([[i, "(the end)", ends[i][2], fate] for i, fate in enumerate(fates) if fate])
    return {"trees": [[tree, tree]], "source": 0, "beam_size": 2, "step": 99, "length_penalty": 1}


def test_what_the_length_penalty_decides_is_said_as_it_is(node):
    states = [
        candidates(("kurz", 2, -2.0), ("lang", 2, -3.0)),
        candidates(("kurz", 2, -2.0), ("lang", 3, -2.5)),
        candidates(("kurz", 2, -2.0), ("lang", 3, -4.0)),
        candidates(("kurz", 2, -3.0), ("lang", 3, -2.0)),
    ]
    answers = node("beam_tree", "[js.decides(get, 1), js.decides(get, 99)]", *states)
    assert {before.split(":")[0] for before, _ in answers} == {"Nothing has ended yet"}
    assert [text for _, text in answers] == [
        "The same with every length penalty: all 2 that ended have 2 tokens.",
        "The length penalty decides: 0 and 0.5: “kurz” (2 tokens); 1: “lang” (3 tokens).",
        "Penalties 0, 0.5 and 1 agree: above 1.71, “lang” (3 tokens) would win.",
        "Penalties 0, 0.5 and 1 agree: none that ended is longer.",
    ]
    (ranks,) = node("beam_tree", "js.ended(get, 99)", states[1])
    assert [rank["text"] for rank in ranks] == ["lang", "kurz"]
    assert ranks[0]["scores"] == pytest.approx([-2.5, -2.5 / 3**0.5, -2.5 / 3])


def test_the_table_of_the_lesson_is_searched_as_the_package_searches_it(node, explorer):
    words = ["la", "le", "chat", "nuit", "noir", "(the end)"]
    after = {
        (): {"la": 0.5, "le": 0.4, "(the end)": 0.1},
        ("la",): {"chat": 0.4, "nuit": 0.3, "(the end)": 0.3},
        ("le",): {"chat": 0.9, "nuit": 0.05, "(the end)": 0.05},
        ("la", "chat"): {"(the end)": 0.6, "noir": 0.4},
        ("le", "chat"): {"(the end)": 0.52, "noir": 0.48},
    }
    table = {
        tuple(map(words.index, path)): [chances.get(word, 0.0) for word in words]
        for path, chances in after.items()
    }
    explorer.source = len(TEXTS)
    assert "The tiny model of the lesson, beam size 2." in explorer.summary()
    state = explorer.state()
    explorer.source = 0
    found = set()
    for size in (1, 2, 3, 4):
        for penalty in PENALTIES:
            search = Search(beam_size=size, length_penalty=penalty)
            steps = by_table(table, otherwise=[0.0] * 5 + [1.0])
            (best,) = beam_search(steps, [9], bos_id=9, eos_id=5, search=search)
            expression = f"js.winner(js.treeOf(get), Infinity, {penalty})"
            ((path, log_prob, *_),) = node("beam_tree", expression, state | {"beam_size": size})
            assert path == [words[i] for i in best.token_ids]
            assert log_prob == pytest.approx(best.log_prob, abs=1e-4)
            found.add(" ".join(path))
    assert found == {"la chat (the end)", "le chat (the end)", "le chat noir (the end)"}
    (text,) = node("beam_tree", "js.decides(get, 99)", state)
    decided = "0: “le chat” (3 tokens); 0.5 and 1: “le chat noir” (4 tokens)."
    assert text == f"The length penalty decides: {decided}"
    (text,) = node("beam_tree", "js.describe(get)", state | {"step": 4})
    assert text.startswith("Step 4 of 4: the best of 2 beams is “le chat noir”, log P −1.76; greedy decoding")
    assert " has “la chat”, −2.12." in text
    assert text.split("\n")[0].endswith(" The length penalty decides.")


def test_the_thick_way_is_the_best_and_greedy_decoding_leaves_it_where_they_differ(node):
    (ways,) = node("beam_tree", "[1, 2].map((n) => js.bestWay(get, n))", DEUX)
    assert ways == [{"way": [0], "split": -1}, {"way": [1, 0], "split": 0}]


def test_what_nothing_goes_on_from_is_faint_and_a_word_begins_with_no_mark(node):
    tree = [[[0, "a", -1, "kept"], [0, "b", -2, "kept"]], [[0, "c", -2, "kept"], [0, "d", -3, "pruned"]]]
    assert node("beam_tree", f"js.aliveAt({tree}, 2)", DEUX) == [[[True, False], [True, False]]]
    odd = DEUX | {"trees": [[[[[0, "-'", -1, "finished"]]]] * 2]}
    assert node("beam_tree", "js.ended(get, 1)[0].text", odd) == ["'"]


def test_it_opens_with_the_sentence_where_the_beam_wins_most(node, explorer):
    ways = "js.treeOf(get).map((_, i) => js.leadOf(get, i + 1))"
    states = [explorer.state() | {"source": i} for i in range(len(TEXTS))]
    gains = node("beam_tree", f"[js.leadOf(get, Infinity), Math.max(...{ways})]", *states)
    assert explorer.source == max(range(len(TEXTS)), key=lambda i: gains[i])


def test_what_does_not_fit_is_refused(explorer, model, tokenizer):
    with pytest.raises(ValueError, match="1 to 6 texts"):
        course.widgets.beam_tree(model, tokenizer, [])
    with pytest.raises(ValueError, match="one for each of 2 sources, got 1"):
        course.widgets.beam_tree(model, tokenizer, TEXTS, references=["Le livre est court."])
    with pytest.raises(ValueError, match=r"beam_size .* 1\.\.4, got 5"):
        explorer.beam_size = 5
