"""Audits with the user's problems, kept for replays, and written as a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab.audit.audit import BUDGET, LIMIT, QUESTIONS, audit
from rewardlab.audit.built_in import KINDS
from rewardlab.audit.findings import identity, row_of
from rewardlab.audit.page import page
from rewardlab.audit.problems import of_task
from rewardlab.audit.process import TargetProcess
from rewardlab.audit.target import Spec
from rewardlab.core import Task
from rewardlab.errors import RewardlabError, unknown
from rewardlab.util.files import cache, write_text

LOADING = 20.0
"""Seconds that a replay has besides the call itself."""


def audit_target(
    spec: Spec, target: str, *, task: Task | None = None, questions: int = QUESTIONS, kind: str | None = None,
    budget: float = BUDGET, limit: float = LIMIT, out: Path | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Audit a target, remember the examples of its faults, and write the report where one is wanted.

    task: its problems are used; without one, the built-in ones, of a kind.  out: a .html file, or a folder.
    """
    if kind is not None and kind not in KINDS:
        raise unknown("kind of problems", kind, KINDS)
    items = of_task(task) if task else ()
    description = {"target": target, **({"task": task.name} if task else {})}
    document = audit(spec, items=items, kind=kind, questions=questions, about=description, budget=budget, limit=limit)
    # before the page is written, which names the examples by their ids
    document["remembered"] = _remember(target, document)
    if out is not None:
        path = out if out.suffix == ".html" else out / "audit.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, page(document))
        document["report"] = str(path)
    return document


def replay(spec: Spec, which: str, target: str, limit: float = LIMIT) -> dict[str, Any]:
    """Call the target again as it was called in an example: the id of one from its last audit, or a JSON file that holds one.

    The example holds the reply, and where it matters the thread it was scored in or the other replies of its batch.
    """
    example = _record(target, which)
    with TargetProcess(spec, limit, LOADING + 4 * limit) as process:
        if batch := example.get("among"):
            # the fault showed only in a batch, so the whole batch is scored again
            rows = [row_of({"prompt": p, "answer": a, "response": r, "meta": m}) for p, a, r, m in batch]
            place = next(i for i, row in enumerate(rows) if row == row_of(example))
            now = process.ask(rows, "together")[place]
        else:
            now = process.ask([row_of(example)], example.get("how", "each"))[0]
    before = example.get("then") or {"came": example.get("came"), "reward": example.get("reward")}
    result = {"came": now.kind, "reward": now.value, "why": now.why} if now else {"came": "nothing", "reward": None, "why": ""}
    unchanged = result["came"] == before.get("came") and result["reward"] == before.get("reward")
    return {"replayed": example, "then": before, "now": result, "unchanged": unchanged}


def _record(target: str, which: str) -> Mapping[str, Any]:
    if which.endswith(".json"):
        try:
            record = json.loads(Path(which).read_text("utf-8"))
        except (OSError, ValueError) as problem:
            raise RewardlabError(f"cannot read the example in {which}: {problem}") from None
        if not isinstance(record, dict) or not isinstance(record.get("response"), str):
            raise RewardlabError(f'{which} is not an example: it needs {{"prompt", "answer", "response"}}')
        return record
    path = _memory(target)
    if not path.is_file():
        raise RewardlabError(f"{target} has not been audited on this machine yet, so there is no example {which}")
    known = json.loads(path.read_text("utf-8"))
    if which not in known:
        raise unknown(f"example of the last audit of {target}:", which, known)
    return known[which]


def _remember(target: str, document: Mapping[str, Any]) -> str:
    """Save the examples, by their ids, where a replay reads them."""
    examples = {e["id"]: e for f in document["findings"] for e in f["examples"]}
    path = _memory(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(examples, default=str))
    return str(path)


def _memory(target: str) -> Path:
    return cache() / "audits" / f"{identity(target, str(Path.cwd()))}.json"
