"""Files of a run outside rewardlab: its rows, reward functions, environments, tools, corpora, and the user's methods.

Their hashes are in config.json, so that a run is not resumed with rows, a reward, a tool or a corpus that are others by now.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rewardlab.core import Part, Recipe
from rewardlab.core.part import Expression, saved_name
from rewardlab.data.corpus import file_of

PACKAGE = Path(__file__).parents[1]


def fingerprints(recipe: Recipe, source: Mapping[str, Any] | None = None) -> dict[str, dict[str, str]]:
    """Path to {"sha256", "modified"} of every file outside rewardlab that the recipe refers to, or the source of its task."""
    rows = [source["name"], source["options"].get("test")] if source else []
    of_rows = {Path(name).resolve() for name in rows if isinstance(name, str) and Path(name).is_file()}
    return {str(path): fingerprint(path) for path in sorted({*_files(recipe), *of_rows})}


def fingerprint(path: Path) -> dict[str, str]:
    """A file's hash, and when it was modified."""
    modified = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(path.stat().st_mtime))
    # in pieces, since a corpus may be larger than the memory
    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "modified": modified}


def changes(recorded: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Path to what is different now, in words, of the files that are not what they were."""
    found = {}
    for path, then in recorded.items():
        if not Path(path).is_file():
            found[path] = "it is gone"
        elif (now := fingerprint(Path(path)))["sha256"] != then["sha256"]:
            found[path] = f"modified {now['modified']}, sha256 {now['sha256'][:12]} instead of {then['sha256'][:12]}"
    return found


def _files(recipe: Recipe) -> Iterator[Path]:
    for part in _all_parts(recipe):
        yield from (file.resolve() for file in _named(part.settings) if file.is_file())
        # a part of a method's own file is saved as `slot:method/part`; one of the package cannot change without its version
        if not isinstance(part, Expression) and "/" in saved_name(part.slot, part.function):
            file = Path(inspect.getfile(part.function)).resolve()
            if not file.is_relative_to(PACKAGE):
                yield file


def _named(settings: Mapping[str, Any]) -> Iterator[Path]:
    """What may be files in the settings of a part: `path`, of from_file; `tools`, FILE.py:NAME; `corpus`; `graph`."""
    tools, corpus = map(settings.get, ("tools", "corpus"))
    yield from (Path(file) for name in ("path", "graph") if isinstance(file := settings.get(name), str))
    yield from (Path(re.sub(r":\w+$", "", str(tool))) for tool in (tools if isinstance(tools, tuple) else ()))
    if isinstance(corpus, str) and corpus:
        yield file_of(corpus)


def _all_parts(recipe: Recipe) -> Iterator[Part]:
    """Every part of a recipe at every depth, those of its second learners too."""
    for part in recipe.parts().values():
        yield from part.walk()
    for learner in recipe.also:
        if learner.problems is not None:
            yield from learner.problems.walk()
        yield from _all_parts(learner.recipe)
