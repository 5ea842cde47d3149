"""IGPO: each search turn is rewarded by how much it raises the probability of the gold answer; the last one by the outcome.

    p_t = exp(mean_j log pi(a*_j | history up to the answer to turn t)),   r_t = p_t - p_{t-1} (t < T),   r_T = outcome
    A_t = sum_{k >= t} gamma^{k-t} (r_k - mean(r)) / std(r),   mean and std over all turns of the group

Wang et al. 2025, arXiv:2510.14967. The loss is GRPO's, every decision of a turn getting the turn's advantage. The paper's
outcome is the F1 of the answer's words with a penalty for a wrong format; here it is the task's verifier. The probability is
the current policy's and carries no gradient. `separate=True` normalises gains among gains and outcomes among outcomes, as the
script of the released code does (debajoycs98/IGPO, 8147030, train.sh, which there also takes differences of log-probabilities;
of several gold answers the first counts, as in its generation.py): one mean for both lies between the two, so that every search
pays for being a search. `gain=0` leaves GRPO with its outcome alone, in the same environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rewardlab.checks.claim import Claim
from rewardlab.core import Environment, Group, Recipe, Run, Score, Trajectory
from rewardlab.credit.group import center, scale_by_std
from rewardlab.credit.terms import each_term
from rewardlab.credit.turns import turn_to_go
from rewardlab.data.columns import Column, Data
from rewardlab.envs.search import tools
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.interactive import in_place_of_replies, interactive

# ---- A reward for turns after which the policy finds the gold answer likelier ----------------------------------------


@reward(over="groups", steps=True)
def information_gain(groups: list[Group], run: Run, *, prompt: str = "Answer:") -> list[list[Any]]:
    """For every turn but the last, the increase of the gold answer's probability, on the last decision of the turn:

    r_t = p_t - p_{t-1},   p_t = exp(mean over gold tokens of log pi(gold | history up to the environment's answer to turn t))

    The policy scores the gold answer as a reply that begins with `prompt`. The last turn, which gives the answer, has no reward
    here. No verdict if the problem has no gold answer.

    Wang et al. 2025, arXiv:2510.14967
    """
    rows = [t for group in groups for t in group]
    cuts = [_decision_points(t) if _gold(t) else [] for t in rows]
    beliefs = iter(belief([t.cut(n) for t, ns in zip(rows, cuts, strict=True) for n in ns], run.policy, prompt))
    scores = iter([_score(t, [next(beliefs) for _ in ns]) for t, ns in zip(rows, cuts, strict=True)])
    return [[next(scores) for _ in group] for group in groups]


def belief(histories: Sequence[Trajectory], policy: Any, prompt: str = "Answer:") -> list[float]:
    """exp of the mean log-prob of the gold answer's tokens after each history; equal histories are scored once."""
    # the rows of a group share their first history, the prompt
    keys = [(t.ids.tobytes(), _gold(t)) for t in histories]
    distinct = dict(zip(keys, histories, strict=True))
    rows = list(distinct.values())
    answered = policy.write(rows, [f"{prompt} {_gold(t)}" for t in rows])
    prompted = policy.write(rows, [prompt] * len(rows))
    logprobs = policy.score(answered)
    beliefs = {key: _mean(p, a, b) for key, p, a, b in zip(distinct, logprobs, answered, prompted, strict=True)}
    return [beliefs[key] for key in keys]


def _mean(logprobs: np.ndarray, answered: Trajectory, prompted: Trajectory) -> float:
    """exp of the mean over the answer's tokens alone, without those of the prompt and the end token."""
    both = min(len(answered), len(prompted))
    # after the prompt alone comes the end token, so the answer begins where the two differ
    first = int(np.argmax(answered.ids[:both] != prompted.ids[:both]))
    # the last token is the end token, which says nothing about the answer
    return float(np.exp(logprobs[first : len(answered) - 1].mean()))


def _gold(trajectory: Trajectory) -> str:
    """The gold answer as text, the first of several that are right; empty where there is none."""
    answer = trajectory.problem.answer
    if isinstance(answer, list | tuple):
        answer = next(iter(answer), None)
    return "" if answer is None else str(answer).strip()


def _decision_points(trajectory: Trajectory) -> list[int]:
    """The length of the history before each turn of the policy."""
    lengths, position, before = [], 0, None
    for turn in trajectory.turns:
        # turns of the policy in a row are one reply, so only the first of them counts
        if turn.author is not None and before is None:
            lengths.append(position)
        position += len(turn.ids)
        before = turn.author
    return lengths


def _score(trajectory: Trajectory, beliefs: list[float]) -> list[tuple[int, float]] | Score:
    if not beliefs:
        return Score(None, why="the problem has no gold answer")
    gains = [after - before for before, after in pairwise(beliefs)]
    return list(zip(trajectory.ends[:-1], gains, strict=True))


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def igpo(
    base: Recipe | None = None, *, n: int | None = None, turns: int = 5, gain: float = 1.0, gamma: float = 1.0, eps: float = 0.2,
    separate: bool = False, env: Environment | None = None, corpus: str = "", prompt: str = "",
) -> Recipe:  # fmt: skip
    """n: episodes of a problem; None: as many as the base has, or else 8.  turns: the most that an episode may have.
    gain: weight of the information gain beside the outcome.  gamma: per turn.
    separate: whether gains and outcomes have a mean and a deviation of their own.  env, corpus: what is searched (`tools`).
    prompt: stands before an answer; without it "<answer>" with a corpus, as its tools ask for, else "Answer:".
    """
    base = base or grpo(n=n or 8, eps=eps)
    right = base.reward or correct()
    env = tools(env, corpus)
    episodes = in_place_of_replies(base.required("rollout"), env=env, n=n, turns=turns)
    normalised = center() >> scale_by_std()
    # before an answer, as the tools ask for it
    told = prompt or ("<answer>" if corpus else "Answer:")
    return base.but(
        rollout=episodes,
        reward=right + gain * information_gain(prompt=told) if gain else right,  # gain=0 saves scoring the gold answer
        # normalised over turns before they are summed: every turn of the group is one event
        credit=(each_term(chain=normalised) if separate else normalised) >> turn_to_go(gamma=gamma),
        # measured with one episode per problem: pass@1 needs no group
        measure=episode_accuracy(rollout=interactive(env=env, n=1, turns=turns)),
    )


fidelity = "core"
left_out = (
    "the F1 of the answer's words with -2 for a wrong format (here the task's verifier), n = 16 episodes of 10 turns "
    "(here 8 of 5), and a KL"
)
data = Data(
    answer="the gold answer, a text or a list of texts that are all right, of which the policy's belief in the first is followed",
    facts=Column(
        "documents that can be searched, a list of texts or of {title, text}; not read with `corpus` or `env`", optional=True
    ),
    rows=[
        {
            "prompt": "In which country was the author of Faust born? Search, then end with Answer: and the country.",
            "answer": "Germany",
            "facts": [
                "Faust was written by Goethe.",
                "Goethe was born in Frankfurt, Germany.",
                "Hamlet was written by Shakespeare.",
            ],
        },
        {
            "prompt": "Who painted the Mona Lisa?",
            "answer": ["Leonardo da Vinci", "Leonardo"],
            "facts": [
                {"title": "Mona Lisa", "text": "A portrait by Leonardo da Vinci."},
                {"title": "Guernica", "text": "By Picasso."},
            ],
        },
        {
            "prompt": "Which river flows through Paris?",
            "answer": "Seine",
            "facts": ["Paris lies on the Seine.", "London lies on the Thames."],
        },
    ],
)

claim = Claim(
    says="rewarding what each search finds out learns more than the outcome alone after equal updates",
    versus="igpo", task="facts:hops=4,error=0.5,biased=0.75,test_size=1000", measure="auc.truth", direction="higher", margin=0.02,
    versus_settings={"gain": 0.0}, steps=22, start=None, tried="40 updates: +.043 on one pair, where both end above .9",
    finding="while it learns 55% of the episodes are right with the gain and 52% without; at the end 81% and 75% (31% before). It "
    "costs twice the tokens, since the gold answer is scored after each search",
    version=2, replaces="one budget of tokens ended it after 9 to 12 updates near the ceiling",
)  # fmt: skip
