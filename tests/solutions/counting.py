"""Solutions for count_language_model and count_classifier."""

from __future__ import annotations

from torch import nn

from tests.solutions.collection import right, wrong

# mypy: ignore-errors


def _body(vocab_size, d_model, n_layers, d_ff):
    layer = nn.TransformerEncoderLayer(d_model, 2, d_ff, batch_first=True, device="meta")
    encoder = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)
    return nn.ModuleList([nn.Embedding(vocab_size, d_model, device="meta"), encoder])


@right("count_language_model")
def lm_formula(vocab_size, d_model, n_layers, d_ff):
    attention = 4 * d_model * d_model + 4 * d_model
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norms = 2 * 2 * d_model
    head = d_model * vocab_size + vocab_size
    return vocab_size * d_model + n_layers * (attention + feed_forward + norms) + head


@right("count_language_model")
def lm_module(vocab_size, d_model, n_layers, d_ff):
    parts = [_body(vocab_size, d_model, n_layers, d_ff), nn.Linear(d_model, vocab_size)]
    return sum(p.numel() for part in parts for p in part.parameters())


@right("count_language_model")
def lm_loop(vocab_size, d_model, n_layers, d_ff):
    total = vocab_size * d_model
    for _ in range(n_layers):
        for rows, columns in [(d_model, d_model)] * 4 + [(d_model, d_ff), (d_ff, d_model)]:
            total += (rows + 1) * columns
        total += 4 * d_model
    return total + (d_model + 1) * vocab_size


@right("count_language_model")
def lm_linear_helper(v, d, n, f):
    def linear(a, b):
        return a * b + b

    in_and_out = linear(d, 3 * d) + linear(d, d)
    return v * d + n * (in_and_out + linear(d, f) + linear(f, d) + 2 * (d + d)) + linear(d, v)


@right("count_language_model")
def lm_as_float(vocab_size, d_model, n_layers, d_ff):
    per_layer = 4 * d_model**2 + 9 * d_model + 2 * d_model * d_ff + d_ff
    return vocab_size * d_model * 2.0 + vocab_size + n_layers * per_layer


def _lm(v, d, layer, n, head):
    return v * d + n * layer + head


@wrong("count_language_model", "all-biases-forgotten")
def lm_no_biases(vocab_size, d_model, n_layers, d_ff):
    layer = 4 * d_model**2 + 2 * d_model * d_ff + 4 * d_model
    return _lm(vocab_size, d_model, layer, n_layers, vocab_size * d_model)


@wrong("count_language_model", "norms-forgotten")
def lm_no_norms(vocab_size, d_model, n_layers, d_ff):
    layer = 4 * (d_model**2 + d_model) + 2 * d_model * d_ff + d_ff + d_model
    return _lm(vocab_size, d_model, layer, n_layers, vocab_size * (d_model + 1))


@wrong("count_language_model", "norms-counted-once")
def lm_one_norm(vocab_size, d_model, n_layers, d_ff):
    layer = 4 * (d_model**2 + d_model) + 2 * d_model * d_ff + d_ff + d_model + 2 * d_model
    return _lm(vocab_size, d_model, layer, n_layers, vocab_size * (d_model + 1))


@wrong("count_language_model", "output-projection-forgotten")
def lm_qkv_only(vocab_size, d_model, n_layers, d_ff):
    layer = 3 * (d_model**2 + d_model) + 2 * d_model * d_ff + d_ff + d_model + 4 * d_model
    return _lm(vocab_size, d_model, layer, n_layers, vocab_size * (d_model + 1))


@wrong("count_language_model", "head-bias-forgotten")
def lm_head_without_bias(vocab_size, d_model, n_layers, d_ff):
    return lm_formula(vocab_size, d_model, n_layers, d_ff) - vocab_size


@wrong("count_language_model", "embedding-tied")
def lm_tied(vocab_size, d_model, n_layers, d_ff):
    layer = 4 * (d_model**2 + d_model) + 2 * d_model * d_ff + d_ff + d_model + 4 * d_model
    return vocab_size * d_model + n_layers * layer + vocab_size


@wrong("count_language_model", "head-forgotten")
def lm_body_only(vocab_size, d_model, n_layers, d_ff):
    return sum(p.numel() for p in _body(vocab_size, d_model, n_layers, d_ff).parameters())


@wrong("count_language_model", "one-layer-only")
def lm_one_layer(vocab_size, d_model, n_layers, d_ff):
    layer = 4 * (d_model**2 + d_model) + 2 * d_model * d_ff + d_ff + d_model + 4 * d_model
    return vocab_size * d_model + layer + (d_model + 1) * vocab_size


@wrong("count_language_model", "feed-forward-width-4d")
def lm_four_times(vocab_size, d_model, n_layers, d_ff):
    return lm_formula(vocab_size, d_model, n_layers, 4 * d_model)


@wrong("count_language_model", "feed-forward-biases-forgotten")
def lm_ff_without_bias(vocab_size, d_model, n_layers, d_ff):
    return lm_formula(vocab_size, d_model, n_layers, d_ff) - n_layers * (d_ff + d_model)


@wrong("count_language_model", "final-norm-counted")
def lm_final_norm(vocab_size, d_model, n_layers, d_ff):
    return lm_formula(vocab_size, d_model, n_layers, d_ff) + 2 * d_model


