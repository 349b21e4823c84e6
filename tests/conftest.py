"""Settings every test shares: threads on purpose, equal seeds, a budget of seconds, GPU tests on GPUs."""

import os
import sys

# Before torch is imported anywhere. Tests run side by side, on tensors so small that a second thread costs
# more than it brings; workers inherit what pytest's main process, which reads this file first, sets here.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TINYTX_BUDGET", "smoke")
os.environ["TINYTX_PROGRESS"] = "none"
os.environ.setdefault("MPLBACKEND", "agg")
os.environ.setdefault("TQDM_DISABLE", "1")

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

from tinytx_course.lessons import LESSONS

# Imported by nbformat through jsonschema: it takes a second, and notebooks hold no addresses to check.
sys.modules.setdefault("rfc3987_syntax", None)

# No deadline: a busy machine is no reason for a red test. Derandomised, so that a red test repeats.
settings.register_profile("tinytx", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("tinytx")

ROOT = Path(__file__).resolve().parents[1]


#: A file is run by one process: those that take longest begin, and the short ones fill the rest of the time.
LONG = (
    *("notebooks/test_elsewhere", "test_wheel", "fuzz/", "browser/test_pages", "browser/test_reading"),
    *("browser/test_lab", "course/grading/test_grade", "browser/test_site", "browser/test_playground"),
    *("course/grading/test_running", "course/kit/test_nbgrader", "tinytx_run/test_torture"),
    "course/test_release",
)


def pytest_collection_modifyitems(items):
    """Skip what is marked `gpu` where there is no GPU; begin with notebooks and with what else is long."""
    places = {f"tests/{name}": number for number, name in enumerate(LONG)}

    def place(item):
        long = (number for name, number in places.items() if item.nodeid.startswith(name))
        return "notebook" not in item.keywords, next(long, len(LONG))

    items.sort(key=place)
    for item in items:
        has_device = torch.cuda.is_available() or "TINYTX_TEST_DEVICE" in os.environ
        if item.get_closest_marker("gpu") and not has_device:
            item.add_marker(pytest.mark.skip(reason="needs a GPU"))


@pytest.fixture(autouse=True)
def _same_seed_for_every_test():
    """Make each test independent of those that ran before it."""
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002  (code under test may still read the global state)


@pytest.fixture(scope="session")
def root():
    """The project's root folder."""
    return ROOT


@pytest.fixture(params=LESSONS, ids=lambda lesson: lesson.slug)
def lesson(request):
    """Each lesson: a test that asks for one is run for all."""
    return request.param


@pytest.fixture(scope="session")
def tokenizer():
    """One of a few French words."""
    from tinytx.tokenizer import Tokenizer

    words = ["le", "la", "chat", "chien", "mange", "voit", "un", "une", "belle", "petit"]
    return Tokenizer.train([f"{a} {b}" for a in words for b in words], vocab_size=30)


@pytest.fixture(scope="session")
def whole_kit(tmp_path_factory):
    """The whole kit, with the site and the course: written once, whichever process asks for it first."""
    from filelock import FileLock

    from tinytx_course.kit import write_kit

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each has a folder of its own in that of all
        folder = folder.parent
    with FileLock(folder / "kit.lock"):
        if not (folder / "kit").is_dir():
            write_kit(folder / "kit", start="09:15")
    return (folder / "kit").resolve()


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real text next to the checkout; the test is skipped, saying so, where it is absent."""
    folder = Path(os.environ.get("TINYTX_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("real text is absent: set TINYTX_DATA to the folder that holds cls-books/ and the others")
    return folder
