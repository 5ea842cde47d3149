"""GradeSQL: an outcome reward model that says Yes or No of a SQL query for a question and a schema, and the best of n by it.

    labels, by executing candidate and gold query:    Yes: it returns the same rows, and some;    No: it runs, and returns others
    L = -y log P(Yes) - (1 - y) log P(No),    P(Yes) = exp(l_Yes) / (exp(l_Yes) + exp(l_No)) = sigmoid(V),  V = l_Yes - l_No
    choice: among the candidates that return rows, else those that run, else all, the one with the highest P(Yes)

That a query runs says little, and the result that most candidates return is wrong wherever the policy has a habit. Queries that
fail teach nothing, since running them tells; questions without candidates of both kinds are left out, and of the rest as many
of one kind are learnt as of the other.

Tritto et al. 2025, arXiv:2509.01308, and its code (github.com/sisinflab/GradeSQL: test_time_scaling.py, finetuning.py, the recipe
train_bird.yaml): 32 candidates at temperature 0.8, LoRA of rank 16 (alpha 64), 7e-5, batches of 5, 50 epochs. There P(Yes) is the
first new token's after "... SQL: ... Is the SQL correct?", over the whole vocabulary and 0 where No is likelier (version v1), or
that of a head with the two classes (v2). Here it is v2, read at the end of the query, so that a run is a reward model like any
other; its score is V. Where v1 learns all candidates of the smaller kind, this is at most `most` of each (inferred).

`candidates` of a row are queries; where there are none the policy writes them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Learner, Problem, Recipe, Run, Sampling, Update, measure, rollout, seed_of
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of
from rewardlab.errors import NothingKept, RewardlabError
from rewardlab.evals.pairs import end_values
from rewardlab.evals.passk import mean_interval
from rewardlab.evals.reranked import auc_within
from rewardlab.methods.baselines.bradley_terry import bradley_terry
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.recorded import verdict_in_data
from rewardlab.rollouts.ranked import recorded_pairs, written
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.verifiers.contract import Pair
from rewardlab.verifiers.sql.execution import Executed, executed


class Candidate(NamedTuple):
    """right: by the task's verifier; None where it has no verdict."""

    text: str
    done: Executed
    right: bool | None


# ---- candidates and their labels -------------------------------------------------------------------------------------------------


def candidates_of(problems: Sequence[Problem], run: Run, n: int, temperature: float) -> list[list[Candidate]]:
    """The candidates of each problem in their order, executed and judged."""
    texts = [list_of(p.meta.get("candidates")) for p in problems]
    asked = [i for i, known in enumerate(texts) if not known]
    if asked:
        groups = written([problems[i] for i in asked], run, n, "policy", Sampling(run.max_new, temperature))
        for i, group in zip(asked, groups, strict=True):
            texts[i] = [t.reply for t in group]
    if run.verify is None:
        raise RewardlabError("gradesql needs the verifier of the task, such as sql, and this run has none: name a task")
    told = [(p, known or []) for p, known in zip(problems, texts, strict=True)]
    verdicts = run.verify(recorded_pairs(told, run), run)
    ran = iter(executed([Pair(text, p.answer, p.question, p.meta) for p, known in told for text in known]))
    return [
        [Candidate(text, next(ran), None if s.value is None else s.value >= 1.0) for text, s in zip(known, row, strict=True)]
        for (_, known), row in zip(told, verdicts, strict=True)
    ]


def labelled(found: Sequence[Candidate], most: int, key: str) -> list[tuple[str, float]]:
    """As many queries with the label 1 (they return rows, and the right ones) as with 0 (they run, and are wrong), `most` of each.

    Wrong ones that return rows come first. Equal texts count once; [] where there are none of one kind.
    """
    rng = random.Random(seed_of("gradesql", key))
    once = list({c.text: c for c in found}.values())
    once = rng.sample(once, len(once))
    right = [c for c in once if c.right and c.done.rows]
    wrong = sorted((c for c in once if c.right is False and c.done.runs), key=lambda c: not c.done.rows)
    k = min(len(right), len(wrong), most)
    return [*((c.text, 1.0) for c in right[:k]), *((c.text, 0.0) for c in wrong[:k])]


