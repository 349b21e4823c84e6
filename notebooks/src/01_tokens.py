# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 01 · Tokens
#
# **What does a model read?**
#
# A text becomes a list of numbers first, one for each **token**: a word, a part of a word or a letter. All tokens together are the **vocabulary**; a **tokenizer** cuts a text into them.
#
# After this lesson you can
#
# 1. train a byte-pair encoding on paper and read it in Python (*Further:* write it);
# 2. turn tokens back into the text, and say what makes a tokenizer lossless;
# 3. turn a text into inputs and targets, with the special tokens that a model needs;
# 4. say what a model cannot see of a word, and why counting letters is hard for it;
# 5. put a price on a vocabulary, and recognise a tokenizer that was trained on other text (*Further*).
#
# *You need:* lesson 00.
# *It takes:* an hour and a half with the exercises; twenty-five seconds to run, with or without a GPU.

# %% [markdown]
# ## Set-up
#
# We learn from 3,000 short book reviews in simple French, written by a grammar of ours, and test on 500 others.

# %%
import itertools
import math
from collections import Counter

import torch

import tinytx as tx
import tinytx_course as course
from tinytx import bpe as subwords
from tinytx_course import plots

torch.set_num_threads(1)
world, corpus = tx.World(), tx.load_corpus("world")
train, test = corpus.train.texts[:3_000], corpus.test.texts[:500]
print(train[0])

# %% [markdown]
# Two earlier questions.

# %%
course.recall("01")

# %% [markdown]
# ## Why: a token for each word
#
# The tempting way is one token for each of the most frequent words, here 50, and `<unk>`, "unknown", for all the rest. This is how such a model reads *magnificent* and *unreadable*:

# %% tags=["nbval-check-output"]
train_words = " ".join(train).split(" ")
known = [word for word, _ in Counter(train_words).most_common(50)]
read = []
for review in ("Le roman est magnifique .", "Le roman est illisible ."):
    read.append([word if word in known else "<unk>" for word in review.split(" ")])
    print(review, " → ", *read[-1])
assert read[0] == read[1]
print(f"characters per word: {sum(map(len, train)) / len(train_words):.1f}")

# %% [markdown]
# Praise and blame have become one text. So a tokenizer should be **lossless**: the tokens can be turned back into exactly the same text. One token per *character* loses nothing where every character is known, but the text is five times as long. Between the two are **subwords**: frequent words whole, others in parts, down to letters.
#
# ## By hand: merge what occurs together most often
#
# **Byte-pair encoding** (BPE) begins with letters and merges. Our text: six times _le_, three times _les_, twice _elle_, once _belle_. It is split at spaces first (**pre-tokenization**), so no merge crosses one; the sign `▁` stands for the space before a word. Count on paper how often each two neighbours occur. The most frequent pair is the first **merge**: it becomes *one* token wherever its right half follows its left half.

# %% tags=["nbval-check-output"]
words = {("▁", *"le"): 6, ("▁", *"les"): 3, ("▁", *"elle"): 2, ("▁", *"belle"): 1}

def pair_counts(words):
    pairs = Counter()
    for tokens, count in words.items():
        for left, right in itertools.pairwise(tokens):
            pairs[left, right] += count
    return pairs


for (left, right), count in pair_counts(words).most_common():
    print(left, right, count)

def join(tokens, left, right):
    joined = []
    for token in tokens:
        if joined and joined[-1] == left and token == right:
            joined[-1] = left + right
        else:
            joined.append(token)
    return tuple(joined)


for tokens, count in words.items():
    print(count, "×", *join(tokens, "l", "e"))

# %% [markdown]
# `l e` wins: $6 + 3 + 2 + 1 = 12$. Then count again, *with the new token*, and merge again. Ties need a rule: the shorter new token first, then the
# first in the order of characters (`▁` comes after our letters). Do the second and the third merge on paper; at the third there is a tie.


# %% tags=["nbval-check-output"]
def learn(words, n_merges):
    learned = []
    for _ in range(n_merges):
        pairs = pair_counts(words)
        left, right = min(
            pairs, key=lambda p: (-pairs[p], len(p[0] + p[1]), p[0] + p[1])
        )
        words = {join(tokens, left, right): count for tokens, count in words.items()}
        learned.append((left, right, pairs[left, right]))
    return learned


