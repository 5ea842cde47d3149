"""R3-RAG: each retrieval is paid by how relevant its documents are, more where the answer is right; each step learns on its own.

    r_t = 1.6 rel(d_t) if the answer is right, else .1 rel(d_t), at the end of step t;     2 if it is right, else .1, at the answer
    A: generalised advantages within each step alone, with no value after its end;    PPO, every step of a batch alike

An outcome says of no query whether it was of use, and a relevance by itself can be had without an answer. So the relevance is paid
in full only to episodes that end right. A step is a sample of its own: what a later query finds is not this one's merit.

Li et al. 2025, arXiv:2505.23794. Of its code (Yuan-Li-FNLP/R3-RAG, 2f7e35e) the part with the rewards was not found; factors, 2 and
.1, steps as samples of equal weight, gamma = .99, lambda = .95, KL .01 and batches (64 questions of 4 episodes, one pass) are those
that a guide to it quotes (LJiaoDu/R3-RAG, d1e0920, R3-RAG_PPO_Training_Architecture.md). The paper, by a note on it, writes
r = Val (Acc + rel) + Val - 1: it adds both, and pays a step of wrong form (Val = 0) with -1. There a language model scores rel in
0 to 1, from question, analysis, query and documents: `judge`, any reward from 0 to 1 of an episode up to the documents, such as
judge(model="openai:..."). (inferred): without one, rel is the highest similarity of a document with question and query together
(`similar`), or whether one of the column `supporting` was found (`supporting`); that an episode that ends with a search is wrong;
and four minibatches. `cold_start` steps of SFT on traces in the column `solution` come first, as the paper has it; 0: the policy
can search already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import (
    Batch,
    Environment,
    Group,
    Loop,
    Problem,
    Recipe,
    Rollout,
    Run,
    Score,
    Scores,
    Trajectory,
    credit,
    loop,
    measure,
    weighting,
)
from rewardlab.credit.group import whiten, with_verdict
from rewardlab.credit.kl import less_kl
from rewardlab.credit.turns import over_turns, turn_of, turn_sums
from rewardlab.credit.value import next_decision, over_decisions, value_before
from rewardlab.data.columns import Column, Data
from rewardlab.envs.asked import asked_in, asks
from rewardlab.envs.search import tools
from rewardlab.errors import RewardlabError
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.methods.baselines.sft import sft_first
from rewardlab.rewards.retrieved import failure_of, rounds, similarity, texts_in
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.interactive import in_place_of_replies, interactive
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share
from rewardlab.text.searches import results_of
from rewardlab.util.ranking import auc_of

# ---- the relevance of what a step retrieved -----------------------------------------------------------------------------------


@reward(steps=True)
def relevant(
    trajectory: Trajectory, *, by: Literal["similar", "supporting"] = "similar", gold: str = "supporting", embed: str = ""
) -> list[tuple[int, float]] | Score:  # fmt: skip
    """At the end of each reply that was answered, from 0 to 1, how relevant the answer is:

    similar: the highest similarity of a result with question and query together (embed: `rewards/retrieved.py`).  supporting: 1 if
    it holds a document of the column `gold`, else 0; no verdict where the column is no list, or a search failed.
    """
    wanted = texts_in(trajectory.problem, gold)
    if failed := failure_of(trajectory):
        return Score(None, why=failed)
    if by == "supporting" and not wanted:
        return Score(None, why=f"the column {gold!r} is no list of documents")
    steps = []
    for end, reply, answer in rounds(trajectory):
        if by == "supporting":
            shown = " ".join(answer.split())
            steps.append((end, float(any(text in shown for text in wanted))))
        else:
            asked = " ".join([trajectory.problem.question, *asked_in(reply)])
            steps.append(
                (end, float(np.clip(similarity([asked], results_of(answer, titles=True), embed).max(initial=0.0), 0.0, 1.0)))
            )
    return steps


@reward(over="groups", steps=True)
def each_retrieval(groups: list[Group], run: Run, *, inner: Reward) -> Scores:
    """The reward `inner`, such as a judge's, of an episode up to each answer of the environment, at the end of what was answered.

    No verdict for an episode where one of them has none.
    """
    rows = [t for group in groups for t in group]
    ends = [[end for end, _, _ in rounds(t)] for t in rows]
    parts = [_up_to_answer(t, end) for t, some in zip(rows, ends, strict=True) for end in some]
    judged = iter([row[0] for row in inner([[part] for part in parts], run)] if parts else [])
    made = iter([_steps(some, [next(judged) for _ in some]) for some in ends])
    return [[next(made) for _ in group] for group in groups]


def _up_to_answer(t: Trajectory, end: int) -> Trajectory:
    decided = np.flatnonzero(t.mask[end + 1 :])
    return t.cut(end + 1 + int(decided[0])) if len(decided) else t


def _steps(ends: Sequence[int], judged: Sequence[Score]) -> Score:
    totals = [score.total for score in judged]
    known = [total for total in totals if total is not None]
    if len(known) < len(totals):
        return Score(None, why=next(s.why for s in judged if s.total is None))
    return Score(steps=zip(ends, known, strict=True)) if known else Score(0.0)


@reward(over="groups", steps=True)
def stepwise(
    groups: list[Group], run: Run, *, process: Reward, outcome: Reward, right: float = 2.0, wrong: float = 0.1,
    boost: NonNegativeFloat = 1.6, damp: NonNegativeFloat = 0.1,
) -> Scores:  # fmt: skip
    """The steps of `process` times `boost` in episodes that `outcome` finds right (at least 1), times `damp` in others; `right` or
    `wrong` at the last reply, unless that searches. No verdict without one of both.  Li et al. 2025, arXiv:2505.23794
    """

    def paid(t: Trajectory, p: Score, o: Score) -> Score:
        if p.total is None or o.total is None or not t.ends:
            return Score(None, why=p.why or o.why or "the episode has no reply")
        answers = not asks(t.reply)
        good = answers and o.total >= 1.0
        steps = [(at, r * (boost if good else damp)) for at, r in p.steps]
        return Score(steps=[*steps, (t.ends[-1], (right if good else wrong) * answers)], why=o.why)

    tables = zip(groups, process(groups, run), outcome(groups, run), strict=True)
    return [[paid(*row) for row in zip(*table, strict=True)] for table in tables]


# ---- steps as samples of their own --------------------------------------------------------------------------------------------


@credit(needs=("value",))
def gae_by_turn(a: Tensor, batch: Batch, run: Run, *, gamma: Share = 0.99, lam: Share = 0.95) -> Tensor:
    """Generalised advantages within each turn: after its last decision the value is 0, and no earlier turn gets anything of it."""
    v, turn, known = value_before(batch.value, batch.mask), turn_of(batch.mask), with_verdict(batch)
    total = a.new_zeros(a.shape)
    # a loop over turns, not tokens: there are few of them
    for k in range(int(turn.max()) + 1 if turn.numel() else 0):
        own = batch.mask & (turn == k)
        delta = (a + gamma * next_decision(v, own) - v).where(own & known, a.new_zeros(()))
        total = total + over_decisions(delta, own, gamma * lam)
    return total


@credit(needs=("value",))
def return_by_turn(a: Tensor, batch: Batch, run: Run, *, gamma: Share = 0.99, lam: Share = 0.95) -> Tensor:
    """The critic's target: its value before the update plus `gae_by_turn`."""
    return gae_by_turn(gamma=gamma, lam=lam)(a, batch, run) + value_before(batch.value, batch.mask)


