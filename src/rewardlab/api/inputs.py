"""From the arguments of an API call to objects: the configuration, recipe, task and policy, and the run that they begin."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.api.arguments import check_config, named_task
from rewardlab.api.untaught import tell_untaught
from rewardlab.clients.endpoint import is_served
from rewardlab.core import Problem, Recipe, Run, Task
from rewardlab.data.in_memory import GivenRows, is_rows
from rewardlab.errors import RewardlabError
from rewardlab.models.learners import learner_model
from rewardlab.models.load import Policy, load_policy
from rewardlab.policies.text import TextPolicy
from rewardlab.runs.config import COLUMNS, RunConfig
from rewardlab.runs.named import config_of_run
from rewardlab.settings.sampling import correction
from rewardlab.tasks.sources import Listed, Shuffled
from rewardlab.util.device import device_of, dtype_of
from rewardlab.util.progress import console
from rewardlab.verifiers.contract import Verifier


def configured(
    config: RunConfig | None, model: str | Policy | None, task: Task | Path | str | None, changes: Mapping[str, Any]
) -> RunConfig:
    """The configuration with these changes, and with model and task where they are names; objects cannot be part of it.

    Raises RewardlabError for an argument of the wrong kind, and for a device that is not there.
    """
    check_config(config)
    named = {name: value for name, value in (("model", model), ("task", named_task(task))) if isinstance(value, str)}
    if is_rows(test := changes.get("test")):
        changes = {**changes, "test": GivenRows.of(test, "test rows", "test row")}
    config = (config or RunConfig()).but(**named, **changes)
    device_of(config.device)
    return config


def as_in_run(
    model: str | Policy | None, task: Task | Path | str | None, changes: Mapping[str, Any]
) -> tuple[RunConfig, Task | str | None]:
    """The configuration and task to measure a model with: where it is a run, the run's own, but for what is given.

    A run's task comes with its held-out file, columns and system message, and its chat template is told what the run told it. Other
    problems of the user's own are read with the same columns and system message; a task of ours has its own. Without a task or a
    run, a held-out file (`test`) is the task.
    """
    task = named_task(task)
    if (document := config_of_run(model)) is None:
        task = changes.get("test") if task is None else task
        return configured(None, model, task, changes), task
    was, source = RunConfig.from_json(document), document.get("source")
    taken = {name: getattr(was, name) for name in ("overlong", "max_new") if name not in changes}
    # of others that are given the run's template takes those that they do not name
    if was.chat_template_kwargs and "chat_template_kwargs" not in changes:
        taken["chat_template_kwargs"] = was.chat_template_kwargs
    if task is None:
        if not source:
            raise RewardlabError(f"which task? that of the run {model} was made in Python; give a task")
        options = {**source["options"], **{name: value for name, value in changes.items() if name in COLUMNS}}
        task = registry.task(source["name"], **options)
        changes = {name: value for name, value in changes.items() if name not in COLUMNS}
        _say(model, {"task": source["name"], **options, **taken})
        return configured(None, model, task, {**taken, **changes}), task
    if isinstance(task, str) and task.partition(":")[0] not in registry.tasks():
        taken |= {name: getattr(was, name) for name in COLUMNS if name != "test" and name not in changes}
    _say(model, taken)
    return configured(None, model, task, {**taken, **changes}), task


def _say(run: Any, taken: Mapping[str, Any]) -> None:
    usual = {field.name: field.default for field in fields(RunConfig)}
    # what goes without saying is left out: "overlong error" reads as if something had failed
    settings = ", ".join(f"{name} {value}" for name, value in taken.items() if value not in (None, usual.get(name)))
    if not settings:
        return
    console.print(f"as in {run}: {settings}", highlight=False, markup=False, soft_wrap=True)


def recipe_of(recipe: Recipe | str, settings: Mapping[str, Any] | None = None, reward: Any = None) -> Recipe:
    """A recipe as it is, or that of a method's name under these settings.  reward: in place of its own (`formula.reward_from`)."""
    made = registry.build(recipe, settings or {}) if isinstance(recipe, str) else recipe.validate()
    if reward is None:
        return made
    from rewardlab.registry.formula import reward_from

    return made.scored_by(reward_from(reward))


def in_environment(recipe: Recipe, task: Task) -> Recipe:
    """The recipe as it plays the task, where that has an environment (`registry/playing.py`).

    Raises RewardlabError where it cannot, for a search engine behind an address that does not answer, and for an environment of the
    user's that cannot begin the first problem, before a model is loaded.
    """
    from rewardlab.api.first_rows import check_engines, check_start
    from rewardlab.registry.playing import as_task

    made = as_task(recipe, task)
    check_engines(*made.parts().values())
    check_start(made, task)
    return made


