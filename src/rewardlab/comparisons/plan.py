"""The saved plan of a comparison, from which a stopped one resumes.

plan.json                    what is compared
tuning/METHOD-RATE-sSEED/    the same, of the runs on which a rate was chosen
runs/METHOD-sSEED/           the run folder of a trained policy, without its weights once it has finished
answers/METHOD-sSEED/        the outcome of a method that selects answers and trains nothing
compare.json, compare.html   the result, once every run has finished
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any

from rewardlab import registry
from rewardlab.checks.runs import Job
from rewardlab.comparisons.arms import Arm
from rewardlab.errors import RewardlabError, unknown
from rewardlab.runs.config import RunConfig
from rewardlab.runs.named import config_of_run
from rewardlab.settings.domain import PATH
from rewardlab.util.files import write_json

PLAN = "plan.json"
TOKENS, UPDATES = "tokens", "updates"
"""What all runs of a comparison may get alike."""


@dataclass(frozen=True)
class Plan:
    """What is compared.

    config: what all runs share.  equal: what all runs get alike: UPDATES, config.steps steps each; or TOKENS, config.budget, or
    without one what the first arm which trains uses in config.steps steps with the same seed.  measure: the number compared.
    reward: the formula of one given in place of the methods' own.  keep_models: whether finished runs keep their models.  x, y: the
    axes of the frontier (see `frontier`), if there is one.
    rates: the learning rates from which each trained arm gets its own, on `rate_seeds` seeds of their own (see `tuning`).
    rates_by: by arm, the number by which.  chosen: the rate of each arm, once it is known.  tied: by arm, the best rates where
    these did equally well.
    """

    arms: tuple[Arm, ...]
    config: RunConfig
    seeds: tuple[int, ...]
    measure: str = ""
    reward: str = ""
    keep_models: bool = False
    x: str = ""
    y: str = ""
    equal: str = UPDATES
    rates: tuple[float, ...] = ()
    chosen: Mapping[str, float] = field(default_factory=dict)
    rate_seeds: int = 2
    rates_by: Mapping[str, str] = field(default_factory=dict)
    tied: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise RewardlabError(f"seeds must be distinct numbers, at least one, not {list(self.seeds)}")
        # before anything is rehearsed or written: a folder whose plan cannot be run is of no use
        if self.rates and (len(set(self.rates)) < 2 or not all(0 < rate < 1 for rate in self.rates)):
            raise RewardlabError(f"rates must be two distinct numbers or more between 0 and 1, not {list(self.rates)}")

    @property
    def alike(self) -> str:
        """What every run gets, in words."""
        steps = f"{self.config.steps} step{'s' * (self.config.steps != 1)}"
        if self.equal == UPDATES:
            return f"{steps} each (equal updates)"
        if self.config.budget:
            return f"{self.config.budget:,} tokens each (equal tokens)"
        first = self.trained[0].name if self.trained else "the first method"
        return f"the tokens that {first} uses in {steps} each (equal tokens)"

    @property
    def methods(self) -> list[str]:
        """Their names; one that is compared under several values of a setting once."""
        return list(dict.fromkeys(arm.of or arm.name for arm in self.arms))

    @property
    def trained(self) -> list[Arm]:
        return [arm for arm in self.arms if arm.trains]

    def job(self, arm: Arm, seed: int, folder: Path, tokens: int | None = None) -> Job:
        """The run of an arm on a seed, in a comparison's folder.  tokens: its budget; None: the plan's steps."""
        config = self.config.but(method=arm.name, seed=seed, steps=None if tokens else self.config.steps, budget=tokens)
        where = folder / ("runs" if arm.trains else "answers") / f"{arm.folder}-s{seed}"
        recipe = arm.recipe.but(lr=self.chosen[arm.name]) if arm.name in self.chosen else arm.recipe
        return Job(arm.name, recipe.to_json(), config, str(where), keep=True)

    def without(self, methods: Sequence[str]) -> Plan:
        """The plan without these arms. Raises RewardlabError for a name that is not one, and if fewer than two stay."""
        names = [arm.name for arm in self.arms]
        if missing := [name for name in methods if name not in names]:
            raise unknown("method of this comparison", missing[0], names)
        arms = tuple(arm for arm in self.arms if arm.name not in methods)
        if len(arms) < 2:
            raise RewardlabError(f"without {' and '.join(methods)} there is nothing left to compare")
        return replace(self, arms=arms)

    def to_json(self) -> dict[str, Any]:
        arms = [
            {"method": arm.name, "recipe": arm.recipe.to_json(), "formula": str(arm.recipe)}
            | {"of": arm.of, "knob": arm.knob, "at": arm.at}
            for arm in self.arms
        ]
        return {
            "methods": arms, "config": self.config.to_json(), "seeds": list(self.seeds), "measure": self.measure,
            "reward": self.reward, "keep_models": self.keep_models, "x": self.x, "y": self.y,
            "equal": self.equal, "rates": list(self.rates), "rate_seeds": self.rate_seeds, "chosen": dict(self.chosen),
            "rates_by": dict(self.rates_by), "tied": {name: list(rates) for name, rates in self.tied.items()},
        }  # fmt: skip

    def save(self, folder: Path) -> None:
        write_json(folder / PLAN, self.to_json())


def read_plan(folder: Path) -> Plan:
    """The plan of a comparison. Raises RewardlabError for a folder that holds none."""
    if not (folder / PLAN).is_file():
        if config_of_run(folder):
            raise RewardlabError(f"{folder} is a run, not a comparison; resume it with: rewardlab train --resume {folder}")
        why = f"is not the folder of a comparison: it has no {PLAN}" if folder.is_dir() else "does not exist"
        raise RewardlabError(f"{folder} {why}; give the folder that `rewardlab compare` wrote")
    try:
        document = json.loads((folder / PLAN).read_text("utf-8"))
        # a comparison of an older version has no knobs, no axes and no rates, and was of equal tokens
        arms = tuple(
            Arm(arm["method"], registry.load_recipe(arm["recipe"]), arm.get("of", ""), arm.get("knob", ""), arm.get("at"))
            for arm in document["methods"]
        )
        config = RunConfig.from_json(document["config"])
        return Plan(
            arms, config, tuple(document["seeds"]), document["measure"], document["reward"], document["keep_models"],
            document.get("x", ""), document.get("y", ""), document.get("equal", TOKENS), tuple(document.get("rates", ())),
            document.get("chosen", {}), document.get("rate_seeds", 2), document.get("rates_by", {}), document.get("tied", {}),
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise RewardlabError(
            f"{folder} is not the folder of a comparison: {e}; give the folder that `rewardlab compare` wrote"
        ) from e


@contextmanager
def new_comparison(out: Path | str | None, names: Sequence[str], task: str) -> Iterator[Path]:
    """The folder of a new comparison, made at once, so that one that cannot be written to is refused before any run.

    `out`, which must be new or empty, or the first of runs/compare-..., runs/compare-...-2, ... that does not exist. It is removed
    again if the comparison fails before its plan is written.
    """
    folder = _made(Path(PATH.check("out", out))) if out is not None else _numbered(names, task)
    try:
        yield folder
    except BaseException:
        if not (folder / PLAN).exists() and not any(folder.iterdir()):
            folder.rmdir()
        raise


def _made(folder: Path) -> Path:
    try:
        if folder.is_dir() and any(folder.iterdir()):
            known = f"; complete it with: rewardlab compare --resume {quote(str(folder))}" if (folder / PLAN).exists() else ""
            raise RewardlabError(f"{folder} exists and is not an empty folder; choose a new --out{known}")
        folder.mkdir(parents=True, exist_ok=True)
        # a folder that exists may still be one that nobody can write to
        (probe := folder / ".probe").touch()
        probe.unlink()
    except FileExistsError as e:
        raise RewardlabError(f"{folder} exists and is not an empty folder; choose a new --out") from e
    except OSError as e:
        raise RewardlabError(f"cannot write to {folder}: {e.strerror}; choose another --out") from e
    return folder


def _numbered(names: Sequence[str], task: str) -> Path:
    # file systems limit a name to 255 bytes, and a comparison may have many methods
    name = f"compare-{'-'.join(names)[:80]}-{task.partition(':')[0].rpartition('/')[2]}".replace("/", "-")
    for i in itertools.count(1):
        folder = Path("runs") / (name if i == 1 else f"{name}-{i}")
        # a comparison that starts at the same moment takes the next number
        if not folder.exists():
            return _made(folder)
    raise AssertionError("unreachable")
