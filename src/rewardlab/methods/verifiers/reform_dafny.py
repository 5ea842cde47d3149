"""Re:Form: reward a contract for being proved, and more for being as strong as the reference.

    r = 0 if no code is there, the code was changed, or the contract ensures `true`, `false` or x == x;    .01 if it cannot be read
    r = .2 + .4 verified + s verified [reference requires => requires] [reference requires, ensures => reference ensures]

A verifier proves that a method keeps what is said of it, and the less is said the easier that is: the contract that is paid for its
proof alone becomes empty. What a reference requires and ensures bounds it from below; saying more than the reference does is free.

Yan et al. 2025, arXiv:2507.16331. Numbers, gates, s = 1, a KL of .001 and an entropy bonus of .01 are those of the released code
(Veri-Code/ReForm, 18c6331, train.sh; 5a92b0b, subset_reward.py, whose compute_score is for `one_score`). It asserts the
implications behind the method's code, where the result is known; here they are proved for any result, as the paper writes them.
z3 takes Dafny's place: `method_contract` says what it reads of Dafny.
"""

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Data
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.pairs import pair_agreement
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.regularise import negative_entropy
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.operator import operator
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct, detail
from rewardlab.rollouts.independent import independent

UNREAD, READ, VERIFIED = 0.01, 0.2, 0.4


@operator
def contract_value(
    found: float, unchanged: float, reads: float, honest: float, verifies: float, implies: float, *, subset: float = 1.0
) -> float:  # fmt: skip
    """r of a contract; subset: s."""
    if not (found and unchanged):
        return 0.0
    if not reads:
        return UNREAD
    return READ + verifies * (VERIFIED + subset * implies) if honest else 0.0


def contract_reward(subset: float = 1.0) -> Reward:
    """r, from what `method_contract` says of a reply."""
    parts = (detail(name=name).named(name) for name in ("found", "unchanged", "reads", "honest", "verifies", "implies"))
    return contract_value(*parts, subset=subset)


def reform_dafny(
    base: Recipe | None = None, *, subset: float = 1.0, n: int = 8, beta: float = 0.001, entropy: float = 0.01
) -> Recipe:  # fmt: skip
    """subset: what saying as much as the reference is worth; 0 leaves the proof.  n, beta: of grpo.  entropy: weight of the bonus.
    A base's reward beside the task's verifier is kept.
    """
    base = base or grpo(n=n, beta=beta).but(weighting=token_mean())
    reward, objective = contract_reward(subset), base.required("objective")
    return base.but(
        reward=reward if base.reward in (None, correct()) else base.reward + reward,
        objective=objective + entropy * negative_entropy() if entropy else objective,
        measure=own_reward(reward=reward, rollout=independent(n=1)),
    )


fidelity = "core"
left_out = (
    "Dafny itself, and with it loops, their invariants and assertions that a model adds: methods of integers and truth values "
    "without loops alone; and the SFT before it, which is `sft` on annotated methods"
)
data = Data(
    answer="the method with its reference contract",
    rows=[
        {
            "prompt": "Give this method its contract.\nmethod m(x: int) returns (r: int) { assert x >= 4; r := x - 4; }",
            "answer": "method m(x: int) returns (r: int) requires x >= 4 ensures r == x - 4 { assert x >= 4; r := x - 4; }",
        },
        {
            "prompt": "Give this method its contract.\nmethod max(x: int, y: int) returns (r: int) "
            "{ if x < y { r := y; } else { r := x; } }",
            "answer": "method max(x: int, y: int) returns (r: int) ensures r >= x && r >= y ensures r == x || r == y "
            "{ if x < y { r := y; } else { r := x; } }",
        },
    ],
    verified_by="method_contract",
)

SUBSET, VERIFY = contract_reward().named("subset"), contract_reward(0.0).named("verified")
check = Check(
    says="paid for what they imply, contracts that say something earn more than empty ones oftener than paid for proof alone",
    versus=None, task="contracts:test_size=4000", measure="pair_accuracy.subset", direction="higher", margin=0.14,
    against="pair_accuracy.verified", model="untrained", by=own_share(inner=pair_agreement(reward=SUBSET + VERIFY)), problems=4000,
    steps=1,
    fault=Within("pair_accuracy.verified", high=0.6, says="contracts that say something above empty ones, by their proof alone"),
    learns=None, start=None, sanity=True,
    finding="contracts that say something are paid more than empty ones in 69% of pairs, in 40% where the proof alone is paid, "
    "since empty ones are always proved. Both kinds are written so: no policy was trained by it",
)  # fmt: skip
baseline = "grpo"
