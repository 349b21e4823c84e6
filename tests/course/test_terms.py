"""The glossary: complete, short, linked from pages once and nowhere where a link disturbs."""

import re

import pytest

import tinytx_course as course
from tests.course.test_sources import cells_of
from tinytx_course.lessons import LESSONS
from tinytx_course.site.linking import Linker
from tinytx_course.terms import terms

# The standard terms that the course's own style asks for.
STANDARD = """
position; hidden state; attention head; output layer; residual stream; pre-norm; post-norm;
backbone; autoregressive; next-token prediction; teacher forcing; hyperparameter; learning rate;
gradient accumulation; micro-batch; batch; deterministic; reproducible; atomic write; checkpoint;
resume; checksum; baseline; ablation; control; cross-validation; fold; held out; confidence
interval; paired difference; entropy bound; KL divergence; token; subword; vocabulary; merge; linear
layer; weight matrix; projection; attends to; masked out; query; key; memory; feed-forward layer;
block; logits; attention scores; attention weights; embedding; layer normalisation; causal mask;
padding mask; special token; warm-up; parameter; token id
"""

# Terms of the literature for what their lesson says in other words: <unk>, [MASK], -inf, patch, both sides.
IN_OTHER_WORDS = """
token id; unigram tokenizer; unknown token; masked out; attention scores; additive mask; tied embeddings;
transfer learning; mask token; bidirectional; ignore index; activation patching
"""


def listed(names):
    return " ".join(names.split()).split("; ")


@pytest.mark.parametrize("name", listed(STANDARD))
def test_every_standard_term_is_explained(name):
    assert name in terms()


@pytest.mark.parametrize("term", terms().values(), ids=lambda term: term.name)
def test_a_term_has_one_short_sentence(term):
    assert term.sentence[0].isupper() or term.sentence.startswith("-"), term.sentence
    assert term.sentence.endswith(".") and ". " not in term.sentence
    assert 4 <= len(term.sentence.split()) < 30


@pytest.mark.parametrize("name", sorted(terms().keys() - {*listed(IN_OTHER_WORDS)}))
def test_a_term_is_written_in_the_lesson_that_is_named(name):
    term = terms()[name]
    written = "|".join(re.escape(form) for form in (term.name, *term.forms))
    text = " ".join(cell.source for cell in cells_of(LESSONS[term.lesson])).replace("\n", " ")
    assert re.search(rf"\b({written})", text, re.IGNORECASE)


def test_no_two_terms_share_an_anchor_or_a_form():
    anchors = [term.anchor for term in terms().values()]
    forms = [form.lower() for term in terms().values() for form in term.forms]
    assert len(set(anchors)) == len(anchors) and len(set(forms)) == len(forms)
    assert not [form for form in forms if f"{form}s" in forms]  # plurals are linked anyway


def test_in_a_notebook_it_is_folded_and_elsewhere_text():
    shown = course.glossary()
    assert shown._repr_html_().count("<details>") == 2 and "id=" not in shown._repr_html_()
    assert all(f"{term.name} (lesson {term.lesson:02d}): " in repr(shown) for term in terms().values())
    assert "<td><code>num_attention_heads, n_head</code></td>" in shown._repr_html_()


def names_linked(markup):
    return re.findall(r'<a class="term" href="glossary.html#([^"]+)" title="[^"]+">([^<]+)</a>', markup)


def test_the_first_occurrence_in_a_page_is_linked_and_no_other():
    linker = Linker()
    first = linker.link("<h2>One</h2><p>A causal mask, and <b>causal masks</b>.</p>")
    second = linker.link("<p>The causal mask again; a Token.</p><h3>x</h3><p>tokens</p>")
    third = linker.link("<h2>Two</h2><p>A causal mask; softmax.</p>")
    assert names_linked(first) == [("causal-mask", "causal mask")]
    assert names_linked(second) == [("token", "Token")]
    assert names_linked(third) == [("softmax", "softmax")]


@pytest.mark.parametrize("tag", ["code", "pre", "h2", "h3", "a", "math", "summary"])
def test_nothing_is_linked_where_a_link_disturbs(tag):
    part = f"<{tag}>the <i>causal mask</i></{tag}> &amp; <br/> <!-- softmax --> &#228;"
    assert Linker().link(part) == part
    assert len(names_linked(Linker().link(f"{part} a causal mask"))) == 1


def test_a_term_is_a_whole_word_and_the_longest_wins():
    assert names_linked(Linker().link("tokenless, pre-token, multi-head attention")) == [
        ("multi-head-attention", "multi-head attention")
    ]
