"""AesCoder's GRPO-AR: three agents reward a page: for execution, for its looks, and for interaction.

    r = .1 s_exec + .8 s_static + .1 s_interact
    s_exec = 1 if a linter passes the page, else -1, and then the other two are not asked: s_static = s_interact = 0
    s_interact = sum over at most 3 controls that are used, of 1 if the page changes as it should

Code that is rewarded for running alone may be ugly; a page that is rewarded for its picture alone may have buttons that do
nothing. GRPO standardises r within the group.

Xiao et al. 2025, arXiv:2510.23272 (ICLR 2026): weights, scores, gate and the 3 controls as published notes on the paper report them
(the training code is not released). The benchmark's code is, github.com/bangx7/code_aesthetics, OpenDesign/scripts at e7b4e60: its
judge of screenshots gives 40 points for what was asked, 30 for aesthetics and readability, 30 for structure, and its agent scores
each use of a control 0 or 1. (inferred): s_static is that score / 100, s_interact is divided by 3. Where the paper asks GPT-5 and
GPT-4o, `web_page` measures: a linter's rules and errors of scripts; contrast, overlaps, alignment; real clicks in Chromium. `looks`
takes a judge of your own, which can see the page (`page_picture`). A page with no tag, and one that hangs, does not run.
"""

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Column, Data
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.pairs import pair_agreement
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.operator import operator
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct, detail
from rewardlab.rollouts.independent import independent


@operator
def agentic(runs: float, looks: float, responds: float, *, weights: tuple[float, ...] = (0.1, 0.8, 0.1)) -> float:
    """r of a page; each argument from 0 to 1."""
    execution, static, interactive = weights
    if runs <= 0:
        return -execution
    return execution + static * looks + interactive * responds


def agentic_reward(execution: float = 0.1, static: float = 0.8, interactive: float = 0.1, looks: Reward | None = None) -> Reward:
    """r, from what `web_page` says of a reply, or `looks` of how it looks, from 0 to 1."""
    runs, shown, responds = (detail(name=name).named(name) for name in ("runs", "looks", "responds"))
    return agentic(runs, looks or shown, responds, weights=(execution, static, interactive))


def aescoder_grpo_ar(
    base: Recipe | None = None, *, execution: float = 0.1, static: float = 0.8, interactive: float = 0.1,
    looks: Reward | None = None,
) -> Recipe:  # fmt: skip
    """execution, static, interactive: weights of the agents.  looks: another judge of how a page looks, from 0 to 1. A base's
    reward beside the task's verifier is kept.
    """
    base = base or grpo()
    reward = agentic_reward(execution, static, interactive, looks)
    measure = own_reward(reward=reward, rollout=independent(n=1))
    return base.but(reward=reward if base.reward in (None, correct()) else base.reward + reward, measure=measure)


fidelity = "core"
left_out = (
    "programs that measure a page stand for GPT-5 and GPT-4o; fine-tuning on AesCode-358K before it, the paper's KL "
    "coefficient and clip range, and the rewards of plots."
)

data = Data(
    answer=Column("what was asked for: {'shows': [texts], 'controls': [labels], 'theme': 'dark' or 'light'}", optional=True),
    verified_by="web_page",
    rows=[
        {
            "prompt": "Write an HTML page for a bakery: its name, Miller's, its opening hours, and a button Order that thanks the "
            "visitor. Dark colours.",
            "answer": {"shows": ["Miller's"], "controls": ["Order"], "theme": "dark"},
        },
        {
            "prompt": "Write an HTML page with a counter that starts at 0, and the buttons More and Less.",
            "answer": {"controls": ["More", "Less"]},
        },
        {"prompt": "Write an HTML page that introduces the planets of the solar system.", "answer": {"shows": ["Jupiter"]}},
    ],
)

ALL = agentic_reward().named("agents")
LOOKS = agentic_reward(0.0, 1.0, 0.0).named("static")
RUNS = agentic_reward(1.0, 0.0, 0.0).named("execution")
check = Check(
    says="the three agents pay pages as asked more than pages with one fault, oftener than looks alone, which sees no dead button",
    versus=None, task="pages:test_size=1600", measure="pair_accuracy.agents", direction="higher", margin=0.1,
    against="pair_accuracy.static", model="untrained", by=own_share(inner=pair_agreement(reward=ALL + LOOKS + RUNS)), problems=1600,
    steps=1, fault=Within("pair_accuracy.static", high=0.9, says="pages as asked above those with one fault, by looks alone"),
    sanity=True,
    tried="a script on 60 pairs of training problems: agents 1.00, looks alone 0.80, running alone 0.62; margin: half of it",
    finding="The three agents order all pairs rightly, looks alone 80% of them, running alone 67%. Each fault was planted "
    "where one agent looks: this shows that the reward is put together as meant, not that pages become better.",
)  # fmt: skip
baseline = "grpo"
