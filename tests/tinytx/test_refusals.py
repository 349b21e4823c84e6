"""Input that would give wrong numbers in silence, or an error of torch, is refused in words."""

import math

import pytest
import torch

from tinytx.attention import attention
from tinytx.batching import PackedSequences, chunks, pad_batch
from tinytx.beam import Search
from tinytx.bpe import learn_merges
from tinytx.classifier import Classifier, pool
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.fast import dropout, output_loss
from tinytx.generate import Sampling, continue_rows, next_token_probs
from tinytx.inference import in_blocks
from tinytx.kv_cache import Cache
from tinytx.lora import add_lora, merge_lora
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.masking import mask_tokens
from tinytx.ngrams import NGramModel
from tinytx.optim import make_optimizer
from tinytx.positions import rotate
from tinytx.settings import TrainingSettings
from tinytx.transformer import LanguageModel, Transformer
from tinytx_run.splits import Split, TextHashes

CONFIG = TransformerConfig(vocab_size=13, d_model=12, n_heads=3, n_layers=2, d_ff=14, max_len=9)
IDS = torch.tensor([[5, 8, 2, 9], [7, 7, 1, 3]])
SETTINGS = {"n_steps": 3}
MASKING = {"mask_id": 4, "special_ids": [0], "vocab_size": 9}


def filled_cache(n_rows):
    model, cache = LanguageModel(CONFIG).eval(), Cache(CONFIG.n_layers, max_len=9)
    with torch.no_grad():
        model(IDS[:, :2], cache=cache)
        return model(IDS[:1].repeat(n_rows, 1)[:, 2:3], cache=cache)


def merged():
    model = LanguageModel(CONFIG)
    add_lora(model)
    merge_lora(model)
    return make_optimizer(model, TrainingSettings(n_steps=1))