def require_learning(recipe: Recipe) -> None:
    """Raise RewardlabError for a recipe that cannot be trained, since no model would change."""
    name = recipe.name or "this recipe"
    if recipe.study is not None:
        raise RewardlabError(f"{name} is a study and trains no policy; run it with: rewardlab study {name}")
    if recipe.select is not None and not recipe.learns:
        raise RewardlabError(
            f"{name} selects answers and trains nothing; run it with: rewardlab answer {name} --task TASK, or compare it with a "
            f"method that trains: rewardlab compare {name} METHOD"
        )
    if not recipe.learns:
        raise RewardlabError(f"{name} trains nothing: it has no objective, no loop and no learner that is updated")


def require_weights(model: Any) -> None:
    """Raise RewardlabError for a model, or a model's name, whose weights are with a server or in 8 bits, or that has none."""
    from rewardlab.policies import recorded
    from rewardlab.policies.llama import int8
    from rewardlab.policies.served import CANNOT_TRAIN, ServedPolicy

    if model == recorded.NAME or isinstance(model, recorded.RecordedPolicy):
        raise RewardlabError(recorded.CANNOT_TRAIN)
    if is_served(model) or isinstance(model, ServedPolicy):
        raise RewardlabError(CANNOT_TRAIN)
    if int8.in_int8(model):
        raise RewardlabError(int8.CANNOT_TRAIN)


def task_of(task: Task | Path | str | None, config: RunConfig) -> Task:
    """The task: an object, or the one that the configuration names.

    Rows of a file, and plain lists, are shuffled by the run's seed: nothing else tells two seeds of what samples nothing apart.
    """
    columns = {name: getattr(config, name) for name in COLUMNS}
    if not isinstance(task, Task):
        by_seed = {"seed": config.seed} if config.seed and registry.is_elsewhere(config.task) else {}
        task = registry.task(config.task, **columns, **by_seed)
    elif set_columns := [name for name, value in columns.items() if value is not None]:
        # a task object holds its problems already: a column name would have no effect
        raise RewardlabError(
            f"{' and '.join(set_columns)}: only for problems in a file, but the task {task.name} was made in Python"
        )
    if isinstance(task.train, list | tuple):
        if not task.train:
            raise RewardlabError(f"the task {task.name} has no problems to train on")
        _warn_of_shared(task, task.train)
        task = replace(task, train=Shuffled(task.train, config.seed))
    return task


def trainable(task: Task) -> Task:
    """The task. Raises RewardlabError where every problem is held out: then it can be measured on, and not trained on."""
    if isinstance(task.train, Listed) and not task.train.problems:
        raise RewardlabError(
            f"{task.name} holds no training problem that is not a test problem too: equal prompts are held out together, "
            "whatever else their rows hold. Leave out --test, or give one with other prompts"
        )
    return task


def _warn_of_shared(task: Task, train: Sequence[Problem]) -> None:
    known = {problem.key for problem in train}
    if shared := sum(problem.key in known for problem in task.test):
        console.print(
            f"warning: {shared} of {len(task.test)} held-out problems of {task.name} are trained on too: what is measured on them "
            "says nothing about new problems", highlight=False, soft_wrap=True, markup=False,
        )  # fmt: skip


def require_packages(recipe: Recipe, task: Task) -> None:
    """Raise RewardlabError if a verifier of the recipe or the task needs a package that is not installed."""
    rewards = [registry.verifier(task.verifier), *filter(None, [recipe.reward])]
    for part in (part for reward in rewards for part in reward.walk() if isinstance(part, Verifier)):
        part.require()


def corrected(recipe: Recipe, mismatch: str | None) -> Recipe:
    """The recipe with its advantages weighed where sampler and trainer differ, as `mismatch` says."""
    if mismatch is None:
        return recipe
    if recipe.credit is None:
        raise RewardlabError(f"mismatch weighs advantages, and {recipe.name or 'this recipe'} has none: leave out --mismatch")
    return recipe.but(credit=recipe.credit >> registry.part("credit", "weigh_mismatch", **asdict(correction(mismatch))))


