"""Reasoning-SQL: partial rewards for a query's elements, and the largest for returning the right rows.

    r = 3 right + runs + linking + ngrams + form + 2 judge,    the judge of wrong queries alone
    linking: Jaccard similarity of the tables and columns that query and gold query name;    ngrams: of their token bigrams

Whether a query returns the right rows is all or nothing, and on hard questions nothing for a whole group, which then teaches
nothing. Partial rewards tell its wrong queries apart. All of them together are worth less to a wrong query than it is to be right.

Pourreza et al. 2025, arXiv:2503.23157. The weights and the bigrams are those of the first author's training code
(MohammadrezaPourreza/RLForSQL 6543117, grpo_training_llm_partial_reward.py; prompts/judge_prompt.txt asks for 0 to 2). That code
differs in three ways: linking there is the share of the gold query's names that the query has, where the paper has Jaccard's; a
right query earns linking and ngrams by its wording, where it earns them in full here; and the form is worth 1/2 at most. In
Python any reward from 0 to 1 can be `judge`.
"""

from collections.abc import Iterator
from typing import Any

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Recipe, Run, Score, Scores
from rewardlab.data.columns import Data
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.format import format_ok
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct, detail


@reward(over="groups")
def of_failures(groups: list[Group], run: Run, *, inner: Reward) -> Scores:
    """The reward `inner` of replies that the task's verifier rejects, computed only for these; 0 for right ones."""
    verdicts = [[s.value for s in row] for row in correct()(groups, run)]
    pairs = [list(zip(group, row, strict=True)) for group, row in zip(groups, verdicts, strict=True)]
    wrong = [[t for t, v in row if v is not None and v < 1.0] for row in pairs]
    # without groups in which nothing is wrong: rewards over groups expect a reply in each
    judged = iter(inner([group for group in wrong if group], run))
    scores = [iter(next(judged) if group else []) for group in wrong]
    return [[_judged(v, own) for v in row] for row, own in zip(verdicts, scores, strict=True)]


def _judged(verdict: float | None, scores: Iterator[Score]) -> Score:
    if verdict is None:
        return Score(None, why="no verdict")
    if verdict >= 1.0:
        return Score(0.0, why="right")
    judged = next(scores)
    return Score(judged.total, why=judged.why)


def reasoning_sql(
    base: Recipe | None = None, *, execution: float = 3.0, partial: float = 1.0, judge: Reward | None = None, form: str = ""
) -> Recipe:
    """execution: weight of returning the right rows.  partial: of each partial reward, the judge's twice that.  judge: a reward
    from 0 to 1 that judges wrong queries; None: nobody does.  form: a regular expression that replies should match, such as
    <reasoning>.+</reasoning>.*<answer>.+</answer>.
    """
    base = base or grpo()
    parts = [partial * detail(name=name).named(name) for name in ("runs", "linking", "ngrams")]
    if form:
        parts.append(partial * format_ok(pattern=form))
    if judge:
        parts.append(2 * partial * of_failures(inner=judge).named("judge"))
    right: Any = base.reward or correct()
    return base.but(reward=sum(parts, start=execution * right))


fidelity = "core"
left_out = "the judge's prompt, and the judge itself unless one is given; the form's reward unless `form` is given"
data = Data(
    answer='the gold query and what it is run on, {"query", "database"}: a file, or a script that makes one',
    rows=[
        {
            "prompt": "How many people are there? Table people(name).",
            "answer": {
                "query": "SELECT count(*) FROM people",
                "database": "CREATE TABLE people(name TEXT); INSERT INTO people VALUES ('Ann'), ('Bo');",
            },
        },
        {
            "prompt": "Who comes first by name? Table people(name).",
            "answer": {
                "query": "SELECT min(name) FROM people",
                "database": "CREATE TABLE people(name TEXT); INSERT INTO people VALUES ('Ann'), ('Bo');",
            },
        },
    ],
    verified_by="sql",
)

claim = Claim(
    says="in as many updates more queries are right than where being right alone is paid, on questions that are rarely got right",
    versus="grpo", task="queries:biased=0.9", measure="auc.truth", direction="higher", margin=0.05, steps=40,
    fault=Within("train.signal", high=0.8, says="share of groups in which being right tells replies apart"),
    finding="32% of queries right before; over the updates 53% are right with the partial rewards and 54% without them, at the "
    "end 58% and 63%: they gain nothing here",
)  # fmt: skip
