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
# A network computes with numbers. So a text becomes a list of numbers first, one for each **token**: a word, a part of a word or a letter. All tokens together are the **vocabulary**, and what cuts a text into
# tokens is a **tokenizer**. A model never sees behind it: not the letters of a word, and nothing that was thrown away.
#
# After this lesson you can
#
# 1. train a byte-pair encoding on paper, merge by merge, write it in Python, and get what sentencepiece gets;
# 2. turn tokens back into the text, and say what makes a tokenizer lossless;
# 3. turn a text into inputs and targets, with the special tokens that a model needs;
# 4. say what a model cannot see of a word, and why it miscounts letters;
# 5. recognise a tokenizer that was trained on other text, and put a price on a vocabulary.
#
# *You need:* lesson 00; nothing about transformers.
# *It takes:* an hour and a half with the exercises; twenty-five seconds to run, with or without a GPU.

# %% [markdown]
# ## Set-up

# %%
import itertools
import math
import re
from collections import Counter

import torch

import tinytx as tx
import tinytx_course as course
from tinytx import bpe as subwords
from tinytx_course import lessons, plots
from tinytx_course.labs.lesson_01 import difficult_texts
from tinytx_run.tables import read_lines

# %% [markdown]
# Two questions from lesson 00 first.

# %%
course.recall("01")

# %% [markdown]
# The texts are those of the whole course: short reviews of books in simple French, made by a grammar. Words and punctuation marks are separated by single spaces. We learn from 3,000 reviews, and try
# what was learned on 500 others.

# %%
torch.set_num_threads(1)
world, corpus = tx.World(), tx.load_corpus("world")
train, test = corpus.train.texts[:3_000], corpus.test.texts[:500]
train_words = " ".join(train).split(" ")
print(train[0])
print(f"{len(train_words):,} words, {len(set(train_words)):,} different")

# %% [markdown]
# ## Why: a token for each word
#
# The tempting way is one token for each word. There are many words, so one keeps the most frequent ones and writes `<unk>`, "unknown", for all the rest. Here is one review, and another that says
# the opposite, as a model reads them that knows the 50 commonest words. Then a new sentence (*bouquin*: a colloquial word for a book), and the length of a review in words and in characters.

# %% tags=["nbval-check-output"]
known = [word for word, _ in Counter(train_words).most_common(50)]
read = []
for review in ("Le roman est magnifique .", "Le roman est illisible ."):
    read.append([word if word in known else "<unk>" for word in review.split(" ")])
    print(review, " → ", *read[-1])
print("the same for the model:", read[0] == read[1])
assert read[0] == read[1]
sentence = "Ce bouquin est génialissime"
print("unknown words  ", [one for one in sentence.split(" ") if one not in train_words])
print("unknown letters", [one for one in sentence if one not in "".join(train)])
print(f"a review in words      {len(train_words) / len(train):6.1f} tokens")
print(f"a review in characters {sum(map(len, train)) / len(train):6.1f} tokens")

# %% [markdown]
# Praise and blame have become one text, and no model can tell them apart any more. So the first demand on a tokenizer is that it is **lossless**: decoding returns the text that was encoded. One token per *character* loses nothing, but the text is five times as long.
#
# Attention compares every token with every other, so five times the length means twenty-five times the comparisons. What we want lies between: **subwords**, tokens that are
# words where words are frequent, and letters where they are not.
#
# ## By hand: merge what occurs together most often
#
# **Byte-pair encoding** (BPE) begins with letters and merges. Our text: six times _le_, three times _les_, twice _elle_, once _belle_. A word begins with the sign `▁`, which stands for
# the space before it. Count on paper how often each two neighbours occur; a word that occurs six times counts six.

# %% tags=["nbval-check-output"]
words = {("▁", *"le"): 6, ("▁", *"les"): 3, ("▁", *"elle"): 2, ("▁", *"belle"): 1}


def pair_counts(words):
    pairs = Counter()
    for tokens, count in words.items():
        for left, right in itertools.pairwise(tokens):
            pairs[left, right] += count
    return pairs


ranked = pair_counts(words).most_common()
print(*(f"{left} {right}: {count}" for (left, right), count in ranked), sep="   ")

# %% [markdown]
# `l e` wins: $6 + 3 + 2 + 1 = 12$. That is the first **merge**: from now on `le` is *one* token wherever an `l` is followed by an `e`. In _elle_ only the second `l` is: `▁ e l le`.


# %% tags=["nbval-check-output"]
def join(tokens, left, right):
    joined = []
    for token in tokens:
        if joined and joined[-1] == left and token == right:
            joined[-1] = left + right
        else:
            joined.append(token)
    return tuple(joined)


