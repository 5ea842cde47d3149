"""Read rewards written as text: a name, a function in a file of your own, or a formula.

    correct    length_penalty:per_token=0.01    mine.py:score    mine.py:made(by=2)    mine.py:score?as=verl    package.module:score
    prm:PATH    model:PATH
    format_ok(pattern=".+####.+") >> correct() - 0.1 * "mine.py:cost"

A formula is what a recipe prints for its reward: + - * >>, numbers, brackets, .named("..."), rewards and operators by name with
their settings, and files in quotes. It is parsed, not evaluated: nothing else of Python has a meaning in it.
"""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from rewardlab.core import Environment
from rewardlab.core.part import PartFactory
from rewardlab.errors import RewardlabError
from rewardlab.registry.named_tasks import parse_options
from rewardlab.registry.names import PREFIX, TRAINED, check_quotes
from rewardlab.registry.parts import is_part, part
from rewardlab.registry.settings import fit
from rewardlab.rewards.reward import Reward, as_reward
from rewardlab.rewards.user.conventions import split
from rewardlab.rewards.user.functions import find, find_in_module, only_function, prepared
from rewardlab.settings.domain import NAME

FUNCTION = re.compile(r"(.+\.py|[A-Za-z_][\w.]*):\w+(\(.*\))?", re.S)
"""FILE.py:function or MODULE:function, with or without settings."""
SERVED = "openai:"
"""Before the address of a served model."""
SIGNS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.RShift: operator.rshift,
}


def read_verifier(name: str) -> Reward:
    """The verifier of this name, as a task states it; a formula, or a function of one's own (FILE.py:NAME). openai:URL#NAME is a
    served model that compares answers.
    """
    if name.startswith(SERVED):
        return part("reward", "judged_answer", model=name)
    return part("reward", name) if name.isidentifier() else read_reward(name)


def read_reward(written: str) -> Reward:
    """The reward that a text stands for. Raises RewardlabError that quotes what cannot be read."""
    NAME.check("a reward", written)
    if written.startswith(PREFIX):
        return part("reward", "prm_steps", model=absolute(written))
    if written.startswith(TRAINED):
        return part("reward", "model_score", model=absolute(written))
    check_quotes(written)
    place, convention = split(written)
    if place.endswith(".py"):
        return _of_file(Path(place), only_function(Path(place)), None, convention)
    if FUNCTION.fullmatch(place):
        name, settings = called(place)
        where, _, function = name.rpartition(":")
        if where.endswith(".py"):
            return _of_file(Path(where), function, settings, convention)
        if not is_part("reward", where):
            return _of_module(where, function, settings, convention)
    if "(" in written or '"' in written:
        return _of_formula(written)
    name, _, options = written.partition(":")
    return part("reward", name, **parse_options(options))


def reward_from(given: Any) -> Reward:
    """The reward that is given in Python: a reward, its text as of --reward, a plain function, or several, which are added up."""
    if isinstance(given, list | tuple):
        if not given:
            raise RewardlabError("which reward? The list of rewards is empty")
        return functools.reduce(operator.add, map(reward_from, given))
    if isinstance(given, str | os.PathLike):
        return read_reward(os.fspath(given))
    if isinstance(given, PartFactory):
        raise RewardlabError(f"the reward {given.__name__} was not called: write {given.__name__}(...)")
    if isinstance(given, bool | int | float):
        raise RewardlabError(f"{given!r} is not a reward: it is the same number for every reply")
    return as_reward(given)


def read_environment(written: str) -> Environment:
    """The environment that a text stands for: NAME or NAME(x=1) of the package, or FILE.py:NAME (FILE.py, if it has only one),
    perhaps with settings."""
    from rewardlab.envs.external import environment_in, only_environment

    name, settings = called(written)
    where, _, function = (name, ":", only_environment(Path(name))) if name.endswith(".py") else name.rpartition(":")
    if not where.endswith(".py"):
        return part("environment", name, **settings or {})
    # what is missing or wrong is reported now, not after the model is loaded
    env = environment_in(where, function, settings)
    own = _given(settings=settings, stop=env.stop or None, waits=env.waits or None)
    return part("environment", "from_file", path=str(Path(where).expanduser().resolve()), function=function, **own)


def environment_from(given: Any, name: str = "env") -> Environment:
    """The environment that is given in Python: an environment, or its text as of --env. Raises RewardlabError for anything else.

    name: of the setting or argument, for the error.
    """
    if isinstance(given, str | os.PathLike):
        return read_environment(os.fspath(given))
    if isinstance(given, PartFactory):
        raise RewardlabError(f"the environment {given.__name__} was not called: write {given.__name__}(...)")
    if not isinstance(given, Environment):
        raise RewardlabError(
            f"{name} must be an environment (what a function with @environment returns) or name one (FILE.py:NAME), "
            f"not {given!r:.60}"
        )
    return given


