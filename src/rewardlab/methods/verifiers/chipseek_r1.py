"""ChipSeek-R1: hierarchical rewards for a design: size and speed count only if it works, and working only if it compiles.

    r = f form + c compiles + t works + p (smaller + faster) / 2,    each term 0 unless all before it are earned
    smaller = area of the reference / area of the design;    faster: of their delays;    each at most 2

A wrong circuit can be of any size: added up, the terms pay a design that leaves something out for the gates that it saves. Behind
the test of its function only the gates of designs that work are compared.

Chen et al. 2025, arXiv:2507.04736: form, syntax, simulation, then power, performance and area from synthesis, one behind the other.
The released code (rong-hash/chipseek) was not to be had; (inferred): the weights, f = .1, c = .2, t = p = 1, the ratio to a
reference and its bound. `gated=False` adds the terms up.

With --verifier verilog:engine=tools, which needs the programs iverilog and yosys, designs are simulated and synthesised.
"""

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Data
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.pairs import pair_agreement
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.operator import operator
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct, detail
from rewardlab.rollouts.independent import independent

PARTS = ("form", "compiles", "works", "smaller", "faster")


@operator
def design_value(
    form: float, compiles: float, works: float, smaller: float, faster: float, *, weights: tuple[float, ...] = (0.1, 0.2, 1.0, 1.0),
    gated: bool = True,
) -> float:  # fmt: skip
    """r of a design; gated: a term counts only behind those before it."""
    total, open_gate = 0.0, True
    for weight, term in zip(weights, (form, compiles, works, (smaller + faster) / 2), strict=True):
        total += weight * term if open_gate else 0.0
        open_gate = open_gate and (term > 0 or not gated)
    return total


def design_reward(
    form: float = 0.1, compiles: float = 0.2, works: float = 1.0, size: float = 1.0, gated: bool = True
) -> Reward:  # fmt: skip
    """r, from what `verilog` says of a reply."""
    terms = (detail(name=name).named(name) for name in PARTS)
    return design_value(*terms, weights=(form, compiles, works, size), gated=gated)


def chipseek_r1(
    base: Recipe | None = None, *, form: float = 0.1, compiles: float = 0.2, works: float = 1.0, size: float = 1.0,
    gated: bool = True,
) -> Recipe:  # fmt: skip
    """form, compiles, works, size: weights of the terms.  gated: False adds them up. A base's reward beside the task's verifier is
    kept.
    """
    base = base or grpo()
    reward = design_reward(form, compiles, works, size, gated)
    measure = own_reward(reward=reward, rollout=independent(n=1))
    return base.but(reward=reward if base.reward in (None, correct()) else base.reward + reward, measure=measure)


fidelity = "reading"
left_out = (
    "power, which needs a library of cells; the fine-tuning on reasoning before it (`sft`); and the later version's curriculum, "
    "by which the weights of the terms change as training goes on"
)
data = Data(
    answer='a reference module of single wires; with engine=tools {"testbench", "reference", "top"}, as VerilogEval has them',
    rows=[
        {
            "prompt": "Write a Verilog module top(input a, input b, input c, output y) with y = a b + a c, of few gates.",
            "answer": "module top(input a, input b, input c, output y); assign y = a & (b | c); endmodule",
        },
        {
            "prompt": "Write a Verilog module half(input a, input b, output s, output c): s is the sum of two bits, c the carry.",
            "answer": "module half(input a, input b, output s, output c); assign s = a ^ b; assign c = a & b; endmodule",
        },
    ],
    verified_by="verilog",
)

GATED, SUMMED = design_reward().named("gated"), design_reward(gated=False).named("summed")
check = Check(
    says="behind gates designs that work earn more than small ones that do not, oftener than by the sum of the same terms",
    versus=None, task="circuits:test_size=4000", measure="pair_accuracy.gated", direction="higher", margin=0.12,
    against="pair_accuracy.summed", model="untrained", by=own_share(inner=pair_agreement(reward=GATED + SUMMED)), problems=4000,
    steps=1, fault=Within("pair_accuracy.summed", high=0.9, says="designs that work above small wrong ones, by the sum"),
    learns=None, start=None, sanity=True,
    finding="designs that work are paid more than small ones that do not in 82% of pairs behind gates, in 57% by the sum of the "
    "same terms. Both kinds are written so: it shows the gates at work, and no policy was trained by them",
)  # fmt: skip
baseline = "grpo"
