"""Pictures of every explorer, in both themes and on a phone: ``python -m tests.browser.screenshots``.

They are written to ``figures/explorers/`` and looked at by a person: no test can say whether they are clear.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.browser.cases import CASES, write_page
from tests.browser.chromium import chromium, find_chromium
from tests.browser.lab import ROOT

SIZES = {"light": (1200, False), "dark": (1200, True), "phone": (360, False)}


def main(kinds: list[str]) -> int:
    """Draw the explorers named, or all."""
    executable = find_chromium()
    if executable is None:
        print("needs Chromium: `make test-browser` installs it, or says how", file=sys.stderr)
        return 1
    folder = ROOT / "figures" / "explorers"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, chromium(executable) as browser:
        for kind in kinds or CASES:
            path = write_page(CASES[kind].shown(), Path(place) / f"{kind}.html")
            for name, (width, dark) in SIZES.items():
                with browser.page(width, 900, dark=dark) as page:
                    page.open(path.as_uri())
                    page.wait("document.querySelector('.tx-say')?.textContent")
                    page.settle()
                    page.screenshot(folder / f"{kind}_{name}.png")
            print(f"wrote figures/explorers/{kind}_*.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
