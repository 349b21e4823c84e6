"""The tinyshakespeare race: how well a model predicts characters after a fixed time of training.

The rules: the first nine tenths of the text are read, all of the last tenth is predicted. The clock, 180
seconds on two threads for a record, runs from the first line of `Racer.make` to the end of the last step. The
referee turns logits into probabilities and counts each validation character once, with windows side by side
and with half a window of context, both always reported. A record is the mean of ten seeds.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm.auto import tqdm

from benchmarks.settings import BenchSettings
from tinytx.ngrams import NGramModel
from tinytx_course.results import Results
from tinytx_run.download import corpus_folder
from tinytx_run.intervals import paired_interval

Record = dict[str, Any]
SECONDS, N_SEEDS = 180.0, 10  # of a record
ORDERS = (2, 3, 4, 5, 6)  # of the n-gram models: one to five characters of context
RECORDS = Path(__file__).with_name("records.md")
SIDE_BY_SIDE, HALF_A_WINDOW = "side by side", "half a window of context"


class Racer(Protocol):
    """What takes part: any object with these members. It trains as it likes, on the text that it is given."""

    @property
    def name(self) -> str:
        """What the results call it."""

    @property
    def seq_len(self) -> int:
        """T, the longest window that it reads."""

    def make(self, ids: Tensor, n_characters: int, seed: int) -> None:
        """Prepare to train on a text, (N,), of ids below `n_characters`; the clock is running."""

    def step(self, share: float) -> None:
        """Train a little; `share`, from 0 to 1, of the time is over, which a schedule may follow."""

    def score(self, ids: Tensor) -> Tensor:
        """Logits (B, T, V) of the characters that follow each of ids (B, T); no gradient is needed."""

    def about(self) -> Record:
        """What is stored with the result: sizes, settings, as plain values."""


def race(
    racer: Racer,
    settings: BenchSettings,
    store: Results,
    *,
    seconds: float,
    n_steps: int | None,
    n_seeds: int,
) -> list[Record]:
    """Let a model race with seeds 0, 1, ...; each result is stored at once, and not measured twice.

    With a number of steps the clock is left out, to compare recipes on a machine that has other work.
    """
    train_ids, valid_ids, n_characters = characters(settings)
    records = []
    for seed in tqdm(range(n_seeds), desc=racer.name, disable=None):
        key = f"{racer.name}/{f'{n_steps} steps' if n_steps else f'{seconds:g} s'}/seed {seed}"
        record = store.get(key)
        if record is None or record["about"] != racer.about():
            how: Record = {"seconds": seconds, "n_steps": n_steps, "seed": seed}
            record = one_race(racer, train_ids, valid_ids, n_characters, **how)
            store.put(key, record)
        settings.report(f"{key}: {record[SIDE_BY_SIDE]:.4f} nats a character side by side")
        records.append(record)
    return records


def one_race(
    racer: Racer,
    train_ids: Tensor,
    valid_ids: Tensor,
    n_characters: int,
    *,
    seconds: float,
    n_steps: int | None = None,
    seed: int,
) -> Record:
    """Train for some seconds or steps, then predict the validation text: the record of one seed."""
    begin, cpu_begin = time.perf_counter(), time.process_time()
    racer.make(train_ids, n_characters, seed)
    done, share = 0, 0.0
    while share < 1:
        racer.step(share)
        done, spent = done + 1, time.perf_counter() - begin
        share = done / n_steps if n_steps else spent / seconds
    cpu = time.process_time() - cpu_begin
    check_causal(racer, valid_ids)
    strides = {SIDE_BY_SIDE: racer.seq_len, HALF_A_WINDOW: max(1, racer.seq_len // 2)}
    scores = {
        how: stream_nats(racer.score, valid_ids, racer.seq_len, stride=stride).mean().item()
        for how, stride in strides.items()
    }
    return {
        **{"kind": "race", "racer": racer.name, "seed": seed, "seconds": spent, "n_steps": done},
        **{
            "cpu_seconds": cpu,
            "threads": torch.get_num_threads(),
            "n_train": len(train_ids),
            "n_valid": len(valid_ids),
        },
        **scores,
        "about": racer.about(),
    }


def characters(settings: BenchSettings) -> tuple[Tensor, Tensor, int]:
    """Training and validation text as ids of characters, and how many characters there are."""
    text = (corpus_folder("tinyshakespeare", settings.data_dir) / "input.txt").read_text(encoding="utf-8")
    distinct, ids = np.unique(list(text), return_inverse=True)
    n_train = int(0.9 * len(ids))  # as is usual for this text
    train_ids, valid_ids = torch.tensor(ids[:n_train]), torch.tensor(ids[n_train:])
    if settings.tiny:
        train_ids, valid_ids = train_ids[:5_000], valid_ids[:500]
    return train_ids, valid_ids, len(distinct)


@torch.no_grad()
def check_causal(racer: Racer, ids: Tensor) -> None:
    """Raise ValueError if a prediction depends on characters that come later."""
    window = ids[None, : racer.seq_len].clone()
    half = window.shape[1] // 2
    before = racer.score(window)[:, :half]
    window[:, half:] = (window[:, half:] + 1) % (int(ids.max()) + 1)  # every later character is another
    moved = (racer.score(window)[:, :half] - before).abs().max().item()
    if moved > 1e-2 * max(1.0, before.abs().max().item()):
        raise ValueError(
            f"predictions must not depend on later characters, got logits that move by {moved:.2g}"
        )


@torch.no_grad()
def stream_nats(score: Any, ids: Tensor, seq_len: int, *, stride: int, rows_per_batch: int = 64) -> Tensor:
    """Negative log-probability of each token of one long text but the first.

    Parameters
    ----------
    score : callable
        From ids (B, T) to logits (B, T, V).
    ids : LongTensor of shape (N,)
        On the device of the model.
    seq_len : int
        T, the longest window that is read.
    stride : int
        From 1 to T: how far apart windows begin. A token counts in the earliest window that has it, and so
        has at least ``T - stride`` tokens of context, except near the beginning of the text.

    Returns
    -------
    Tensor of shape (N - 1,), float32
        ``-log P`` in nats of tokens 1, 2, ..., each counted once.
    """
    n = len(ids) - 1
    whole = min(seq_len, n)
    starts = torch.tensor(sorted({*range(0, n - whole, stride), n - whole}), device=ids.device)
    offsets = torch.arange(whole + 1, device=ids.device)
    nats = torch.empty(n, device=ids.device)
    for some in starts.flip(0).split(rows_per_batch):  # earlier windows overwrite later ones
        windows = ids[some[:, None] + offsets]
        logits = score(windows[:, :-1]).float().transpose(1, 2)  # (B, V, T)
        losses = F.cross_entropy(logits, windows[:, 1:], reduction="none")  # (B, T)
        for start, loss in zip(some.tolist(), losses, strict=True):
            nats[start : start + whole] = loss
    return nats.cpu()


def counted(settings: BenchSettings) -> Record:
    """The baseline that needs no training: interpolated Witten-Bell n-gram models of the same text."""
    train_ids, valid_ids, n_characters = characters(settings)
    shift = 4  # ids below the characters mark beginning and end
    fitted, judged = ([(ids + shift).tolist()] for ids in (train_ids, valid_ids))
    model = NGramModel(max(ORDERS), n_characters + shift).fit(fitted)
    nats = {str(order): model.nats_per_token(judged, order=order) for order in ORDERS}
    return {"kind": "counts", "nats_by_order": nats, "nats": min(nats.values())}


def race_table(folder: Path) -> str:
    """The results of all racers as a Markdown table: by the clock, then by steps, each the best first."""
    store = Results("race", folder)
    by_race: dict[str, list[Record]] = {}
    for key, record in store.data.items():
        if record["kind"] == "race":
            by_race.setdefault(key.rpartition("/")[0], []).append(record)
    rows = [
        f"| {name.replace('/', ', ')} | {_cell(records, SIDE_BY_SIDE)} | {_cell(records, HALF_A_WINDOW)} | "
        f"{len(records)} | {fmean(record['n_steps'] for record in records):,.0f} |"
        for name, records in sorted(
            by_race.items(), key=lambda pair: (pair[0].endswith(" steps"), _mean(pair[1], SIDE_BY_SIDE))
        )
    ]
    if not rows:
        return ""
    head = f"| nats a character after | windows {SIDE_BY_SIDE} | {HALF_A_WINDOW} | seeds | steps |"
    counts = store.get("counting models")
    if counts is not None:
        rows.append(f"| n-gram models, counted | {counts['nats']:.4f} | | | |")
    return "\n".join([head, "|---|---|---|---|---|", *rows])


def _mean(records: list[Record], how: str) -> float:
    return fmean(record[how] for record in records)


def _cell(records: list[Record], how: str) -> str:
    if len(records) < 2:
        return f"{records[0][how]:.4f}"
    found = paired_interval(record[how] for record in records)
    return f"{found.mean:.4f} ({found.low:.4f} to {found.high:.4f})"


def submit(records: list[Record], what: str, provenance: Record) -> str:
    """Append a record to ``records.md``, if it is one by the rules; gives its line.

    Raises
    ------
    ValueError
        If there are fewer seeds than a record needs, the time or the number of threads is another, or the
        mean is not below that of the last record.
    """
    seconds = max(record["seconds"] for record in records)
    if len(records) < N_SEEDS or seconds > 1.02 * SECONDS or any(one["threads"] != 2 for one in records):
        got = f"{len(records)} seeds, {seconds:.0f} s, {records[0]['threads']} threads"
        raise ValueError(f"a record must have {N_SEEDS} seeds of {SECONDS:.0f} s with 2 threads, got {got}")
    if (device := records[0].get("about", {}).get("device", "cpu")) != "cpu":
        raise ValueError(f"a record must be made on cpu, got {device}")
    lines = [line.strip("| ").split(" ")[0] for line in RECORDS.read_text(encoding="utf-8").splitlines()]
    best = min((float(one) for one in lines if one.replace(".", "", 1).isdecimal()), default=float("inf"))
    found = paired_interval(record[SIDE_BY_SIDE] for record in records)
    if found.mean >= best:
        raise ValueError(f"a record must be below {best:.4f} nats a character, got {found.mean:.4f}")
    half = _mean(records, HALF_A_WINDOW)
    line = (
        f"| {found.mean:.4f} | {found.low:.4f} to {found.high:.4f} | {half:.4f} | {what} | "
        f"{provenance['date']} | {provenance['commit']} | {provenance['machine']['cpu']} |"
    )
    with RECORDS.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    return line
