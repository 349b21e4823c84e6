"""axe-core finds no violation: on a page of each explorer, and on pages of the site, in both themes."""

import json
from pathlib import Path

import pytest

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
SITE = sorted((Path(__file__).resolve().parents[2] / "site").glob("*.html"))
_RUN = """axe.run(document, { resultTypes: ['violations'] }).then(found => JSON.stringify(
  found.violations.map(v => [v.id, v.help,
    v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ' ' + n.failureSummary)])))"""


def violations(page, address, dark):
    """Open a page in a theme and return what axe finds."""
    page.size(1200, 1000, dark=dark)
    page.open(address)
    page.settle()
    page.evaluate(AXE.read_text(encoding="utf-8") + "\n;1")
    return json.loads(page.evaluate(_RUN))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_an_explorer_has_no_violation(case, page, tmp_path, dark):
    address = case.make().save_html(tmp_path / "page.html").as_uri()
    assert violations(page, address, dark) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", SITE, ids=lambda path: path.stem)
def test_a_page_of_the_site_has_no_violation(page, path, dark):
    """Only where `make course` has written the site."""
    assert violations(page, path.as_uri(), dark) == []
