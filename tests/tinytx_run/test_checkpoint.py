"""What is saved comes back; what is damaged or foreign is refused by name."""

import json
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from safetensors.torch import load_file, save_file

from tinytx.classifier import Classifier
from tinytx.encoder_decoder import Translator
from tinytx.lora import add_lora, merge_lora
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.transformer import LanguageModel
from tinytx_run import splits
from tinytx_run.checkpoint import find_checkpoint, load, save
from tinytx_run.splits import TextHashes

MODELS = {
    "tied": lambda config: LanguageModel(config.replace(tie_embeddings=True)),
    "bare": lambda config: LanguageModel(config.replace(positions="learned", bias=False, norm="last")),
    "rotary": lambda config: LanguageModel(config.replace(positions="rotary")),
    "classifier": lambda config: Classifier(config, n_classes=3, pooling="last", dropout=0.3),
    "masked": lambda config: MaskedLanguageModel(config.replace(n_segments=2), next_sentence=True),
    "translator": Translator,
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_with_its_tokenizer(tmp_path, config, tokenizer, name):
    model = MODELS[name](config)
    save(model, tmp_path / "model", tokenizer)
    found = load(tmp_path / "model")
    again = found.model
    assert repr(again) == repr(model) and again.config == model.config and not again.training
    torch.testing.assert_close(again.state_dict(), model.state_dict(), rtol=0, atol=0)
    assert found.tokenizer.to_bytes() == tokenizer.to_bytes() and found.class_names is None
    if name == "tied":
        assert again.head.weight is again.body.token_embed.weight
    if name == "classifier":
        assert again.pooling == "last"


def test_what_a_model_has_learned_comes_back_and_other_content_is_named(tmp_path, config, monkeypatch):
    texts = [f"texte {i}" for i in range(60)]
    whole = TextHashes.of(texts)
    monkeypatch.setattr(splits, "MAX_HASHES", 20)
    part = TextHashes.of(texts)
    path = save(LanguageModel(config), tmp_path / "model", learned=(part, whole))
    assert load(path).learned == (part, whole) and len(part.hashes) == 20
    asked = ["Texte 0.", "TEXTE  1 !", "autre", *texts[2:40]]
    assert whole.count(asked) == 40 and 20 < part.count(asked) <= 41, "of a share an estimate"
    save(LanguageModel(config), path)
    assert load(path).learned == ()
    for content in ('{"learned": [1]}', '{"learned": [{"limit": 1, "hashes": "xyz"}]}', "{}"):
        (path / "texts.json").write_text(content)
        with pytest.raises(ValueError, match="texts.json must hold hashes of texts"):
            load(path)


def test_a_run_folder_means_its_newest_checkpoint(tmp_path, config):
    for step in (8, 12, 1000004):
        save(LanguageModel(config), tmp_path / f"step-{step:06d}")
    (tmp_path / ".step-2000000.part").mkdir()
    assert find_checkpoint(tmp_path).name == "step-1000004"


def test_nothing_foreign_is_written_over_or_removed(tmp_path, config):
    (tmp_path / "diary.txt").write_text("monday")
    with pytest.raises(ValueError, match="holds other files"):
        save(LanguageModel(config), tmp_path)
    for name in (".model.old", ".model.part", ".backup.gone"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").write_text("mine")
    path = save(LanguageModel(config), tmp_path / "model")
    (path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds other files"):
        save(LanguageModel(config), path)
    mine = {"notes.txt", ".model.old/mine", ".model.part/mine", ".backup.gone/mine"}
    assert mine <= {
        file.relative_to(tmp_path).as_posix().removeprefix("model/") for file in tmp_path.rglob("*")
    }


def test_a_link_to_a_checkpoint_stays_a_link(tmp_path, config):
    save(LanguageModel(config), tmp_path / "model")
    (tmp_path / "link").symlink_to(tmp_path / "model")
    second = LanguageModel(config)
    for _ in range(2):
        save(second, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    torch.testing.assert_close(
        load(tmp_path / "model").model.state_dict(), second.state_dict(), rtol=0, atol=0
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "model"]


def test_two_that_save_to_one_path_lose_nothing_and_can_be_read_meanwhile(tmp_path, config, monkeypatch):
    models = [LanguageModel(config.replace(n_layers=n)) for n in (1, 2)]

    def work(model):
        for _ in range(15):
            save(model, tmp_path / "m")
            load(tmp_path / "m")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, models))
    found = load(tmp_path / "m").model
    assert found.state_dict().keys() == models[found.config.n_layers - 1].state_dict().keys()
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    monkeypatch.chdir(tmp_path / "m")
    with pytest.raises(ValueError, match="replaces its folder, so it cannot be the current one"):
        save(models[0], ".")


def test_a_save_killed_between_its_two_renames_can_still_be_read(tmp_path, config, monkeypatch):
    path = save(LanguageModel(config), tmp_path / "m")
    path.rename(tmp_path / ".m.tinytx-old")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert find_checkpoint(tmp_path / "m").name == ".m.tinytx-old" and load("m")  # no name of a published one
    save(LanguageModel(config), tmp_path / "m")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.fixture
def saved(tmp_path, config, tokenizer):
    return save(LanguageModel(config), tmp_path / "saved", tokenizer)


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def swap_weights(folder, config):
    other = save(LanguageModel(config.replace(n_layers=1)), folder.parent / "other")
    shutil.copy(other / "model.safetensors", folder / "model.safetensors")


def write(name, content):
    return lambda folder, config: (folder / name).write_bytes(content)


def edit_description(**changes):
    return lambda folder, config: edit(folder / "model.json", **changes)


def edit_config(**changes):
    return lambda folder, config: edit(folder / "model.json", config=config.to_dict() | changes)


def edit_weights(change):
    def edit_file(folder, config):
        weights = load_file(folder / "model.safetensors")
        save_file({name: change(weight) for name, weight in weights.items()}, folder / "model.safetensors")

    return edit_file


TOO_LARGE = "model.json does not describe a model: .*model.safetensors"  # refused before it is built
DAMAGE = {
    "too many layers": (edit_config(n_layers=10**7), TOO_LARGE),
    "too wide": (edit_config(d_model=10**9, n_heads=1), TOO_LARGE),
    "too many tokens": (edit_config(vocab_size=10**12), TOO_LARGE),
    "too many positions": (edit_config(max_len=2 * 10**7), TOO_LARGE),
    "weights cut short": (lambda f, c: cut(f / "model.safetensors"), "model.safetensors must be a whole"),
    "weights empty": (write("model.safetensors", b""), "model.safetensors must be a whole"),
    "a pickle": (write("model.safetensors", pickle.dumps({"w": 1})), "model.safetensors must be a whole"),
    "weights missing": (lambda f, c: (f / "model.safetensors").unlink(), "model.safetensors is missing"),
    "weights of another model": (swap_weights, r"body.blocks.1.*must be .*, got absent"),
    "description cut short": (lambda f, c: cut(f / "model.json"), "model.json must be whole JSON"),
    "description of something": (write("model.json", b'{"name": "x"}'), "does not describe a tinytx model"),
    "a list": (write("model.json", b"[1]"), "must hold a JSON object, got list"),
    "unknown kind": (edit_description(kind="diffusion"), "a model: 'diffusion'"),
    "newer version": (edit_description(version=9), "must have version 1, got 9"),
    "no configuration": (edit_description(config={}), "model.json does not describe a model"),
    "weights without a number": (edit_weights(lambda w: w * torch.nan), "finite real numbers, got"),
    "complex weights": (edit_weights(lambda w: w.to(torch.complex64)), "real numbers, got .*complex64"),
    "truth values": (edit_weights(lambda w: w > 0), "real numbers, got .*torch.bool"),
    "ties that are none": (edit_description(tied=[]), "model.json"),
    "names that are none": (
        edit_description(kind="classifier", n_classes=2, pooling="mean", dropout=0.0, class_names=3),
        "model.json does not describe a model",
    ),
    "tied over untied": (edit_config(tie_embeddings=True), "head.weight must equal body.token_embed.weight"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_named_in_one_line(saved, config, name):
    damage, words = DAMAGE[name]
    (saved / "checksums.json").unlink()  # as a person does who changes a file on purpose
    damage(saved, config)
    with pytest.raises(ValueError, match=words) as caught:
        load(saved)
    assert str(saved) in str(caught.value)


def test_a_pickle_is_never_run(tmp_path, saved):
    class Trap:
        def __reduce__(self):
            return (tmp_path.joinpath("sprung").touch, ())

    (saved / "checksums.json").unlink()
    for file, path in ((tmp_path / "model.pt", tmp_path / "model.pt"), (saved / "model.safetensors", saved)):
        torch.save(Trap(), file)
        with pytest.raises(ValueError, match=file.name):
            load(path)
    assert not (tmp_path / "sprung").exists()


def test_what_is_not_there_is_named(tmp_path, saved):
    with pytest.raises(ValueError, match="nothing there: .*nowhere"):
        load(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="model.json .*empty"):
        load(tmp_path / "empty")
    (saved / "tokenizer.model").unlink()
    with pytest.raises(ValueError, match="tokenizer.model is missing"):
        load(saved)
    (saved / "tokenizer.model").write_bytes(b"half a tok")
    with pytest.raises(ValueError, match="tokenizer.model"):
        load(saved)


def test_an_adapted_model_is_saved_once_it_is_merged(tmp_path, config):
    model = LanguageModel(config)
    add_lora(model)
    with pytest.raises(ValueError, match="call merge_lora first"):
        save(model, tmp_path / "mine")
    merge_lora(model)
    save(model, tmp_path / "mine")
    assert isinstance(load(tmp_path / "mine").model, LanguageModel)


def test_names_of_classes_come_back_in_their_order(tmp_path, config, tokenizer):
    model, names = Classifier(config, n_classes=3), ("mauvais", "moyen", "bon")
    for path in (tmp_path / "folder", tmp_path / "one.safetensors"):
        save(model, path, class_names=names)
        assert load(path).class_names == names and load(path).tokenizer is None
        save(model, path)
        assert load(path).class_names is None
    with pytest.raises(ValueError, match="the tokenizer of their model, got a Classifier alone"):
        load(path).with_tokenizer()
    for wrong, other, words in (
        (("bon", "mauvais"), model, "3 different words, .* got .'bon', 'mauvais'."),
        (("bon", "bon", "mauvais"), model, "3 different words"),
        (("1", "1.0", "2"), model, "3 different words"),
        ((0, 1, 2), model, "class_names must be str, got 0"),
        (names, LanguageModel(config), "of a classifier, got a LanguageModel"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            save(other, tmp_path / "wrong", class_names=wrong)
    assert not (tmp_path / "wrong").exists()


def test_what_is_no_model_of_its_tokenizer_and_no_folder_is_named(tmp_path, config, tokenizer, saved):
    with pytest.raises(ValueError, match="must have one vocabulary, got 30 tokens and vocab_size=31"):
        save(LanguageModel(config.replace(vocab_size=31)), tmp_path / "new", tokenizer)
    with pytest.raises(TypeError, match="must hold a LanguageModel .*, got a Checkpoint"):
        save(load(saved), tmp_path / "new")
    with pytest.raises(ValueError, match="does not describe a tinytx model: give its folder"):
        load(saved / "model.safetensors")
    (tmp_path / "h.py").touch()
    with pytest.raises(ValueError, match="got .*h.py, which is a file"):
        save(LanguageModel(config), tmp_path / "h.py")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lambda model: model.body.final_norm.weight.data[2].fill_(torch.nan),
            "final_norm.weight of torch.float32, not all of them finite",
        ),
        (lambda model: setattr(model, "head", torch.nn.Linear(12, 7)), "head.bias must be absent, got"),
        (
            lambda model: setattr(model.head, "weight", torch.nn.Parameter(model.head.weight.detach() + 1)),
            "head.weight must equal body.token_embed.weight",
        ),
        (lambda model: model.body.blocks.append(model.body.blocks[0]), "blocks.2.* must be absent"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved_and_what_was_saved_stays(tmp_path, config, spoil, words):
    model = LanguageModel(config.replace(tie_embeddings=True, head_bias=False))
    for path in ("model", "model.safetensors"):
        save(model, tmp_path / path)
    good = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    spoil(model)
    for path in ("model", "model.safetensors"):
        with pytest.raises(ValueError, match=words):
            save(model, tmp_path / path)
        torch.testing.assert_close(load(tmp_path / path).model.state_dict(), good, rtol=0, atol=0)
