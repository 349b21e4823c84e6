"""Lesson 16, real models: published models where they lie, and three ways to fine-tune a body."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Literal

import torch

from tinytx.classifier import Classifier
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.generate import Sampling, generate
from tinytx.loop import train
from tinytx.lora import add_lora
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.settings import TrainingSettings
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel, Transformer
from tinytx.translate import translate
from tinytx_run.corpora import Split
from tinytx_run.download import data_folder
from tinytx_run.finetune import class_objective, epoch_ends
from tinytx_run.recipes import plan_finetuning, resize
from tinytx_run.training import seeded

Way = Literal["frozen", "lora", "full"]
WAYS: tuple[Way, ...] = ("frozen", "lora", "full")
RANK, ALPHA = 4, 8.0


def published_source(name: str) -> str | None:
    """Where the weights of a published model can be read, or None; nothing is downloaded unless allowed.

    Looked for in this order: the folder ``models/NAME`` of the data (see `tinytx_run.download.data_folder`),
    the cache of Hugging Face, and, only where the environment says ``HF_HUB_OFFLINE=0``, the network.

    Parameters
    ----------
    name : str
        Such as "gpt2" or "Helsinki-NLP/opus-mt-en-fr".

    Returns
    -------
    str or None
        A folder, or the name itself where the network is allowed.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    folder = data_folder() / "models" / name
    if (folder / "config.json").is_file():
        return str(folder)
    try:
        cached = Path(snapshot_download(name, local_files_only=True))
    except LocalEntryNotFoundError:
        cached = None
    weights = [] if cached is None else [*cached.glob("*.safetensors"), *cached.glob("*.bin")]
    if weights:
        return str(cached)
    return name if os.environ.get("HF_HUB_OFFLINE") == "0" else None


def answer(model: LanguageModel | MaskedLanguageModel | Translator, tokenizer: Tokenizer, prompt: str) -> str:
    """What a model was trained for: to continue a prompt, to fill its blank, ___, or to translate it."""
    if isinstance(model, LanguageModel):
        return str(generate(model, tokenizer, prompt, Sampling(max_new_tokens=12, top_k=1)))
    if isinstance(model, Translator):
        return str(translate(model, tokenizer, [prompt])[0])
    before, after = (tokenizer.encode(part.strip()) for part in prompt.split("___"))
    (begin,), (end,) = tokenizer.source_frame
    ids = torch.tensor([[begin, *before, tokenizer.mask_id, *after, end]])
    with torch.no_grad():
        best = model(ids)[0, 1 + len(before)].topk(3).indices.tolist()  # (V,) at the mask
    return ", ".join(tokenizer.decode([one]).strip() for one in best)


def random_body(config: TransformerConfig, seed: int) -> Transformer:
    """A body of the same shape with the weights that a new model starts from."""
    return seeded(lambda: Transformer(config), 1_000 + seed)


def adapted(body: Transformer, way: Way, *, seed: int) -> Classifier:
    """A new head on a copy of a body: only the head is trained, or LoRA on queries and values too, or all."""
    config = body.config.replace(dropout=plan_finetuning("world", "laptop").dropout)

    def make() -> Classifier:
        model = Classifier(config, n_classes=2)
        model.body.load_state_dict(copy.deepcopy(body.state_dict()))
        model.body.requires_grad_(way == "full")
        if way == "lora":
            add_lora(model.body, RANK, ALPHA)
        return model

    return seeded(make, seed)


def fine_tune(
    model: Classifier, tokenizer: Tokenizer, learned: Split, *, lr: float, n_epochs: int, seed: int
) -> None:
    """Train on labelled texts what requires a gradient, with the loop of lesson 09."""
    learning, _ = class_objective(tokenizer, learned, model.config)
    settings = TrainingSettings(n_steps=1, lr=lr, tokens_per_batch=512, precision="fp32", seed=seed)
    settings = resize(settings, epoch_ends(learning, settings, n_epochs)[-1])
    train(model, learning, settings, progress=False)
