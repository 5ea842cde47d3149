"""What z3 can prove of a method and two contracts. Runs in a worker process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import z3

from .language import Contract, Method, Tree, read_contract, read_method

PATHS = 64
"""Most ways through a method."""
_SORTS = {"int": z3.IntSort(), "bool": z3.BoolSort()}
_NUMBERS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a % b,
}
_COMPARE = {"<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}
_TRUTHS = {"&&": z3.And, "||": z3.Or, "==>": z3.Implies, "<==>": lambda a, b: a == b}

PARTS = ("changed", "reads", "trivial", "verifies", "weaker", "stronger")
Env = dict[str, Any]


class Changed(ValueError):
    """The code of a method is not that of the gold method."""


def judge(text: str | None, gold: str, effort: int) -> dict[str, Any]:
    """What is proved of a contract against the annotated method `gold`.

    text: the contract, alone or on the method; None to test only whether the gold method keeps its own contract.  effort: of each
    proof, in z3's units, which unlike seconds do not depend on the machine.

    {"changed", "reads", "trivial", "verifies", "weaker", "stronger", "why"}; {"unusable": reason} where the gold method cannot be
    read, or does not keep its contract.
    """
    try:
        method, kept = _gold(gold, effort)
    except ValueError as problem:
        return {"unusable": f"the gold method cannot be read: {problem}"}
    if not kept:
        return {"unusable": "the gold method is not proved to keep its contract"}
    if text is None:
        return {}
    try:
        said = stated(text, method)
        verifies = keeps(method, said, effort)
    except ValueError as problem:
        return {**dict.fromkeys(PARTS, False), "changed": isinstance(problem, Changed), "why": str(problem)}
    weaker, stronger = implied(method, said, effort)
    found = {"verifies": verifies, "weaker": weaker, "stronger": stronger}
    why = ", ".join(f"{'' if holds else 'not '}{name}" for name, holds in found.items())
    return {"changed": False, "reads": True, "trivial": said.trivial, **found, "why": why}


@lru_cache(maxsize=1024)
def _gold(text: str, effort: int) -> tuple[Method, bool]:
    """The gold method, and whether it keeps its contract. Kept, since all replies to a problem are compared with it."""
    method = read_method(text)
    return method, keeps(method, method.contract, effort)


def stated(text: str, method: Method) -> Contract:
    """The contract that a text states. Raises ValueError where it cannot be read, or the method's code is another."""
    if text.split(None, 1)[:1] != ["method"]:
        return read_contract(text)
    said = read_method(text)
    if said.code != method.code:
        raise Changed("the code of the method was changed")
    return said.contract


def keeps(method: Method, contract: Contract, effort: int) -> bool:
    """Whether every way through the method that meets what is required proves its assertions, and ensures what is said."""
    inputs = _variables(method.inputs)
    required = _all(contract.requires, inputs)
    for conditions, asserted, env in _paths(method, inputs):
        ensured = _all(contract.ensures, {name: env[name] for name in (*method.inputs, *method.results)})
        # an assertion may use what was assumed before it alone, and those before it
        for known, claim in (*asserted, (conditions, ensured)):
            if not _proved(effort, claim, required, *known):
                return False
    return True


def implied(method: Method, said: Contract, effort: int) -> tuple[bool, bool]:
    """Whether it requires at most what the gold contract does, and ensures at least as much where that holds, of any result."""
    inputs = _variables(method.inputs)
    everything = inputs | _variables(method.results)
    required = _all(method.contract.requires, inputs)
    weaker = _proved(effort, _all(said.requires, inputs), required)
    stronger = _proved(effort, _all(method.contract.ensures, everything), required, _all(said.ensures, everything))
    return weaker, stronger


def _proved(effort: int, claim: Any, *known: Any) -> bool:
    solver = z3.Solver()
    solver.set("rlimit", effort)
    solver.add(*known, z3.Not(claim))
    return solver.check() == z3.unsat


