"""Whether the rows of a task have what a recipe reads: columns, replies, answers; refused in words before anything is trained."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from rewardlab import registry
from rewardlab.api.answered_rows import some_answered
from rewardlab.api.unfit_answers import tell_unfit
from rewardlab.core import Environment, Measure, Problem, Recipe, Task
from rewardlab.data.columns import Data
from rewardlab.data.rated_rows import read_by
from rewardlab.data.values import is_missing
from rewardlab.engine.episodes import environment_of
from rewardlab.envs.external import from_file
from rewardlab.errors import RewardlabError
from rewardlab.registry.names import ASK_VERIFIER
from rewardlab.registry.playing import note_of
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.terms import check_terms
from rewardlab.rewards.user.external import call_of, check_arguments
from rewardlab.rollouts.independent import independent
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.row_columns import OTHER_NAMES
from rewardlab.tasks.sources import Listed
from rewardlab.verifiers.contract import Verifier

BY_REWARD = ", or give a reward that needs no answer with --reward"
"""What stands in place of answers."""


def without_answers(task: Task) -> bool:
    """Whether the problems come from data that has prompts, but no answers; what is played needs none."""
    return "answer" not in task.columns and not task.played


def undecided(task: Task) -> bool:
    """Whether nothing says if a reply is right: the data has no answers, and its verifier compares replies with them."""
    # a world's own verifier may count what holds of a reply, without an answer to compare it with
    return without_answers(task) and isinstance(registry.verifier(task.verifier), Verifier)


def check_answers(recipe: Recipe, task: Task) -> None:
    """Raise RewardlabError if the data has no answers and a part of the recipe, or of one of its learners, needs them."""
    if not without_answers(task):
        return
    compared = undecided(task)
    for part in parts_of(recipe):
        # an environment of the user's comes from a file, too, and takes no columns
        call = call_of(part) if hasattr(part, "function") and isinstance(part, Reward) else None
        if isinstance(part, Verifier) or (compared and part.name in ASK_VERIFIER):
            raise need_answers(task, f"the {part.slot} {part}", instead=BY_REWARD + by_pay(environment_of(recipe)))
        if call and (missing := [name for name in call.gold if name not in task.columns]):
            raise need_answers(task, f"{call.who} takes the argument {missing[0]}, and")


def check_decides(who: str, task: Task) -> None:
    """Raise RewardlabError if the data has no answers for the verifier by which `who` is measured."""
    if undecided(task):
        raise need_answers(task, who, instead=", or name what judges replies with --verifier, such as --verifier mine.py:quality")


def check_engine(recipe: Recipe, config: RunConfig) -> None:
    """Raise RewardlabError where the engine that is asked for cannot run the recipe, before anything is loaded."""
    if config.engine == "trl":
        from rewardlab.backends.trl.refusals import cannot_carry, refuse

        if why := cannot_carry(recipe):
            raise refuse(recipe, why)


OF_TEXTS = ("recorded", "judged", "with_demonstrations")
"""Rollouts whose setting `fields` names columns of replies as texts; the segments of control are none."""


def check_columns(recipe: Recipe, task: Task) -> None:
    """Raise RewardlabError, naming all of them, if rows of a file lack columns that the method says it reads.

    In a stack a method may take over what another one reads, so its parts say themselves what they miss.
    """
    check = functools.partial(_check_rest, recipe, task)
    data = stated_data(recipe.name)
    # a file may be called as a world is
    named = _source(task).partition(":")[0] in registry.tasks()
    if data is None or named or not isinstance(task.train, Listed):
        return check()
    # an environment of one's own says what it needs of a row
    if data.refuses and not note_of(recipe).get("env"):
        raise RewardlabError(f"{recipe.name} takes no rows of text: {data.refuses}")
    problems = (*task.train.problems, *task.test)
    rows = [(place_of(p), as_row(p)) for p in problems]
    missing = data.missing(rows, column_names(recipe))
    # whether an answer is needed, the parts of the recipe know: another reward may compare none
    unanswered = missing.pop("answer", None) is not None
    if missing:
        of_pairs = {"chosen", "rejected"} <= missing.keys()
        raise data.refuse(str(recipe.name), missing, instead_of_pairs(rows[0][1], task) if of_pairs else "")
    if unrated := data.unrated(rows, column_names(recipe)):
        # an output that nothing is told of would stay as it began, and be weighed with the others
        raise RewardlabError(
            f"no row has a number in {' and '.join(map(repr, unrated))}, which --{data.named_by} names; the columns are: "
            f"{', '.join(task.columns)}"
        )
    check()
    if unanswered and undecided(task) and _as_published(recipe):
        raise need_answers(task, str(recipe.name))


def instead_of_pairs(row: Mapping[str, Any], task: Task) -> str:
    """What reads such a row of the task's, which is no pair, in a sentence; "" where it is none of rated replies either."""
    return read_by(row, _source(task), dict((task.source or {}).get("options", {})).get("prompt_column"))


