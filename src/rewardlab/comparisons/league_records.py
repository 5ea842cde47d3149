"""The records of leagues: NAME.json in results/leagues, which ships with the package. Read without torch.

Runs are appended and none is removed, so that none can be selected. A league may be run world by world: each is decided by itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.errors import RewardlabError
from rewardlab.settings.old_names import with_first_names_in_formula
from rewardlab.util.files import write_json

Record = dict[str, Any]
FOLDER = registry.PACKAGE / "results" / "leagues"
RULES = ("baseline", "members", "outcome", "guard", "steps", "problems", "rate_seeds", "chosen_by", "seeds", "settings")
"""What worlds of one record were run by."""
CHANGED = "it is defined otherwise since this world was run, or is new: run the world again"
"""Why a member is not in a world that was recorded before."""
FULL = 3
"""Newest runs of a record that keep their learning curves."""


def read(name: str, folder: Path = FOLDER) -> Record | None:
    """The newest run of a league's record; None if there is none."""
    runs = history(name, folder)
    return runs[-1] if runs else None


def history(name: str, folder: Path = FOLDER) -> list[Record]:
    path = folder / f"{name}.json"
    if not path.is_file():
        return []
    try:
        return list(json.loads(path.read_text("utf-8"))["runs"])
    except (ValueError, KeyError, TypeError) as e:
        raise RewardlabError(
            f"{path} is not the record of a league ({type(e).__name__}: {e}); restore it from version control"
        ) from e


def recorded(folder: Path = FOLDER) -> dict[str, Record]:
    """The newest run of every league that has been run, by name. Read from files: no league is imported."""
    names = [path.stem for path in sorted(folder.glob("*.json"))] if folder.is_dir() else []
    return {name: found for name in names if (found := read(name, folder)) is not None}


def completed(record: Record, earlier: Record | None, worlds: Mapping[str, Record]) -> Record:
    """A record of some of a league's worlds, with those of an earlier record by the same rules that it lacks.

    worlds: of the whole league, in its order, each with its terms as of today (`Season.terms`): what was run by others is left
    out. Those that neither record has are named under "unrun".
    """
    kept = {world["name"]: {"when": record["when"], **world} for world in record["worlds"]}
    if earlier is not None and _rules(record) == _rules(earlier):
        past = [{"when": earlier["when"], **world} for world in earlier["worlds"] if world["name"] in worlds]
        still = (_of_today(world, worlds[world["name"]], record["baseline"]) for world in past)
        kept = {world["name"]: world for world in still if world is not None} | kept
    found = [kept[name] for name in worlds if name in kept]
    return {**record, "worlds": found, "unrun": [name for name in worlds if name not in kept]}


def _of_today(world: Record, terms: Record, baseline: str) -> Record | None:
    """A world without the members that are defined otherwise by now; None where it was run by other terms, or its baseline is."""
    own = _by_first_names(_terms(world))
    # of an unfit one the baseline alone was run
    members = terms["formulas"] if world.get("fit", True) else own["formulas"]
    now = _by_first_names({**terms, "formulas": {name: terms["formulas"].get(name, "") for name in members}})
    others = {name for name in own["formulas"].keys() | now["formulas"] if own["formulas"].get(name) != now["formulas"].get(name)}
    if baseline in others or {**own, "formulas": {}} != {**now, "formulas": {}}:
        return None
    rows = [row for row in world["rows"] if row["member"] not in others]
    absent = dict(world.get("absent", {})) | dict.fromkeys(sorted(others & terms["formulas"].keys()), CHANGED)
    return {**world, "rows": rows, "absent": absent} if others else world


def _by_first_names(terms: Record) -> Record:
    # names of settings may have changed since a record was written
    return {**terms, "formulas": {name: with_first_names_in_formula(text) for name, text in terms["formulas"].items()}}


def _terms(world: Record) -> Record:
    formulas = {row["member"]: row["formula"] for row in world["rows"]}
    return {"task": world["task"], "steps": world["steps"], "budget": world.get("budget"), "formulas": formulas}


def _rules(record: Record) -> str:
    # as they are read from a file: JSON knows no tuples
    return json.dumps([record[name] for name in RULES], sort_keys=True)


def append(name: str, record: Record, folder: Path = FOLDER) -> Path:
    """Add a run to the record of a league. Of runs that are not among the newest, the learning curves go."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = [*history(name, folder), record]
    for old in runs[:-FULL]:
        for world in old["worlds"]:
            for one in world["rows"]:
                one["curves"] = {}
    path = folder / f"{name}.json"
    write_json(path, {"league": name, "runs": runs})
    return path
