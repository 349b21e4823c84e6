"""GPT by hand: the model of gpt_one_page.py and its gradients, from numbers, lists and the chain rule alone.

    python gpt_by_hand.py FILE [STEPS]

A matrix is a list of rows: x has one for each token, a weight matrix w one for each output. A layer returns
its result y and a function, `back`, from dy, the gradient of the loss by y, to dx, the gradient by x. On its
way it adds the gradient by w to dw.
"""

import math
import random


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def grow(row, factor, other):
    """Add a multiple of another row, in place."""
    row[:] = [x + factor * y for x, y in zip(row, other)]


def added(a, b):
    return [[x + y for x, y in zip(row, other)] for row, other in zip(a, b)]


def zeros_like(a):
    return [[0.0] * len(row) for row in a]


def columns(a, n_parts):
    """Cut a matrix into matrices of equal width."""
    width = len(a[0]) // n_parts
    return [[row[i * width : (i + 1) * width] for row in a] for i in range(n_parts)]


def joined(parts):
    """Put matrices side by side, the inverse of `columns`."""
    return [[x for row in rows for x in row] for rows in zip(*parts)]


def softmax(scores):
    highest = max(scores)
    powers = [math.exp(score - highest) for score in scores]
    total = sum(powers)
    return [power / total for power in powers]


def linear(x, w, dw):
    """y = x wᵀ: each number is the product of a row of x and a row of w."""

    def back(dy):
        for row, d_row in zip(x, dy):
            for d_line, d in zip(dw, d_row):
                grow(d_line, d, row)
        return [[dot(d_row, column) for column in zip(*w)] for d_row in dy]

    return [[dot(row, line) for line in w] for row in x], back


def relu(x):
    y = [[max(0.0, n) for n in row] for row in x]
    return y, lambda dy: [[d * (n > 0) for d, n in zip(d_row, row)] for d_row, row in zip(dy, x)]


def layer_norm(x, w, dw, eps=1e-5):
    """Move each row to mean 0, scale it to variance 1, and multiply it by the one row of w."""
    normed, scales = [], []
    for row in x:
        mean = sum(row) / len(row)
        scales.append((sum((n - mean) ** 2 for n in row) / len(row) + eps) ** -0.5)
        normed.append([(n - mean) * scales[-1] for n in row])

    def back(dy):
        dx = []
        for z, scale, d_row in zip(normed, scales, dy):
            grow(dw[0], 1.0, [d * n for d, n in zip(d_row, z)])
            dz = [d * gain for d, gain in zip(d_row, w[0])]
            mean, along = sum(dz) / len(z), dot(dz, z) / len(z)  # the changes that the norm undoes
            dx.append([scale * (d - mean - along * n) for d, n in zip(dz, z)])
        return dx

    return [[gain * n for gain, n in zip(w[0], z)] for z in normed], back


def head(q, k, v):
    """Token t averages the values of tokens 0 to t, with weights softmax(q kᵀ / sqrt(K))."""
    scale = len(q[0]) ** -0.5
    weights = [softmax([scale * dot(query, key) for key in k[: t + 1]]) for t, query in enumerate(q)]

    def back(dy):
        dq, dk, dv = zeros_like(q), zeros_like(k), zeros_like(v)
        for t, (row, d_row) in enumerate(zip(weights, dy)):
            d_weights = [dot(d_row, value) for value in v[: t + 1]]
            mean = dot(d_weights, row)  # raising all scores alike changes no weight
            for s, weight in enumerate(row):
                d_score = scale * weight * (d_weights[s] - mean)
                grow(dq[t], d_score, k[s])
                grow(dk[s], d_score, q[t])
                grow(dv[s], weight, d_row)
        return dq, dk, dv

    return [[dot(row, column) for column in zip(*v[: len(row)])] for row in weights], back


def heads(qkv, n_heads):
    """Queries, keys and values side by side: cut them into heads, and join what the heads return."""
    q, k, v = (columns(part, n_heads) for part in columns(qkv, 3))
    contexts, backs = [], []
    for i in range(n_heads):
        context, back_head = head(q[i], k[i], v[i])
        contexts.append(context)
        backs.append(back_head)

    def back(dy):
        dq, dk, dv = [], [], []
        for back_head, d_context in zip(backs, columns(dy, n_heads)):
            d_query, d_key, d_value = back_head(d_context)
            dq.append(d_query)
            dk.append(d_key)
            dv.append(d_value)
        return joined([joined(dq), joined(dk), joined(dv)])

    return joined(contexts), back