for tokens, count in words.items():
    print(count, "×", *tokens, " → ", *join(tokens, "l", "e"))

# %% [markdown]
# Then count again, *with the new token*, and merge again. That is the whole method. Ties need a rule, or two machines would learn two vocabularies: the shorter new token first, then the
# first in the order of characters (in which `▁` comes after all letters of ours). Do the second and the third merge on paper; at the third there is a tie.


# %% tags=["nbval-check-output"]
def learn(words, n_merges):
    learned = []
    for _ in range(n_merges):
        pairs = pair_counts(words)
        left, right = min(
            pairs, key=lambda p: (-pairs[p], len(p[0] + p[1]), p[0] + p[1])
        )
        words = {join(tokens, left, right): count for tokens, count in words.items()}
        length = sum(len(tokens) * count for tokens, count in words.items())
        learned.append((left, right, pairs[left, right], length))
    return learned


by_hand = learn(words, 6)
for left, right, count, length in by_hand:
    print(f"{left:>4} + {right:<4} {count:>2} times, {length} tokens left")

# %% [markdown]
# After six merges _le_, _les_ and _elle_ are one token each.
#
# ## Encode a new word
#
# To **encode** a *new* word, the same merges are made in the same order, wherever they fit. So a word that was never seen comes out in known parts.
#
# **Predict 01.1.** _belles_ is not among the four words that we merged. Make the six merges on paper.

# %%
course.predict(
    "01.1",
    "How many tokens does `▁belles` have after the six merges?",
    ["2", "3", "4", "5"],
)


# %%
def cut(word):
    tokens = ("▁", *word)
    for left, right, _, _ in by_hand:
        tokens = join(tokens, left, right)
    return tokens


for word in ("elle", "belle", "belles", "sel", "relever"):
    print(f"{word:<8}", *cut(word))
parts = cut("belles")
course.resolve("01.1", str(len(parts)), f"belles is {' + '.join(parts)}.")

# %% [markdown]
# The order of learning decides, not what would fit first: _relever_ holds `el` and `le`, and gets `le`, which was learned before.
#
# ## The package, and sentencepiece
#
# `tinytx.bpe` is the same in a few lines more. `tx.Tokenizer`, the tokenizer of the course, is
# built on **sentencepiece**, which many published models use; it calls a token a *piece*. All three agree:

# %%
toy = [" ".join(["le"] * 6 + ["les"] * 3 + ["elle"] * 2 + ["belle"])]
ours = subwords.learn_merges(toy, 6)
assert [(m.left, m.right, m.count, m.n_pieces) for m in ours] == by_hand
print("the package learns our six merges")

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
print(f"sentencepiece learns the package's {n_merges} merges")
print(f"both cut {len(test)} new reviews in the same way")

# %% [markdown]
# ### Look
#
# **Predict 01.2.** _La fin est inoubliable ._ means "the end is unforgettable". We make more and more merges.

# %%
course.predict(
    "01.2",
    "Which of the four words is the first to be a single token?",
    ["La", "fin", "est", "inoubliable"],
)

# %% tags=["folded"]
sentence = "La fin est inoubliable ."
stages = (0, 5, 20, 80, 300)
rows = {f"{n} merges": subwords.segment(sentence, learned[:n]) for n in stages}
fig, ax = plots.token_rows(rows, title="One sentence, more and more merges")
plots.show(fig, name="01_merges")
made = [merge.piece for merge in learned]
whole = {w: made.index("▁" + w) + 1 for w in sentence.split(" ")[:4] if "▁" + w in made}
parts = [w for w in sentence.split(" ")[:4] if w not in whole]
uses = Counter(word for text in some for word in text.split(" "))
print(
    "uses of each word:",
    *(f"{word} {uses[word]:,}" for word in sentence.split(" ")[:4]),
    sep="   ",
)
course.resolve(
    "01.2",
    min(whole, key=whole.get),
    "; ".join(
        f"{w} is whole after {whole[w]} merges" for w in sorted(whole, key=whole.get)
    )
    + f"; after {n_merges} these are still in parts: {', '.join(parts) or 'none'}.",
)

# %% [markdown]
# Being short is not enough. What counts is how often the letters occur together, in whatever word. A capital letter is another letter, so _La_ is learned separately from _la_.
#
# ## Where no merge may cross
#
# Our words end at spaces, so no token crosses one. That is **pre-tokenization**: before any merge, a rule splits the text. Otherwise BPE would glue a full stop to the capital letter after it. GPT-2 uses a regular expression that separates letters, digits and
# signs, with the space in front. The same idea in one line of Python:

