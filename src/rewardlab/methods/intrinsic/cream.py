"""CREAM: self-rewarding DPO with labels softened by the consistency of the policy's rankings between rounds.

    r_t(y) = log pi_t(y) / pi_0(y) of n own replies;    chosen, rejected: the highest and the lowest
    C = mean over the prompts of (tau(r_t, r_{t-1}) + 1) / 2,    tau: Kendall's rank correlation of the n replies
    loss = C L_DPO(chosen, rejected) + (1 - C) L_DPO(rejected, chosen)

A policy that judges its own replies takes its accidents for preferences, and confirms them round after round. What two iterates
rank alike is likelier to be more than an accident; where they disagree, C is near 1/2 and hardly anything is learnt.

Wang et al. 2024, arXiv:2410.12735, and the released code (Raibows/CREAM, ea95c33: cal_consistency.py, rewarding.py,
sft_dpo_trainer.py; fb02559, README; de1d04b, config.py): n = 5 at temperature .8 and top-p .95, beta .1, C over the round's set
(`label="round"`, "pair" is its dynamic variant). pi_0: the model before SFT, pi_1: after it, and the reference of a round's DPO is
pi_t; pi_0, which implies no reward, ranks by its mean log-prob per token. (inferred): replies are written when their prompt comes
up, so that C is the mean over the round so far; equal replies count once; how steps are divided; the rate of SFT.

A model that has had its SFT needs no column: sft_steps=0, and the one before it as `initial`.
"""

from typing import Any, Literal

import torch
from torch import Tensor

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Batch, Learner, Loop, Recipe, Run, credit, loop
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.sft import sft
from rewardlab.objectives.pairs import soft_dpo_loss
from rewardlab.rewards.implicit import implicit_reward
from rewardlab.rollouts.ranked import ranked_twice
from rewardlab.settings.domain import NonNegativeInt, PositiveFloat, PositiveInt, Share

INITIAL, PREVIOUS, MEMORY = "initial", "previous", "cream.consistency"
Label = Literal["round", "pair", "constant", "sure"]
UNKNOWN = 0.5
"""The consistency of a pair of which nothing is known."""


@credit
def consistency(a: Tensor, batch: Batch, run: Run, *, label: Label = "round", at: Share = 1.0) -> Tensor:
    """How sure the label of a pair is, at all of its positions: "round": the mean consistency of the round's pairs so far, those of
    this step too; "pair": its own; "constant": `at`; "sure": 1. For `soft_dpo_loss`, no advantage. Logged: consistency, the mean of
    the step's pairs, which those that `ranked_twice` makes up are not.
    """
    own = [t.problem.meta["consistency"] for t, _ in batch.rows]
    known = [x for x in own if x is not None]
    if known:
        run.log("consistency", sum(known) / len(known))
    # by step, so that a step that is scored again counts once
    steps = run.memory.setdefault(MEMORY, {})
    steps[str(run.step)] = [sum(known), len(known)]
    total, count = (sum(column) for column in zip(*steps.values(), strict=True))
    whole = total / count if count else UNKNOWN
    values = {
        "round": [whole] * len(own), "pair": [UNKNOWN if x is None else x for x in own], "constant": [at] * len(own),
        "sure": [1.0] * len(own),
    }[label]  # fmt: skip
    return torch.tensor(values, dtype=a.dtype, device=a.device)[:, None].expand_as(a)


