"""How a reward model reads a reply, where not as prompt and reply alone: `Learner.reads`, in a file beside its weights.

The file lies in the folder of the model, so that whatever copies the folder, an export among them, copies it too.
"""

from __future__ import annotations

import json
from pathlib import Path

from rewardlab.util.files import write_json

FILE = "reads.json"


def write_reads(folder: Path, reads: str) -> None:
    """Nothing is written for a model that reads prompt and reply alone."""
    if reads:
        write_json(folder / FILE, {"reads": reads})


def stated_reads(folder: Path) -> str | None:
    """What lies in a model's folder; None where nothing does."""
    file = folder / FILE
    return str(json.loads(file.read_text("utf-8"))["reads"]) if file.is_file() else None
