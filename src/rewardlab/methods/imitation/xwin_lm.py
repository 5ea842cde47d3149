"""Xwin-LM: four stages: SFT, a reward model, imitation of the best of n replies, and DPO on ranked replies.

    1  SFT on recorded replies                                       -> policy S
    2  reward model r on pairs: P(a preferred to b) = sigmoid(r(a) - r(b))
    3  S writes n replies to each prompt, r ranks them;  SFT on the first            -> policy R, the reference of stage 4
    4  DPO, chosen: the first rank, rejected: a lower one of the same n replies

Imitating the best reply cannot get beyond the best that S writes; DPO also learns what to leave. All replies are those of S: the
set is written once, so that what one stage learns is not in the data of the next.

Ni et al. 2024, arXiv:2405.20335: n = 64 (here 16). (inferred): the rank of the rejected reply, here the last; how the steps are
divided; the learning rates of the stages, `sft_lr_scale` times DPO's in both that imitate, as in `sft_first`; that the reward model
starts from the model before SFT. Replies are written when their prompt comes up, by a frozen S, and not kept.
"""

from typing import Any

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Learner, Loop, Recipe, Run, loop
from rewardlab.data.columns import Column, Data
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.rlhf import rlhf
from rewardlab.methods.baselines.sft import sft
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.ranked import ranked
from rewardlab.settings.domain import NonNegativeInt, PositiveFloat, PositiveInt

WRITER = "writer"


@loop(wraps="inner", first=("sft_steps", "best_steps"))
def in_stages(
    recipe: Recipe, run: Run, ops: Any, *, sft_steps: PositiveInt, best_steps: NonNegativeInt, n: PositiveInt,
    field: str = "chosen", sft_lr_scale: PositiveFloat = 10.0, inner: Loop | None = None,
) -> None:  # fmt: skip
    """`sft_steps` of SFT on `field`, `best_steps` of SFT on the best of n replies, then the recipe; each with a fresh optimiser.

    The writer of all replies is the policy after the first stage; the reference that after the second.  inner: how a step is taken.
    """
    if run.step == sft_steps:
        run.model(WRITER).load_state(run.policy.state())
    if run.step in (sft_steps, sft_steps + best_steps):
        ops.new_stage()
    lr, problems = sft_lr_scale * recipe.update.rate, recipe.update.problems
    if run.step < sft_steps:
        stage, step = 1, sft(field=field, lr=lr, problems=problems)
    elif run.step < sft_steps + best_steps:
        best = ranked(by=recipe.required("reward"), n=n, ranks=(0,), model=WRITER)
        stage, step = 2, sft(lr=lr, problems=problems).but(rollout=best)
    else:
        stage, step = 3, recipe
    inner(step, run, ops) if inner else ops.standard_step(step)
    run.log("stage", stage)


def xwin_lm(
    base: Recipe | None = None, *, field: str = "chosen", sft_steps: int = 8, best_steps: int = 16, n: int = 16, rank: int = -1,
    score: Reward | None = None, reward_model: str = "value-head", pairs: int | None = None, passes: int = 1,
    sft_lr_scale: float = 10.0,
) -> Recipe:  # fmt: skip
    """field: the column that SFT imitates.  sft_steps, best_steps: of the first stage and the third; DPO has the rest.  n: replies
    to each prompt.  rank: of the rejected one, -1 the worst, 1 the second best.  score, reward_model, pairs, passes: as in `rlhf`.
    sft_lr_scale: the learning rate of imitation, as a multiple of DPO's.
    """
    base = base or dpo(problems=8)
    base = rlhf(base, score=score, reward_model=reward_model, pairs=pairs, passes=passes)
    stages = in_stages(sft_steps=sft_steps, best_steps=best_steps, n=n, field=field, sft_lr_scale=sft_lr_scale, inner=base.loop)
    return base.but(
        rollout=ranked(by=base.required("reward"), n=n, ranks=(0, rank), model=WRITER),
        loop=stages,
        also=(*base.also, Learner(WRITER, "copy:policy", Recipe(), every=0)),
    )


fidelity = "core"
left_out = "pairs that GPT-4 grades in five degrees, conversations of several turns, and n = 64 (here 16)"
data = Data(
    chosen=Column("the better reply: SFT imitates it, and the reward model prefers it", setting="field"),
    rejected=Column(
        "the worse reply, from which the reward model learns; not read with --reward-model PATH or score", optional=True
    ),
    answer=Column("the gold answer, for the held-out accuracy alone", optional=True),
    rows=[
        {
            "prompt": "How do I boil an egg?",
            "chosen": "Put it into boiling water for eight minutes, then cool it.",
            "rejected": "No idea.",
        },
        {"prompt": "Say hello in French.", "chosen": "Bonjour!", "rejected": "Hola!"},
        {"prompt": "What is 6 times 7?", "chosen": "6 x 7 = 42.\nAnswer: 42", "rejected": "About 40.\nAnswer: 40"},
    ],
)

LEARNT = {"reward_model": "value-head:surprise", "lr": 1e-4, "sft_lr_scale": 1.0}
claim = Claim(
    says="DPO on ranked replies after imitation of the best improves replies further than going on to imitate for as many updates",
    versus="xwin_lm", task="preferences:writer=policy,biased=0.75,error=0.1", measure="pass@1",
    direction="higher", margin=0.02, settings=LEARNT, versus_settings={**LEARNT, "best_steps": 52}, steps=60,
    judge=Within("train.pair_accuracy", low=0.65, says="better solutions above worse ones, by the reward model"),
    start=None, tried="notes, where the reward model was right in .73 of pairs: no difference in three seeds (-.03, sd .05)",
    finding="45% right before; imitation of the best reply ends at 53%, DPO after it at 47%, while the reward model rates its "
    "replies higher (.68 against .61): the score goes up, and not what it stands for",
    version=2, replaces="40 steps: the baseline rose by .070 where .105 were asked (-.005 in 5 pairs)",
)  # fmt: skip
