# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 11 · Translation
#
# **How do two languages meet?**
#
# After this lesson you can
#
# 1. compute cross-attention by hand, and write a decoder layer in about 25 lines;
# 2. say what a decoder reads and predicts in training, and compute its smoothed loss;
# 3. compare cross-attention with the true alignment;
# 4. translate by greedy and by beam search, write a KV cache in about 15 lines, and say when it pays;
# 5. find out whether a broken translator still reads its source;
# 6. count BLEU by hand, and report it with its **signature** (the settings of its count), its interval and its limits.
#
# *You need:* attention and masks, as in [lesson 02](02_attention_and_masks.ipynb), the block, as in [lesson 05](05_the_block.ipynb), and training, as in [lesson 08](08_pretraining.ipynb).
# *It takes:* an hour and a half to read and do; about a minute to run on two cores.

# %% [markdown]
# ## Set-up
#
# One translator is trained in front of you, from English into the French of our small world. The budget `smoke` cuts the training to a few steps: then everything runs, but the model learns next to nothing, and the sentences about the trained model do not fit. Scores need the package `sacrebleu`, a part of the extra `[course]`.

# %%
import math
from collections import Counter

import torch
import torch.nn.functional as F
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx import beam
from tinytx_course import plots, results
from tinytx_course.labs import lesson_11 as lab
from tinytx_run import bleu, recipes
from tinytx_run.pairs import Pairs, load_pairs
from tinyworld.reviews import write_out

# %% [markdown]
# Two questions from earlier lessons first.

# %%
course.recall("11")

# %% [markdown]
# ## Why: a dictionary is not enough
#
# The world of this course has two languages. One grammar writes each sentence in both, and knows which word translates which: the **alignment**. So we have sentence pairs to learn from, held-out pairs whose English *and* French occur in no training pair, and a checker that names every mistake of French grammar.
#
# The tempting way: for each English word, write the French word that translates it most often. We count over 4,000 pairs with their true alignment. A word that has no partner in the alignment, such as *of*, stays as it is. We try it on fresh sentences, which are drawn with another seed and occur in no training pair. `write_out` puts spaces and apostrophes where they belong.

# %%
_ = torch.manual_seed(0)
smoke = recipes.default_budget() == "smoke"
pairs, world = load_pairs("world"), tx.World()
print(f"{len(pairs.train):,} pairs to learn from, {len(pairs.valid):,} held out")
for english, french in zip(
    pairs.valid.sources[:3], pairs.valid.targets[:3], strict=True
):
    print(f"\n{english}\n    {french}")

counts = {}
for pair in world.sentence_pairs(4000, seed=23_001):
    for i, j in pair.alignment:
        counts.setdefault(pair.english[i], Counter())[pair.french[j]] += 1


def by_dictionary(words):
    return write_out(
        [counts[w].most_common(1)[0][0] if w in counts else w for w in words], "fr"
    )


seen = set(pairs.train.sources)
drawn = world.sentence_pairs(1000, seed=23_000)
fresh = [pair for pair in drawn if write_out(pair.english, "en") not in seen]
sources = [write_out(pair.english, "en") for pair in fresh]
references = [write_out(pair.french, "fr") for pair in fresh]
translations = {"word for word": [by_dictionary(pair.english) for pair in fresh]}

# %% [markdown]
# **Predict 11.1.** A translation is *exact* if it is the very sentence of the grammar.

# %%
course.predict(
    "11.1",
    "How many of the fresh sentences does the dictionary translate exactly?",
    ["fewer than 1 in 10", "1 to 5 in 10", "more than 5 in 10"],
)


# %%
def report(name, texts):
    score = bleu.score_translations(texts, [[reference] for reference in references])
    n_agreement = bleu.count_mistakes(texts).n_agreement
    exact = sum(a == b for a, b in zip(texts, references, strict=True)) / len(
        references
    )
    interval = "{:5.1f} [{:.1f}, {:.1f}]".format(score.bleu, *score.interval)
    print(f"{name:<16}{interval:<22}{exact:>8.1%}{n_agreement:>20,}")
    return exact


for n in range(1, 4):
    print(f"{sources[n]}\n    dictionary {translations['word for word'][n]}")
    print(f"    right      {references[n]}")
HEAD = f"\n{'':<17}BLEU [95 %]            exact   agreement mistakes"
print(HEAD)
exact = report("word for word", translations["word for word"])
answer = ["fewer than 1 in 10", "1 to 5 in 10", "more than 5 in 10"][
    (exact >= 0.1) + (exact > 0.5)
]
course.resolve(
    "11.1", answer, f"It translates {exact:.1%} of {len(fresh)} sentences exactly."
)

# %% [markdown]
# Look at the three sentences: many words are right, and yet no sentence is. In French an adjective may follow its noun. Article, adjective and participle take gender and number from a noun elsewhere in the sentence. So many words cannot be translated without their context. **BLEU**, the usual score from 0 to 100, counts how many runs of one to four words a translation shares with the right one. We count it by hand below.
#
# ## By hand: the decoder attends to the source
#
# For every word it writes, the decoder must look at the whole source again. That is the attention of lesson 02, with queries from one sequence and keys and values from another. The **encoder** reads the source; its output, one vector a token, is the **memory**. The **decoder** writes the target, one token at a time. In **cross-attention** the queries come from the decoder, keys and values from the memory. Here three French positions attend to four English ones, of which the last is padding.

# %%
source = ["I", "read", "novels", "<pad>"]
written = ["<bos>", "J'", "ai"]  # each predicts the next token: J', ai, lu
queries = [[2.0, 0, 0, 0], [0, 2, 0, 0], [0, 2, 0, 2]]  # T = 3
keys = [[2.0, 0, 0, 0], [0, 2, 0, 1], [0, 0, 2, 0], [3, 3, 3, 3]]  # S = 4
values = [[1.0, 0], [0, 1], [1, 1], [9, 9]]
is_real = [word != "<pad>" for word in source]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


# %% [markdown]
# **Predict 11.2.** For each query: a score for each source token, $e$ to its power, zero where there is padding, divided by the sum.

# %%
course.predict("11.2", "Which source token does “ai” attend to most?", source)

# %%
all_weights, contexts = [], []
for word, query in zip(written, queries, strict=True):
    scores = [dot(query, key) / math.sqrt(4) for key in keys]
    raised = [
        math.exp(x) if real else 0.0 for x, real in zip(scores, is_real, strict=True)
    ]
    weights = [each / sum(raised) for each in raised]
    all_weights.append(weights)
    contexts.append([dot(weights, column) for column in zip(*values, strict=True)])
    print(f"{word:<8}" + "".join(f"{weight:>9.3f}" for weight in weights))
best = max(range(4), key=all_weights[2].__getitem__)
course.resolve(
    "11.2",
    source[best],
    f"Its weight is {all_weights[2][best]:.3f}, that of padding 0.",
)

# %% [markdown]
# Check the first row: *&lt;bos&gt;* and *I* give $2 \cdot 2 / \sqrt{4} = 2$, the others 0, so $e^2 / (e^2 + 1 + 1)$. The padding has the largest score in every row (3, 3 and 6, against 2, 2 and 3) and gets no weight, since the mask acts before the softmax. *ai* attends mostly to *read*: the next word is *lu*. Now the same as matrices, and as modules with equal weights: ours and torch's `nn.MultiheadAttention`. Torch has the opposite sign: there `True` means **blocked**.

