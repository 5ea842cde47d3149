"""The slots of a recipe: what each kind of part takes and returns. The options of their decorators are in `options`.

    loss = sum over terms, over units u:  term(u) * weight(u)

The unit of an objective is a token, a row, a group, or the batch. Weights are computed on the whole batch, so cutting it into
micro-batches never changes the gradient; a micro-batch never splits a unit. Rewards have operators too (`rewards/reward.py`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from torch import Tensor

from rewardlab.core.batch import Batch
from rewardlab.core.episode import check_answer, start_of
from rewardlab.core.part import Expression, Part, decorator
from rewardlab.errors import naming
from rewardlab.settings.options import CreditOptions, EnvironmentOptions, ObjectiveOptions, RolloutOptions, WeightingOptions
from rewardlab.util.background import waited


class Rollout(Part):
    """(problems, run) -> groups of trajectories."""

    slot = "rollout"
    option_type = RolloutOptions
    options: RolloutOptions

    @property
    def across_problems(self) -> bool:
        """Whether this rollout, or one that it wraps, keeps a memory or compares problems, so that processes cannot share them."""
        return any(isinstance(part, Rollout) and part.options.across_problems for part in self.walk())

    @property
    def rows_per_problem(self) -> int:
        """Rows sampled per problem, before wrappers drop some."""
        # wrappers filter rows or cut them; only the innermost rollout decides how many are sampled
        sampler: Any = self.innermost
        return sampler.options.rows(**sampler.settings) if sampler.options.rows else int(sampler.settings.get("n", 1))

    @property
    def groups_per_problem(self) -> int:
        """Groups sampled per problem, before wrappers drop some."""
        sampler: Any = self.innermost
        return sampler.options.groups(**sampler.settings) if sampler.options.groups else 1


class Select(Part):
    """(group, scores, run) -> the trajectory that is the answer: one of the group, or a new one made from it."""

    slot = "select"


class Measure(Part):
    """(problems, run) -> {name: number}: a measurement of the policy, or of a reward, on held-out problems."""

    slot = "measure"


class Study(Part):
    """(run) -> {name: number}: an analysis that trains no policy. `run` has a seed and random streams but no policy."""

    slot = "study"


class Environment(Part):
    """Answers the policy: (state, turn) -> (message, state), and `start(problem, seed)` -> (message or None, state).

    The decorated function is one step; the option `start` begins an episode, with the same hyperparameters; both may be async.
    State is plain data: copied to branch, saved to resume. A message of None ends the episode, and so does one that is `last`.
    """

    slot = "environment"
    option_type = EnvironmentOptions
    options: EnvironmentOptions

    def start(self, problem: Any, seed: int) -> tuple[Any, Any]:
        start = self.options.start
        with naming(start, self.name, start_of(problem)) as place:
            opening = waited(start(problem, seed, **self.settings), "environments")
        return check_answer(opening, self.name, place)

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts at which a reply to it ends: its setting of that name, if it has one."""
        return tuple(self.settings.get("stop") or ())

    @property
    def waits(self) -> bool:
        """Whether its answers take time elsewhere, by its option or its setting of that name."""
        said = self.settings.get("waits", self.options.waits)
        return bool(said(**self.settings) if callable(said) else said)

    def logged(self, episodes: list[Any]) -> dict[str, float]:
        """What its option `logged` says of episodes that have ended."""
        return self.options.logged(episodes, **self.settings) if self.options.logged else {}

    def __call__(self, state: Any, turn: Any, place: str = "") -> tuple[Any, Any]:
        """One step. place: of the episode, for messages."""
        with naming(self.function, self.name, place) as place:
            answer = waited(self.function(state, turn, **self.settings), "environments")
        return check_answer(answer, self.name, place)


class Loop(Part):
    """(recipe, run, ops) -> None: one resumable iteration, for methods that do not follow rollout, reward, credit, update."""

    slot = "loop"


class Weighting(Part):
    """(batch) -> weights of its unit: (B, T) for tokens, (B,) for rows, (G,) for groups."""

    slot = "weighting"
    option_type = WeightingOptions
    options: WeightingOptions

    @property
    def unit(self) -> str:
        return self.options.unit


class Objective(Part):
    """(outputs, batch, run) -> one loss per unit; objectives add, and scale by numbers."""

    slot = "objective"
    option_type = ObjectiveOptions
    options: ObjectiveOptions

    @property
    def unit(self) -> str:
        return self.options.unit

    @property
    def wants(self) -> tuple[str, ...]:
        """Outputs of the model that the objective reads."""
        # each output once, in a fixed order
        return tuple(dict.fromkeys(w for leaf in self.leaves() for w in leaf.options.wants))

    @property
    def per_token(self) -> tuple[Callable, ...]:
        """Functions of the logits that are run inside the chunked head."""
        return tuple(_with_settings(leaf.options.per_token, leaf) for leaf in self.leaves() if leaf.options.per_token)

    def terms(self, scale: float = 1.0) -> Iterator[tuple[float, Objective]]:
        """(factor, objective) for each summand; a single objective is its own only summand."""
        yield scale, self

    def leaves(self) -> list[Objective]:
        return [leaf for _, leaf in self.terms()]

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(leaf.unit for leaf in self.leaves()))

    def __add__(self, other: Objective) -> Objective:
        return ObjectiveSum.join(self, other)

    def __rmul__(self, scale: float) -> Objective:
        return ObjectiveScaled(float(scale), self)

    __mul__ = __rmul__


def _with_settings(function: Callable, leaf: Objective) -> Callable:
    """The `per_token` function of an objective, with those of its settings that it has arguments for."""
    names = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    return functools.partial(function, **{name: leaf.settings[name] for name in names}) if names else function


class ObjectiveSum(Expression, Objective):
    symbol, rank = "+", 1

    def terms(self, scale: float = 1.0) -> Iterator[tuple[float, Objective]]:
        for part in self._of:
            yield from part.terms(scale)


class ObjectiveScaled(Expression, Objective):
    symbol, rank = "*", 2

    def terms(self, scale: float = 1.0) -> Iterator[tuple[float, Objective]]:
        # factors multiply on the way down, so 0.5 * (a + 2 * b) yields 0.5 a and 1.0 b
        yield from self._of[1].terms(scale * self._of[0])


class Credit(Part):
    """(credit (B, T), batch, run) -> credit (B, T). Chains by `>>`, starting from `batch.reward`."""

    slot = "credit"
    option_type = CreditOptions
    options: CreditOptions

    def __rshift__(self, other: Credit) -> Credit:
        return Chain.join(self, other)


class Chain(Expression, Credit):
    """Credits one after another, `a >> b`: each changes what the one before returns."""

    symbol: ClassVar[str] = ">>"

    def __call__(self, a: Tensor, batch: Batch, run: Any) -> Tensor:
        for part in self.of:
            a = part(a, batch, run)
        return a


rollout = decorator(Rollout)
select = decorator(Select)
measure = decorator(Measure)
study = decorator(Study)
loop = decorator(Loop)
environment = decorator(Environment)
objective = decorator(Objective)
weighting = decorator(Weighting)
credit = decorator(Credit)