@rollout(rows=lambda most, **_: 2 * most)
def labelled_queries(
    problems: list[Problem], run: Run, *, n: PositiveInt = 32, most: PositiveInt = 4, temperature: NonNegativeFloat = 0.8,
    attempts: PositiveInt = 20,
) -> list[Group]:  # fmt: skip
    """A group for each problem with right and wrong candidates that run (`labelled`), labels in the column `right`.

    n, temperature: of candidates that the policy writes where the column `candidates` is missing.  Other problems are asked for in
    the place of those without both kinds, `attempts` times.  Logged: runs, right, the shares of candidates; usable, of problems.
    """
    kept: list[tuple[Problem, list[tuple[str, float]]]] = []
    wanted, looked_at, seen = len(problems), 0, []
    for _ in range(attempts):
        looked_at += len(problems)
        for problem, found in zip(problems, candidates_of(problems, run, n, temperature), strict=True):
            seen += found
            if rows := labelled(found, most, problem.key):
                kept.append((problem, rows))
        if len(kept) >= wanted or run.more_problems is None:
            break
        problems = run.more_problems(wanted - len(kept))
    if not kept:
        raise NothingKept(f"none of {looked_at} problems has both a right query and a wrong one that runs")
    run.log("runs", float(np.mean([c.done.runs for c in seen])))
    run.log("right", float(np.mean([bool(c.right) for c in seen])))
    run.log("usable", len(kept) / looked_at)
    told = [(replace(p, meta={**p.meta, "right": [y for _, y in rows]}), [text for text, _ in rows]) for p, rows in kept]
    groups = recorded_pairs(told, run)
    for t in (t for group in groups for t in group):
        run.policy.check_fits(t, 0)
    return groups


# ---- the choice among candidates ------------------------------------------------------------------------------------------------


def first_executable(found: Sequence[Candidate]) -> int:
    """The first that returns rows, else the first that runs, else the first."""
    return max(range(len(found)), key=lambda i: (found[i].done.rows, found[i].done.runs, -i))


def most_frequent_result(found: Sequence[Candidate]) -> int:
    """The first of those that return what most return; those that fail do not vote."""
    votes = Counter(c.done.result for c in found if c.done.runs)
    return [c.done.result for c in found].index(votes.most_common(1)[0][0]) if votes else 0


def likeliest(found: Sequence[Candidate], scores: Sequence[float]) -> int:
    """The highest score among those that return rows, else among those that run, else among all; the first of equals."""
    return max(range(len(found)), key=lambda i: (found[i].done.rows, found[i].done.runs, scores[i], -i))


@measure
def best_queries(
    problems: Sequence[Problem], run: Run, *, n: PositiveInt = 8, temperature: NonNegativeFloat = 0.8, model: str = "reward"
) -> dict[str, float]:
    """Of the first n candidates of held-out problems, how often the one that is chosen is right, by the task's verifier.

    orm: by P(Yes), among those that run.  majority: by what most of them return.  executable: the first that runs and returns
    rows.  pass@1, pass@n: a random one, and any.  auc: how often P(Yes) is higher for a right query than for a wrong one.
    over_majority, over_executable: by how much orm is above these two.
    """
    rows = [found[:n] for found in candidates_of(problems, run, n, temperature)]
    # without a verdict on all of them a problem would count for some choices only
    judged = [(p, row) for p, row in zip(problems, rows, strict=True) if row and all(c.right is not None for c in row)]
    if not judged:
        raise RewardlabError("the verifier gave no verdict on the candidates of any held-out problem")
    groups = recorded_pairs([(p, [c.text for c in row]) for p, row in judged], run)
    values = iter(end_values(run.models[model], [t for group in groups for t in group]).tolist())
    scores = [[next(values) for _ in row] for _, row in judged]
    right = [[bool(c.right) for c in row] for _, row in judged]
    orm = [float(ok[likeliest(row, s)]) for (_, row), ok, s in zip(judged, right, scores, strict=True)]
    others = {"majority": most_frequent_result, "executable": first_executable}
    by = {name: float(np.mean([ok[f(row)] for (_, row), ok in zip(judged, right, strict=True)])) for name, f in others.items()}
    low, high = mean_interval(orm)
    return {
        "orm": float(np.mean(orm)), "ci95_low": low, "ci95_high": high, "n": float(len(orm)), **by,
        **{f"over_{name}": float(np.mean(orm)) - value for name, value in by.items()},
        "pass@1": float(np.mean([np.mean(ok) for ok in right])), f"pass@{n}": float(np.mean([any(ok) for ok in right])),
        "auc": auc_within(scores, right),
    }  # fmt: skip


