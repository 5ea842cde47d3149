"""An environment for methods that sample single replies: then they sample episodes, and all else stays as it is.

    rewardlab train grpo --task questions.jsonl --tools mine.py:search,mine.py:lookup
    rewardlab train dapo --task questions.jsonl --corpus docs.jsonl --turns 6
    rewardlab train grpo --task rows.jsonl --env mine.py:game

Methods that play already take `env` themselves, and get it; so `--tools` and `--corpus` go wherever `--env` goes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rewardlab.core import Environment, Measure, Part, Recipe, Rollout, Task
from rewardlab.core.part import Expression
from rewardlab.errors import RewardlabError
from rewardlab.registry.names import PLAYED
from rewardlab.registry.parts import part
from rewardlab.settings.domain import POSITIVE
from rewardlab.settings.hyperparameters import hyperparameters

TURNS = 6
"""Replies of an episode, where neither the user nor the task says how many."""
NOTE = "_answered_by"
"""Where a recipe keeps what `noted` remembers."""


def environment_in(settings: Mapping[str, Any], functions: Iterable[Callable]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of the methods, and those of `played` for what none of them takes: `env` and `turns`.

    `tools`, and `corpus` where no method takes it, become an environment. Raises RewardlabError for two of them.
    """
    theirs = {name for function in functions for name in hyperparameters(function)}
    ours = {name for name in PLAYED if name in settings and name not in theirs}
    named = [name for name in ("env", "tools", "corpus") if name in settings and (name in ours or name == "env")]
    if len(named) > 1:
        raise RewardlabError(f"{' and '.join(named)} both say what answers the policy: give one of them")
    rest = {name: value for name, value in settings.items() if name not in ours}
    found = {name: settings[name] for name in ours}
    if named and (name := named[0]) in ("tools", "corpus"):
        made = _tools(found.pop(name)) if name == "tools" else _corpus(found.pop(name))
        (rest if "env" in theirs else found)["env"] = made
    if "turns" in found and "env" not in found:
        raise no_environment(found["turns"])
    return rest, found


def no_environment(turns: int) -> RewardlabError:
    """What is said where turns are given and nothing answers the policy."""
    return RewardlabError(
        "turns says how long an episode is, and there is no environment: give --env, --tools or --corpus; a task "
        f"with one of its own says them in its name: --task babyai:GoToLocal,turns={turns}"
    )


def noted(recipe: Recipe, given: Mapping[str, Any], episodes: Mapping[str, Any]) -> Recipe:
    """The recipe, which remembers what of these settings says what answers the policy, and whether they say for how many turns.

    The note is not compared and not saved, as `Recipe.made_from`.  episodes: what `played` was given, which has turns of its own
    where none are said.
    """
    said = {key.rpartition(".")[2]: value for key, value in given.items()}
    known = {name: said[name] for name in PLAYED if said.get(name)}
    if episodes:
        known |= {"env": episodes["env"], "turns": episodes.get("turns")}
    # the dataclass is frozen, so a plain assignment would raise
    object.__setattr__(recipe, NOTE, known)
    return recipe


def note_of(recipe: Recipe) -> Mapping[str, Any]:
    """What `noted` remembers of a recipe, or of one that it was made from."""
    return next((note for made in recipe.lineage() if (note := vars(made).get(NOTE))), {})


def answers(task: Task, env: Environment) -> bool:
    """Whether this environment may answer on a task: one that can only be played has its own, unless a file of the user's own plays
    its problems in another way."""
    from rewardlab.envs.external import from_file

    if not (task.played and task.environment):
        return True
    return env.function in (from_file.function, part("environment", task.environment).function)


def refuse_other(task: Task, given: Mapping[str, Any]) -> None:
    """Raise RewardlabError where a user lets something answer that may not on this task.  given: `env`, `tools` and `corpus`."""
    env = given["env"].settings if isinstance(given.get("env"), Environment) else {}
    # env may be what was made of the others
    named = [name for name in ("tools", "corpus", "env") if given.get(name) or env.get(name)]
    if not (task.played and named) or (env and answers(task, given["env"])):
        return
    raise RewardlabError(
        f"{task.name} brings its own environment, {task.environment}, which answers all replies, so that --{named[0]} would do "
        f"nothing: leave out --{named[0]}, or give it with rows of your own (--task questions.jsonl)"
    )