# %%
pattern = re.compile(r" ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+")
print(pattern.findall("Le roman coûte 1250 € : wow, l'été !"))
assert not any("▁" in merge.piece[1:] for merge in learned)

# %% [markdown]
# Splitting at spaces is a choice: Chinese and Thai write none between words, and sentencepiece can be trained without it.
#
# Type a text of your own, and see it as characters, as subwords and as words, with the number of merges under your control.

# %%
course.widgets.tokenizer()

# %% [markdown]
# ## What a model cannot see
#
# Ask a language model how often the letter *e* occurs in a word, and it may be wrong. A model reads **ids**, the numbers of tokens. The letters inside a token are
# hidden from it. Try it: from the ids alone, how many *e* has each word?

# %%
tokenizer = tx.Tokenizer.train(train, vocab_size=512, model_type="bpe")
for word in ("lent", "ennuyeuse", "belle"):
    print(tokenizer.encode(word))
print()
for word in ("lent", "ennuyeuse", "belle"):
    print(f"{word}: {word.count('e')} times e,", *tokenizer.pieces(word))

# %% [markdown]
# By ids, counting is a question of memory: a model can only have *learned* the letters of a token, from texts that spell words out. The same holds for rhymes.
#
# ## From a text to what is learned
#
# Some tokens stand for no text. `tx.Tokenizer` has seven **special tokens** in front of its vocabulary: `<pad>` fills short rows, `<unk>` is what cannot be written, `<bos>` and `<eos>` mark the
# beginning and the end of a text; lessons 09 and 10 need the last three.
#
# A language model learns to predict the **next token**. So each text brings its own answers: the inputs are all tokens but the last, the **targets** all but the first. Short texts are padded to a
# rectangle, and targets that are padding will not count (lesson 08).

# %% tags=["nbval-check-output"]
from tinytx.objectives import causal_batch

print(*(tokenizer.piece(i) for i in range(first)))
rows = []
for text in ("Le roman est beau .", "Quel ennui !"):
    rows.append([tokenizer.bos_id, *tokenizer.encode(text), tokenizer.eos_id])
longest = max(map(len, rows))
padded = [row + [tokenizer.pad_id] * (longest - len(row)) for row in rows]
inputs, targets = [row[:-1] for row in padded], [row[1:] for row in padded]
for ids, asked in zip(inputs, targets, strict=True):
    print("reads   ", *(tokenizer.piece(i) for i in ids))
    print("predicts", *(tokenizer.piece(i) for i in asked))
ours = torch.tensor(inputs), torch.tensor(targets)  # (B, T) each
assert all(map(torch.equal, ours, causal_batch(torch.tensor(padded))))
print("equal to what the package trains on:", tuple(ours[0].shape))

# %% [markdown]
# After `<bos>` the first token of the text is asked for, and after its last one `<eos>`: so a model learns to begin, and to stop. A text longer than the model can read is cut into windows.
#
# ## Break it: a tokenizer trained on other text
#
# The world has an English twin: each review exists in both languages. Three tokenizers of the same kind and size (BPE, 600 tokens, 256 of them single bytes) are trained: on French, on English, and on a file
# of yours. Until you put its path into the next cell (plain text, UTF-8), it is the licence of this course. Every fifth line is held out.

# %%
own_file = lessons.course_file("LICENSE")  # ← a file of your own
english, french = zip(*world.pairs(3_500, seed=1), strict=True)
own = [line for _, line in read_lines(own_file)][:20_000]
texts = {"French": french, "English": english, "own file": own}
settings = {"vocab_size": 600, "model_type": "bpe", "byte_fallback": True}
tokenizers = {}
for name, lines in texts.items():
    learn_from = [line for number, line in enumerate(lines) if number % 5]
    tokenizers[name] = tx.Tokenizer.train(learn_from, **settings)


def tokens_per_word(tokenizer, lines):
    n_tokens = sum(map(len, tokenizer.encode_batch(lines)))
    return n_tokens / sum(len(line.split()) for line in lines)


for name, one in tokenizers.items():
    print(f"trained on {name:<9}", *one.pieces("Cette héroïne."))

# %% [markdown]
# English reviews hold neither é nor a capital C: there are letters where there were words, and two bytes for each accent. In the map, read a *column*: the same text, cut by three tokenizers.

