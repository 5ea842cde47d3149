"""Contrastive rewards for multilingual text-to-SQL: execution, plus similarity in meaning of query and question.

    r = right + w (cos(e(question), e(query)) - mean over the batch's other questions of cos(e(other), e(query)))
    encoder e, taught first:  InfoNCE, which query belongs to which question among those of a batch, and the other way round

On few rows a query can return the right ones and mean something else. The encoder has learnt from questions in all languages and
their gold queries what a query should look like for such a question; it needs neither rows nor the gold query of this one.

Kattamuri et al. 2025, arXiv:2510.13827, which says "a reward signal based on semantic similarity" by a fine-tuned multilingual
encoder (XLM-R); everything else about the reward, its form and weight among it, is (inferred). Here the encoder begins as a copy of
the policy, mean-pooled, and is frozen after the first step's lesson. It reads the query that the reply states, not the words around
it: a reply that says the question again is as near to it as can be. A reply without a query has no nearness (0).
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import (
    Batch,
    Group,
    Learner,
    Loop,
    Outputs,
    Problem,
    Recipe,
    Run,
    Score,
    Scores,
    Trajectory,
    Turn,
    Update,
    loop,
    objective,
    rollout,
)  # fmt: skip
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.groups import told_apart
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.rlhf import pairs_in, teach
from rewardlab.rewards.another_answer import with_answer
from rewardlab.rewards.reward import reward
from rewardlab.rewards.similarity import nearer_to_question
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import PositiveFloat, PositiveInt
from rewardlab.verifiers.sql.verifier import BEGINS, sql, stated_query

# ---- Learning to tell which texts belong together from which do not --------------------------------------------------


@objective(unit="batch", wants=("hidden",))
def info_nce(out: Outputs, batch: Batch, run: Run, *, temperature: PositiveFloat = 0.05) -> Tensor:
    """-log of the probability of a text's partner among those of all groups, by similarity / temperature, averaged over both
    directions.

    Groups are of two rows, two texts that belong together; the partners of the other groups are what they are told from. A text
    is embedded as `util.outputs.embeddings` does it. van den Oord et al. 2018, arXiv:1807.03748
    """
    if len(batch) != 2 * batch.groups or not torch.equal(batch.group[::2], batch.group[1::2]):
        raise RewardlabError("info_nce needs groups of two rows, two texts that belong together")
    decided = batch.mask[..., None].float()
    e = F.normalize((out.hidden * decided).sum(1) / decided.sum(1).clamp(min=1), dim=-1)  # (B, D)
    logits = e[::2] @ e[1::2].T / temperature  # (G, G)
    partner = torch.arange(len(logits), device=logits.device)
    return (F.cross_entropy(logits, partner) + F.cross_entropy(logits.T, partner)) / 2


# ---- The two texts of a problem, each alone --------------------------------------------------------------------------


@rollout(rows=lambda **_: 2)
def contrastive_texts(problems: list[Problem], run: Run, *, field: str = "solution") -> list[Group]:
    """Two rows for each problem: its question, and the recorded reply in meta[`field`], each encoded without the other.

    For models that learn which reply belongs to which question.
    """
    lacking = next((p for p in problems if not isinstance(p.meta.get(field), str)), None)
    if lacking is not None:
        raise RewardlabError(f"problem {lacking.question[:60]!r} has no text in the column {field!r} that answers it")
    sides = [run.policy.write([Trajectory(p) for p in problems], texts) for texts in _texts(problems, field)]
    return [list(pair) for pair in zip(*sides, strict=True)]


def _texts(problems: list[Problem], field: str) -> tuple[list[str], list[str]]:
    return [p.question for p in problems], [p.meta[field] for p in problems]


# ---- What is paid ------------------------------------------------------------------------------------------------------

COMMENT = re.compile(r"""('(?:[^']|'')*'|"[^"]*")|--[^\n]*|/\*.*?\*/""", re.DOTALL)
"""A comment of a query; a text in quotes, which may look like one, is its group."""
ASKS = re.compile(r"\bselect\b|\bvalues\s*\(", re.IGNORECASE)


def query_in(reply: str) -> str | None:
    """The query that a reply states, without comments; None where it states none. Prose may begin like one (with, from)."""
    query = COMMENT.sub(lambda found: found[1] or " ", stated_query(reply)).strip()
    return query if BEGINS.match(query) and ASKS.search(query) else None


@reward(over="groups")
def query_nearer_to_question(groups: list[Group], run: Run, *, model: str = "encoder") -> Scores:
    """`nearer_to_question` of the query that a reply states: no words or comments around it, which may say the question again; 0
    without a query."""
    queries = [[query_in(t.reply) for t in group] for group in groups]
    alone = [[_saying(t, q or "") for t, q in zip(*of, strict=True)] for of in zip(groups, queries, strict=True)]
    none = Score(0.0, why="the reply states no query")
    near = nearer_to_question(model=model)(alone, run)
    return [[none if q is None else s for q, s in zip(*of, strict=True)] for of in zip(queries, near, strict=True)]