def played(recipe: Recipe, env: Environment, turns: int = TURNS) -> Recipe:
    """The recipe with episodes in this environment in the place of independent replies, in training and in its measure.

    Raises RewardlabError for one that samples otherwise, or not at all.
    """
    from rewardlab.evals.episodes import episode_accuracy
    from rewardlab.rollouts.interactive import interactive

    POSITIVE.check("turns", turns)
    if recipe.rollout is not None and any(isinstance(part, Environment) for part in recipe.rollout.walk()):
        raise RewardlabError(
            f"{recipe.name or 'this recipe'} plays an environment already: make the recipe with the one that you want"
        )
    if recipe.rollout is None or not samples_replies(recipe.rollout):
        how = f"samples by {recipe.rollout.innermost.name}" if recipe.rollout else "samples nothing"
        raise RewardlabError(
            f"{recipe.name or 'this recipe'} {how}, and only independent replies become episodes of an environment: leave out "
            "--env, --tools and --corpus, or take a method that samples episodes or independent replies (grpo, best_of_n ...)"
        )
    made = _changed(recipe, env, turns, lambda part: False)
    if made.measure is not None and not any(isinstance(part, Environment) for part in made.measure.walk()):
        # it samples single replies itself, or none: what is trained is measured
        made = made.but(measure=episode_accuracy(rollout=interactive(env=env, n=1, turns=turns)))
    return made


def as_task(recipe: Recipe, task: Task) -> Recipe:
    """The recipe as it plays a task that has an environment; for any other the same one.

    Independent replies become episodes of it, and a search in a row's documents, which methods make where nothing else is named,
    becomes this environment. On a task that can only be played (`Task.played`), so does every environment but one in a file of the
    user's own. A method that plays already does so with as many turns as it has itself.
    Raises RewardlabError on a task that can only be played for a method whose rollout plays none, and where the user said that
    something else answers.
    """
    from rewardlab.envs.external import from_file
    from rewardlab.envs.search import search

    if task.environment is None or recipe.rollout is None:
        return recipe
    env, given = part("environment", task.environment), note_of(recipe)
    refuse_other(task, given)

    def replaced(found: Environment) -> bool:
        # one that wraps another is the method's own mechanism, and what it wraps is replaced
        return (task.played and found.function is not from_file.function and not found.of) or found == search()

    made = _changed(recipe, env, task.turns, replaced)
    if task.played and given.get("turns", task.turns) is None:
        made = _lasting(made, task.turns)
    assert made.rollout is not None
    if task.played and not any(isinstance(x, Environment) for x in made.rollout.walk()):
        raise RewardlabError(
            f"{task.name} is played in turns, and the rollout {made.rollout} of {recipe.name or 'this recipe'} plays no "
            "environment: train by a method that samples episodes or independent replies (rewardlab train grpo ...)"
        )
    return made


def samples_replies(rollout: Rollout) -> bool:
    """Whether it samples independent replies, which can become episodes."""
    from rewardlab.rollouts.independent import independent

    return rollout.innermost.function is independent.function


def _changed(recipe: Recipe, env: Environment, turns: int, replaced: Callable[[Environment], bool]) -> Recipe:
    """Every slot with this environment for independent replies and their measures, and in the place of what is `replaced`."""
    from rewardlab.evals.episodes import episode_accuracy
    from rewardlab.rollouts.independent import independent
    from rewardlab.rollouts.interactive import interactive

    plays = recipe.rollout is not None and samples_replies(recipe.rollout)

    def change(found: Part) -> Part:
        if isinstance(found, Environment) and replaced(found):
            return env
        if isinstance(found, Rollout) and found.function is independent.function:
            return found.replace_innermost(independent, interactive, env=env, turns=turns)
        return (plays and _of_episodes(found, env, turns)) or found

    slots = {name: changed_in(found, change) for name, found in recipe.parts().items()}
    if recipe.measure is None and plays:
        slots["measure"] = episode_accuracy(rollout=interactive(env=env, n=1, turns=turns))
    same = all(new is recipe.parts().get(name) for name, new in slots.items())
    return recipe if same else recipe.but(**slots)


