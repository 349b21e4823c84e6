"""The folder of one training run: its plan, and its latest checkpoints."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse_safetensors
from safetensors.torch import save as safetensors_bytes
from torch import Tensor, nn

from tinytx.hf.convert import from_transformers
from tinytx.hf.folders import is_published
from tinytx.hf.tokenizer import PretrainedTokenizer, published_tokenizer
from tinytx.model.config import TransformerConfig
from tinytx.model.counting import count_parameters
from tinytx.model.encoder_decoder import Translator
from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx.model.transformer import Classifier, LanguageModel
from tinytx.text.corpora import Corpus
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.distributed import Processes
from tinytx.training.settings import TrainingSettings

LEFTOVERS = (".part", ".old", ".gone")  # endings of the names aside that the functions below write under


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object from a file; a missing, cut or foreign file is refused by name."""
    if not file.is_file():
        raise ValueError(f"{file} is missing")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is cut short or no JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{file} must hold a JSON object, got {type(content).__name__}")
    return content


def read_tensors(file: Path) -> dict[str, Tensor]:
    """Tensors from a safetensors file; a missing, cut or foreign file is refused by name."""
    if not file.is_file():
        raise ValueError(f"{file} is missing")
    content = file.read_bytes()
    try:
        tensors = parse_safetensors(content)
    except (SafetensorError, ValueError, KeyError) as error:
        if is_pickle(content):
            raise ValueError(f"{file} is a pickle, which could run any code: it is not opened") from error
        raise ValueError(f"{file} is cut short or no safetensors file: {error}") from error
    # A copy of their own gives the tensors the alignment that torch would have given them.
    return {name: tensor.clone() for name, tensor in tensors.items()}