@weighting
def each_step_alike(batch: Batch) -> Tensor:
    """Every step of the batch counts the same, whatever its length and its episode's."""
    length = turn_sums(torch.ones_like(batch.reward), batch.mask)
    return over_turns(1 / (length.clamp(min=1) * (length > 0).sum().clamp(min=1)), batch.mask)


@loop(wraps="inner", first=("steps",))
def cold_start_first(
    recipe: Recipe, run: Run, ops: Any, *, steps: PositiveInt, field: str = "solution", inner: Loop | None = None
) -> None:  # fmt: skip
    """`sft_first` of a policy with a critic, which does not learn in these steps: traces have no reward."""
    critic = ops.learners["critic"]
    every, critic.every = critic.every, critic.every if run.step >= steps else 0
    try:
        sft_first(steps=steps, field=field, inner=inner)(recipe, run, ops)
    finally:
        critic.every = every


@measure
def relevance_found(problems: Sequence[Problem], run: Run, *, rollout: Rollout) -> dict[str, float]:
    """AUC of two relevances for retrievals that find a supporting document over those that do not: question_and_query, as
    `relevant`; query, the similarity with the query alone, by which the search engine found it.
    """
    pairs: dict[str, list[tuple[float, bool]]] = {"question_and_query": [], "query": []}
    for t in (t for group in rollout(list(problems), run) for t in group):
        truth = relevant(by="supporting")([[t]])[0][0].steps
        said = relevant()([[t]])[0][0].steps
        alone = [
            float(similarity(asked_in(reply)[:1], results_of(answer, titles=True)).max(initial=0.0))
            for _, reply, answer in rounds(t)
        ]
        good = [value >= 1.0 for _, value in truth]
        pairs["question_and_query"] += zip((value for _, value in said), good, strict=True)
        pairs["query"] += zip(alone, good, strict=True)
    # among retrievals that are all of one kind there is nothing to tell apart
    aucs = {name: auc_of(rows) if len({good for _, good in rows}) > 1 else 0.5 for name, rows in pairs.items()}
    return {**aucs, "n": float(len(pairs["query"]))}


