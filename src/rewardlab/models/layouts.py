"""How the input of a reward model or a judge is written, as the recipe of its run says, or the config.json of an export."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rewardlab.models.checkpoint import Checkpoint
from rewardlab.policies.ends import SCORED_AT
from rewardlab.runs.named import config_of_run

KEY, SETTING = "rewardlab", "layout"


def layout_of(found: Checkpoint) -> str:
    """The text with {prompt} and {reference} that stands before each reply; "" for a model that reads the prompt alone."""
    told = found.config.get(KEY)
    if isinstance(told, Mapping):
        return str(told.get(SETTING, ""))
    return layout_of_run(found.folder.parent)


def layout_of_run(folder: Path) -> str:
    """The setting `layout` of the rollout by which the run in this folder learnt; "" where it has none, and for what is no run."""
    file = folder / "config.json"
    recipe = json.loads(file.read_text("utf-8")).get("recipe") if file.is_file() else None
    return next(_layouts((recipe or {}).get("rollout")), "")


def note_layout(exported: Path, layout: str, scored_at: str = SCORED_AT) -> None:
    """Write into the config.json of an exported reward model what stands before each reply, and where the score is read."""
    file = exported / "config.json"
    config = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps(config | {KEY: {SETTING: layout, "scored_at": scored_at}}, indent=2), "utf-8")


def judge_form_of_run(model: str) -> tuple[str, str] | None:
    """The form in which the judge of this run was asked, and its kind (`judges/named.py`); None for what is no run of a judge."""
    document = config_of_run(model) or {}
    recipe = document.get("recipe") or {}
    asked = (settings for name in ("rollout", "measure") for settings in _settings(recipe.get(name)))
    return next(((s["form"], str(s.get("kind") or "pairwise")) for s in asked if isinstance(s.get("form"), str)), None)


def _layouts(part: Any) -> Iterator[str]:
    """The settings of that name in a rollout, as it is saved, and in what it wraps."""
    return (settings[SETTING] for settings in _settings(part) if isinstance(settings.get(SETTING), str))


def _settings(part: Any) -> Iterator[Mapping[str, Any]]:
    """The settings of a part as it is saved, and of the parts in it."""
    settings = part.get("with", {}) if isinstance(part, Mapping) else {}
    if settings:
        yield settings
    for value in settings.values():
        yield from _settings(value)
