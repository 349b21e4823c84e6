"""The live model: what the page computes, compared with torch, the tokenizer and the language."""

import numpy as np
import pytest
import torch

import tinytx as tx
import tinytx_course as course
from tests.course.widgets.conftest import changed, close
from tinytx.attention import record_attention
from tinytx.transformer import record_hidden_states
from tinytx_course.engine.shipped import shipped_model
from tinytx_course.widgets.live_model import next_tokens

REVIEW = tx.World().reviews(1, seed=4)[0].words
TEXTS = ["", "Bonjour les", " ".join(REVIEW[:12]), " ".join(REVIEW[:-1]), "Le chat dort", "日 x"]


@pytest.fixture(scope="module")
def shipped():
    return shipped_model()


def ids_of(shipped, text):
    return [shipped.tokenizer.bos_id, *shipped.tokenizer.encode(" ".join(tx.World().split(text)))]


def test_tokens_and_both_distributions_equal_pythons(node, shipped):
    expression = """(() => { const read = js.readText(get("text")), last = read.ids.length - 1;
      const truth = js.trueChances(read, last);
      return [read.ids, js.modelChances(read, last, get("temperature")), truth]; })()"""
    states = [{"text": text, "temperature": t} for text in TEXTS for t in (1.0, 0.3)]
    exactly = tx.World().through(shipped.tokenizer)
    n_true = 0
    for state, (ids, model, truth) in zip(states, node("live_model", expression, *states), strict=True):
        assert ids == ids_of(shipped, state["text"])
        logits = shipped.model(torch.tensor([ids]))[0, -1].detach().double() / state["temperature"]
        logits[[0, 1, 2, 4, 5, 6]] = -torch.inf
        close(model, logits.softmax(-1), atol=2e-5, rtol=1e-3)
        if truth is None:
            with pytest.raises(ValueError, match="review|piece"):
                exactly.next_token(ids)
        else:
            np.testing.assert_allclose(truth, exactly.next_token(ids), atol=1e-9)
            n_true += 1
    assert n_true == 8


def test_stream_heads_and_dot_product_equal_torch(node, shipped):
    text, back, distance, block, head = "Bonjour les amis, ce roman est", 1, 3, 1, 5
    state = {"text": text, "back": back, "distance": distance, "block": block, "head": head}
    expression = """(() => { const now = js.followed(get);
      return [js.stream(now).map(({ vector }) => vector), now.weights, now.q, now.k, now.dot, now.scaled,
        now.bias, js.stream(now).map(({ best, chance }) => [best, chance])]; })()"""
    ((stream, weights, q, k, dot, scaled, bias, says),) = node("live_model", expression, state)
    ids = torch.tensor([ids_of(shipped, text)])
    at = ids.shape[1] - 1 - back
    queries, keys = [], []
    attn = shipped.model.body.blocks[block].attn
    hooks = [
        proj.register_forward_hook(lambda module, args, output, into=into: into.append(output[0]))
        for proj, into in ((attn.q_proj, queries), (attn.k_proj, keys))
    ]
    with torch.no_grad(), record_hidden_states(shipped.model.body) as hidden:
        logits = shipped.model(ids)
    for hook in hooks:
        hook.remove()
    with torch.no_grad(), record_attention(shipped.model) as maps:
        shipped.model(ids)
    found = maps[f"body.blocks.{block}.attn"][0, head]
    close(weights, found[at, : at + 1], atol=1e-5, rtol=1e-4)
    part = slice(16 * head, 16 * head + 16)
    close(q, queries[0][at, part], atol=1e-4, rtol=1e-4)
    close(k, keys[0][at - distance, part], atol=1e-4, rtol=1e-4)
    assert dot == pytest.approx(float(queries[0][at, part] @ keys[0][at - distance, part]), abs=1e-3)
    assert scaled == pytest.approx(dot / 4) and bias == pytest.approx(-distance * 2 ** -(head + 1), abs=1e-4)
    close(stream[0], hidden[0][0, at], atol=1e-4, rtol=1e-4)
    close(stream[2], hidden[1][0, at], atol=1e-3, rtol=1e-3)
    last = logits[0, at].double()
    last[[0, 1, 2, 4, 5, 6]] = -torch.inf
    assert says[-1][0] == int(last.argmax())
    assert says[-1][1] == pytest.approx(float(last.softmax(-1).max()), abs=1e-4)


def test_every_state_is_said_in_numbers(describe):
    explorer = course.widgets.live_model
    first, head, product, strange, unknown, late = describe(
        explorer("Bonjour les"),
        changed(explorer("Bonjour les"), zoom=1, block=1, head=2),
        changed(explorer("Bonjour les"), zoom=2, distance=2),
        explorer("Bonjour le "),
        explorer("Mon chat"),
        explorer("Ce roman est " * 60),
    )
    assert (
        first.startswith("After 2 “les” ") and "\nResidual stream of 2 “les”: embedding would say “" in first
    )
    assert "“amis” model " in first and "truth 50.0%" in first
    assert head.startswith("Block 1, head 2: 2 “les” attends to ")
    assert product.startswith("Block 0, head 0: query of 2 “les” · key of 0 “(start)” = ")
    assert "added for the distance 2: −1.00; score " in product
    assert strange.startswith("The language never says “le” after “Bonjour”")
    assert unknown.startswith("The language has no word “Mon”") and "truth unknown" in unknown
    assert "it sees the last 127 of yours" in late


def test_the_summary_says_what_the_page_says(describe):
    explorer = changed(course.widgets.live_model("Bonjour les"), temperature=0.5)
    best, *_ = next_tokens("Bonjour les", 0.5)
    assert f"to “{best[0]}” the model gives {100 * best[1]:.1f}%, the language 50.0%" in explorer.summary()
    assert f"“{best[0]}” model {100 * best[1]:.1f}%, truth 50.0%" in describe(explorer)[0]
    assert "the language" not in course.widgets.live_model("Mon chat").summary().partition("temperature")[2]
    assert sum(model for _, model, _ in next_tokens("Bonjour")) == pytest.approx(1)


def test_appended_tokens_keep_what_was_typed_and_are_read_back(node, shipped):
    texts = ["Bonjour les", "Bonjour les ", "l'", "", "Mon  chat, ", "J'ai ador"]
    words = ["amis", ",", "roman", "!", "é"]
    ids = [shipped.tokenizer.encode(word)[0] for word in words[:-1]]
    ids.append(next(i for i in range(7, 2000) if shipped.tokenizer.piece(i) == "é"))
    expression = f"{ids}.map((id) => js.appended(get('text'), id))"
    for text, grown in zip(texts, node("live_model", expression, *({"text": t} for t in texts)), strict=True):
        assert all(one.startswith(text) for one in grown)
        for one, token, word in zip(grown[:-1], ids, words, strict=False):
            assert one.endswith(word) and ids_of(shipped, one)[-1] == token
        assert grown[-1] == text + "é"
