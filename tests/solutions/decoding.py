"""Solutions for greedy_decode, beam_search and chrf."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import torch

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("greedy_decode")


@right
def greedy_loop(step, bos_id, eos_id, max_len):
    ids = [bos_id]
    while len(ids) < max_len:
        ids.append(int(step(ids).argmax()))
        if ids[-1] == eos_id:
            break
    return ids


@right
def greedy_for(step, bos_id, eos_id, max_len):
    ids = [bos_id]
    for _ in range(max_len - 1):
        best = torch.topk(step(ids), 1).indices.item()
        ids = ids + [best]
        if best == eos_id:
            return ids
    return ids


@right
def greedy_recursive(step, bos_id, eos_id, max_len):
    def go_on(ids):
        if len(ids) == max_len or (len(ids) > 1 and ids[-1] == eos_id):
            return ids
        scores = step(ids).tolist()
        return go_on([*ids, scores.index(max(scores))])

    return go_on([bos_id])


@right
def greedy_tensor(step, bos_id, eos_id, max_len=20):
    ids = torch.tensor([bos_id])
    while ids.numel() < max_len and ids[-1] != eos_id:
        ids = torch.cat([ids, step(ids.tolist()).argmax().view(1)])
    return ids.tolist()


@right
def greedy_items(step, bos_id, eos_id, max_len):
    ids = [torch.tensor(bos_id)]
    for _ in range(1, max_len):
        ids.append(torch.argmax(step(ids), dim=-1))
        if ids[-1] == eos_id:
            break
    return ids


@wrong("time-limit")
def greedy_endless(step, bos_id, eos_id, max_len):
    ids = [bos_id]
    while ids[-1] != eos_id:
        best = int(step([bos_id]).argmax())
        ids = [bos_id, best] if best == eos_id else [bos_id]
    return ids


drawn = {"step(ids).argmax()": "torch.multinomial(step(ids).exp(), 1)"}
wrong("changes-between-calls", greedy_loop, drawn)
wrong("cut-at-the-end", greedy_loop, {"< max_len": "< 200", "return ids": "return ids[:max_len]"})


right, wrong = of("beam_search")


@right
def beam_plain(step, bos_id, eos_id, beam_size, max_len, length_penalty):
    beams, finished = [([bos_id], 0.0)], []
    while beams and len(beams[0][0]) < max_len:
        options = []
        for ids, total in beams:
            for token, log_prob in enumerate(step(ids).tolist()):
                options.append((ids + [token], total + log_prob))
        options = sorted(options, key=lambda option: -option[1])[:beam_size]
        finished += [option for option in options if option[0][-1] == eos_id]
        beams = [option for option in options if option[0][-1] != eos_id]
    return max(finished + beams, key=lambda b: b[1] / (len(b[0]) - 1) ** length_penalty)[0]


@right
def beam_topk(step, bos_id, eos_id, beam_size, max_len, length_penalty=1.0):
    sequences, scores = [[bos_id]], torch.zeros(1)
    done = []
    for _ in range(max_len - 1):
        log_probs = torch.stack([step(s) for s in sequences])
        total = scores[:, None] + log_probs
        best = total.flatten().topk(min(beam_size, total.numel()))
        following, kept = [], []
        for value, index in zip(best.values, best.indices, strict=True):
            row, token = divmod(index.item(), log_probs.shape[1])
            ids = [*sequences[row], token]
            if token == eos_id:
                done.append((value.item() / (len(ids) - 1) ** length_penalty, ids))
            else:
                following.append(ids)
                kept.append(value)
        if not following:
            sequences = []
            break
        sequences, scores = following, torch.stack(kept)
    done += [(float(v) / (len(s) - 1) ** length_penalty, s) for s, v in zip(sequences, scores, strict=False)]
    return max(done)[1]


@right
def beam_one_pass(step, bos_id, eos_id, beam_size, max_len, length_penalty):
    import heapq

    live, best_score, best_ids = [(0.0, (bos_id,))], float("-inf"), None

    def consider(total, ids):
        nonlocal best_score, best_ids
        score = total / (len(ids) - 1) ** length_penalty
        if score > best_score:
            best_score, best_ids = score, ids

    for _ in range(max_len - 1):
        options = ((total + lp, (*ids, t)) for total, ids in live for t, lp in enumerate(step(ids).tolist()))
        live = []
        for total, ids in heapq.nlargest(beam_size, options):
            if ids[-1] == eos_id:
                consider(total, ids)
            else:
                live.append((total, ids))
    for total, ids in live:
        consider(total, ids)
    return list(best_ids)


@right
def beam_recursive(step, bos_id, eos_id, beam_size, max_len, length_penalty):
    def search(beams):
        if not beams or len(beams[0][1]) == max_len:
            return beams
        options = [(s + float(lp), ids + [i]) for s, ids in beams for i, lp in enumerate(step(ids).double())]
        options.sort(reverse=True)
        ended = [o for o in options[:beam_size] if o[1][-1] == eos_id]
        return ended + search([o for o in options[:beam_size] if o[1][-1] != eos_id])

    found = search([(0.0, [bos_id])])
    scores = [s / (len(ids) - 1) ** length_penalty for s, ids in found]
    return found[scores.index(max(scores))][1]


wrong("wrong-type", beam_plain, {"length_penalty)[0]": "length_penalty)"})


right, wrong = of("chrf")


@right
def chrf_counters(translation, reference):
    x, y = translation.replace(" ", ""), reference.replace(" ", "")
    rows = []
    for n in range(1, min(6, len(x), len(y)) + 1):
        a, b = (Counter(t[i : i + n] for i in range(len(t) - n + 1)) for t in (x, y))
        both = (a & b).total()
        rows.append((both / (len(x) - n + 1), both / (len(y) - n + 1)))
    p, r = np.mean(rows, axis=0) if rows else (0, 0)
    return 500 * p * r / (4 * p + r) if p and r else 0


@right
def chrf_lists_crossed_out(translation, reference):
    def runs(text, n):
        text = re.sub(r"\s", "", text)
        return [text[i : i + n] for i in range(len(text) - n + 1)]

    p = r = used = 0
    for n in range(1, 7):
        ours, theirs = runs(translation, n), runs(reference, n)
        if ours and theirs:
            left, shared = list(theirs), 0
            for run in ours:
                if run in left:
                    left.remove(run)
                    shared += 1
            p, r, used = p + shared / len(ours), r + shared / len(theirs), used + 1
    return 0.0 if not p else 100 * 5 * (p / used) * (r / used) / (4 * (p / used) + r / used)


@right
def chrf_reciprocals(translation, reference):
    x, y = ("".join(text.split()) for text in (translation, reference))
    grams = [[[t[i : i + n] for i in range(len(t) + 1 - n)] for t in (x, y)] for n in (1, 2, 3, 4, 5, 6)]
    grams = [(a, b) for a, b in grams if a and b]
    shared = [sum(min(a.count(g), b.count(g)) for g in set(a)) for a, b in grams]
    p, r = (sum(s / len(g[side]) for s, g in zip(shared, grams, strict=True)) for side in (0, 1))
    return 100 / ((0.2 / p + 0.8 / r) * len(grams)) if p else 0.0


@right
def chrf_torch(translation, reference):
    x, y = (re.sub(" ", "", text) for text in (translation, reference))
    shares = []
    for n in range(1, 7):
        a, b = ([t[i : i + n] for i in range(len(t) - n + 1)] for t in (x, y))
        if not a or not b:
            break
        names = sorted({*a, *b})
        counts = torch.tensor([[side.count(name) for name in names] for side in (a, b)])
        shares.append(counts.amin(dim=0).sum() / counts.sum(dim=1))
    if not shares or not sum(shares).any():
        return 0.0
    p, r = torch.stack(shares).mean(dim=0)
    return 100 * 5 * p * r / (4 * p + r)


wrong("wrong-type", lambda translation, reference: f"{chrf_counters(translation, reference):.1f}")
