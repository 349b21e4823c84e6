"""Tricks of the race: each changes what it says, starts where it changes nothing, and reads nothing ahead."""

from unittest.mock import patch

import pytest
import torch

from benchmarks.race import check_causal
from benchmarks.racers import SIZES, named_racer
from benchmarks.tricks import CHANGES, TRAININGS
from tinytx.config import TransformerConfig
from tinytx.transformer import LanguageModel

N, V = 4_001, 7
NARROW = {"d_model": 24, "d_ff": 40, "n_layers": 3}


@pytest.fixture(scope="module", autouse=True)
def narrow_racers():
    """Tricks change models of every size: a small one shows it in a fraction of the time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("benchmarks.racers.SIZES", SIZES | NARROW)
        yield


@pytest.fixture(scope="module")
def ids():
    return torch.randint(V, (N,), generator=torch.Generator().manual_seed(0))


def raced(ids, name, n_steps=4):
    racer = named_racer(name)
    racer.make(ids, V, 3)
    for step in range(n_steps):
        racer.step(step / n_steps)
    return racer


@pytest.fixture(scope="module")
def plain(ids):
    return raced(ids, "tinytx")


@pytest.mark.parametrize("trick", [*CHANGES, *TRAININGS])
def test_a_trick_reads_nothing_ahead_and_ends_elsewhere_than_the_racer(ids, plain, trick):
    racer = raced(ids, f"tinytx+{trick}", 12 if trick == "averaged" else 4)
    check_causal(racer, ids)
    assert racer.name == f"{plain.name} + {trick}" and racer.about() == plain.about()
    assert (racer.score(ids[None, :50]) - plain.score(ids[None, :50])).abs().max() > 1e-4


@pytest.fixture
def config():
    sizes = {"vocab_size": V, "d_model": 12, "n_heads": 3, "n_layers": 3, "d_ff": 20, "max_len": 64}
    return TransformerConfig(**sizes, positions="rotary", activation="relu", bias=False)


@pytest.mark.parametrize("trick", sorted(set(CHANGES) - {"squared-relu"}))
def test_a_change_of_the_model_starts_where_it_changes_nothing(ids, config, trick):
    torch.manual_seed(0)
    model = LanguageModel(config).eval()
    rows = ids[:100].view(4, 25)
    before = model(rows)
    weights = set(model.state_dict())
    CHANGES[trick](model)
    torch.testing.assert_close(model(rows), before)
    added = [weight for name, weight in model.named_parameters() if name not in weights]
    model.loss(rows[:, :-1], rows[:, 1:]).backward()
    assert added and all(weight.grad.abs().max() > 0 for weight in added)


def test_pairs_smears_gates_and_first_values_do_what_they_say(ids, config):
    def moved(trick, weight, value):
        torch.manual_seed(0)
        model = LanguageModel(config.replace(norm="last")).eval()
        CHANGES[trick](model)
        with torch.no_grad():
            model.get_parameter(weight).copy_(value)
        return model

    rows = torch.tensor([[3, 5, 5, 2]])
    pair = torch.zeros(V * V, 12)
    pair[5 * V + 2] = 1.0  # a 2 after a 5
    embedded = moved("bigrams", "body.pair_embed.weight", pair).body.token_embed(rows)
    table = moved("bigrams", "body.pair_embed.weight", 0 * pair).body.token_embed(rows)
    assert (embedded - table)[0].sum(-1).tolist() == pytest.approx([0.0, 0.0, 0.0, 12.0], abs=1e-5)
    model = moved("smear", "body.smear", torch.full((12,), 0.5))
    plain = model.body.token_embed.weight[rows[0]]
    torch.testing.assert_close(model.body.token_embed(rows)[0, 1:], plain[1:] + 0.5 * plain[:-1])
    model = moved("first-values", "body.blocks.2.attn.first_share", torch.tensor(1.0))
    seen = {}
    for i in (0, 2):
        attn = model.body.blocks[i].attn
        attn.v_proj.register_forward_hook(lambda module, inputs, v, i=i: seen.__setitem__(i, v))
    model(rows)
    torch.testing.assert_close(seen[2], seen[0])
    model = moved("gates", "body.blocks.0.attn.gate.weight", torch.zeros(3, 12))
    read, attn = [], model.body.blocks[0].attn
    attn.out_proj.register_forward_pre_hook(lambda module, inputs: read.append(inputs[0]))
    model(rows)
    with torch.no_grad():  # the gate of the second head is open or shut
        attn.gate.weight[1] = 1e3
    model(rows)
    ratio = (read[1] / read[0]).view(4, 3, 4)
    torch.testing.assert_close(ratio[:, [0, 2]], torch.ones(4, 2, 4))
    assert set(ratio[:, 1].round().flatten().tolist()) <= {0.0, 2.0}


def test_the_mean_of_the_weights_is_that_of_the_last_tenth(ids):
    racer = named_racer("tinytx+averaged")
    racer.make(ids, V, 3)
    seen = []
    for step in range(20):
        racer.step(step / 20)
        seen.append(racer._model.head.weight.detach().clone())
    racer.score(ids[None, :9])
    torch.testing.assert_close(racer._model.head.weight, (seen[18] + seen[19]) / 2)


def test_windows_grow_at_half_time_and_a_batch_keeps_its_length(ids):
    with patch.object(LanguageModel, "loss", autospec=True, side_effect=LanguageModel.loss) as loss:
        raced(ids, "tinytx+growing")
    shapes = [tuple(call.args[1].shape) for call in loss.call_args_list]
    assert shapes == [(16, 128), (16, 128), (8, 256), (8, 256)]


def test_scheduled_decay_falls_and_has_the_same_mean(ids):
    racer, seen = named_racer("tinytx+scheduled-decay"), []
    racer.make(ids, V, 3)
    for step in range(4):
        racer.step((step + 0.5) / 4)
        seen.append([group["weight_decay"] for group in racer._step.optimizer.param_groups])
    assert [decay[-1] for decay in seen] == [0.0] * 4  # of embeddings, norms and biases
    decays = [decay[0] for decay in seen]
    assert decays == sorted(decays, reverse=True) and sum(decays) / 4 == pytest.approx(0.4)


def test_cautious_decay_leaves_out_what_grows(ids):
    plain, cautious = named_racer("tinytx"), named_racer("tinytx+cautious-decay")
    for racer in (plain, cautious):
        racer.make(ids, V, 3)
    name = "body.blocks.0.ff.up_proj.weight"
    old = plain._model.get_parameter(name).detach().clone()
    for racer in (plain, cautious):
        racer.step(0.5)
    factor = 0.4 * plain._step.optimizer.param_groups[0]["lr"]
    update = plain._model.get_parameter(name) + factor * old - old  # of Muon alone
    expected = old + update - factor * old * (old * update < 0)
    torch.testing.assert_close(cautious._model.get_parameter(name), expected, rtol=1e-4, atol=1e-6)
    assert cautious._model.get_parameter("body.token_embed.weight").equal(
        plain._model.get_parameter("body.token_embed.weight")
    )


def test_tricks_are_chosen_by_name_and_add_up(ids):
    plain, both = named_racer("tinytx"), raced(ids, "tinytx-4096+bigrams+smear+averaged")
    assert both.name == f"{named_racer('tinytx-4096').name} + bigrams + smear + averaged"
    assert {"body.pair_embed.weight", "body.smear"} <= dict(both._model.named_parameters()).keys()
    assert isinstance(both, TRAININGS["averaged"]) and both.settings.tokens_per_batch == 4096
    for tricks in ("nothing", "smear+nothing"):
        with pytest.raises(ValueError, match="a trick must be one of bigrams, smear.*, got 'nothing'"):
            named_racer(f"tinytx+{tricks}")
    with pytest.raises(ValueError, match="got 'growing' and Averaged"):
        named_racer("tinytx+averaged+growing")
    assert plain.about() == named_racer("tinytx+smear").about()
