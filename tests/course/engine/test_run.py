"""The training run of the page: its batches, its bound, its repetition, and its model in Python."""

import numpy as np
import torch

import tinytx as tx
from tinytx.batching import pad_batch
from tinytx.objectives import causal_batch
from tinytx_course.engine import training_parts

SMALL = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 8}


MAKE = 'const world = new World(tensors.get("world").data);'
BATCHES = """
const batches = reviewBatches(world, generator(one.seed), 256), random = generator(one.seed);
const rows = Array.from({ length: 40 }, () => encodeWords(world, world.sample(random)));
return [Array.from({ length: 30 }, () => batches.next().value).map((batch) =>
  [[...batch.tokenIds], [...batch.targets], batch.batchSize, batch.seqLen]), rows];
"""


def test_batches_hold_each_drawn_review_once_and_little_else(engine, tables, world):
    ((_, (batches, rows)),) = engine(MAKE + BATCHES, ({"seed": 3}, tables))
    seen, n_tokens = [], 0
    for token_ids, targets, batch_size, seq_len in batches:
        assert batch_size * seq_len <= 256
        targets = np.array(targets).reshape(batch_size, seq_len)
        texts = [row[row >= 0][:-1].tolist() for row in targets]
        inputs, expected = causal_batch(pad_batch([[0, *text, 0] for text in texts], -100))
        assert (inputs.clamp(min=0).numpy() == np.array(token_ids).reshape(inputs.shape)).all()
        assert (expected.numpy() == targets).all()
        seen += texts
        n_tokens += sum(len(text) + 1 for text in texts)
    assert n_tokens > 0.85 * sum(batch_size * seq_len for *_, batch_size, seq_len in batches)
    assert all(row in seen for row in rows) and max(map(seen.count, rows)) == 1
    words = [tuple(world.vocabulary[token - 1] for token in row) for row in rows]
    assert np.isfinite(world.batch_log_prob(words)).all()


RUN = """
const run = new Run(world, await kernelsFor("wasm"), one.seed, one.changes);
const told = Array.from({ length: one.n }, () => run.advance());
const before = run.evaluate(), words = run.sample(generator(7), { beginning: ["Ce", "roman"] });
const drawn = generator(2 ** 31 - 1), heldOut = Array.from({ length: 100 }, () => world.sample(drawn));
const bytes = writeState(run.model, { words: world.words });
answer("file", { shape: [bytes.length], data: bytes });
return { told, before, words, heldOut };
"""
CHANGES = {"config": SMALL, "settings": {"n_steps": 40}, "tokensPerBatch": 512}


def test_a_run_repeats_learns_and_ends_in_a_model_of_tinytx(engine, tables, world, tmp_path):
    facts = [{"seed": seed, "n": 40, "changes": CHANGES} for seed in (0, 0, 1)]
    (answer, first), (_, again), (_, other) = engine(MAKE + RUN, *((fact, tables) for fact in facts))
    assert first == again and first["told"] != other["told"]
    assert first["told"][-1]["loss"] < first["told"][0]["loss"] - 0.5
    assert first["words"][:2] == ["Ce", "roman"] and set(first["words"]) <= set(world.vocabulary)
    words, told = first["heldOut"], first["before"]
    n_words = sum(len(one) + 1 for one in words)
    np.testing.assert_allclose(told["bound"], -world.batch_log_prob(words).sum() / n_words, rtol=1e-9)

    file = tmp_path / "run.safetensors"
    file.write_bytes(answer["file"].numpy().tobytes())
    model, total = tx.load(file).model, 0.0
    for one in words:
        ids = [world.automaton.word_ids[word] + 1 for word in one]
        inputs, targets = causal_batch(torch.tensor([[0, *ids, 0]]))
        with torch.no_grad():
            total += model.loss(inputs, targets).item() * targets.numel()
    np.testing.assert_allclose(told["loss"], total / n_words, rtol=1e-5)
    np.testing.assert_allclose(told["above"], told["loss"] / told["bound"] - 1, rtol=1e-9)


CLOCK = """
const run = new Run(world, await kernelsFor("wasm"), 0, { ...one, settings: { seconds: 10, lr: 1 } });
const all = [];
while (!run.finished) {
  const { lr } = run.advance();
  run.spend(run.spent < 5 ? 0.25 : 0.5);
  all.push([run.spent, lr]);
}
const made = run.step;
run.change({ settings: { seconds: 20 } });
return [all, made, run.training.settings.n_steps];
"""


def test_a_schedule_in_seconds_ends_with_them_though_the_steps_slow_down(engine, tables):
    facts = {"config": SMALL, "tokensPerBatch": 128}
    ((_, (found, n_steps, longer)),) = engine(MAKE + CLOCK, (facts, tables))
    seconds, rates = np.array(found).T
    assert n_steps == len(found) == 30 and seconds[-1] == 10 and longer == 60
    expected = np.minimum(seconds / 1, (10 - seconds) / 9)
    np.testing.assert_allclose(rates[1:], expected[1:], atol=0.07)  # of the first step no pace is known
    assert 0 <= rates[-1] < 0.05


def test_the_engine_in_a_page_is_small(world):
    parts = training_parts(world)
    assert len(parts["script"].encode()) + len(parts["wasm"]) <= 100_000


def test_a_model_that_ends_at_once_writes_what_it_would_if_it_must_not_end(engine, tables):
    body = """
const run = new Run(world, await kernelsFor("wasm"), 0, { config: one.config });
const drawn = run.sample.bind(run);
run.sample = (random, how = {}) => (how.nForced ? drawn(random, how) : []);
const { text, forced } = run.moment([], 0);
run.sample = () => []; // as where the logits are no numbers
const { forced: nothing } = run.moment([], 0);
return [text, forced.text.length, forced.allowed.length, forced.english.length, nothing];
"""
    ((_, found),) = engine(MAKE + body, ({"config": SMALL}, tables))
    assert found == [[], 12, 12, 12, None]