def check_some(recipe: Recipe, task: Task) -> None:
    """Raise RewardlabError for rows to train on of which none has what the method says that some must have."""
    data = stated_data(recipe.name)
    if data is None or not isinstance(task.train, Listed):
        return
    if lacking := data.nowhere(dict(p.meta) for p in task.train.problems):
        raise data.refuse(str(recipe.name), lacking)


def _as_published(recipe: Recipe) -> bool:
    """Whether a recipe has the parts of its method and no others, such as a reward of the user's own. How it measures is its own
    affair."""
    return _functions(recipe) == _functions(registry.build(str(recipe.name)))


def _functions(recipe: Recipe) -> set[Any]:
    return {getattr(part, "function", None) for part in parts_of(recipe) if not isinstance(part, Measure)}


def of_another_kind(recipe: Recipe, task: Task) -> bool:
    """Whether rows of a file are none that the method reads: they lack a column that it needs, or all that it knows."""
    data = stated_data(recipe.name)
    if data is None or data.refuses or not isinstance(task.train, Listed):
        return False
    rows = [as_row(p) for p in task.test]
    known = [name for name in data.columns if name != "prompt" and any(row.get(name) is not None for row in rows)]
    return not known or bool(data.missing((("", row) for row in rows), column_names(recipe)))


def column_names(recipe: Recipe) -> dict[str, str]:
    """The settings of a recipe's parts that may name a column: texts, and by `fields[0]` those in lists."""
    settings = settings_of(recipe)
    listed = {f"{key}[{i}]": x for key, value in settings.items() if isinstance(value, list | tuple) for i, x in enumerate(value)}
    return {key: value for key, value in {**settings, **listed}.items() if isinstance(value, str)}


def settings_of(recipe: Recipe) -> dict[str, Any]:
    """The settings of all parts of a recipe, by name."""
    learned = [learner.problems for learner in recipe.also if learner.problems is not None]
    return {key: value for part in (*parts_of(recipe), *learned) for key, value in getattr(part, "settings", {}).items()}


def _check_rest(recipe: Recipe, task: Task) -> None:
    check_terms(*parts_of(recipe))
    _check_temperature(recipe, task)
    check_answers(recipe, task)
    if any(part.name in ASK_VERIFIER for part in parts_of(recipe)):
        tell_unfit(task)
    _check_arguments(recipe, task)
    _check_replies(recipe, task)


def _check_temperature(recipe: Recipe, task: Task) -> None:
    """Raise RewardlabError where all replies to a problem are equal, and the recipe learns from how they differ.

    What a recipe with one reply to a problem is refused for (`Recipe.validate`); rewards of steps differ within a reply.
    """
    rollout, credit = recipe.rollout, recipe.credit
    if rollout is None or rollout.function is not independent.function or rollout.settings["temperature"] > 0:
        return
    # an environment may answer the same words in other ways
    if recipe.loop is not None or recipe.objective is None or task.played or task.environment:
        return
    compares = next((part for part in credit.walk() if getattr(part.options, "compares_rows", False)), None) if credit else None
    by_steps = recipe.reward and any(getattr(part.options, "steps", False) for part in recipe.reward.walk() if not part.of)
    if compares is not None and not by_steps:
        raise RewardlabError(
            f"the rollout {rollout} gives equal replies at temperature 0, and the credit {compares} compares the replies to a "
            "problem with each other: nothing would be learned; give a temperature above 0, or a credit that does not compare"
        )


def check_accepted(recipe: Recipe, task: Task) -> None:
    """Raise RewardlabError for rows of a file from which nothing is learnt, as a part of the recipe says (`accepts`)."""
    if not isinstance(task.train, Listed):
        return
    for part in parts_of(recipe):
        if (accepts := getattr(part.options, "accepts", None)) is not None:
            accepts([*task.train.problems, *task.test], **part.settings)


