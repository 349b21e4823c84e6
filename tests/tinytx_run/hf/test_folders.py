"""Folders of `transformers`, made small here: tokenizers, commands, damage, no network, no foreign code."""

import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import sentencepiece
import torch
import transformers
from tokenizers import Tokenizer as Inner
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from tests.tinytx_run.conftest import sentences
from tests.tinytx_run.hf.test_convert import build
from tinytx.classifier import Classifier
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.generate import unwritten_ids
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx_run.checkpoint import load
from tinytx_run.classify import classifier_inputs
from tinytx_run.cli import main
from tinytx_run.hf.convert import save_transformers
from tinytx_run.hf.folders import is_published
from tinytx_run.hf.tokenizer import PretrainedTokenizer, published_tokenizer
from tinytx_run.pairs import load_pairs

TEXTS = sentences(200, 1)


def byte_level_bpe(specials):
    """A tokenizer of the kind that GPT-2 and RoBERTa have."""
    inner = Inner(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=alphabet, special_tokens=specials, show_progress=False
    )
    inner.train_from_iterator(TEXTS, trainer)
    return inner


def sentencepieces():
    """Pieces and scores of a sentencepiece model, and the model."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_writer=out, vocab_size=60, hard_vocab_limit=False, minloglevel=2
    )
    model = sentencepiece.SentencePieceProcessor()
    model.LoadFromSerializedProto(out.getvalue())
    n = model.get_piece_size()
    return [(model.id_to_piece(i), model.get_score(i)) for i in range(3, n)], out.getvalue()


def saved(folder, family, **changes):
    """Write a small model of a family; its weights are large, so that what it writes depends on the text."""
    build(family, **changes).save_pretrained(folder)
    return folder


def make_gpt2(folder):
    byte_level_bpe(["<|endoftext|>"]).model.save(str(folder))  # vocab.json, merges.txt
    return saved(folder, "GPT-2", vocab_size=300, n_positions=40, bos_token_id=0, eos_token_id=0)


def make_roberta(folder):
    byte_level_bpe(["<s>", "<pad>", "</s>", "<unk>", "<mask>"]).model.save(str(folder))
    return saved(folder, "RoBERTa", vocab_size=300, max_position_embeddings=42)


def make_camembert(folder):
    pieces, _ = sentencepieces()
    first = ["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>"]
    vocab = [*((piece, 0.0) for piece in first), *pieces, ("<mask>", 0.0)]
    tokenizer = transformers.CamembertTokenizer(vocab=vocab)
    tokenizer.save_pretrained(folder)
    return saved(folder, "CamemBERT", vocab_size=len(tokenizer), max_position_embeddings=42)


def make_marian(folder):
    pieces, model = sentencepieces()
    vocab = {"</s>": 0, "<unk>": 1}
    for piece, _ in pieces:
        vocab.setdefault(piece, len(vocab))
    pad_id = vocab["<pad>"] = len(vocab)
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(model)
    (folder / "vocab.json").write_text(json.dumps(vocab))
    (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "en", "target_lang": "fr"}))
    ids = {"pad_token_id": pad_id, "decoder_start_token_id": pad_id, "eos_token_id": 0}
    sizes = {"vocab_size": len(vocab), "max_position_embeddings": 40, "forced_eos_token_id": None}
    return saved(folder, "Marian", **sizes, **ids)


def make_llama(folder):
    """Bytes where a piece is missing, a mark in front of a text, and no padding token."""
    of_bytes = [f"<0x{byte:02X}>" for byte in range(256)]
    pieces = ["<unk>", "<s>", "</s>", *of_bytes, *"▁lechat", "▁l", "▁le"]
    vocab = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    merges = [("▁", "l"), ("▁l", "e")]
    how = {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"}
    inner = Inner(models.BPE(vocab=vocab, merges=merges, **how))
    inner.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    inner.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    inner.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    marks = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **marks).save_pretrained(folder)
    return saved(folder, "Llama", vocab_size=len(vocab), max_position_embeddings=40)


def make_bart(folder, family="BART", forced_id=None):
    """A text is read, and learned from, between two marks; the end mark begins what is written."""
    inner = byte_level_bpe(["<s>", "<pad>", "</s>", "<unk>"])
    framed = {"single": "<s> $A </s>", "special_tokens": [("<s>", 0), ("</s>", 2)]}
    inner.post_processor = processors.TemplateProcessing(**framed)
    marks = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **marks)
    return make_sequence_to_sequence(folder, family, tokenizer, 2, forced_id)


def make_sequence_to_sequence(folder, family, tokenizer, start_id, forced_id):
    tokenizer.save_pretrained(folder)
    ids = {"decoder_start_token_id": start_id, "forced_eos_token_id": None}
    theirs = build(family, vocab_size=len(tokenizer), max_position_embeddings=64, **ids)
    theirs.generation_config.forced_bos_token_id = forced_id
    theirs.final_logits_bias[0, [*tokenizer.added_tokens_decoder]] = -99  # no marks, no languages
    theirs.save_pretrained(folder)
    return folder


def make_mbart(folder, kind="MBart", language="fr_XX", forced=True):
    """25 languages: a text, an end mark, its language; 50: its language, a text, an end mark."""
    pieces, _ = sentencepieces()
    first = [(mark, 0.0) for mark in ("<s>", "<pad>", "</s>", "<unk>")]
    vocab = [*first, *pieces, ("en_XX", 0.0), ("fr_XX", 0.0)]
    how = {"src_lang": "en_XX", "tgt_lang": language}
    tokenizer = getattr(transformers, f"{kind}Tokenizer")(vocab=vocab, **how)
    french = tokenizer.convert_tokens_to_ids("fr_XX")
    ids = (french, None) if kind == "MBart" else (2, french if forced else None)
    return make_sequence_to_sequence(folder, "BARThez", tokenizer, *ids)


MAKERS = {
    "gpt2": make_gpt2,
    "roberta": make_roberta,
    "camembert": make_camembert,
    "marian": make_marian,
    "llama": make_llama,
    "bart": make_bart,
    "bart-forced": lambda folder: make_bart(folder, forced_id=0),
    "barthez": lambda folder: make_bart(folder, "BARThez", 0),
    "mbart": make_mbart,
    "mbart50": lambda folder: make_mbart(folder, "MBart50"),
    "mbart50-to-one": lambda folder: make_mbart(folder, "MBart50", language=None),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    torch.manual_seed(1)
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in MAKERS.items()}


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("\n".join(f"{int('chat' in text)}\t{text}" for text in sentences(60, 2)))
    return path


@pytest.fixture
def call(capsys):
    """Run a command that should succeed on the processor; gives its JSON."""

    def run(*arguments):
        status = main([*map(str, arguments), "--device", "cpu", "--json"])
        out, err = capsys.readouterr()
        assert status == 0, err
        return json.loads(out)

    return run


def read(folder, kind):
    """What `transformers` reads from a folder."""
    return getattr(transformers, kind).from_pretrained(folder, local_files_only=True)


# --- tokenizers


@pytest.mark.parametrize("name", ["gpt2", "roberta", "camembert", "marian"])
def test_a_tokenizer_cuts_as_the_original_and_comes_back(folders, name):
    tokenizer = published_tokenizer(folders[name])
    assert isinstance(tokenizer, PretrainedTokenizer)
    inner = read(folders[name], "AutoTokenizer")
    for text in [*TEXTS[:20], "", "un mot inconnu"]:
        ids = tokenizer.encode(text)
        assert ids == inner(text, add_special_tokens=False)["input_ids"]
        assert len(tokenizer.pieces(text)) == len(ids)
    for text in TEXTS[:20]:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.encode_batch(TEXTS[:5]) == [tokenizer.encode(text) for text in TEXTS[:5]]
    assert tokenizer.encode_targets(TEXTS[:5]) == tokenizer.encode_batch(TEXTS[:5])  # one vocabulary here
    assert tokenizer.encode_batch([]) == []
    assert tokenizer.vocab_size == load(folders[name]).model.config.vocab_size
    again = PretrainedTokenizer.from_bytes(tokenizer.to_bytes())
    assert again.to_bytes() == tokenizer.to_bytes()
    copy = pickle.loads(pickle.dumps(tokenizer))
    for other in (again, copy):
        assert other.encode_batch(TEXTS) == tokenizer.encode_batch(TEXTS)
        assert other.pad_id == tokenizer.pad_id and other.bos_id == tokenizer.bos_id


def test_marks_are_those_of_the_model(folders):
    roberta = published_tokenizer(folders["roberta"])
    marks = ("bos", "pad", "eos", "unk", "mask", "cls", "sep")
    assert [getattr(roberta, f"{mark}_id") for mark in marks] == [0, 1, 2, 3, 4, 0, 2]
    camembert = published_tokenizer(folders["camembert"])
    assert (camembert.cls_id, camembert.pad_id, camembert.unk_id, camembert.sep_id) == (5, 1, 3, 6)
    marian = published_tokenizer(folders["marian"])
    assert marian.bos_id == marian.pad_id == marian.vocab_size - 1 and marian.eos_id == 0
    gpt2 = published_tokenizer(folders["gpt2"])
    assert gpt2.bos_id == gpt2.eos_id == 0 != gpt2.pad_id
    # What fills up rows is the byte 0xFF, which no text in UTF-8 holds.
    assert gpt2.piece(gpt2.pad_id) == "\ufffd" and gpt2.decode([gpt2.pad_id]) == ""
    assert not any(gpt2.pad_id in gpt2.encode(text) for text in [*TEXTS, "ÿ \ufffd"])


def test_a_row_is_framed_as_the_original_frames_it(folders):
    for name in ("roberta", "camembert"):
        tokenizer = published_tokenizer(folders[name])
        inner = read(folders[name], "AutoTokenizer")
        rows, _ = classifier_inputs(tokenizer, TEXTS[:3], 40, causal=False)
        assert rows == [inner(text)["input_ids"] for text in TEXTS[:3]]


@pytest.mark.parametrize(
    ("name", "mark"),
    [("gpt2", "<|endoftext|>"), ("roberta", "</s>"), ("camembert", "<s>"), ("marian", "</s>")],
)
def test_a_mark_in_a_text_is_text(folders, name, mark):
    tokenizer = published_tokenizer(folders[name])
    marks = {tokenizer.bos_id, tokenizer.eos_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id}
    assert mark in {tokenizer._inner.convert_ids_to_tokens(i) for i in marks}
    assert not marks & set(tokenizer.encode(f"le {mark} chat"))


def test_tokenizers_that_do_not_fit_are_refused(folders, tmp_path):
    lost = tmp_path / "lost"
    shutil.copytree(folders["camembert"], lost)
    (lost / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match="files of the tokenizer are missing, or belong to another model"):
        published_tokenizer(lost)
    plain = Inner(models.WordLevel({"a": 0, "</s>": 1}, unk_token="a"))
    endless = transformers.PreTrainedTokenizerFast(tokenizer_object=plain)
    with pytest.raises(ValueError, match="an end token"):
        PretrainedTokenizer(endless, n_ids=2)
    padless = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, eos_token="</s>")
    with pytest.raises(ValueError, match="a padding token that no text holds, got none"):
        PretrainedTokenizer(padless, n_ids=2)
    with pytest.raises(ValueError, match="must be an archive of a tokenizer"):
        PretrainedTokenizer.from_bytes(b"half a tok")
    with pytest.raises(ValueError, match="a lone surrogate at 3"):
        published_tokenizer(folders["gpt2"]).encode("le \ud800")


# --- commands


@pytest.mark.parametrize("name", ["camembert", "gpt2", "llama"])
def test_finetune(folders, name, reviews, tmp_path, call):
    out = tmp_path / "run"
    first = call("finetune", folders[name], "--corpus", reviews, "--budget", "smoke", "--out", out)
    assert first["kind"] == "classifier" and not first["fresh"] and 0 <= first["accuracy"] <= 1
    model, tokenizer = load(out).with_tokenizer()
    assert isinstance(model, Classifier) and isinstance(tokenizer, PretrainedTokenizer)
    assert model.config.causal is (name != "camembert")
    before = load(folders[name]).model.body.token_embed.weight
    moved = (model.body.token_embed.weight - before).abs().max()
    assert 0 < moved < 1e-3  # the body came from the folder, and learned at a small rate


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_generate(folders, call, name):
    asked = ["--prompt", "le chat", "--max-new-tokens", 6, "--top-k", 1]
    answer = call("generate", folders[name], *asked)
    theirs, inner = (read(folders[name], kind) for kind in ("AutoModelForCausalLM", "AutoTokenizer"))
    tokenizer = published_tokenizer(folders[name])
    start = torch.tensor([[tokenizer.bos_id, *tokenizer.encode("le chat")]])
    never = [[tokenizer.pad_id]]
    written = theirs.generate(start, max_new_tokens=6, do_sample=False, bad_words_ids=never)
    assert written[0, start.shape[1] :].tolist() == answer["token_ids"]
    assert answer["text"] == inner.decode(written[0], skip_special_tokens=True)


def test_padding_is_a_token_that_no_text_holds(folders):
    """The byte 0xFF, also where the end or unknown token is named as padding; else an id without a token."""
    inner = read(folders["llama"], "AutoTokenizer")
    assert published_tokenizer(folders["llama"]).source_frame == ((1,), ())
    for given in (None, "</s>", "<s>", "<unk>"):
        inner.pad_token = given
        assert PretrainedTokenizer(inner, n_ids=len(inner)).pad_id == 3 + 255
    plain = Inner(models.WordLevel({"a": 0, "</s>": 1}, unk_token="a"))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, eos_token="</s>", pad_token="</s>")
    fast.add_tokens([f"b{i}" for i in range(18)])
    assert PretrainedTokenizer(fast, n_ids=21).pad_id == 20
    with pytest.raises(ValueError, match="a padding token that no text holds, got </s>"):
        PretrainedTokenizer(fast, n_ids=20)


def test_tokens_that_were_added_to_the_tokenizer_alone_are_not_used(folders):
    inner, n_ids = read(folders["llama"], "AutoTokenizer"), published_tokenizer(folders["llama"]).vocab_size
    inner.add_special_tokens({"pad_token": "[PAD]"})
    inner.add_tokens(["chaton"])
    tokenizer = PretrainedTokenizer(inner, n_ids=n_ids)
    assert tokenizer.pad_id == inner.convert_tokens_to_ids("<0xFF>")
    assert max(tokenizer.encode("[PAD] le chaton")) < n_ids


@pytest.mark.parametrize("name", ["marian", "bart", "mbart", "mbart50", "mbart50-to-one"])
def test_evaluate_a_translator(folders, tmp_path, call, name):
    """BLEU and loss over pairs; the loss is that of `transformers`, but for a language at the end."""
    pairs = list(zip(TEXTS[:6], TEXTS[6:12], strict=True))
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join("\t".join(pair) for pair in pairs))
    answer = call("evaluate", folders[name], "--corpus", path, "--split", "valid")
    theirs, inner = (read(folders[name], kind) for kind in ("AutoModelForSeq2SeqLM", "AutoTokenizer"))
    total = n = 0
    valid = load_pairs(path).splits["valid"]
    for source, target in zip(valid.sources, valid.targets, strict=True):
        batch = inner(source, text_target=target, return_tensors="pt")
        if name == "mbart50-to-one":  # its tokenizer knows no other language than the one it reads
            batch["labels"][0, 0] = inner.convert_tokens_to_ids("fr_XX")
        if name == "mbart":
            batch["decoder_input_ids"] = batch["labels"].roll(1)[:, :-1]
            batch["labels"] = batch["labels"][:, :-1]
        with torch.no_grad():
            total += theirs(**batch).loss.item() * batch["labels"].shape[1]
        n += batch["labels"].shape[1]
    assert answer["nats_per_token"] == pytest.approx(total / n, abs=1e-5)
    assert 0 <= answer["bleu"] <= 100


def test_a_folder_of_several_languages_names_the_one_to_write(tmp_path):
    (tmp_path / "asked").mkdir()
    asked = published_tokenizer(make_mbart(tmp_path / "asked", "MBart50", forced=False))
    assert asked.forced_ids == asked.target_prefix == (asked._inner.convert_tokens_to_ids("fr_XX"),)
    (tmp_path / "unknown").mkdir()
    with pytest.raises(ValueError, match="several languages must name the one to write"):
        published_tokenizer(make_mbart(tmp_path / "unknown", "MBart50", language=None, forced=False))


TRANSLATORS = ["marian", "bart", "bart-forced", "barthez", "mbart", "mbart50", "mbart50-to-one"]


@pytest.mark.parametrize("name", TRANSLATORS)
def test_translate_writes_what_transformers_writes(folders, monkeypatch, call, name):
    lines = TEXTS[:4]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
    found = call("translate", folders[name])["translations"]
    assert [one["source"] for one in found] == lines
    theirs, inner = (read(folders[name], kind) for kind in ("AutoModelForSeq2SeqLM", "AutoTokenizer"))
    tokenizer = published_tokenizer(folders[name])
    never = [[i] for i in unwritten_ids(tokenizer)]
    for line, one in zip(lines, found, strict=True):
        ids = inner(line, return_tensors="pt")["input_ids"]
        n = len(one["token_ids"])
        written = theirs.generate(ids, max_new_tokens=n, num_beams=1, do_sample=False, bad_words_ids=never)
        assert written[0, 1:].tolist() == one["token_ids"]
    assert len({one["text"] for one in found}) > 1
    again = PretrainedTokenizer.from_bytes(tokenizer.to_bytes())
    for mark in ("source_frame", "target_prefix", "forced_ids", "bos_id", "pad_id"):
        assert getattr(again, mark) == getattr(tokenizer, mark)


def test_an_older_folder_has_the_settings_of_writing_among_the_others(folders, tmp_path):
    old = shutil.copytree(folders["bart-forced"], tmp_path / "old")
    writing = json.loads((old / "generation_config.json").read_text())
    (old / "generation_config.json").unlink()
    config = json.loads((old / "config.json").read_text())
    (old / "config.json").write_text(json.dumps({**writing, **config}))
    for folder in (old, folders["bart-forced"]):
        assert published_tokenizer(folder).forced_ids == (0,)


def test_damaged_and_foreign_folders_end_in_one_line(folders, tmp_path, reviews, capsys):
    names = ("cut", "headless", "unheard", "mute", "bare", "sized", "pickled")
    cut, headless, unheard, mute, bare, sized, pickled = (
        shutil.copytree(folders["camembert"], tmp_path / name) for name in names
    )
    weights, config = cut / "model.safetensors", unheard / "config.json"
    weights.write_bytes(weights.read_bytes()[:1000])
    t5, empty = tmp_path / "t5", tmp_path / "empty"
    transformers.T5Config(vocab_size=9, d_model=4, d_kv=2, d_ff=4, num_layers=1).save_pretrained(t5)
    read(folders["camembert"], "AutoModel").save_pretrained(headless)
    config.write_text(json.dumps({**json.loads(config.read_text()), "model_type": "shakespeare"}))
    (mute / "tokenizer.json").write_text("{")
    (bare / "tokenizer.json").unlink()
    (bare / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    (sized / "config.json").write_text(
        (sized / "config.json").read_text().replace('"vocab_size": ', '"vocab_size": 1')
    )
    (pickled / "model.safetensors").unlink()
    torch.save(read(folders["camembert"], "AutoModelForMaskedLM").state_dict(), pickled / "pytorch_model.bin")
    empty.mkdir()
    for folder, words in (
        (cut, "cut cannot be read"),
        (unheard, "unheard cannot be read"),
        (mute, "mute cannot be read"),
        (bare, "bare cannot be read: files of its tokenizer are missing"),
        (sized, "other sizes than its config.json says"),
        (pickled, "may run code and are not read"),
        (t5, "got the model_type 't5'"),
        (headless, "must hold all weights of a CamembertForMaskedLM, got CamembertModel, which lacks"),
        (empty, "a checkpoint must be a folder with model.json"),
        (folders["marian"], "fine-tuning needs a model with one body, got a translator"),
    ):
        command = ["finetune", folder, "--corpus", reviews, "--out", tmp_path / "new"]
        status, err = main([*map(str, command)]), capsys.readouterr().err
        assert status == 2 and len(err.strip().splitlines()) == 1 and words in err, err
        assert not (tmp_path / "new").exists()


def test_without_a_network_a_name_says_what_to_do(reviews, tmp_path):
    """A real process, whose way to the network ends at a closed port."""
    closed = "http://127.0.0.1:9"
    environment = os.environ | dict.fromkeys(("HF_ENDPOINT", "http_proxy", "https_proxy"), closed)
    environment |= {"HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "0"}
    command = [sys.executable, "-m", "tinytx_run.cli", "finetune", "camembert-base", "--corpus", reviews]
    command += ["--out", tmp_path / "run"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert "camembert-base is no folder here and could not be fetched" in line
    assert "go online once" in line and "copy its folder" in line


# --- ours there

SIZES = {"vocab_size": 36, "d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 12, "max_len": 32}


def test_a_folder_of_our_model_names_the_marks_of_its_tokenizer(tmp_path):
    tokenizer = Tokenizer.train(TEXTS, vocab_size=36)
    translator = Translator(TransformerConfig(**SIZES, tie_embeddings=True, norm="last"))
    for model, start in ((LanguageModel(TransformerConfig(**SIZES)), None), (translator, tokenizer.bos_id)):
        save_transformers(model, tmp_path / type(model).__name__, tokenizer)
        config = read(tmp_path / type(model).__name__, "AutoConfig")
        marks = (config.bos_token_id, config.eos_token_id, config.pad_token_id)
        assert marks == (tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id)
        assert getattr(config, "decoder_start_token_id", None) == start
        with pytest.raises(ValueError, match="new or empty folder"):
            save_transformers(model, tmp_path / type(model).__name__, tokenizer)


def test_what_came_from_a_folder_goes_back_with_its_tokenizer(folders, tmp_path):
    model, tokenizer = load(folders["camembert"]).with_tokenizer()
    assert isinstance(model, MaskedLanguageModel)
    save_transformers(model, tmp_path / "back", tokenizer)
    again = published_tokenizer(tmp_path / "back")
    assert again.encode_batch(TEXTS) == tokenizer.encode_batch(TEXTS) and again.mask_id == tokenizer.mask_id
    theirs = read(tmp_path / "back", "AutoModelForMaskedLM")
    ids = torch.tensor([[tokenizer.cls_id, *tokenizer.encode("le petit livre"), tokenizer.sep_id]])
    with torch.no_grad():
        torch.testing.assert_close(theirs(ids).logits, model(ids), atol=1e-5, rtol=0)


FOREIGN = {
    "model_type": "evil",
    "tokenizer_class": "Evil",
    "auto_map": {
        "AutoConfig": "evil.Evil",
        "AutoModelForCausalLM": "evil.Evil",
        "AutoTokenizer": ["evil.Evil", "evil.Evil"],
    },
}


def test_code_that_comes_with_a_model_is_never_run_and_standard_input_is_not_read(tmp_path, monkeypatch):
    folder, proof = tmp_path / "evil", tmp_path / "proof"
    folder.mkdir()
    (folder / "evil.py").write_text(f"open({str(proof)!r}, 'w')\nclass Evil: pass\n")
    for name in ("config.json", "tokenizer_config.json"):
        (folder / name).write_text(json.dumps(FOREIGN))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("marks.json", json.dumps({"n_ids": 9, "start_id": None}))
        for file in folder.iterdir():
            out.writestr(file.name, file.read_bytes())
    answers = io.StringIO("y\n" * 9)
    monkeypatch.setattr("sys.stdin", answers)
    for opened in (load, published_tokenizer):
        with pytest.raises(ValueError):
            opened(folder)
    with pytest.raises(ValueError):
        PretrainedTokenizer.from_bytes(archive.getvalue())
    assert not proof.exists() and answers.tell() == 0


def test_names_are_told_from_paths_with_a_slip(tmp_path, monkeypatch, folders):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    assert is_published(folders["gpt2"]) and is_published("camembert-base") and is_published("a/b")
    for slip in ("runs/pretrian", "./pretrain", tmp_path / "nothing", Path("./pretrain"), "a b", "runs"):
        assert not is_published(slip)
        with pytest.raises(ValueError):
            load(slip)
