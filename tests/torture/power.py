"""A disk whose power fails: an image with a file system, of which a copy is what the cut leaves."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


class Disk:
    """An ext4 file system in a file, mounted in a folder; Linux, and for root only.

    What programs wrote but did not force to the disk is in the memory of the system, not in the file: a
    copy of the file, made while they are stopped, is what a power cut would have left.

    Parameters
    ----------
    folder : Path
        Where the image and the mount point go.
    megabytes : int
    """

    def __init__(self, folder: Path, megabytes: int = 24) -> None:
        self.image, self.mount_point = folder / "disk.img", folder / "disk"
        self.mount_point.mkdir()
        with self.image.open("wb") as stream:
            stream.truncate(megabytes << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", self.image], check=True)
        self.mount()

    @staticmethod
    def problem() -> str | None:
        """Why there can be no such disk here, or None."""
        if not hasattr(os, "geteuid") or os.geteuid() != 0:
            return "only root may mount"
        missing = [name for name in ("mkfs.ext4", "mount", "umount") if shutil.which(name) is None]
        if missing:
            return f"there is no {missing[0]}"
        return None if Path("/dev/loop-control").exists() else "there are no loop devices"

    def mount(self) -> None:
        """Mount the image; the file system first repairs what a cut has left, from its journal."""
        subprocess.run(["mount", "-o", "loop", self.image, self.mount_point], check=True)

    def unmount(self) -> None:
        """Unmount in an orderly way."""
        subprocess.run(["umount", self.mount_point], check=True)

    def freeze_copy(self) -> Path:
        """What the power cut leaves; to be called while no process computes, followed by `come_back`."""
        return Path(shutil.copyfile(self.image, self.image.with_suffix(".cut")))

    def come_back(self, left: Path) -> None:
        """Continue with what was left; all processes that used the disk must be dead."""
        self.unmount()
        os.replace(left, self.image)
        self.mount()