def _check_arguments(recipe: Recipe, task: Task) -> None:
    """Raise RewardlabError for a reward function of the user that asks for a column which a row of a file lacks.

    Only where replies are sampled to the rows as they are: other rollouts may add columns of their own.
    """
    plain = recipe.rollout is not None and recipe.rollout.function is independent.function and recipe.loop is None
    if not plain or not isinstance(task.train, Listed):
        return
    # replies to held-out problems are scored by the measure alone
    problems = task.train.problems
    for part in recipe.reward.walk() if recipe.reward else ():
        if (call := call_of(part) if hasattr(part, "function") else None) is not None:
            check_arguments(call, problems, [place_of(p) for p in problems])


def _check_replies(recipe: Recipe, task: Task) -> None:
    """Raise RewardlabError for the first row that has no text where the recipe learns from recorded replies."""
    # a learner with problems of its own reads none of these
    taught = [recipe, *(learner.recipe for learner in recipe.also if learner.problems is None)]
    rollouts = [part for of in taught if of.rollout for part in of.rollout.walk() if part.name in OF_TEXTS]
    # what no row has, the recipe may compute
    read = [(part.name, [name for name in part.settings["fields"] if name in task.columns]) for part in rollouts]
    fields = [(name, columns) for name, columns in read if columns]
    if not fields or not isinstance(task.train, Listed):
        return
    problems = (*task.train.problems, *task.test)
    bad = [(p, why) for p in problems if (why := _no_reply(p, fields))]
    if bad:
        p, why = bad[0]
        more = f" ({len(bad):,} rows are bad; this is the first)" if len(bad) > 1 else ""
        raise RewardlabError(f"{place_of(p)}: {why}{more}")


def _no_reply(p: Problem, fields: list[tuple[str, list[str]]]) -> str:
    """Why a problem has no replies to learn from; "" if it has.  fields: of each rollout; `judged` needs one of them alone."""
    for rollout, names in fields:
        given = [name for name in names if not is_missing(p.meta.get(name))]
        if not given:
            return f"there is no reply to learn from: no {' and no '.join(map(repr, names))}"
        for name in names if rollout != "judged" else given:
            if not _is_said(p.meta.get(name)):
                told = "missing" if p.meta.get(name) is None else f"{p.meta[name]!r:.60}, and no text"
                return f"the reply to learn from, {name!r}, is {told}"
    return ""


def _is_said(value: Any) -> bool:
    """Whether it is a reply, or a conversation of replies and what answers them."""
    texts = value if isinstance(value, list) else [value]
    return bool(texts) and all(isinstance(text, str) and text.strip() for text in texts)


def _source(task: Task) -> str:
    """What the task was named by."""
    return str((task.source or {}).get("name", task.name))


def as_row(p: Problem) -> dict[str, Any]:
    """A problem by the columns that methods name; its pictures, if it shows any, stand under `images`."""
    shown = [image for m in p.prompt for image in m.images]
    return {"prompt": p.question, "answer": p.answer, **p.meta, **({"images": shown} if shown else {})}


def place_of(p: Problem) -> str:
    return p.place or f"prompt {p.question[:40]!r}"


def parts_of(recipe: Recipe) -> Iterator[Any]:
    """Every part of a recipe and of those of its learners."""
    recipes = (recipe, *(learner.recipe for learner in recipe.also))
    return (part for one in recipes for slot in one.parts().values() for part in slot.walk())


def stated_data(name: str | None) -> Data | None:
    """The data that a method states; None for a stack, and where it is not known by name."""
    return registry.data_of(name) if name and name in registry.methods() else None


def by_pay(env: Environment | None) -> str:
    """What else can judge the episodes of an environment in a user's file, which may pay; "" for any other."""
    own = env is not None and env.function is from_file.function
    return ", or judge episodes by what the environment pays in all, right from 1 on: --verifier earned" if own else ""


def need_answers(task: Task, who: str, instead: str = BY_REWARD) -> RewardlabError:
    where = _source(task)
    if told := some_answered(task):
        return RewardlabError(f"{who} needs answers in every row: {told}")
    others = ", ".join(task.columns[1:]) or "none"
    meant = next((f" (did you mean {name}?)" for name in OTHER_NAMES["answer"] if name in task.columns), "")
    return RewardlabError(
        f"{who} needs answers, and the problems of {where} have none: there is no column 'answer' (columns besides the prompt: "
        f"{others}). Name the column with --answer-column{meant}{instead}"
    )