BAD = [
    (lambda: TrainingSettings(**SETTINGS, betas=(0.9,)), "betas must be two numbers"),
    (lambda: TrainingSettings(n_steps=True), "n_steps must be an integer, got True"),
    (lambda: TrainingSettings(**SETTINGS, betas=0.9), "betas must be two numbers .* got 0.9"),
    (lambda: TrainingSettings(**SETTINGS, lr="1e-3"), "lr must be positive and finite, got '1e-3'"),
    (lambda: TrainingSettings(**SETTINGS, clip_norm=None), "clip_norm must be positive .* got None"),
    (lambda: TrainingSettings(**SETTINGS, weight_decay="0.1"), "weight_decay must be a finite .* got '0.1'"),
    (lambda: TrainingSettings(**SETTINGS, weight_decay=math.inf), "weight_decay must be a finite .* got inf"),
    (lambda: TrainingSettings(**SETTINGS, seed=True), "seed must be an integer, got True"),
    (lambda: Sampling(max_new_tokens=None), "max_new_tokens must be an integer, got None"),
    (lambda: Sampling(temperature="1"), "temperature must be positive.* got '1'"),
    (lambda: Sampling(top_k=2.5), "top_k must be an integer, got 2.5"),
    (lambda: Search(max_factor=None), "max_factor must be a finite number, at least 0, got None"),
    (lambda: Search(length_penalty=300.0), "length_penalty must lie between -50 and 50, got 300"),
    (lambda: next_token_probs(torch.full((2, 3), -torch.inf)), "logits must have a finite maximum"),
    (lambda: next_token_probs(torch.tensor([1.0, math.nan])), "logits must have a finite maximum"),
    (lambda: continue_rows(LanguageModel(CONFIG), [], eos_id=3), "at least one id .* got no prefix"),
    (lambda: list(in_blocks(list, ["a"], 0)), "lines_per_block must be at least 1, got 0"),
    (lambda: MaskedLanguageModel(CONFIG).loss(IDS, IDS[:, :3]), r"targets .* \(2, 4\), got \(2, 3\)"),
    (lambda: MaskedLanguageModel(CONFIG).loss(IDS, IDS[:1]), r"targets must have .* \(2, 4\), got \(1, 4\)"),
    (lambda: Classifier(CONFIG.replace(dropout=0.5), body=Transformer(CONFIG)), "body must have the config"),
    (lambda: Classifier(CONFIG).loss(IDS, torch.tensor([1, -100])), "labels must be from 0 to 1, got -100"),
    (lambda: Classifier(CONFIG).loss(IDS, torch.tensor([0.9, 1.2])), "integers, got torch.float32"),
    (lambda: Classifier(CONFIG).loss(IDS, [0, 1]), "labels must be a tensor of integers, got a list"),
    (lambda: pool(torch.randn(2, 3, 4), None, "max"), "pooling must be one of"),
    (lambda: filled_cache(1), r"rows and heads of the cache, \(2, 3\), got \(1, 3\)"),
    (lambda: filled_cache(3), r"rows and heads of the cache, \(2, 3\), got \(3, 3\)"),
    (lambda: LanguageModel(CONFIG)(IDS, cache=Cache(2, 9)), "a cache must be filled without gradients"),
    (merged, "a parameter that needs a gradient to be trained, got all frozen"),
    (lambda: mask_tokens(IDS, **MASKING, p="15"), r"p must lie in \[0, 1\], got '15'"),
    (lambda: mask_tokens(IDS, **MASKING, p=15), r"p must lie in \[0, 1\], got 15"),
    (lambda: mask_tokens(IDS, **MASKING, p=math.nan), r"p must lie in \[0, 1\], got nan"),
    (lambda: learn_merges("le chat", 2), "texts must be a sequence of str, got one str"),
    (lambda: learn_merges(["le chat"], -1), "n_merges must be at least 0, got -1"),
    (lambda: Split("le chat"), "texts must be a sequence of str, got one str"),
    (lambda: TextHashes.of("le chat"), "texts must be a sequence of str, got one str"),
    (lambda: pad_batch([[1.7, 2.2]], 0), "ids must be integers, got float64"),
    (lambda: PackedSequences([[1.7]], 0), "ids must be integers, got float64"),
    (lambda: PackedSequences([], 0), "sequences must hold at least one sequence, got none"),
    (lambda: chunks([1, 2, 3], 0), "max_len must be at least 1, got 0"),
    (lambda: NGramModel(order=2, vocab_size=9).fit([[1.5, 2]]), "float"),
    (lambda: rotate(torch.randn(4)), r"x must have at least 2 axes, got shape \(4,\)"),
    (lambda: rotate(torch.tensor([[3, 4], [3, 4]])), "x must hold real numbers, got torch.int64"),
    (lambda: attention(*torch.randn(3, 2, 4), bias=0.5), "bias must be a tensor .* got a float"),
    (lambda: dropout(torch.ones(3), -0.1), r"p must lie in \[0, 1\), got -0.1"),
    (lambda: dropout(torch.ones(3), 1.0), r"p must lie in \[0, 1\), got 1.0"),
    (lambda: output_loss(torch.randn(2, 3), torch.randn(5, 3), torch.rand(2)), "targets must be integers"),
    (lambda: Translator(CONFIG)(IDS, [[1]]), "token_ids must be a tensor of int32 or int64, got a list"),
]


@pytest.mark.parametrize(("call", "words"), BAD, ids=[words[:40] for _, words in BAD])
def test_what_would_pass_in_silence_is_refused(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_narrow_integers_are_taken():
    narrow = IDS.to(torch.uint8)
    _, labels = mask_tokens(narrow, **MASKING, p=0.5, generator=torch.Generator().manual_seed(0))
    assert set(labels.unique().tolist()) <= {-100, *IDS.unique().tolist()}
    hidden, weight = torch.randn(2, 3), torch.randn(5, 3)
    few, many = (
        output_loss(hidden, weight, torch.tensor([4, 1], dtype=d)) for d in (torch.uint8, torch.long)
    )
    assert few == many


def test_no_words_are_masked_in_an_empty_text():
    empty = torch.empty(0, dtype=torch.long)
    assert all(len(found) == 0 for found in mask_tokens(empty, **MASKING, p=0.5, words=empty))


def test_the_first_rate_without_warm_up_is_a_number():
    assert TrainingSettings(n_steps=3).lr_at(0) == 0.0