def is_pickle(content: bytes) -> bool:
    """Whether bytes look like a pickle, bare or in the zip archive that ``torch.save`` writes."""
    if content[8:9] == b"{":  # safetensors, which begins with a length that may look like a pickle
        return False
    return content[:2] == b"PK" or (
        content[:1] == b"\x80" and content[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")
    )


def is_empty_folder(path: Path) -> bool:
    """Whether a folder holds nothing, or nothing but what an interrupted write left."""
    return path.is_dir() and all(map(is_leftover, path.iterdir()))


def is_leftover(path: Path) -> bool:
    """Whether a path is what an interrupted write left: a hidden name that nothing ever reads."""
    return path.name.startswith(".") and path.name.endswith(LEFTOVERS)


def clear_leftovers(folder: Path) -> None:
    """Remove what interrupted writes left in a folder."""
    for path in filter(is_leftover, folder.iterdir()):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def json_bytes(content: Mapping[str, Any]) -> bytes:
    """A mapping as readable JSON; equal content gives equal bytes."""
    return (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def as_json(content: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping as it comes back from a JSON file, tuples as lists."""
    return json.loads(json_bytes(content))


def make_folder(path: Path) -> None:
    """Make a folder and those above it, so that a power cut leaves them there."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        _sync_folder(path.parent)


def write_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder that appears, or changes, in one step or not at all."""
    make_folder(target.parent)
    aside = target.parent / f".{target.name}.part"
    old = target.parent / f".{target.name}.old"
    if old.exists() and not target.exists():  # stopped between the two renames below
        os.replace(old, target)
    for leftover in (aside, old):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        aside.mkdir()
        for name, content in files.items():
            _write_through(aside / name, content)
        _sync_folder(aside)
        if target.exists():
            os.replace(target, old)
        os.replace(aside, target)
        _sync_folder(target.parent)
    finally:
        if old.exists() and not target.exists():
            os.replace(old, target)
        for leftover in (aside, old):
            shutil.rmtree(leftover, ignore_errors=True)


def write_file(target: Path, content: bytes) -> None:
    """Write a file that appears, or changes, in one step or not at all."""
    make_folder(target.parent)
    aside = target.with_name(f".{target.name}.part")
    try:
        _write_through(aside, content)
        os.replace(aside, target)
    finally:
        aside.unlink(missing_ok=True)
    _sync_folder(target.parent)


def remove_folder(target: Path) -> None:
    """Remove a folder that nobody may find half removed."""
    gone = target.parent / f".{target.name}.gone"
    shutil.rmtree(gone, ignore_errors=True)
    os.replace(target, gone)
    _sync_folder(target.parent)
    shutil.rmtree(gone, ignore_errors=True)


def _write_through(file: Path, content: bytes) -> None:
    try:
        with file.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:  # a full disk does not say by itself which file it was
        raise OSError(error.errno, error.strerror, str(file)) from error


def _sync_folder(folder: Path) -> None:
    # A rename survives a power cut only once its folder is on disk; Windows has no such call.
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


SEAL_FILE = "seal.json"


def sealed(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files, and one more that holds the size in bytes and the SHA-256 sum of each."""
    seal = {name: f"{len(content)} {hashlib.sha256(content).hexdigest()}" for name, content in files.items()}
    return {**files, SEAL_FILE: json_bytes(seal)}


def check_seal(folder: Path, *names: str) -> None:
    """Refuse a folder with a file that is not what was saved.

    Parameters
    ----------
    folder : Path
        One without a seal passes: whoever changes a file by hand removes the seal.
    *names : str
        Files to look at, by default all that are sealed.

    Raises
    ------
    ValueError
        Names the first file that is missing, cut short or different.
    """
    if not (folder / SEAL_FILE).exists():
        return
    for name, wanted in read_json(folder / SEAL_FILE).items():
        if not names or name in names:
            _check_file(folder / name, str(wanted))


def _check_file(file: Path, wanted: str) -> None:
    if not file.is_file():
        raise ValueError(f"{file} is missing")
    with file.open("rb") as stream:
        start = stream.read(9)
        stream.seek(0)
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        size = stream.tell()
    if wanted == f"{size} {digest}":
        return
    if is_pickle(start):
        raise ValueError(f"{file} is a pickle, which could run any code: it is not opened")
    n_bytes = wanted.partition(" ")[0]
    if n_bytes.isdecimal() and size < int(n_bytes):
        raise ValueError(f"{file} is cut short: it holds {size:,} of {int(n_bytes):,} bytes")
    raise ValueError(f"{file} is damaged or of another checkpoint: its checksum is not that in {SEAL_FILE}")


try:
    import fcntl
except ImportError:  # Windows, where folders cannot be locked
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for this process; nothing is written, so nothing stale can stay behind.

    Raises
    ------
    ValueError
        While another process, or another thread of this one, holds it.

    Notes
    -----
    Some network drives know no locks, and Windows none of folders: there it is up to you.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        _lock(handle, folder)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ValueError(
            f"one process at a time trains in a folder, got {folder}, where another is at work"
        ) from error
    except OSError:
        return  # a file system without locks


def moments(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What the optimizer remembers of each weight, and the random states, by name."""
    tensors = {"random/cpu": torch.get_rng_state()}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state[parameter].items():
            tensors[f"optimizer/{key}/{name}"] = value.detach().cpu().contiguous()
        if parameter.device.type == "cuda":
            tensors["random/cuda"] = torch.cuda.get_rng_state(parameter.device)
    return tensors


def restore_moments(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Give them back.

    Raises
    ------
    KeyError
        When those of a parameter are not among them.
    """
    by_name: dict[str, dict[str, Tensor]] = {}
    for path, tensor in tensors.items():
        kind, _, rest = path.partition("/")
        if kind == "optimizer":
            key, _, name = rest.partition("/")
            by_name.setdefault(name, {})[key] = tensor
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        optimizer.state[parameter] = {
            key: tensor.to(parameter.device) for key, tensor in by_name[name].items()
        }
        if parameter.device.type == "cuda" and "random/cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random/cuda"], parameter.device)
    torch.set_rng_state(tensors["random/cpu"])


FORMAT = "tinytx checkpoint"
VERSION = 1
MODEL_FILE, WEIGHTS_FILE, TOKENIZER_FILE = "model.json", "model.safetensors", "tokenizer.model"
STATE_FILE, MOMENTS_FILE = "training.json", "training.safetensors"  # what only going on with a run needs
STEP_PREFIX = "step-"
_TOKENIZER_FILES: dict[type[Tokenizer], str] = {
    Tokenizer: TOKENIZER_FILE,
    PretrainedTokenizer: "tokenizer.zip",
}


def save(model: nn.Module, path: str | os.PathLike[str], tokenizer: Tokenizer | None = None) -> Path:
    """Write a model, and its tokenizer, as a checkpoint folder.

    The folder appears under its name only when every byte is on disk; a checkpoint that stood there
    before is replaced in the same way.

    Parameters
    ----------
    model : LanguageModel, MaskedLanguageModel, Classifier or Translator
    path : path
        The folder. It may be missing, empty, or a checkpoint.
    tokenizer : Tokenizer, optional
        Needed to read or write text with the model later.

    Returns
    -------
    Path
        The folder.
    """
    target = Path(path)
    if target.exists() and not (target / MODEL_FILE).is_file() and not is_empty_folder(target):
        raise ValueError(
            f"a checkpoint goes into a new or empty folder, got {target}, which holds other files"
        )
    write_folder(target, sealed(model_files(model, tokenizer)))
    return target


Model = LanguageModel | MaskedLanguageModel | Classifier | Translator


def load(path: str | os.PathLike[str], device: str | torch.device = "cpu") -> Model:
    """Read a model that `save` or a training run wrote.

    Parameters
    ----------
    path : path
        A checkpoint folder, a run folder, of which the newest checkpoint is taken, a folder of the package
        `transformers`, or the name of a published model, see `tinytx.hf.convert.from_transformers`.
    device : str or torch.device

    Returns
    -------
    LanguageModel, MaskedLanguageModel, Classifier or Translator
        In evaluation mode.

    Raises
    ------
    ValueError
        When there is no checkpoint, a file is missing, cut short, changed since it was saved or a pickle, or
        the weights belong to another model; the message names the file and the cause.
    """
    if is_published(path):
        return from_transformers(path).to(device)
    folder = find_checkpoint(path)
    check_seal(folder, MODEL_FILE, WEIGHTS_FILE)
    model = _build(_read_description(folder), folder / MODEL_FILE)
    load_weights(model, folder)
    return model.to(device).eval()


def load_tokenizer(path: str | os.PathLike[str]) -> Tokenizer:
    """Read the tokenizer of what `load` reads."""
    if is_published(path):
        return published_tokenizer(path)
    folder = find_checkpoint(path)
    for kind, name in _TOKENIZER_FILES.items():
        if (folder / name).is_file():
            check_seal(folder, name)
            return kind.load(folder / name)
    raise ValueError(f"{folder / TOKENIZER_FILE} is missing: this checkpoint was saved without its tokenizer")


def find_checkpoint(path: str | os.PathLike[str]) -> Path:
    """The checkpoint folder that a path means: itself, or the newest one in a run folder."""
    folder = Path(path)
    if folder.is_file():
        raise ValueError(f"a checkpoint is a folder with {MODEL_FILE} in it, got {_what_is(folder)} {folder}")
    if not folder.exists():
        raise ValueError(f"a checkpoint folder must exist, got {folder}, which does not")
    if (folder / MODEL_FILE).is_file():
        return folder
    if steps := step_folders(folder):
        return steps[-1]
    raise ValueError(f"a checkpoint folder holds {MODEL_FILE}, got {folder}, which holds none")


def step_folders(folder: Path) -> list[Path]:
    """The checkpoints of a run folder, oldest first."""
    found = [path for path in folder.glob(f"{STEP_PREFIX}*") if path.name[len(STEP_PREFIX) :].isdigit()]
    return sorted(found, key=step_of)


def step_of(folder: Path) -> int:
    """The step that a checkpoint folder was written after."""
    return int(folder.name[len(STEP_PREFIX) :])


def model_files(model: nn.Module, tokenizer: Tokenizer | None) -> dict[str, bytes]:
    """The files of a checkpoint that hold model and tokenizer; equal models give equal bytes."""
    state = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    # Tied weights are one tensor under two names: safetensors holds it once.
    first_name: dict[int, str] = {}
    tied = {}
    for name, tensor in model.state_dict().items():
        owner = first_name.setdefault(tensor.data_ptr(), name)
        if owner != name:
            tied[name] = owner
    weights = {name: tensor.contiguous() for name, tensor in state.items() if name not in tied}
    description = {"format": FORMAT, "version": VERSION, **_describe(model), "tied": tied}
    files = {MODEL_FILE: json_bytes(description), WEIGHTS_FILE: safetensors_bytes(weights)}
    if tokenizer is not None:
        files[_TOKENIZER_FILES[type(tokenizer)]] = tokenizer.to_bytes()
    return files


def load_weights(model: nn.Module, folder: Path) -> None:
    """Fill a model with the weights of a checkpoint; every name and shape must fit."""
    description = _read_description(folder)
    weights = read_tensors(folder / WEIGHTS_FILE)
    for name, owner in description.get("tied", {}).items():
        if owner in weights:
            weights[name] = weights[owner]
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    given = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for name in sorted(wanted.keys() | given.keys()):
        if wanted.get(name) != given.get(name):
            raise ValueError(
                f"{folder / WEIGHTS_FILE} holds the weights of another model: "
                f"{name} should be {_shape(wanted.get(name))}, got {_shape(given.get(name))}"
            )
    model.load_state_dict(weights)


def _shape(shape: tuple[int, ...] | None) -> str:
    return "absent" if shape is None else f"of shape {shape}"


def _describe(model: nn.Module) -> dict[str, Any]:
    if isinstance(model, LanguageModel):
        return {"kind": "language_model", "config": model.config.to_dict()}
    if isinstance(model, MaskedLanguageModel):
        return {
            "kind": "masked_language_model",
            "config": model.config.to_dict(),
            "transform": model.transform,
            "next_sentence": model.next_head is not None,
        }
    if isinstance(model, Classifier):
        return {
            "kind": "classifier",
            "config": model.config.to_dict(),
            "n_classes": model.head.out_features,
            "pooling": model.pooling,
            "dropout": model.dropout.p,
        }
    if isinstance(model, Translator):
        return {"kind": "translator", "config": model.config.to_dict()}
    kinds = "a LanguageModel, a MaskedLanguageModel, a Classifier or a Translator"
    raise TypeError(f"a checkpoint holds {kinds}, got {type(model).__name__}")


def _build(description: Mapping[str, Any], file: Path) -> Model:
    try:
        config = TransformerConfig.from_dict(dict(description["config"]))
        if description["kind"] == "language_model":
            return LanguageModel(config)
        if description["kind"] == "masked_language_model":
            return MaskedLanguageModel(
                config, transform=description["transform"], next_sentence=description["next_sentence"]
            )
        if description["kind"] == "translator":
            return Translator(config)
        if description["kind"] == "classifier":
            return Classifier(
                config,
                n_classes=description["n_classes"],
                pooling=description["pooling"],
                dropout=description["dropout"],
            )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} does not describe a model: {error}") from error
    raise ValueError(f"{file} describes a model of unknown kind, got {description['kind']!r}")


def _read_description(folder: Path) -> dict[str, Any]:
    description = read_json(folder / MODEL_FILE)
    if description.get("format") != FORMAT or "kind" not in description:
        raise ValueError(f"{folder / MODEL_FILE} is no description of a tinytx model")
    if description.get("version") != VERSION:
        raise ValueError(
            f"{folder / MODEL_FILE} has version {description.get('version')}, expected {VERSION}"
        )
    return description


def _what_is(file: Path) -> str:
    with file.open("rb") as stream:
        return "a pickle:" if is_pickle(stream.read(4)) else "the file"


PLAN_FILE = "plan.json"


class ForeignCheckpoint(ValueError):
    """A checkpoint that is whole, but of another run."""


def stored_plan(out: str | os.PathLike[str] | None, resume: bool) -> dict[str, Any] | None:
    """The plan of the run in a folder, or None where a run may begin afresh.

    Parameters
    ----------
    out : path or None
        The run folder; it may be missing. None writes nothing.
    resume : bool
        Whether going on with a run is wanted.

    Raises
    ------
    ValueError
        When the folder holds a run and ``resume`` is False, or holds something else: nothing is ever
        written over.
    """
    if out is None:
        if resume:
            raise ValueError("resume needs out, the folder of the run to go on with, got None")
        return None
    folder = Path(out)
    if not folder.exists() or is_empty_folder(folder):
        return None
    if not folder.is_dir():
        raise ValueError(f"a run goes into a folder, got the file {folder}")
    if not (folder / PLAN_FILE).is_file() and not step_folders(folder):
        raise ValueError(f"a run goes into a new or empty folder, got {folder}, which holds other files")
    if not resume:
        raise ValueError(f"{folder} already holds a run: go on with --resume, or choose another folder")
    return _read_plan(folder)


def _read_plan(folder: Path) -> dict[str, Any]:
    """The plan of a run; a damaged one is read from the newest checkpoint that holds a copy."""
    try:
        return read_json(folder / PLAN_FILE)
    except ValueError:
        for checkpoint in reversed(step_folders(folder)):
            with contextlib.suppress(ValueError):
                check_seal(checkpoint)
                if copy := read_json(checkpoint / STATE_FILE).get("plan"):
                    return copy
        raise


def read_state(checkpoint: Path, plan: Mapping[str, Any]) -> dict[str, Any]:
    """What training was doing when it wrote a checkpoint, as far as JSON holds it.

    Parameters
    ----------
    checkpoint : Path
        One of a run's folders; each of its files is compared with the seal.
    plan : mapping
        Of the run.

    Raises
    ------
    ForeignCheckpoint
        When it was written by a run with another plan, or after another step than its name says.
    ValueError
        When a file is damaged; it is named.
    """
    check_seal(checkpoint)
    training = read_json(checkpoint / STATE_FILE)
    state = training.get("state")
    if not isinstance(state, dict) or "step" not in state:
        raise ValueError(f"{checkpoint / STATE_FILE} does not say where training stood")
    if state["step"] != step_of(checkpoint):
        raise ForeignCheckpoint(f"{checkpoint} was written after step {state['step']}")
    if as_json(training.get("plan", plan)) != as_json(plan):
        raise ForeignCheckpoint(f"{checkpoint} was written by a run with another plan")
    if "plan" in training and not (checkpoint / SEAL_FILE).exists():  # older ones have neither
        raise ValueError(f"{checkpoint / SEAL_FILE} is missing")
    return training


def check_request(stored: Mapping[str, Any], request: Mapping[str, Any]) -> None:
    """Refuse to go on with a run that was asked for otherwise; names what differs."""
    before = stored.get("request", {})
    request = as_json(request)  # as the stored one has been, which turns tuples into lists
    for key in sorted({*before, *request}):
        if before.get(key) != request.get(key):
            what = "the training texts" if key == "texts" else key
            raise ValueError(
                f"a run goes on as it began, got another {what}: "
                f"it began with {before.get(key)}, now {request.get(key)}"
            )


def fingerprint(corpus: Corpus) -> str:
    """A short name for the training texts and labels, which changes whenever any of them does."""
    digest = hashlib.sha256()
    for text in corpus.train.texts:
        digest.update(text.encode() + b"\n")
    digest.update(repr(corpus.train.labels).encode())
    return digest.hexdigest()[:16]


def stored_tokenizer(out: str | os.PathLike[str], plan: Mapping[str, Any]) -> Tokenizer | None:
    """The tokenizer of a run's newest checkpoint that is whole and its own, or None."""
    for folder in reversed(step_folders(Path(out))):
        with contextlib.suppress(ValueError):
            read_state(folder, plan)
            return load_tokenizer(folder)
    return None


def describe(
    model: LanguageModel | MaskedLanguageModel | Classifier | Translator, settings: TrainingSettings
) -> str:
    """One line for a person who waits: size of the model and amount of training."""
    config = model.config
    return (
        f"{config.n_layers} layers of width {config.d_model}, {config.vocab_size:,} pieces, "
        f"{count_parameters(model):,} parameters; {settings.n_steps:,} steps of up to "
        f"{settings.tokens_per_batch:,} tokens, {settings.precision}"
    )


KEPT = 2


class RunFolder:
    """Checkpoints of one run: ``step-000500/`` and the like, of which the latest two are kept.

    Parameters
    ----------
    path : path
        Made when training starts.
    plan : dict
        Everything that was asked for and decided, as JSON can hold it. Stored before the first step, so that
        a resumed run follows the same plan.
    tokenizer : Tokenizer, optional
        Saved with every checkpoint.
    report : callable
        Told, in one line, when a damaged checkpoint is passed over.

    Attributes
    ----------
    latest : Path or None
        The checkpoint last saved, or gone on from.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        plan: dict[str, Any],
        tokenizer: Tokenizer | None = None,
        report: Callable[[str], None] = print,
    ) -> None:
        self.path = Path(path)
        self.plan = as_json(plan)
        self.latest: Path | None = None
        self._tokenizer = tokenizer
        self._report = report

    @classmethod
    @contextlib.contextmanager
    def opened(
        cls,
        path: str | os.PathLike[str] | None,
        plan: dict[str, Any],
        tokenizer: Tokenizer | None = None,
        report: Callable[[str], None] = print,
    ) -> Iterator[RunFolder | None]:
        """A run folder, held for this process alone; None for no path.

        It is gone again if training fails before its first checkpoint.
        """
        if path is None:
            yield None
            return
        run = cls(path, plan, tokenizer, report)
        make_folder(run.path)
        with locked(run.path):
            run.start()
            try:
                yield run
            except BaseException:
                run.discard_if_fresh()
                raise

    def start(self) -> None:
        """Write the plan, unless it is there, and clear away what an interrupted write left."""
        make_folder(self.path)
        clear_leftovers(self.path)
        file = self.path / PLAN_FILE
        if file.exists():
            try:
                stored = read_json(file)
            except ValueError as error:
                self._report(f"{error}; written anew from a checkpoint")
            else:
                check_request(stored, self.plan.get("request", {}))
                self.plan = stored
                return
        write_file(file, json_bytes(self.plan))

    def discard_if_fresh(self) -> None:
        """Remove a folder that got no further than its plan."""
        if {path.name for path in self.path.glob("*")} <= {PLAN_FILE}:
            shutil.rmtree(self.path, ignore_errors=True)

    @property
    def call(self) -> str:
        """How to go on from Python."""
        request = self.plan.get("request", {})
        name = "train_translator" if request.get("objective") == "translation" else request.get("command")
        return "the same call" if name is None else f"{name}(..., out={str(self.path)!r}, resume=True)"

    def save(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        settings: TrainingSettings,
        state: dict[str, Any],
    ) -> None:
        """Write a checkpoint and remove those that are no longer needed.

        Raises
        ------
        OSError
            When there is no room, for one; says which checkpoint stays usable.
        """
        training = {"plan": self.plan, "settings": settings.to_dict(), "state": state, **_computed_on(model)}
        files = model_files(model, self._tokenizer)
        files[STATE_FILE] = json_bytes(training)
        files[MOMENTS_FILE] = safetensors_bytes(moments(model, optimizer))
        folder = self.path / f"{STEP_PREFIX}{state['step']:06d}"
        try:
            write_folder(folder, sealed(files))
        except OSError as error:
            kept = "nothing was saved before"
            if self.latest is not None:
                kept = f"{self.latest} stays usable, and resuming goes on from there"
            what = f"{error.strerror}, so step {state['step']} was not saved ({kept})"
            raise OSError(error.errno, what, error.filename) from error
        self.latest = folder
        self._prune(settings, state["step"])
        for refused in step_folders(self.path):
            if step_of(refused) > state["step"]:
                remove_folder(refused)

    def _prune(self, settings: TrainingSettings, step: int) -> None:
        folders = [folder for folder in step_folders(self.path) if step_of(folder) <= step]
        # Those written by hand (Ctrl-C) go first, so that an interrupted run ends with the same folders.
        scheduled = [folder for folder in folders if settings.is_scheduled(step_of(folder))]
        kept = {folders[-1], *scheduled[-KEPT:]}
        for folder in folders:
            if folder not in kept:
                remove_folder(folder)

    def restore(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, settings: TrainingSettings
    ) -> dict[str, Any] | None:
        """Bring model, optimizer and random state back to the newest checkpoint that can be gone on with.

        One of another run, found on the way, is put aside under a name of its own; a damaged one stays until
        the next is saved.

        Returns
        -------
        dict or None
            The state that was saved with it; None where no checkpoint has been written yet.

        Raises
        ------
        ValueError
            When there are checkpoints, but none can be gone on with; says why.
        """
        refused: dict[Path, ValueError] = {}
        for folder in reversed(step_folders(self.path)):
            try:
                training = self._restore_from(folder, model, optimizer, settings)
            except ValueError as error:
                refused[folder] = error
                continue
            for other, reason in refused.items():
                self._report(f"{reason}; going on from {folder.name}, the checkpoint before it")
                if isinstance(reason, ForeignCheckpoint):
                    _put_aside(other)
            self.latest = folder
            self._prune(settings, step_of(folder))
            self._compare(training, model, settings)
            return training["state"]
        if refused:
            reasons = "; ".join(map(str, refused.values()))
            raise ValueError(f"{reasons}; there is no checkpoint before it to go on from")
        return None

    def _restore_from(
        self, folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, settings: TrainingSettings
    ) -> dict[str, Any]:
        training = read_state(folder, self.plan)
        if training.get("settings") != settings.to_dict():
            raise ForeignCheckpoint(
                f"{folder / STATE_FILE} was written with other settings: it cannot be gone on with"
            )
        tensors = read_tensors(folder / MOMENTS_FILE)
        load_weights(model, folder)
        try:
            restore_moments(model, optimizer, tensors)
        except KeyError as error:
            raise ValueError(f"{folder / MOMENTS_FILE} belongs to another model: it lacks {error}") from error
        return training

    def _compare(self, training: dict[str, Any], model: nn.Module, settings: TrainingSettings) -> None:
        """Say so where the rest will be computed otherwise than the beginning was."""
        changes = [
            f"{name} {training[name]} before, {now} now"
            for name, now in _computed_on(model).items()
            if training.get(name, now) != now
        ]
        if changes and training["state"]["step"] < settings.n_steps:
            self._report(f"{'; '.join(changes)}: the last bits may differ from those of a run in one piece")


def _computed_on(model: nn.Module) -> dict[str, Any]:
    """What, beside plan and data, decides the last bits of a result."""
    return {
        "device": next(model.parameters()).device.type,
        "processes": Processes.current().n,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def _put_aside(folder: Path) -> None:
    aside = folder.with_name(f"other-{folder.name}")
    while aside.exists():
        aside = aside.with_name(f"other-{aside.name}")
    os.replace(folder, aside)
