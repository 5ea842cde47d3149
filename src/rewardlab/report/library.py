"""Plotly's library in pages: in the page itself, or loaded from one file that lies beside all pages of a folder.

The library is 5 MB, and a page without it some 100 KB. Browsers open pages from a disk, where they check no hash of another file
(Chromium refuses `integrity` there). So what a page loads is allowed by a nonce: the hash of all that the page says. No text within
the page can name it, since that text would have to hold its own hash.
"""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from rewardlab.util.files import write_text

NAME = "plotly.min.js"
ABOVE = 2
"""Folders above that of a page in which the library is looked for: a comparison's run has its report in runs/METHOD-sSEED."""


class Library(NamedTuple):
    """element: the script element of a page.  source: what its content security policy allows for it."""

    element: str
    source: str


def share(folder: Path) -> Path:
    """Write the library into a folder, for the pages in it and below; returns its path."""
    file = folder / NAME
    if not _current(file):
        write_text(file, _text())
    return file


def shared(page: Path) -> Path | None:
    """The library that a page can load: that in its folder, or a little above."""
    return next((folder / NAME for folder in list(page.resolve().parents)[: ABOVE + 1] if _current(folder / NAME)), None)


def library(page: Path | None, file: Path | None, *contents: str) -> Library:
    """The library for a page.  file: from which it is loaded; None: it is in the page.  contents: all that the page says."""
    if file is None or page is None:
        text = _text()
        return Library(f"<script>{text}</script>", f"'sha256-{hashed(text)}'")
    nonce = hashed("".join(contents))
    where = os.path.relpath(file.resolve(), page.resolve().parent).replace(os.sep, "/")
    return Library(f'<script nonce="{nonce}" src="{where}"></script>', f"'nonce-{nonce}'")


def hashed(script: str) -> str:
    """The hash of a script as a content security policy writes it."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _text() -> str:
    # imported here, since plotly takes long to import and only this function needs it
    from plotly.offline import get_plotlyjs

    return get_plotlyjs()


def _current(file: Path) -> bool:
    """Whether a file is the library of this version."""
    return file.is_file() and file.stat().st_size == len(text := _text().encode()) and file.read_bytes() == text
