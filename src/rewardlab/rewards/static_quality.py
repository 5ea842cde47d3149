"""Static quality of a Python unit test: what can be read in its syntax tree, without running it."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from typing import Literal

from rewardlab.core import Score, Trajectory
from rewardlab.errors import RewardlabError, unknown
from rewardlab.rewards.reward import reward
from rewardlab.text.blocks import last_block
from rewardlab.text.unit_tests import UNREADABLE

FLAGS = ("syntax", "assertion", "focal", "no_duplicates", "no_conditionals", "comment", "descriptive_name")
FOCAL = "focal"
LONGEST = 20_000
"""Characters of a test; a longer one has no quality."""
_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_RAISES = ("raises", "fail")
_WORD = re.compile(r"[a-z]{3,}")


def quality_flags(reply: str, focal: str) -> dict[str, bool]:
    """Which properties of a good test a reply has; none where it cannot be parsed, or holds no test.

    focal: the function or method under test.
    syntax: it is Python, with a function whose name begins with "test".  assertion: it asserts something.  focal: it calls `focal`.
    no_duplicates: no assertion stands there twice.  no_conditionals: no branch, loop or handler of exceptions.  comment: a comment
    or a docstring.  descriptive_name: each test's name has a word of three letters beside "test".
    """
    code = last_block(reply) or reply
    try:
        tree = ast.parse(code) if len(code) <= LONGEST else None
        asserts = [ast.dump(node) for node in _assertions(tree)] if tree else []
    except UNREADABLE:
        tree = None
    tests = [n for n in ast.walk(tree) if isinstance(n, _FUNCTIONS) and n.name.startswith("test")] if tree else []
    if tree is None or not tests:
        return dict.fromkeys(FLAGS, False)
    nodes = list(ast.walk(tree))
    return {
        "syntax": True,
        "assertion": bool(asserts),
        "focal": any(_called(n) == focal for n in nodes if isinstance(n, ast.Call)),
        "no_duplicates": len(set(asserts)) == len(asserts),
        "no_conditionals": not any(isinstance(n, _BRANCHES) for n in nodes),
        "comment": any(ast.get_docstring(test) for test in tests) or _has_comment(code),
        "descriptive_name": all(_WORD.search(test.name.removeprefix("test").lower()) for test in tests),
    }


def _assertions(tree: ast.Module) -> list[ast.AST]:
    """Statements `assert`, and calls such as self.assertEqual(...) and pytest.raises(...)."""
    return [
        n for n in ast.walk(tree)
        if isinstance(n, ast.Assert) or (isinstance(n, ast.Call) and (_called(n).startswith("assert") or _called(n) in _RAISES))
    ]  # fmt: skip


def _called(call: ast.Call) -> str:
    """The name of what is called: f of f(x) and of a.b.f(x)."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _has_comment(code: str) -> bool:
    # a "#" within a string is no comment, so the tokens decide
    try:
        return any(token.type == tokenize.COMMENT for token in tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError):
        return False


@reward
def static_quality(
    trajectory: Trajectory,
    *,
    flags: tuple[
        Literal["syntax", "assertion", "focal", "no_duplicates", "no_conditionals", "comment", "descriptive_name"], ...
    ] = FLAGS,  # type: ignore[assignment]
) -> Score:
    """The share of these properties that the unit test in the reply has; of one, whether it has it. Nothing is run.

    The row's column `focal` names the function or method under test. The properties are those of `quality_flags`.
    Steenhoek et al. 2023, arXiv:2310.02368
    """
    found = flags_of(trajectory)
    chosen = [found[flag] for flag in checked(flags)]
    lacking = [flag for flag in flags if not found[flag]]
    return Score(sum(chosen) / len(chosen), why=f"lacks {', '.join(lacking)}" if lacking else "")


def flags_of(trajectory: Trajectory) -> dict[str, bool]:
    """The flags of a reply to a row with a column `focal`."""
    focal = trajectory.problem.meta.get(FOCAL)
    if not isinstance(focal, str) or not focal:
        raise RewardlabError(f"problem {trajectory.problem.question[:60]!r} does not name in {FOCAL!r} the function under test")
    return quality_flags(trajectory.reply, focal)


def checked(flags: tuple[str, ...]) -> tuple[str, ...]:
    """The flags. Raises RewardlabError if there are none, or for a name that is no flag."""
    if not flags:
        raise RewardlabError(f"static_quality needs at least one flag of: {', '.join(FLAGS)}")
    for flag in flags:
        if flag not in FLAGS:
            raise unknown("flag of a test's quality", flag, FLAGS)
    return flags