def chain(x, layers):
    """One layer after the other; the gradient meets them in reverse order."""
    if not layers:
        return x, lambda dx: dx
    y, back = layers[0](x)
    z, back_rest = chain(y, layers[1:])
    return z, lambda dz: back(back_rest(dz))


def residual(x, layers):
    """x + f(x): x is used twice, so its gradients are added."""
    y, back = chain(x, layers)
    return added(x, y), lambda dy: added(dy, back(dy))


class GPT:
    """Weights, under the names of gpt_one_page.py, and their gradients, `grads`."""

    def __init__(self, vocab_size, d_model=16, n_heads=4, n_layers=1, max_len=16):
        self.weights, self.grads, self.max_len, self.layers = {}, {}, max_len, []

        def new(name, n_out, n_in=d_model, kind=linear):
            std = n_in**-0.5
            w = [[random.gauss(0, std) if kind == linear else 1.0 for _ in range(n_in)] for _ in range(n_out)]
            self.weights[name], self.grads[name] = w, zeros_like(w)
            return lambda x: kind(x, self.weights[name], self.grads[name])

        new("token_embed", vocab_size), new("pos_embed", max_len)  # tables, of which rows are taken
        for b in (f"blocks.{i}." for i in range(n_layers)):
            norm, qkv = new(b + "attn_norm", 1, kind=layer_norm), new(b + "qkv_proj", 3 * d_model)
            attn = [norm, qkv, lambda x: heads(x, n_heads), new(b + "out_proj", d_model)]
            norm, up = new(b + "ff_norm", 1, kind=layer_norm), new(b + "up_proj", 4 * d_model)
            ff = [norm, up, relu, new(b + "down_proj", d_model, 4 * d_model)]
            self.layers += [lambda x, f=f: residual(x, f) for f in (attn, ff)]
        self.layers += [new("final_norm", 1, kind=layer_norm), new("head", vocab_size)]

    def logits(self, ids):
        x = added([self.weights["token_embed"][i] for i in ids], self.weights["pos_embed"])
        return chain(x, self.layers)

    def loss(self, ids):
        """Mean of -ln p of what follows each token; its gradients are added to `grads`."""
        logits, back = self.logits(ids[:-1])
        probs, n = [softmax(row) for row in logits], len(logits)
        loss = -sum(math.log(row[i]) for row, i in zip(probs, ids[1:])) / n
        d_logits = [[p / n - (i == j) / n for j, p in enumerate(row)] for row, i in zip(probs, ids[1:])]
        for t, d_row in enumerate(back(d_logits)):
            grow(self.grads["token_embed"][ids[t]], 1.0, d_row)
            grow(self.grads["pos_embed"][t], 1.0, d_row)
        return loss

    def generate(self, ids, n_new):
        for _ in range(n_new):
            probs = softmax(self.logits(ids[-self.max_len :])[0][-1])
            ids = [*ids, *random.choices(range(len(probs)), probs)]
        return ids


def adam(model, mean, square, step, lr=0.01):
    """Step against the gradients, each divided by its usual size; then clear them."""
    short, long = 1 - 0.9**step, 1 - 0.99**step  # both averages begin at 0
    for name, w in model.weights.items():
        for row, g, m, s in zip(w, model.grads[name], mean[name], square[name]):
            m[:] = [0.9 * a + 0.1 * d for a, d in zip(m, g)]
            s[:] = [0.99 * b + 0.01 * d * d for b, d in zip(s, g)]
            row[:] = [n - lr * a / short / ((b / long) ** 0.5 + 1e-8) for n, a, b in zip(row, m, s)]
            g[:] = [0.0] * len(g)


if __name__ == "__main__":
    import sys

    name, *steps = sys.argv[1:] or sys.exit(__doc__)
    text, n_steps = open(name, encoding="utf-8").read(), int(steps[0]) if steps else 1000
    chars = sorted(set(text))
    model = GPT(len(chars))
    len(text) > model.max_len or sys.exit(f"FILE must hold over {model.max_len} characters, got {len(text)}")
    mean, square = ({name: zeros_like(w) for name, w in model.weights.items()} for _ in range(2))
    for step in range(1, n_steps + 1):
        start = random.randrange(len(text) - model.max_len)
        loss = model.loss([chars.index(char) for char in text[start : start + model.max_len + 1]])
        adam(model, mean, square, step)
        if step & (step - 1) == 0 or step == n_steps:  # at each doubling
            sample = "".join(chars[i] for i in model.generate([chars.index(text[0])], 80))
            print(f"step {step}, loss {loss:.2f} nats a character: {sample!r}", flush=True)
