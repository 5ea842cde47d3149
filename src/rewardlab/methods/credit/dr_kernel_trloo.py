"""Dr. Kernel: turn-level leave-one-out advantages, and no reward for work that the library does.

    A_it = G_it - 1/(N_t - 1) sum_{j != i} G_jt,    G_t = sum_{k >= t} gamma^{k-t} r_k,    over the N_t episodes with a turn t
    r = 1/2 + 1/2 min(speedup, 3) + 1/2 (operations of one's own / all operations),    0 if the program is wrong

Liu et al. 2026, arXiv:2602.05885, and hkust-nlp/KernelGYM, 2f08930 (drkernel/kernel/scripts/rl/8b_trloo_mrs_pr_prs.sh,
train_rl_common.sh, config/kernel_trainer.yaml), from which the weights of r, gamma = 1 and both rejections are. GRPO's mean
includes the row's own return, which shrinks the gradient by (N_t - 1) / N_t, by another factor at every turn;
`leave_one_out=False` takes that mean, with all else as it is. A turn is left out where the geometric mean of pi / pi_rollout
leaves 0.999 .. 1.001 or a token's ratio falls below 1e-4 (mismatch rejection), and a right program stays with probability
clip((own share - least) / 0.1, 0, 1) (profiling-based rejection). The loss is a mean over tokens, where the release adds a turn's
tokens up and divides by 1000: turns left out get no credit, and count in it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rewardlab.checks.claim import Claim
from rewardlab.core import Batch, Environment, Recipe, Run, Trajectory, credit
from rewardlab.credit.leave_one_out import keep_matched_turns, turn_center, turn_leave_one_out
from rewardlab.credit.turns import over_turns, turn_sums
from rewardlab.data.columns import Data
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.methods.baselines.rloo import rloo
from rewardlab.objectives.ratio import clipped_ratio
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.environment import paid
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.interactive import in_place_of_replies, interactive
from rewardlab.worlds.kernels import cost_feedback, judge, speedup, work_share


@reward(steps=True)
def right_program(trajectory: Trajectory) -> list[tuple[int, float]]:
    """1 at the end of every turn whose program is right, else 0."""
    turns = zip(trajectory.ends, trajectory.replies, strict=True)
    return [(end, float(judge(reply, trajectory.problem.meta).right)) for end, reply in turns]


@credit
def keep_own_work(a: Tensor, batch: Batch, run: Run, *, least: float = 0.3, width: float = 0.1) -> Tensor:
    """Right turns keep their credit with probability clip((own share - least) / width, 0, 1), wrong ones always."""
    right, own = (turn_sums(batch.terms[name].reward, batch.mask) for name in ("speedup", "work_share"))  # (B, turns)
    # speedup is 0 for a wrong program: wrong turns are always learned from
    chance = torch.where(right > 0, ((own - least) / width).clamp(0, 1), 1.0)
    # random numbers on the CPU: the same seed keeps the same turns on every device
    keep = torch.rand(chance.shape, generator=run.rng("keep")).to(chance.device) < chance
    # the factor is one per turn; every token of a turn gets it
    return a * over_turns(keep.to(a.dtype), batch.mask)


def dr_kernel_trloo(
    base: Recipe | None = None, *, n: int | None = None, turns: int = 3, right: float = 0.5, fast: float = 0.5,
    share: float = 0.5, least: float = 0.3, gamma: float = 1.0, tolerance: float = 0.001, eps: float = 0.2, eps_high: float = 0.28,
    leave_one_out: bool = True, env: Environment | None = None,
) -> Recipe:  # fmt: skip
    """n: episodes of a problem; None: as many as the base has, or else 8.  turns: programs of one, at most.
    right, fast, share: weights of being right, of the speedup and of the work share.  least: own share below which a right
    program is not learned from; 0 keeps all.
    tolerance: how far the mean ratio of a turn may be from 1; replies so short that rounding does not average out need more.
    leave_one_out: whether the mean leaves out the row itself (TRLOO) or holds it (GRPO).
    env: what answers in place of the task kernels, and pays by its messages: turns are credited and left out as here, but for the
    profiling-based rejection, and right, fast, share and least count for nothing.
    """
    base = base or rloo(n=n or 8)
    own = right * right_program() + fast * speedup() + share * work_share()
    chain = (turn_leave_one_out if leave_one_out else turn_center)(gamma=gamma) >> keep_matched_turns(
        low=1 - tolerance, high=1 + tolerance
    )
    return base.but(
        rollout=in_place_of_replies(base.required("rollout"), env=env or cost_feedback(), n=n, turns=turns),
        reward=paid() if env else own,
        credit=chain >> keep_own_work(least=least) if least and env is None else chain,
        objective=clipped_ratio(eps=eps, eps_high=eps_high),
        weighting=token_mean(),
        # measured with one episode per problem: pass@1 needs no group
        measure=episode_accuracy(rollout=interactive(env=env or cost_feedback(), n=1, turns=turns)),
    )


fidelity = "core"
left_out = (
    "kernels that are compiled, run and timed on a GPU (operations of small programs are counted instead), the check for decoys, "
    "the cold start, 16 episodes a prompt, and the choice among further samples"
)
data = Data(
    refuses="plays the task kernels, whose small programs have a cost that is counted: no kernels are compiled or timed; rows of "
    "your own need an environment that answers and pays (env=...)",
)
claim = Claim(
    says="paying for one's own work, and not learning from lazy turns, leaves less of the work to the library after equal updates",
    versus="dr_kernel_trloo", task="kernels:error=0.7,test_size=1000", measure="auc.reward/work_share", direction="higher",
    margin=0.03, settings={"tolerance": 0.05, "lr": 1e-4},
    versus_settings={"tolerance": 0.05, "share": 0.0, "least": 0.0, "lr": 1e-4}, steps=20, start=None,
    tried="3e-4: both sides end above .93, after 30 updates (-.002 on one pair) and after 12 (-.043 on two)",
    finding="start 41% right; 79% with the method and 81% without at the end, and with it a little more of the work is left to the "
    "library: it does not help here. In that run being right was not paid for itself, and the speedup twice as much",
    version=2, replaces="both sides ended near the ceiling after 9 to 12 updates; tokens were the budget",
)  # fmt: skip
