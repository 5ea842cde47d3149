"""What `list` and `show` tell of each method, kept in registry.json so that they import no method and no torch.

An entry holds the hash of its method's file; one whose file has changed is made anew, by importing it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab import registry


def rows(folder: str | None = None) -> list[dict[str, Any]]:
    """What is known of each method: its entry in registry.json, name, folder and path, and the verdict on its claim."""
    wanted = {name: path for name, path in registry.methods().items() if folder in (None, path.parent.name)}
    entries = {store: read(store) for store in {store_of(path) for path in wanted.values()}}
    for store, held in entries.items():
        mine = {name: path for name, path in wanted.items() if store_of(path) == store}
        if any(held.get(name, {}).get("hash") != hash_of(path) for name, path in mine.items()):
            entries[store] = refresh(store, held)
    found = [_row(name, path, entries[store_of(path)][name]) for name, path in wanted.items()]
    return sorted(found, key=lambda row: (row["folder"], row["name"]))


def row(name: str) -> dict[str, Any]:
    """What is known of one method, or of a stack (`grpo+hapo`), which is compared with the first of its methods."""
    if "+" not in name:
        path = registry.file_of(name)
        return next(r for r in rows(path.parent.name) if r["name"] == path.stem)
    from .describe import changes, plain_parameters

    parts = [row(part) for part in name.split("+")]
    recipe, base = registry.build(name), registry.build(parts[0]["name"])
    return {
        "name": recipe.name,
        "kind": "stack",
        "idea": "\n".join(f"{part['name']}: {part['idea']}" for part in parts),
        "baseline": parts[0]["name"],
        "formula": str(recipe),
        "changes": changes(base, recipe),
        "parameters": plain_parameters(registry.parameters(name)),
        "methods": parts,
    }


def verdict(name: str) -> str:
    """The verdict of the last recorded run of a claim, "not run" where there is none."""
    root = repository()
    path = root / "results" / f"{name}.json" if root else None
    if path is None or not path.is_file():
        return "not run"
    data = json.loads(path.read_text())
    runs = data.get("runs", [data]) if isinstance(data, dict) else data
    return runs[-1]["verdict"] if runs else "not run"


def repository() -> Path | None:
    """The checkout this package is run from, None where it was installed without one."""
    root = registry.PACKAGE.parents[1]
    return root if (root / "pyproject.toml").is_file() else None


def refresh(store: Path, held: Mapping[str, Any]) -> dict[str, Any]:
    """Make the stale entries of an index file anew, and save it where its folder can be written."""
    mine = {name: path for name, path in registry.methods().items() if store_of(path) == store}
    stale = {name: path for name, path in mine.items() if held.get(name, {}).get("hash") != hash_of(path)}
    # a module that this process imported before its file changed tells of the old file: not to be kept
    lasting = not any(registry.dotted(path) in sys.modules for path in stale.values())
    fresh = {name: held[name] for name in mine if name not in stale}
    fresh |= {name: entry(name, path) for name, path in stale.items()}
    if lasting:
        _save(store, fresh)
    return fresh


def _save(store: Path, entries: Mapping[str, Any]) -> None:
    temporary = store.with_suffix(f".{os.getpid()}.tmp")
    try:
        temporary.write_text(_text(entries))
        temporary.replace(store)
    except OSError:
        temporary.unlink(missing_ok=True)


def entry(name: str, path: Path) -> dict[str, Any]:
    """A method's entry, by importing it."""
    from .describe import baseline_of, describe, plain_parameters

    recipe, module = registry.build(name), registry.module_of(name)
    versus = baseline_of(module)
    baseline = registry.build(versus) if versus else None
    made = describe(name, path.parent.name, module, recipe, baseline)
    return {"hash": hash_of(path), **made, "parameters": plain_parameters(registry.parameters(name))}


def store_of(path: Path) -> Path:
    """The index file that holds a method: beside our own methods, inside a folder of others."""
    root = path.parent.parent
    return (registry.PACKAGE if root == registry.PACKAGE / "methods" else root) / "index.json"


def read(store: Path) -> dict[str, Any]:
    try:
        return json.loads(store.read_text())
    except (OSError, ValueError):
        return {}


def hash_of(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()


def _row(name: str, path: Path, held: Mapping[str, Any]) -> dict[str, Any]:
    known = {k: v for k, v in held.items() if k != "hash"}
    return {"name": name, "folder": path.parent.name, **known, "verdict": verdict(name), "path": str(path)}


def _text(entries: Mapping[str, Any]) -> str:
    return json.dumps(dict(sorted(entries.items())), indent=1, ensure_ascii=False) + "\n"


def main(argv: list[str]) -> int:
    """Write the package's index file, or check it against every method, made anew."""
    if argv not in (["--write"], ["--check"]):
        print("usage: python -m rewardlab.registry.catalogue --write | --check", file=sys.stderr)
        return 2
    store = registry.PACKAGE / "index.json"
    made = {name: entry(name, path) for name, path in registry.methods().items() if store_of(path) == store}
    if argv == ["--write"]:
        store.write_text(_text(made))
        return 0
    held = read(store)
    stale = sorted(name for name in made.keys() | held.keys() if made.get(name) != held.get(name))
    if stale:
        print(f"{store} is stale ({', '.join(stale)}); run python -m rewardlab.registry.catalogue --write", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
