"""Sotopia-RL: attribute an episode's scores to its utterances, and train a reward model on single utterances.

    r_i = mean over d of  norm_d(G_d A_d(a_i) / 3),    d: goal, relationship, knowledge
    reward model R:  (R(history, a_i) - r_i)^2 -> min;    then GRPO on single utterances after recorded histories, paid R

G_d: the score of the whole talk;  A_d: how much of it an attributor, who sees the whole talk, ascribes to utterance i, 0 to 3;
norm_d: from the range of d to 0 to 1. What one says often pays late and indirectly: paid the talk's score, all utterances of a good
talk are good. And who pays for the goal alone teaches to push for it; rapport and knowledge lead there too.

Yu et al. 2025, arXiv:2508.03905; G A / 3, the mean squared error and GRPO on single turns as in the released code
(sotopia-lab/sotopia-rl, 10ba7bd, scripts/data_process; 039935c, sotopia_rl/grpo_trainer.py), which has the goal alone, from 0 to
10. (inferred): scores of several dimensions are normalised by their ranges. `spread="uniform"` gives every utterance its talk's
scores.

The prompt is the talk until then. --reward-model PATH is one that was taught before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Learner, Recipe, Score, Trajectory, Update
from rewardlab.data.columns import Column, Data
from rewardlab.data.sotopia import RANGES
from rewardlab.data.values import number_of
from rewardlab.evals.pairs import pair_accuracy
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.rlhf import MODEL, UNTAUGHT, rlhf
from rewardlab.objectives.labels import label_squared_error
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import PositiveInt
from rewardlab.text import strict_json

# ---- The scores of an episode, divided among its utterances by what an attributor says of each -----------------------


@reward
def attributed_score(
    trajectory: Trajectory, *, dimensions: tuple[str, ...] = ("goal", "relationship", "knowledge"), max_attribution: float = 3.0,
    spread: Literal["attributed", "uniform"] = "attributed", scores: str = "scores", attributions: str = "attributions",
) -> Score:  # fmt: skip
    """The mean over dimensions d of G_d A_d / max_attribution, each brought from the range of G_d to 0 to 1. G: the episode's
    scores; A: how much this utterance did for them, from 0 to `max_attribution`. Both are columns with a number for each dimension.
    The ranges are those of Sotopia's seven dimensions, and 0 to 10 for any other.

    spread: uniform takes A_d = max_attribution, so that every utterance gets its episode's scores. For recorded utterances. No
    verdict where a number is not there.  Yu et al. 2025, arXiv:2508.03905
    """
    given, shares = (_numbers(trajectory.problem.meta.get(column)) for column in (scores, attributions))
    parts = []
    for name in dimensions:
        total, share = number_of(given.get(name)), max_attribution if spread == "uniform" else number_of(shares.get(name))
        if total is None or share is None:
            return Score(None, why=f"the data has no {scores if total is None else attributions} of {name!r}")
        low, high = RANGES.get(name, (0.0, 10.0))
        parts.append((total * share / max_attribution - low) / (high - low))
    return Score(sum(parts) / max(1, len(parts)), why=", ".join(f"{d} {x:.2f}" for d, x in zip(dimensions, parts, strict=True)))


def _numbers(value: Any) -> Mapping[str, Any]:
    try:
        found = strict_json.parse(value) if isinstance(value, str) else value
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


# ---- the recipe ---------------------------------------------------------------------------------------------------------

Spread = Literal["attributed", "uniform"]


def sotopia_rl(
    base: Recipe | None = None, *, dimensions: str = "goal,relationship,knowledge", spread: Spread = "attributed",
    field: str = "solution", reward_model: str = "value-head", utterances: PositiveInt | None = None, passes: PositiveInt = 1,
    rm_lr: float | None = None, n: int = 8, beta: float = 0.02,
) -> Recipe:  # fmt: skip
    """dimensions: of the scores, with commas between them.  field: the column of utterances.  reward_model: see rlhf.  utterances,
    passes: that it is taught on (None: all, of data without an end 2,000), and how often.  n, beta: of grpo. The reward takes the
    place of a base's.
    """
    base = base or grpo(n=n, beta=beta)
    made = rlhf(base, reward_model=reward_model, pairs=utterances, passes=passes)
    if not reward_model.startswith(UNTAUGHT):
        return made
    label = attributed_score(dimensions=tuple(d.strip() for d in dimensions.split(",")), spread=spread)
    lesson = Recipe(
        rollout=recorded(fields=(field,)),
        reward=label,
        objective=label_squared_error(),
        update=Update(lr=rm_lr, loss_kind="scorer"),
    )
    taught = Learner(MODEL, reward_model, lesson, every=0)
    return made.but(also=tuple(taught if learner.name == MODEL else learner for learner in made.also))


fidelity = "core"
left_out = (
    "a reward of -1 where the attributor says -1; asking a large model for attributions, which rows bring; behaviour cloning "
    "before it (`sft`, and --model its run); and play against a partner"
)
data = Data(
    solution=Column("what was said next", setting="fields[0]"),
    scores=Column(
        'how well the talk went by each of `dimensions`, {"goal": 7, "relationship": 3, "knowledge": 2}; not with --reward-model',
        optional=True,
    ),
    attributions=Column("how much this utterance did for each, from 0 to 3; not with --reward-model", optional=True),
    rows=[
        {
            "prompt": "Ann wants the last ticket. Bo: it is mine.",
            "solution": "Shall we toss a coin?",
            "scores": {"goal": 7, "relationship": 3, "knowledge": 1},
            "attributions": {"goal": 3, "relationship": 2, "knowledge": 0},
        },
        {
            "prompt": "Ann wants a lower rent. Bo: it is 900.",
            "solution": "Could you do 850, for two years?",
            "scores": {"goal": 5, "relationship": 1, "knowledge": 4},
            "attributions": {"goal": 2, "relationship": 1, "knowledge": 3},
        },
    ],
)

SAID = {"field": "said", "rm_lr": 3e-3, "utterances": 300, "passes": 7}
claim = Claim(
    says="a reward model of attributed scores ranks utterances rightly oftener than one that gives each its talk's scores",
    versus="sotopia_rl", task="bargaining:noise=0.3", measure="pair_accuracy", direction="higher", margin=0.02, model="untrained",
    settings=SAID, versus_settings={**SAID, "spread": "uniform"}, by=pair_accuracy(model=MODEL), steps=1,
    fault=Within("pair_accuracy", 0.5, 0.85, "utterances ranked rightly, taught on the scores of whole talks"),
    judge=Within("pair_accuracy", low=0.6, says="the same, taught on attributed scores: learnt"), learns=None, start=None,
    finding="84% of utterances are ranked rightly by either: what attribution tells apart, 20 pairs do not show to matter here",
    version=2,
    replaces="taught on 2,000 utterances, the model of whole talks' scores ranked 86% rightly: attribution had nothing to mend",
)  # fmt: skip
baseline = "rlhf"
