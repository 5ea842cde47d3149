"""A method as the composition of its parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from rewardlab.errors import unknown

from .part import Part
from .slots import Credit, Loop, Measure, Objective, Rollout, Select, Weighting


@dataclass(frozen=True)
class Update:
    """How a batch becomes optimiser steps. Every field is a command-line flag.

    problems: per training step.  epochs, minibatches: passes over the batch, and optimiser steps per pass (groups are
    never split).  lr falls linearly to `lr_end * lr` after `warmup` steps.  clip_norm: of the whole gradient.
    """

    problems: int = 16
    lr: float = 3e-4
    lr_end: float = 1.0
    warmup: int = 0
    epochs: int = 1
    minibatches: int = 1
    clip_norm: float = 1.0
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.99


@dataclass(frozen=True)
class Learner:
    """A second model that learns beside the policy: a critic, a reward model, an opponent.

    init: "copy:policy", "value-head" (the policy's trunk with a scalar head), the path of a checkpoint, or "embedded:TASK" (the
    small policy that the task is played with).  problems(groups, scores, run) makes tasks of its own; without it, it learns from
    the policy's batch with its own credit and objective.  every: steps between its updates; 0 never, which freezes it.
    """

    name: str
    init: str
    recipe: Recipe
    problems: Part | None = None
    every: int = 1

    def to_json(self) -> dict[str, Any]:
        problems = self.problems.to_json() if self.problems else None
        return {
            "name": self.name,
            "init": self.init,
            "recipe": self.recipe.to_json(),
            "problems": problems,
            "every": self.every,
        }


@dataclass(frozen=True)
class Recipe:
    """The parts of a method. A slot left None is not used: no objective means that the policy itself does not learn."""

    rollout: Rollout | None = None
    reward: Part | None = None
    credit: Credit | None = None
    objective: Objective | None = None
    weighting: Weighting | None = None
    select: Select | None = None
    measure: Measure | None = None
    also: tuple[Learner, ...] = ()
    loop: Loop | None = None
    study: Part | None = None
    update: Update = Update()
    name: str = ""

    def but(self, **changes: Any) -> Recipe:
        """This recipe with some slots changed; fields of `update` may be named directly."""
        slots = {f.name for f in fields(self)}
        knobs = {f.name for f in fields(Update)}
        update = {k: changes.pop(k) for k in list(changes) if k in knobs and k not in slots}
        for name in changes:
            if name not in slots:
                raise unknown("slot", name, slots | knobs)
        if update:
            changes["update"] = replace(changes.get("update", self.update), **update)
        return replace(self, **changes)

    def parts(self) -> dict[str, Part]:
        return {f.name: v for f in fields(self) if isinstance(v := getattr(self, f.name), Part)}

    @property
    def needs(self) -> tuple[str, ...]:
        own = (n for part in self.parts().values() for n in part.needs)
        return tuple(dict.fromkeys((*own, *(n for learner in self.also for n in learner.recipe.needs))))

    @property
    def drawing(self) -> Mapping[str, Any]:
        """Settings of the rollout that draws: where one filters or cuts what another draws, of the one within."""
        part: Part | None = self.rollout
        while part is not None and isinstance(inner := part.settings.get("of"), Part):
            part = inner
        return part.settings if part is not None else {}

    @property
    def rows_per_problem(self) -> int:
        """Rows that the rollout makes of a problem, as far as its settings say so."""
        return int(self.drawing.get("n", len(self.drawing.get("fields", (1,)))))

    def __str__(self) -> str:
        lines = [f"{slot:<10} {part}" for slot, part in self.parts().items()]
        changed = [f"{f.name}={v!r}" for f in fields(Update) if (v := getattr(self.update, f.name)) != f.default]
        lines.append(f"{'update':<10} Update({', '.join(changed)})")
        for learner in self.also:
            inner = "\n".join(f"  {line}" for line in str(learner.recipe).splitlines())
            own = f", on {learner.problems}" if learner.problems else ""
            lines.append(f"{'also':<10} {learner.name} from {learner.init!r}, every {learner.every}{own}:\n{inner}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {slot: part.to_json() for slot, part in self.parts().items()}
        return data | {
            "also": [learner.to_json() for learner in self.also],
            "update": dataclasses.asdict(self.update),
            "name": self.name,
        }
