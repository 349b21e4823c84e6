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
# 1. compute cross-attention by hand, and say which three masks an encoder-decoder wears and what each of them prevents;
# 2. say what a decoder reads and what it predicts while it is trained, and compute its smoothed loss;
# 3. compare what a translator looks at with the alignment that is right;
# 4. search for a translation greedily and with beams, and say what the length penalty and the cache of keys and values do;
# 5. examine a broken translator: does it read its source at all, and what does it still know?
# 6. report a BLEU score honestly: signature, interval, references, and what it does not say.
#
# *You need:* lesson 02 for attention and masks, lesson 08 for nats and training.
# *It takes:* an hour to read; about two minutes to run on two processor cores, less with a GPU.

# %% [markdown]
# ## Set-up
#
# One translator is trained in front of you, from English into the French of our small world, for as long as your budget allows ([lesson 00](00_start_here.ipynb)
# explains it). Scores come from the package `sacrebleu`, a part of the extra `[course]`; where it is missing, the cell that scores says so.

# %%
import copy
import math
import textwrap
import time
from collections import Counter, defaultdict

import torch
import torch.nn.functional as F

import tinytx as tx
import tinytx_course as course
from tinytx.text.pairs import Pairs, load_pairs
from tinytx.training import bleu as translation_scoring
from tinytx.training.beam import Search
from tinytx.training.beam import beam_search as search_beams
from tinytx.training.bleu import score_translations
from tinytx.training.fit import fit
from tinytx.training.loop import train
from tinytx.training.recipes import plan
from tinytx.training.settings import TrainingSettings
from tinytx.training.translate import translate
from tinytx.world.reviews import write_out
from tinytx_course import plots
from tinytx_course.labs import lesson_11

_ = torch.manual_seed(0)

# %% [markdown]
# ## Why: a dictionary is not enough
#
# The world of this course speaks two languages. One grammar writes each sentence in both, and knows which word translates which, the **alignment**. So we have pairs to learn from, held-out pairs whose
# English *and* French stand in no training pair, and a checker that names every mistake of French grammar. Here are three pairs.

# %%
pairs, world = load_pairs("world"), tx.World()
print(f"{len(pairs.train):,} pairs to learn from, {len(pairs.valid):,} held out\n")
for n in range(3):
    print(f"{pairs.valid.sources[n]}\n    {pairs.valid.targets[n]}")

# %% [markdown]
# The tempting way: count which French word stands beside each English one, and write the commonest in its place. With the true alignment at hand such a dictionary cannot be better. We try it on fresh sentences. What will go wrong first: words, order, or endings?

# %%
dictionary = defaultdict(Counter)
for pair in world.sentence_pairs(4000, seed=23_001):
    for i, j in pair.alignment:
        dictionary[pair.english[i]][pair.french[j]] += 1


def by_dictionary(words):
    known = [dictionary[w].most_common(1)[0][0] if w in dictionary else w for w in words]
    return write_out(known, "fr")

# %% [markdown]
# Fresh sentences are drawn with another seed, and those that stand among the training pairs are left out. `write_out` puts spaces and apostrophes where they belong.

# %%
drawn, seen = world.sentence_pairs(1000, seed=23_000), set(pairs.train.sources)
fresh = [pair for pair in drawn if write_out(pair.english, "en") not in seen]
questions = [write_out(pair.english, "en") for pair in fresh]
answers = [write_out(pair.french, "fr") for pair in fresh]
tries = {"word for word": [by_dictionary(pair.english) for pair in fresh]}
for n in range(1, 4):
    print(questions[n])
    print(f"    by dictionary {tries['word for word'][n]}\n    right         {answers[n]}")

# %% [markdown]
# Nearly all the right words, and hardly a right sentence. In French an adjective may follow its noun, and article, adjective and participle take gender and number from a noun that stands elsewhere. A word cannot be translated
# without looking at the others. **BLEU**, the usual score from 0 to 100, counts how many runs of one to four words a translation shares with the right one; more about it below.


# %%
def report(name, texts):
    score = score_translations(texts, [[answer] for answer in answers])
    n_agreement = translation_scoring.count_mistakes(texts).n_agreement
    exact = sum(a == b for a, b in zip(texts, answers, strict=True)) / len(answers)
    bleu = "{:5.1f} [{:.1f}, {:.1f}]".format(score.bleu, *score.interval)
    print(f"{name:<16}{bleu:<22}{exact:>8.0%}{n_agreement:>17,}")


HEAD = f"{'':<17}BLEU [95 %]       wholly right   mistakes of agreement"
print(HEAD)
report("word for word", tries["word for word"])

# %% [markdown]
# ## By hand: the one who writes looks at the source
#
# So the one who writes has to look at the whole source, anew for each word. That is attention of lesson 02, with two different sequences. The **decoder**, which writes, asks: the queries come
# from what is written so far. The **encoder** has read the source, and answers: its vectors, the **memory**, give keys and values. This is **cross-attention**. Three French places ask four English ones, of which the last is padding.

# %%
source = ["I", "read", "novels", "<pad>"]
written = ["<bos>", "J'", "ai"]  # about to write: J', ai, lu
queries = [[2.0, 0, 0, 0], [0, 2, 0, 0], [0, 2, 0, 2]]  # T = 3
keys = [[2.0, 0, 0, 0], [0, 2, 0, 1], [0, 0, 2, 0], [3, 3, 3, 3]]  # S = 4
values = [[1.0, 0], [0, 1], [1, 1], [9, 9]]
real = [word != "<pad>" for word in source]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))

# %% [markdown]
# For each place that asks: a score for each source word, $e$ to its power, zero where padding stands, divided by the sum. Before you run it: where will *ai* look?

