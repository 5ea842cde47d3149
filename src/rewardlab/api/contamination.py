"""Which rows of a file a model has probably seen: how it completes the first part of each prompt (`evals.partial_prompts`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.api.arguments import named_model
from rewardlab.api.inputs import as_in_run, begin_run, policy_of, told_template
from rewardlab.api.pass_rates import VERIFIER, check_out, file_problems, file_task, fitted_problems, in_work
from rewardlab.clients.endpoint import identity
from rewardlab.core import Problem, Recipe, Run
from rewardlab.data.drops import leaving, staying
from rewardlab.data.tables import Places, Table
from rewardlab.data.work import work_beside
from rewardlab.errors import RewardlabError
from rewardlab.evals.partial_prompts import LEAST, Completion, completions, summary
from rewardlab.models.load import Policy
from rewardlab.registry.formula import reward_from
from rewardlab.rewards.reward import Reward
from rewardlab.runs.named import refuse_missing
from rewardlab.settings.domain import POSITIVE, POSITIVE_SHARE

COLUMNS = ("completed", "rouge_l", "answered")
"""What is added to each row; with `keep_texts`, a column `continuation` too."""


def contamination_file(
    source: Path | str, out: Path | str, dropped: Path | str | None = None, *, model: str | Policy | None = None,
    shown: float = 0.6, least: int = LEAST, reward: Any = None, batch: int = 32, keep_texts: bool = False, **settings: Any,
) -> dict[str, Any]:  # fmt: skip
    """Show a model the first part of each row's prompt, and add columns: completed, whether its greedy continuation is the rest,
    word by word (null: fewer than `least` words are hidden); rouge_l, of the two; answered, whether it gives the right answer all
    the same (null without an answer); with keep_texts, continuation.

    shown: share of the prompt that the model sees, up to the nearest space.  reward: judges answers; None is `final_answer`.
    batch, settings, and rows that are dropped: as of `pass_rate_file`; a killed call resumes. Raises RewardlabError for a served
    model, whose chat template would stand around the text.
    """
    POSITIVE.check("batch", batch)
    POSITIVE.check("least", least)
    POSITIVE_SHARE.check("shown", shown)
    places = Places("contamination", [source], out, dropped)
    check_out(out, "completions")
    refuse_missing(model := named_model(model))
    config, _ = as_in_run(model, str(source), settings)
    table = Table.load(source)
    columns = (*COLUMNS, *(["continuation"] if keep_texts else []))
    if own := [name for name in columns if table.has(name)]:
        raise RewardlabError(f"the rows of {table.source} have a column {own[0]}, which would be overwritten; rename that column")
    problems, fate = file_problems(table, config)
    policy = policy_of(model, config, file_task(problems))
    problems, fate = fitted_problems(problems, fate, policy, config)
    probe = Probe(
        begin_run(Recipe(), policy, file_task(problems), config),
        registry.part("reward", VERIFIER) if reward is None else reward_from(reward), shown, least,
    )  # fmt: skip
    name = config.model or file_task(problems).model if model is None or isinstance(model, str) else policy.name
    about = {"model": identity(name), **probe.settings, "batch": batch, "dtype": config.dtype, **told_template(config)}
    with work_beside(out, about) as work:
        facts = {"model": about["model"], "shown": shown, "resumed_batches": len(work.done)}
        found = in_work(problems, probe, work, batch)
        rows = [{**row, **{name: one[name] for name in columns}} for row, one in zip(staying(table.rows, fate), found, strict=True)]
        left_out = leaving(table.places, table.rows, fate)
        return places.finish([table], left_out, rows, **facts, **_told(found))


@dataclass(frozen=True)
class Probe:
    """Has the policy of a run complete prompts, and judges what it answers."""

    run: Run
    reward: Reward
    shown: float
    least: int

    @property
    def settings(self) -> dict[str, Any]:
        """What the results depend on, beside the model."""
        return {"reward": str(self.reward), "shown": self.shown, "least": self.least, "max_new": self.run.max_new}

    def __call__(self, problems: Sequence[Problem], key: str) -> list[dict[str, Any]]:
        found = completions(problems, self.run, lambda groups: self.reward(groups, self.run), self.shown, self.least)
        return [{**asdict(one), "continuation": one.text} for one in found]


def _told(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The shares that are completed and answered, each with its interval and the rows that tell, and the tokens sampled."""
    told = summary([Completion(**{name: one[name] for name in Completion.__dataclass_fields__}) for one in found])
    facts: dict[str, Any] = {"tokens": sum(one["tokens"] for one in found)}
    for name in ("completed", "answered"):
        if name in told:
            facts |= {name: told[name], f"{name}_ci95": [told[f"{name}_low"], told[f"{name}_high"]]}
            facts[f"{name}_of"] = int(told[f"{name}_of"])
    return facts | ({"rouge_l": told["rouge_l"]} if "rouge_l" in told else {})
