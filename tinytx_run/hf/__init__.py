"""Weights and tokenizers to and from Hugging Face `transformers`."""
