"""The transformer. Knows nothing of text: token ids come in, hidden states and logits come out."""
