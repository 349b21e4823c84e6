"""One long text: every token counted once with its context; runs have curves; n-gram losses by hand."""

import json

import pytest
import torch
import torch.nn.functional as F

from benchmarks import speedrun
from benchmarks.__main__ import main
from benchmarks.settings import BenchSettings
from benchmarks.speedrun import StreamObjective, stream_nats
from tinytx.model.config import TransformerConfig
from tinytx.model.transformer import LanguageModel
from tinytx.text.corpora import load_corpus
from tinytx.text.ngrams import NGramModel
from tinytx.training.settings import TrainingSettings

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


def test_ngrams_mix_no_character_with_the_marks_of_beginning_and_end(ids):
    train, valid = ids[:90], ids[90:]
    apart = NGramModel(4, V + 4, bos_id=V, eos_id=V + 1).fit([train.tolist()])
    expected = {order: apart.nats_per_token([valid.tolist()], order=order) for order in (2, 4)}
    found = speedrun._counted(train, valid)["nats_by_order"]
    assert {order: found[str(order)] for order in expected} == pytest.approx(expected, rel=1e-12)


@pytest.mark.proof
def test_every_run_has_its_curve_and_the_time_it_took(tmp_path):
    (tmp_path / "tinyshakespeare").mkdir()
    text = "\n\n".join(load_corpus("world").train.texts[:150])
    (tmp_path / "tinyshakespeare" / "input.txt").write_text(text, encoding="utf-8")
    where = ["--data-dir", str(tmp_path), "--results", str(tmp_path)]
    assert main(["speedrun", "--tiny", "--rounds", "1", *where]) == 0
    records = json.loads((tmp_path / "bench-speedrun.json").read_text())["records"]
    runs = [record for record in records.values() if record["kind"] == "speedrun"]
    assert [run["unit"] for run in runs] == ["character"] * 4 + ["token"]
    for run in runs:
        steps, seconds = ([point[key] for point in run["curve"]] for key in ("step", "seconds"))
        assert steps == sorted(steps) and steps[0] == 1 and steps[-1] == run["n_steps"]
        assert seconds == sorted(seconds) and seconds[0] > 0 and seconds[-1] <= run["seconds"]
        assert run["curve"][-1]["nats"] < run["curve"][0]["nats"]
    for run in runs[:4]:  # so short a text is evaluated whole, at the end as in the last point of the curve
        assert run["curve"][-1]["nats"] == pytest.approx(run["nats"], abs=1e-6)
    assert runs[4]["above_floor"] == pytest.approx(runs[4]["nats"] / runs[4]["floor"] - 1)


def test_the_clock_stops_while_a_model_is_evaluated(ids, monkeypatch):
    now = [0.0]

    def look(model):
        now[0] += 100.0
        return 1.0

    monkeypatch.setattr(speedrun, "_now", lambda device: now[0])
    config = TransformerConfig(vocab_size=V, d_model=6, n_heads=1, n_layers=1, d_ff=5, max_len=5)
    run = speedrun.Run("ours", LanguageModel, config, TrainingSettings(n_steps=3, tokens_per_batch=15), None)
    _, record = speedrun.trained(run, StreamObjective(ids, 5), look, BenchSettings(n_rounds=1))
    assert [point["step"] for point in record["curve"]] == [1, 2, 3] and now == [300.0]
    assert [point["seconds"] for point in record["curve"]] == [0.0] * 3 and record["seconds"] == 0.0


def test_the_peer_is_trained_as_published():
    ours, with_adamw, published, as_long = speedrun.runs(65, BenchSettings(n_rounds=1))
    assert with_adamw.config == ours.config and ours.seconds == with_adamw.seconds == as_long.seconds == 180
    assert published.seconds is None and published.settings.n_steps == 2_000
    assert (published.config.max_len, published.settings.tokens_per_batch) == (64, 12 * 64)
    assert {(run.config.n_layers, run.config.d_model) for run in (ours, published, as_long)} == {(4, 128)}


def test_without_the_text_the_command_that_brings_it_is_named(tmp_path, capsys):
    where = ["--data-dir", str(tmp_path), "--results", str(tmp_path)]
    assert main(["speedrun", "--tiny", "--rounds", "1", *where]) == 2
    assert "tinytx data get tinyshakespeare" in capsys.readouterr().err
