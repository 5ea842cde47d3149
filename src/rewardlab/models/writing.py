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
from rewardlab.core import Problem, Recipe, Run
from rewardlab.models.checkpoint import Checkpoint
from rewardlab.models.formats import fingerprint
from rewardlab.models.reward_model import Answered, RewardModel
from rewardlab.policies.packing import numbered
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


def write_writer(folder: Path, by: Any, run: Run, method: str, out: Path) -> None:
    """Put the model that writes beside a scorer in an export.  out: what the folder will be called."""
    writer = run.model(by.settings["writer"])
    writer.save(folder / WRITER)
    write_json(folder / FILE, {"by": by.to_json(), "seed": run.seed, "max_new": run.max_new})
    write_text(folder / "README.md", README.format(method=method, reads=getattr(run.models["reward"], "reads", ""), out=out))


def is_writing(found: Checkpoint) -> bool:
    """Whether a reward model lies beside the model that writes what it reads."""
    return (found.folder / FILE).is_file() and (found.folder / WRITER).is_dir()


class WritingRewardModel(RewardModel):
    """Scores replies after its writer has written about them. The same rows in one call get the same texts each time."""

    def __init__(self, found: Checkpoint, device: str = "auto", dtype: str = "auto", **settings: Any):
        from rewardlab.models.load import load_policy

        super().__init__(found, device, dtype, **settings)
        stated = json.loads((found.folder / FILE).read_text("utf-8"))
        self.by, self.seed, self.max_new = registry.load_part(stated["by"]), int(stated["seed"]), int(stated["max_new"])
        self.writer = load_policy(str(found.folder / WRITER), device, dtype)
        self.writes = fingerprint(found.folder / WRITER)

    def read(self, rows: Sequence[Answered]) -> list[tuple[float, bool, int]]:
        """For each reply the mean score over what is written about it, whether any of that was too long, and the tokens read."""
        problems = [Problem(tuple(row[0]), None, {"reply": row[1]}) for row in rows]
        name = self.by.settings["writer"]
        run = Run(self.writer, models={name: self.writer}, seed=self.seed, max_new=self.max_new).for_evaluation()
        groups = self.by(problems, run) if rows else []
        written = [t for group in groups for t in group]
        ids = [t.ids.tolist() for t in written]
        encoded = [{"input_ids": row[-self.longest :], "cut": len(row) > self.longest} for row in ids]
        read = iter(self.read_encoded(encoded, numbered(t.turns[0].text for t in written)))
        found = [[next(read) for _ in group] for group in groups]
        return [(sum(s for s, _, _ in of) / len(of), any(cut for _, cut, _ in of), sum(n for *_, n in of)) for of in found]