by_hand = learn(words, 6)
for left, right, count in by_hand:
    print(left, "+", right, count, "times")

# %% [markdown]
# ## Encode a new word
#
# To **encode** a *new* word, the same merges are made in the same order. **Predict 01.1.** _belles_ is new. Make the six merges on paper.

# %%
course.predict(
    "01.1",
    "How many tokens does `▁belles` have after the six merges?",
    ["2", "3", "4", "5"],
)


# %%
def cut(word):
    tokens = ("▁", *word)
    for left, right, _ in by_hand:
        tokens = join(tokens, left, right)
    return tokens


for word in ("belles", "relever"):
    print(*cut(word))
parts = cut("belles")
course.resolve("01.1", str(len(parts)), f"belles is {' + '.join(parts)}.")

# %% [markdown]
# The order of learning decides: _relever_ holds `el` and `le`, and gets `le`, which was learned before.
#
# ## The package, and sentencepiece
#
# `tx.Tokenizer` is built on **sentencepiece**, which calls a token a *piece*. Where it cuts at spaces only, its merges equal those of `tinytx.bpe`.

# %%
some, n_merges = train[:1_500], 300
learned = subwords.learn_merges(some, n_merges)
first, n_letters = 7, len(set("".join(some)))  # after 7 special tokens; with the space
bpe = tx.Tokenizer.train(
    some,
    vocab_size=first + n_merges + n_letters,
    model_type="bpe",
    split_by_script=False,
)
assert [bpe.piece(first + i) for i in range(n_merges)] == [m.piece for m in learned]
assert all(subwords.segment(text, learned) == bpe.pieces(text) for text in test)
print("the same merges and tokens as sentencepiece")

# %% [markdown]
# ### Look
#
# Type a text of your own, and choose the number of merges.

# %%
course.widgets.tokenizer()

# %% [markdown]
# ### Further: which word is whole first?
#
# **Predict 01.2.** _La fin est inoubliable ._ means "the end is unforgettable". We make more and more merges.

# %%
course.predict(
    "01.2",
    "Which of the four words is the first to be a single token?",
    ["La", "fin", "est", "inoubliable"],
)

# %%
sentence = "La fin est inoubliable ."
for n in (0, 5, 20, 80, 300):
    print(f"{n:>3} merges:", *subwords.segment(sentence, learned[:n]))
made = {merge.piece: number for number, merge in enumerate(learned, start=1)}
whole = {word: made.get("▁" + word, math.inf) for word in sentence.split(" ")[:4]}
finding = [f"{w} is whole after {n} merges" for w, n in whole.items() if n <= n_merges]
course.resolve("01.2", min(whole, key=whole.get), "; ".join(finding) + ".")

# %% [markdown]
# Being short is not enough. Each merge takes the pair that is then most frequent, counted over all words.
#
# ## What a model cannot see
#
# A model reads **ids**, the numbers of tokens. From these alone, how often does *e* occur in each of three words?

# %%
tokenizer = tx.Tokenizer.train(train, vocab_size=512, model_type="bpe")
assert all(tokenizer.decode(tokenizer.encode(text)) == text for text in test)
for word in ("lent", "ennuyeuse", "belle"):
    print(tokenizer.encode(word), "is", *tokenizer.pieces(word))

# %% [markdown]
# What it knows of the letters of a token it must have *learned*.
#
# ## From a text to what is learned
#
# Seven **special tokens** are no parts of words: `<pad>` fills short rows, `<unk>` is what cannot be written, `<bos>` and `<eos>` mark the
# beginning and the end of a text; lessons 09 and 10 need the other three, `<mask>`, `<cls>` and `<sep>`.
#
# A language model learns to predict the **next token**. Short texts are padded to a rectangle. The inputs are a row without its last entry, the **targets** the same row without its first; padding as a target will not count (lesson 08).

# %% tags=["nbval-check-output"]
rows = [tokenizer.encode(text) for text in ("Le roman est beau .", "Quel ennui !")]
rows = [[tokenizer.bos_id, *row, tokenizer.eos_id] for row in rows]
longest = max(map(len, rows))
padded = [row + [tokenizer.pad_id] * (longest - len(row)) for row in rows]
inputs, targets = [row[:-1] for row in padded], [row[1:] for row in padded]
print("reads   ", *map(tokenizer.piece, inputs[1]))
print("predicts", *map(tokenizer.piece, targets[1]))

