"""The live model: what the page computes, compared with torch, the tokenizer and the language."""

import re

import numpy as np
import pytest

import tinytx_course as course
from tests.course.widgets.conftest import changed, close
from tinytx.attention import record_attention
from tinytx.transformer import record_hidden_states
from tinytx_course.widgets.live_model import next_tokens


def test_tokens_and_both_distributions_equal_pythons(node, live):
    expression = """(() => { const read = js.readText(get("text")), last = read.ids.length - 1;
      const truth = js.trueChances(read, last);
      return [read.ids, js.modelChances(read, last, get("temperature")), truth]; })()"""
    words = live.world.reviews(1, seed=4)[0].words
    texts = ["", "Bonjour les", " ".join(words[:12]), " ".join(words[:-1]), "Le chat dort", "日 x"]
    states = [{"text": text, "temperature": t} for text in texts for t in (1.0, 0.3)]
    n_true = 0
    for state, (ids, model, truth) in zip(states, node("live_model", expression, *states), strict=True):
        assert ids == live.ids(state["text"])
        close(model, (live.logits(ids)[-1] / state["temperature"]).softmax(-1), atol=2e-5, rtol=1e-3)
        if truth is None:
            with pytest.raises(ValueError, match="review|piece"):
                live.exactly.next_token(ids)
        else:
            np.testing.assert_allclose(truth, live.exactly.next_token(ids), atol=1e-9)
            n_true += 1
    assert n_true == 8


def test_stream_heads_and_dot_product_equal_torch(node, live):
    text, back, distance, block, head = "Bonjour les amis, ce roman est", 1, 3, 1, 5
    state = {"text": text, "back": back, "distance": distance, "block": block, "head": head}
    expression = """(() => { const now = js.followed(get);
      return [js.stream(now).map(({ vector }) => vector), now.weights, now.q, now.k, now.dot, now.scaled,
        now.bias, js.stream(now).map(({ best, chance }) => [best, chance])]; })()"""
    ((stream, weights, q, k, dot, scaled, bias, says),) = node("live_model", expression, state)
    ids, body, found = live.ids(text), live.model.body, {}
    at = len(ids) - 1 - back
    attn = body.blocks[block].attn
    hooks = [
        proj.register_forward_hook(lambda module, args, output, name=name: found.update({name: output[0]}))
        for proj, name in ((attn.q_proj, "q"), (attn.k_proj, "k"))
    ]
    with record_hidden_states(body) as hidden:
        says_torch = live.logits(ids)[at].softmax(-1)
    for hook in hooks:
        hook.remove()
    with record_attention(live.model) as maps:
        live.logits(ids)
    close(weights, maps[f"body.blocks.{block}.attn"][0, head][at, : at + 1], atol=1e-5, rtol=1e-4)
    part = slice(16 * head, 16 * head + 16)
    query, key = found["q"][at, part], found["k"][at - distance, part]
    close(q, query, atol=1e-4, rtol=1e-4)
    close(k, key, atol=1e-4, rtol=1e-4)
    assert dot == pytest.approx(float(query @ key), abs=1e-3)
    assert scaled == pytest.approx(dot / 4) and bias == pytest.approx(-distance * 2 ** -(head + 1), abs=1e-4)
    close(stream[0], hidden[0][0, at], atol=1e-4, rtol=1e-4)
    close(stream[2], hidden[1][0, at], atol=1e-3, rtol=1e-3)
    assert says[-1] == [int(says_torch.argmax()), pytest.approx(float(says_torch.max()), abs=1e-4)]


def test_every_state_is_said_in_numbers(describe):
    explorer = course.widgets.live_model
    first, head, product, embedding, hidden, output, strange, unknown, late = describe(
        explorer("Bonjour les"),
        changed(explorer("Bonjour les"), part="head", block=1, head=2),
        changed(explorer("Bonjour les"), part="head", distance=2),
        *(changed(explorer("Bonjour les"), part=part) for part in ("embedding", "feed_forward", "output")),
        explorer("Bonjour le "),
        explorer("Mon chat"),
        explorer("Ce roman est " * 60),
    )
    plain = r"After “Bonjour les” the model gives “(\w+)” \d+% and “(\w+)” \d+%; the grammar gives "
    plain += r"50% and 50%\."
    assert set(re.match(f"{plain}\nAfter token 2 ", first).groups()) == {"amis", "lecteurs"}
    assert "Residual stream of 2 “les”: embedding would say “" in first
    for opened in (head, product, embedding, hidden, output):  # numbers of the inside are folded
        assert re.fullmatch(
            plain + r" [^.:]*(: .* attends to [^.]*|: \d+ of 512 activations above 0)?\.",
            opened.partition("\n")[0],
        )
    assert "“amis” model " in first and "truth 50.0%" in first
    assert "\nBlock 1, head 2: 2 “les” attends to " in head
    assert "; query of 2 “les” · key of 0 “(start)”: " in product
    assert "added for a distance of 2: −1.00; score: " in product
    assert "row of the embedding matrix: " in embedding and "multiplied by √D: 11.31." in embedding
    assert "residual stream after: would say “" in hidden
    assert "; logit of “lecteurs”: " in output and "; softmax at temperature 1.0: " in output
    assert strange.startswith("The grammar never has “le” after “Bonjour”: from there on")
    assert unknown.startswith("“Mon” is not in the small French of this model, which reads it in ")
    assert "truth unknown" in unknown
    assert "it sees the last 127 of yours" in late


def test_the_summary_says_what_the_page_says(describe):
    explorer = changed(course.widgets.live_model("Bonjour les"), temperature=0.5)
    best, *_ = next_tokens("Bonjour les", 0.5)
    assert f"to “{best[0]}” the model gives {100 * best[1]:.1f}%, the language 50.0%" in explorer.summary()
    assert f"“{best[0]}” model {100 * best[1]:.1f}%, truth 50.0%" in describe(explorer)[0]
    assert "the language" not in course.widgets.live_model("Mon chat").summary().partition("temperature")[2]
    assert sum(model for _, model, _ in next_tokens("Bonjour")) == pytest.approx(1)


def test_appended_tokens_keep_what_was_typed_and_are_read_back(node, live):
    texts = ["Bonjour les", "Bonjour les ", "l'", "", "Mon  chat, ", "J'ai ador"]
    words = ["amis", ",", "roman", "!", "é"]
    ids = [live.tokenizer.encode(word)[0] for word in words[:-1]]
    ids.append(next(i for i in range(7, 2000) if live.tokenizer.piece(i) == "é"))
    expression = f"{ids}.map((id) => js.appended(get('text'), id))"
    for text, grown in zip(texts, node("live_model", expression, *({"text": t} for t in texts)), strict=True):
        assert all(one.startswith(text) for one in grown)
        for one, token, word in zip(grown[:-1], ids, words, strict=False):
            assert one.endswith(word) and live.ids(one)[-1] == token
        assert grown[-1] == text + "é"
