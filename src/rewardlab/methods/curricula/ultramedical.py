"""UltraMedical: DPO on annotated pairs, then rounds of DPO on the policy's own pairs, ranked by its own reward model.

    1  SFT;  2  DPO on pairs that a strong model annotated;  3  reward model r on the same pairs
    4  in rounds: pi_k writes n answers, r chooses the best and the worst, DPO on these pairs with the reference pi_k -> pi_k+1

Annotated answers are written by several other models. What sets them apart soon is nothing that the policy would write; its own
best and worst answers differ in what it can still choose between, and each round writes them anew.

Zhang et al. 2024, arXiv:2406.03949; DPO's beta of 0.1 is that of the released configuration (TsinghuaC3I/UltraMedical, af4a079,
dpo_config_full.yaml). (inferred): n, the length of the rounds, and the reference of each, its own start. The learning rate of SFT
is `sft_lr_scale` times DPO's, ten times, where theirs are 1e-5 and 3e-7. The reward model starts from the model before SFT, where
the paper's is a larger one. Answers are written when their prompt comes up, by the frozen pi_k.

From `replies` and `scores` rewardlab data pairs makes the columns; with coig_p+ultramedical DPO's pairs are made of them in the
run. The reward model may be brought along: --reward-model PATH, or a reward (score=...).
"""

from typing import Any

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Loop, Recipe, Run, loop
from rewardlab.data.columns import Data
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.rlhf import rlhf
from rewardlab.methods.baselines.sft import sft
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.ranked import ranked
from rewardlab.settings.domain import NonNegativeInt, PositiveFloat, PositiveInt


@loop(wraps="inner", first=("sft_steps", "annotated_steps"))
def then_own_pairs(
    recipe: Recipe, run: Run, ops: Any, *, sft_steps: NonNegativeInt, annotated_steps: NonNegativeInt, round_steps: PositiveInt,
    n: PositiveInt, field: str = "chosen", sft_lr_scale: PositiveFloat = 10.0, inner: Loop | None = None,
) -> None:  # fmt: skip
    """`sft_steps` of SFT on `field`, `annotated_steps` of the recipe, then the recipe on the best and the worst of n own replies.

    Each stage, and each round of `round_steps` own pairs, begins with a fresh optimiser and with the policy as the reference.
    inner: how a step is taken.
    """
    own = run.step - sft_steps - annotated_steps
    if run.step == sft_steps or (own >= 0 and own % round_steps == 0):
        ops.new_stage()
    step = recipe
    if run.step < sft_steps:
        step = sft(field=field, lr=sft_lr_scale * recipe.update.rate, problems=recipe.update.problems)
    elif own >= 0:
        step = recipe.but(rollout=ranked(by=recipe.required("reward"), n=n, model="reference"))
        run.log("round", 1 + own // round_steps)
    inner(step, run, ops) if inner else ops.standard_step(step)


def ultramedical(
    base: Recipe | None = None, *, field: str = "chosen", sft_steps: int = 8, annotated_steps: int = 12, round_steps: int = 10,
    n: int = 8, score: Reward | None = None, reward_model: str = "value-head", pairs: int | None = None, passes: int = 1,
    sft_lr_scale: float = 10.0,
) -> Recipe:  # fmt: skip
    """field: the column that SFT imitates.  sft_steps, annotated_steps: of the first two stages; rounds of `round_steps` have the
    rest.  n: own replies to each prompt.  score, reward_model, pairs, passes: as in `rlhf`.  sft_lr_scale: the learning rate of
    SFT, as a multiple of DPO's.
    """
    base = base or dpo(problems=8)
    base = rlhf(base, score=score, reward_model=reward_model, pairs=pairs, passes=passes)
    steps = {"sft_steps": sft_steps, "annotated_steps": annotated_steps, "round_steps": round_steps}
    return base.but(loop=then_own_pairs(**steps, n=n, field=field, sft_lr_scale=sft_lr_scale, inner=base.loop))


fidelity = "core"
left_out = (
    "KTO and the other losses, a larger reward model, and making the instructions: a model evolves them, scores filter them, and "
    "those of tests are taken out (rewardlab data filter, data dedupe)"
)
data = Data(
    chosen="a good reply, which SFT imitates and DPO and the reward model prefer",
    rejected="a worse reply",
    rows=[
        {
            "prompt": "How can I fall asleep faster?",
            "chosen": "Keep the same bedtime every day and put screens away an hour before it.",
            "rejected": "Just sleep.",
        },
        {
            "prompt": "Why is the sky blue?",
            "chosen": "Air scatters blue light more than red light, so that blue reaches us from all sides.",
            "rejected": "Because it mirrors the sea.",
        },
    ],
)

LEARNT = {"reward_model": "value-head:surprise", "lr": 1e-4, "sft_lr_scale": 1.0}
claim = Claim(
    says="DPO in rounds on own replies, ranked by the own reward model, improves them further than going on with annotated pairs",
    versus="ultramedical", task="preferences:writer=policy,biased=0.75,error=0.1", measure="pass@1",
    direction="higher", margin=0.026, settings=LEARNT, versus_settings={**LEARNT, "annotated_steps": 52}, steps=60,
    judge=Within("train.pair_accuracy", low=0.65, says="better solutions above worse ones, by the reward model"),
    start=None, tried="notes, where the reward model was right in .71 of pairs: no difference in three seeds (-.03, sd .05); "
    "writer=several: pass@1 fell on both sides; in 40 steps the baseline rose by .0929 where .0934 were asked (+.012, sd .026)",
    finding="start 46% right; 59% after rounds on own pairs, 58% after as many steps on annotated ones: no difference that is "
    "clear of the noise, with a reward model that is right in 79% of pairs",
)  # fmt: skip