# %% [markdown]
# ## From ids to vectors: what a vocabulary costs
#
# With an id a model looks up a row in a table, the **embedding matrix**: one row for each of $V$ tokens, $D$ numbers in each.
# So each token *of the vocabulary* costs $D$ learned numbers, and about $D$ more in the output layer (lesson 06) if that has a matrix of its own.
#
# ### Further: a lookup is a product, and a large table
#
# A text on its way to vectors:

# %%
plots.diagram("text-to-vectors")

# %% [markdown]
# A model with $D = 200$ and four layers (`seed-lab`; lesson 06 counts it) and 50,001 tokens is a dictionary with a small transformer in the middle.
#
# A lookup equals the product of a **one-hot** vector, 1 at the token and 0 elsewhere, with the matrix.

# %% tags=["nbval-check-output"]
table = tx.parameter_table(tx.PRESETS["seed-lab"].replace(vocab_size=50_001))
in_tables = 2 * 50_001 * 200 + 50_001  # the output layer has biases
print(f"{in_tables:,} of {table.total:,} parameters: {in_tables / table.total:.0%}")
assert in_tables > 0.9 * table.total

torch.manual_seed(0)
embed = torch.nn.Embedding(tokenizer.vocab_size, 8)  # V = 512, D = 8
token_ids = torch.tensor(tokenizer.encode("le roman est beau"))
looked_up = embed(token_ids)  # (T, D)
one_hot = torch.nn.functional.one_hot(token_ids, tokenizer.vocab_size).float()  # (T, V)
torch.testing.assert_close(one_hot @ embed.weight, looked_up)
print(len(token_ids), "ids →", tuple(looked_up.shape), "equal to the product")

# %% [markdown]
# ## What this does not show
#
# Our language has about a thousand words. In real text new words never end.
#
# ## Questions

# %%
course.quiz("tokens")

# %% [markdown]
# ## Exercises
#
# [exercise: decode_bpe]


# %%
def decode_bpe(tokens):
    ...


# %%
course.check("decode_bpe", decode_bpe)

# %% [markdown]
# ## Further: three more exercises
#
# `course.practise("merge_pair")` shows the first one as lines to be put in order.
#
# [exercise: merge_pair]


# %%
def merge_pair(tokens, left, right):
    ...


# %%
course.check("merge_pair", merge_pair)

# %% [markdown]
# [exercise: learn_merges]


# %%
def learn_merges(words, n_merges):
    ...


# %%
course.check("learn_merges", learn_merges)

# %% [markdown]
# [exercise: encode_bpe]


# %%
def encode_bpe(word, merges):
    ...


# %%
course.check("encode_bpe", encode_bpe)

# %% [markdown]
# ## Take-home: train and apply BPE
#
# Count and merge, again and again: that is `learn`, with `pair_counts` and `join`. Then the same merges in the same order:


# %%
def apply_bpe(word, merges):
    tokens = ("▁", *word)
    for pair in merges:
        tokens = join(tokens, *pair)
    return tokens


merges = [(left, right) for left, right, *_ in learn(subwords.count_words(some), 100)]
for word in {*" ".join(test).split(" ")}:
    assert [*apply_bpe(word, merges)] == subwords.segment(word, learned[:100])
print("all words of held-out reviews: equal to the package")

# %% [markdown]
# ## Further: which tokenizer is better?
#
# Loss *per token* cannot say: a token of one letter is easy to guess, a whole word is hard. **Bits per character** share the loss of the whole text, in bits, among its characters. An n-gram model (lesson 08), which predicts a token from the few before it, reads 500 reviews as nearly single letters and as subwords. In each row both see about equally many *characters* of context.

# %%
from tinytx.ngrams import NGramModel


def score(size, n):  # of a vocabulary, and of n-grams of its tokens
    one = tx.Tokenizer.train(train, vocab_size=size, model_type="bpe")
    ids = one.encode_batch(test)
    ngrams = NGramModel(n, size).fit(one.encode_batch(train))
    bits = ngrams.nats_per_token(ids) / math.log(2)
    n_tokens = sum(map(len, ids)) + len(ids)  # the end of a review is predicted too
    a_token = sum(map(len, test)) / n_tokens  # characters
    return (n - 1) * a_token, bits, bits / a_token


