"""Consensus filtering: a process reward model of the solutions on which continuations and a judge place the first error alike.

    Monte Carlo:  step k is wrong if none of n continuations of the steps up to k is right;     first error: the first such step
    judge:        the first step that it finds wrong
    kept:         solutions on which both name the same step, or both none
    labels:       1 before the first error, 0 at it, none after it;     process reward model: cross-entropy at the ends of steps
    of n replies: the one with the largest product of the chances of its steps

Continuations measure what a policy will make of a prefix, not whether it is right: one that mends an error hides it, and one that
fails later blames a right step. A judge errs for other reasons, so that what both say is mostly true. What both say is also what is
easy to say: replies with an error are dropped more often than others.

Zhang et al. 2025, arXiv:2501.07301, the lessons of Qwen2.5-Math-PRM, by the paper's text: 6 to 8 replies to a problem, 8
continuations of a step, hard labels with 0 as the threshold (2.1, 3.1.4), that steps after the first wrong one are left out (2.1),
and the product (2.2). There about 40% of the solutions are kept (3.1.3), soft labels profit less (`hard=False`), and thresholds
above 0 harm. No training code was found. There the judge, Qwen2.5-72B-Instruct, analyses paragraph after paragraph and stops at
the first wrong one (appendix C); here it names that one in a box, which is the form of ProcessBench, by the same authors. --judge
PATH is the judge, a copy of the policy's start without it; `annotators` may be any step rewards of your own. The model learns
beside the policy, which stays as it is; there it learns once, from a file: `rewardlab prm label --by consensus` writes one, `prm
train` learns from it. Steps are lines.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Learner, Problem, Recipe, Rollout, Run, Update, measure, with_surprise
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.process import harmonic
from rewardlab.evals.reranked import reranked
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.algebra import aggregate, threshold
from rewardlab.rewards.consensus import agreed, consensus_steps, first_error
from rewardlab.rewards.imperfect_steps import imperfect_steps
from rewardlab.rewards.judged_steps import judged_steps
from rewardlab.rewards.model import step_score
from rewardlab.rewards.monte_carlo import monte_carlo_steps
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.steps import correct_steps
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import Share

JUDGE = "judge"

# ---- How well the labels that are kept place the first error, beside those of each annotator alone -------------------


@measure
def kept_labels(
    problems: Sequence[Problem], run: Run, *, truth: Reward, annotators: dict[str, Reward], rollout: Rollout, at: Share = 0.0
) -> dict[str, float]:
    """ProcessBench's F1 (Zheng et al. 2024, arXiv:2412.06559) of step labels, among the replies that have them.

    For each annotator X, each of which is asked once, and for X = consensus, what all of them agree on: kept.X, the share of the
    replies with labels; located.X, of those with a wrong step by the reward `truth`, the share whose first one is labelled as such;
    cleared.X, of those without, the share in which no step is; f1.X, their harmonic mean, 0 where nothing is kept; flawed.X, the
    share of replies with a wrong step.
    """
    groups = rollout(list(problems), run)
    rows = [t for group in groups for t in group]
    gold = [first_error(t, s, 0.0) for t, s in zip(rows, (s for row in truth(groups, run) for s in row), strict=True)]
    if all(place is None for place in gold):
        raise RewardlabError(f"kept_labels: {truth} does not judge the steps of the replies to {len(problems)} problems")
    said = {name: part(groups, run) for name, part in annotators.items()}
    found: dict[str, float] = {}
    for name, tables in {**{name: [scores] for name, scores in said.items()}, "consensus": list(said.values())}.items():
        labels = [s for row in agreed(groups, tables, at) for s in row]
        places = [first_error(t, s, at) for t, s in zip(rows, labels, strict=True)]
        numbers = _placed([(g, p, len(t.steps)) for g, p, t in zip(gold, places, rows, strict=True) if g is not None])
        found |= {f"{key}.{name}": x for key, x in numbers.items()}
    return found


def _placed(rows: Sequence[tuple[int, int | None, int]]) -> dict[str, float]:
    """Of replies (first error, the labelled one, steps); a first error after the last step is none."""
    kept = [(gold, place, gold < steps) for gold, place, steps in rows if place is not None]
    flawed = [gold == place for gold, place, wrong in kept if wrong]
    clean = [gold == place for gold, place, wrong in kept if not wrong]
    located, cleared = (sum(x) / len(x) if x else 0.0 for x in (flawed, clean))
    return {
        "kept": len(kept) / len(rows), "located": located, "cleared": cleared, "f1": harmonic(located, cleared),
        "flawed": len(flawed) / len(kept) if kept else 0.0,
    }  # fmt: skip


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def prm_lessons_consensus_filter(
    base: Recipe | None = None, *, annotators: tuple[Reward, ...] = (), judge: str = "copy:policy", longest: int = 1024,
    continuations: int = 8, at: float = 0.0, hard: bool = True, n: int = 6, choose: int = 8, init: str = "value-head",
    surprise: bool = False, lr: float | None = None, epochs: int = 1,
) -> Recipe:  # fmt: skip
    """annotators: step rewards that must agree; (): continuations and the judge.  judge, longest: the model that judges, and the
    tokens of its word.  continuations: tries from each step.  at: the share of right ones up to which a step is wrong.  hard:
    False: labels are shares.  n: replies per problem, to be labelled.  choose: replies to choose from when it is measured.  init,
    lr, epochs: of the model.  surprise: it also reads the surprise of the policy (`Learner.init`), which no paper has.
    """
    base = base or Recipe(name="prm_lessons_consensus_filter", update=Update(problems=8))
    own = () if annotators else (Learner(JUDGE, judge, Recipe(), every=0),)
    asked = (monte_carlo_steps(n=continuations), judged_steps(model=JUDGE, max_new=longest))
    # labels are the model's own reward: the policy, which stays as it is, needs a verdict on every reply
    labels = consensus_steps(inner=annotators or asked, at=at, hard=hard)
    prm = Recipe(reward=labels, objective=label_cross_entropy(), update=Update(lr=lr, epochs=epochs, loss_kind="scorer"))
    return base.but(
        rollout=independent(n=n, steps="newline"),
        reward=base.reward or correct(),
        measure=reranked(by=aggregate(CHANCES, by="product"), n=choose),
        also=(*base.also, *own, Learner("prm", with_surprise(init, surprise), prm)),
    )


CHANCES = threshold(step_score(model="prm"), at=0.0, soft=1.0)
"""Of each step, that it is right, by the model."""

fidelity = "core"
left_out = (
    "the judge's analysis of each paragraph, a head of two layers (here one), squared error for soft labels, and learning once "
    "from a file of solutions by several policies, which are continued by others"
)
data = Data(answer="the gold answer")
CONTINUED = monte_carlo_steps(n=8)
JUDGED = threshold(imperfect_steps(inner=correct_steps(), auc=0.9), at=0.5)
"""A judge of known quality, whose errors last along a reply: it stands for a language model."""

check = Check(
    says="where continuations and a judge agree, labels place the first error better than those of continuations alone",
    versus=None, task="arithmetic:biased=0.8,error=0.05,difficulty=[2,5]", measure="f1.consensus", direction="higher", margin=0.09,
    against="f1.continued", by=kept_labels(
        truth=correct_steps(), rollout=independent(n=3, steps="newline"), annotators={"continued": CONTINUED, "judged": JUDGED},
    ), problems=60, steps=1, fault=Within("f1.continued", high=0.9, says="F1 of first errors by continuations alone"),
    judge=Within("kept.consensus", low=0.2, says="share of replies that keep their labels"), sanity=True,
    tried="judges with an AUC of .8, .85, .9 and .95 on one development seed: 54 to 70% kept, F1 .90 to .96",
    finding="of the first errors, the labels that both agree on reach F1 .93 and are those of 61% of the replies; continuations "
    "alone .79, the judge alone .70. The winner has more to go by, and the judge is simulated and errs independently of "
    "continuations, so that agreement must help. It keeps fewer replies with an error: 59%, of all 65%",
)  # fmt: skip
baseline = None
