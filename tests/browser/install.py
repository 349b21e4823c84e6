"""See to it that there is a browser: ``python -m tests.browser.install``, part of ``make test-browser``."""

import os
import shutil
import subprocess
import sys

from tests.browser.chromium import find_chromium


def main() -> int:
    """Install Chromium from Debian's packages where that can be done; otherwise say what to install."""
    if find_chromium():
        return 0
    if shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "--quiet"], check=True)
        command = ["apt-get", "install", "--yes", "--no-install-recommends", "chromium", "fonts-dejavu-core"]
        subprocess.run(command, check=True)
        return 0 if find_chromium() else 1
    print(
        "The browser tests need Chromium or Chrome: `sudo apt-get install chromium` on Debian, the package "
        "of that name elsewhere, or set TINYTX_CHROMIUM to the path of one you have.",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
