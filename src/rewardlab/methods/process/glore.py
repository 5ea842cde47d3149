"""GLoRe: a stepwise outcome model locates the first error of a draft, and an outcome model chooses the best refinement.

    SORM, label of step i: 1 if any of n continuations of the steps up to i is right (or of later ones), whose text has the
          result of step i in it;   ORM, label of every step: whether the reply is right;    both by cross-entropy
    draft; global: written anew; local: gone on from before the first step with SORM < 1/2;   of the three that with the highest ORM

The ORM learns how likely the policy is to succeed, V of the policy: it is low at right steps of a problem that the policy mostly
fails. The SORM learns V of the best policy near it: it falls only where nothing right can follow, which is at the error.

Havrilla et al. 2024, arXiv:2402.10963: labels, the three ways of cleaning them (a right step makes those before it right, results
must be used, as many labels of either kind in every place) and the choice among three. (inferred): n, that a result is the last
number of a step, and that the balance is within a batch. The models learn beside the policy, which stays as it is, and they begin
from it. Steps are lines.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Learner, Problem, Recipe, Run, Sampling, Trajectory, Update, measure, with_surprise
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.evals.step_labels import label_quality
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.algebra import threshold as at_least
from rewardlab.rewards.denoised import reachable_steps
from rewardlab.rewards.model import model_score, step_score
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.steps import correct_steps, outcome_at_steps
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, Share
from rewardlab.text.splitters import mark

# ----------------------------------------------------------------------------------------------------------------------
#
# Drafts that are written anew where a reward of steps finds them wrong, and the choice among draft and rewritings.


@measure
def refined(
    problems: Sequence[Problem], run: Run, *, where: Reward, by: Reward, threshold: Share = 0.5, temperature: NonNegativeFloat = 1.0
) -> dict[str, float]:
    """Accuracy of the highest-rewarded under `by`: a draft, a second reply, or the draft refined from before its first error.

    where: the reward of steps that says which step is wrong: the first that it pays less than `threshold`. Where it finds none, or
    the draft leaves no room, the draft stays.  refined: of that choice; ties go to the draft, then to the second reply.  best_of_3:
    of the same choice among draft, second reply and a third one.  pass@1: of drafts.  second, local: of the two rewritings.
    flagged: share of drafts with a wrong step, as `where` says; flagged_wrong: share of these that are wrong. Steps are lines.
    """
    if run.verify is None:
        raise RewardlabError("refined needs the task's verifier, and this run has none: name a task")
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    how, rng = Sampling(run.max_new, temperature), run.rng("eval")
    drafts, second, third = (_in_steps(run.policy.extend(prompts, how, rng), run) for _ in range(3))
    flags = [_first_wrong(s.steps, threshold) for (s,) in where([[t] for t in drafts], run)]
    local = _rewritten(drafts, flags, how, run)
    sides = [drafts, second, local], [drafts, second, third]
    right = [_right(side, run) for side in (drafts, second, local)]
    chosen, best = (_right([_best(row, by, run) for row in zip(*side, strict=True)], run) for side in sides)
    flagged = [flag is not None for flag in flags]
    low, high = mean_interval([float(ok) for ok in chosen])
    failed = [not ok for ok, flag in zip(right[0], flagged, strict=True) if flag]
    return {
        "refined": float(np.mean(chosen)), "ci95_low": low, "ci95_high": high, "n": float(len(drafts)),
        "best_of_3": float(np.mean(best)), "pass@1": float(np.mean(right[0])), "second": float(np.mean(right[1])),
        "local": float(np.mean(right[2])), "flagged": float(np.mean(flagged)), "flagged_wrong": float(np.mean(failed or [False])),
    }  # fmt: skip


def _in_steps(rows: Sequence[Trajectory], run: Run) -> Group:
    return [mark(t, "newline", run.policy.pieces, run.policy.name) for t in rows]


def _first_wrong(steps: Sequence[tuple[int, float]], threshold: float) -> int | None:
    return min((at for at, x in steps if x < threshold), default=None)


def _rewritten(drafts: Group, flags: Sequence[int | None], how: Sampling, run: Run) -> Group:
    """The drafts, of which those with a flag go on anew from the end of the step before it."""
    done, begun = list(drafts), {}
    for i, (t, flag) in enumerate(zip(drafts, flags, strict=True)):
        if flag is not None:
            start = max((at + 1 for at in t.steps if at < flag), default=int(t.mask.argmax()))
            if start + how.max_new <= run.policy.context:
                begun[i] = t.cut(start, run.policy.decode)
    if begun:
        again = run.policy.extend(list(begun.values()), how, run.rng("eval"))
        for i, t in zip(begun, _in_steps(again, run), strict=True):
            done[i] = t
    return done


def _best(row: Sequence[Trajectory], by: Reward, run: Run) -> Trajectory:
    ((*scores,),) = by([list(row)], run)
    paid = [-np.inf if s.total is None else s.total for s in scores]
    return row[int(np.argmax(paid))]


def _right(rows: Sequence[Trajectory], run: Run) -> list[bool]:
    return [s.value is not None and s.value >= 1.0 for (s,) in run.verify([[t] for t in rows], run)]


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def chance(model: str) -> Reward:
    """At the end of each step its chance of being right: the value of the model's head there is the log-odds."""
    return at_least(step_score(model=model), at=0.0, soft=1.0)


