"""SPA-RL: a model learns each turn's contribution to the episode reward from their sum, as the turn rewards of PPO.

    progress model: (sum_t c_t - R)^2,  c_t its value at the end of turn t
    reward of turn t: alpha c_t + beta g_t, in place of R
    g_t = 1 if the environment could do what turn t asked for, else 0

The reward of an episode comes at its end, far from the turns that earned it. A model that must divide it among them can only do so
by what it reads up to each, so it gives most to turns after which success is in sight. g_t keeps actions within what can be done.

Wang et al. 2025, arXiv:2505.20732. The loss over sums and the ends of turns are those of the released code (WangHanLinHenry/
SPA-RL-Agent, 323964f, prm/train_our_progress_model.py); beta = 0.5, the last turn counting as done, of prm/rl_data_org.py there.
That script pays every turn R less the other episodes' mean in place of c_t; here it is c_t, as in the paper. (inferred): alpha = 1;
a linear head on the hidden state (the code puts it on the logits). The model learns beside the policy, one batch behind; there it
is trained once, on episodes of the start. `watched=True` adds a critic of the reward as it comes, at the end, which pays nobody:
PPO's own, here, is one of what the turns are paid.

An environment (env=...) tells that something could not be done by a line that begins with a text of `refused`, "Nothing happens"
in theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import (
    Batch,
    Environment,
    Learner,
    Outputs,
    Problem,
    Recipe,
    Rollout,
    Run,
    Score,
    Trajectory,
    Update,
    credit,
    measure,
    objective,
)
from rewardlab.data.columns import Column, Data
from rewardlab.envs.functions import ERROR
from rewardlab.envs.search import search, tools
from rewardlab.errors import RewardlabError, unknown
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.objectives.progress import turn_ends, turns_sum_error
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.interactive import in_place_of_replies, interactive
from rewardlab.text.searches import FAILED, NOTHING, query_of
from rewardlab.util.outputs import values
from rewardlab.util.ranking import auc_of

# ---- Whether a model of progress finds the turns that bring an episode on --------------------------------------------


@measure
def progress_found(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, truth: Reward, model: str = "progress", critic: str = "critic"
) -> dict[str, float]:
    """AUC of the turn rewards for turns that `truth` rewards over those that it does not.

    auc.progress: the number is the value of `model` at the turn's end.  auc.critic: by how much the value of `critic` rises from
    the end of the turn before to that of this one.  calibration: the correlation over episodes of the sum of the former and whether
    the episode is right, by the task's verifier. NaN where one kind of turns is missing.  n: turns.  pass@1: of the episodes.
    """
    groups = rollout(list(problems), run)
    rows = [t for group in groups for t in group]
    paid = [dict(s.steps) for row in truth(groups, run) for s in row]
    said, worth = values(run.model(model), rows), values(run.model(critic), rows)
    turns, rises = [], []
    for t, steps, v, w in zip(rows, paid, said, worth, strict=True):
        before = int(np.argmax(t.mask)) - 1  # the end of the prompt
        for end in t.ends:
            if end in steps:
                turns.append((float(v[end]), steps[end] >= 1.0))
                rises.append((float(w[end] - w[before]), steps[end] >= 1.0))
            before = end
    right = [s.value is not None and s.value >= 1.0 for row in run.verify(groups, run) for s in row]
    sums = [float(sum(v[end] for end in t.ends)) for t, v in zip(rows, said, strict=True)]
    fit = float(np.corrcoef(sums, right)[0, 1]) if len(set(right)) > 1 and np.ptp(sums) else math.nan
    return {
        "pass@1": float(np.mean(right)), "auc.progress": auc_of(turns), "auc.critic": auc_of(rises), "calibration": fit,
        "n": float(len(turns)),
    }  # fmt: skip


REFUSED = ("Nothing happens", NOTHING, FAILED, ERROR)
"""What text games, our search and our tools answer where nothing could be done."""

# ---- Whether what an agent did could be done -------------------------------------------------------------------------


@reward(steps=True)
def executed(trajectory: Trajectory, *, refused: tuple[str, ...] = REFUSED) -> list[tuple[int, float]]:
    """1 at the end of each turn of an episode, or 0 where a line of what the environment answered begins with one of `refused`.

    A turn that nothing answers, such as the last, could be done.  Wang et al. 2025, arXiv:2505.20732
    """
    steps: list[tuple[int, float]] = []
    position = 0
    for turn in trajectory.turns:
        if turn.author is None and steps and _refused(turn.text, refused) and steps[-1][0] == position - 1:
            steps[-1] = (position - 1, 0.0)
        position += len(turn.ids)
        if turn.author is not None and len(turn.ids):
            # a reply written over several updates is several turns in a row: its end is the last one's
            steps = [s for s in steps if s[0] != position - 1 - len(turn.ids)] + [(position - 1, 1.0)]
    return steps


def _refused(text: str, refused: Sequence[str]) -> bool:
    # not anywhere: a document may hold the same words
    return any(line.lstrip().startswith(tuple(refused)) for line in text.splitlines())


# ---- Rewards that know the gold searches of a question ---------------------------------------------------------------


@reward(steps=True)
def gold_searches(trajectory: Trajectory) -> list[tuple[int, float]] | Score:
    """At the end of each reply that searches: 1 if its search is the next of meta["searches"], else 0."""
    left = list(trajectory.problem.meta.get("searches") or [])
    if not left:
        return Score(None, why="the problem has no gold searches")
    steps = []
    for end, reply in zip(trajectory.ends, trajectory.replies, strict=True):
        query = query_of(reply)
        if query is not None:
            found = bool(left) and query == left[0]
            left = left[found:]
            steps.append((end, float(found)))
    return steps or Score(None, why="the episode has no search")


# ---- the recipe ---------------------------------------------------------------------------------------------------------

TERM, WATCHED = "executed", "watched"


@credit(needs=("progress.value",))
def step_progress(a: Tensor, batch: Batch, run: Run, *, alpha: float = 1.0, beta: float = 0.5) -> Tensor:
    """The end of each turn is paid alpha times the progress model's value there, and beta where the turn was executed."""
    if TERM not in batch.terms:
        raise unknown("reward term", TERM, batch.terms)
    paid = alpha * batch.columns["progress.value"] + beta * batch.terms[TERM].reward
    # the policy is judged where its episode is: without a verdict nobody knows what the turns were worth
    where = turn_ends(batch.mask) & batch.rewarded.any(1, keepdim=True)
    return torch.where(where, paid, 0.0)


