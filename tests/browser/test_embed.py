"""The pages of `examples/embed`: one module, written by the command that they name, under three hosts."""

import functools
import re
import shutil
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

# How MyST shows a module: in a shadow root, with a model that refuses to be saved and listened to no more.
MYST = """<!DOCTYPE html><html lang="en"><title>MyST</title><div id="host"></div><script type="module">
const model = {{
  get: () => undefined, set() {{}}, on() {{}},
  save_changes() {{ throw Error("not implemented"); }}, off() {{ throw Error("not implemented"); }},
}};
const {{ default: widget }} = await import("./{module}");
const shadow = document.querySelector("#host").attachShadow({{ mode: "open" }});
const el = shadow.appendChild(document.createElement("div"));
await widget.initialize?.({{ model }});
await widget.render({{ model, el }});
</script></html>"""
ROOT = "(document.querySelector('#host')?.shadowRoot ?? document)"
SAID = f"{ROOT}.querySelector('.tx-say')?.textContent"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(root, tmp_path_factory):
    """The address of the pages as each host writes them, next to the module."""
    source, folder = root / "examples" / "embed", tmp_path_factory.mktemp("embed")
    names = ("page.html", "page.qmd", "page.md")
    html, quarto, myst = ((source / name).read_text(encoding="utf-8") for name in names)
    (command,) = re.findall(r"^python (-c .*)$", html, re.M)
    python = shutil.which(sys.executable)
    subprocess.run(f"{python} {command}", shell=True, check=True, cwd=folder, env={"PYTHONPATH": str(root)})
    (block,) = re.findall(r"^```\{=html\}\n(.*?)^```$", quarto, re.M | re.S)
    (module,) = re.findall(r"^:::\{anywidget\} (\S+)$", myst, re.M)
    assert f"resources: [{module}]" in quarto
    pages = {"html": html, "quarto": f"<!DOCTYPE html><html lang='en'><title>Quarto</title>{block}</html>"}
    for name, text in {**pages, "myst": MYST.format(module=module)}.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    (folder / "favicon.ico").touch()  # which browsers ask for by themselves
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("host", ["html", "quarto", "myst"])
def test_the_explorer_is_drawn_answers_and_asks_for_nothing_but_its_module(page, site, host):
    page.open(f"{site}/{host}.html")
    page.wait(SAID)
    page.settle()
    before = page.evaluate(SAID)
    style = f"getComputedStyle({ROOT}.querySelector('.tx')).borderRadius"
    assert before.startswith("Moving input ") and page.evaluate(style) == "12px"
    page.evaluate(f"{ROOT}.querySelector('.tx input').click()")
    page.wait(f"{SAID} !== {before!r}")
    pressed = f"{ROOT}.querySelector('.tx-screen').getAttribute('aria-pressed')"
    for state in ("true", "false"):  # the whole screen, and back
        page.evaluate(f"{ROOT}.querySelector('.tx-screen').click()")
        page.wait(f"{pressed} === '{state}'")
    asked = [url.removeprefix(site) for url in page.outside() if not url.endswith("favicon.ico")]
    assert asked == ["/explorer.mjs"]
