"""Online iterative DPO: each round samples n replies of the current policy, and a reward model picks the pair; the reference stays.

    round k: y_1 .. y_n ~ pi_k;    chosen, rejected: the best and the worst by r(y) - lambda |y|
    loss = -log sigmoid(beta [log pi/pi_0(chosen) - log pi/pi_0(rejected)]),   from pi_k, with a fresh optimiser   ->   pi_k+1

Replies of a fixed data set, or of the first policy, soon differ from those that the policy writes; its replies of today show what
the reward model thinks of it now. With the first model for a reference all rounds solve one problem, with a KL to pi_0,
and do not drift round by round. Longer is not better: lambda takes back what a reward model gives for length.

Dong et al. 2024, arXiv:2405.07863; n = 8 at temperature 1, best against worst, the initial reference, the policy that goes on from
round to round, and the penalty (off in the script) are those of the released code (RLHFlow/Online-RLHF, run_loop.sh at 138f527,
dpo_iteration/run_dpo.py at 120a059), and beta = .1 its trainer's. There lambda counts characters, here tokens; and three rounds of
20,000 prompts each, here of a third of the steps, or of `round_steps`. Replies are written when their prompt comes up, by the
frozen pi_k. The reward model is learnt from pairs or brought along (--reward-model PATH), or it is a reward (score=...).
"""

from typing import Any

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Learner, Loop, Recipe, Run, loop
from rewardlab.data.columns import Column, Data
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.rlhf import rlhf
from rewardlab.methods.baselines.sft import steps_of
from rewardlab.rewards.length import length_penalty
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.ranked import ranked
from rewardlab.settings.domain import PositiveInt

WRITER = "writer"


@loop(wraps="inner")
def writer_follows(
    recipe: Recipe, run: Run, ops: Any, *, round_steps: PositiveInt | None = None, inner: Loop | None = None
) -> None:
    """Copy the policy into the writer every `round_steps`, with a fresh optimiser; the reference stays.

    round_steps: None: a third of the run's.  inner: how a step is taken.
    """
    round_steps = max(1, steps_of(run, 1 / 3, "round_steps")) if round_steps is None else round_steps
    if run.step and run.step % round_steps == 0:
        run.model(WRITER).load_state(run.policy.state())
        ops.policy.reset_optimizer()
    run.log("round", 1 + run.step // round_steps)
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)


def rlhf_workflow_online(
    base: Recipe | None = None, *, round_steps: int | None = None, n: int = 8, per_token: float = 0.0, score: Reward | None = None,
    reward_model: str = "value-head", pairs: int | None = None, passes: int = 1,
) -> Recipe:  # fmt: skip
    """round_steps: of each round; None: a third of the run's.  n: replies that a pair is chosen from.  per_token: lambda, what a
    token costs.  score, reward_model, pairs, passes: as in `rlhf`.
    """
    base = base or dpo(problems=8)
    base = rlhf(base, score=score, reward_model=reward_model, pairs=pairs, passes=passes)
    by = base.required("reward") + length_penalty(per_token=per_token) if per_token else base.required("reward")
    return base.but(
        rollout=ranked(by=by, n=n, model=WRITER),
        loop=writer_follows(round_steps=round_steps, inner=base.loop),
        also=(*base.also, Learner(WRITER, "copy:policy", Recipe(), every=0)),
    )


fidelity = "core"
left_out = "supervised fine-tuning before; pairs of earlier rounds, which the paper's theory pools and its script does not"
data = Data(
    chosen=Column("the better reply, of which the reward model learns; not with a reward or model of your own", optional=True),
    rejected=Column("the worse reply", optional=True),
)

LEARNT = {"reward_model": "value-head:surprise", "lr": 1e-4}
claim = Claim(
    says="pairs that each round's policy wrote improve replies further than as many that the first policy wrote",
    versus="rlhf_workflow_online", task="preferences:writer=policy,biased=0.75,error=0.1", measure="pass@1",
    direction="higher", margin=0.02157, settings=LEARNT, versus_settings={**LEARNT, "round_steps": 1000}, steps=40,
    fault=Within("pass@1", high=0.85, says="share of right solutions that the first policy's pairs lead to"),
    judge=Within("train.pair_accuracy", low=0.65, says="better solutions above worse ones, by the reward model"),
    start=None,
    finding="too little is learnt here for anything to be decided: 45% right before, 54% with pairs of each round's policy, 53% "
    "with pairs of the first. The reward model ranks 77% of pairs right",
)  # fmt: skip
baseline = "dpo"