# ---- the recipe ---------------------------------------------------------------------------------------------------------------


def gradesql(
    base: Recipe | None = None, *, n: int = 32, most: int = 4, best_of: int = 8, temperature: float = 0.8,
    reward_lr: float | None = None, problems: int = 32, init: str = "value-head",
) -> Recipe:  # fmt: skip
    """n, temperature: of candidates that the policy writes where rows bring none.  most: queries of each label per problem.
    best_of: candidates of held-out problems of which one is chosen.  reward_lr, problems, init: as in `bradley_terry`."""
    base = base or bradley_terry(problems=problems)
    taught = Recipe(
        objective=label_cross_entropy(), reward=verdict_in_data(), update=Update(lr=reward_lr, loss_kind="scorer")
    )  # fmt: skip
    others = tuple(learner for learner in base.also if learner.name != "reward")
    return base.but(
        rollout=labelled_queries(n=n, most=most, temperature=temperature),
        measure=best_queries(n=best_of, temperature=temperature),
        also=(*others, Learner("reward", init, taught)),
    )


fidelity = "core"
left_out = (
    "the words Yes and No of the language model itself (their version v1), whose place a head with the two classes takes (v2); "
    "OmniSQL as the start, and the schemas of BIRD and Spider, which rows bring in their prompts"
)
data = Data(
    answer="the gold query and its database, {'query', 'database'}: a file of sqlite or duckdb, or a script that creates one",
    candidates=Column("a list of SQL queries, right ones and wrong ones; without it the policy writes them", optional=True),
    verified_by="sql",
    rows=[
        {
            "prompt": "city(name TEXT, country TEXT, people INTEGER)\nHow many cities of Italy are there?",
            "answer": {
                "query": "SELECT COUNT(*) FROM city WHERE country = 'Italy';",
                "database": "CREATE TABLE city(name TEXT, country TEXT, people INTEGER); INSERT INTO city VALUES "
                "('Rome', 'Italy', 2800000), ('Bari', 'Italy', 320000), ('Lyon', 'France', 520000);",
            },
            "candidates": [
                "SELECT COUNT(*) FROM city;", "SELECT COUNT(name) FROM city WHERE country = 'Italy';",
                "SELECT COUNT(*) FROM cities;", "SELECT name FROM city WHERE country = 'Italy';",
            ],
        },
        {
            "prompt": "album(title TEXT, year INTEGER, price REAL)\nWhich album is the dearest?",
            "answer": {
                "query": "SELECT title FROM album ORDER BY price DESC LIMIT 1;",
                "database": "CREATE TABLE album(title TEXT, year INTEGER, price REAL); INSERT INTO album VALUES "
                "('Blue', 1971, 12.5), ('Low', 1977, 15.0);",
            },
            "candidates": [
                "SELECT MAX(price) FROM album;", "SELECT title FROM album WHERE price = (SELECT MAX(price) FROM album);",
                "SELECT title FROM album ORDER BY price LIMIT 1;",
            ],
        },
    ],
)  # fmt: skip

LEARNT = {"most": 2, "best_of": 8, "init": "value-head:surprise", "reward_lr": 1e-3, "problems": 16}
check = Check(
    says="of 8 candidates, the one of the highest P(Yes) is right more often than the first that runs and returns rows, where the "
    "policy has a habit (the model reads surprise)",
    versus=None, task="queries:languages=1,candidates=16", measure="orm", direction="higher", margin=0.03, against="executable",
    settings=LEARNT, problems=300, steps=30,
    fault=Within("majority", high=0.9, says="right results that most candidates return"),
    finding="of 8 candidates the one that the reward model takes is right in 67% of questions, the first that runs in 43% and the "
    "most frequent result in 37%; in 83% one of the eight is right",
)  # fmt: skip
baseline = "bradley_terry"