def _variables(types: dict[str, str]) -> Env:
    return {name: z3.Const(name, _SORTS[kind]) for name, kind in types.items()}


def _all(clauses: Sequence[Tree], env: Env) -> Any:
    return z3.And(*[_truth(clause, env) for clause in clauses])


def _paths(method: Method, inputs: Env) -> Iterator[tuple[list[Any], list[tuple[list[Any], Any]], Env]]:
    """Each way through the body: its conditions, its assertions with what is known at each, and the variables at its end."""
    # results have any value until they are set
    start = inputs | _variables(method.results)
    waiting: list[tuple[list[Tree], list[Any], list[tuple[list[Any], Any]], Env]] = [(method.body, [], [], start)]
    seen = 0
    while waiting:
        statements, known, asserted, env = waiting.pop()
        if not statements:
            yield known, asserted, env
            continue
        (kind, *parts), *rest = statements
        if kind == "if":
            seen += 1
            if seen > PATHS:
                raise ValueError(f"there are over {PATHS} ways through the method")
            condition = _truth(parts[0], env)
            waiting += [
                (parts[2] + rest, [*known, z3.Not(condition)], asserted, env),
                (parts[1] + rest, [*known, condition], asserted, env),
            ]
        elif kind == "assert":
            claim = _truth(parts[0], env)
            waiting.append((rest, [*known, claim], [*asserted, (known, claim)], env))
        elif kind == "return":
            waiting.append(([], known, asserted, env | _returned(method, parts[0], env)))
        else:
            name, value = parts
            waiting.append((rest, known, asserted, env | _assigned(kind, name, value, method, env)))


def _returned(method: Method, tree: Tree, env: Env) -> Env:
    if len(method.results) != 1:
        raise ValueError("return with a value needs a method of one result")
    (name,) = method.results
    return {name: _of_sort(_value(tree, env), env[name])}


def _assigned(kind: str, name: str, tree: Tree, method: Method, env: Env) -> Env:
    if (name in env) == (kind == "var"):
        raise ValueError(f"{name} is {'declared twice' if kind == 'var' else 'not declared'}")
    if name in method.inputs:
        raise ValueError(f"the input {name} cannot be set")
    value = _value(tree, env)
    return {name: value if kind == "var" else _of_sort(value, env[name])}


def _of_sort(value: Any, like: Any) -> Any:
    if value.sort() != like.sort():
        raise ValueError(f"a value of type {value.sort()} where {like.sort()} is needed")
    return value


def _truth(tree: Tree, env: Env) -> Any:
    return _of_sort(_value(tree, env), z3.BoolVal(True))


def _value(tree: Tree, env: Env) -> Any:
    kind, *parts = tree
    if kind == "int":
        return z3.IntVal(parts[0])
    if kind == "bool":
        return z3.BoolVal(parts[0])
    if kind == "name":
        if parts[0] not in env:
            raise ValueError(f"{parts[0]} is not declared")
        return env[parts[0]]
    values = [_value(part, env) for part in parts]
    if kind == "if":
        return z3.If(_of_sort(values[0], z3.BoolVal(True)), values[1], _of_sort(values[2], values[1]))
    if kind in ("==", "!="):
        same = values[0] == _of_sort(values[1], values[0])
        return same if kind == "==" else z3.Not(same)
    like = z3.BoolVal(True) if kind == "!" or kind in _TRUTHS else z3.IntVal(0)
    values = [_of_sort(value, like) for value in values]
    if kind in ("/", "%") and not (z3.is_int_value(values[1]) and values[1].as_long()):
        # its proof that nothing is divided by zero is left out, so a divisor is a number
        raise ValueError(f"{kind} needs a number other than 0 on its right")
    if kind == "!":
        return z3.Not(values[0])
    return -values[0] if kind == "neg" else (_NUMBERS | _COMPARE | _TRUTHS)[kind](*values)