# %%
table = [
    [tokens_per_word(one, lines[::5]) for lines in texts.values()]
    for one in tokenizers.values()
]
fig, ax = plots.heatmap(
    table, row_labels=list(texts), col_labels=list(texts), numbers=".2f", low=1,
    xlabel="text that is read", ylabel="tokenizer trained on",
    bar_label="tokens per word", title="Three tokenizers on three texts",
)  # fmt: skip
plots.show(fig, name="01_other_text")
assert torch.tensor(table).argmin(dim=0).tolist() == [0, 1, 2]

# %% [markdown]
# Each text is shortest with the tokenizer that was trained on it.
# Other text is paid for three times: longer sequences, so more computation; less text in a window of a given number of tokens; and parts
# that mean nothing by themselves. With real tokenizers some languages need several times as many tokens as English for the same content (Petrov et al., 2023).
#
# ## From ids to vectors: what a vocabulary costs
#
# What does a model *do* with an id? It looks up a row in a table, the **embedding matrix**: one row for each of $V$ tokens, $D$ numbers in each.

# %%
plots.diagram("text-to-vectors")

# %% [markdown]
# A lookup equals the product of a vector that is 1 at the token and 0 elsewhere (**one-hot**) with the matrix, only faster.

# %%
torch.manual_seed(0)
embed = torch.nn.Embedding(tokenizer.vocab_size, 8)  # V = 512, D = 8
token_ids = torch.tensor(tokenizer.encode("le roman est beau"))
looked_up = embed(token_ids)  # (T, D)
one_hot = torch.nn.functional.one_hot(token_ids, tokenizer.vocab_size).float()  # (T, V)
torch.testing.assert_close(one_hot @ embed.weight, looked_up)
print("the lookup equals the product")
print([tokenizer.piece(i) for i in token_ids.tolist()], "→", tuple(looked_up.shape))

# %% [markdown]
# So each token costs $D$ learned numbers. A language model must also give each token a score at its end; an output layer with a matrix of its own costs about as many again. Take a model with four layers and $D = 200$ (`seed-lab`; lesson 06
# counts it term by term). One university course trained it with a vocabulary of 50,001 tokens. Which share of the model was that?

# %% tags=["nbval-check-output"]
print("tokens    embedding        whole model    embedding and output, share")
for vocab_size in (64, 1_280, 8_000, 50_001):
    table = tx.parameter_table(tx.PRESETS["seed-lab"].replace(vocab_size=vocab_size))
    output = 200 * vocab_size + vocab_size  # a weight for each number, and a bias
    share = (200 * vocab_size + output) / table.total
    print(f"{vocab_size:>6,}{200 * vocab_size:>13,}{table.total:>19,}{share:>20.0%}")
assert share > 0.9

# %% [markdown]
# With 50,001 tokens it is a dictionary with a small transformer in the middle. A large vocabulary makes sequences short and tables large, a
# small one makes tables small and sequences long.
#
# ## What this does not show
#
# Our language has about a thousand words, no names, no numbers and no typing errors. So tokens for whole words look better than they would in real text, where new words never end.
#
# ## Questions
#
# Pick an answer and read the reply: every wrong answer is explained.

# %%
course.quiz("tokens")

# %% [markdown]
# ## Exercises
#
# `course.practise("merge_pair")` shows the first one as lines to be put in order.
#
# [exercise: merge_pair]


# %%
def merge_pair(tokens, left, right):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("merge_pair", merge_pair)

# %% [markdown]
# [exercise: decode_bpe]


# %%
def decode_bpe(tokens):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("decode_bpe", decode_bpe)

# %% [markdown]
# ## Further: two more exercises

# %% [markdown]
# [exercise: learn_merges]


# %%
def learn_merges(words, n_merges):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("learn_merges", learn_merges)

# %% [markdown]
# [exercise: encode_bpe]


# %%
def encode_bpe(word, merges):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("encode_bpe", encode_bpe)

# %% [markdown]
# ## Take-home: train and apply BPE
#
# This is the package's own: your two loops, with the rule for ties.

# %%
import inspect

print(inspect.getsource(subwords.learn_merges))

# %% [markdown]
# ## Further: which tokenizer is better?
#
# BPE never takes a merge back. The **unigram** model, the default of sentencepiece, starts from the other end: with far too many subwords, of which it drops those whose removal lowers the probability of the training text least. Which kind and which size is better? Perplexity (lesson 08) *per token* cannot say: a token of one letter is easy to guess, a whole word is hard, and there are fewer words. **Bits per character** count both:
#
# $$\frac{\text{bits}}{\text{character}} = \frac{\log_2 \text{perplexity} \cdot \text{tokens}}{\text{characters}} .$$
#
# An n-gram model (lesson 08), which predicts a token from up to five before it, reads 500 reviews with each tokenizer.