def with_parts(functions: Iterable[Callable], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a stack of methods, in which a text, or a path, for one that is a reward or an environment is what it stands for.

    Raises RewardlabError for an environment that is none.
    """
    kinds = (("Reward", read_reward), ("Environment", read_environment))
    of_methods = {name: reader for function in functions for kind, reader in kinds for name in _settings_of_kind(function, kind)}
    # every method that samples replies takes an environment (`playing.py`)
    takers = {"env": read_environment, **of_methods}
    readers = {key: takers.get(key.rpartition(".")[2]) for key in settings}
    return {key: _setting_read(readers[key], key, value) for key, value in settings.items()}


def _setting_read(reader: Callable[[str], Any] | None, key: str, value: Any) -> Any:
    """The setting as its reader, if it has one, reads a text or a path."""
    if reader is read_environment:
        return value if value is None else environment_from(value, key)
    return reader(os.fspath(value)) if reader is not None and isinstance(value, str | os.PathLike) else value


def _settings_of_kind(function: Callable, kind: str) -> Iterator[str]:
    for parameter in inspect.signature(function).parameters.values():
        said = parameter.annotation
        # a string under `from __future__ import annotations`
        kinds = re.split(r"\s*\|\s*", said) if isinstance(said, str) else get_args(said) or (said,)
        if kind in (getattr(x, "__name__", x) for x in kinds):
            yield parameter.name


def absolute(scorer: str) -> str:
    """prm:PATH or model:PATH with a folder made absolute, so that a saved recipe finds it from anywhere; a name on the hub is left
    as it is."""
    prefix = TRAINED if scorer.startswith(TRAINED) else PREFIX
    place, mark, query = scorer.removeprefix(prefix).partition("?")
    path = Path(place).expanduser()
    return f"{prefix}{path.resolve() if path.exists() else place}{mark}{query}"


def called(text: str) -> tuple[str, dict[str, Any] | None]:
    """`name(x=1)` as its name and settings; the settings of a name alone are None."""
    match = re.fullmatch(r"(.+?)\((.*)\)", text, re.S)
    if not match:
        return text, None
    try:
        call = ast.parse(f"f({match[2]})", mode="eval").body
        assert isinstance(call, ast.Call)
        if call.args:
            raise ValueError("settings are given by name")
        return match[1], {str(k.arg): _literal(k.value) for k in call.keywords}
    except (ValueError, SyntaxError, AssertionError) as problem:
        raise RewardlabError(
            f"cannot read the settings of {text}: {problem}; write NAME(x=1, y='text'), and files in quotes in a formula"
        ) from None


def _literal(node: ast.expr) -> Any:
    """A value, in Python's or JSON's notation."""
    # settings may be copied from JSON
    named = {"true": True, "false": False, "null": None}
    return named[node.id] if isinstance(node, ast.Name) and node.id in named else ast.literal_eval(node)


def _of_file(path: Path, function: str, settings: dict[str, Any] | None, convention: str | None) -> Reward:
    # what is missing or wrong is reported now, not after the first rollouts
    prepared(find(path, function), path, settings, convention)
    place = str(path.expanduser().resolve())
    return part("reward", "from_file", path=place, function=function, **_given(settings=settings, convention=convention))


def _of_module(module: str, function: str, settings: dict[str, Any] | None, convention: str | None) -> Reward:
    prepared(find_in_module(module, function), Path(module), settings, convention)
    return part("reward", "from_module", module=module, function=function, **_given(settings=settings, convention=convention))


def _given(**settings: Any) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def _of_formula(written: str) -> Reward:
    try:
        reward = _read(ast.parse(written.strip(), mode="eval").body, written)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        raise RewardlabError(f"cannot read the reward {written[:200]!r}: {e.args[0] if e.args else type(e).__name__}") from e
    if not isinstance(reward, Reward):
        raise RewardlabError(f"{written!r} is not a reward: it is the same number for every reply")
    return reward


def _read(node: ast.expr, written: str) -> Any:
    """A reward or a number."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            # as a float, since `2 >> 1` is a number in Python and `2.0 >> 1` an error, which is reported
            return float(number)
        case ast.Constant(value=str() as file):
            return read_reward(file)
        case ast.UnaryOp(op=ast.USub(), operand=x):
            return -_read(x, written)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in SIGNS:
            try:
                return SIGNS[type(sign)](_read(left, written), _read(right, written))
            except TypeError as e:
                raise RewardlabError(f"{ast.unparse(node)}: a number has no such operator; in {written!r}") from e
        case ast.Call(func=ast.Attribute(value=inner, attr="named"), args=[ast.Constant(value=str() as name)], keywords=[]):
            return _read(inner, written).named(name)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if all(k.arg for k in keywords):
            return _called(name, [_read(x, written) for x in args], {str(k.arg): _setting(k, written) for k in keywords})
    raise RewardlabError(f"{ast.unparse(node)[:80]!r} has no meaning in a reward; in {written[:200]!r}")


def _called(name: str, operands: list[Any], settings: dict[str, Any]) -> Reward:
    if isinstance(model := settings.get("model"), str) and model.startswith((PREFIX, TRAINED)):
        settings = {**settings, "model": absolute(model)}
    reward = part("reward", name, *operands, **settings)
    for key, value in settings.items():
        # after `part`, which reports unknown names; this reports values of the wrong type
        fit(reward.function, key, value)
    return reward


def _setting(pair: ast.keyword, written: str) -> Any:
    try:
        return ast.literal_eval(pair.value)
    except ValueError:
        # a reward may be a setting of another: `verified_preference(model="...", preference=length_penalty())`
        if any(
            isinstance(x, ast.Call) and isinstance(x.func, ast.Name) and is_part("reward", x.func.id) for x in ast.walk(pair.value)
        ):
            return _read(pair.value, written)
        says = f"{pair.arg}={ast.unparse(pair.value)} must be a number, a text, a list or a reward; in {written!r}"
        raise RewardlabError(says) from None