def glore(
    base: Recipe | None = None, *, n: int = 4, continuations: int = 8, used: bool = True, balance: bool = True,
    threshold: float = 0.5, init: str = "value-head", surprise: bool = False, lr: float | None = None, epochs: int = 1,
) -> Recipe:  # fmt: skip
    """n, continuations: replies per problem, and tries from a step, to label it.  used, balance: of the labels
    (`reachable_steps`). threshold: below which a step is flagged.  init, lr, epochs: of both models (`Learner.init`).
    surprise: it also reads the surprise of the policy (`Learner.init`), which no paper has.
    """
    base = base or Recipe(name="glore", update=Update(problems=8))
    # labels are the models' own rewards: the policy, which stays as it is, needs a verdict on every reply
    model = Recipe(objective=label_cross_entropy(), update=Update(lr=lr, epochs=epochs, loss_kind="scorer"))
    labels = reachable_steps(n=continuations, used=used, balance=balance)
    sorm, orm = model.but(reward=labels), model.but(reward=outcome_at_steps())
    return base.but(
        rollout=independent(n=n, steps="newline"),
        reward=base.reward or correct(),
        measure=refined(where=chance("sorm"), by=model_score(model="orm"), threshold=threshold),
        also=(*base.also, Learner("sorm", with_surprise(init, surprise), sorm), Learner("orm", with_surprise(init, surprise), orm)),
    )


fidelity = "core"
left_out = (
    "the two refiners, policies that are fine-tuned to rewrite a draft they read (the local one with [BAD] before the flagged "
    "step), and their training pairs: here the policy writes both, the local one after the steps that are not flagged"
)
data = Data(answer="the gold answer")

claim = Claim(
    says="the stepwise model ranks right steps above wrong ones more often than the outcome model, after as many updates",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="auc.sorm", direction="higher", margin=0.065, against="auc.orm",
    settings={"init": "embedded:arithmetic:judge", "lr": 3e-4, "problems": 16}, by=label_quality(
        truth=correct_steps(), rollout=independent(n=4, steps="newline"),
        annotators={"sorm": chance("sorm"), "orm": chance("orm")},
    ), problems=150, steps=30,
    fault=Within("auc.orm", high=0.9, says="right steps above wrong ones, by the outcome model"),
    judge=Within("auc.sorm", low=0.6, says="the stepwise model has learnt"), learns=None,
    finding="the stepwise model ranks right steps above wrong ones in 84% of pairs, the outcome model in 76%, and finds 87% of "
    "the first errors against 57%; but it is given 8 continuations of every step, the outcome model one verdict a reply. Whether "
    "drafts get better by it is not part of this claim",
)  # fmt: skip
baseline = None
