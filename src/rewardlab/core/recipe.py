"""A recipe: a method as the composition of its parts."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal

from rewardlab.core.part import Part, PartFactory
from rewardlab.core.slots import Credit, Loop, Measure, Objective, Rollout, Select, Weighting
from rewardlab.errors import RewardlabError, unknown
from rewardlab.settings.domain import Decay, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share, check_values
from rewardlab.settings.hyperparameters import MAKERS, advice, takes_plain

SLOTS = ("rollout", "reward", "credit", "objective", "weighting", "select", "measure", "loop", "study")
"""The fields of a recipe that hold one part, of the slot of that name."""


@dataclass(frozen=True)
class Update:
    """How optimiser steps are made from a batch. Every field is a command-line flag.

    problems: problems per training step.  epochs, minibatches: passes over the batch, and optimiser steps per pass (groups are
    never split).  lr falls linearly to `lr_end * lr` after `warmup` steps; None is what suits the model and the kind of
    loss (`engine/rates.py`).  clip_norm: the largest norm of the gradient over all parameters.
    loss_kind: rewards of own replies, imitation, preferences, or labels that a model of values or rewards learns ("scorer").
    small_lr: the rate of a small model, where that of its kind of loss does not suit.
    """

    problems: PositiveInt = 16
    # Adam's steps are about lr long whatever the gradient is, so a rate above 1 is a slip (3e4 for 3e-4)
    lr: Share | None = None
    lr_end: Share = 1.0
    warmup: NonNegativeInt = 0
    epochs: PositiveInt = 1
    minibatches: PositiveInt = 1
    clip_norm: PositiveFloat = 1.0
    weight_decay: NonNegativeFloat = 0.0
    beta1: Decay = 0.9
    beta2: Decay = 0.99
    # what a method says of its loss, and no setting of its user's
    loss_kind: Literal["reward", "imitation", "preference", "scorer"] = field(default="reward", metadata={"setting": False})
    small_lr: Share | None = field(default=None, metadata={"setting": False})

    def __post_init__(self) -> None:
        check_values(Update, {f.name: getattr(self, f.name) for f in fields(Update)})

    @property
    def rate(self) -> float:
        """`lr` where it is known, as in a loop: the engine fills it in before the first step."""
        if self.lr is None:
            raise RewardlabError("the learning rate is not known before a model is: give lr, or ask engine.rates.rate_of")
        return self.lr


PRINCIPLES = "principles"
"""What a learner reads whose prompts end with principles (`text/principles.py`)."""
REFERENCE = "a reference beside the reply"
"""What a learner reads whose prompts hold a reference (`text/reference.py`)."""


@dataclass(frozen=True)
class Learner:
    """A second model that learns beside the policy: a critic, a reward model, an opponent.

    init: "copy:policy", "value-head" (the policy's trunk with a scalar head), "value-head:surprise" (the same, which also reads how
    surprised the policy was at each token), "value-head:words=Yes,No" (whose value starts as the difference of their log-probs),
    "heads:A,B" (vocabulary heads of these names on the policy's trunk), "prefix:count=4,size=16" or "prefix:FOLDER" (an assistant
    that writes latents before prompts, fresh or trained), the path of a checkpoint,
    "embedded:TASK" (the small policy of that task), or "embedded:TASK:judge" (one that was taught to judge). A language model gets
    a scalar head where it is to learn values. "energy:INIT": a reward model with an energy head (`policies/energy.py`).
    "attributes:A=0.7,B=0.3:INIT": one with an output for each of these attributes (`policies/attributes.py`).
    "prm:PATH": a scorer of steps, as `rewards/process.py` reads it; it does not learn, whatever `every` says.
    problems: a part (groups, scores, run) -> the problems that this learner samples for itself; without it, the learner trains on
    the policy's rollouts, with its own credit and objective, and its own reward if it has one: on the policy's decisions, or on its
    own where it made some in these rollouts.  every: steps between its updates; 0 freezes it.
    reads: what a reward model is taught to read besides prompt and reply. "": nothing.  PRINCIPLES: whoever uses it states them.
    Else words that complete "it reads ...": whoever would show it prompt and reply alone is refused with these words.
    """

    name: str
    init: str
    recipe: Recipe
    problems: Part | None = None
    every: NonNegativeInt = 1
    reads: str = ""

    def __post_init__(self) -> None:
        check_values(Learner, {"every": self.every}, of=f" of the learner {self.name}")

    def to_json(self) -> dict[str, Any]:
        problems = self.problems.to_json() if self.problems else None
        return {
            "name": self.name,
            "init": self.init,
            "recipe": self.recipe.to_json(),
            "problems": problems,
            "every": self.every,
            # only where it says something, so that what is keyed by a recipe keeps its key
            **({"reads": self.reads} if self.reads else {}),
        }


def with_surprise(init: str, surprise: bool = True) -> str:
    """A learner's init, for a value head that also reads surprise if `surprise`. Raises RewardlabError for other inits."""
    if surprise and init != "value-head":
        raise RewardlabError(f"surprise is for a value head on the policy's own trunk, and not for {init!r}: leave out one of them")
    return f"{init}:surprise" if surprise else init


