"""Options of the slots' decorators, such as `@objective(unit="row", needs=("ref",))`, and how they are checked.

Each slot lists its options as a dataclass. A misspelt option or value raises an error where the function is defined; if it were
ignored, it would silently change what a run computes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import MISSING, dataclass, fields
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from rewardlab.errors import RewardlabError, unknown
from rewardlab.settings.old_names import unknown_setting

Unit = Literal["token", "row", "group", "batch"]
Output = Literal["logprobs", "entropy", "value", "hidden", "values"]


@dataclass(frozen=True, kw_only=True)
class PartOptions:
    """Options of every slot.

    needs: columns of the batch that the engine must compute before the part runs, such as "ref" or "value".
    wraps: the name of the hyperparameter that holds the part which this one wraps.
    check: f(**settings) -> None; raises RewardlabError for settings that make no sense together, where they are written.
    accepts: f(problems, **settings) -> None; raises RewardlabError for rows of data that the part cannot use, before anything is
        loaded. problems: the rows that are trained on, and those that are held out.
    first: of a loop, the settings that say how many of a run's first steps it takes in another way than the recipe says; a run
        must have more steps than their sum.
    """

    needs: tuple[str, ...] = ()
    wraps: str | None = None
    check: Callable | None = None
    accepts: Callable | None = None
    first: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RolloutOptions(PartOptions):
    """across_problems: it keeps a memory, or compares problems, so the problems of a step are not split over processes.

    rows: f(**settings) -> rows per problem; without it, the setting `n` is taken, or 1.
    groups: f(**settings) -> groups per problem; without it, 1.
    rewords: the rows become other questions, such as those to a judge, and rewards are paid for replies to these.
    asks: f(problem, **settings) -> the questions that a row may become, which must leave room for a reply in place of its prompt.
    """

    across_problems: bool = False
    rows: Callable | None = None
    groups: Callable | None = None
    rewords: bool = False
    asks: Callable | None = None


@dataclass(frozen=True, kw_only=True)
class EnvironmentOptions(PartOptions):
    """start: begins an episode, (problem, seed) -> (message or None, state), with the same hyperparameters.

    waits: its answers take time elsewhere (a server, a tool, the sandbox), so it is asked by threads, for several episodes at once;
        as a bool or as f(**settings) -> bool.
    logged: f(episodes, **settings) -> {name: number}, of episodes that have ended, which is logged with a step's other numbers.
    """

    start: Callable
    waits: bool | Callable = False
    logged: Callable | None = None


@dataclass(frozen=True, kw_only=True)
class CreditOptions(PartOptions):
    """compares_rows: it compares the rows of a group, so that an outcome reward gives a group of one row no credit."""

    compares_rows: bool = False


@dataclass(frozen=True, kw_only=True)
class WeightingOptions(PartOptions):
    """unit: what one weight is for: a token, a row, a group or the batch."""

    unit: Unit = "token"


@dataclass(frozen=True, kw_only=True)
class ObjectiveOptions(PartOptions):
    """unit: what one loss is for: a token, a row, a group or the batch.  wants: outputs of the model that it reads.

    per_token: f(logits (n, V), ids (n,)) -> {name: (n,)}, run inside the chunked head with gradient; its results are in
    `outputs.extra[name]`. Keyword-only arguments of f are settings of the objective, by name.
    """

    unit: Unit = "token"
    wants: tuple[Output, ...] = ("logprobs",)
    per_token: Callable | None = None


@dataclass(frozen=True, kw_only=True)
class RewardOptions(PartOptions):
    """over: what the function scores in one call.  steps: it rewards steps, not whole replies.

    relative: whether what a reply earns depends on the other replies of its group, so that one alone shows nothing, as a bool or as
    f(**settings) -> bool. None: it does where `over` is "group".
    differentiable: g(x, problem, **settings), the same reward of decisions x (n, *shape) as a tensor (n,), with gradient.
    """

    over: Literal["trajectory", "group", "groups"] = "trajectory"
    steps: bool = False
    relative: bool | Callable | None = None
    differentiable: Callable | None = None


@dataclass(frozen=True, kw_only=True)
class OperatorOptions(PartOptions):
    """over: what the function reads in one call.  steps: with one operand, it is applied to each of its step rewards.

    relative: as of a reward.
    """

    over: Literal["number", "trajectory", "group", "groups", "weights"] = "number"
    steps: bool = False
    relative: bool | Callable | None = None


@dataclass(frozen=True, kw_only=True)
class VerifierOptions(PartOptions):
    """over: whether the function judges one (reply, answer) pair in a call, or all pairs.

    modules: what it imports from packages of the extra `verify`.
    """

    over: Literal["pair", "pairs"] = "pair"
    modules: tuple[str, ...] = ()


def is_relative(reward: Any) -> bool:
    """Whether what a reply earns depends on the other replies of its group (the option `relative` of its parts)."""

    def compares(part: Any) -> bool:
        said = getattr(part.options, "relative", None)
        if callable(said):
            return bool(said(**part.settings))
        return getattr(part.options, "over", None) == "group" if said is None else said

    return any(compares(part) for part in reward.walk())


Kind = TypeVar("Kind", bound=PartOptions)


def checked(kind: type[Kind], slot: str, function: Callable, options: dict[str, Any]) -> Kind:
    """The options of a decorated function. Raises RewardlabError for one that is unknown, missing or of the wrong kind."""
    # get_type_hints, because annotations are strings under `from __future__ import annotations`
    known, hints = {f.name: f for f in fields(kind)}, get_type_hints(kind)
    for name, value in options.items():
        if name not in known:
            raise unknown_setting(f"option of @{slot}", name, known)
        if not _fits(value, hints[name]):
            raise _misfit(f"{name} of @{slot} for {function.__name__}", value, hints[name])
    missing = [name for name, f in known.items() if f.default is MISSING and name not in options]
    if missing:
        raise RewardlabError(f"@{slot} of {function.__name__} needs the option {' and '.join(missing)}")
    return kind(**options)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value has the annotated type; only the kinds of annotation used above are known."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in arguments
    if origin is UnionType:
        return any(_fits(value, member) for member in arguments)
    if origin is tuple:
        # needs="ref" instead of ("ref",) would be read letter by letter
        return isinstance(value, tuple) and all(_fits(x, arguments[0]) for x in value)
    return callable(value) if hint is Callable else isinstance(value, hint)


def _misfit(what: str, value: Any, hint: Any) -> RewardlabError:
    # the allowed words, for a suggestion: of tuple[Literal[...], ...] or of Literal[...] itself
    choices = get_args(get_args(hint)[0]) if get_origin(hint) is tuple else get_args(hint) if get_origin(hint) is Literal else ()
    if not choices:
        return RewardlabError(f"{what} must be {getattr(hint, '__name__', hint)}, not {value!r}")
    wrong = next((x for x in value if x not in choices), value) if isinstance(value, tuple) else value
    return unknown(what, str(wrong), choices)


# ---- What functions take, as parts and decorators show it to `help()` and to an editor -------------------------------


def call_signature(function: Callable, operands: Collection[str] = ()) -> inspect.Signature:
    """How a part is called: with the function's hyperparameters, and with its operands; what it runs on is not given then."""
    parameters = inspect.signature(function).parameters.values()
    return inspect.Signature([p for p in parameters if p.kind is p.KEYWORD_ONLY or p.name in operands])


def plainly(signature: inspect.Signature) -> str:
    """A signature without its annotations."""
    return str(inspect.Signature([p.replace(annotation=p.empty) for p in signature.parameters.values()]))


def describe_decorator(decorate: Any, slot: str, about: str, options: type[PartOptions]) -> None:
    """Give the decorator of a slot its name, its options as a signature, and a docstring."""
    listed = [
        inspect.Parameter(
            f.name, inspect.Parameter.KEYWORD_ONLY, annotation=f.type,
            default=inspect.Parameter.empty if f.default is MISSING else f.default,
        )
        for f in fields(options)
    ]  # fmt: skip
    function = inspect.Parameter("function", inspect.Parameter.POSITIONAL_ONLY, default=None)
    decorate.__name__ = decorate.__qualname__ = slot
    decorate.__signature__ = inspect.Signature([function, *listed])
    # the options of every slot come last
    texts = dict.fromkeys(inspect.cleandoc(cls.__doc__ or "") for cls in options.__mro__ if issubclass(cls, PartOptions))
    decorate.__doc__ = "\n\n".join([inspect.cleandoc(about), *texts])
