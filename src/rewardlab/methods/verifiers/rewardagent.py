"""RewardAgent: a reward model's score plus those of the verifiers that a router picks for the prompt: form and facts.

    r(x, y) = r_RM(x, y) + sum over verifiers k of lambda_k v_k(x, y),    v_k = 1/2 where the router does not pick k for x

A reward model learns what people like, length among it; whether "use at most 50 words" was followed, or a fact is right, can be
checked. The router keeps checks away from prompts that ask for nothing of the kind. Form: the share of the prompt's constraints
that hold. Facts: what the replies disagree on is looked up (`supported_facts`). Both need the replies alone, no preferences.

Peng et al. 2025, arXiv:2502.19328. The sum is the released code's "weighted_sum", with lambda = 1 (THU-KEG/Agentic-Reward-Modeling,
e8781e2). With `agent=openai:URL#NAME` a served model routes, writes the constraints as code and judges facts, as there: the reward
`verified_preference(model=...)`, which also serves best-of-n and the making of pairs (`--reward`). Without it programs do
(inferred): the router is a pattern of words in the prompt, constraints come with the data in IFEval's form, and facts are compared
by words. The reward model is trained here, as in bradley_terry.

Data: pairs (chosen, rejected), with columns `instructions` (a list of {"id", ...}) and `passages` (texts) where there are such.
"""

from rewardlab.core import Recipe, Score, Trajectory
from rewardlab.evals.pairs import pair_agreement
from rewardlab.methods.baselines.bradley_terry import bradley_terry
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.facts import supported_facts
from rewardlab.rewards.model import model_score
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.routed import routed
from rewardlab.rewards.verified_preference import verified_preference
from rewardlab.verifiers.instructions.verifier import instructions

CONSTRAINED = r"\b(at (least|most)|exactly|words?|sentences?|paragraphs?|include|mention|avoid|without|format|bullets?|in all)\b"
FACTUAL = r"\b(who|when|where|which|what|how (many|much|old|far)|facts?|true)\b"
"""Words of prompts that ask for a form, and of those that ask for facts."""


@reward
def constraints_met(trajectory: Trajectory, *, column: str = "instructions") -> Score:
    """The share of the constraints in a column of the problem that the reply follows; 1/2 where there are none."""
    constraints = trajectory.problem.meta.get(column)
    if not constraints:
        return Score(0.5, why="no constraints")
    verdict = instructions(share=True).check(trajectory.reply, {"instructions": constraints})
    return Score(verdict.pays, why=verdict.why)


def agent_reward(form: float, facts: float, form_when: str, facts_when: str, model: str = "reward") -> Reward:
    """The sum of the reward model's score and those of the verifiers, each for the prompts that its pattern matches."""
    form_check = routed(to=constraints_met(), when=form_when).named("form")
    return model_score(model=model) + form * form_check + facts * routed(to=supported_facts(), when=facts_when).named("facts")


def rewardagent(
    base: Recipe | None = None, *, form: float = 1.0, facts: float = 1.0, form_when: str = CONSTRAINED, facts_when: str = FACTUAL,
    init: str = "value-head", agent: str = "",
) -> Recipe:  # fmt: skip
    """form, facts: lambda of the two verifiers.  form_when, facts_when: regular expressions of the prompts that they are asked for;
    "" is all of them.  init: what the reward model starts from (`Learner.init`).  agent: a served model, which routes and verifies
    in place of the patterns and programs."""
    base = base or bradley_terry(init=init)
    served = verified_preference(model=agent, preference=model_score(model="reward"), form=form, facts=facts) if agent else None
    return base.but(measure=pair_agreement(reward=served or agent_reward(form, facts, form_when, facts_when)))


claim = Claim(
    says="with verifiers added, a reward model of biased preferences prefers the better reply more often than alone",
    versus=None, task="notes:taste=0.3", measure="pair_accuracy", direction="higher", margin=0.04,
    against="pair_accuracy.model_score", settings={"form_when": "hurry|rush|be kind|be brief", "facts_when": r"\bneed\b"},
    steps=100,
    fault=Within("pair_accuracy.model_score", high=0.85, says="pairs that the reward model alone gets right"),
    judge=Within("pair_accuracy.model_score", low=0.55, says="pairs that the reward model alone gets right"), learns=None,
)  # fmt: skip
baseline = "bradley_terry"
