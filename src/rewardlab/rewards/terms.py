"""The names of a reward's terms, before it scores anything: two of one name could not be told apart."""

from __future__ import annotations

from typing import Any

from rewardlab.core.part import Part
from rewardlab.rewards.operator import Operator
from rewardlab.rewards.reward import Constant, Gate, Named, Product, Reward, Scaled, Sum
from rewardlab.rewards.scores import same_name
from rewardlab.rewards.user.external import call_of
from rewardlab.verifiers.contract import Verifier


def check_terms(*parts: Part) -> None:
    """Raise RewardlabError where rewards are joined whose terms have one name, as scoring by them would."""
    for part in (inner for outer in parts for inner in outer.walk()):
        if isinstance(part, Reward):
            _names(part)


def _names(part: Reward) -> list[str]:
    """The terms of a reward; one whose function names its terms itself counts as one, by how it is written."""
    if isinstance(part, Constant):
        return []
    if isinstance(part, Scaled):
        return _names(part._of[1])
    if isinstance(part, Named):
        return _renamed(_names(part._of[0]), part._of[0].label, part.label)
    if isinstance(part, Sum) or (isinstance(part, Operator) and part.over == "weights"):
        return _joined(part)
    if isinstance(part, Product | Gate | Operator):
        return _apart([*_joined(part), part.label])
    return [_name(part)]


def _joined(part: Reward) -> list[str]:
    operands = part.operands if isinstance(part, Operator) else part.of
    return _apart([name for operand in operands if isinstance(operand, Reward) for name in _names(operand)])


def _apart(names: list[str]) -> list[str]:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise same_name(name)
    return names


def _renamed(names: list[str], label: str, name: str) -> list[str]:
    main = names[0] if len(names) == 1 else label
    return [name if k == main else f"{name}.{k.removeprefix(f'{main}.')}" for k in names]


def _name(part: Any) -> str:
    """The name of a function's term, where it is surely this one; else how the part is written, which equals that of its equals."""
    if isinstance(part, Verifier) or part.name == "correct":
        return part.name
    if part.name in ("from_file", "from_module", "from_python"):
        call = call_of(part)
        # a Score may have terms of any name
        plain = call is not None and call.path.is_file() and "Score" not in call.path.read_text("utf-8", "replace")
        return call.name if call is not None and plain else str(part)
    returned = part.function.__annotations__.get("return")
    return part.name if returned is not None and "Score" not in str(returned) else str(part)