# %%
real = torch.tensor(is_real)  # (S,), True = may attend
by_matrices = tx.attention(*map(torch.tensor, (queries, keys, values)), real)
torch.testing.assert_close(by_matrices, torch.tensor(contexts))

ours = tx.MultiHeadAttention(d_model=12, n_heads=3)
theirs = lab.torch_attention(ours)  # with our weights
x, memory = torch.randn(1, 3, 12), torch.randn(1, 4, 12)  # (B, T, D), (B, S, D)
output, weights = theirs(x, memory, memory, key_padding_mask=~real[None])
torch.testing.assert_close(ours(x, memory, real), output)
_, wrong = theirs(x, memory, memory, key_padding_mask=real[None])
print("weight on the padding, right sign:", weights[0, :, 3].tolist())
print("weight on the padding, wrong sign:", wrong[0, :, 3].tolist())
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# With the wrong sign *all* the weight falls on the padding, without any error. Every position gets the same meaningless vector, and the source might as well be blank. Remember this symptom.
#
# ## Three attentions, three masks
#
# An **encoder-decoder** uses attention in three places. In the encoder, each source token attends to all real source tokens. In the decoder, each target token attends to itself and to what comes before it. In cross-attention, each target token attends to all real source tokens. Follow the arrows: which of the three needs a causal mask?

# %%
course.plots.diagram("encoder-decoder")

# %% [markdown]
# Only self-attention of the decoder is causal. A mask is just an argument to attention; it does not belong to "the decoder". Lesson 02 puts the same mask on an encoder stack and gets a language model. Cross-attention gets no causal mask, because the whole source is known.
#
# ## A decoder layer in about 25 lines
#
# A decoder layer is the block of lesson 05 with one more sublayer in the middle. Three sublayers, each with its norm and its residual connection: self-attention with the causal mask, cross-attention to the memory, the feed-forward network. This is pre-norm; the norm reads what the sublayer is given.


# %%
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attn_norm = nn.LayerNorm(d_model)
        self.attn = tx.MultiHeadAttention(d_model=d_model, n_heads=n_heads)
        self.cross_norm = nn.LayerNorm(d_model)
        self.cross_attn = tx.MultiHeadAttention(d_model=d_model, n_heads=n_heads)
        self.ff_norm = nn.LayerNorm(d_model)
        self.ff = nn.ModuleDict(
            {"up_proj": nn.Linear(d_model, d_ff), "down_proj": nn.Linear(d_ff, d_model)}
        )

    def feed_forward(self, x):
        return self.ff["down_proj"](F.gelu(self.ff["up_proj"](x)))  # (B, T, D)

    def cross_and_ff(self, x, memory, src_real):
        # (B, 1, 1, S): the same for all heads and queries
        mask = src_real[:, None, None, :]
        x = x + self.cross_attn(self.cross_norm(x), memory, mask)  # queries from x
        return x + self.feed_forward(self.ff_norm(x))

    def forward(self, x, memory, src_real):  # (B, T, D), (B, S, D), (B, S)
        causal = tx.causal_mask(x.shape[1])  # (T, T)
        x = x + self.attn(self.attn_norm(x), mask=causal)
        return self.cross_and_ff(x, memory, src_real)


# %% [markdown]
# Around the layers: an embedding and positions on both sides, the encoder's blocks, final norms and the output layer. Here is the whole forward pass with our layers, given the weights of a small `tx.Translator` that has random ones. It must give equal logits. Source and target share one embedding matrix here; it is the output layer too.
#
# And is `tx.Translator` what others call a transformer? `TorchTranslator` copies the weights of a translator into torch's own `nn.Transformer` and reverses the masks. In float64 nothing but rounding may differ, in both orders of norms.

# %%
tiny = tx.TransformerConfig(
    vocab_size=40, d_model=12, n_heads=3, n_layers=2, d_ff=20, tie_embeddings=True
)


def randomised(translator):  # biases of zero would hide mistakes
    for parameter in translator.parameters():
        nn.init.normal_(parameter, std=0.3)
    return translator.double().eval()


model = randomised(tx.Translator(tiny))
layers = [DecoderLayer(12, 3, 20).double() for _ in range(2)]
for layer, block in zip(layers, model.decoder.blocks, strict=True):
    layer.load_state_dict(block.state_dict())


def by_our_layers(src_ids, tgt_ids, src_real):
    def embed(ids):
        positions = tx.sinusoidal_positions(ids.shape[1], 12)
        return model.encoder.token_embed(ids) * math.sqrt(12) + positions

    memory = embed(src_ids)  # (B, S, D)
    for block in model.encoder.blocks:
        memory = block(memory, src_real[:, None, None, :])
    memory, x = model.encoder.final_norm(memory), embed(tgt_ids)
    for layer in layers:
        x = layer(x, memory, src_real)  # (B, T, D)
    return model.head(model.decoder.final_norm(x))  # (B, T, V)


src_ids = torch.tensor([[11, 12, 13, 3, 0]])  # I read novels <eos> <pad>
tgt_ids = torch.tensor([[2, 21, 22, 23]])  # <bos> J' ai lu
src_real = tx.padding_mask(src_ids, pad_id=0)
torch.testing.assert_close(
    by_our_layers(src_ids, tgt_ids, src_real), model(src_ids, tgt_ids, src_real)
)
for norm in ("first", "last"):
    package = randomised(tx.Translator(tiny.replace(norm=norm)))
    by_torch = lab.TorchTranslator(package)(src_ids, tgt_ids, src_real)
    torch.testing.assert_close(by_torch, package(src_ids, tgt_ids, src_real))
print("our layers, tx.Translator and torch.nn.Transformer: equal logits")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## What the decoder reads in training: the answer, one position late
#
# A translator writes one token after another. To train it we need not let it write. The right translation is known, so the decoder is given all of it, shifted by one position: it reads `<bos> y₁ y₂ …` and must predict `y₁ y₂ … <eos>`. This is **teacher forcing**: every position is trained at once, as if everything before it had been written correctly. In use the decoder reads what it wrote itself, mistakes included; this gap is called **exposure bias**. By hand, and as the training loop gets it:

# %%
toy = tx.Tokenizer.train([*pairs.valid.sources, *pairs.valid.targets], vocab_size=700)
english, french = pairs.valid.sources[1], pairs.valid.targets[1]
ids = toy.encode(french)
src_row = [*toy.encode(english), toy.eos_id]
read, wanted = [toy.bos_id, *ids], [*ids, toy.eos_id]
assert read[1:] == wanted[:-1]  # shifted by one position
objective = bleu.translation_objective(toy, Pairs((english,), (french,)), max_len=64)
for by_hand, given in zip((src_row, read, wanted), objective.batch([0]), strict=True):
    assert given.tolist() == [by_hand]
print("encoder reads   ", *toy.pieces(english), "<eos>")
print("decoder reads    <bos>", *toy.pieces(french))
print("decoder predicts", *toy.pieces(french), "<eos>")

