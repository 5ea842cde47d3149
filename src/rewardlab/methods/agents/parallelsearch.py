"""ParallelSearch: independent parts of a question are searched for in one call; the reward says which questions have such parts.

    <search> when was Monet born ## when was Pissarro born </search>     both are searched at once, and read together
    R = (1 - f) right + f formed + decomposed + counted,     f = .1, d = .15, c = .35;   s: calls of the search
    decomposed = 3 d for a comparison whose first call holds several queries;  d for another question whose does not;  else 0
    counted = c (1 - |s - 1|) for comparisons and questions of one search;     c (1 - |min(s, 2) - 2|) for chains

One after another, two searches that need nothing of each other take two turns and two readings of the whole episode. The outcome is
the same for both ways, so that nothing tells the policy to decompose, or a chain apart from a comparison: its second query cannot
be known before the first is answered. The last two terms do, from the type of the question, where the data tell it.

Zhao et al. 2025, arXiv:2508.09303, and its code (Tree-Shu-Zhao/ParallelSearch, 682b0a1: qa_em_format.py, generation.py,
rl_dataset.py; weights and PPO of train_parallelsearch.sh, one pass in two minibatches with lam = 1): queries parted by ##, results
one after another, the first call alone looked at, HotpotQA's types, "na" for Natural Questions, which the code pays as above; four
calls at most. There `right` is exact match, here the task's verifier. Questions without a type are paid for the answer and the form
alone. `decomposition=0, count=0, form=0` is PPO with the outcome in the same environment.
"""

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Environment, Problem, Recipe, Rollout, Run, Score, Trajectory, measure
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import MISSING, value_of
from rewardlab.envs.asked import asked_in
from rewardlab.envs.search import TELL, tools
from rewardlab.errors import RewardlabError
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.evals.groups import told_apart
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.rewards.recorded import score_in_data
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.interactive import in_place_of_replies, interactive
from rewardlab.rollouts.recorded import recorded

SEPARATOR = "##"
PARALLEL, SINGLE = ("comparison", "true"), ("na",)
"""Types of questions with independent parts, and of those of one search; every other is a chain."""
TOLD = TELL + (
    " If the question has several parts that do not need one another, ask for all of them in one call, with ## between them: "
    "<search>first query ## second query</search>."
)
_TURN = re.compile(r"\s*<think>(?:(?!</?think>).)*</think>\s*<(search|answer)>(?:(?!</?(?:search|answer)>).)+</\1>\s*", re.DOTALL)


def calls_of(trajectory: Trajectory) -> list[list[str]]:
    """The queries of each reply that searches; of one that calls tools, its calls."""
    return [queries for reply in trajectory.replies if (queries := asked_in(reply, separator=SEPARATOR))]


def type_of(problem: Problem, column: str) -> str | None:
    """The type of a question in lower case; None where the row does not tell it."""
    value: Any = value_of(problem.meta, column)
    return None if value is MISSING or value is None else str(value).strip().lower()


@reward
def decomposed(trajectory: Trajectory, *, column: str = "type") -> Score:
    """3 where the first call of a comparison holds several queries, 1 where that of another question holds one at most, else 0.

    column: with the type of a question, such as "metadata.type". 0 where the row does not tell it.
    Zhao et al. 2025, arXiv:2508.09303
    """
    kind = type_of(trajectory.problem, column)
    if kind is None:
        return Score(0.0, why=f"the row does not tell the type of the question: it has no {column!r}")
    several = len(next(iter(calls_of(trajectory)), [])) > 1
    if kind in PARALLEL:
        return Score(3.0 * several, why="its parts are searched at once" if several else "its parts are not searched at once")
    return Score(float(not several), why="searched at once, though it is a chain" if several else "")


@reward
def counted(trajectory: Trajectory, *, column: str = "type") -> Score:
    """1 - |s - 1| of s calls for a question whose searches fit one call, and 1 - |min(s, 2) - 2| for a chain.

    column: as of `decomposed`; 0 where the row does not tell it.  Zhao et al. 2025, arXiv:2508.09303
    """
    kind, calls = type_of(trajectory.problem, column), len(calls_of(trajectory))
    if kind is None:
        return Score(0.0, why=f"the row does not tell the type of the question: it has no {column!r}")
    away = abs(calls - 1) if kind in (*PARALLEL, *SINGLE) else abs(min(calls, 2) - 2)
    return Score(1.0 - away, why=f"{calls} calls")


@reward
def formed(trajectory: Trajectory) -> float:
    """1 where each reply is <think>...</think> and then one <search>...</search>, the last one <answer>...</answer>; else 0."""
    acts = [match[1] if (match := _TURN.fullmatch(reply)) else "" for reply in trajectory.replies]
    return float(bool(acts) and acts[-1] == "answer" and all(act == "search" for act in acts[:-1]))