# ---- the recipe ---------------------------------------------------------------------------------------------------------------


def r3_rag(
    base: Recipe | None = None, *, env: Environment | None = None, corpus: str = "", n: int | None = None, turns: int = 5,
    judge: Reward | None = None, relevance: Literal["similar", "supporting"] = "similar", embed: str = "",
    gold: str = "supporting", right: float = 2.0, wrong: float = 0.1, boost: float = 1.6, damp: float = 0.1, beta: float = 0.01,
    cold_start: int = 0, traces: str = "solution", problems: int = 64,
) -> Recipe:  # fmt: skip
    """env: the tools; without it a search in `corpus`, a file or an address, or in the documents of each row (`tools`).  n, turns:
    episodes of a question (None: the base's, or else 4), and replies of one, at most.  judge, relevance, embed, gold: of what was
    retrieved.  right, wrong, boost, damp: as of `stepwise`.  beta: weight of the KL.  cold_start: steps of SFT first, on the
    column `traces`, lists in which replies and results take turns.  problems: of a step, where no base says otherwise.
    """
    base = base or ppo(n=n or 4, beta=beta, epochs=1, minibatches=4).but(problems=problems)
    if not any(x.name == "critic" for x in base.also):
        raise RewardlabError("r3_rag learns by PPO: give it a base with a learner named critic, as ppo has")
    env = tools(env, corpus)
    process = relevant(by=relevance, gold=gold, embed=embed) if judge is None else each_retrieval(inner=judge)
    less = (less_kl(beta=beta),) if beta else ()
    own, target = (c if not less else less[0] >> c for c in (gae_by_turn(), return_by_turn()))
    alike = each_step_alike()
    critics = tuple(replace(x, recipe=x.recipe.but(credit=target, weighting=alike)) if x.name == "critic" else x for x in base.also)
    return base.but(
        rollout=in_place_of_replies(base.required("rollout"), env=env, n=n, turns=turns),
        reward=stepwise(process=process, outcome=base.reward or correct(), right=right, wrong=wrong, boost=boost, damp=damp),
        credit=own >> whiten(),
        weighting=alike,
        measure=episode_accuracy(rollout=interactive(env=env, n=1, turns=turns)),
        also=critics,
        loop=cold_start_first(steps=cold_start, field=traces, inner=base.loop) if cold_start else base.loop,
    )


system = "r3-rag"
fidelity = "core"
left_out = (
    "the penalty of a step of wrong form, since any text is an answer here; "
    "the language model that scores a step by coherence, rationality and relevance, unless a `judge` is given; the one that judges "
    "answers (here the task's verifier); how the traces of the cold start are made; queries split by a model; and the form "
    '"The problem analysis: ... The retrieval query: ..."'
)
data = Data(
    answer="the gold answer",
    supporting=Column(
        "the documents that answer the question, a list of texts or of {title, text}; read with relevance=supporting",
        optional=True,
        setting="gold",
        needed_with=("supporting",),
    ),
    facts=Column(
        "documents that can be searched, a list of texts or of {title, text}; not read with `corpus` or `env`", optional=True
    ),
    solution=Column("traces for the cold start: a list in which replies and results take turns", optional=True),
    rows=[
        {
            "prompt": "In which city was the composer of Fidelio born?",
            "answer": "Bonn",
            "facts": ["Fidelio is an opera by Beethoven.", "Beethoven was born in Bonn.", "Mozart was born in Salzburg."],
            "supporting": ["Fidelio is an opera by Beethoven.", "Beethoven was born in Bonn."],
        },
        {
            "prompt": "What is the capital of the country where Nokia was founded?",
            "answer": "Helsinki",
            "facts": ["Nokia was founded in Finland.", "The capital of Finland is Helsinki."],
        },
    ],
)

check = Check(
    says="how like a document is to question and query together tells of use from of none better than how like it is to the query",
    versus=None, task="encyclopaedia:scripted=true,test_size=4000", measure="question_and_query", direction="higher", margin=0.05,
    against="query", model="untrained", by=own_share(inner=relevance_found(rollout=recorded(fields=("wandering",)))),
    problems=4000, steps=1, fault=Within("query", high=0.9, says="AUC by the query alone"),
    tried="two development seeds: +.03 and -.03",
    finding="the similarity with question and query together orders 81% of pairs of a retrieval of use and one of none rightly, "
    "that with the query alone 79%, and eight pairs do not decide it: the default relevance is better than chance, and hardly "
    "better than the search engine's own",
)  # fmt: skip
baseline = "ppo"
