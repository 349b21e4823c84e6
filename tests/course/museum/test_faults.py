"""The patients: healthy is right, a fault is one line, and bad names are answered."""

import math

import pytest
import torch

import tinytx as tx
from tinytx.batching import pad_batch
from tinytx_course import museum
from tinytx_course.museum.faults import FAULTS, PATIENT_NAMES, PATIENTS, load, read_fault
from tinytx_course.museum.patients import TASKS, Patient, small_world

IDS = torch.tensor([[1, 8, 5, 9, 2], [1, 7, 2, 0, 0]])
SOURCES = torch.tensor([[1, 6, 4, 2, 0, 0, 0], [1, 3, 8, 5, 4, 6, 2]])


def config(**changes):
    sizes = {"vocab_size": 11, "d_model": 6, "n_heads": 3, "n_layers": 2, "d_ff": 7}
    return tx.TransformerConfig(**sizes, tie_embeddings=True, head_bias=True, **changes)


@pytest.mark.parametrize("task", TASKS)
def test_the_healthy_program_is_the_model_of_tinytx(task):
    """Equal outputs with copied weights, padding included."""
    program, name = load(None), TASKS[task]
    causal = task != "classifier"
    theirs = getattr(tx, name)(config(causal=causal)).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    ours = getattr(program, name)(config()).eval()
    ours.load_state_dict({key: v for key, v in theirs.state_dict().items() if "pos_embed" not in key})
    if task == "translator":
        outputs = ours(SOURCES, IDS), theirs(SOURCES, IDS, src_padding_mask=SOURCES != 0)
    else:
        outputs = ours(IDS), theirs(IDS, IDS != 0)
    real = slice(None) if task == "classifier" else IDS != 0
    torch.testing.assert_close(outputs[0][real], outputs[1][real], rtol=1e-5, atol=1e-5)


def test_the_healthy_loss_is_that_of_tinytx():
    rows = [[1, 8, 5, 9, 2], [1, 7, 2]]
    ours, theirs = load(None).LanguageModel(config()).eval(), tx.LanguageModel(config()).eval()
    theirs.load_state_dict({**theirs.state_dict(), **ours.state_dict()})
    padded = pad_batch(rows, 0)
    expected = theirs.loss(padded[:, :-1], padded[:, 1:].masked_fill(padded[:, 1:] == 0, -100))
    torch.testing.assert_close(ours.loss(rows), expected)


def test_an_edit_of_no_line_of_the_program_or_of_two_is_refused():
    texts = dict.fromkeys(("words", "test", "symptom"), "x")
    with pytest.raises(ValueError, match=r"'m' of faults\.toml .*once .*'model\.evaluate\(\)' 0 times"):
        read_fault("m", "classifier", texts | {"edit": ["model.evaluate()", "pass"]})
    two = [["import math", "pass"], ["import torch\n", "pass\n"]]
    with pytest.raises(ValueError, match=r"'m' of faults\.toml must change one line, got 2"):
        read_fault("m", "classifier", texts | {"edit": two})
    with pytest.raises(ValueError, match=r"'m' of faults\.toml .*got no edit"):
        read_fault("m", "classifier", texts)


def test_every_fault_is_one_patient_and_the_first_is_the_example():
    assert sorted(PATIENTS) == sorted(FAULTS) and PATIENTS[0] == "gradient_cut"
    assert len(PATIENT_NAMES) == 14
    in_order = [name for name in FAULTS if name != PATIENTS[0]]
    assert list(PATIENTS[1:]) != in_order


@pytest.mark.parametrize("number", [-1, 15, 3.0, True, None, "3"])
def test_a_patient_that_does_not_exist_is_refused(number):
    with pytest.raises(ValueError, match="from 1 to 14, got"):
        museum.patient(number)


def test_a_task_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="language model, classifier, translator, got 'poet'"):
        museum.healthy("poet")


def test_rows_are_those_of_the_small_world_and_equal_seeds_give_equal_rows():
    world = small_world()
    for task in TASKS:
        rows = world.rows(task, 7, seed=3)
        assert rows == world.rows(task, 7, seed=3) != world.rows(task, 7, seed=4)
    assert world.decode(world.encode(("le", "roman"))) == ["le", "roman"]
    assert len(set(world.words)) == len(world.words) < 500


def test_the_bound_of_a_classifier_and_of_a_language_model_by_hand():
    world = small_world()
    (review,) = world.french.reviews(1, seed=5)
    row = world.encode(review.words)
    posterior = world.french.label_posterior(review.words)
    expected = -math.log(posterior if review.label else 1 - posterior)
    assert world.bound("classifier", [(row, review.label)]) == pytest.approx(expected)
    nats = -world.french.log_prob(review.words)
    assert world.bound("language model", [row]) == pytest.approx(nats / (len(review.words) + 1))


def test_training_is_the_same_for_equal_seeds_and_leaves_the_random_state_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    losses = [Patient("no_scale", seed=2).history.loss for _ in range(2)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5) and len(losses[0]) == 3
    assert losses[0] != pytest.approx(Patient("no_scale", seed=3).history.loss, rel=1e-5)
    assert torch.equal(torch.rand(3), expected)
