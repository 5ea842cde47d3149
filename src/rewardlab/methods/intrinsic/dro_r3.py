"""DRO: reward reasoning by log-probs of the reference after it, weighted towards tokens that depend on the reasoning.

    R3_i = sum_j w_j log pi(y*_j | x, c_i, y*_<j),    w_j rises with sigma_j, the std over the group's chains c_i of that log-prob
    trained on are the prompts whose max_j sigma_j is not among the lowest `drop`

Most tokens of a long reference are as likely after any chain, or vary for reasons of their own: in a plain mean they dilute the few
that show what was reasoned. A prompt on which no token varies has nothing to teach.

Xu et al. 2025, arXiv:2506.13351v1, sections 4.1.3 and 4.2. The paper subtracts from each log-prob that after a masked chain, so
that a token which follows from the reference's own words before it earns nothing: the same number for all chains of a group,
which their mean takes out again, so it is left out. (inferred): w_j = sigma_j / sum sigma (the paper says that w rises with
sigma_j); drop = 1/4, of each batch, where the paper filters its data at intervals; n = 8 (16 there). The policy itself is the
judge, one of three choices there. The reward takes the place of a base's.

Replies have one turn. The verifier is read for reports alone. Held-out problems are answered four times, since the reward
compares replies.
"""

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe
from rewardlab.data.columns import Data
from rewardlab.evals.own_reward import own_reward
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reference import reasoning_reflection, reference_variation
from rewardlab.rollouts.filtered import without_lowest
from rewardlab.rollouts.independent import independent


def dro_r3(base: Recipe | None = None, *, weighted: bool = True, mark: str = "Answer:", drop: float = 0.25, n: int = 8) -> Recipe:
    """weighted: false gives all tokens of the reference the same weight.  mark: stands before an answer.  drop: share of the groups
    whose references vary least with the reasoning, which are not trained on.  n: of grpo.
    """
    base = base or grpo(n=n)
    paid = reasoning_reflection(weighted=weighted, mark=mark)
    filtered = without_lowest(inner=base.required("rollout"), by=reference_variation(mark=mark), drop=drop)
    return base.but(rollout=filtered, reward=paid, measure=own_reward(reward=paid, rollout=independent(n=4)))


fidelity = "core"
left_out = (
    "dropping prompts that are too hard, the penalty on outcomes of another length than the reference, a KL of .001, "
    "and the rubric gates of v3"
)
data = Data(
    answer="the reference outcome, a text of any length",
    rows=[
        {
            "prompt": "Why does ice float on water?",
            "answer": "Ice is less dense than water, since its molecules stand in an open lattice.",
        },
        {
            "prompt": "Rewrite in plain words: The remuneration is to be disbursed forthwith.",
            "answer": "The pay is to be paid out at once.",
        },
        {"prompt": "What is 8 times 12?", "answer": "96"},
    ],
)

check = Check(
    says="paid by its own log-probs of the reference after its reasoning, and by no verifier, a policy is right more often",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="pass@1", direction="higher", margin=0.16,
    against="before.pass@1", steps=40, learns=None,
    sanity=True,
    tried="frozen, answers or whole solutions as references: weighted and plain means rank right replies alike (.97, .64 to .65)",
    finding="36% right before and 68% after, without a verifier: the reward teaches. Of its weights this says nothing, since "
    "references here are a few tokens, of which none dilutes the others",
    version=2, replaces="it spoke of the weights, which its comparison does not test",
)  # fmt: skip
baseline = "grpo"