@dataclass(frozen=True)
class Recipe:
    """The parts of a method. A slot that is None is not used: without an objective, the policy is not trained."""

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

    made_from: ClassVar[Recipe | None] = None
    """The recipe that `but` changed to make this one. As a class variable it is not a field: it is neither compared nor saved."""

    def __post_init__(self) -> None:
        for slot in SLOTS:
            object.__setattr__(self, slot, _of_slot(slot, getattr(self, slot)))
        # the name is the key of a learner's model and of its columns in a batch
        for name, count in Counter(learner.name for learner in self.also).items():
            if count > 1:
                raise RewardlabError(f"two learners are named {name}; give one another name")

    def but(self, **changes: Any) -> Recipe:
        """This recipe with some slots changed; fields of `update` may be named directly.

        Raises RewardlabError for an unknown slot, and for a value that is not a part of that slot.
        """
        slots, update_fields = ({f.name for f in fields(of)} for of in (self, Update))
        # list(): the loop removes items from the dict that it goes through
        update = {k: changes.pop(k) for k in list(changes) if k in update_fields and k not in slots}
        for name in changes:
            if name not in slots:
                raise unknown("slot", name, slots | update_fields)
        if update:
            changes["update"] = replace(changes.get("update", self.update), **update)
        changed = replace(self, **changes)
        # the dataclass is frozen, so a plain assignment would raise
        object.__setattr__(changed, "made_from", self)
        return changed

    def scored_by(self, reward: Part) -> Recipe:
        """This recipe with another reward, by which a rollout that searches (its setting `score`) searches too."""
        reward = _of_slot("reward", reward)
        searches = self.rollout is not None and "score" in self.rollout.innermost.settings
        return self.but(reward=reward, **({"rollout": self.rollout.but_innermost(score=reward)} if searches else {}))  # type: ignore[union-attr]

    def validate(self) -> Recipe:
        """This recipe; RewardlabError if its settings, each of which is allowed, make no sense together."""
        if self.rollout and self.objective:
            self._check_rows(self.rollout)
            self._check_minibatches(self.rollout)
        return self

    def _check_rows(self, rollout: Rollout) -> None:
        """Refuse a credit that compares the rows of a group if there is one row."""
        credit_parts = self.credit.walk() if self.credit else ()
        compares = next((part for part in credit_parts if getattr(part.options, "compares_rows", False)), None)
        # rewards of steps differ within a row
        by_steps = self.reward and any(getattr(part.options, "steps", False) for part in self.reward.walk() if not part.of)
        if compares and not by_steps and rollout.rows_per_problem == 1:
            raise RewardlabError(
                f"the rollout {rollout} gives 1 reply per problem, and the credit {compares} compares the replies to a problem "
                "with each other: nothing would be learned; give n = 2 or more, or a credit that does not compare"
            )

    def _check_minibatches(self, rollout: Rollout) -> None:
        """Refuse more optimiser steps per pass than there are groups to split."""
        groups = self.update.problems * rollout.groups_per_problem
        # a rollout that keeps groups, or makes its own problems, may give more
        if self.update.minibatches > groups and not rollout.across_problems:
            raise RewardlabError(
                f"minibatches is {self.update.minibatches}, and a step has {groups} groups, which are never split: "
                f"give at most {groups} minibatches, or more problems (it is {self.update.problems})"
            )

    def required(self, slot: str) -> Any:
        """The part in a slot, for a method that extends it. Raises RewardlabError if the slot is empty."""
        if (part := getattr(self, slot)) is None:
            raise RewardlabError(f"{self.name or 'the recipe'} has no {slot} to build on")
        return part

    def lineage(self) -> Iterator[Recipe]:
        """This recipe, the one it was made from by `but`, and so on to the first."""
        recipe: Recipe | None = self
        while recipe is not None:
            yield recipe
            recipe = recipe.made_from

    def parts(self) -> dict[str, Part]:
        return {slot: part for slot in SLOTS if (part := getattr(self, slot)) is not None}

    @property
    def learns(self) -> bool:
        """Whether training by this recipe changes a model: the policy or a second learner's."""
        return self.objective is not None or self.loop is not None or any(learner.every for learner in self.also)

    @property
    def needs(self) -> tuple[str, ...]:
        own = (n for part in self.parts().values() for n in part.needs)
        return tuple(dict.fromkeys((*own, *(n for learner in self.also for n in learner.recipe.needs))))

    @property
    def sampling_settings(self) -> Mapping[str, Any]:
        """Settings of the innermost rollout, which samples; wrappers only filter or cut its rows."""
        return self.rollout.innermost.settings if self.rollout else {}

    @property
    def rewords(self) -> bool:
        """Whether the rows become other questions, such as those to a judge, so that rewards are not paid for replies to theirs."""
        return self.rollout is not None and any(getattr(part.options, "rewords", False) for part in self.rollout.walk())

    @property
    def rows_per_problem(self) -> int:
        """Rows that the rollout samples per problem, before filters drop some."""
        return self.rollout.rows_per_problem if self.rollout else 1

    def __repr__(self) -> str:
        """The formula, for a notebook."""
        return f"Recipe {self.name or '(no name)'}\n{self}"

    def __str__(self) -> str:
        lines = [f"{slot:<10} {part}" for slot, part in self.parts().items()]
        changed = [f"{f.name}={v!r}" for f in fields(Update) if (v := getattr(self.update, f.name)) != f.default]
        lines.append(f"{'update':<10} Update({', '.join(changed)})")
        for learner in self.also:
            inner = "\n".join(f"  {line}" for line in str(learner.recipe).splitlines())
            source = f", on {learner.problems}" if learner.problems else ""
            lines.append(f"{'also':<10} {learner.name} from {learner.init!r}, every {learner.every}{source}:\n{inner}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {slot: part.to_json() for slot, part in self.parts().items()}
        return data | {
            "also": [learner.to_json() for learner in self.also],
            "update": dataclasses.asdict(self.update),
            "name": self.name,
        }


def _of_slot(slot: str, value: Any) -> Any:
    if value is None or (isinstance(value, Part) and value.slot == slot):
        return value
    if takes_plain(slot, value):
        return MAKERS[slot](value)
    if isinstance(value, PartFactory):
        raise RewardlabError(f"the {slot} is a part that was not called: write {value.__name__}(...)")
    what = f"a part of the slot {value.slot}" if isinstance(value, Part) else f"not a part but {type(value).__name__}"
    raise RewardlabError(f"{value!r} cannot be the {slot}: it is {what}{advice(value) if slot == 'reward' else ''}")
