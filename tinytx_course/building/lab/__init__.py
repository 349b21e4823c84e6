"""JupyterLab as the course opens it: with the contents of the notebook, and no request for news.

`overrides.json` holds defaults; what readers have set themselves is left alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from jupyterlab_server.workspaces_handler import WorkspacesManager

_SIDE = ("filebrowser", "running-sessions", "@jupyterlab/toc:plugin", "extensionmanager.main-view")
_LAYOUT = {
    "left": {"collapsed": False, "visible": True, "current": _SIDE[2], "widgets": _SIDE},
    "relativeSizes": [0.22, 0.78, 0],
}


def lab_arguments(work: Path) -> Sequence[str]:
    """Return what JupyterLab is started with; its layout is remembered in ``.lab`` of this folder."""
    layouts = work / ".lab"
    if not layouts.exists():
        layouts.mkdir()
        first = {"data": {"layout-restorer:data": _LAYOUT}, "metadata": {"id": "default"}}
        WorkspacesManager(str(layouts)).save("default", json.dumps(first))
    return f"--LabApp.app_settings_dir={Path(__file__).parent}", f"--LabApp.workspaces_dir={layouts}"
