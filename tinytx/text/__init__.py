"""What the models read: corpora, tokenizers, batches, and the count-based models to compare with.

This wing knows nothing of `tinytx.model`.
"""

from tinytx.text.batching import batches_by_length, chunks, pad_batch, padding_share
from tinytx.text.corpora import Corpus, CorpusInfo, Split, list_corpora, load_corpus
from tinytx.text.corpus import CorpusWarning
from tinytx.text.lossless import SPECIAL_PIECES
from tinytx.text.ngrams import NGramModel
from tinytx.text.tokenizer import Tokenizer

__all__ = [
    "SPECIAL_PIECES",
    "Corpus",
    "CorpusInfo",
    "CorpusWarning",
    "NGramModel",
    "Split",
    "Tokenizer",
    "batches_by_length",
    "chunks",
    "list_corpora",
    "load_corpus",
    "pad_batch",
    "padding_share",
]