# %% [markdown]
# So the answer to each position but the last is in the decoder's input, one position to the right. Only the causal mask hides it. Lesson 02's test shows that: change one input token, and see which outputs move. Below are the tiny translator and a copy whose decoder has no mask. A 1 above the diagonal means that the answer can be read off. Which columns are all zero?

# %%
unmasked = tx.Translator(tiny).double().eval()
unmasked.load_state_dict(model.state_dict())
unmasked.decoder.config = tiny.replace(causal=False)


@torch.no_grad()
def moved_by(translator, which):  # row: output, column: the input that was changed
    before, columns = translator(src_ids, tgt_ids, src_real), []  # (1, T, V)
    for s in range((src_ids, tgt_ids)[which].shape[1]):
        inputs = [src_ids.clone(), tgt_ids.clone()]
        inputs[which][0, s] += 1
        columns.append((translator(*inputs, src_real) != before).any(dim=-1)[0])
    return torch.stack(columns, dim=1).int()


print("target, with the mask:\n", moved_by(model, 1))
print("target, without:\n", moved_by(unmasked, 1))
print("source:\n", moved_by(model, 0))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# With the mask the table *is* the triangle. Without it the first output already moves with the last word of the answer: such a model could copy the answer in training, and would have nothing to copy while translating. The source moves every output, its padding none.
#
# ### Label smoothing by hand
#
# The loss has one new ingredient. Usually the target puts all probability on the right token, so the model is rewarded for being ever surer. With **label smoothing** $s$ the right token keeps $1 - s$, and $s$ is spread evenly over all $V$ tokens, the right one included. The best a model can do is to predict exactly this smoothed target; what is left is the target's own entropy, a lower bound above zero.

# %%
logits, target, s = [2.0, 0.5, -1.0, 0.0], 0, 0.1
log_total = math.log(sum(math.exp(x) for x in logits))
loss = 0.0
for token, logit in enumerate(logits):
    probability = (1 - s) * (token == target) + s / len(logits)
    loss -= probability * (logit - log_total)
by_torch = F.cross_entropy(
    torch.tensor([logits]), torch.tensor([target]), label_smoothing=s
)
torch.testing.assert_close(torch.tensor(loss), by_torch)


def lowest_loss(s, vocab_size):
    right, other = 1 - s + s / vocab_size, s / vocab_size
    return -right * math.log(right) - (vocab_size - 1) * other * math.log(other)


