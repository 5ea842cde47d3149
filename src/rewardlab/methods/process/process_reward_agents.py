"""PRA: an agent beside a frozen policy retrieves evidence for each step, and prunes beams with unsupported steps.

    after each step k of each beam:  e_k = evidence that the agent asks for, or none;  r_k = p(step k right | x, s_1 .. s_k, e_k)
    keep the beams with the highest sum of r_1 .. r_k;   answer: of the finished replies, that with the highest

Where steps are claims about the world, nothing in the reply shows that one of them is false, and what follows builds on it. Scores
of whole replies come too late: all n may be lost by then. The agent knows the domain, and any policy can be steered by it.

Sohn et al. 2026, arXiv:2604.09482 (abstract, and notes on the paper in zhaoyang97/Paper-Notes-en, 9bd85de; the code was not found):
the sum over steps, the choice by it, 4 beams of 16 next steps (here 4 of 4 by default), r from two words of the agent. (inferred):
what the agent reads, and BM25. The agent is any model of the run that follows the prompts (`judge="openai:URL#NAME"`, or the path
of one), or another reward of steps as `agent`; a step of which it says nothing counts 0.
"""

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Learner, Recipe, Update
from rewardlab.data.columns import Column, Data
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.weighted_vote import own_probability
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.evidence import borne_out, evidenced_steps
from rewardlab.rewards.imperfect import imperfect
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.beams import beams
from rewardlab.rollouts.best import best
from rewardlab.settings.domain import PositiveInt

JUDGE = "judge"


def process_reward_agents(
    base: Recipe | None = None, *, agent: Reward | None = None, judge: str = "copy:policy", k: int = 2, longest: int = 64,
    width: PositiveInt = 4, branch: int = 4, temperature: float = 1.0, step_tokens: int | None = None,
    stop: tuple[str, ...] = ("\n",),
) -> Recipe:  # fmt: skip
    """agent: a reward of steps of unfinished replies; None: `evidenced_steps` by the model `judge`, which reads `k` passages.
    longest: tokens of a query.  width, branch: beams, and next steps of each.  step_tokens: most tokens of a step.  stop: the texts
    that end one."""
    base = base or Recipe(name="process_reward_agents", reward=own_probability(), measure=accuracy(), update=Update())
    asked = () if agent else (Learner(JUDGE, judge, Recipe(), every=0),)
    score = aggregate(agent or evidenced_steps(model=JUDGE, k=k, max_new=longest), by="sum")
    search = beams(score=score, width=width, branch=branch, temperature=temperature, step_tokens=step_tokens, stop=stop)
    return base.but(rollout=search, reward=score, select=best(), also=(*base.also, *asked))


SURE = imperfect(auc=0.95, inner=aggregate(borne_out(), by="min"))
"""An agent that ranks beginnings without a false step above others in 95 of 100 pairs."""

fidelity = "core"
left_out = (
    "training the agent on labels of a larger model, which say of a step whether it is right, and that it must be looked up where "
    "evidence moves that verdict; and a large corpus (each problem has passages of its own)"
)
data = Data(
    answer=Column("the gold answer, by which held-out replies are judged", optional=True),
    passages="what can be looked up: a list of texts, or of {title, text}",
    rows=[
        {
            "prompt": "Which planet is nearest to the sun?",
            "answer": "Mercury",
            "passages": ["Mercury is the planet nearest to the sun.", "A year on Mercury takes 88 days."],
        },
        {
            "prompt": "How many days does a year on Mercury take?",
            "answer": "88",
            "passages": ["Mercury is the planet nearest to the sun.", "A year on Mercury takes 88 days."],
        },
    ],
)

claim = Claim(
    says="beams pruned after every step by what is looked up are right more often than the best of as many tokens' replies by it",
    versus="best_of_n", task="recalled", measure="accuracy", direction="higher", margin=0.05,
    settings={"agent": borne_out(), "width": 2, "branch": 3}, versus_settings={"n": 7}, reward=SURE, problems=300,
    guard=Within("tokens_per_answer", high=0.0), fault=Within("accuracy", high=0.9, says="right answers among whole replies"),
    learns=None, start=None,
    # the agent that prunes is never wrong about a step, the scorer of whole replies is
    sanity=True,
    finding="71% right with beams pruned at false steps, 57% for the best of seven whole replies, at fewer tokens. The agent here "
    "is exact, so this shows what scores in time are worth at most, and not how well a model plays the agent",
)  # fmt: skip
baseline = "best_of_n"
