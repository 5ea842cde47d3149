"""Pass rates of a model on the problems of a file: how often a verifier accepts its replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.api.arguments import named_model
from rewardlab.api.checking import check_answers
from rewardlab.api.inputs import as_in_run, begin_run, policy_of, told_template
from rewardlab.api.pictures import check_sees
from rewardlab.api.prompt_lengths import Fitter
from rewardlab.api.row_rewards import require
from rewardlab.clients.endpoint import identity
from rewardlab.core import Problem, Recipe, Run, Sampling, Task, Trajectory
from rewardlab.core.run import stream
from rewardlab.data.drops import Drop, Fates, leaving, staying
from rewardlab.data.files import STREAM
from rewardlab.data.picture_rows import folder_of
from rewardlab.data.tables import Places, Table
from rewardlab.data.work import Work, key_of, work_beside
from rewardlab.errors import RewardlabError
from rewardlab.models.load import Policy
from rewardlab.policies.text import TextPolicy
from rewardlab.registry.formula import reward_from
from rewardlab.rewards.reward import Reward
from rewardlab.runs.config import RunConfig
from rewardlab.runs.named import refuse_missing
from rewardlab.settings.domain import NOT_NEGATIVE, POSITIVE
from rewardlab.tasks.records import problems_of
from rewardlab.tasks.row_columns import Columns
from rewardlab.tasks.sources import Listed
from rewardlab.util.progress import Bar

VERIFIER = "final_answer"
"""Judges the replies where no reward is named: the same as in training on a file."""
COLUMNS = ("pass_rate", "scores", "tokens")
"""What is added to each row; with `keep_replies`, a column `replies` too."""


def pass_rate_file(
    source: Path | str, out: Path | str, dropped: Path | str | None = None, *, model: str | Policy | None = None,
    reward: Any = None, samples: int = 8, accept: float = 1.0, temperature: float = 1.0, batch: int = 32,
    keep_replies: bool = False, **settings: Any,
) -> dict[str, Any]:  # fmt: skip
    """Sample replies to each row's prompt, and add columns: pass_rate, the share accepted of the replies with a verdict (null
    without any); scores, the reward of each reply (null: no verdict); tokens, generated for them all; with keep_replies, replies.

    reward: None is the verifier `final_answer`.  accept: the least reward of an accepted reply.  batch: problems that are sampled
    at a time, and saved: after each, the work is in OUT.work, and the same call resumes from there, with the same result as if it
    had never stopped.  settings: fields of RunConfig: prompt_column, answer_column, system, overlong, max_new, device, dtype, seed
    ... Rows that are no problems (no prompt, or no answer where the others have one) are dropped, and those too long with
    overlong="drop".
    """
    for name, value in (("samples", samples), ("batch", batch)):
        POSITIVE.check(name, value)
    NOT_NEGATIVE.check("temperature", temperature)
    places = Places("pass-rate", [source], out, dropped)
    check_out(out, "pass rates")
    refuse_missing(model := named_model(model))
    config, _ = as_in_run(model, str(source), settings)
    part = registry.part("reward", VERIFIER) if reward is None else reward_from(reward)
    require(part)
    table = Table.load(source)
    columns = (*COLUMNS, *(["replies"] if keep_replies else []))
    _check_columns(table, columns)
    problems, fate = file_problems(table, config)
    _check_answers(part, problems, str(source), config)
    policy = policy_of(model, config, file_task(problems))
    problems, fate = fitted_problems(problems, fate, policy, config)
    sampler = Sampler(begin_run(Recipe(), policy, file_task(problems), config), part, samples, temperature, accept)
    name = config.model or file_task(problems).model if model is None or isinstance(model, str) else policy.name
    about = {"model": identity(name), **sampler.settings, "batch": batch, "dtype": config.dtype, **told_template(config)}
    with work_beside(out, about) as work:
        facts = {"model": about["model"], "reward": about["reward"], "resumed_batches": len(work.done)}
        found = in_work(problems, sampler, work, batch)
        rows = [{**row, **{name: one[name] for name in columns}} for row, one in zip(staying(table.rows, fate), found, strict=True)]
        left_out = leaving(table.places, table.rows, fate)
        return places.finish([table], left_out, rows, **facts, **_summary(found))


def _summary(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean pass rate, the problems that are never and always solved, the replies without a verdict, all tokens, and the share
    of replies that were cut off at the length limit, if any was."""
    rates = [one["pass_rate"] for one in found if one["pass_rate"] is not None]
    # work that began before this was counted lacks it
    replies, cut_off = sum(len(one["scores"]) for one in found), sum(one.get("cut_off", 0) for one in found)
    return {
        "pass_rate": sum(rates) / len(rates) if rates else None, "never": sum(rate == 0 for rate in rates),
        "always": sum(rate == 1 for rate in rates), "no_verdict": sum(score is None for one in found for score in one["scores"]),
        "tokens": sum(one["tokens"] for one in found), **({"cut_off": cut_off / replies} if cut_off else {}),
    }  # fmt: skip