def in_episodes(measure: Measure | None, env: Environment, turns: int) -> Measure | None:
    """A measure of what a policy replies, with episodes of so many turns in this environment for all that it samples."""
    from rewardlab.rollouts.independent import independent
    from rewardlab.rollouts.interactive import interactive

    def change(part: Part) -> Part:
        if isinstance(part, Environment):
            return env
        if isinstance(part, Rollout) and part.function is independent.function:
            return part.replace_innermost(independent, interactive, env=env, turns=turns)
        if isinstance(part, Rollout) and part.function is interactive.function:
            return part.but(turns=turns)
        return _of_episodes(part, env, turns) or part

    made: Measure | None = changed_in(measure, change)
    return made


def _of_episodes(found: Part, env: Environment, turns: int) -> Measure | None:
    """For a measure that samples single replies itself the one that samples episodes; None for any other part."""
    from rewardlab.evals.episode_curve import episode_curve
    from rewardlab.evals.episodes import episode_accuracy
    from rewardlab.evals.passk import accuracy, coverage, pass_curve
    from rewardlab.rollouts.interactive import interactive

    function = getattr(found, "function", None)
    if function not in (accuracy.function, coverage.function, pass_curve.function):
        return None
    given = found.settings
    each = interactive(env=env, n=given.get("n", 1), temperature=given["temperature"], turns=turns)
    if function is accuracy.function:
        return episode_accuracy(rollout=each)
    return episode_curve(rollout=each, k=given.get("k", 1))


def _lasting(recipe: Recipe, turns: int) -> Recipe:
    """The recipe with episodes of so many turns, in training and in its measure."""
    from rewardlab.rollouts.interactive import interactive

    def change(found: Part) -> Part:
        return found.but(turns=turns) if isinstance(found, Rollout) and found.function is interactive.function else found

    return recipe.but(**{name: changed_in(found, change) for name, found in recipe.parts().items()})


def changed_in(value: Any, change: Callable[[Part], Part]) -> Any:
    """A part, or what holds parts, with `change` applied to every part in it, inner ones first."""
    if isinstance(value, Expression):
        return type(value)(*(changed_in(x, change) for x in value._of))
    if isinstance(value, Part):
        inner = {name: changed_in(x, change) for name, x in value.bound.items()}
        new = {name: x for name, x in inner.items() if x is not value.bound[name]}
        return change(value.but(**new) if new else value)
    if isinstance(value, tuple):
        each = tuple(changed_in(x, change) for x in value)
        return each if any(a is not b for a, b in zip(each, value, strict=True)) else value
    return value


def _tools(names: Any) -> Environment:
    if isinstance(names, str):
        listed: list[Any] = [name.strip() for name in names.split(",")]
    else:
        listed = [names] if callable(names) or isinstance(names, os.PathLike) else list(names)
    from rewardlab.envs.functions import functions, place_of, tools_of

    # a saved recipe finds the file from anywhere
    placed = tuple(f"{path.resolve()}:{name}" for path, name in (place_of(_named(tool)) for tool in listed))
    # what is missing or wrong is reported now, not after the model is loaded
    tools_of(placed)
    return functions(tools=placed)


def _named(tool: Any) -> str:
    """FILE.py:NAME of a tool, by which other processes and a run that is resumed find it. Raises RewardlabError where they do
    not."""
    from rewardlab.rewards.user.in_python import module_file

    if isinstance(tool, str | os.PathLike):
        return os.fspath(tool)
    if (file := module_file(tool)) is None:
        name = getattr(tool, "__name__", repr(tool)[:60])
        raise RewardlabError(
            f"the tool {name} is in no file from which it can be imported (a lambda, an object, a function of a script or a "
            f'notebook): write it at the top of a file, and give "FILE.py:{name}", or import it from there'
        )
    return f"{file}:{tool.__qualname__}"


def _corpus(corpus: str) -> Environment:
    from rewardlab.envs.search import tools

    return tools(None, corpus)
