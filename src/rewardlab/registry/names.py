"""Early checks of names by reading files, before torch is imported."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
from importlib.machinery import PathFinder
from pathlib import Path

from rewardlab.errors import RewardlabError, unknown
from rewardlab.registry.find import PACKAGE, base_of, file_of, names_in, spell
from rewardlab.registry.index import class_fields_in, function_in
from rewardlab.registry.parts import is_part, parts_of_methods, shared_parts
from rewardlab.settings.domain import NAME

SOURCE = re.compile(r"((.+\.py|[A-Za-z_][\w.]*):\w+(\(.*\))?|.+\.py)(\?as=\w+)?", re.S)
"""FILE.py:function, MODULE:function, with or without settings, or FILE.py; and the convention of the function."""
FILE = re.compile(r"[\w./~-]*[\w/]\.py(?::\w+(?:\(.*?\))?)?(?:\?as=\w+)?", re.S)
"""A file in a formula, perhaps with a function of it."""
PREFIX = "prm:"
"""Before the checkpoint of a process reward model that is to be the reward."""
TRAINED = "model:"
"""Before the checkpoint of a reward model, a sequence classifier."""
JUDGES = ("judge", "judged_reasoning", "double_elimination")
"""Rewards that ask a model for judgements, by their setting `model`."""
OF_RUNS = ("policy", "reference")
"""Names of models that a run has of itself."""
ASK_VERIFIER = (
    "correct", "solved_between", "monte_carlo_steps", "binary_search_steps", "chance_from_here", "self_denoised_steps",
    "reachable_steps", "sampled_pass_rate",
)  # fmt: skip
"""Parts that need the task's verifier."""
READ_LOGPROBS = ("likelihood",)
"""Rewards that read the log-probs with which a reply was sampled."""

PLAYED = {
    "env": "what answers replies: FILE.py:NAME (FILE.py, if it has one), or an environment of rewardlab, NAME or NAME(x=1)",
    "tools": "Python functions that the policy may call: FILE.py:NAME (FILE.py, if it has one), several with commas between",
    "corpus": "a file of documents to search",
    "turns": "replies of an episode at most (default 6)",
}
"""Settings of every method that samples replies (`playing.py`), and what they are."""
A_MODEL = (
    "the folder of a model: a reward model is the reward as --reward model:{0} (docs/REWARDS.md, A reward model), a process reward "
    "model as --reward prm:{0}"
)
"""What to do with a checkpoint that is given as a reward."""


def is_checkpoint(name: str) -> bool:
    """Whether a name is the folder of a checkpoint or a run."""
    return (Path(name).expanduser() / "config.json").is_file()


def check_methods(stack: str) -> None:
    """Raise RewardlabError for a method of a stack that does not exist."""
    for name in names_in(stack):
        file_of(name)


def settings_of(stack: str) -> set[str] | None:
    """The names of a stack's settings, those of the update and of the method that it builds on among them; None if a method's file
    does not tell.
    """
    known = {*class_fields_in(PACKAGE / "core" / "recipe.py", "Update"), *PLAYED}
    for name in (*names_in(stack), *filter(None, [base_of(stack)])):
        try:
            known |= {setting for setting, _, _ in function_in(file_of(name), spell(name), "method").settings}
        except (StopIteration, SyntaxError, ValueError):
            return None
    return known


def check_reward(written: str) -> None:
    """Raise RewardlabError for a reward whose file, module or name does not exist. Formulas are checked where they are read."""
    NAME.check("a reward", written)
    name = written.partition(":")[0]
    # a process reward model is looked at where the run begins: that needs torch
    if written.startswith((PREFIX, TRAINED)):
        return
    check_quotes(written)
    if is_part("reward", name) or ("(" in written and not SOURCE.fullmatch(written)) or '"' in written:
        return
    if SOURCE.fullmatch(written):
        check_source(written)
    elif is_checkpoint(name):
        raise RewardlabError(f"{name} is {A_MODEL.format(name)}")
    else:
        raise unknown("reward part", name, [known for slot, known in {*shared_parts(), *parts_of_methods()} if slot == "reward"])


def _is_call(code: str) -> bool:
    try:
        return isinstance(ast.parse(code, mode="eval").body, ast.Call)
    except (SyntaxError, ValueError):
        return False


def check_quotes(written: str) -> None:
    """Raise RewardlabError, with the formula as it should be, for one in which files stand without quotes."""
    # the search for files takes time that grows with the square of a long text
    if ".py" not in written:
        return
    if (whole := re.fullmatch(r"[^-+*>()]*\.py:\w+(\(.*\))(\?as=\w+)?", written, re.S)) and _is_call(f"f{whole[1]}"):
        return
    # blanks in the place of what stands in quotes already
    outside = re.sub(r"\"[^\"]*\"|'[^']*'", lambda found: "\0" * len(found[0]), written)
    places = [found.span() for found in FILE.finditer(outside)]
    rest = "".join(" " if any(a <= i < b for a, b in places) else c for i, c in enumerate(outside))
    # a file by itself may have any name
    if not places or not re.search(r"[-+*>()]", rest) or Path(re.split(r":\w+(\(|\?|$)", written)[0]).expanduser().is_file():
        return
    for start, end in reversed(places):
        written = f'{written[:start]}"{written[start:end]}"{written[end:]}'
    raise RewardlabError(f"in a formula files stand in double quotes: '{written}'")


def check_source(written: str) -> None:
    """Raise RewardlabError if the file or module that holds a function does not exist."""
    where = re.sub(r"(:\w+(\(.*\))?)?(\?as=\w+)?$", "", written, count=1, flags=re.S)
    if where.endswith(".py"):
        from rewardlab.rewards.user.functions import existing

        existing(Path(where))
        return
    # the package alone: to look for a module in it would import it
    package = where.partition(".")[0]
    if not (importlib.util.find_spec(package) or PathFinder.find_spec(package, [os.getcwd()])):
        raise RewardlabError(f"there is no module {package}; is it installed in this environment?")