def policy_of(model: str | Policy | None, config: RunConfig, task: Task) -> Policy:
    """The policy: an object, or the one that the configuration names; without a name, the small one made for the task."""
    policy = in_template(_policy_of(model, config, task), config)
    if config.gradient_checkpointing:
        if not isinstance(policy, TextPolicy):
            raise RewardlabError(f"gradient_checkpointing is for language models; this policy is a {type(policy).__name__}")
        policy.recomputes = True
    if config.sampler:
        from rewardlab.policies.vllm.sampler import sampler_of

        policy.sampler = sampler_of(config.sampler, policy)
    return policy


def in_template(policy: Policy, config: RunConfig) -> Policy:
    """The policy with what the configuration says to its chat template. Raises RewardlabError where that reads no such thing."""
    if not config.chat_template_kwargs:
        return policy
    if not hasattr(type(policy), "use_template_kwargs"):
        raise RewardlabError(
            f"chat_template_kwargs are for models that read messages by a chat template; this one is a {type(policy).__name__}"
        )
    policy.use_template_kwargs(config.chat_template_kwargs)
    return policy


def told_template(config: RunConfig) -> dict[str, Any]:
    """What else than its name a model's replies depend on, for requests that are known again."""
    return {"chat_template_kwargs": config.chat_template_kwargs} if config.chat_template_kwargs else {}


def _policy_of(model: str | Policy | None, config: RunConfig, task: Task) -> Policy:
    if model is not None and not isinstance(model, str):
        if config.shard:
            raise RewardlabError("shard divides a model that is given by its name; this one is an object, which is loaded already")
        return model
    name = config.model or task.model
    tell_untaught(name, task)
    if config.shard:
        return _sharded(name, config, task)
    return load_policy(name, config.device, config.dtype, config.lora_rank, task)


def _sharded(name: str, config: RunConfig, task: Task) -> Policy:
    """The model read into main memory, then divided among the devices of the processes that train together."""
    from rewardlab.policies.hf.sharded import ShardedPolicy

    device = device_of(config.device)
    return ShardedPolicy(load_policy(name, "cpu", "float32", None, task), device, dtype_of(config.dtype, device))


def require_head(recipe: Recipe, policy: Policy) -> None:
    """Raise RewardlabError where a model with a scalar head is to learn from log-probs too, and would have none: in the lean policy
    that head takes the place of a vocabulary head that is a matrix of its own."""
    for learner in recipe.also:
        terms = learner.recipe.objective.terms() if learner.recipe.objective and learner.init.startswith("value-head") else ()
        if not terms or getattr(getattr(getattr(policy, "model", None), "shape", None), "tied", True):
            continue
        if part := next((leaf for _, leaf in terms if "logprobs" in leaf.wants), None):
            raise RewardlabError(
                f"the learner {learner.name!r} of {recipe.name or 'this recipe'} learns scores and, by {part.name}, log-probs in "
                "one model, and this one's vocabulary head is a matrix of its own, whose place the scalar head takes: "
                f"{APART.get(part.name, 'use a model whose embeddings are tied')}, or name the model hf:..., which keeps both heads"
            )


APART = {"critique_and_score": "--shared false lets another model learn them", "language_model": "leave out --keep-language"}
"""How a recipe does without such an objective."""


def begin_run(recipe: Recipe, policy: Policy, task: Task, config: RunConfig) -> Run:
    """The state that training starts from, with copies of the policy and second models where the recipe asks for them."""
    config = config.settled()
    run = Run(
        policy, steps=config.steps, budget=config.budget, seed=config.seed, max_new=config.max_new or task.max_new,
        reward_timeout=config.reward_timeout,
    )  # fmt: skip
    run.verify = registry.verifier(task.verifier)
    # only on demand: the reference takes as much memory as the policy's weights
    if any(need == "ref" or need.startswith("reference.") for need in recipe.needs):
        run.reference = policy.copy("reference")
    if config.shard and recipe.also:
        raise RewardlabError(
            f"{recipe.name or 'this recipe'} trains {recipe.also[0].name!r} beside the policy, and --shard divides no second model "
            "that learns; train without --shard, or by a method without one"
        )
    require_head(recipe, policy)
    for learner in recipe.also:
        run.models[learner.name] = learner_model(learner, policy)
    return run


def held_out(task: Task, n: int) -> list[Problem]:
    """The first n problems that are never trained on."""
    if not task.test:
        raise RewardlabError(f"the task {task.name} has no problems to measure on")
    return list(task.test[:n])


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that results depend on."""
    packages = ("rewardlab", "torch", "transformers", "tokenizers", "numpy")
    return {"python": platform.python_version(), **{p: metadata.version(p) for p in packages}}
