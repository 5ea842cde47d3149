"""A method as the composition of its parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from .component import Part, decorator, load
from .errors import RewardlabError, unknown
from .objective import Credit, Objective, Weighting
from .score import Reward


class Rollout(Part):
    """(problems, run) -> groups of trajectories. The trait `whole` says that it remembers, or looks across problems."""

    slot = "rollout"


class Select(Part):
    """(group, scores, run) -> the trajectory that is the answer: one of the group, or one made of it."""

    slot = "select"


class Measure(Part):
    """(problems, run) -> {name: number}: how good the policy, or a reward, is on problems never trained on."""

    slot = "measure"


class Study(Part):
    """(run) -> {name: number}: an analysis that trains no policy. `run` has a seed and random streams, and no policy."""

    slot = "study"


class Environment(Part):
    """What answers back: (state, turn) -> (message, state), and `start(problem, seed)` -> (message or None, state).

    The decorated function is one step; the trait `start` begins an episode, with the same hyperparameters. State is plain
    data: it is copied to branch and saved to resume. A message of None ends the episode, and so does one that is `last`.
    """

    slot = "environment"

    def start(self, problem: Any, seed: int) -> tuple[Any, Any]:
        return self.traits["start"](problem, seed, **self.settings)


class Loop(Part):
    """(recipe, run, ops) -> None: one resumable iteration, for methods that are not rollout-reward-credit-update."""

    slot = "loop"


rollout = decorator(Rollout)
select = decorator(Select)
measure = decorator(Measure)
loop = decorator(Loop)
study = decorator(Study)
environment = decorator(Environment)


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

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(**data | {"recipe": Recipe.from_json(data["recipe"]), "problems": load(data["problems"])})


@dataclass(frozen=True)
class Recipe:
    """The parts of a method. A slot left None is not used: no objective means that the policy itself does not learn."""

    rollout: Rollout | None = None
    reward: Reward | None = None
    credit: Credit | None = None
    objective: Objective | None = None
    weighting: Weighting | None = None
    select: Select | None = None
    measure: Measure | None = None
    also: tuple[Learner, ...] = ()
    loop: Loop | None = None
    study: Study | None = None
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

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Recipe:
        slots = {k: load(v) for k, v in data.items() if k not in ("also", "update", "name")}
        also = tuple(Learner.from_json(x) for x in data["also"])
        return cls(**slots, also=also, update=Update(**data["update"]), name=data["name"])


@dataclass(frozen=True)
class Claim:
    """What a method promises, as its paper says it, fixed before it is run.

    versus: the baseline method or stack, which may be the method itself under other settings.  measure: name of the number
    compared; direction: "higher" or "lower"; margin: the least effect that counts, in units of the measure.  budget: tokens
    that all models together may generate and score, on each side.  against: where there is no baseline, the other number of
    the same run ("before.pass@1"); None: the number itself counts, against 0.  model: None is the task's own.  settings,
    versus_settings: of method and baseline on this world.  by: a Measure for both sides; None: the method's own.  problems:
    held-out ones.
    """

    says: str
    versus: str | None
    task: str
    measure: str
    direction: str
    margin: float
    budget: int | None = None
    against: str | None = None
    model: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    versus_settings: Mapping[str, Any] = field(default_factory=dict)
    by: Measure | None = None
    problems: int = 200


def stack(methods: Sequence[tuple[str, Callable[..., Recipe], dict[str, Any]]]) -> Recipe:
    """Compose methods left to right; a slot that two of them replace is refused by name."""
    base: Recipe | None = None
    replaced: dict[str, str] = {}
    for name, method, settings in methods:
        made = method(base, **settings) if base is not None else method(**settings)
        for slot in _replaced_slots(base, made) if base is not None else ():
            if slot in replaced:
                raise RewardlabError(f"{replaced[slot]} and {name} both replace the {slot}; they cannot be stacked")
            replaced[slot] = name
        for slot in _settled_slots(base, made) if base is not None else ():
            replaced.setdefault(slot, name)
        base = made
    if base is None:
        raise RewardlabError("no method named")
    return base.but(name="+".join(name for name, _, _ in methods))


def _replaced_slots(before: Recipe, after: Recipe) -> list[str]:
    """Slots whose new part does not contain the old one, and learners that are gone or others."""
    old, new = before.parts(), after.parts()
    gone = [s for s, part in old.items() if s in new and new[s] != part and not _keeps(new[s], part)]
    learners = {learner.name: learner for learner in after.also}
    lost = [f"learner {x.name}" for x in before.also if learners.get(x.name) != x]
    return gone + [s for s in old if s not in new] + lost


def _settled_slots(before: Recipe, after: Recipe) -> list[str]:
    """Slots that were extended, or filled for the first time."""
    old, new = before.parts(), after.parts()
    kept = {learner.name for learner in before.also}
    added = [f"learner {x.name}" for x in after.also if x.name not in kept]
    return [s for s, part in new.items() if s not in old or (part != old[s] and _keeps(part, old[s]))] + added


def _keeps(new: Part, old: Part) -> bool:
    """Whether `new` still holds `old`: as a whole, or, for a flattened chain or sum, as its operands in order."""
    if new.contains(old):
        return True
    if type(new) is not type(old) or not old.of:
        return False
    rest = iter(new.of)
    return all(any(part == x for x in rest) for part in old.of)