# %%
all_weights, contexts = [], []
for word, query in zip(written, queries, strict=True):
    scores = [dot(query, key) / math.sqrt(4) for key in keys]
    raised = [math.exp(x) if may else 0.0 for x, may in zip(scores, real, strict=True)]
    weights = [each / sum(raised) for each in raised]
    all_weights.append(weights)
    contexts.append([dot(weights, column) for column in zip(*values, strict=True)])
    print(f"{word:<8}" + "".join(f"{w:>9.3f}" for w in weights))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Check the first row: *&lt;bos&gt;* and *I* give $2 \cdot 2 / \sqrt{4} = 2$, the others 0, so $e^2 / (e^2 + 1 + 1)$. The padding has by far the largest scores and gets exactly nothing, since the mask acts before softmax. *ai* looks mostly at *read*: it is about to write *lu*. Now the same as matrices, and as two
# modules with equal weights: ours, and torch's `nn.MultiheadAttention`. Mind the sign of torch's: there `True` means **blocked**.

# %%
may = torch.tensor(real)  # (S,), True = may attend
by_matrices = tx.attention(*map(torch.tensor, (queries, keys, values)), may)
torch.testing.assert_close(by_matrices, torch.tensor(contexts))

ours = tx.MultiHeadAttention(d_model=12, n_heads=3)
theirs = lesson_11.torch_attention(ours)  # with our weights
asking, memory = torch.randn(1, 3, 12), torch.randn(1, 4, 12)  # (B, T, D), (B, S, D)
output, weights = theirs(asking, memory, memory, key_padding_mask=~may[None])
torch.testing.assert_close(ours(asking, memory, may), output)
_, wrong = theirs(asking, memory, memory, key_padding_mask=may[None])
print("weight on the padding, right sign:", weights[0, :, 3].tolist())
print("weight on the padding, wrong sign:", wrong[0, :, 3].tolist())
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# With the wrong sign *all* the weight falls on the padding, silently: every place is handed the same meaningless vector, so that the source might as well be blank. Remember this symptom.
#
# ## Three attentions, three masks
#
# An encoder-decoder uses attention three times. Encoder on itself: all real tokens. Decoder on itself: real tokens to the left, and itself. Decoder on memory: all real tokens of the source, for every row. Before the picture: which of them is a triangle, and which of them is not square?

# %%
src_ids = torch.tensor([[11, 12, 13, 3, 0]])  # the end mark is 3, one padding
tgt_ids = torch.tensor([[2, 21, 22, 23]])  # the mark of the beginning is 2
src_real = tx.padding_mask(src_ids, pad_id=0)
masks = {"encoder on itself": src_real.expand(5, 5),
         "decoder on itself": tx.causal_mask(4),
         "decoder on source": src_real.expand(4, 5)}
fig, axes = plots.figure(1, 3, width=10.2, height=3.9)
for ax, (name, mask) in zip(axes, masks.items(), strict=True):
    plots.heatmap(mask, allowed=mask, low=0, high=1, title=name, xlabel="looked at", ax=ax)
axes[0].set_ylabel("who looks (place)")
plots.show(fig, name="11_three_masks", alt="""
    Three masks. The encoder on itself: a square, open but for the column of padding.
    The decoder on itself: a lower triangle. The decoder on the source: four rows of
    five, open but for the column of padding.""")

# %% [markdown]
# Only the middle one is a triangle. "The causal mask is a thing of the decoder", says a report: of the original's three attentions only this one wears it, but lesson 02 put it on an encoder stack and got a language model. It is an argument of attention, not an organ of a stack; and the decoder's *other* attention
# must not wear it, since the source is known as a whole.
#
# ## What the decoder reads in training: the answer, one place late
#
# A translator writes one piece after another. To train it we need not let it write. The right translation is known, so the decoder is given all of it, shifted by one place: it reads `<bos> y₁ y₂ …` and must predict `y₁ y₂ … <eos>`. This is **teacher forcing**:
# every place is trained at once, as if all before it had been written correctly. Here is one pair as the training loop gets it.

# %%
recipe = plan("world", "translation")
some = Pairs(pairs.train.sources[:2000], pairs.train.targets[:2000])
toy = tx.Tokenizer.train([*some.sources, *some.targets], vocab_size=700)
objective = translation_scoring.translation_objective(toy, some, recipe.config.max_len)
source_ids, read_ids, wanted_ids = (ids[0].tolist() for ids in objective.batch([3]))
assert (read_ids[0], wanted_ids[-1]) == (toy.bos_id, toy.eos_id)
assert read_ids[1:] == wanted_ids[:-1]  # shifted by one place
print("encoder reads   ", toy.decode(source_ids), "<eos>")
print("decoder reads    <bos>", toy.decode(read_ids))
print("decoder predicts", toy.decode(wanted_ids), "<eos>")

# %% [markdown]
# So the answer to each place stands in the decoder's input, one place to the right. The causal mask is what keeps it from being read. Lesson 02's test shows it: change one input, see which outputs move. Below are a translator with random weights and a copy whose decoder has no mask. A 1 above the diagonal means: the answer can be read off.

# %%
tiny = tx.TransformerConfig(
    vocab_size=40, d_model=12, n_heads=3, n_layers=2, d_ff=20, tie_embeddings=True
)
honest = tx.Translator(tiny).double().eval()
unmasked = copy.deepcopy(honest)
unmasked.decoder.config = tiny.replace(causal=False)


