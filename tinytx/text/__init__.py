"""What models read: corpora, tokenizers, batches and n-gram models. Knows nothing of models."""
