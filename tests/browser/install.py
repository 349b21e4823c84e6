"""See to it that a browser and strace are there: ``python -m tests.browser.install``, of ``make proofs``."""

import os
import shutil
import subprocess
import sys

from tinytx_course.machine import find_chromium


def main() -> int:
    """Install both from Debian's packages where that can be done; otherwise say what to install."""
    if find_chromium() and (shutil.which("strace") or sys.platform != "linux"):
        return 0
    if shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "--quiet"], check=True)
        packages = ("chromium", "fonts-dejavu-core", "strace")
        subprocess.run(["apt-get", "install", "--yes", "--no-install-recommends", *packages], check=True)
        return 0 if find_chromium() else 1
    print(
        "The proofs need Chromium or Chrome, and on Linux strace: `sudo apt-get install chromium strace` on "
        "Debian, the packages of these names elsewhere, or set TINYTX_CHROMIUM to the path of a browser.",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