print(f"smoothed loss {loss:.4f}, lowest possible {lowest_loss(s, 4):.4f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# A smoothed loss never reaches zero, so do not compare it with one that was not smoothed. Held-out losses below are measured without.
#
# ### Tied embeddings, and the paper's 65 million
#
# Source and target share one vocabulary here, so one matrix of $V \times D$ serves three times: as embedding of the source, as embedding of the target, and as output layer. This is **weight tying**. Below, our model tied and untied, and the base model of the paper, whose section 3.4 ties all three.

# %%
base = tx.TransformerConfig(
    vocab_size=37_000, d_model=512, n_heads=8, n_layers=6, d_ff=2_048, norm="last"
)
configs = {"ours": recipes.plan("world", "translation", "laptop").config, "base": base}
for name, config in configs.items():
    both = [config.replace(tie_embeddings=tied) for tied in (True, False)]
    tied, untied = (tx.parameter_table(each, head="translation").total for each in both)
    print(f"{name:<6} tied {tied:>12,}    untied {untied:>12,}")
matrix = 512 * 512 + 512  # one projection of the base model, with its bias
print(
    f"base: cross-attention {6 * 4 * matrix:,}, all 18 output projections "
    f"{18 * matrix:,}"
)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Table 3 of the paper says 65 million for the base model, whose vocabulary is "about 37,000" (section 5.1). Our count is about 2 million short of that; the paper does not say how it counted. A common mistake is to forget the output projections, or cross-attention altogether: the last line says how much that is.
#
# ## Use it: train a translator
#
# Now we train one. Batches hold pairs of similar length, up to a number of tokens, so that little is padding. The loop is that of lesson 08; `tx.train_translator` runs it with the objective above. At the start the model knows nothing, so its loss must be near that of a uniform guess among $V$ tokens, $\ln V$. In the figure the upper dashed line is $\ln V$, the lower one the bound that smoothing leaves.

# %% tags=["folded"]
result = tx.train_translator(pairs, options=tx.RunOptions(progress=False))
model, tokenizer = result.model.cpu().eval(), result.tokenizer
config = model.config
history, V = result.history, config.vocab_size
bound = lowest_loss(result.recipe.label_smoothing, V)
fig, ax = plots.curves(
    [plots.Curve("training", history.step, history.loss)],
    references={"guessing, ln V": math.log(V), "lowest possible": bound},
    xlabel="step",
    ylabel="smoothed loss (nats per token)",
    y_range=(0, 8),
    title="A translator learns",
)
plots.show(fig, name="11_learning")
assert abs(history.loss[0] - math.log(V)) < 0.5
print(f"first loss {history.loss[0]:.2f}, ln V {math.log(V):.2f}")
print(
    f"last loss {history.loss[-1]:.2f}, {history.loss[-1] - bound:.2f} above the "
    "lowest possible"
)
print(f"held out, unsmoothed: {result.evaluation.nats_per_token:.3f} nats per token")

# %% [markdown]
# The distance to the lower line is what the model has not learned yet of its training text. The last line is another loss: held-out text, without smoothing. A model that predicted every smoothed target exactly would have about $-\ln 0.9 = 0.105$ there. The curve does not say *what* is learned last; the mistakes below show what is not learned yet.
#
# Now let it write. **Greedy decoding** takes the most probable token at each step, appends it, and asks again, until the end mark comes. The encoder reads the source once.


# %%
@torch.no_grad()
def greedy(text, max_len=40):
    memory = model.encode(torch.tensor([[*tokenizer.encode(text), tokenizer.eos_id]]))
    ids = [tokenizer.bos_id]
    while ids[-1] != tokenizer.eos_id and len(ids) < max_len:
        logits = model.decode(torch.tensor([ids]), memory)  # (1, T, V)
        ids.append(int(logits[0, -1].argmax()))
    return ids[1:]


for text in sources[:5]:
    (by_package,) = tx.translate(model, tokenizer, [text])
    assert smoke or greedy(text) == list(by_package.token_ids)
print(sources[4], "→", tokenizer.decode(greedy(sources[4])[:-1]))

# %% [markdown]
# The package does the same for many sentences at once; we use it from here on. **Predict 11.3.** Same fresh sentences, same score as for the dictionary.

# %%
course.predict(
    "11.3",
    "How many of the fresh sentences does the trained model translate exactly?",
    ["less than half", "half to 9 in 10", "more than 9 in 10"],
)

# %%
def only_endings_differ(text, right):  # words agree in their first half, one by one
    pairs = list(zip(text.split(), right.split(), strict=False))
    same_length = len(text.split()) == len(right.split())
    return same_length and all(a.startswith(b[: (len(b) + 1) // 2]) for a, b in pairs)


translations["greedy"] = [each.text for each in tx.translate(model, tokenizer, sources)]
print(HEAD)
exact = {name: report(name, texts) for name, texts in translations.items()}
rows = list(zip(sources, translations["greedy"], references, strict=True))
inexact = [row for row in rows if row[1] != row[2]]
for english, french, right in inexact[:3]:
    print(f"\n{english}\n    model  {french}\n    right  {right}")
n_endings = sum(only_endings_differ(french, right) for _, french, right in inexact)
print(f"\nonly endings differ in {n_endings} of {len(inexact)} inexact sentences")
share = exact["greedy"]
answer = ["less than half", "half to 9 in 10", "more than 9 in 10"][
    (share >= 0.5) + (share > 0.9)
]
course.resolve(
    "11.3",
    answer,
    f"{share:.1%} exact, against {exact['word for word']:.1%} by dictionary.",
)

# %% [markdown]
# Read the examples together with the column of agreement mistakes and the line below them. An ending needs the number of a noun, which English shows, and its gender, which English does not show. (A closed grammar with few words makes translation an easy task; real sentences come below.)
#
# ## Look: cross-attention as an alignment
#
# For real text nobody knows where a translator *should* attend. Here the grammar does. `cross_attention` records the weights while the model is given a right translation. Row $t$ is the step that *predicts* token $t$, which it has not read yet. How much of a head's attention falls on the right source tokens? One line for one sentence; `alignment_mass` takes the mean over many.
#
# We choose the best head on one half of the sentences, measure on the other half, and draw a sentence of neither. Otherwise the head that was luckiest would look better than it is. In the figure that head is on the left, the mean of all heads in the middle, the truth on the right. Find the words that change places, and the rows in which the head looks elsewhere.


# %%
def is_turned(pair):  # French turns two words around
    targets = [j for _, j in sorted(pair.alignment)]
    return targets != sorted(targets) and 6 <= len(pair.english) <= 8


pair = min(
    filter(is_turned, fresh[600:]),
    key=lambda p: len(tokenizer.encode(write_out(p.french, "fr"))),
)
english, french = write_out(pair.english, "en"), write_out(pair.french, "fr")
weights = lab.cross_attention(model, tokenizer, english, french)  # (L, H, T, S)
truth = lab.true_alignment(tokenizer, pair)  # (T, S)
share = (weights * truth).sum(dim=-1)[..., truth.any(dim=1)].mean(dim=-1)  # (L, H)
by_lab = torch.from_numpy(lab.alignment_mass(model, tokenizer, [pair]).mass)
torch.testing.assert_close(share.double(), by_lab, rtol=0, atol=1e-5)

chosen = lab.alignment_mass(model, tokenizer, fresh[300:600]).mass
layer, head = divmod(int(chosen.argmax()), config.n_heads)
mass = lab.alignment_mass(model, tokenizer, fresh[:300])
print(english, "→", french)
panels = {f"layer {layer}, head {head}": weights[layer, head],
          "mean of all heads": weights.mean(dim=(0, 1)), "by the grammar": truth}
rows = [token.replace("▁", "") for token in [*tokenizer.pieces(french), "<eos>"]]
columns = [token.replace("▁", "") for token in [*tokenizer.pieces(english), "<eos>"]]
fig, axes = plots.figure(1, 3, width=10.2, height=4.2)
for ax, (name, matrix) in zip(axes, panels.items(), strict=True):
    shown = rows if ax is axes[0] else [""] * len(rows)
    plots.heatmap(
        matrix, row_labels=shown, col_labels=columns, low=0, high=1, title=name, ax=ax
    )
axes[0].set_ylabel("French token to be predicted")
fig.supxlabel("English token attended to")
plots.show(fig, name="11_alignment")

# %% [markdown]
# The model was given pairs of whole sentences, never an alignment. Rows that are empty on the right (end marks, words without a counterpart such as the *ai* of *j'ai lu*) may attend anywhere. One sentence proves nothing, so now all heads over 300 sentences. **Predict 11.4.** An even spread over the source would put some weight on the aligned tokens, too: that is the baseline.

# %%
n_heads = mass.mass.size
course.predict(
    "11.4",
    f"How many of the {n_heads} heads put more than twice the baseline on aligned "
    "tokens?",
    ["none", "some, but less than half", "half of them or more"],
)

# %%
shares = {f"layer {n}, head {h}": share
          for n, row in enumerate(mass.mass.tolist()) for h, share in enumerate(row)}
fig, ax = plots.bars(
    shares, numbers=".2f", references={"even spread": mass.uniform},
    xlabel="share of attention on aligned tokens", title="Attention and alignment",
)  # fmt: skip
plots.show(fig, name="11_mass")
n_above = int((mass.mass > 2 * mass.uniform).sum())
answer = "none" if n_above == 0 else "some, but less than half"
answer = "half of them or more" if 2 * n_above >= n_heads else answer
course.resolve(
    "11.4",
    answer,
    f"{n_above} of {n_heads}; an even spread has {mass.uniform:.2f}, "
    f"the chosen head {mass.mass[layer, head]:.2f}.",
)

# %% [markdown]
# A head below 1 need not be wrong. To predict the ending of an adjective it is *useful* to attend to the noun, which the alignment does not count; and the encoder has moved information between positions. The heatmap says where a head attends, and the grammar gives only one reason to attend somewhere. Try other sentences: choose a French token and compare the heads with the truth.

# %%
course.widgets.alignment(model, tokenizer, fresh[600:606])

# %% [markdown]
# ## Searching: the best token is not the best sentence
#
# While translating, the model gives a probability to each next token, and a search has to choose. Here is a tiny model as a table, with words for tokens. The probability of a sentence is the product along its path. **Beam search** follows the best few beginnings, its **beams**, at once: from every unfinished beam, all continuations; keep the best few of all; those that end are finished and leave. A beam of one is greedy decoding. Follow both on paper first.

# %%
table = {
    (): {"la": 0.5, "le": 0.4, "<eos>": 0.1},
    ("la",): {"chat": 0.4, "nuit": 0.3, "<eos>": 0.3},
    ("le",): {"chat": 0.9, "nuit": 0.05, "<eos>": 0.05},
    ("la", "chat"): {"<eos>": 0.6, "noir": 0.4},
    ("le", "chat"): {"<eos>": 0.52, "noir": 0.48},
    ("le", "chat", "noir"): {"<eos>": 1.0},
}


def follow(beam_size):
    beams, finished = {(): 1.0}, {}
    while beams:
        grown = {
            (*path, word): p * q
            for path, p in beams.items()
            for word, q in table[path].items()
        }
        best = sorted(grown, key=grown.get, reverse=True)[:beam_size]
        print(
            "  keeps",
            ",  ".join(f"{' '.join(path)} {grown[path]:.3f}" for path in best),
        )
        finished |= {path: grown[path] for path in best if path[-1] == "<eos>"}
        beams = {path: grown[path] for path in best if path[-1] != "<eos>"}
    return finished


finished = {}
for beam_size in (1, 2):
    print(f"beam of {beam_size}")
    finished[beam_size] = follow(beam_size)
ratio = max(finished[2].values()) / max(finished[1].values())
print(f"the best of two beams is {ratio:.1f} times as probable as the greedy sentence")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Greedy decoding takes *la*, and cannot go back. A beam of two keeps *le*, although it was second, and finds a sentence that is more probable.
#
# ### Short or long: the length penalty
#
# With two beams, two sentences have finished, one of three words and one of four (the end mark counts). Every further word makes the probability $P$ smaller, so comparing $\log P$ favours the short one. The **length penalty** $\alpha$ divides: $\log P / n^\alpha$ for $n$ generated tokens. At 0 nothing changes, at 1 it is the mean per token. Which sentence wins for which? Below by hand, and by the package's beam search, which is given the table as its model.

# %%
words = ["<bos>", "<eos>", "la", "le", "chat", "nuit", "noir"]


class TableSteps:  # what the package's beam search asks of a model
    def logits(self, prefixes):
        paths = [tuple(words[i] for i in row[1:]) for row in prefixes.tolist()]
        rows = [table.get(path, {"<eos>": 1.0}) for path in paths]
        return torch.tensor(
            [[row.get(word, 0.0) for word in words] for row in rows]
        ).log()

    def select(self, rows):
        pass  # it stores nothing


max_tokens = [9]  # of each source, and there is one
for alpha in (0.0, 1.0):
    score = {path: math.log(p) / len(path) ** alpha for path, p in finished[2].items()}
    best = max(score, key=score.get)
    search = beam.Search(beam_size=2, length_penalty=alpha)
    (found,) = beam.beam_search(
        TableSteps(), max_tokens, bos_id=0, eos_id=1, search=search
    )
    assert tuple(words[i] for i in found.token_ids) == best
    print(f"length penalty {alpha}: {' '.join(best)}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# By hand and by the package the same. Now with the trained model, on 300 fresh sentences. **Predict 11.5.** Four beams against one.

# %%
course.predict(
    "11.5",
    "How many of 300 translations does a beam of 4 change, compared with greedy "
    "decoding?",
    ["fewer than 30", "30 to 150", "more than 150"],
)

# %%
some, right = sources[:300], [[reference] for reference in references[:300]]
first = tx.translate(model, tokenizer, some)
changed, written = {}, {}
print(
    f"{'search':<20}{'BLEU':>8}{'brevity':>10}{'changed':>10}{'more probable':>16}"
    f"{'less':>8}"
)
for size, alpha in ((1, 1.0), (2, 1.0), (4, 1.0), (4, 0.0)):
    search = beam.Search(beam_size=size, length_penalty=alpha)
    found = tx.translate(model, tokenizer, some, search=search) if size > 1 else first
    written[size, alpha] = [each.text for each in found]
    gains = [new.log_prob - old.log_prob for new, old in zip(found, first, strict=True)]
    changed[size, alpha] = sum(
        a.text != b.text for a, b in zip(found, first, strict=True)
    )
    score = bleu.score_translations([each.text for each in found], right, n_resamples=2)
    more, less = sum(gain > 1e-3 for gain in gains), sum(gain < -1e-3 for gain in gains)
    print(f"beam {size}, penalty {alpha:<6}{score.bleu:>8.1f}{score.brevity:>10.3f}"
          f"{changed[size, alpha]:>10}{more:>16}{less:>8}")
n = changed[4, 1.0]
answer = ["fewer than 30", "30 to 150", "more than 150"][(n >= 30) + (n > 150)]
course.resolve("11.5", answer, f"It changes {n} of {len(some)}.")

# %% [markdown]
# *More probable* and *less* compare $\log P$ with that of the greedy translation. With penalty 1 the beam seeks the best *mean*, so its $\log P$ may be lower. With penalty 0 it seeks $\log P$ itself, and still has no guarantee, since the greedy path may be pushed out on the way. Watch the *brevity*, the factor below 1 that BLEU charges for translations shorter than the references. Real sentences follow below. Look at the trees of hypotheses of six of the sentences: first those whose translation by a beam of four depends on the length penalty, three at most, then those for which a beam of two gains most in $\log P$.

# %%
two = tx.translate(
    model, tokenizer, some, search=beam.Search(beam_size=2, length_penalty=0.0)
)
gains = [new.log_prob - old.log_prob for new, old in zip(two, first, strict=True)]
by_gain = sorted(range(len(some)), key=lambda i: -gains[i])
short, long = written[4, 0.0], written[4, 1.0]
depends = [i for i in range(len(some)) if short[i] != long[i]]
print(f"the length penalty decides {len(depends)} of {len(some)}")
chosen = [some[i] for i in dict.fromkeys([*depends[:3], *by_gain])][:6]
course.widgets.beam_tree(
    model, tokenizer, chosen,
    references=[references[some.index(each)] for each in chosen],
)  # fmt: skip

# %% [markdown]
# ## The KV cache: one more token for the work of one
#
# To write token 50, must all 49 before it be computed again? In self-attention, no query sees what comes after it. So the keys and values of earlier tokens cannot change. A **KV cache** stores them. Each step computes query, key and value of the *newest* token alone, appends key and value to the cache, and attends to all of it. No mask is needed: everything in the cache is past. Cross-attention could store the memory's keys and values too, which never change; we leave that out.

# %%
class CachedLayer:  # one decoder layer that reads one token at a time
    def __init__(self, layer, memory, src_real):
        self.layer, self.memory, self.src_real = layer, memory, src_real
        self.keys = self.values = None

    def step(self, x):  # (B, 1, D): the newest token
        attn, y = self.layer.attn, self.layer.attn_norm(x)
        q, k, v = (
            proj(y).unflatten(-1, (attn.n_heads, -1)).transpose(1, 2)  # (B, H, 1, K)
            for proj in (attn.q_proj, attn.k_proj, attn.v_proj)
        )
        self.keys = k if self.keys is None else torch.cat([self.keys, k], dim=2)
        self.values = v if self.values is None else torch.cat([self.values, v], dim=2)
        context = tx.attention(q, self.keys, self.values)  # (B, H, 1, K)
        x = x + attn.out_proj(context.transpose(1, 2).flatten(2))
        return self.layer.cross_and_ff(x, self.memory, self.src_real)


x, memory = torch.randn(1, 7, 12).double(), torch.randn(1, 5, 12).double()
cached = CachedLayer(layers[0], memory, src_real)
# (B, T, D)
token_by_token = torch.cat([cached.step(x[:, t : t + 1]) for t in range(7)], dim=1)
torch.testing.assert_close(token_by_token, layers[0](x, memory, src_real))
print(
    "seven steps with a cache equal one pass without, cached keys:",
    tuple(cached.keys.shape),
)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The outputs are equal; only the time may differ. Without a cache, $n$ steps read about $n^2 / 2$ tokens, with it $n$. We let a model with random weights write exactly $n$ tokens for four sources, with the package's cache and without, three times in turn, and take the medians. The package's cache also lays out the weights anew for single tokens, once for each batch. **Predict 11.6.**

# %%
course.predict(
    "11.6", "Which is faster for a translation of 4 tokens?",
    ["with the cache", "without the cache", "both within 10 %"],
)  # fmt: skip

# %% tags=["folded", "varies"]
writer = tx.Translator(configs["ours"].replace(max_len=130)).eval()
lengths = [2, 4, 8, 16, 32, 64]
times = lab.writing_times(writer, lengths).processor
curves = [
    plots.Curve(name, lengths, [times[n, cached].median for n in lengths])
    for name, cached in (("with KV cache", True), ("without", False))
]
fig, ax = plots.curves(
    curves, x_log=True, y_log=True, xlabel="tokens generated",
    ylabel="processor time (seconds)", title="Time to write n tokens",
)  # fmt: skip
ax.set_xticks(lengths, [str(n) for n in lengths])
ax.minorticks_off()
plots.show(fig, name="11_cache")
speedup = {n: times[n, False].median / times[n, True].median for n in lengths}
print(
    "times as fast with the cache:",
    ",  ".join(f"{n} tokens {r:.2f}" for n, r in speedup.items()),
)
answer = "with the cache" if speedup[4] > 1.1 else "without the cache"
answer = "both within 10 %" if 1 / 1.1 <= speedup[4] <= 1.1 else answer
course.resolve(
    "11.6",
    answer,
    f"At 2 tokens the cache is {speedup[2]:.2f} times as fast, at 4 tokens "
    f"{speedup[4]:.2f} times, at 64 tokens {speedup[64]:.1f} times. At 64 it reads 64 "
    "tokens, "
    f"and {sum(range(1, 65)):,} are read without it.",
)

# %% [markdown]
# A ratio below 1 means that the cache is slower. A cost that is paid once for each batch, whatever the length, would explain that for short texts. The count of tokens read promises far more at 64 tokens than is measured: work that both ways share, or tokens that are cheaper in larger products, would explain it (we do not measure which). The price of the cache is memory: two vectors of width $D$ for each layer and
# generated token.
#
# ## Break it: a translator that stammers
#
# Imagine a translator that trains well, *then diverges*, and translates "I am a student" as "suis suis . . . suis". Its norms come last, it has no warm-up and no dropout, and its learning rate is too high. We imitate one part of this in seconds. Our good model (pre-norm, trained by another optimizer and with warm-up) is trained by AdamW for 20 more steps, at a high rate and without warm-up. What does such a model still know?

# %%
import copy

from tinytx.loop import train
from tinytx.settings import TrainingSettings

few = Pairs(pairs.train.sources[:3000], pairs.train.targets[:3000])
objective = bleu.translation_objective(
    tokenizer, few, config.max_len, label_smoothing=0.1
)
patients, curves = {"before": model}, []
for rate in (1e-3, 1e-2, 2e-2):
    settings = TrainingSettings(n_steps=20, lr=rate, tokens_per_batch=1000, log_every=1)
    patient = patients[f"rate {rate:g}"] = copy.deepcopy(model)
    seen = train(patient, objective, settings, progress=False)
    curves.append(plots.Curve(f"rate {rate:g}", seen.step, seen.loss))
fig, ax = plots.curves(
    curves,
    xlabel="further step, without warm-up",
    ylabel="smoothed loss (nats per token)",
    references={"guessing, ln V": math.log(V)},
    title="A good model, trained on at three rates",
)
ax.set_xticks(range(0, 21, 5))
plots.show(fig, name="11_diverging")

# %% [markdown]
# The first point of each curve is the loss before anything changed. Adam divides by the root of a mean of *squared* gradients, and after one step it hardly knows this mean. That is one reason for warm-up; lesson 05 shows another. None of the three runs has it, so what differs between them is the rate alone. Now a question that no loss curve answers: **does the patient still read its source?** If it does, another sentence's source must hurt. So we measure the held-out loss with each sentence's own source, and with its neighbour's.

# %%
own = Pairs(tuple(sources[:200]), tuple(references[:200]))
# the neighbour's source
exchanged = Pairs(own.sources[1:] + own.sources[:1], own.targets)
print(f"{'':<12}own source   another's   different translations of 200")
hurt = {}
for name, patient in patients.items():
    losses = [bleu.pair_nats(patient, tokenizer, each) for each in (own, exchanged)]
    texts = {each.text for each in tx.translate(patient, tokenizer, own.sources)}
    hurt[name] = losses[1] - losses[0]
    print(f"{name:<12}{losses[0]:>10.2f}{losses[1]:>12.2f}{len(texts):>16}")
print("\nAnother sentence's source costs, in nats per token:")
for name, nats in hurt.items():
    print(
        f"    {name:<12}{nats:6.2f}   "
        f"{'reads its source' if nats > 0.1 else 'hardly reads it'}"
    )

# %% [markdown]
# Where both losses are nearly equal, the source is worth next to nothing. The last column of the table then says how many different texts are left for 200 sources. A second diagnosis looks at the output: **forbid repeats**, and **read on** past an early end mark. If the right words then appear, the search was caught in a loop, and the knowledge was there. To find out, we count which share of the words of the right translation appears in the output. The control is the right translation of *another* sentence: frequent words appear in it by chance.


# %%
def words_found(texts, answers):
    shares = []
    for text, answer in zip(texts, answers, strict=True):
        wanted = set(answer.lower().rstrip(".").split())
        shares.append(len(wanted & set(text.lower().rstrip(".").split())) / len(wanted))
    return sum(shares) / len(shares)


answers, others = own.targets[:100], exchanged.targets[1:101]
print(f"{'':<34}right words   words of another sentence")
found_share = {}
for name in ("before", "rate 0.01", "rate 0.02"):
    examples = {}
    for how, search in lab.DIAGNOSES.items():
        found = tx.translate(
            patients[name], tokenizer, own.sources[:100], search=search
        )
        texts = [each.text for each in found]
        examples[how] = texts[0]
        found_share[name, how] = words_found(texts, answers)
        print(f"{name + ', ' + how:<34}{found_share[name, how]:>8.2f}"
              f"{words_found(texts, others):>18.2f}")
    print(f"    e.g. {found[0].source}")
    for how, text in examples.items():
        print(f"       {how + ':':<21}{text[:70]}")
for name in ("rate 0.01", "rate 0.02"):
    change = found_share[name, "no repeats"] - found_share[name, "greedy"]
    print(
        f"{name}: forbidding repeats changes the share of right words by {change:+.2f}"
    )
    assert smoke or abs(change) < 0.1

# %% [markdown]
# Compare the two columns in each line. Where the first is clearly larger, words of *this* sentence come through, whatever the output looks like. Where both are alike, nothing of this sentence comes through; where both are near 0, not even the frequent words. On average, forbidding repeats hardly helps either patient: a loop of the search is not what hides the right words. (Both diagnoses forbid things that good sentences need. They examine; they do not translate.)
#
# ### Which fault is to blame?
#
# So much for one good model that was spoiled. Which of the four faults ruins a model from the start? `python -m experiments broken-translation` trained ten models by AdamW: with all four faults, with each of them repaired alone, without any, and with each as the only fault. What you saw above may help. **Predict 11.7.**

# %%
course.predict(
    "11.7",
    "Which fault, as the only one, costs most BLEU?",
    ["norms last", "no warm-up", "rate ten times too high", "no dropout"],
)

# %% tags=["folded"]
runs = results.read_results("broken-translation").data.values()
faults = {run["name"]: run["bleu"] or 0.0 for run in runs}  # 0: training diverged
fig, ax = plots.bars(faults, numbers=".1f", xlabel="BLEU on held-out pairs (one seed)",
                     title="Ten translators")  # fmt: skip
plots.show(fig, name="11_faults")
names = {
    "norm": "norms last",
    "warm-up": "no warm-up",
    "rate": "rate ten times too high",
    "dropout": "no dropout",
}
alone = {name: faults[f"only fault: {name}"] for name in names}
repaired = {name: faults[f"repaired: {name}"] for name in names}
worst, best_repair = min(alone, key=alone.get), max(repaired, key=repaired.get)
finding = (
    f"Alone it leaves BLEU {alone[worst]:.1f}; a sound model has "
    f"{faults['sound']:.1f}. Of the "
    f"repairs, that of the {best_repair} helps most, to {repaired[best_repair]:.1f}."
)
assert all(alone[name] > 90 for name in ("norm", "warm-up", "dropout"))
assert faults["repaired: rate"] < 50 and alone["dropout"] >= faults["sound"]
print(f"the other three faults together: {faults['repaired: rate']:.1f}")
course.resolve("11.7", names[worst], finding)

# %% [markdown]
# Two things more can be read from the bars, and the cell asserts them. Each of the other three faults, alone, leaves a good model; all three together do not. Faults that do little harm alone are not harmless together. And in this one run a missing dropout, alone, costs nothing.

# %% [markdown]
# ## BLEU by hand
#
# **BLEU** compares a translation with a reference. For $n$ from 1 to 4 it counts the **n-grams** (runs of $n$ words) of the translation that occur in the reference, each at most as often as there; that is the precision $p_n$. The score is the geometric mean of the four, times a **brevity penalty** for translations shorter than the reference:
#
# $$\text{BLEU} = 100 \cdot \min(1, e^{1 - r / c}) \cdot \Big(\prod_{n=1}^{4} p_n\Big)^{1/4},$$
#
# with $c$ words in the translation and $r$ in the reference. Over a test set, counts are added up before dividing. We count one sentence that stammers, and compare with `sacrebleu`.

# %%
from sacrebleu.metrics import BLEU

good = ["La rivière est pleine de poissons.", "Le fleuve est rempli de poissons.",
        "La rivière regorge de poissons."]
stammer = "La rivière est pleine de poissons de poissons de poissons."


def bleu_by_hand(text, reference):
    mine, right = text.split(), reference.split()
    log_mean = 0.0
    for n in (1, 2, 3, 4):
        grams = [
            Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
            for words in (mine, right)
        ]
        n_right = (
            grams[0] & grams[1]
        ).total()  # each at most as often as in the reference
        print(f"  {n}-grams: {n_right} of {grams[0].total()}")
        log_mean += math.log(n_right / grams[0].total()) / 4
    return 100 * min(1, math.exp(1 - len(right) / len(mine))) * math.exp(log_mean)


score = bleu_by_hand(stammer, good[0])
by_package = BLEU(tokenize="none").corpus_score([stammer], [[good[0]]]).score
assert abs(score - by_package) < 1e-6
print(f"BLEU {score:.1f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# What does a single number hide? First, **one sentence**: `good` has three faultless translations of the same English sentence. We score the first against each of the others, then the stammer against the first. Second, **tokenisation**: the same texts split into words as sacreBLEU does by default (13a), at spaces only, and into characters. **Predict 11.8.**

# %%
course.predict(
    "11.8",
    "Which scores higher (13a): a faultless translation against another one, or the "
    "stammer?",
    ["the faultless translation", "the stammer"],
)

# %%
def three_ways(text, *references):
    streams = [[reference] for reference in references]
    return [
        BLEU(tokenize=how).corpus_score([text], streams).score
        for how in ("13a", "none", "char")
    ]


rows = {"faultless, against another": three_ways(good[0], good[1]),
        "faultless, against a third": three_ways(good[0], good[2]),
        "stammer, against the first": three_ways(stammer, good[0]),
        "faultless, against both": three_ways(good[0], good[1], good[2])}
print(f"{'':<30}{'13a':>6}{'spaces':>9}{'characters':>13}")
for name, scores in rows.items():
    print(f"{name:<30}{scores[0]:>6.0f}{scores[1]:>9.0f}{scores[2]:>13.0f}")
names = ("faultless, against another", "faultless, against a third")
faultless, faultless_by_char = (
    max(rows[name][how] for name in names) for how in (0, 2)
)
stammering = rows["stammer, against the first"][0]
assert (
    stammering > faultless and rows["stammer, against the first"][2] < faultless_by_char
)
answer = "the faultless translation" if faultless > stammering else "the stammer"
course.resolve("11.8", answer, f"{faultless:.0f} at best against {stammering:.0f}.")

# %% [markdown]
# On one sentence BLEU can mislead. By 13a the stammer wins, which is compared with the very sentence it was made from; by characters it does not. BLEU was made for a whole test set, where such accidents average out. The way of splitting changes the score by tens of points with nothing translated differently. So scores compare only where the **signatures** are equal: sacreBLEU's short line with number
# of references, case, tokenisation and version. And with **several references** a translation has more chances to be right: a score against five references does not compare with one against a single reference.
#
# Last, **the interval**. It comes from drawing test sets out of this one, with replacement (the **bootstrap**). How wide is it for 25 sentences, and how does it shrink? We take the dictionary and the trained model.

# %%
sizes, lines = [25, 50, 100, 200, 400, len(references)], []
for name, texts in translations.items():
    scores = [
        bleu.score_translations(
            texts[:n], [[a] for a in references[:n]], n_resamples=300
        )
        for n in sizes
    ]
    widths = [score.interval[1] - score.interval[0] for score in scores]
    lines.append(plots.Curve(name, sizes, widths))
    print(
        f"{name:<16}width with 100 sentences {widths[2]:.1f}, with 400 {widths[4]:.1f}"
    )
    assert name == "greedy" or 1.7 < widths[2] / widths[4] < 2.4
fig, ax = plots.curves(
    lines,
    xlabel="sentences in the test set",
    ylabel="width of the 95 % interval (BLEU)",
    title="How sure is a BLEU score?",
)
plots.show(fig, name="11_interval")

# %% [markdown]
# For the dictionary, four times the sentences give about half the width, as theory says. A good model makes few mistakes, and its width depends on which of them a small test set happens to hold. Beware of a small test set that holds no mistake of a very good model: then every resampled set holds none either, and the interval has no width at all. That is not certainty. The interval says how much *another choice of sentences* would change the score. It says nothing about another seed of training, another domain, or whether the translations are good: a wrong article loses as many points as a wrong word.
#
# ## Real pairs
#
# Does it work outside the world? Tatoeba has everyday sentences, Multi30k captions of photographs. Training takes longer than this lesson, so `python -m experiments translation` did it beforehand. The four sentences below, and everything that translates them, were removed from Tatoeba's training pairs. "All references" counts each different English sentence once, against all of its French ones.

# %%
for corpus in ("tatoeba-en-fr", "multi30k-en-fr"):
    *_, record = results.read_results(f"translation-{corpus}").data.values()
    print(lab.stored_translation(corpus, record))
    scores = {search: score["bleu"] for search, score in record["scores"].items()}
    gain = round(scores["beam of 4"], 1) - round(scores["greedy"], 1)
    print(f"  → a beam of 4 is worth {gain:+.1f} BLEU over greedy decoding\n")
    assert gain > 0

# %% [markdown]
# On both corpora the beam's score is higher. The two intervals of a corpus overlap, but both searches translated the same sentences, so a paired test would be the right one. The stored results do not hold what it needs, so we cannot say how sure the gain is. (**chrF** compares runs of characters instead of words; the string of settings is the signature.) Tatoeba has no test split, so its scores are those of the validation split.
#
# ## What this does not show
#
# - Our world has few words, and one translation for each of its sentences. A high BLEU here says that the machinery works, not that translation is solved. No ambiguity, no idiom, no name, no sentence longer than the model can read.
# - Held-out sentences are new, but their words and patterns are not.
# - One seed, in front of you. The interval of BLEU does not cover that. The ten translators and the two real corpora have one seed each as well.
# - Attention on the aligned word is not an explanation of the translation (lesson 02 has the dispute).
# - A good model spoiled at a high rate shows *how* a translator breaks. At another size, another fault may matter more.
#
# ## Take-home
#
# How do two languages meet? In cross-attention: the decoder asks, the encoder's memory answers. The layer is `DecoderLayer` above, in about 25 lines. These two functions are what is done with it: teacher forcing for training (here without padding and smoothing), greedy decoding for use.


# %%
def training_loss(model, src_ids, ids, bos_id, eos_id):  # (B, S), (B, T)
    marks = torch.ones_like(ids[:, :1])
    read = torch.cat([bos_id * marks, ids], dim=1)  # <bos> y
    wanted = torch.cat([ids, eos_id * marks], dim=1)  # y <eos>
    memory = model.encode(src_ids)  # (B, S, D)
    logits = model.decode(read, memory)  # (B, T + 1, V): all positions at once
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten())


def write(model, src_ids, bos_id, eos_id, max_len):  # (1, S)
    memory, ids = model.encode(src_ids), [bos_id]  # the source is read once
    while ids[-1] != eos_id and len(ids) < max_len:
        # all positions again; only the last is used
        logits = model.decode(torch.tensor([ids]), memory)
        ids.append(int(logits[0, -1].argmax()))
    return ids


src_row = torch.tensor([[*tokenizer.encode(sources[0]), tokenizer.eos_id]])
ids = torch.tensor([tokenizer.encode(references[0])])
marks = {"bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
loss = training_loss(model, src_row, ids, **marks).item()
by_package = bleu.pair_nats(model, tokenizer, Pairs((sources[0],), (references[0],)))
assert abs(loss - by_package) < 1e-4
assert write(model, src_row, max_len=40, **marks)[1:] == greedy(sources[0])

# %% [markdown]
# Now put the lines of greedy decoding in order. In each pair one line is right and the other is a common mistake.

# %%
course.parsons("greedy_decode")

# %% [markdown]
# ## Questions
#
# Pick an answer and read what it says; the wrong answers are common mistakes.

# %%
course.quiz("translation")

# %% [markdown]
# ## Exercises
#
# Four exercises: a mask, two searches and a step with a cache. Fill in the dots and run the cell below them. It checks what you wrote and, if it knows the mistake, names it. While there are only dots, it says "not attempted yet".
#
# [exercise: cross_attention_mask]


# %%
def cross_attention_mask(src_ids, tgt_ids, pad_id):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("cross_attention_mask", cross_attention_mask)

# %% [markdown]
# [exercise: greedy_decode]


# %%
def greedy_decode(step, bos_id, eos_id, max_len):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("greedy_decode", greedy_decode)

# %% [markdown]
# [exercise: beam_search]


# %%
def beam_search(step, bos_id, eos_id, beam_size, max_len, length_penalty):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("beam_search", beam_search)

# %% [markdown]
# [exercise: cached_step]


# %%
def cached_step(x, cache, w_q, w_k, w_v):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("cached_step", cached_step)

# %% [markdown]
# ### Try it yourself
#
# In your own copy (`make lab`), say what you expect, then run.
#
# **1.** What changes in cross-attention if you exchange the two sides, so that the queries come from the source, and keys and values from the translation?
#
# <details><summary>Answer</summary>
#
# There would be one result for each *source* token, computed from words that are not written yet while translating. The sequence that is being written needs the information, so the queries come from the decoder.
#
# </details>
#
# **2.** Forget the shift: let the decoder read $y_1 \ldots y_n$ and predict $y_1 \ldots y_n$. The causal mask is in its place. What loss, and what translations?
#
# <details><summary>Answer</summary>
#
# The loss falls to the lowest possible one soon: a position may attend to itself, where its answer is. The model learns to copy what it reads, and with `<bos>` as its only input it has nothing sensible to copy. The leak test sees nothing, since the mask is right and the data are wrong.
#
# </details>
#
# **3.** Somebody reports a BLEU of 60 (lower-cased, already split into words) and you have 45 on the raw text of the same test set. Who translates better?
#
# <details><summary>Answer</summary>
#
# Nobody can tell. Case, tokenisation and references differ, so the two scores are not measured with the same rule. Ask for the translations and score both with one signature, on the same sentences.
#
# </details>
#
# ## Summary
#
# 1. Cross-attention: queries from the decoder, keys and values from the encoder's memory, padding of the source masked. A decoder layer is a block with cross-attention in the middle; only its self-attention is causal.
# 2. Teacher forcing: read `<bos> y`, predict `y <eos>`. Label smoothing spreads $s$ over all tokens, and leaves a lowest loss above zero. One tied matrix serves three times.
# 3. Where the true alignment is known, each head's attention can be compared with it: over many sentences, against an even spread, on sentences that did not choose the head.
# 4. Greedy decoding takes the best token, beam search follows several paths; $\log P / n^\alpha$ compares lengths. A KV cache gives equal outputs, and saves time only when enough tokens are written.
# 5. A translator that ignores its source is found by giving it another sentence's source. One fault alone and several together are different experiments.
# 6. BLEU belongs to a whole test set, with signature, references and interval; on one sentence it can mislead.
#
# *Where this comes from:* Vaswani et al., [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), sections 3.1, 3.2.3, 3.4 (tying), 5.3 and 5.4 (warm-up, smoothing), 6.1 (beams), table 3. Attention between two languages, drawn as an alignment: Bahdanau, Cho and Bengio, [arXiv:1409.0473](https://arxiv.org/abs/1409.0473). Label smoothing: Szegedy et al.,
# [arXiv:1512.00567](https://arxiv.org/abs/1512.00567), section 7. Tied embeddings: Press and Wolf, [arXiv:1608.05859](https://arxiv.org/abs/1608.05859). BLEU: Papineni et al., ACL 2002. Signatures: Post, [arXiv:1804.08771](https://arxiv.org/abs/1804.08771). Resampling: Koehn, EMNLP 2004.
#
# *What comes next:* [lesson 12](12_the_price_of_attention.ipynb) compares attention with recurrence and convolution: what each costs, and what it buys.
