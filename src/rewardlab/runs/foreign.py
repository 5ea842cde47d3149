"""Logs of other trainers under our names, for every reader of metrics.jsonl.

TRL      trainer_state.json, of an output folder's newest checkpoint: `log_history`, as transformers' Trainer writes it.
verl     the JSONL of its file logger (trainer.logger=[...,"file"]): {"step": 7, "data": {"critic/score/mean": 0.4, ...}} a line;
         or what its console logger prints: step:7 - critic/score/mean:0.400 - ..., among other lines and after Ray's prefix.
others   JSONL of flat objects with a "step" (or "global_step"), under any of the names below.

Names after huggingface/trl 1.16 (trainer/grpo_trainer.py) and volcengine/verl 07c9cf1 (trainer/ppo/metric_utils.py); older
names of both are known too.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rewardlab.errors import RewardlabError
from rewardlab.runs.metrics import finite, must_be_finite

Row = dict[str, Any]

STATE = "trainer_state.json"
STEPS = ("step", "global_step", "train/global_step", "training/global_step")
OURS = {
    # TRL
    "completions/mean_length": "length", "completion_length": "length", "completions/clipped_ratio": "cut_off",
    "clip_ratio/region_mean": "clip_share", "clip_ratio": "clip_share", "learning_rate": "lr", "num_tokens": "tokens",
    "sampling/sampling_logp_difference/mean": "mismatch", "eval_reward": "eval/reward", "step_time": "seconds/step",
    # verl: the score is what the verifier gave, the reward has the KL penalty in it
    "critic/score/mean": "reward", "response_length/mean": "length", "response_length/clip_ratio": "cut_off",
    "actor/entropy": "entropy", "actor/entropy_loss": "entropy", "actor/kl_loss": "kl", "actor/reward_kl_penalty": "kl",
    "actor/ppo_kl": "drift", "actor/pg_clipfrac": "clip_share", "actor/grad_norm": "grad_norm", "actor/pg_loss": "loss",
    "actor/loss": "loss",
    "actor/lr": "lr", "training/rollout_probs_diff_mean": "mismatch_probability", "timing_s/step": "seconds/step",
}  # fmt: skip
"""Names of other trainers' metrics, and ours for the same number."""
TERM, SPREAD = re.compile(r"rewards?/(.+)/mean"), re.compile(r"rewards?/(.+)/std")
HELD_OUT = re.compile(r"val(?:-core)?/(.+)")
CONSOLE = re.compile(r"(?:^|\s)step:(\d+) - (\S+:.*)")
PRINTED = re.compile(r"(?:np\.\w+\()?([-+]?(?:\d[\d.]*(?:e[-+]?\d+)?|nan|inf))\)?", re.IGNORECASE)
TELLING = ("reward", "length", "entropy", "loss", "grad_norm")
"""A log with none of these is no log of training from rewards."""


class Log(NamedTuple):
    """Metrics of a run by another trainer.  source: "trl", "verl" or "jsonl".  rows: one per step, in order, under our names."""

    source: str
    rows: list[Row]


def read_log(path: Path) -> Log:
    """The log in a file, or in the output folder of a TRL run. Raises RewardlabError where there is none that can be read."""
    if path.is_dir():
        path = _newest_state(path)
    if not path.is_file():
        raise RewardlabError(f"there is no log {path}; give a run folder, TRL's {STATE} or verl's metrics file")
    text = path.read_text("utf-8", "replace")
    source, found = _history(path, text) if path.suffix == ".json" else _console(text) or _lines(path, text)
    rows: dict[int, Row] = {}
    for step, numbers in found:
        rows.setdefault(step, {}).update(renamed(numbers) | {"step": step})
    log = Log(source, [rows[step] for step in sorted(rows)])
    if not any(name in row for row in log.rows for name in TELLING):
        known = ", ".join(dict.fromkeys(k for _, numbers in found for k in numbers)) or "nothing"
        raise RewardlabError(f"{path} holds no metric of training from rewards; it logs {known[:300]}")
    return log


def renamed(numbers: Mapping[str, Any]) -> Row:
    """The finite numbers of a step under our names; what has no name of ours keeps its own.

    Of losses and norms of gradients also those that are not finite, as NaN.
    """
    row: Row = {}
    for name, value in numbers.items():
        name = name.removeprefix("train/")
        number = finite(value)
        if number != number and not must_be_finite(name):
            continue
        if name == "frac_reward_zero_std":
            row["signal"] = 1.0 - number
        elif name in OURS:
            # of several names of one number, that which broke
            # of several names for one number, the one that broke
            if (known := row.get(OURS[name], 0.0)) == known:
                row[OURS[name]] = number
        elif match := SPREAD.fullmatch(name):
            row[f"spread/{match[1]}"] = number
        elif match := TERM.fullmatch(name):
            row[f"reward/{match[1]}"] = number
        elif match := HELD_OUT.fullmatch(name):
            row[f"eval/{match[1]}"] = number
        else:
            row[name] = number
    return row


def _newest_state(folder: Path) -> Path:
    states = [folder / STATE, *folder.glob(f"checkpoint-*/{STATE}")]
    found = [state for state in states if state.is_file()]
    if not found:
        raise RewardlabError(
            f"{folder} holds no config.json of a run of ours and no {STATE} of TRL; of verl, give its file logger's file"
        )
    return max(found, key=lambda state: state.stat().st_mtime_ns)


def _history(path: Path, text: str) -> tuple[str, list[tuple[int, Row]]]:
    try:
        history = json.loads(text)["log_history"]
        # the last entry sums up the run, at the step of the entry before
        return "trl", [(int(entry["step"]), entry) for entry in history if "step" in entry and "train_runtime" not in entry]
    except (ValueError, KeyError, TypeError) as e:
        raise RewardlabError(f"{path} is not TRL's {STATE}: it has no readable log_history ({e})") from e


def _console(text: str) -> tuple[str, list[tuple[int, Row]]] | None:
    """What verl's console logger printed among other lines; None where it printed nothing."""
    found = []
    for line in text.splitlines():
        if match := CONSOLE.search(line):
            said = (part.rpartition(":") for part in match[2].split(" - "))
            numbers = {name.strip(): printed[1] for name, _, value in said if (printed := PRINTED.fullmatch(value.strip()))}
            found.append((int(match[1]), {name: _number(value) for name, value in numbers.items()}))
    return ("verl", found) if found else None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _lines(path: Path, text: str) -> tuple[str, list[tuple[int, Row]]]:
    lines = text.splitlines()
    found, source = [], "jsonl"
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict):
                raise ValueError("not an object")
        except ValueError as e:
            # a killed run leaves its last line cut short
            if number == len(lines):
                break
            raise RewardlabError(f"{path}, line {number}: not a JSON object ({e}), nor a line of verl's console logger") from e
        if isinstance(entry.get("data"), dict):
            source, entry = "verl", {"step": entry.get("step")} | entry["data"]
        found.append((_step(entry, path, number), entry))
    return source, found


def _step(entry: Mapping[str, Any], path: Path, number: int) -> int:
    steps: Iterable[float] = (finite(entry.get(name)) for name in STEPS)
    step = next((s for s in steps if s == s), None)
    if step is None:
        raise RewardlabError(f"{path}, line {number}: no step; a line is an object with one of {', '.join(STEPS)}")
    return int(step)
