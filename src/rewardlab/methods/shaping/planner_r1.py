"""Planner-R1: reward a plan for the constraints it meets, one by one and by category, besides passing all.

    r = schema (l1 micro_cs + l2 micro_hard + l3 macro_cs + l4 macro_hard + l5 pass)
    dense      l1 .. l5 = 1          category   l1 = l2 = 0          sparse   l1 .. l4 = 0
    curriculum   dense for a fifth of the run, then category for three fifths, then sparse

micro: the share of a category's constraints that are kept;  macro: 1 if all are;  cs: common sense (cities exist, prices are those
listed), hard: what the user asked for (a budget);  pass: 1 if everything holds. Without a plan of the schema all are 0. A weak
policy passes too rarely to learn from that alone; dense terms tell its plans apart. A plan that passes earns the most at any stage.

Zhu et al. 2025, arXiv:2509.25779 (no code is public). Formula and stages, of 100, 300 and 100 steps, are the paper's (through a
reading of its second version). The paper finds dense rewards best, above all for small models, and no significant gain from the
curriculum. GRPO without a KL term. A problem brings its constraints as data.
"""

from typing import Literal

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Data
from rewardlab.evals.own_reward import own_reward
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.algebra import scheduled
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.independent import independent
from rewardlab.worlds.trips import plan_macro, plan_micro, plan_passes, plan_schema

Stages = Literal["dense", "category", "sparse", "curriculum"]


def staged_reward(stages: Stages = "dense") -> Reward:
    """The reward of one stage, or the one that goes through all three."""
    categories: tuple[Literal["commonsense", "hard"], ...] = ("commonsense", "hard")
    micro = sum((plan_micro(category=c).named(f"micro_{c}") for c in categories), start=0)
    macro = sum((plan_macro(category=c).named(f"macro_{c}") for c in categories), start=0)
    match stages:
        case "dense":
            paid = micro + macro + plan_passes()
        case "category":
            paid = macro + plan_passes()
        case "sparse":
            paid = plan_passes()
        case _:
            paid = _until(micro, 0.2) + _until(macro, 0.8) + plan_passes()
    return plan_schema() >> paid


def _until(reward: Reward, progress: float) -> Reward:
    return scheduled(reward, start=1.0, end=0.0, shape="step", until=progress)


def planner_r1(base: Recipe | None = None, *, stages: Stages = "dense", n: int = 8) -> Recipe:
    """stages: which terms are paid.  n: plans per prompt. The reward takes the place of a base's; an environment stays."""
    plays = base is not None and base.sampling_settings.get("env")
    base = base or grpo(n=n)
    reward = staged_reward(stages)
    if plays:
        return base.but(reward=reward)
    # measured by what counts in the end, whatever the stage
    return base.but(reward=reward, measure=own_reward(reward=plan_passes(), rollout=independent(n=1)))


fidelity = "core"
left_out = (
    "TravelPlanner's seven tools and its checks: plans are written in one reply, or in the last one of an environment that "
    "the base plays."
)

data = Data(
    prompt="the request, and what can be chosen from, asking for a JSON list of records with the fields",
    fields="what each record of a plan holds: {'city': 'text', 'cost': 'number'}",
    constraints="a list of {'category', 'rule', 'field', 'value'}: 'commonsense' or 'hard', and count, among, distinct, at_most, "
    "includes, excludes or as_listed (its 'by' is the field that the table 'value' is read by)",
    rows=[
        {
            "prompt": "Plan three days in Italy for at most 300 euros, with Rome among the cities. A night costs 120 in Rome, "
            "80 in Bari and 90 in Pisa. Answer with a JSON list, one record a day: [{\"city\": \"...\", \"cost\": 0}, ...]",
            "fields": {"city": "text", "cost": "number"},
            "constraints": [
                {"category": "commonsense", "rule": "count", "value": 3},
                {"category": "commonsense", "rule": "among", "field": "city", "value": ["Rome", "Bari", "Pisa"]},
                {"category": "commonsense", "rule": "as_listed", "field": "cost", "by": "city",
                 "value": {"Rome": 120, "Bari": 80, "Pisa": 90}},
                {"category": "hard", "rule": "at_most", "field": "cost", "value": 300},
                {"category": "hard", "rule": "includes", "field": "city", "value": "Rome"},
            ],
        },
        {
            "prompt": "Plan two dinners this week without fish, from: soup 5, trout 14, pasta 8 (euros). Answer with a JSON list: "
            "[{\"dish\": \"...\", \"price\": 0}, ...]",
            "fields": {"dish": "text", "price": "number"},
            "constraints": [
                {"category": "commonsense", "rule": "count", "value": 2},
                {"category": "commonsense", "rule": "distinct", "field": "dish"},
                {"category": "hard", "rule": "excludes", "field": "dish", "value": "trout"},
            ],
        },
    ],
)  # fmt: skip

SMALL = {"problems": 8}
claim = Claim(
    says="paid for single constraints too, a small policy makes more plans that pass while it learns than if passing alone is paid",
    versus="planner_r1", task="trips:biased=0.75", measure="auc.truth", direction="higher", margin=0.016, settings=SMALL,
    versus_settings={**SMALL, "stages": "sparse"}, steps=60,
    fault=Within("train.signal", high=0.8, says="share of groups that teach anything, where passing alone is paid"),
    moved=Within("train.signal", low=0.15, says="share of groups that teach anything"), start=None,
    tried="trips:biased=0.9: the baseline ended at .06 and plans paid in part at +.07 (three seeds)",
    finding="Plans that pass rise from 5% to 17% and, paid for passing alone, to 18%: single constraints give 89% of the "
    "groups a signal instead of 23%, and no more plans pass for it in 60 steps.",
    version=2, replaces="40 steps: the baseline ended at .148 where .15 were asked (-.010 in 5 pairs)",
)  # fmt: skip
baseline = "grpo"