@measure
def decomposing(problems: Sequence[Problem], run: Run, *, rollout: Rollout, column: str = "type") -> dict[str, float]:
    """pass@1 and turns of the episodes that `rollout` samples, and how often the first call holds several queries:

    split.comparisons: of comparisons; split.others: of other questions; apart: their difference.  calls.comparisons: of each.
    """
    if run.verify is None:
        raise RewardlabError("decomposing needs the task's verifier, and this run has none: name a task")
    groups = rollout(list(problems), run)
    right = [s.value is not None and s.value >= 1.0 for row in run.verify(groups, run) for s in row]
    split: dict[bool, list[bool]] = {True: [], False: []}
    calls = []
    for t in (t for group in groups for t in group):
        made, parallel = calls_of(t), type_of(t.problem, column) in PARALLEL
        split[parallel].append(len(next(iter(made), [])) > 1)
        calls += [len(made)] * parallel
    shares = {kind: float(np.mean(row)) if row else math.nan for kind, row in split.items()}
    return {
        "pass@1": float(np.mean(right)), "n": float(len(right)), "split.comparisons": shares[True], "split.others": shares[False],
        "apart": shares[True] - shares[False], "calls.comparisons": float(np.mean(calls)) if calls else math.nan,
        "turns": float(np.mean([len(t.ends) for group in groups for t in group])),
    }  # fmt: skip


# ---- the recipe ---------------------------------------------------------------------------------------------------------------


def parallelsearch(
    base: Recipe | None = None, *, env: Environment | None = None, corpus: str = "", n: int | None = None, turns: int = 5,
    form: float = 0.1, decomposition: float = 0.15, count: float = 0.35, column: str = "type",
) -> Recipe:  # fmt: skip
    """env: the tools; without it a search in `corpus`, a file or an address, or in the documents of each row (`tools`), of several
    queries a call.  n: episodes of a question; None: the base's, or else 1.  turns: replies of one, at most.  form, decomposition,
    count: weights.  column: with the type of a question.
    """
    base = base or ppo(n=n or 1, lam=1.0, beta=0.001, epochs=1, minibatches=2)
    env = tools(env, corpus, separator=SEPARATOR, tell=TOLD)
    paid: Any = base.reward or correct()
    # a weight of 0 leaves the term out
    paid = (1 - form) * paid + form * formed() if form else paid
    paid = paid + decomposition * decomposed(column=column) if decomposition else paid
    paid = paid + count * counted(column=column) if count else paid
    return base.but(
        rollout=in_place_of_replies(base.required("rollout"), env=env, n=n, turns=turns),
        reward=paid,
        measure=episode_accuracy(rollout=interactive(env=env, n=1, turns=turns)),
    )


fidelity = "core"
left_out = "further tries after a reply that neither searches nor answers, which is told so there and ends the episode here"

data = Data(
    answer="the gold answer",
    type=Column(
        '"comparison" where the parts of a question need nothing of one another, "bridge" where they do, "na" where one search is '
        "enough, as HotpotQA has it; without it the answer and the form are paid alone",
        optional=True,
        setting="column",
    ),
    facts=Column(
        "documents that can be searched, a list of texts or of {title, text}; not read with `corpus` or `env`", optional=True
    ),
    idle={"type": "does not pay for searching at once what needs nothing of one another: only the answer and the form are paid"},
    rows=[
        {
            "prompt": "Who was born first, Claude Monet or Camille Pissarro? To search, write <search>first query ## second query"
            "</search>. To answer, write <answer>...</answer>.",
            "answer": "Camille Pissarro",
            "type": "comparison",
            "facts": ["Claude Monet was born in 1840.", "Camille Pissarro was born in 1830.", "Paris is in France."],
        },
        {
            "prompt": "In which city was the composer of Fidelio born?",
            "answer": "Bonn",
            "type": "bridge",
            "facts": ["Fidelio is an opera by Beethoven.", "Beethoven was born in Bonn."],
        },
        {"prompt": "Which ocean lies west of Portugal?", "answer": "Atlantic", "facts": ["Portugal lies on the Atlantic Ocean."]},
    ],
)

WHOLE = 0.9 * correct() + 0.1 * formed() + 0.15 * decomposed() + 0.35 * counted()
check = Check(
    says="of two episodes the one that is right, or of two right ones the one whose calls fit the question, is paid more",
    versus=None, task="encyclopaedia:scripted=true,test_size=4000", measure="agreement", direction="higher", margin=0.05,
    against="agreement.correct", model="untrained",
    by=own_share(inner=told_apart(reward=WHOLE, truth=score_in_data(), rollout=recorded(fields=("fitting", "unfitting")))),
    problems=4000, steps=1, fault=Within("agreement.correct", high=0.9, says="the better of two paid more by the outcome alone"),
    sanity=True,
    tried="two development seeds: +.35 and +.35; before, on held-out questions that were 96% comparisons, +.43 and +.46",
    finding="of two scripted episodes the better one is paid more in 89%, by the outcome alone in 54%: two that are both right are "
    "the same to it. That is what the terms were made for; whether a policy comes to search less is not tested",
)  # fmt: skip
baseline = "ppo"
