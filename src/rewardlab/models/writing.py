"""Reward models that read what a model of their own writes about a reply: a critique, or a trace of tool calls.

    r(x, y) = mean over k texts c of r(x, y, c),    c written by the model in writer/

An export holds both: in its folder the one that scores, which transformers reads, in writer/ the one that writes, and in
writes.json how it is asked: the rollout by which the run was measured, its seed, and how long a text may be.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.core import Group, Message, Problem, Recipe, Run
from rewardlab.models.checkpoint import Checkpoint
from rewardlab.models.formats import fingerprint
from rewardlab.util.files import write_json, write_text

FILE, WRITER, PART = "writes.json", "writer", "explained_by"
README = """# {method}: a reward model that first writes what it reads

Its score is that of a reply after {reads}. `writer/` is the model that writes this, `writes.json` says how it is asked, and
the weights beside them score what it has written.

    rewardlab scoreboard {out} --on pairs --data pairs.jsonl
    rewardlab eval {out} --task pairs.jsonl
    rewardlab answer best_of_n --task rows.jsonl --reward model:{out}

write first, and then score. transformers (`AutoModelForSequenceClassification`), TRL and vLLM load the scoring half alone: of a
prompt and a reply its score says nothing there. They would have to let `writer/`, an ordinary language model, write first, and to
give the classifier its question and its text as a conversation; `{out}?reads=plain` scores here what is written so already.
"""


def how_written(recipe: Recipe) -> Any:
    """The rollout by which held-out replies of a run are explained before they are scored; None where nothing is written."""
    parts = recipe.measure.walk() if recipe.measure else ()
    return next((part for part in parts if part.name == PART and part.slot == "rollout"), None)


def names_writer(recipe: Any) -> bool:
    """The same of a recipe as JSON, of whatever version."""
    return f"rollout:{PART}" in json.dumps(recipe)


def write_writer(folder: Path, by: Any, run: Run, method: str, out: Path) -> None:
    """Put the model that writes beside a scorer in an export.  out: what the folder will be called."""
    writer = run.model(by.settings["writer"])
    writer.save(folder / WRITER)
    write_json(folder / FILE, {"by": by.to_json(), "seed": run.seed, "max_new": run.max_new})
    write_text(folder / "README.md", README.format(method=method, reads=getattr(run.models["reward"], "reads", ""), out=out))


def is_writing(found: Checkpoint) -> bool:
    """Whether a reward model lies beside the model that writes what it reads."""
    return (found.folder / FILE).is_file() and (found.folder / WRITER).is_dir()


class Writer:
    """The model beside a scorer, which writes about replies. About the same rows in one call it writes the same each time."""

    def __init__(self, folder: Path, device: str, dtype: str):
        from rewardlab.models.load import load_policy

        stated = json.loads((folder / FILE).read_text("utf-8"))
        self.by, self.seed, self.max_new = registry.load_part(stated["by"]), int(stated["seed"]), int(stated["max_new"])
        self.policy = load_policy(str(folder / WRITER), device, dtype)
        self.weights = fingerprint(folder / WRITER)

    def __repr__(self) -> str:
        """What decides its texts."""
        return f"{self.weights} {self.by} {self.seed} {self.max_new}"

    def about(self, rows: Sequence[tuple[Sequence[Message], str]]) -> list[Group]:
        """For each conversation and reply the question about it, each followed by a text about the reply."""
        problems = [Problem(tuple(prompt), meta={"reply": reply}) for prompt, reply in rows]
        models = {self.by.settings["writer"]: self.policy}
        run = Run(self.policy, models=models, seed=self.seed, max_new=self.max_new).for_evaluation()
        return self.by(problems, run) if rows else []
