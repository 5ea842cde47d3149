"""Mindora: reward a right answer only if a detector finds it consistent with its reasoning.

    r = [form] * [shortest <= thinking <= longest] * [consistent] * right;    first SFT on consistent chains, then GRPO on r

A sum would pay a contradiction as soon as the answer is right, and consistent nonsense a little; a product pays neither.

Xiao et al. 2025, arXiv:2512.09636, equation 1 (read in a public copy of its second version): 10 to 2,048 tokens of thinking, the
detector Qwen3-32B, right 0 or 1 for one option, the overlap (Jaccard) for several, and for a text the share of key points. Here
length is in words and signs, the detector is a rule: the option that the reasoning ends at is the one that is answered, and tags
and a least length are asked for by settings, since a prompt must ask for them first. SFT and RL in turn is the paper's
Mindora_SFT+RL. Its joint loss (CHORD) is (1 - mu) GRPO + mu SFT, tokens weighed by p (1 - p), mu from .02 to .5 and back.
(inferred): hard problems are those that are solved in at most 7 of 8 replies by the policy as it is, where the paper once takes
those that Llama-3-8B-Instruct gets wrong. `detect=False` leaves that factor out.
"""

from typing import Literal

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe, Score, Trajectory
from rewardlab.data.columns import Column, Data
from rewardlab.evals.term_means import term_means
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.sft import sft_first
from rewardlab.rewards.algebra import threshold
from rewardlab.rewards.format import tagged
from rewardlab.rewards.length import thinking_between
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.filtered import solved_between
from rewardlab.verifiers.choice.rationale import rationale_agrees


@reward
def ends_at_its_answer(trajectory: Trajectory, *, by: Literal["options"] = "options") -> Score:
    """`rationale_agrees`, the rule in the place of a detector. by: the column that it reads, which no row may lack then."""
    return rationale_agrees()([[trajectory]])[0][0]


def mentrasuite_mindora(
    base: Recipe | None = None, *, detector: Reward | None = None, detect: bool = True, form: bool = False, shortest: int = 0,
    longest: int = 2048, hardest: float = 0.875, sft_steps: int = 0,
) -> Recipe:  # fmt: skip
    """detector: a reward that is at least 1 where reasoning and answer agree; the rule does not read answers that are texts, or of
    several options.  form: whether the tags <think> and <answer> must be there.  shortest, longest: words and signs of
    the thinking.  hardest: the share of right replies up to which a problem is kept.
    sft_steps: steps of SFT before; 0 where the policy had them.
    """
    base = base or grpo()
    paid = (base.reward or correct()) * thinking_between(shortest=shortest, longest=longest)
    if form:
        paid = paid * threshold(tagged(), at=1.0)
    if detect:
        paid = paid * threshold(detector or ends_at_its_answer(), at=1.0)
    return base.but(
        rollout=solved_between(inner=base.required("rollout"), low=0.0, high=hardest),
        reward=paid,
        loop=sft_first(steps=sft_steps, field="solution", inner=base.loop) if sft_steps else base.loop,
    )


fidelity = "core"
left_out = (
    "the joint loss of SFT and RL (CHORD), which does better in the paper, writing and rewriting the chains, and the "
    "detector, Qwen3-32B, for which a rule stands without `detector`."
)

data = Data(
    answer="the letter of the right option, or its text; a list where several are right",
    options=Column(
        "the texts of the options, which the rule reads; not needed with a `detector` of your own, or with detect=False",
        optional=True,
        needed_with=("by", "options"),
    ),
    solution=Column("a worked chain of reasoning with its answer, if `sft_steps` is above 0", optional=True),
    verified_by="choice",
    rows=[
        {
            "prompt": "\"I've slept three hours a night for a week, I feel like I could run the company alone, and I bought two "
            'cars today." Which state does the post point to?\nA. Depression\nB. Mania\nC. Panic\nReason first, then write: '
            "Answer: letter",
            "answer": "B",
            "options": ["Depression", "Mania", "Panic"],
            "solution": "Little sleep without tiredness, grand ideas and reckless spending are signs of mania.\nAnswer: B",
        },
        {
            "prompt": '"If I don\'t get this job, my life is over." Which distortion is it?\nA. Catastrophising\nB. Mind reading\n'
            "C. Labelling\nReason first, then write: Answer: letter",
            "answer": "A",
            "options": ["Catastrophising", "Mind reading", "Labelling"],
            "solution": "One bad event is taken for the end of everything, which is catastrophising.\nAnswer: A",
        },
    ],
)

# by construction: what is measured is the product that is paid, by the same rule
claim = Claim(
    says="more replies are right and consistent than where the answer alone is paid, at the same accuracy",
    versus="mentrasuite_mindora", task="choices", measure="all", direction="higher", margin=0.13,
    settings={"problems": 24, "lr": 1e-4},
    versus_settings={"detect": False, "problems": 24, "lr": 1e-4}, by=term_means(reward=correct() + rationale_agrees()), steps=120,
    guard=Within("correct", low=-0.03), fault=Within("rationale_agrees", high=0.85, says="rationales that lead to the answer"),
    moved=Within("rationale_agrees", low=0.05, says="the same, more than without the detector"), learns="correct",
    sanity=True,
    tried="8 problems, 40 steps, three seeds: +.072, but right answers fell by .05 without the detector; "
    "24 problems, 60 steps at 3e-4: +.158",
    finding="Right and consistent are 67% of the replies, without the detector 49% (30% at the start), and right 68% and 52%. "
    "The rule reads this world's rationales without error, which a model that judges real ones does not.",
)  # fmt: skip
baseline = "grpo"