def _saying(t: Trajectory, text: str) -> Trajectory:
    return Trajectory(t.problem, (Turn(None, np.zeros(0, np.int64)), Turn("policy", np.zeros(0, np.int64), text=text)), "end")


# ---- the recipe ---------------------------------------------------------------------------------------------------------

MODEL, MEMORY = "encoder", "contrastive_text2sql.taught"


@loop(wraps="inner")
def encoder_first(
    recipe: Recipe, run: Run, ops: Any, *, pairs: PositiveInt | None = None, passes: PositiveInt = 2, at_once: PositiveInt = 64,
    inner: Loop | None = None,
) -> None:  # fmt: skip
    """Before the first step, the run's encoder learns from the problems of the training data (`pairs_in`), `passes` times; then
    training goes on. at_once: pairs of an update.  inner: how a step is taken."""
    if MEMORY not in run.memory:
        problems = pairs_in(ops, run, pairs)
        teach(ops, run, MODEL, problems, passes, at_once, "teaching the encoder")
        run.memory[MEMORY] = len(problems)
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)


def contrastive_text2sql(
    base: Recipe | None = None, *, weight: float = 0.5, pairs: int | None = None, passes: int = 2, encoder: str = "copy:policy",
    encoder_lr: float | None = None, temperature: float = 0.05,
) -> Recipe:  # fmt: skip
    """weight: of nearness in meaning.  pairs, passes: that the encoder is taught on, as in `rlhf`, and how often.  encoder: what it
    starts from (`Learner.init`).  temperature: of its loss."""
    base = base or grpo()
    lesson = Recipe(
        rollout=contrastive_texts(), objective=info_nce(temperature=temperature), update=Update(lr=encoder_lr, loss_kind="scorer")
    )
    # every=0: the loop alone teaches it
    return base.but(
        reward=(base.reward or correct()) + weight * query_nearer_to_question(model=MODEL).named("nearness"),
        also=(*base.also, Learner(MODEL, encoder, lesson, every=0)),
        loop=encoder_first(pairs=pairs, passes=passes, inner=base.loop),
    )


fidelity = "reading"
left_out = "XLM-R, fine-tuned, as the encoder (a copy of the policy stands for it), and LoRA; the form of the reward is ours."

data = Data(
    answer="the gold query and its database, {'query', 'database'}: a file of sqlite or duckdb, or a script that creates one",
    solution="the gold query, which the encoder learns to tell from those of other questions",
    verified_by="sql",
    rows=[
        {
            "prompt": "Table: city(name TEXT, country TEXT, people INTEGER). How many cities of Italy have over a million people? "
            "Answer with one SQL query.",
            "answer": {
                "query": "SELECT COUNT(*) FROM city WHERE country = 'Italy' AND people > 1000000;",
                "database": "CREATE TABLE city(name TEXT, country TEXT, people INTEGER); INSERT INTO city VALUES "
                "('Rome', 'Italy', 2800000), ('Bari', 'Italy', 320000), ('Lyon', 'France', 520000);",
            },
            "solution": "SELECT COUNT(*) FROM city WHERE country = 'Italy' AND people > 1000000;",
        },
        {
            "prompt": "Tabelle: album(title TEXT, year INTEGER, price REAL). Welches Album ist das teuerste? Antworte mit einer "
            "SQL-Anfrage.",
            "answer": {
                "query": "SELECT title FROM album ORDER BY price DESC LIMIT 1;",
                "database": "CREATE TABLE album(title TEXT, year INTEGER, price REAL); INSERT INTO album VALUES "
                "('Blue', 1971, 12.5), ('Low', 1977, 15.0);",
            },
            "solution": "SELECT title FROM album ORDER BY price DESC LIMIT 1;",
        },
    ],
)

BOTH = correct() + 0.5 * query_nearer_to_question(model=MODEL).named("nearness")
MEANT = with_answer(inner=sql(), column="suite")
check = Check(
    says="of two queries that return the right rows, the one that means what was asked is nearer to the question",
    versus=None, task="queries", measure="agreement.nearness", direction="higher", margin=0.2, against="agreement.correct",
    by=told_apart(reward=BOTH, truth=MEANT, among=correct(), rollout=independent(n=8)), problems=200, steps=1,
    fault=Within("truth", high=0.95, says="of the queries that return the right rows, those that mean what was asked"),
    sanity=True,
    finding="Of two queries that return the right rows, the taught encoder puts the one that means what was asked nearer to "
    "the question in 98% of the pairs, before its lesson in 46%. Rows alone cannot tell them apart (50%, by "
    "construction), and the questions are of a small grammar that the encoder has seen.",
)  # fmt: skip
system = "contrastive-multilingual-text2sql"