@wrong("count_language_model", "norms-forgotten+all-biases-forgotten")
def lm_only_matrices(vocab_size, d_model, n_layers, d_ff):
    return 2 * vocab_size * d_model + n_layers * (4 * d_model**2 + 2 * d_model * d_ff)


@wrong("count_language_model", "wrong-type")
def lm_text(vocab_size, d_model, n_layers, d_ff):
    return f"{lm_formula(vocab_size, d_model, n_layers, d_ff):,}"


@right("count_classifier")
def classifier_formula(vocab_size, d_model, n_layers, d_ff, n_classes):
    layer = 4 * (d_model + 1) * d_model + (d_model + 1) * d_ff + (d_ff + 1) * d_model + 4 * d_model
    return vocab_size * d_model + n_layers * layer + (d_model + 1) * n_classes


@right("count_classifier")
def classifier_module(vocab_size, d_model, n_layers, d_ff, n_classes):
    model = nn.Sequential(_body(vocab_size, d_model, n_layers, d_ff), nn.Linear(d_model, n_classes))
    return sum(p.numel() for p in model.parameters())


@right("count_classifier")
def classifier_from_lm(vocab_size, d_model, n_layers, d_ff, n_classes=2):
    lm = lm_formula(vocab_size, d_model, n_layers, d_ff)
    return lm - vocab_size * (d_model + 1) + n_classes * (d_model + 1)


@right("count_classifier")
def classifier_shapes(vocab_size, d_model, n_layers, d_ff, n_classes):
    d, f = d_model, d_ff
    shapes = [(3 * d, d), (3 * d,), (d, d), (d,), (f, d), (f,), (d, f), (d,), (d,), (d,), (d,), (d,)]
    count = 0
    for shape in [(vocab_size, d), *shapes * n_layers, (n_classes, d), (n_classes,)]:
        size = 1
        for length in shape:
            size *= length
        count += size
    return count


@wrong("count_classifier", "other-head")
def classifier_lm_head(vocab_size, d_model, n_layers, d_ff, n_classes):
    return lm_formula(vocab_size, d_model, n_layers, d_ff)


@wrong("count_classifier", "head-forgotten")
def classifier_no_head(vocab_size, d_model, n_layers, d_ff, n_classes):
    return classifier_formula(vocab_size, d_model, n_layers, d_ff, 0)


@wrong("count_classifier", "head-bias-forgotten")
def classifier_no_head_bias(vocab_size, d_model, n_layers, d_ff, n_classes):
    return classifier_formula(vocab_size, d_model, n_layers, d_ff, 0) + d_model * n_classes


@wrong("count_classifier", "all-biases-forgotten")
def classifier_no_biases(vocab_size, d_model, n_layers, d_ff, n_classes):
    layer = 4 * d_model**2 + 2 * d_model * d_ff + 2 * 2 * d_model
    return vocab_size * d_model + n_layers * layer + d_model * n_classes


@wrong("count_classifier", "attention-forgotten")
def classifier_no_attention(vocab_size, d_model, n_layers, d_ff, n_classes):
    layer = (d_model + 1) * d_ff + (d_ff + 1) * d_model + 4 * d_model
    return vocab_size * d_model + n_layers * layer + (d_model + 1) * n_classes


@wrong("count_classifier", "norms-counted-once")
def classifier_one_norm(vocab_size, d_model, n_layers, d_ff, n_classes):
    layer = 4 * (d_model + 1) * d_model + (d_model + 1) * d_ff + (d_ff + 1) * d_model + 2 * d_model
    return vocab_size * d_model + n_layers * layer + (d_model + 1) * n_classes


@wrong("count_classifier", "all-times-layers")
def classifier_everything_times(vocab_size, d_model, n_layers, d_ff, n_classes):
    layer = 4 * (d_model + 1) * d_model + (d_model + 1) * d_ff + (d_ff + 1) * d_model + 4 * d_model
    return n_layers * (vocab_size * d_model + layer) + (d_model + 1) * n_classes


@wrong("count_classifier", "embedding-forgotten")
def classifier_no_embedding(vocab_size, d_model, n_layers, d_ff, n_classes):
    return classifier_formula(0, d_model, n_layers, d_ff, n_classes)


@wrong("count_classifier", "positions-counted-as-learned")
def classifier_positions(vocab_size, d_model, n_layers, d_ff, n_classes):
    return classifier_formula(vocab_size + 512, d_model, n_layers, d_ff, n_classes)


@wrong(
    "count_classifier",
    "attention-as-heads-times-d2+feed-forward-forgotten+norms-forgotten+head-bias-forgotten",
)
def classifier_of_the_lab(vocab_size, d_model, n_layers, d_ff, n_classes, n_heads=2):
    return vocab_size * d_model + n_layers * n_heads * d_model**2 + d_model * n_classes


@wrong("count_classifier", "norms-forgotten")
def classifier_no_norms(vocab_size, d_model, n_layers, d_ff, n_classes):
    return classifier_formula(vocab_size, d_model, n_layers, d_ff, n_classes) - 4 * n_layers * d_model


@wrong("count_classifier", "wrong-parameters")
def classifier_four(vocab_size, d_model, n_layers, d_ff):
    return classifier_formula(vocab_size, d_model, n_layers, d_ff, 2)