@torch.no_grad()
def moved_by(model, which):  # row: output, column: the input that was changed
    before, columns = model(src_ids, tgt_ids, src_real), []  # (1, T, V)
    for s in range((src_ids, tgt_ids)[which].shape[1]):
        inputs = [src_ids.clone(), tgt_ids.clone()]
        inputs[which][0, s] += 1
        columns.append((model(*inputs, src_real) != before).any(dim=-1)[0])
    return torch.stack(columns, dim=1).int()

# %% [markdown]
# Three tables: the target's tokens changed with the mask and without, and the source's, the last of which is padding. Which columns will be all zero?

# %%
print("target, with the mask:\n", moved_by(honest, 1))
print("target, without:\n", moved_by(unmasked, 1))
print("source:\n", moved_by(honest, 0))
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# With the mask the table *is* the triangle. Without it the first output already moves with the last word of the answer: training would end near a loss of zero, and while translating, when there is nothing to the right, such a model would be lost. The source moves everything, its padding nothing.
#
# ## Tied embeddings, and the paper's 65 million
#
# Source and target share one vocabulary here, so one matrix of $V \times D$ can serve three times: as embedding of the source, of the target, and as output layer. That is **tying**. Below, our model tied and untied, and the base model of the paper (section 3.4 ties all three).

# %%
base = tx.TransformerConfig(vocab_size=37_000, d_model=512, n_heads=8, n_layers=6, d_ff=2_048)
configs = {"ours": plan("world", "translation", "laptop").config, "base": base.replace(norm="last")}
for name, config in configs.items():
    both = [config.replace(tie_embeddings=tied) for tied in (True, False)]
    tied, untied = (tx.parameter_table(each, head="translation").total for each in both)
    print(f"{name:<6} tied {tied:>12,}    untied {untied:>12,}")