# %%
from tinytx.ngrams import NGramModel

n_characters, found = sum(map(len, test)), {}
print("kind      tokens   tokens a review   perplexity per token   bits per character")
for kind, size in (("bpe", 64), ("bpe", 640), ("unigram", 640)):
    one = tx.Tokenizer.train(train, vocab_size=size, model_type=kind)
    ids = one.encode_batch(test)
    nats = NGramModel(6, size).fit(one.encode_batch(train)).nats_per_token(ids, 6)
    n_tokens = sum(map(len, ids)) + len(ids)  # the end of each review is predicted too
    bits = nats * n_tokens / math.log(2) / n_characters
    found[kind, size] = math.exp(nats), bits
    row = f"{kind:<8}{size:>8}{n_tokens / len(ids):>18.1f}"
    print(f"{row}{math.exp(nats):>23.2f}{bits:>21.3f}")
letters, subword = found["bpe", 64], found["bpe", 640]
assert letters[0] < subword[0] and letters[1] > subword[1]

# %% [markdown]
# By perplexity per token the nearly single letters win, by bits per character the subwords do: only the second number has a unit that both share.
#
# ### Try it yourself
#
# A language model with 50,001 tokens has a perplexity of 211 per token. Another has 8,000 tokens and a perplexity of 100. Which is better? What would you ask for?
#
# <details><summary>Answer</summary>
#
# It cannot be said. Ask how many characters a token has on average, in the same test text. With 4.8 characters a token the first has $\log_2 211 / 4.8 = 1.61$ bits per character; with 3.9 the second
# has $\log_2 100 / 3.9 = 1.70$. Then the model with the *higher* perplexity would be the better one. (The lengths are made up. And ask whether `<unk>` was among the tokens.)
#
# </details>
#
# ## Further: any text comes back
#
# What does a tokenizer do with characters it never saw? Two tokenizers with the same training text. The second has 256 extra tokens, one for each *byte*, in which every character of every
# script can be written: that is **byte fallback**. Last, 2,000 texts of random characters from all of Unicode, mixed with everything that is dangerous, such as leading spaces, tabs, control characters and
# `▁` itself.

# %%
plain = tx.Tokenizer.train(train, vocab_size=512)
with_bytes = tx.Tokenizer.train(train, vocab_size=512 + 256, byte_fallback=True)
for text in ("l'œuvre a été relue", "bien 🙂", "βιβλίο"):
    for name, tokenizer in {"without": plain, "with bytes": with_bytes}.items():
        back = tokenizer.decode(tokenizer.encode(text))
        mark = "(LOST):" if back != text else ":"
        print(f"{name:<11}", back, mark, *tokenizer.pieces(text))
print(*(f"{c} is {c.encode('utf-8').hex(' ').upper()}" for c in "eéλ🙂"), sep=";   ")
texts = difficult_texts(2_000, seed=0)
n_back = sum(with_bytes.decode(with_bytes.encode(text)) == text for text in texts)
assert n_back == len(texts)
print(f"{n_back:,} of {len(texts):,} texts came back as they were")

# %% [markdown]
# The emoji and the Greek (*book*) are lost without fallback. With it nothing is lost, but each costs as many tokens as
# UTF-8 needs bytes.
#
# ## Summary
#
# 1. BPE merges the most frequent neighbours, again and again; new words are encoded by the same merges in the same order. The package agrees with our code and with sentencepiece.
# 2. A tokenizer must be lossless. A vocabulary of words with `<unk>` made praise and blame one text.
# 3. Inputs are all tokens but the last, targets all but the first, between `<bos>` and `<eos>`; rows are padded.
# 4. A model reads ids, not letters. A new word becomes shorter known tokens.
# 5. Other text costs more tokens a word. A vocabulary costs $V \times D$ numbers, and about as many again if the output layer has its own matrix.
#
# *Where this comes from:* BPE for words: Sennrich, Haddow and Birch, [arXiv:1508.07909](https://arxiv.org/abs/1508.07909), section 3.2. Unigram: Kudo, [arXiv:1804.10959](https://arxiv.org/abs/1804.10959). sentencepiece: Kudo and Richardson, [arXiv:1808.06226](https://arxiv.org/abs/1808.06226), section 3. The price other languages pay: Petrov et al., [arXiv:2305.15425](https://arxiv.org/abs/2305.15425).
#
# *What comes next:* the tokens are vectors now. [Lesson 02](02_attention_and_masks.ipynb) lets them attend to each other.
