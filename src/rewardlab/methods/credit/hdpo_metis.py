"""HDPO: tool economy as a separate advantage channel, normalised among right episodes only.

    A = w_acc (R - mean) / std over the group  +  w_eff (E - mean) / std over the group's right episodes, 0 for all others
    R = .9 right + .1 form (R = right without a form);     E = 1 / (calls + 1)

In one reward, a mild penalty on calls is lost in the deviation of what is right, and a strong one suppresses calls that were
needed. Among right episodes alone a call too many is all that differs. While few are right there is nobody to compare with, so
that a policy learns to solve first and to spare calls later.

Yan et al. 2026, arXiv:2604.08545, after the README of Accio-Lab/Metis: both rewards, at least two right episodes for the second
channel, and w_eff = .15, which its training script is given. (inferred): w_acc = 1. The paper adds the losses of the two channels;
here the advantages are added, which has the same gradient unless a ratio is clipped, and none is with one update of each batch.
`coupled=True` leaves GRPO on the sum R + w_eff E.

A call is a reply that the environment answered: by default a search; env=... is any other, or that of a method below it in a stack.
"""

from typing import Any

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Environment, Group, Recipe, Run, Score, Scores, Term, Trajectory
from rewardlab.credit.group import center, scale_by_std
from rewardlab.credit.terms import by_term
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Column, Data
from rewardlab.envs.search import search, tools
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.evals.length import length_of_right
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.format import format_ok
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.interactive import in_place_of_replies, interactive

ACCURACY, ECONOMY = "accuracy", "economy_if_right"


@reward(over="groups")
def economy_if_right(groups: list[Group], run: Run) -> Scores:
    """1 / (calls + 1) for a right episode. A wrong one is not rewarded at all, neither with 0: it takes part in no mean."""
    return [[_economy(t, s) for t, s in zip(*rows, strict=True)] for rows in zip(groups, correct()(groups, run), strict=True)]


def _economy(trajectory: Trajectory, verdict: Score) -> Score:
    if verdict.value is None:
        return Score(None, why=verdict.why)
    calls = max(0, len(trajectory.ends) - 1)  # all replies but the last, and of an episode without any reply none
    return Score(terms={ECONOMY: Term(1 / (calls + 1) if verdict.value >= 1.0 else None)}, why=f"{calls} calls")


def hdpo_metis(
    base: Recipe | None = None, *, env: Environment | None = None, corpus: str = "", n: int | None = None, turns: int = 6,
    accuracy: float = 1.0, efficiency: float = 0.15, form: str = "", coupled: bool = False,
) -> Recipe:  # fmt: skip
    """env: the tools; without it, those that the base plays with, else a search.  corpus: a file of documents to search (`tools`).
    n: episodes of a problem; None: as many as the base has, or else 8.  turns: the most that an episode may have.
    accuracy, efficiency: the weights w.  form: a regular expression that replies should match.  coupled: of one channel.
    """
    base = base or grpo(n=n or 8)
    right: Any = base.reward or correct()
    total = accuracy * aggregate(0.9 * right + 0.1 * format_ok(pattern=form) if form else right).named(ACCURACY)
    total = total + efficiency * economy_if_right()
    normalised = center() >> scale_by_std()
    # what a method above adds has a channel of its own
    channels = by_term(chains={ACCURACY: normalised, ECONOMY: normalised}, others=normalised)
    paid = base.but(reward=total, credit=(normalised if coupled else channels) >> to_go())
    # a base that plays in an environment keeps it, and keeps its measure
    if not (env or corpus) and base.sampling_settings.get("env"):
        return paid
    env = tools(env, corpus)
    measure = episode_accuracy(rollout=interactive(env=env, n=1, turns=turns))
    return paid.but(rollout=in_place_of_replies(base.required("rollout"), env=env, n=n, turns=turns), measure=measure)


fidelity = "core"
left_out = "the curated data and the cold start, tools for images, and the losses of the two channels, each clipped by itself"
data = Data(
    answer="the gold answer",
    facts=Column("a list of texts that can be searched; needed unless corpus or env is set", optional=True),
    rows=[
        {
            "prompt": "In which country was the inventor of the telephone born?",
            "answer": "Scotland",
            "facts": ["The telephone was patented by Alexander Graham Bell.", "Alexander Graham Bell was born in Scotland."],
        },
        {
            "prompt": "Which river flows through the capital of Austria?",
            "answer": "Danube",
            "facts": ["The capital of Austria is Vienna.", "The Danube flows through Vienna."],
        },
    ],
)

SEARCHES = interactive(env=search(), n=2, turns=6)
claim = Claim(
    says="right answers take fewer tool calls than where the same economy is one reward with being right, and as many are right",
    versus="hdpo_metis", task="facts:hops=3,error=0.6,redundant=0.4,test_size=1000", measure="right_calls", direction="lower",
    margin=0.15, settings={"problems": 8, "efficiency": 0.5},
    versus_settings={"problems": 8, "efficiency": 0.5, "coupled": True}, by=length_of_right(rollout=SEARCHES), problems=300,
    steps=30, guard=Within("pass@1", low=-0.03),
    fault=Within("right_calls", low=3.4, says="calls of right episodes, which need three"), start=None,
    tried="one seed, 30 updates: -.29 calls and +.045 of right episodes; with a weight of .15, the paper's, 3.73 calls of 3.96 "
    "at the start, where .5 leaves 3.53 and one reward 3.82. The margin is half of that one effect",
    finding="right episodes need three calls; they take 4.0 at the start, 3.6 after HDPO and 3.9 after one reward for both, while "
    "64% and 61% of all are right: calls are saved at no price. The weight of .5 is over three times the paper's",
)  # fmt: skip
baseline = "grpo"
