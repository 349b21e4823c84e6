"""Classes of texts: what the model says of each alone, in the order of the texts, by name."""

import pandas
import pytest
import torch

from tinytx.classifier import Classifier
from tinytx.transformer import LanguageModel
from tinytx_run.classify import Classification, classify

NAMES = ("mauvais", "moyen", "bon")
TEXTS = ["le chat mange la belle", "", "un chien", "la " * 40, " \t", "une belle", "le"]


@pytest.fixture
def model(config):
    torch.manual_seed(2)
    return Classifier(config, n_classes=3)  # in training mode, with dropout


@pytest.mark.parametrize("causal", [True, False])
def test_each_text_gets_the_softmax_of_its_own_logits_in_the_order_of_the_texts(config, tokenizer, causal):
    torch.manual_seed(2)
    model, lines = Classifier(config.replace(causal=causal, dropout=0.5), n_classes=3), []
    found = classify(model, tokenizer, TEXTS, NAMES, report=lines.append, first_line=11)
    assert model.training and [one.text for one in found] == TEXTS
    begin, end = ([tokenizer.bos_id], []) if causal else ([tokenizer.cls_id], [tokenizer.sep_id])
    model.eval()
    for one in found:
        if not one.text.strip():
            assert one == Classification(one.text, None, {}) and str(one) == ""
            continue
        ids = tokenizer.encode(one.text)[: config.max_len - len(begin + end)]  # as fine-tuning cuts it
        with torch.no_grad():
            expected = model(torch.tensor([[*begin, *ids, *end]]))[0].double().softmax(dim=-1)
        assert tuple(one.probabilities) == NAMES
        torch.testing.assert_close(torch.tensor([*one.probabilities.values()]).double(), expected)
        assert one.predicted == NAMES[int(expected.argmax())]
        assert str(one) == f"{one.predicted}\t{expected.max():.4f}"
    assert len(lines) == 1 and lines[0].startswith("line 14: ") and "24 tokens" in lines[0]


def test_texts_may_be_a_column_of_pandas_or_an_iterator(model, tokenizer):
    expected = [one.predicted for one in classify(model, tokenizer, TEXTS)]
    column = pandas.Series(TEXTS, index=range(len(TEXTS))[::-1])
    for texts in (column, iter(TEXTS), map(str, TEXTS), dict.fromkeys(TEXTS)):
        found = classify(model, tokenizer, texts, pandas.Series(NAMES, index=(2, 1, 0)))
        assert [one.text for one in found] == TEXTS
        assert [one.predicted and NAMES.index(one.predicted) for one in found] == expected


def test_without_names_classes_are_numbers(model, tokenizer):
    (one,) = classify(model, tokenizer, ["le chat"])
    assert list(one.probabilities) == [0, 1, 2] and one.predicted in (0, 1, 2)
    assert classify(model, tokenizer, []) == [] and classify(model, tokenizer, (" ",))[0].predicted is None
    assert classify(model, tokenizer, ["\u200b"])[0].predicted is None


def test_what_cannot_be_classified_is_refused(model, config, tokenizer):
    with pytest.raises(ValueError, match="needs a classifier, got a LanguageModel: .* finetune"):
        classify(LanguageModel(config), tokenizer, ["le"])
    with pytest.raises(ValueError, match="3 different words, one for each class, got .'bon', 'mauvais'"):
        classify(model, tokenizer, ["le"], ("bon", "mauvais", "bon "))
    with pytest.raises(TypeError, match="class_names must be a sequence of str, got one str"):
        classify(model, tokenizer, ["le"], "abc")
    with pytest.raises(TypeError, match="one str"):
        classify(model, tokenizer, "le chat")
    with pytest.raises(TypeError, match="texts must be str, got nan"):
        classify(model, tokenizer, ["le", float("nan")])
    other = Classifier(config.replace(vocab_size=31))
    with pytest.raises(ValueError, match="30 tokens and vocab_size=31"):
        classify(other, tokenizer, ["le"])