@loop(wraps="inner", first=("sft_steps",))
def self_ranking(
    recipe: Recipe, run: Run, ops: Any, *, sft_steps: NonNegativeInt, round_steps: PositiveInt, field: str = "chosen",
    sft_lr_scale: PositiveFloat = 10.0, inner: Loop | None = None,
) -> None:  # fmt: skip
    """`sft_steps` of SFT on `field`, then rounds of the recipe; after each, the reference becomes the model `previous` and the
    policy the reference, and the optimiser is fresh.  inner: how a step is taken.
    """
    own = run.step - sft_steps
    if run.step and own >= 0 and own % round_steps == 0:
        run.model(PREVIOUS).load_state(run.reference.state())
        ops.new_stage()
        run.memory.pop(MEMORY, None)
    run.log("round", 0 if own < 0 else 1 + own // round_steps)
    taken = sft(field=field, lr=sft_lr_scale * recipe.update.rate) if own < 0 else recipe
    inner(taken, run, ops) if inner else ops.standard_step(taken)


def cream(
    base: Recipe | None = None, *, label: Label = "round", at: float = 1.0, beta: float = 0.1, n: int = 5,
    field: str = "chosen", sft_steps: int = 10, round_steps: int = 10, initial: str = "copy:policy", sft_lr_scale: float = 10.0,
) -> Recipe:  # fmt: skip
    """label: whose consistency is believed, as in `consistency`; "sure" is self-rewarding without it, and "constant" takes `at` for
    every C: the smoothing of labels that C amounts to where it hardly varies.  beta: of DPO.  n: replies to
    a prompt.  field, sft_steps: SFT first.  round_steps: of a round.  initial: pi_0.  sft_lr_scale: the rate of SFT in DPO's.
    """
    if not sft_steps and initial == "copy:policy":
        raise RewardlabError(
            "cream without SFT (sft_steps=0) needs the model before it as `initial`: it is what rewards are relative to"
        )
    base = base or dpo(problems=8)
    own, before = (implicit_reward(model=model, base=INITIAL) for model in ("reference", PREVIOUS))
    rounds = self_ranking(sft_steps=sft_steps, round_steps=round_steps, field=field, sft_lr_scale=sft_lr_scale, inner=base.loop)
    models = [Learner(name, initial, Recipe(), every=0) for name in (INITIAL, PREVIOUS)]
    return base.but(
        rollout=ranked_twice(by=own, again=before, n=n, temperature=0.8, top_p=0.95), credit=consistency(label=label, at=at),
        objective=soft_dpo_loss(beta=beta), loop=rounds, also=(*base.also, *models),
    )  # fmt: skip


fidelity = "core"
left_out = (
    "C over the whole set of a round, before its DPO: here replies are written when their prompt comes up, and C is the "
    "mean of the round so far"
)
data = Data(
    chosen=Column("a reply to imitate first; not read with sft_steps=0", optional=True, setting="field"),
    answer=Column("the gold answer, for the held-out accuracy alone", optional=True),
    rows=[
        {"prompt": "Name a fruit that is yellow.", "chosen": "A banana is yellow.\nAnswer: banana", "answer": "banana"},
        {"prompt": "Is the sea salty?", "chosen": "Rivers bring salt into it, so it is.\nAnswer: yes", "answer": "yes"},
        {"prompt": "What is 17 - 9?", "chosen": "17 - 9 = 8, so the answer is \\boxed{8}.", "answer": "8"},
    ],
)

claim = Claim(
    says="labels believed as far as two iterates agree leave a policy right more often than labels as sure as these on average",
    versus="cream", task="preferences:flip=0.3,biased=0.75,error=0.1", measure="pass@1", direction="higher", margin=0.059,
    settings={"lr": 1e-4}, versus_settings={"label": "constant", "at": 0.958, "lr": 1e-4}, steps=40,
    guard=Within("pass@1", low=-0.05, says="pass@1, which self-rewarding must not unlearn"), guard_from="start",
    fault=Within("train.true_labels", high=0.85, says="share of self-ranked pairs that are the right way round"), learns=None,
    finding="36% right at the start; CREAM ends at 24%, and labels that are as sure on average at 6%. It loses less in all five "
    "runs, and neither helps: of the self-ranked pairs 27% and 5% are the right way round, from which nothing is to be learnt",
    version=2, replaces="the rival was sure of its labels, against whom any smoothing wins: C was .95 to .97 in all runs, and "
    "both sides collapsed, from .36 to .19 and .07, where nothing guarded the start",
)  # fmt: skip
baseline = "dpo"
