"""pass@k of a model on held-out problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from rewardlab import registry
from rewardlab.api.arguments import named_model
from rewardlab.api.checking import by_pay, need_answers, undecided
from rewardlab.api.evaluated import Counted, Sampled, summary
from rewardlab.api.given_rewards import refuse_in_python
from rewardlab.api.inputs import as_in_run, begin_run, held_out, policy_of, require_packages, task_of
from rewardlab.api.judges import with_judges
from rewardlab.api.order import in_order
from rewardlab.api.playing import played_by
from rewardlab.api.prompt_lengths import fit_prompts, text_reader
from rewardlab.api.result import Result
from rewardlab.api.scorers import evaluate_as_trained
from rewardlab.clients.endpoint import is_served
from rewardlab.core import Environment, Group, Problem, Recipe, Run, Sampling, Scores, Task, Trajectory
from rewardlab.core.score import check_finite
from rewardlab.errors import RewardlabError
from rewardlab.evals.cot_pass import sound
from rewardlab.models.load import Policy
from rewardlab.processes.cluster import check_named, spread
from rewardlab.registry.formula import reward_from
from rewardlab.rewards.judged_reasoning import judged_reasoning
from rewardlab.rewards.model import load_named
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.interactive import interactive
from rewardlab.runs.config import RunConfig
from rewardlab.runs.named import config_of_run, refuse_missing
from rewardlab.settings.domain import NOT_NEGATIVE, POSITIVE, WORKERS
from rewardlab.tasks.sources import Listed
from rewardlab.util.keeping import keeping
from rewardlab.util.outputs import cut_off_replies
from rewardlab.util.progress import console, in_batches

BATCH = 32
"""Problems that a process of a cluster samples at a time."""


@in_order
def evaluate(
    model: str | Path | Result | Policy, task: Task | Path | str | None = None, *, k: Sequence[int] = (1, 8), problems: int = 200,
    temperature: float = 1.0, judge: Any = None, workers: str | None = None, env: Environment | Path | str | None = None,
    turns: int | None = None, best_of: Any = None, reasoning: Any = None, **settings: Any,
) -> dict[str, Any]:  # fmt: skip
    """pass@k on held-out problems, with 95% intervals over problems; of a run that trained a reward model or a judge, its
    method's own measure; of another reward model (an export, a sequence classifier), the share of held-out pairs ranked right; of
    a run that learnt from pairs, where rows have no answers, that of pairs whose chosen reply is the likelier one.

    task: None means that of the run that `model` names, with its columns, system message and length of replies.
    judge: the verifier in place of the task's own: a name, FILE.py:function, a plain function (completion, answer ...), or
    openai:URL#NAME, a served model. Replies without a verdict count as wrong; `no_verdict` is their share, `cut_off` that of
    replies that reached the length limit.
    env, turns: what answers the replies (or its name, as of --env), for at most so many; by default those of the run, or of the
    task. A run's own may answer for other turns than in the run; a task that brings an environment says them in its name.
    workers: "ray" or "ray:N", to sample and judge over a Ray cluster, each batch of problems with random numbers of its own: the
    same whatever the processes, and others than without workers.
    best_of: a reward in any form that `train` takes, and what the best of k replies by it is worth: `best`, a row for each k, with
    the verdict's mean value (1 where right, and 0 without one), what the reward pays it, and the KL from the policy that the choice
    of one of k is, in nats.
    reasoning: what judges the reasoning of replies whose answer is right: openai:URL#NAME, a served model, of whose three verdicts
    two must accept it (`judged_reasoning`), or a reward in any form, which pays right reasoning .5 or more. Beside pass@k stands
    cot_pass@k then: one of k replies is right, and by right reasoning (Wen et al. 2025, arXiv:2506.14245); `sound` is the share of
    the right replies that are.
    settings: fields of RunConfig: seed, device, dtype, max_new, prompt_column ...
    """
    _check(k, problems, temperature, workers)
    judge, by = _judged_by(judge, best_of, reasoning, workers)
    model = _given(named_model(model), settings.get("test") if task is None else task)
    config, task = as_in_run(model, task, settings)
    task = _told(task_of(task, config), config)
    if (found := _as_trained(model, task, config, problems, judge, by)) is not None:
        return found
    played = played_by(model, task, env, turns)
    task = _decided(task, judge, played[0])
    held_out(task, problems)  # refused before a model is loaded, if there are none
    sampling = Sampled(max(k), temperature, *played, by, reasoning is not None)
    counted = list((partial(_right_over, workers) if workers else _right_here)(model, config, task, problems, sampling))
    about = {"model": model if isinstance(model, str) else model.name, "task": task.name}
    return summary(about, counted, k, sampling, judge)


def _judged_by(judge: Any, best_of: Any, reasoning: Any, workers: str | None) -> tuple[str | None, Reward | None]:
    """The judge by its text, since a task names its verifier, and the reward that chooses among replies or judges reasoning."""
    if best_of is not None and reasoning is not None:
        raise RewardlabError("best_of and reasoning are two measurements: give one of them")
    by = None if best_of is None else reward_from(best_of)
    if reasoning is not None:
        served = isinstance(reasoning, str) and is_served(reasoning)
        by = judged_reasoning(model=reasoning) if served else reward_from(reasoning)
    judge = judge if judge is None or isinstance(judge, str) else str(reward_from(judge))
    if workers:
        refuse_in_python("workers are processes of their own", by, registry.verifier(judge) if judge else None)
    return judge, by


def _decided(task: Task, judge: str | None, env: Environment | None) -> Task:
    """The task with the judge as its verifier. Raises RewardlabError where nothing tells which replies are right."""
    if judge is not None:
        task = replace(task, verifier=judge)
        require_packages(Recipe(), task)
    if undecided(task):
        served = "or a served one by --judge \"judge(model='openai:URL#NAME')\""
        instead = f", or give a judge that needs no answer (--judge FILE.py:NAME, {served}; in Python judge=)"
        raise need_answers(task, "pass@k", instead + by_pay(env))
    return task


def _as_trained(
    model: Any, task: Task, config: RunConfig, problems: int, judge: str | None, best_of: Reward | None
) -> dict[str, Any] | None:
    found = evaluate_as_trained(model, task, config, problems, judged=judge is not None)
    if found is not None and best_of is not None:
        raise RewardlabError("best_of chooses among replies, and this model writes none: name a policy, and this one as the reward")
    return found


def _given(model: str | Policy | None, task: Any) -> str | Policy:
    """The model. Raises RewardlabError without one, and without a task where it is no run."""
    if model is None:
        raise RewardlabError("which model? Give a name, a run, or a policy")
    refuse_missing(model)
    if task is None and config_of_run(model) is None:
        raise RewardlabError("which task? only a run has one of its own: give a task, or a file of problems (test)")
    return model


def _told(task: Task, config: RunConfig) -> Task:
    """The task; says that of rows in a file those are measured which training on it would hold out, where no others were named."""
    file = (task.source or {}).get("name", "")
    # a folder or a dataset may have a split of its own to be measured on
    if config.test is None and isinstance(task.train, Listed) and Path(file).is_file() and (rest := len(task.train.problems)):
        console.print(
            f"measured on the {len(task.test):,} of {rest + len(task.test):,} rows of {file} that training on it would hold out; "
            f"all of them: --test {quote(str(file))}",
            markup=False, highlight=False, soft_wrap=True,
        )  # fmt: skip
    return task


def _check(k: Sequence[int], problems: int, temperature: float, workers: str | None) -> None:
    POSITIVE.check("problems", problems)
    if isinstance(k, int | str) or not k:
        raise RewardlabError(f"k must be one or more numbers of tries, such as k=(1, 8), not {k!r}")
    for tries in k:
        POSITIVE.check("k", tries)
    NOT_NEGATIVE.check("temperature", temperature)
    if workers is not None:
        WORKERS.check("workers", workers)


def _right_here(
    model: str | Policy, config: RunConfig, task: Task, problems: int, sampling: Sampled
) -> Iterable[Counted]:  # fmt: skip
    policy = policy_of(model, config, task)
    task, _ = fit_prompts(task, policy, config, env=sampling.env)
    run, sampling = _begun(policy, task, config, sampling)
    return [_counted(batch, run, sampling) for batch in in_batches("evaluating", held_out(task, problems))]


def _right_over(
    workers: str, model: str | Policy, config: RunConfig, task: Task, problems: int, sampling: Sampled
) -> Iterable[Counted]:
    """The same over a cluster, whose processes load the model; this one reads prompts alone."""
    check_named(model)
    task, _ = fit_prompts(task, text_reader(model, config, task), config, env=sampling.env)
    tested = held_out(task, problems)
    batches = [tested[i : i + BATCH] for i in range(0, len(tested), BATCH)]
    # a worker needs of the task what its policy is made for, and its verifier
    about = (model, config, replace(task, train=tested[:1], test=()), sampling)
    counting = "rewardlab.api.evaluation:counting"
    return spread("evaluating", workers, counting, about, list(enumerate(batches)), list(map(len, batches)), config.device)


def counting(
    model: str, config: RunConfig, task: Task, sampling: Sampled
) -> Callable[[int, Sequence[Problem]], Counted]:  # fmt: skip
    """What a process of a cluster does: count the right replies to a batch of problems."""
    run, sampling = _begun(policy_of(model, config, task), task, config, sampling)

    def count(number: int, problems: Sequence[Problem]) -> Counted:
        # random numbers depend on the seed and the batch alone, whichever process has it
        run.step = number
        return _counted(problems, run, sampling)

    return count


def _begun(policy: Policy, task: Task, config: RunConfig, sampling: Sampled) -> tuple[Run, Sampled]:
    """The run, with the models that the reward of `best_of` asks, and that reward as it names them."""
    recipe = Recipe() if sampling.by is None else with_judges(Recipe(reward=sampling.by))
    run = begin_run(recipe, policy, task, config)
    by: Any = recipe.reward
    if by is not None:
        load_named(by, run)
    return run, sampling._replace(by=by)


def _counted(problems: Sequence[Problem], run: Run, sampling: Sampled) -> Counted:
    n, temperature, env, turns, by, _ = sampling
    if env is None:
        groups = _sampled(problems, run, sampling)
        judged = run.verify(groups, run)
    else:
        with keeping(run.policy):
            groups = interactive(env=env, n=n, turns=turns, temperature=temperature)(list(problems), run)
        judged = run.verdicts(groups)
    right = [sum(s.value is not None and s.value >= 1.0 for s in row) for row in judged]
    why, sampled = Counter(s.why for row in judged for s in row if s.missing), [t for group in groups for t in group]
    found = None if env is None else cut_off_replies(sampled, run.policy, run.max_new)
    cut_off = sum(t.stop == "length" for t in sampled) if found is None else found
    logged = {} if env is None else env.logged(sampled)
    replies = len(sampled) if env is None else sum(len(t.ends) for t in sampled)
    worth = [[s.value for s in row if s.value is not None] for row in judged]
    counted = Counted(right, why, cut_off, replies, logged, worth=worth)
    if by is None:
        return counted
    if not sampling.reasoning:
        return counted._replace(paid=_paid(by, groups, judged, run))
    reasoned = sound(groups, judged, by, run)
    both = [sum(ok is True for ok in row) for row in reasoned]
    return counted._replace(sound=both, unsure=sum(ok is None for row in reasoned for ok in row))


def _paid(by: Reward, groups: list[Group], judged: Scores, run: Run) -> list[tuple[list[float | None], list[float]]]:
    paid = by(groups, run)
    check_finite(groups, paid, str(by))
    worth = [[0.0 if s.value is None else s.value for s in row] for row in judged]
    return [([s.total for s in row], w) for row, w in zip(paid, worth, strict=True)]


def _sampled(problems: Sequence[Problem], run: Run, sampling: Sampled) -> list[Group]:
    """The replies that `evals.passk` samples, with their ends: of those that it judges it gives back the texts alone."""
    n = sampling.n
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = run.policy.extend([t for t in prompts for _ in range(n)], Sampling(run.max_new, sampling.temperature), run.rng("eval"))
    return [done[i : i + n] for i in range(0, len(done), n)]