@dataclass(frozen=True)
class Sampler:
    """Samples replies to problems, and judges them."""

    run: Run
    reward: Reward
    samples: int
    temperature: float
    accept: float

    @property
    def settings(self) -> dict[str, Any]:
        """What the results depend on, beside the model."""
        run = self.run
        return {
            "reward": str(self.reward), "samples": self.samples, "accept": self.accept, "temperature": self.temperature,
            "seed": run.seed, "max_new": run.max_new,
        }  # fmt: skip

    def __call__(self, problems: Sequence[Problem], key: str) -> list[dict[str, Any]]:
        """For each problem its pass rate, scores, tokens and replies. The random numbers depend on the seed and `key` alone."""
        prompts = self.run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
        rows = [t for t in prompts for _ in range(self.samples)]
        sampling = Sampling(self.run.max_new, self.temperature)
        done = self.run.policy.extend(rows, sampling, stream(self.run.seed, "pass rate", key))
        groups = [done[i : i + self.samples] for i in range(0, len(done), self.samples)]
        scores = self.reward(groups, self.run)
        return [self._measured(group, [s.total for s in row]) for group, row in zip(groups, scores, strict=True)]

    def _measured(self, group: Sequence[Trajectory], scores: list[float | None]) -> dict[str, Any]:
        judged = [score >= self.accept for score in scores if score is not None]
        return {
            "pass_rate": sum(judged) / len(judged) if judged else None, "scores": scores,
            "tokens": sum(t.written for t in group), "replies": [t.reply for t in group],
            "cut_off": sum(t.stop == "length" for t in group),
        }  # fmt: skip


def in_work(
    problems: Sequence[Problem], sampler: Callable[[Sequence[Problem], str], list[dict[str, Any]]], work: Work, size: int
) -> list[dict[str, Any]]:
    """What the sampler finds of each problem: batch by batch, without those that are done."""
    found: list[dict[str, Any]] = []
    batches = [problems[i : i + size] for i in range(0, len(problems), size)]
    # equal batches are told apart by their number
    keys = [key_of(i, [[p.key, p.answer] for p in of]) for i, of in enumerate(batches)]
    before = sum(len(of) for of, key in zip(batches, keys, strict=True) if key in work.done)
    with Bar("sampling", len(problems), done=before) as bar:
        for of, key in zip(batches, keys, strict=True):
            if key not in work.done:
                work.add(key, sampler(of, key))
                bar.advance(n=len(of))
            found += work.done[key]
    return found


def check_out(out: Path | str, what: str) -> None:
    if str(out) == STREAM or (Path(out).exists() and not Path(out).is_file()):
        raise RewardlabError(f"--out {out}: {what} need a file, beside which the work is kept in case it is stopped")


def _check_columns(table: Table, columns: Sequence[str]) -> None:
    """Raise RewardlabError where a column of the file's own would be overwritten; all of them are those of an earlier
    measurement."""
    own = [name for name in columns if table.has(name)]
    if own and not all(table.has(name) for name in COLUMNS):
        raise RewardlabError(f"the rows of {table.source} have a column {own[0]}, which would be overwritten; rename that column")


def file_problems(table: Table, config: RunConfig) -> tuple[list[Problem], Fates]:
    """The problems of the rows, read as for training, and for each row why it is none."""
    folder = folder_of(table.source, config.image_folder)
    prompt, answer = config.prompt_column or "prompt", config.answer_column or "answer"
    columns = Columns(prompt, answer, None, config.system, config.image_column, folder, config.system_column)
    found = list(problems_of(zip(table.places, table.rows, strict=True), columns))
    problems = [problem for problem in found if isinstance(problem, Problem)]
    if not problems:
        raise RewardlabError(f"{table.source} holds no problem: {found[0] if found else table.why_empty}")
    return problems, [None if isinstance(of, Problem) else Drop("no problem", str(of)) for of in found]


def _check_answers(reward: Reward, problems: Sequence[Problem], source: str, config: RunConfig) -> None:
    """Raise RewardlabError where the reward compares replies with answers, and no row has one, before anything is sampled."""
    answered = ("answer",) if any(problem.answer is not None for problem in problems) else ()
    columns = ("prompt", *answered, *dict.fromkeys(name for problem in problems for name in problem.meta))
    named = {"prompt_column": config.prompt_column, "answer_column": config.answer_column}
    task = replace(file_task(problems), columns=columns, source={"name": source, "options": named})
    check_answers(Recipe(reward=reward), task)


def fitted_problems(problems: Sequence[Problem], fates: Fates, policy: Policy, config: RunConfig) -> tuple[list[Problem], Fates]:
    """The problems whose prompts fit into the model's context, or were made to; the others are left out, or refused."""
    check_sees(file_task(problems), policy, config)
    if not isinstance(policy, TextPolicy):
        return list(problems), fates
    fitter = Fitter(policy, config.overlong, config.max_new or file_task(problems).max_new)
    if config.overlong == "error":
        return fitter.fit(problems, "file's")[0], fates
    fitted = iter([fitter.one(problem) for problem in problems])
    kept: list[Problem] = []
    after: Fates = []
    for drop in fates:
        problem = None if drop else next(fitted)
        kept += [] if problem is None else [problem]
        why = f"the prompt and {fitter.max_new:,} tokens of a reply exceed the model's context of {policy.context:,} tokens"
        after.append(drop or (Drop("too long", why) if problem is None else None))
    if not kept:
        raise RewardlabError("no prompt is left: none fits into the model's context; lower --max-new")
    return kept, after


def file_task(problems: Sequence[Problem]) -> Task:
    return Task("file", Listed(problems), (), VERIFIER)