matrix = 512 * 512 + 512  # one projection of the base model, with its bias
print(f"cross-attention {6 * 4 * matrix:,}, all 18 output projections {18 * matrix:,}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The paper's table 3 says 65 million for its base model; the closed form with 37,000 shared pieces gives 63,082,496. We state the gap and invent no reason for it. A student's list of terms forgot the last line: the output projections, and cross-attention altogether. ($V$ is "about 37,000" in the paper's section 5.1.)
#
# ## Label smoothing by hand
#
# The loss has one new ingredient. Usually all of the target's probability is on the right piece, so that the model is rewarded for being ever surer. With **label smoothing** $s$ the right piece keeps $1 - s$, and $s$ is spread evenly over all $V$ pieces, the right one included. Four pieces, by loops and by torch:

# %%
logits, target, s = [2.0, 0.5, -1.0, 0.0], 0, 0.1
log_total = math.log(sum(math.exp(x) for x in logits))
loss = 0.0
for piece, logit in enumerate(logits):
    wanted = (1 - s) * (piece == target) + s / len(logits)
    loss -= wanted * (logit - log_total)
by_torch = F.cross_entropy(torch.tensor([logits]), torch.tensor([target]), label_smoothing=s)
torch.testing.assert_close(torch.tensor(loss), by_torch)

# %% [markdown]
# How low can it get? The best a model can do is to give exactly the smoothed target; what is left is the target's own entropy.

# %%
def floor_of(s, vocab_size):
    right, other = 1 - s + s / vocab_size, s / vocab_size
    return -right * math.log(right) - (vocab_size - 1) * other * math.log(other)


print(f"smoothed loss {loss:.4f}, lowest possible {floor_of(s, 4):.4f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# A smoothed loss never reaches zero, so do not compare it with one that was not smoothed. Held-out losses below are measured without.
#
# ## The package: the same as torch's
#
# `tx.Translator` puts all this together. Is it what everybody else calls a transformer? `TorchTranslator` takes torch's own `nn.Transformer`, copies our weights into it, and turns the masks over. In float64 nothing but rounding may differ.

# %%
for norm in ("first", "last"):
    mine = tx.Translator(tiny.replace(norm=norm)).double().eval()
    for parameter in mine.parameters():
        parameter.data += 0.3 * torch.randn_like(
            parameter
        )  # biases of zero would hide mistakes
    theirs = lesson_11.TorchTranslator(mine)
    difference = theirs(src_ids, tgt_ids, src_real) - mine(src_ids, tgt_ids, src_real)
    assert difference.abs().max() < 1e-9
    print(f"norm {norm}: equal to torch.nn.Transformer")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Use it: train a translator
#
# Now we train one. Batches hold pairs of similar length, up to a number of tokens, so that little is padding. The recipe (width, layers, rate, smoothing) is the budget's. At the start the model knows nothing: it must be as surprised as somebody who guesses among $V$ pieces. What will it reach? The floor of smoothing is one bound.

# %%
begin = time.perf_counter()
result = fit(pairs, objective="translation", progress=False)
model, tokenizer = result.model, result.tokenizer
print(f"trained and scored in {time.perf_counter() - begin:.0f} s")

# %% [markdown]
# The curve first. The upper dashed line is $\ln V$. Where would you expect a bend? Frequent endings and articles are quickly learned; *which* word belongs there can only be learned once cross-attention finds the place to look.

# %%
history, V = result.history, model.config.vocab_size
levels = {"guessing, ln V": math.log(V), "floor": floor_of(result.recipe.label_smoothing, V)}
fig, ax = plots.curves(
    [plots.Curve("training", history.step, history.loss)], references=levels, xlabel="step",
    ylabel="smoothed loss (nats per piece)", y_range=(0, 8), title="A translator learns",
)  # fmt: skip
plots.show(fig, name="11_learning", alt="""
    Training loss of the translator over the steps: it begins at the dashed line ln V,
    falls fast, then slowly, and ends above a lower dashed line, the floor that
    smoothing leaves.""")

# %% [markdown]
# It starts near $\ln V$, as it should; what is left above the floor at the end is what the model still has to be surprised about. Here is the score on all held-out pairs, as it has to be reported: with its interval and sacreBLEU's *signature*, which says how it was counted.

# %%
print(textwrap.fill(str(result.evaluation), 88))
print(f"\nunsmoothed, held out: {result.evaluation.nats_per_token:.3f} nats per piece")

# %% [markdown]
# And beside the dictionary, on the same fresh sentences. *Wholly right* asks for the very sentence of the grammar. Then the first translations that differ: are they mistakes of words or of agreement?

# %%
tries["greedy"] = [one.text for one in translate(model, tokenizer, questions)]
print(HEAD)
for name, texts in tries.items():
    report(name, texts)
rows = [t for t in zip(questions, tries["greedy"], answers, strict=True) if t[1] != t[2]]
for english, french, right in rows[:3]:
    print(f"\n{english}\n    the model  {french}\n    right      {right}")

# %% [markdown]
# ## Look: cross-attention as an alignment
#
# Where did it look? For a real text nobody knows where a translator *should* look. Here the grammar does. We take a short sentence in which French turns two words around, give the model its right translation, and draw for each piece that is to be written how much each English piece was looked at. Row $t$ is the step that *predicts* piece $t$, when it has not been read yet. What should cross?


# %%
def turned(pair):
    places = [j for _, j in sorted(pair.alignment)]
    return places != sorted(places) and 6 <= len(pair.english) <= 8


pair = min(filter(turned, fresh), key=lambda p: len(tokenizer.encode(write_out(p.french, "fr"))))
english, french = write_out(pair.english, "en"), write_out(pair.french, "fr")
weights = lesson_11.cross_attention(model, tokenizer, english, french).cpu()  # (L, H, T, S)
mass = lesson_11.alignment_mass(model, tokenizer, fresh[:300])
layer, head = divmod(int(mass.mass.argmax()), model.config.n_heads)
print(english, "→", french)

# %% [markdown]
# Left the head that agrees best with the grammar (over 300 sentences, not this one), in the middle the mean of all heads, right the truth.

# %%
maps = {f"layer {layer + 1}, head {head + 1}": weights[layer, head],
        "mean of all heads": weights.mean(dim=(0, 1)),
        "by the grammar": lesson_11.true_alignment(tokenizer, pair)}
rows = [piece.replace("▁", "") for piece in [*tokenizer.pieces(french), "<eos>"]]
columns = [piece.replace("▁", "") for piece in [*tokenizer.pieces(english), "<eos>"]]
fig, axes = plots.figure(1, 3, width=10.2, height=4.2)
for ax, (name, table) in zip(axes, maps.items(), strict=True):
    shown = rows if ax is axes[0] else [""] * len(rows)
    plots.heatmap(table, row_labels=shown, col_labels=columns, low=0, high=1, title=name, ax=ax)
axes[0].set_ylabel("French piece to be written")
fig.supxlabel("English piece looked at")
plots.show(fig, name="11_alignment", alt="""
    Three maps of French pieces to be written against English pieces. Right, by the
    grammar: a diagonal on which noun and adjective cross. Left, the best head: nearly
    the same cells are dark. Middle, the mean of all heads: paler.""")

# %% [markdown]
# Look for the crossing: the French noun is written while its English counterpart, further to the right, is looked at. No such thing was ever told to the model; it had only pairs of whole sentences. Rows that are empty on the right (end marks, words without counterpart such as the *ai* of *j'ai lu*) are free to look anywhere.
#
# One sentence proves nothing. So: how much of each head's attention falls on the right place, over 300 sentences? The dashed line is what an even spread would give. How many heads, would you guess, do this job?

# %%
shares = {f"layer {n + 1}, head {h + 1}": share
          for n, row in enumerate(mass.mass.tolist()) for h, share in enumerate(row)}
fig, ax = plots.bars(
    shares, numbers=".2f", references={"even": mass.uniform},
    xlabel="share of attention on aligned pieces", title="How much looks where the grammar says",
)  # fmt: skip
plots.show(fig, name="11_mass", alt="""
    One bar for each cross-attention head: the share of its attention that falls on
    the pieces of the aligned word, beside a dashed line for an even spread. Most
    heads of the trained model lie well beyond it.""")

# %% [markdown]
# A head below 1 need not be wrong. To write the ending of an adjective it is *useful* to look at the noun, which the alignment does not count; the encoder has moved information between places as well. The map says where a head looks, and the grammar only one reason to look somewhere.
#
# ## Searching: the best piece is not the best sentence
#
# While translating, the model gives a probability to each next piece, and somebody has to choose. **Greedy**: always the most probable. Here is a tiny model as a table, with words for pieces; $P$ of a sentence is the product along its path. Start with *la*, the likelier article, and see where it leads.

# %%
table = {
    (): {"la": 0.5, "le": 0.4, "<eos>": 0.1},
    ("la",): {"chat": 0.4, "nuit": 0.3, "<eos>": 0.3},
    ("le",): {"chat": 0.9, "nuit": 0.05, "<eos>": 0.05},
    ("la", "chat"): {"<eos>": 0.6, "noir": 0.4},
    ("le", "chat"): {"<eos>": 0.52, "noir": 0.48},
    ("le", "chat", "noir"): {"<eos>": 1.0},
}

# %% [markdown]
# **Beam search** hedges: it follows the best few beginnings, its *beams*, at once. From every unfinished beam, all continuations; keep the best few of all; those that end are finished and leave. A beam of one is the greedy way. Follow both on paper first: two steps are enough to see where they part.

# %%
def follow(size):
    beams, finished = {(): 1.0}, {}
    while beams:
        grown = {
            (*path, word): p * q for path, p in beams.items() for word, q in table[path].items()
        }
        kept = sorted(grown, key=grown.get, reverse=True)[:size]
        print("  keeps", ",  ".join(f"{' '.join(path)} {grown[path]:.3f}" for path in kept))
        finished |= {path: grown[path] for path in kept if path[-1] == "<eos>"}
        beams = {path: grown[path] for path in kept if path[-1] != "<eos>"}
    return finished


for size in (1, 2):
    print(f"beam of {size}")
    finished = follow(size)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# A beam of one is greedy: it takes *la*, and cannot go back. A beam of two keeps *le* alive, although it was second, and finds a sentence half as probable again.
#
# ### Short or long: the length penalty
#
# Two sentences have finished, one of three words and one of four (the end mark counts). Which is better? Every further word makes $P$ smaller, so comparing $\log P$ favours the short one. The **length penalty** $\alpha$ divides: $\log P / n^\alpha$ for $n$ written pieces. At 0 nothing changes, at 1 it is the mean per piece.

# %%
words = ["<bos>", "<eos>", "la", "le", "chat", "nuit", "noir"]


class TableSteps:
    """What the package's beam search asks of a model, answered from the table."""

    def logits(self, prefixes):
        paths = [tuple(words[i] for i in row[1:]) for row in prefixes.tolist()]
        known = [table.get(path, {"<eos>": 1.0}) for path in paths]
        shares = [[each.get(word, 0.0) for word in words] for each in known]
        return torch.tensor(shares).log()

    def select(self, rows):
        pass  # it keeps nothing

# %% [markdown]
# The best of the finished by hand, and what the package finds with the same two beams, for two penalties. Which sentence would you expect for which?

# %%
for alpha in (0.0, 1.0):
    best = max(finished, key=lambda path: math.log(finished[path]) / len(path) ** alpha)
    search = Search(beam_size=2, length_penalty=alpha)
    (found,) = search_beams(TableSteps(), [9], bos_id=0, eos_id=1, search=search)
    assert tuple(words[i] for i in found.token_ids) == best
    print(f"length penalty {alpha}: {' '.join(best)}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# By hand and by package the same. Now with the trained model. *More probable* compares $\log P$ of each translation with that of the greedy one. Is the beam always ahead? And is more probable also better? Penalty 0 is shown for the last row: watch the *brevity*, the factor below 1 that BLEU charges for translations shorter than the references.

# %%
few, right = questions[:300], [[answer] for answer in answers[:300]]
greedy = translate(model, tokenizer, few)
print(f"{'search':<20}{'BLEU':>8}{'brevity':>10}{'more probable':>16}{'less probable':>16}")
for size, alpha in ((1, 1.0), (2, 1.0), (4, 1.0), (8, 1.0), (4, 0.0)):
    search = Search(beam_size=size, length_penalty=alpha)
    found = translate(model, tokenizer, few, search=search)
    gains = [b.log_prob - g.log_prob for b, g in zip(found, greedy, strict=True)]
    score = score_translations([one.text for one in found], right, n_resamples=2)
    more, less = sum(gain > 1e-3 for gain in gains), sum(gain < -1e-3 for gain in gains)
    figures = f"{score.bleu:>9.1f}{score.brevity:>10.3f}{more:>16}{less:>16}"
    print(f"beam {size}, penalty {alpha}{figures}")

# %% [markdown]
# With a penalty of 1 the beam seeks the best *mean*, so its $\log P$ may well be lower; with 0 it seeks $\log P$ itself and still has no guarantee, since the greedy path may be pushed out on the way. In our small world each sentence has one translation and the model is sure of it, so there is little for a search to find. On real sentences it is worth more: see the table near the end.
#
# ## The cache: writing one more piece costs one piece
#
# To write piece 50, must all 49 before it be computed again? Their keys and values cannot change: the causal mask lets nobody look to the right, so what they computed is what they would compute again. So they are **kept**. Outputs must be equal; only the time may differ.

# %%
seconds = {}
for cached in (True, False):
    begin = time.process_time()  # of the processor: what else it does hardly counts
    found = translate(model, tokenizer, few, cached=cached)
    seconds[cached] = time.process_time() - begin
    assert [one.text for one in found] == [one.text for one in greedy]
print(f"equal translations; kept {seconds[True]:.2f} s, anew {seconds[False]:.2f} s")

# %% [markdown]
# Our sentences are short. How does the difference grow with the length? Each step without a cache reads the whole prefix; $n$ steps read about $n^2 / 2$ pieces, with a cache $n$. The package's `writing_seconds` lets a model with random weights write exactly $n$ pieces for four sources. On these doubly logarithmic axes, which slopes do you expect?

# %%
writer = tx.Translator(configs["ours"].replace(max_len=130)).eval()
lengths = [8, 16, 32, 64, 128]
kept, anew = (
    lesson_11.writing_seconds(writer, lengths, cached=cached) for cached in (True, False)
)
fig, ax = plots.curves(
    [plots.Curve("kept", lengths, kept), plots.Curve("anew", lengths, anew)],
    x_log=True, y_log=True,
    xlabel="pieces written", ylabel="seconds of the processor", title="Keys and values kept, or computed anew",
)  # fmt: skip
plots.show(fig, name="11_cache", alt="""
    Time to write 8 to 128 pieces on logarithmic axes. With keys and values kept the
    line rises with slope one; computed anew it lies above and bends upwards, towards
    slope two.""")
print(f"at {lengths[-1]} pieces {anew[-1] / kept[-1]:.1f} times as fast")

# %% [markdown]
# *Kept* rises in proportion to the length. *Anew* runs along with it at first, as a small step costs what it costs to start it, then bends upwards. The price is memory: two vectors of width $D$ for each layer and written piece.
#
# ## Break it: "suis suis . . . suis"
#
# A student's translator was trained for 17 epochs, *then diverged*, and translated "I am a student" as "suis suis . . . suis". It had its norms last, no warm-up, too high a rate and no dropout. We can repeat its story in seconds: take our good model and go on training it, without warm-up, at three rates. What will each of them write?

# %%
lesson = Pairs(pairs.train.sources[:3000], pairs.train.targets[:3000])
again = translation_scoring.translation_objective(tokenizer, lesson, model.config.max_len, 0.1)
patients, curves = {"before": model}, []
for rate in (1e-3, 1e-2, 2e-2):
    settings = TrainingSettings(n_steps=20, lr=rate, tokens_per_batch=1000, log_every=1)
    patient = patients[f"rate {rate:g}"] = copy.deepcopy(model)
    seen = train(patient, again, settings, progress=False)
    curves.append(plots.Curve(f"rate {rate:g}", seen.step, seen.loss))

# %% [markdown]
# The first point of each curve is the loss before anything was changed. How many steps will it take until the damage is done?

# %%
fig, ax = plots.curves(
    curves, xlabel="further step, without warm-up", ylabel="smoothed loss (nats per piece)",
    references={"guessing, ln V": math.log(V)}, title="A good model, trained on too fast",
)  # fmt: skip
plots.show(fig, name="11_diverging", alt="""
    Loss over twenty further steps of the trained translator at three rates. At the
    lowest it stays low; at the two higher ones it jumps within a few steps, and only
    partly comes down.""")

# %% [markdown]
# At the higher rates one step is enough. A fresh optimizer divides by a mean of gradients that it hardly knows yet, so its first steps are as long as the rate allows; warm-up exists for that moment. Now a question that no loss curve answers: **does the patient still read its source?** If it does, somebody else's source must hurt. We measure the held-out loss with
# each sentence's own source, and with its neighbour's.

# %%
own = Pairs(tuple(questions[:200]), tuple(answers[:200]))
print(f"{'':<14}own source   another's   different translations of 200")
for name, patient in patients.items():
    losses = lesson_11.source_losses(patient, tokenizer, own)
    texts = {one.text for one in translate(patient, tokenizer, own.sources)}
    print(f"{name:<14}{losses.own:>8.2f}{losses.other:>13.2f}{len(texts):>16}")

# %% [markdown]
# Where both losses are equal, the source is worth nothing: what is left is a language model of French that says the same to everybody. Where they differ, it still reads, whatever its output looks like. The report's own diagnostic looks at the output: **forbid repeats**, and **read on** past an early end mark. We do both to the two sentences in which each patient repeats itself most. What does each patient still know?


# %%
def repeats(one):
    return len(one.token_ids) - len(set(one.token_ids))


for name in ("rate 0.01", "rate 0.02"):
    written = translate(patients[name], tokenizer, own.sources)
    worst = [one.source for one in sorted(written, key=repeats, reverse=True)[:2]]
    for how, search in lesson_11.DIAGNOSES.items():
        print(f"{name}, {how}")
        for found in translate(patients[name], tokenizer, worst, search=search):
            print(f"    {found.source}\n        → {found.text[:76]}")

# %% [markdown]
# If the words of the sentence appear once repeats are forbidden, the knowledge was there, and the *search* was caught in a loop, as the report found for its model. If the same few frequent words come for every source, nothing about the source is left. (Both diagnoses forbid things that good sentences need. They examine; they do not translate.)
#
# ### Broken from the start
#
# And trained from scratch with all four faults? A short live version, on short sentences and a small model: all faults, and all faults but one, the norm (first instead of last).

# %%
n_steps = 20 if recipe.budget == "smoke" else 250
faults = {"warmup_steps": 0, "lr": 2e-2, "dropout": 0.0, "n_steps": n_steps}
for name, norm in {"all four faults": "last", "repaired: norm": "first"}.items():
    found = lesson_11.short_race(pairs, norm=norm, **faults)
    losses = lesson_11.source_losses(found.model, found.tokenizer, own)
    print(f"{name}: own source {losses.own:.2f}, another's {losses.other:.2f} nats")
    for one in translate(found.model, found.tokenizer, questions[5:8]):
        print(f"    {one.source}\n        → {one.text[:76]}")

# %% [markdown]
# So short a run shows how such a model fails, not which of the faults matters in the end. For that, `python -m experiments broken-translation` trains ten: all faults, each repaired alone, all sound, and each fault alone. If it has been run here, this is its table.

# %%
print(lesson_11.stored_faults())

# %% [markdown]
# In the table kept with this lesson one culprit stands out: the **rate**. It is the only fault that ruins the model alone, and repairing it helps most, though not all the way: with three faults left the model still limps. The norm placed last comes second; without it the high rate does a little less harm. No warm-up costs a few points
# by itself, and a missing dropout none at all on a language as regular as ours. Faults that are harmless alone are not harmless together.
#
# ## BLEU, told honestly
#
# Four things that a single number hides. First, **one sentence**. Here are three good translations of the same English. We score one of them against each of the others, and then a repetition in the manner of the report. Then, **tokenisation**: the same pair, split into words as sacreBLEU does by default (13a), at spaces only, and into characters.

# %%
from sacrebleu.metrics import BLEU

good = ["La rivière est pleine de poissons.", "Le fleuve est rempli de poissons.",
        "La rivière regorge de poissons."]
looping = "La rivière est pleine de poissons de poissons de poissons."
for text, reference in ((good[0], good[1]), (good[0], good[2]), (looping, good[0])):
    scores = [BLEU(tokenize=how).corpus_score([text], [[reference]]).score
              for how in ("13a", "none", "char")]
    print(f"{text}\n    against {reference}")
    print("    13a {:.0f}, spaces {:.0f}, characters {:.0f}".format(*scores))
together = BLEU().corpus_score(good[:1], [[good[1]], [good[2]]]).score
print(f"{good[0]}\n    against the two others together: {together:.0f}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Two faultless translations of a sentence score low against each other, and the stammering one scores above both: on one sentence BLEU means nothing. It was made for a whole test set, where such accidents average out. The way of splitting changes the figure by tens of points with nothing translated differently, so figures compare only where signatures are equal. And with **several references** a translation has more chances to be
# right: the last line is higher than either alone. A figure against five references must not stand beside one against a single reference.
#
# Last, **the interval**. It comes from drawing test sets out of this one, with replacement, a thousand times. How wide is it for 25 sentences, and how does it shrink? We draw the dictionary and the trained model.

# %%
sizes, bands = [25, 50, 100, 200, 400, len(answers)], []
for name, texts in tries.items():
    scores = [score_translations(texts[:n], [[a] for a in answers[:n]], n_resamples=300)
              for n in sizes]
    low, high = zip(*(score.interval for score in scores), strict=True)
    bands.append(plots.Curve(name, sizes, [one.bleu for one in scores], low=low, high=high))
fig, ax = plots.curves(
    bands, xlabel="sentences in the test set", ylabel="BLEU, with 95 % interval",
    title="How sure is a BLEU score?",
)  # fmt: skip
plots.show(fig, name="11_interval", alt="""
    BLEU of the dictionary and of the trained model against the number of test
    sentences, 25 to several hundred, with shaded intervals. The dictionary's is wide
    on the left and narrows to the right; the model's is narrow.""")

# %% [markdown]
# Four times the sentences, about half the width. Beware of the left end of a very good model: if a small test set happens to hold no mistake of it, every test set drawn from it holds none either, and the interval has no width at all. That is not certainty. The interval says how much *another choice of sentences* would move the figure. It says nothing about another seed of training, another domain, or whether the translations are good: French with a wrong article loses as many points as French with a wrong word.
#
# ## Real pairs
#
# Does it work outside the world? Tatoeba has everyday sentences, Multi30k captions of photographs. Training takes longer than this lesson, so it is done beforehand by a command, and the next cell shows what is kept, with machine and date. The four sentences of the student's lab, and everything that translates them, were taken out of Tatoeba's training pairs.


# %%
print(lesson_11.stored_translation("tatoeba-en-fr"))
print(lesson_11.stored_translation("multi30k-en-fr"))

# %% [markdown]
# If the table is there, read it against three things: the interval; "all references", where each different English sentence counts once against all of its French ones; and the signature. The sentences are shown as greedy and beam wrote them, right or wrong.
#
# ## What this does not show
#
# - Our world has few words, and one translation for each of its sentences. A BLEU that is high here says that the machinery works, not that translation is solved. No ambiguity, no idiom, no name, no sentence longer than the model can read.
# - Held-out sentences are new, but their words and patterns are not.
# - One seed, in front of you. The interval of BLEU does not cover that.
# - Attention on the aligned word is not an explanation of the translation (lesson 02 has the dispute).
# - The kicked model and the short race show *how* a translator breaks. The table of faults has one seed, one size and one optimizer; at another size another fault may matter more.

# %% [markdown]
# ## Questions
#
# Four questions without code. Pick an answer and read what it gets back; the wrong ones are not foolish.

# %%
course.quiz("translation")

# %% [markdown]
# ## Exercises
#
# Now you. Each exercise has a cell with dots to fill in and a cell that checks what you wrote; the check names the mistake where it knows it. As long as there are only dots, it says "not attempted yet".
#
# ### Exercise: the mask of cross-attention
#
# `Level 2/5 · 5 minutes · outcome 1`
#
# Write `cross_attention_mask(src_ids, tgt_ids, pad_id)`. `src_ids` has shape (B, S) and `tgt_ids` (B, T), both filled up on the right with `pad_id`, an id of the vocabulary that need not be 0. Return a boolean tensor of shape (B, T, S), `True` where target place $t$ **may** look at source token $s$. It is the same for every
# target row, padded ones too. *It trains* knowing whose padding matters, and that nothing here is causal.
#
# <details><summary>Hint</summary>
#
# One comparison gives (B, S). Put an axis of length one between the two, `[:, None, :]`, and `expand` it to T rows. Of `tgt_ids` you need only the length.
#
# </details>


# %%
def cross_attention_mask(src_ids, tgt_ids, pad_id):
    ### BEGIN SOLUTION
    real = src_ids != pad_id  # (B, S)
    return real[:, None, :].expand(-1, tgt_ids.shape[1], -1)  # (B, T, S)
    ### END SOLUTION


# %%
course.check("cross_attention_mask", cross_attention_mask)

# %% [markdown]
# ### Exercise: greedy decoding
#
# `Level 2/5 · 10 minutes · outcome 4`
#
# Write `greedy_decode(step, bos_id, eos_id, max_len)`. `step(prefix_ids)` takes a list of ids, `bos_id` first, and returns the log-probabilities of the next id, a tensor of shape (V,). Return a list of ids: `bos_id`, then each time the most probable next one, until `eos_id` (which is kept) or until there are `max_len` ids **in all**, `bos_id` included (`max_len` is at least 2). There are no
# ties. *It trains* the loop that every generating model runs in.
#
# <details><summary>Hint</summary>
#
# `while len(found) < max_len and found[-1] != eos_id`, nearly. Give `step` the whole prefix each time, and make an `int` of what `argmax` returns.
#
# </details>


# %%
def greedy_decode(step, bos_id, eos_id, max_len):
    ### BEGIN SOLUTION
    found = [bos_id]
    while len(found) < max_len:
        found.append(int(step(found).argmax()))
        if found[-1] == eos_id:
            break
    return found
    ### END SOLUTION


# %%
course.check("greedy_decode", greedy_decode)

# %% [markdown]
# ### Exercise: beam search
#
# `Level 4/5 · 25 minutes · outcome 4`
#
# Write `beam_search(step, bos_id, eos_id, beam_size, max_len, length_penalty)`; `step`, ids and `max_len` as before. From every unfinished beam make all continuations; keep the `beam_size` best of all by **summed** log-probability. Those that end in `eos_id` are finished and leave; nothing takes their places in that step, and the next step again keeps `beam_size`. Go on
# until none is left or `max_len` is reached. Return the best of finished *and* unfinished by sum / (number of generated ids) ** `length_penalty`; `eos_id` counts as generated, `bos_id` does not. *It trains* keeping several things apart: what is kept by, and what is compared by.
#
# <details><summary>Hint</summary>
#
# A beam is a pair of ids and sum. All beams that grow are equally long, so that the penalty plays no part until the very end. Two lists, `beams` and `finished`, and one `sorted(..., reverse=True)[:beam_size]`, as in `follow` above, with sums of logarithms for products.
#
# </details>


# %%
def beam_search(step, bos_id, eos_id, beam_size, max_len, length_penalty):
    ### BEGIN SOLUTION
    beams, finished = [([bos_id], 0.0)], []
    while beams and len(beams[0][0]) < max_len:
        grown = [
            ([*ids, token], total + log_prob)
            for ids, total in beams
            for token, log_prob in enumerate(step(ids).tolist())
        ]
        kept = sorted(grown, key=lambda beam: beam[1], reverse=True)[:beam_size]
        finished += [beam for beam in kept if beam[0][-1] == eos_id]
        beams = [beam for beam in kept if beam[0][-1] != eos_id]
    return max(
        finished + beams, key=lambda beam: beam[1] / (len(beam[0]) - 1) ** length_penalty
    )[0]
    ### END SOLUTION


# %%
course.check("beam_search", beam_search)

# %% [markdown]
# ### Try it yourself
#
# In your own copy (`make lab`), say what you expect, then run.
#
# **1.** Self-attention asks $y = x$. What changes in cross-attention if you exchange the two sides, so that the source asks and the translation answers?
#
# <details><summary>Answer</summary>
#
# There would be one result for each *source* token, computed from words that are not written yet while translating. The one who needs something asks: queries from the decoder, keys and values from the encoder.
#
# </details>
#
# **2.** Forget the shift: let the decoder read $y_1 \ldots y_n$ and predict $y_1 \ldots y_n$. The causal mask is in place. What loss, and what translations?
#
# <details><summary>Answer</summary>
#
# The loss falls to the floor of smoothing at once: a place may look at itself, where its answer stands. The model learns to copy what it reads, and with `<bos>` as its only input it has nothing sensible to copy. The leak test sees nothing, since the mask is right and the data are wrong.
#
# </details>
#
# **3.** A colleague reports a BLEU of 60 (lower-cased, already split into words) and you have 45 on the raw text of the same test set. Who translates better?
#
# <details><summary>Answer</summary>
#
# Nobody can tell. Case, tokenisation and references differ, so the two figures are not measured with the same rule. Ask for the translations and score both with one signature, on the same sentences.
#
# </details>
#
# ## Summary
#
# 1. Cross-attention: queries from the decoder, keys and values from the encoder's memory, padding of the source masked. The encoder masks padding; the decoder's self-attention is causal, as its training input contains the answer; cross-attention is never causal.
# 2. Teacher forcing: read `<bos> y`, predict `y <eos>`. Smoothing takes $s$ from the right piece, spreads it over all, and leaves a floor. One tied matrix serves three times.
# 3. Where the true alignment is known, each head's attention can be compared with it, over many sentences and against an even spread.
# 4. Greedy takes the best piece, beams keep several paths; $\log P / n^\alpha$ compares lengths; keys and values of what is written are kept, with equal outputs.
# 5. A translator that does not read is found by giving it somebody else's source. Forbidding repeats and reading on show what a broken one still knows.
# 6. BLEU belongs to a whole test set, with signature, references and interval; it never says anything about one sentence.
#
# *Where this comes from:* Vaswani et al., [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), sections 3.1, 3.2.3, 3.4 (tying), 5.3 and 5.4 (warm-up, smoothing), 6.1 (beams), table 3. Attention between two languages, drawn as an alignment: Bahdanau, Cho and Bengio, [arXiv:1409.0473](https://arxiv.org/abs/1409.0473). Label smoothing: Szegedy et al.,
# [arXiv:1512.00567](https://arxiv.org/abs/1512.00567), section 7. Tied embeddings: Press and Wolf, [arXiv:1608.05859](https://arxiv.org/abs/1608.05859). BLEU: Papineni et al., ACL 2002. Signatures: Post, [arXiv:1804.08771](https://arxiv.org/abs/1804.08771). Resampling: Koehn, EMNLP 2004.
#
# *What comes next:* lesson 13 asks where the time goes, and what makes a model faster without changing it.
