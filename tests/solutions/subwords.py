"""Solutions for merge_pair, learn_merges, encode_bpe and decode_bpe."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("merge_pair")


@right
def merge_while(tokens, left, right):
    out = []
    i = 0
    while i < len(tokens):
        if i < len(tokens) - 1 and tokens[i] == left and tokens[i + 1] == right:
            out.append(left + right)
            i += 2
        else:
            out.append(tokens[i])
            i += 1
    return out


@right
def merge_look_back(tokens, left, right):
    out, fresh = [], False
    for token in tokens:
        if out and out[-1] == left and token == right and not fresh:
            out[-1] = left + right
            fresh = True
        else:
            out.append(token)
            fresh = False
    return out


@right
def merge_iterator(tokens, left, right):
    rest = iter(tokens)
    out = []
    token = next(rest, None)
    while token is not None:
        following = next(rest, None)
        if token == left and following == right:
            out.append(token + following)
            token = next(rest, None)
        else:
            out.append(token)
            token = following
    return out


@right
def merge_copy_and_delete(tokens, left, right):
    tokens, i = list(tokens), 0
    while i + 1 < len(tokens):
        if tokens[i : i + 2] == [left, right]:
            tokens[i : i + 2] = [left + right]
        i += 1
    return tokens


@right
def merge_recursive(tokens, left, right):
    if len(tokens) < 2:
        return list(tokens)
    if tokens[0] == left and tokens[1] == right:
        return [left + right] + merge_recursive(tokens[2:], left, right)
    return [tokens[0]] + merge_recursive(tokens[1:], left, right)


wrong("input-modified", merge_copy_and_delete, {"list(tokens)": "tokens"})
wrong("wrong-type", lambda tokens, left, right: " ".join(merge_while(tokens, left, right)))
wrong("wrong-type", merge_copy_and_delete, {"[left + right]": "[(left, right)]"})
wrong("error", merge_while, {"i < len(tokens) - 1 and ": ""})


def _rank(pair, count):
    return -count, len(pair[0] + pair[1]), pair[0] + pair[1]


def _merged(word, pair):
    return tuple(merge_while(list(word), *pair))


right, wrong = of("learn_merges")


@right
def learn_counter(words, n_merges):
    merges = []
    for _ in range(n_merges):
        pairs = Counter()
        for word, count in words.items():
            for pair in pairwise(word):
                pairs[pair] += count
        if not pairs:
            break
        best = min(pairs, key=lambda pair: _rank(pair, pairs[pair]))
        merges.append(best)
        words = {_merged(word, best): count for word, count in words.items()}
    return merges


@right
def learn_lists(words, n_merges):
    texts = [(list(word), count) for word, count in words.items()]
    merges = []
    while len(merges) < n_merges:
        pairs = defaultdict(int)
        for tokens, count in texts:
            for i in range(len(tokens) - 1):
                pairs[tokens[i], tokens[i + 1]] += count
        if len(pairs) == 0:
            return merges
        best = sorted(pairs.items(), key=lambda item: _rank(*item))[0][0]
        merges += [best]
        texts = [(merge_copy_and_delete(tokens, *best), count) for tokens, count in texts]
    return merges


@right
def learn_recursive(words, n_merges):
    pairs = Counter(pair for word, count in words.items() for pair in pairwise(word) for _ in range(count))
    if n_merges == 0 or not pairs:
        return []
    most = max(pairs.values())
    left, right = min((p for p in pairs if pairs[p] == most), key=lambda p: (len("".join(p)), "".join(p)))
    return [(left, right)] + learn_recursive(
        {_merged(w, (left, right)): n for w, n in words.items()}, n_merges - 1
    )


@right
def learn_spelled_out(words, n_merges):
    corpus = [list(word) for word, count in words.items() for _ in range(count)]
    merges = []
    for _ in range(n_merges):
        seen, counts = [], []
        for tokens in corpus:
            for pair in zip(tokens, tokens[1:], strict=False):
                if pair not in seen:
                    seen.append(pair)
                    counts.append(0)
                counts[seen.index(pair)] += 1
        if not seen:
            break
        order = np.lexsort(([a + b for a, b in seen], [len(a + b) for a, b in seen], -np.array(counts)))
        merges.append(list(seen[order[0]]))
        corpus = [merge_iterator(tokens, *merges[-1]) for tokens in corpus]
    return merges


in_place = "words |= {_merged(word, best): words.pop(word) for word in list(words)}"
wrong(
    "input-modified",
    learn_counter,
    {"words = {_merged(word, best): count for word, count in words.items()}": in_place},
)
wrong("wrong-type", lambda words, n_merges: [left + right for left, right in learn_counter(words, n_merges)])
wrong("wrong-type", lambda words, n_merges: [(pair, 1) for pair in learn_counter(words, n_merges)])


right, wrong = of("encode_bpe")


@right
def encode_in_order(word, merges):
    tokens = list(word)
    for a, b in merges:
        tokens = merge_while(tokens, a, b)
    return tokens


@right
def encode_by_rank(word, merges):
    ranks = {tuple(pair): i for i, pair in enumerate(merges)}
    tokens = list(word)
    while len(tokens) > 1:
        pair = min(pairwise(tokens), key=lambda p: ranks.get(p, float("inf")))
        if pair not in ranks:
            break
        tokens = merge_look_back(tokens, *pair)
    return tokens


@right
def encode_one_at_a_time(word, merges):
    tokens = []
    for letter in word:
        tokens.append(letter)
    for a, b in merges:
        i = 0
        while i < len(tokens) - 1:
            if tokens[i] == a and tokens[i + 1] == b:
                tokens[i] += tokens.pop(i + 1)
            i += 1
    return tokens


@right
def encode_regex(word, merges):
    text = " " + "  ".join(word) + " "
    for a, b in merges:
        text = text.replace(f" {a}  {b} ", f" {a + b} ")
    return text.split()


@right
def encode_recursive(word, merges):
    def apply(tokens, merges):
        return apply(merge_recursive(tokens, *merges[0]), merges[1:]) if merges else tokens

    return apply(list(word), merges)


@wrong("wrong-type")
def encode_ids(word, merges):
    learned = [a + b for a, b in merges]
    return [learned.index(t) if t in learned else -1 for t in encode_in_order(word, merges)]


wrong("wrong-type", lambda word, merges: " ".join(encode_in_order(word, merges)))
wrong(
    "input-modified", encode_in_order, {"for a, b in": "while", "(tokens, a, b)": "(tokens, *merges.pop(0))"}
)


right, wrong = of("decode_bpe")


@right
def decode_letter_by_letter(tokens):
    text = ""
    for letter in "".join(tokens):
        text += " " if letter == "▁" else letter
    return text[1:]


@right
def decode_by_splitting(tokens):
    before, *words = "".join(tokens).split("▁") if tokens else ("", "")
    assert not before
    return " ".join(words)


@right
def decode_without_the_first_mark(tokens):
    return "".join(tokens).removeprefix("▁").replace("▁", " ")


@right
def decode_word_by_word(tokens):
    words = []
    for token in tokens:
        for part in token.replace("▁", " ▁").split(" "):
            if part.startswith("▁"):
                words.append(part[1:])
            elif part:
                words[-1] += part
    return " ".join(words)


wrong("wrong-type", lambda tokens: "".join(tokens).replace("▁", " ").split())
wrong(
    "input-modified", decode_letter_by_letter, {'    text = ""\n': '    text = ""\n    tokens.append("")\n'}
)
