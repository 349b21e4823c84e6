"""Atomic writes: everything is on the disk before a name changes; what fails leaves the old content."""

import os

import pytest

from tinytx_run import files
from tinytx_run.files import read_file, write_file, write_folder


@pytest.mark.parametrize("killed", [False, True])
def test_a_write_that_fails_leaves_the_old_folder(tmp_path, killed):
    write_folder(tmp_path / "box", {"a": b"old"})
    if killed:  # the write before this one, between its two renames
        os.replace(tmp_path / "box", tmp_path / ".box.tinytx-old")
    with pytest.raises(TypeError):
        write_folder(tmp_path / "box", {"a": b"new", "b": "no bytes"})
    assert read_file(tmp_path / "box" / "a") == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["box"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_file_on_a_full_device_keeps_its_old_content(tmp_path):
    (tmp_path / "table.json").write_bytes(b"old")
    (tmp_path / ".table.json.tinytx-new").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: .*table\.json"):
        write_file(tmp_path / "table.json", b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("table.json", b"old")]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_everything_is_flushed_before_the_rename_and_the_name_before_the_return(tmp_path, monkeypatch):
    """Without this order a power cut may leave a folder with its name and without its content."""
    order = []

    def spy(name, said):
        own = getattr(os, name)
        monkeypatch.setattr(files.os, name, lambda *given: order.append(said(*given)) or own(*given))

    spy("fsync", lambda handle: os.readlink(f"/proc/self/fd/{handle}"))
    spy("replace", lambda source, target: "rename")
    write_folder(tmp_path / "new" / "box", {"a": b"1", "b": b"2"})
    part, parent = f"{tmp_path}/new/.box.tinytx-new", f"{tmp_path}/new"
    files_first = [f"{part}/{name}" for name in ("a", "b", "checksums.json")]
    assert order == [str(tmp_path), *files_first, part, "rename", parent]
    order.clear()
    write_file(tmp_path / "new" / "c", b"3")
    assert order == [f"{parent}/.c.tinytx-new", "rename", parent]