print("letters: context in characters, bits per token, per character; then subwords")
letters, parts = score(64, 8), score(640, 3)
print(*(f"{value:6.2f}" for value in (*letters, *parts)))
assert abs(letters[0] / parts[0] - 1) < 0.05
assert letters[1] < parts[1] and letters[2] > parts[2]

# %% [markdown]
# At equal context letters win per token, and subwords per character: only the second number has a unit that both share.
#
# BPE never takes a merge back. The **unigram** model, the default of sentencepiece, starts from the other end: with far too many subwords, of which it drops those whose removal lowers the probability of the training text least.
#
# ## Further: any text comes back
#
# What does a tokenizer do with characters it never saw? With **byte fallback** the vocabulary has 256 extra tokens, one for each *byte*, in which every character of every script can be written.

# %%
with_bytes = tx.Tokenizer.train(
    train, vocab_size=512 + 256, model_type="bpe", byte_fallback=True
)
for text in ("bien 🙂", "βιβλίο"):
    for one in (tokenizer, with_bytes):
        print(one.decode(one.encode(text)), ":", *one.pieces(text))
    assert with_bytes.decode(with_bytes.encode(text)) == text
    assert tokenizer.decode(tokenizer.encode(text)) != text
    n_bytes = sum(len(c.encode()) for c in text if not c.isascii())
    assert sum("<0x" in piece for piece in with_bytes.pieces(text)) == n_bytes

# %% [markdown]
# Without fallback (first and third line) the emoji and the Greek are lost. With it they come back, but each such character costs as many tokens as UTF-8 needs bytes.
#
# ## Further: a tokenizer trained on other text
#
# Each review of our world exists in English too. Three tokenizers of the same kind and size are trained: on French, on English, and on a file of yours (plain text, UTF-8; until you name one, the licence of this course). Every fifth line is held out.

# %%
from tinytx_course import lessons

own_file = lessons.course_file("LICENSE")  # ← a file of your own
english, french = zip(*world.pairs(3_500, seed=1), strict=True)
own = own_file.read_text(encoding="utf-8").splitlines()[:20_000]
texts = {"French": french, "English": english, "own file": own}
settings = {"vocab_size": 600, "model_type": "bpe", "byte_fallback": True}
table = []
print("tokens per word of   ", *(f"{name:>9}" for name in texts))
for name, lines in texts.items():
    one = tx.Tokenizer.train([x for i, x in enumerate(lines) if i % 5], **settings)
    n_tokens = [sum(map(len, one.encode_batch(read[::5]))) for read in texts.values()]
    n_words = [len(" ".join(read[::5]).split()) for read in texts.values()]
    table.append([t / w for t, w in zip(n_tokens, n_words, strict=True)])
    shown = (f"{ratio:>9.2f}" for ratio in table[-1])
    print(f"trained on {name:<10}", *shown, " ", *one.pieces("Cette héroïne."))
assert torch.tensor(table).argmin(dim=0).tolist() == [0, 1, 2]

# %% [markdown]
# In each column the lowest number is that of the tokenizer that was trained on such text.
# With real tokenizers some languages need several times as many tokens as English for the same content (Petrov et al., 2023).
#
# ## Summary
#
# 1. BPE merges the most frequent neighbours, again and again; new words are encoded by the same merges in the same order.
# 2. A tokenizer should be lossless. A vocabulary of words with `<unk>` made praise and blame one text.
# 3. Inputs are a row without its last entry, targets the row without its first, from `<bos>` to `<eos>`.
# 4. A model reads ids, not letters; a vocabulary costs $V \times D$ numbers or more.
#
# *Where this comes from:* BPE for words: Sennrich, Haddow and Birch, [arXiv:1508.07909](https://arxiv.org/abs/1508.07909), section 3.2. Unigram: Kudo, [arXiv:1804.10959](https://arxiv.org/abs/1804.10959). sentencepiece: Kudo and Richardson, [arXiv:1808.06226](https://arxiv.org/abs/1808.06226), section 3. The price other languages pay: Petrov et al., [arXiv:2305.15425](https://arxiv.org/abs/2305.15425).
#
# *What comes next:* the tokens are vectors now. [Lesson 02](02_attention_and_masks.ipynb) lets them attend to each other.
