"""Install two browsers, strace and bwrap where they are missing: ``python -m tests.browser.install``."""

import os
import shutil
import subprocess
import sys

from tests.browser.firefox import find_firefox
from tinytx_course.machine import find_chromium

PACKAGES = ("chromium", "firefox-esr", "fonts-dejavu-core", "strace", "bubblewrap")


def main() -> int:
    """Install them from Debian's packages where that can be done; otherwise say what to install."""
    if not _missing():
        return 0
    if shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "--quiet"], check=True)
        subprocess.run(["apt-get", "install", "--yes", "--no-install-recommends", *PACKAGES], check=True)
    else:
        print(
            f"Missing: {', '.join(_missing())}. On Debian `sudo apt-get install {' '.join(PACKAGES)}`; "
            "elsewhere the packages of these names. TINYTX_CHROMIUM may name a Chromium or Chrome. "
            "Without Firefox or bubblewrap their tests are skipped.",
            file=sys.stderr,
        )
    return 1 if {"chromium", "strace"} & set(_missing()) else 0


def _missing() -> list[str]:
    found = {"chromium": find_chromium(), "firefox-esr": find_firefox()}
    if sys.platform == "linux":
        found |= {"strace": shutil.which("strace"), "bubblewrap": shutil.which("bwrap")}
    return [name for name, path in found.items() if not path]


if __name__ == "__main__":
    raise SystemExit(main())
