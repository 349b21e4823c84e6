"""What the models read: corpora, tokenizers, batches, and the count-based models to compare with.

This wing knows nothing of `tinytx.model`.
"""

from tinytx.text.tokenizer import SPECIAL_PIECES, Tokenizer

__all__ = ["SPECIAL_PIECES", "Tokenizer"]
