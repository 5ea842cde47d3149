"""Rewards, and the operators that combine them.

A reward takes all groups of a step at once and returns a Score for each trajectory. Rewards add, multiply, scale and gate:

    correct() + 0.2 * format_ok()          a sum; every named term is kept, unweighted, in `terms`
    correct() * productivity()             a product
    format_ok() >> correct()               a gate: the right side is paid where the left is positive, else the left's value
    1 - length()                           a number is a reward that pays every rollout the same, and has no term

A value of None means "no verdict": judging failed. It is never turned into a zero: a sum or product with it is None too.

A product or a gate is not a sum: it has a term of its own, named after its operands, and the operands' terms are kept without a
weight. So a score is always a weighted sum of terms, plus constants.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from rewardlab.core.part import Expression, Part, PartFactory, decorator
from rewardlab.core.problem import Message, Problem
from rewardlab.core.score import Score, Scores, Term
from rewardlab.core.trajectory import Group, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.rewards.call_timeout import Watch
from rewardlab.rewards.calling import Arguments, results_of
from rewardlab.rewards.returned import blamed, file_of, is_ours, row_of, rows_of, scored, who_of
from rewardlab.rewards.scores import add, derive, merge_terms, scale
from rewardlab.settings.hyperparameters import MAKERS, advice, check_reward, is_number, positional, takes_plain
from rewardlab.settings.options import PartOptions, RewardOptions


class Reward(Part):
    """(groups, run) -> scores, with `+ - * >>`, scaling by numbers, and `.named(name)`."""

    slot = "reward"
    option_type: ClassVar[type[PartOptions]] = RewardOptions
    options: RewardOptions

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # verifiers and operators score in ways of their own, and are called with a text as easily
        if (own := vars(cls).get("__call__")) is not None:
            type.__setattr__(cls, "__call__", _of_groups(own))

    @classmethod
    def check_function(cls, function: Callable, options: Any) -> None:
        # the functions of operators and verifiers, which are rewards too, have arguments of another kind
        if isinstance(options, RewardOptions):
            check_reward(function, options.over)

    @property
    def label(self) -> str:
        """The name of the term that holds this reward. A sum has no term of its own; its label is used to name products of it."""
        return self.name

    def __call__(self, groups: list[Group], run: Any = None) -> Scores:
        check_groups(self, groups)
        raw = self._returned(groups, run)
        read = functools.partial(scored, self.function, self.options.steps)
        pairs = [zip(row, group, strict=True) for row, group in zip(raw, groups, strict=True)]
        return [[read(x, t, f"rollout {i} of group {g}") for i, (x, t) in enumerate(row)] for g, row in enumerate(pairs)]

    def _returned(self, groups: list[Group], run: Any) -> list[list[Any]]:
        """What the function returns, for each rollout of each group."""
        # a function of one argument does not need the run
        run_argument = (run,) if len(positional(self.function)) > 1 else ()
        if self.options.over == "groups":
            (rows,) = self._results([Arguments((groups, *run_argument), self.settings, f"{sum(map(len, groups))} rollouts")], run)
        elif self.options.over == "group":
            places = (f"group {g}" for g in range(len(groups)))
            calls = [Arguments((group, *run_argument), self.settings, at) for group, at in zip(groups, places, strict=True)]
            rows = self._results(calls, run)
        else:
            flat = [(f"rollout {i} of group {g}", t) for g, group in enumerate(groups) for i, t in enumerate(group)]
            results = iter(self._results([Arguments((t, *run_argument), self.settings, at) for at, t in flat], run))
            return [[next(results) for _ in group] for group in groups]
        rows = rows_of(self.name, rows, len(groups))
        return [row_of(self.name, row, len(group), g) for g, (row, group) in enumerate(zip(rows, groups, strict=True))]

    def _results(self, calls: list[Arguments], run: Any) -> list[Any]:
        if is_ours(self.function):
            return [self.function(*call.positional, **call.named) for call in calls]
        # a function of the user may hang, or call sys.exit
        with Watch(who_of(self.function), file_of(self.function), getattr(run, "reward_timeout", 0.0)) as watch:
            return results_of(self.function, calls, watch, lambda error, place: blamed(watch.where(error), error, place))

    def score(self, reply: str, answer: Any = None, prompt: str = "", **columns: Any) -> Score:
        """The score of one reply that is given as a text, to try a reward out.  columns: of its row, by name.

        What the reward reads of a run beside the reply, such as log-probs or a task's verifier, is not there.
        """
        # a command that only names rewards should not wait for torch
        from rewardlab.core import Run

        # bytes stand for tokens, since there is no tokenizer
        ids = np.frombuffer(reply.encode("utf-8", "replace"), np.uint8).astype(np.int64)
        turns = (Turn(None, np.zeros(1, np.int64), text=prompt), Turn("policy", ids, text=reply))
        return self([[Trajectory(Problem((Message("user", prompt),), answer, columns), turns, "end")]], Run(None))[0][0]

    @property
    def per_rollout(self) -> bool:
        """Whether the reward of a rollout depends on that rollout alone."""
        return all(getattr(part.options, "over", None) not in ("group", "groups", "weights") for part in self.walk())

    def differentiable(self, x: Any, problem: Any) -> Any:
        """(n,) rewards of decisions x (n, *shape), with gradient. Raises RewardlabError for a reward that has none."""
        gradient = getattr(self.options, "differentiable", None)
        if gradient is None:
            raise RewardlabError(f"{self} has no gradient: it cannot say in which direction a decision would be better")
        return gradient(x, problem, **self.settings)

    def named(self, name: str) -> Reward:
        if not isinstance(name, str) or not name:
            raise RewardlabError(f"the name of a reward must be a text, not {name!r}")
        return Named(self, name)

    def __add__(self, other: Any) -> Reward:
        return Sum.join(self, as_reward(other))

    def __radd__(self, other: Any) -> Reward:
        # Python's sum() starts from 0, which must not become an outcome of 0
        return self if other == 0 else Sum.join(as_reward(other), self)

    def __mul__(self, other: Any) -> Reward:
        # a number scales the weight of each term, so that terms stay apart; a product makes one new term
        return Scaled(float(other), self) if is_number(other) else Product.join(self, as_reward(other))

    def __rmul__(self, other: Any) -> Reward:
        return Scaled(float(other), self) if is_number(other) else Product.join(as_reward(other), self)

    def __truediv__(self, other: Any) -> Reward:
        if not is_number(other) or other == 0:
            by = "0" if is_number(other) else "a reward, which may be 0" if isinstance(other, Reward) else repr(other)
            raise RewardlabError(f"cannot divide {self} by {by}: divide by a number, or use an operator of your own (@operator)")
        return Scaled(1.0 / float(other), self)

    def __rtruediv__(self, other: Any) -> Reward:
        raise RewardlabError(f"cannot divide by the reward {self}, which may be 0: use an operator of your own (@operator)")

    def __neg__(self) -> Reward:
        return -1.0 * self

    def __sub__(self, other: Any) -> Reward:
        return self + (-other if is_number(other) else -as_reward(other))

    def __rsub__(self, other: Any) -> Reward:
        return other + -1.0 * self

    def __rshift__(self, other: Any) -> Reward:
        return Gate.join(self, as_reward(other))

    def _compared(self, other: Any) -> Any:
        raise RewardlabError(
            f"cannot compare {self} with {other!r}: its value is known only when rollouts are scored. Write threshold(x, at=...), "
            "maximum(x, y) or minimum(x, y), and x >> y for a condition"
        )

    __lt__ = __le__ = __gt__ = __ge__ = _compared


def _of_groups(scores: Callable[..., Scores]) -> Callable[..., Scores]:
    @functools.wraps(scores)
    def checked(self: Reward, groups: list[Group], run: Any = None) -> Scores:
        check_groups(self, groups)
        return scores(self, groups, run)

    return checked


def check_groups(reward: Reward, groups: Any) -> None:
    """Raise RewardlabError where a reward is called with a text, as the function behind it is, and not with groups of rollouts."""
    if isinstance(groups, list | tuple) and not any(isinstance(group, str | Trajectory) for group in groups):
        return
    judges = "check" if hasattr(reward, "check") else "score"
    raise RewardlabError(
        f"{reward} reads groups of trajectories, not the {type(groups).__name__} {str(groups)[:60]!r}; to judge a text: "
        f'part("reward", {reward.name!r}).{judges}(reply, answer)'
    )


def as_reward(x: Any) -> Reward:
    """A reward unchanged; a number becomes the reward that pays it to every rollout, and a plain function one that calls it.

    The function's arguments are given by name, as those of one in a file are: completion, answer, any column ... (docs/REWARDS.md).
    """
    if is_number(x):
        return Constant(float(x))
    if isinstance(x, PartFactory):
        raise RewardlabError(f"cannot combine a reward with {x.__name__}: forgot to call it? Write {x.__name__}(...)")
    if takes_plain("reward", x):
        return MAKERS["reward"](x)
    if not isinstance(x, Reward):
        raise RewardlabError(f"cannot combine a reward with {x!r}: it is neither a reward nor a finite number{advice(x)}")
    return x


class Constant(Expression, Reward):
    """The same number for every rollout. It has no term, since it does not distinguish replies."""

    rank = 3

    @property
    def label(self) -> str:
        return str(self)

    def __call__(self, groups: list[Group], run: Any = None) -> Scores:
        return [[Score(terms={}, constant=self._of[0]) for _ in group] for group in groups]

    def differentiable(self, x: Any, problem: Any) -> Any:
        return x.new_full((len(x),), self._of[0])


class _Combined(Expression, Reward):
    """Rewards joined by an operator that works score by score."""

    rank = 1

    @property
    def label(self) -> str:
        return self.symbol.join(self._labelled(x) for x in self._of)

    def _labelled(self, x: Reward) -> str:
        inner: Any = x
        # names of terms leave factors out, so the brackets depend on what is scaled
        while isinstance(inner, Scaled):
            inner = inner._of[1]
        return f"({x.label})" if isinstance(inner, Expression) and inner.rank < self.rank else x.label

    def __call__(self, groups: list[Group], run: Any = None) -> Scores:
        # columns[k][g][i]: the score of rollout i of group g by operand k
        columns = [part(groups, run) for part in self.of]
        return [[self.combine([c[g][i] for c in columns]) for i in range(len(group))] for g, group in enumerate(groups)]

    def combine(self, scores: list[Score]) -> Score:
        raise NotImplementedError(f"{type(self).__name__} does not define how scores are combined")


class Sum(_Combined):
    symbol, rank = "+", 1

    def __str__(self) -> str:
        return self._bracket(self._of[0]) + "".join(self._signed(x) for x in self._of[1:])

    __repr__ = __str__

    def _signed(self, x: Any) -> str:
        # `a - 0.2 * b` reads better than `a + -0.2 * b`; for both, _of[0] is the number
        negative = isinstance(x, Scaled | Constant) and x._of[0] < 0
        if negative and isinstance(x, Scaled):
            return f" - {x._bracket(x._of[1])}" if x._of[0] == -1 else f" - {Scaled(-x._of[0], x._of[1])}"
        return f" - {Constant(-x._of[0])}" if negative else f" + {self._bracket(x)}"

    def combine(self, scores: list[Score]) -> Score:
        return add(scores)

    def differentiable(self, x: Any, problem: Any) -> Any:
        return sum(part.differentiable(x, problem) for part in self._of)


class Product(_Combined):
    symbol, rank = "*", 2

    def combine(self, scores: list[Score]) -> Score:
        # two lists of steps have no common positions to multiply at
        stepped = [s for s in scores if s.steps]
        if len(stepped) > 1:
            raise RewardlabError(f"{self}: at most one factor may reward steps")
        values = [s.value for s in scores if s.value is not None]
        if len(values) < len(scores):
            return derive(self.label, None, scores)
        if not stepped:
            return derive(self.label, Term(math.prod(values)), scores)
        # one factor has step rewards: the values of the others multiply each of them, and its outcome if it has one
        factor = math.prod(s.value or 0.0 for s in scores if s is not stepped[0])
        outcome = math.prod(values) if stepped[0].has_outcome else None
        return derive(self.label, Term(outcome, tuple((t, r * factor) for t, r in stepped[0].steps)), scores)


class Gate(_Combined):
    """The last reward if the totals of all rewards before it are positive; otherwise the first whose total is not positive."""

    symbol, rank = ">>", 0

    def combine(self, scores: list[Score]) -> Score:
        # a condition without a verdict closes the gate, and the result has no verdict either
        closed = (s for s in scores[:-1] if s.total is None or s.total <= 0)
        score = next(closed, scores[-1])
        return derive(self.label, None if score.missing else score.as_term(), scores)


class Scaled(_Combined):
    symbol, rank = "*", 2

    @property
    def label(self) -> str:
        return self._of[1].label

    def combine(self, scores: list[Score]) -> Score:
        return scale(scores[0], self._of[0])

    def differentiable(self, x: Any, problem: Any) -> Any:
        return self._of[0] * self._of[1].differentiable(x, problem)


class Named(_Combined):
    """A reward whose term has another name. If it has several terms, the others get the name as a prefix."""

    rank = 3

    @property
    def label(self) -> str:
        return self._of[1]

    def __str__(self) -> str:
        return f"{self._bracket(self._of[0])}.named({self._of[1]!r})"

    __repr__ = __str__

    def combine(self, scores: list[Score]) -> Score:
        (inner, name), terms = self._of, scores[0].terms
        # a single term takes the name itself, whatever it was called; of several, the one that holds the reward does
        main = next(iter(terms)) if len(terms) == 1 else inner.label
        renamed = ({name if k == main else f"{name}.{k.removeprefix(f'{main}.')}": t} for k, t in terms.items())
        return replace(scores[0], terms=merge_terms(renamed))

    def differentiable(self, x: Any, problem: Any) -> Any:
        return self._of[0].differentiable(x, problem)


reward = decorator(
    Reward,
    about="""Turn a function into a reward.

over="trajectory" (default): f(trajectory[, run], *, ...) -> float | None | Score
over="group": f(group[, run], *, ...) -> one of these per trajectory;  over="groups": f(groups[, run], *, ...) -> a list of lists
steps=True: the function returns a list of (token position, reward) in place of each number
differentiable=g: g(x, problem, *, ...) -> the same reward of decisions x (n, *shape) as a tensor (n,), with gradient
""",
)


def _of_function(function: Any) -> Reward:
    # by name: it makes rewards, so that it imports this module
    made: Reward = importlib.import_module("rewardlab.rewards.user.in_python").reward_of(function)
    return made


MAKERS["reward"] = _of_function
