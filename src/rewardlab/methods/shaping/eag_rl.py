"""EAG-RL: reward attention to the features that an expert model uses in a record, after imitation of the best such replies.

    first `hint_on_failure` steps: of n replies imitate the best right one,    best by r
    then                  GRPO on  r = right + w Jaccard(features that the reply names, the expert's k most salient ones)

A risk is high or low: the answer alone does not tell a reason from a habit of the ward that goes along with it. A small model that
was fitted to many records has attention, or coefficients, which tell what its own prediction rests on.

Fang et al. 2025, arXiv:2508.13579, by a summary of all of it, since the code was not to be had: the policy names the features that
it goes by, and the Jaccard similarity with the expert's is its reward beside the answer's, in the search of the first stage and in
the second. (inferred): w. In the place of the expert-guided Monte Carlo tree search, stage 1 searches among whole replies.
"""

from __future__ import annotations

import re
from typing import Any

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Loop, Recipe, Run, Score, Scores, Trajectory, loop
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of
from rewardlab.errors import RewardlabError
from rewardlab.evals.kinds import accuracy_by_kind
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.rejection_sampling import rejection_sampling
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.settings.domain import NonNegativeInt, PositiveInt
from rewardlab.text.rationale import rationale

# ---- Whether a reply goes by the features that an expert goes by -----------------------------------------------------


@reward
def feature_match(trajectory: Trajectory, *, column: str = "salient", features: str = "features") -> Score:
    """The Jaccard similarity of the features named before the answer and the expert's.

    column: the expert's features of this problem.  features: all that can be named; a reply names those that stand in it as whole
    words, in either case. No verdict where a column is missing, or holds something else than names. A reply that names nothing
    earns 0.
    """
    wanted, known = (list_of(trajectory.problem.meta.get(name)) for name in (column, features))
    if not wanted or not known or not all(isinstance(name, str) and name.strip() for name in (*wanted, *known)):
        return Score(None, why=f"the problem has no columns {column!r} and {features!r} with names of features")
    expert, text = {name.strip().lower() for name in wanted}, rationale(trajectory.reply).lower()
    names = {name.strip().lower() for name in known} | expert
    cited = {name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)}
    shared = len(cited & expert)
    return Score(shared / len(cited | expert), why=f"{shared} of the expert's {len(expert)} features, {len(cited) - shared} others")


# ---- the recipe ---------------------------------------------------------------------------------------------------------

RIGHT = 0.99
"""Above it a reward is that of a right reply: overlap alone, with w below it, is not."""


@reward(over="groups")
def where_known(groups: list[Group], run: Run, *, inner: Reward) -> Scores:
    """The reward `inner`, and nothing without a verdict: a missing term must not take the answer's reward away. Logged: known, the
    share of replies with a verdict.
    """
    said = inner(groups, run)
    known = [not s.missing for row in said for s in row]
    run.log("known", sum(known) / max(1, len(known)))
    return [[Score(0.0, why=s.why) if s.missing else Score(s.total, why=s.why) for s in row] for row in said]


@loop(wraps="inner", first=("steps",))
def guided_first(
    recipe: Recipe, run: Run, ops: Any, *, steps: NonNegativeInt, n: PositiveInt = 8, inner: Loop | None = None
) -> None:  # fmt: skip
    """Imitate the best of n replies by the recipe's reward, if it is right, in the first `steps` steps. Then the policy so far
    becomes the reference, and training goes on. inner: how a step is taken, in both stages.
    """
    if run.step == steps:
        ops.new_stage()
    step = rejection_sampling(recipe, n=n, keep=1, right=RIGHT) if run.step < steps else recipe
    inner(step, run, ops) if inner else ops.standard_step(step)


def eag_rl(base: Recipe | None = None, *, weight: float = 0.5, guided: int = 10, n: int = 8) -> Recipe:
    """weight: w, below .99 if there is a first stage.  guided: steps of that stage; 0 leaves it out.  n: replies that it chooses
    from, and those of grpo."""
    if guided and not weight < RIGHT:
        raise RewardlabError(
            f"eag_rl: with weight={weight} overlap alone would count as right in the first stage; "
            f"give one below {RIGHT}, or guided=0"
        )
    base = base or grpo(n=n).but(measure=accuracy_by_kind())
    right: Any = base.reward or correct()
    stages = guided_first(steps=guided, n=n, inner=base.loop) if guided else base.loop
    return base.but(reward=right + weight * where_known(inner=feature_match()).named("salient"), loop=stages)


fidelity = "core"
left_out = (
    "the tree search that the expert guides, for which whole replies stand; a reward by the confidence of the answer; and "
    "the upper clip range that rises with the entropy of the features, from .2 to .4."
)

data = Data(
    prompt="a record, as text, and a question about it",
    answer="the gold answer",
    features=Column("the names of all values of the record; `rewardlab data salient` writes them", optional=True),
    salient=Column("the names that an expert model goes by in this record; without them answers alone are paid", optional=True),
    idle={
        "salient": "does not pay for what an expert goes by: only the answer is paid",
        "features": "cannot tell what a reply goes by: only the answer is paid",
    },
    rows=[
        {
            "prompt": "Patient: heart rate 118, lactate 4.2, sodium 139, age 71. Is the risk of death in the ICU high or low? Name "
            "what you go by, then write: Answer: high, or Answer: low",
            "answer": "high",
            "features": ["heart rate", "lactate", "sodium", "age"],
            "salient": ["lactate", "age"],
        },
        {
            "prompt": "Patient: heart rate 80, lactate 1.0, sodium 141, age 35. Is the risk of death in the ICU high or low? Name "
            "what you go by, then write: Answer: high, or Answer: low",
            "answer": "low",
            "features": ["heart rate", "lactate", "sodium", "age"],
            "salient": ["lactate", "heart rate"],
        },
    ],
)

claim = Claim(
    says="where habits of the ward change, more risks are told rightly than after training on answers alone",
    versus="eag_rl", task="charts", measure="pass@1.shifted", direction="higher", margin=0.081, versus_settings={"weight": 0.0},
    by=accuracy_by_kind(), steps=25, guard=Within("pass@1.same", low=-0.03),
    fault=Within("pass@1.shifted", high=0.8, says="of shifted charts, rightly told after training on answers alone"),
    moved=Within("train.reward/salient", low=0.1, says="overlap with what the expert goes by"), learns=None, start=None,
    tried="40 steps: answers alone told .88 of the shifted charts rightly, which left too little to gain",
    finding="Of charts from a ward with other habits 93% are told rightly, after training on answers alone 77%. It counts for "
    "nothing: of all charts answers alone end at 86%, a point above what leaves room to differ. The expert was fitted to the same "
    "records and goes by what counts; one that goes by less would help less.",
    version=2, replaces="the expert had seen charts of another ward, which the rival cannot look at; now both learn from the same",
)  # fmt: skip
baseline = "grpo"
