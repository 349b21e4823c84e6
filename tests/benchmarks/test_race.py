"""The race: every character counted once with its context, no look ahead, the clock and the rules kept."""

import json

import pytest
import torch
import torch.nn.functional as F

from benchmarks import race
from benchmarks.__main__ import main
from benchmarks.race import check_causal, one_race, stream_nats
from benchmarks.racers import RACERS, named_racer
from benchmarks.settings import BenchSettings
from benchmarks.trained import StreamObjective
from tinytx.config import TransformerConfig
from tinytx.ngrams import NGramModel
from tinytx.transformer import LanguageModel
from tinytx_run.corpora import load_corpus

N, V = 131, 7


@pytest.fixture(scope="module")
def ids():
    return torch.randint(V, (N,), generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    sizes = {"vocab_size": V, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 20}
    return LanguageModel(TransformerConfig(**sizes, positions="rotary")).eval()


def test_an_epoch_reads_no_position_twice_and_nearly_all(ids):
    objective = StreamObjective(ids, 8)
    for epoch in range(3):
        batches = objective.epoch_batches(seed=3, epoch=epoch, tokens_per_batch=24)
        read = [i for batch in batches for start in batch for i in range(start, start + 8)]
        assert len(set(read)) == len(read) and max(read) < N - 1
        assert len(read) > N - 8 - 24 - 8 and {len(batch) for batch in batches} == {3}
    one, other = (objective.epoch_batches(seed=3, epoch=epoch, tokens_per_batch=24) for epoch in (0, 1))
    assert one == objective.epoch_batches(seed=3, epoch=0, tokens_per_batch=24) != other


def test_the_loss_is_the_cross_entropy_of_the_next_tokens(ids, model):
    objective = StreamObjective(ids, 11)
    inputs, targets = objective.batch([3, 40, 71])
    assert inputs[1].tolist() == ids[40:51].tolist() and targets[1].tolist() == ids[41:52].tolist()
    expected = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    torch.testing.assert_close(objective.loss(model, [3, 40, 71]), expected)


@pytest.mark.parametrize(("seq_len", "stride"), [(10, 10), (10, 3), (10, 1), (130, 130), (500, 7)])
def test_every_token_is_counted_once_however_the_text_is_cut(ids, seq_len, stride):
    table = torch.randn(V, V, generator=torch.Generator().manual_seed(2))  # a bigram model

    def bigram(token_ids):
        return table[token_ids]

    expected = F.cross_entropy(table[ids[:-1]], ids[1:], reduction="none")
    found = stream_nats(bigram, ids, seq_len, stride=stride, rows_per_batch=4)
    torch.testing.assert_close(found, expected)


def test_a_token_has_as_much_context_as_promised(ids, model):
    seq_len, stride = 12, 5
    found = stream_nats(model, ids, seq_len, stride=stride)
    for i in (1, 11, 12, 60, 100):  # a window begins at a multiple of the stride
        first = 0 if i <= seq_len else stride * -((i - seq_len) // -stride)
        alone = model(ids[None, first:i])[0, -1].log_softmax(-1)[ids[i]]
        torch.testing.assert_close(found[i - 1], -alone.detach())
        assert i - first >= min(i, seq_len - stride)


class Bigrams:
    """A racer that counts pairs, so that its scores are known; each call of the clock is a second."""

    name, seq_len = "bigrams", 8

    def __init__(self):
        self.shares = []

    def make(self, ids, n_characters, seed):
        self.ids, self.counts = ids, torch.ones(n_characters, n_characters)

    def step(self, share):
        self.shares.append(share)
        if len(self.shares) == 1:
            pairs = (self.ids[:-1], self.ids[1:])
            self.counts.index_put_(pairs, torch.ones(len(self.ids) - 1), accumulate=True)

    def score(self, ids):
        return self.counts[ids].log()

    def about(self):
        return {"order": 2}


@pytest.fixture
def seconds_pass(monkeypatch):
    now = iter(range(1000))
    monkeypatch.setattr(race.time, "perf_counter", lambda: float(next(now)))


def test_a_racer_steps_until_its_time_is_over(ids, seconds_pass):
    racer = Bigrams()
    record = one_race(racer, ids[:90], ids[90:], V, seconds=4.0, seed=3)
    assert racer.shares == [0.0, 0.25, 0.5, 0.75] and record["n_steps"] == 4 and record["seconds"] == 4.0
    counts = torch.ones(V, V)
    for a, b in zip(ids[:89].tolist(), ids[1:90].tolist(), strict=True):
        counts[a, b] += 1
    nats = -(counts / counts.sum(1, keepdim=True)).log()[ids[90:-1], ids[91:]].mean().item()
    assert record["side by side"] == pytest.approx(nats) == record["half a window of context"]


def test_a_racer_that_reads_ahead_is_refused(ids):
    class Peeking(Bigrams):
        def score(self, ids):
            return super().score(ids) + F.one_hot(ids.roll(-1, 1), V)

    racer = Peeking()
    racer.make(ids, V, 0)
    with pytest.raises(ValueError, match="later characters"):
        check_causal(racer, ids)


def test_ngrams_mix_no_character_with_the_marks_of_beginning_and_end(ids, monkeypatch):
    monkeypatch.setattr(race, "characters", lambda settings: (ids[:90], ids[90:], V))
    apart = NGramModel(4, V + 4, bos_id=V, eos_id=V + 1).fit([ids[:90].tolist()])
    expected = {order: apart.nats_per_token([ids[90:].tolist()], order=order) for order in (2, 4)}
    found = race.counted(BenchSettings(n_rounds=1))["nats_by_order"]
    assert {order: found[str(order)] for order in expected} == pytest.approx(expected, rel=1e-12)


def test_the_learning_rate_follows_the_clock(ids):
    for name in RACERS:
        racer = named_racer(name)
        racer.make(torch.arange(1_000) % V, V, 0)
        rates = []
        for share in (0.0, 0.1, 0.55, 1.0):
            racer.step(share)
            rates.append(racer._step.optimizer.param_groups[0]["lr"])
        assert rates[0] < 0.01 * racer.settings.lr and rates[1] > 0.9 * racer.settings.lr
        final = racer.settings.final_lr_fraction * racer.settings.lr
        assert rates[1] > rates[2] > rates[3] and rates[3] == pytest.approx(final)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tinyshakespeare").mkdir()
    text = "\n\n".join(load_corpus("world").train.texts[:150])
    (tmp_path / "tinyshakespeare" / "input.txt").write_text(text, encoding="utf-8")
    return tmp_path


def test_the_race_is_stored_seed_by_seed_and_not_run_twice(folder, capsys):
    where = ["--tiny", "--data-dir", str(folder), "--results", str(folder)]
    words = ["race", "--seconds", "0.01", "--seeds", "2", *where]
    assert main(words) == 0 and "half a window" in capsys.readouterr().out
    first = json.loads((folder / "race.json").read_text())["records"]
    assert main(words) == 0
    assert json.loads((folder / "race.json").read_text())["records"] == first
    raced = [record for record in first.values() if record["kind"] == "race"]
    assert [record["seed"] for record in raced] == [0, 1] and all(one["n_steps"] >= 1 for one in raced)
    assert raced[0]["side by side"] != raced[1]["side by side"]
    assert main([*words, "--submit", "nothing new"]) == 2
    assert "10 seeds" in capsys.readouterr().err


def test_a_racer_of_somebody_else_is_read_from_a_file(folder):
    source = "from tests.benchmarks.test_race import Bigrams as Mine\n"
    (folder / "mine.py").write_text(source, encoding="utf-8")
    assert named_racer(f"{folder / 'mine.py'}:Mine").name == "bigrams"
    for bad in ("nobody", str(folder / "mine.py"), f"{folder / 'mine.py'}:Other", "none.py:Mine"):
        with pytest.raises(ValueError, match="must"):
            named_racer(bad)


@pytest.mark.parametrize(("option", "value"), [("--seconds", "nan"), ("--seconds", "-1"), ("--seeds", "0")])
def test_bad_races_are_refused(folder, capsys, option, value):
    assert main(["race", option, value, "--data-dir", str(folder)]) == 2
    assert f"got {value}" in capsys.readouterr().err


def test_a_record_must_be_better_than_the_last(monkeypatch, tmp_path):
    monkeypatch.setattr(race, "RECORDS", tmp_path / "records.md")
    (tmp_path / "records.md").write_text("| nats |\n|---|\n| 1.5000 | first |\n", encoding="utf-8")
    one = {"seconds": 180.4, "threads": 2, "half a window of context": 1.4}
    where = {"date": "2000-01-01", "commit": "abc", "machine": {"cpu": "a"}}
    records = [{**one, "side by side": 1.5 + 0.001 * seed} for seed in range(10)]
    with pytest.raises(ValueError, match=r"below 1\.5000"):
        race.submit(records, "worse", where)
    better = [{**record, "side by side": record["side by side"] - 0.1} for record in records]
    line = race.submit(better, "better", where)
    assert line.startswith("| 1.4045 |") and line in (tmp_path / "records.md").read_text()
    with pytest.raises(ValueError, match="2 threads"):
        race.submit([{**record, "threads": 1} for record in better], "alone", where)