@objective(unit="row", wants=("value",))
def delayed_error(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """Mean of (V - R)^2 over the ends of turns and of the prompt, with R the return of the episode, which V predicts.

    Episodes without a verdict teach nothing.
    """
    before = batch.mask.int().argmax(1, keepdim=True) - 1
    where = turn_ends(batch.mask) | (torch.arange(batch.mask.shape[1], device=batch.mask.device) == before)
    where = where & batch.rewarded.any(1, keepdim=True)
    earned = torch.where(batch.rewarded, batch.reward, 0.0).sum(1, keepdim=True)
    return torch.where(where, (out.value - earned).square(), 0.0).sum(1) / where.sum(1).clamp(min=1)


def spa_rl(
    base: Recipe | None = None, *, env: Environment | None = None, corpus: str = "", turns: int = 5, n: int | None = None,
    alpha: float = 1.0, beta: float = 0.5, refused: tuple[str, ...] = REFUSED, progress_lr: float | None = None,
    progress_epochs: int = 4, watched: bool = False,
) -> Recipe:  # fmt: skip
    """corpus: a file of documents to search (`tools`).  env, turns, n: what is played, for how long, and how often per
    problem (None: as the base does, or else once).  alpha, beta: of progress and of what was executed.  refused: how a line begins
    where the environment tells that it was not.  progress_lr, progress_epochs: of the progress model.  watched: a critic of the
    reward at the end learns beside it, as often and from the same episodes, to compare with.
    """
    base = base or ppo(n=n or 1)
    if not any(x.name == "critic" for x in base.also):
        raise RewardlabError(
            "SPA-RL pays turns to a policy that has a critic: give it a base with a learner of this name, as ppo has"
        )
    pays = step_progress(alpha=alpha, beta=beta)
    # the critic predicts what the policy is paid
    own = tuple(replace(x, recipe=x.recipe.but(credit=pays >> x.recipe.credit)) if x.name == "critic" else x for x in base.also)
    update = Update(lr=progress_lr, epochs=progress_epochs, loss_kind="scorer")
    models = {"progress": turns_sum_error()} | ({WATCHED: delayed_error()} if watched else {})
    env = tools(env, corpus)
    return base.but(
        rollout=in_place_of_replies(base.required("rollout"), env=env, n=n, turns=turns),
        reward=(base.reward or correct()) + 0.0 * executed(refused=refused).named(TERM),
        credit=pays >> base.required("credit"),
        measure=episode_accuracy(rollout=interactive(env=env, n=1, turns=turns)),
        also=(*own, *(Learner(name, "value-head", Recipe(objective=loss, update=update)) for name, loss in models.items())),
    )


fidelity = "core"
left_out = (
    "the supervised training before, the exploration of the start from which the progress model learns once, and the environments "
    "of the paper (WebShop, ALFWorld, VirtualHome)"
)
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
check = Check(
    says="turns that make the next right search are told from others better by progress than by rises of a critic of the outcome",
    versus=None, task="facts:hops=4,error=0.5,biased=0.75,test_size=1000", measure="auc.progress", direction="higher",
    margin=0.096, against="auc.critic", settings={"watched": True},
    by=progress_found(rollout=interactive(env=search(), n=1, turns=5), truth=gold_searches(), critic=WATCHED),
    problems=300, steps=20, judge=Within("calibration", low=0.3, says="correlation of summed progress and success"), learns=None,
    finding="of pairs of a right and a wrong search, the progress model orders 70% rightly and the critic of the outcome 52%, "
    "which is close to chance. What a policy gains by it is not tested: in 20 steps it goes from 30% to 34% right",
)  # fmt: skip
baseline = "ppo"
