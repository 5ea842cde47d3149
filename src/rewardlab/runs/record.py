"""The files that a run writes while it trains.

config.json                  recipe, formula, settings, versions, hashes of reward files, changes made on resuming
metrics.jsonl                one flushed line per step
rollouts/step-000010.parquet the sampled replies, token by token, with rewards and credit
best/, model/                the best model by held-out measure, and the last: Hugging Face checkpoints in float32, or with
                             --lora-rank PEFT adapters, which name their base model; best/step.json says of which step it is
models/step-000010/          the same of every N-th step, where --save-every N asks for them
summary.json, report.html
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from torch import Tensor

from rewardlab.core import Batch, Group, Run, Score, Scores, Trajectory
from rewardlab.data.pictures import digest_of, named
from rewardlab.runs.metrics import AT, best_step, read_metrics, step_of
from rewardlab.util.files import disk_errors, new_file, new_folder, sweep, write_json, write_text
from rewardlab.util.reads import write_reads

ROLLOUT = pa.schema(
    {
        **dict.fromkeys(("step", "group", "row"), pa.int64()),
        **dict.fromkeys(("question", "answer", "reply", "stop"), pa.string()),
        **dict.fromkeys(("reward", "truth"), pa.float64()),
        # JSON: {term: value}, {term: share in the sum}, {term: [[token position, reward], ...]}
        **dict.fromkeys(("terms", "weights", "step_rewards"), pa.string()),
        **dict.fromkeys(("why", "extracted"), pa.string()),
        "path": pa.list_(pa.int32()),
        "turns": pa.list_(pa.struct({"author": pa.string(), "tokens": pa.int32(), "reward": pa.float64()})),
        "tokens": pa.list_(pa.string()),
        "mask": pa.list_(pa.bool_()),
        # a number for each token; null where none was sampled
        **dict.fromkeys(("credit", "logprob", "new_logprob", "entropy"), pa.list_(pa.float32())),
    }
)
"""A row of rollouts/*.parquet. new_logprob and entropy are of the policy after the step's update."""

BROKEN = "\ufffd"
"""What a token decodes to that holds some bytes of a character."""
WITHIN = 8
"""Tokens that may write a few characters together: one of four bytes may be as many tokens, and share them with the next."""

KEPT = "models"
"""The folder of the models that are all kept."""
BEST = "best"
"""The folder of the best model."""
Line = Callable[[int, dict[str, float | None]], None]
"""Called with step and metrics for each line written, and again for each line that a resumed run keeps."""


class Recorder:
    """Writes into one run folder."""

    def __init__(self, folder: Path, track: Line | None = None):
        self.folder, self.track = folder, track
        self.measured: dict[int, float] = {}
        """By step, the leading measure of its evaluation."""
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def metrics_file(self) -> Path:
        return self.folder / "metrics.jsonl"

    def rewind(self, step: int, unmeasured: bool = False) -> list[dict[str, Any]]:
        """Delete lines, rollouts and models after `step`, which will be computed again. Returns the lines kept.

        unmeasured: the evaluation of `step` itself is still to come, and with it its line.
        """
        # temporary files of the writer that was killed
        for folder in (self.folder, *(self.folder / name for name in ("checkpoints", "rollouts", KEPT))):
            sweep(folder)
        kept = [line for line in read_metrics(self.folder) if line["step"] <= step - unmeasured]
        with disk_errors(self.metrics_file):
            write_text(self.metrics_file, "".join(json.dumps(line) + "\n" for line in kept))
        for file in (self.folder / "rollouts").glob("step-*.parquet"):
            if int(file.stem.split("-")[1]) > step:
                file.unlink()
        for model in (self.folder / KEPT).glob("step-*"):
            if int(model.name.removeprefix("step-")) > step:
                shutil.rmtree(model)
        # a best model that no line kept has measured is of a step that is computed again, and perhaps otherwise
        measured = [line["step"] for line in kept if any(k.startswith("eval/") for k in line)]
        if step_of(self.folder / BEST) not in (None, *measured):
            shutil.rmtree(self.folder / BEST)
        for line in kept:
            # a tracker skips what it was sent before, and receives what it missed
            self._track(line)
        return kept

    def line(self, step: int, metrics: dict[str, float]) -> None:
        # JSON has no NaN and no infinity
        clean = {k: v if math.isfinite(v) else None for k, v in metrics.items()}
        with disk_errors(self.metrics_file), open(self.metrics_file, "a", encoding="utf-8") as f:
            f.write(json.dumps({"step": step, **clean}) + "\n")
            # a run that is killed loses no finished step
            f.flush()
        self._track({"step": step, **clean})

    def _track(self, line: dict[str, Any]) -> None:
        if self.track:
            self.track(line["step"], {k: v for k, v in line.items() if k != "step"})

    def rollouts(
        self, run: Run, groups: list[Group], scores: Scores, batch: Batch, truth: list[list[float | None]],
        after: Mapping[str, Tensor] | None = None,
    ) -> None:  # fmt: skip
        """One parquet row per trajectory.  after: the tables of `after_update` for the batch."""
        path = self.folder / "rollouts" / f"step-{run.step:06d}.parquet"
        rows = list(_rows(run, groups, scores, batch, truth, after or {}))
        with disk_errors(path):
            path.parent.mkdir(exist_ok=True)
            with new_file(path) as new:
                # the schema is fixed, so columns that are null in every row keep their type
                pq.write_table(pa.Table.from_pylist(rows, ROLLOUT), new, compression="zstd")

    def keep_best(self, step: int, value: float, model: Any) -> None:
        """Save the model if its evaluation is the best so far."""
        self.measured[step] = value
        if best_step(self.measured) == step:
            self._best(model, step)

    def restore_best(self, step: int, model: Any) -> None:
        """Put the best model back where `rewind` has taken away a later one, if it is the present one, of `step`, or was kept.

        So it is where an older version, for which of equal evaluations the first was the best, has kept that of another step.
        """
        best, place = best_step(self.measured), self.folder / BEST
        if best is None or (place.exists() and step_of(place) in (None, best)):
            return
        kept = self.folder / KEPT / f"step-{best:06d}"
        if best == step:
            self._best(model, step)
        elif kept.is_dir():
            with disk_errors(place), new_folder(place) as new:
                shutil.copytree(kept, new, dirs_exist_ok=True)
                write_json(new / AT, {"step": best})

    def _best(self, model: Any, step: int) -> None:
        # within the folder, so that there is no moment in which it says the step of another model
        self.model(model, BEST, {AT: {"step": step}})

    def model(self, model: Any, name: str, notes: Mapping[str, Any] | None = None) -> None:
        """Save a model.  notes: JSON files to write beside it, by name."""
        with disk_errors(self.folder / name), new_folder(self.folder / name) as new:
            model.save(new)
            write_reads(new, getattr(model, "reads", ""))
            for file, note in (notes or {}).items():
                write_json(new / file, note)

    def summary(self, data: dict[str, Any]) -> None:
        with disk_errors(self.folder):
            write_json(self.folder / "summary.json", data)


def _rows(
    run: Run, groups: list[Group], scores: Scores, batch: Batch, truth: list[list[float | None]], after: Mapping[str, Tensor]
) -> Iterator[dict[str, Any]]:
    names = {"logprobs": "new_logprob", "entropy": "entropy"}
    tables = {names[k]: table.float().cpu().numpy() for k, table in after.items()}
    credit = batch.credit.float().cpu().numpy() if batch.credit is not None else None
    i = 0  # row of the batch, which lists the groups one after another
    for g, group in enumerate(groups):
        for k, t in enumerate(group):
            n = len(t)
            yield {
                "step": run.step, "group": g, "row": k, "truth": truth[g][k] if truth else None,
                **_sampled(run, t), **_earned(scores[g][k] if scores else None),
                "credit": credit[i, :n].tolist() if credit is not None else [0.0] * n,
                **{name: _numbers(table[i, :n]) for name, table in tables.items()},
            }  # fmt: skip
            i += 1


def _sampled(run: Run, t: Trajectory) -> dict[str, Any]:
    """The columns that describe a trajectory as it was sampled."""
    turns = [{"author": turn.author, "tokens": len(turn.ids), "reward": turn.reward} for turn in t.turns]
    return {
        "question": t.problem.question + _seen(t), "answer": str(t.problem.answer), "reply": t.reply, "stop": t.stop or "open",
        "path": list(t.path), "turns": turns, "tokens": _pieces(run.policy, t.ids), "mask": t.mask.tolist(),
        "logprob": _numbers(t.column("logprobs")),
    }  # fmt: skip


def _seen(t: Trajectory) -> str:
    """The pictures of a prompt in words: which there are tells equal questions below others apart."""
    return named([digest_of(image) for m in t.problem.prompt for image in m.images])


def _pieces(policy: Any, ids: np.ndarray) -> list[str]:
    """The text of each token. A character that several tokens write together stands at the first of them."""
    pieces = policy.pieces(ids)
    for i, piece in enumerate(pieces):
        if BROKEN not in piece:
            continue
        for end in range(i + 2, min(i + WITHIN, len(pieces)) + 1):
            if BROKEN not in pieces[end - 1]:
                break
            if BROKEN not in (text := policy.decode(ids[i:end])):
                pieces[i:end] = [text] + [""] * (end - i - 1)
                break
    return pieces


def _earned(score: Score | None) -> dict[str, Any]:
    """The columns that describe its score; `reward` is left out (null) if there is none."""
    if score is None:
        return {"terms": "{}", "weights": "{}", "step_rewards": "{}", "why": "", "extracted": ""}
    return {
        "reward": score.total,
        "terms": json.dumps({name: term.value for name, term in score.terms.items()}),
        "weights": json.dumps({name: term.weight or 0.0 for name, term in score.terms.items()}),
        "step_rewards": json.dumps({name: term.steps for name, term in score.terms.items() if term.steps}),
        "why": score.why,
        "extracted": score.extracted,
    }


def _numbers(column: np.ndarray) -> list[float | None]:
    """A column with null for NaN, which marks tokens without a number."""
    return [None if math.isnan(x) else x for x in column.tolist()]
