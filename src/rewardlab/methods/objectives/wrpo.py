"""WRPO: pairs with two winners, one from other models and one of the policy's own, and a weight that moves to the others'.

    loss = -log sigmoid(a beta log pi/ref(y_ws) + (1 - a) beta log pi/ref(y_wt) - beta log pi/ref(y_l)),    a = alpha * progress
    y_ws: the best reply of the source models;    y_wt, y_l: the best and the worst of n replies of the target

What better models write is far from what the target would, so that preferring it outright shifts the target's distribution; its own
best reply is near, and can teach no more than the target knows. Whole texts are learnt from, so that vocabularies need not agree.

Yang et al. 2024, arXiv:2412.03187. Loss, alpha = 0.1, beta = 0.01 and the linear schedule from 0 follow the released code
(yangzy39/WRPO, ac6cbf5, wrpo_trainer.py; 8169c75, llama-3-8b-instruct-sft-wrpo.yaml); n = 5 and SFT on y_ws before, which gives the
reference, its README. There SFT has a third of the data, at 23 times the rate of the rest; here 2 of 15 steps, at ten times
(`sft_first`), unless `sft_steps` says how many. (inferred): own replies are written when their prompt comes up, by the reference.

rewardlab data pairs chooses the sources' best reply by `scores` among `replies`. Own replies are ranked by a reward model, learnt
from `chosen` and `rejected` or brought along (--reward-model PATH), or by a reward (score=...).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import START, Check, Within
from rewardlab.core import Batch, Outputs, Recipe, Run, objective
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import preference_margins
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.rlhf import rlhf
from rewardlab.methods.baselines.sft import sft_first, steps_of
from rewardlab.objectives.pairs import row_sum
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.ranked import ranked
from rewardlab.rollouts.with_demonstrations import with_demonstrations
from rewardlab.settings.domain import NonNegativeInt, PositiveFloat, Share
from rewardlab.worlds.notes import note_quality

SHARE = 2 / 15
"""Of the steps, that of SFT where nothing else is said."""


@objective(unit="group", needs=("ref",))
def wrpo_loss(
    out: Outputs, batch: Batch, run: Run, *, alpha: Share = 0.1, beta: PositiveFloat = 0.01, start: NonNegativeInt | None = 0,
    annealed: bool = True,
) -> Tensor:  # fmt: skip
    """Groups of three rows: the sources' winner, the own winner, the own loser.  alpha: weight of the first at the end of the run.

    start: the training step at which it begins to rise from 0; None: after the default share of SFT.  annealed: false keeps it
    at alpha.
    """
    if len(batch) != 3 * batch.groups or not torch.equal(batch.group[::3], batch.group[2::3]):
        raise RewardlabError("wrpo_loss needs groups of three rows: a source model's winner, an own winner and an own loser")
    before = (steps_of(run, SHARE, "sft_steps") if start is None else start) / max(1, run.steps)
    share = alpha * (max(0.0, run.progress - before) / (1 - before) if annealed and before < 1 else 1.0)
    run.log("source_weight", share)
    source, own, loser = row_sum(out.logprobs - batch.ref, batch).view(-1, 3).unbind(1)
    return -F.logsigmoid(beta * (share * source + (1 - share) * own - loser))


def wrpo(
    base: Recipe | None = None, *, alpha: float = 0.1, beta: float = 0.01, annealed: bool = True, field: str = "chosen",
    sft_steps: int | None = None, n: int = 5, score: Reward | None = None, reward_model: str = "value-head",
    pairs: int | None = None,
) -> Recipe:  # fmt: skip
    """alpha: weight of the sources' winner at the end.  annealed: false keeps it there from the start.  field: the column of the
    sources' winner.  sft_steps: steps of SFT on it before the others; None: 2 of 15 of the run's; 0: none.  n: own
    replies to each prompt.  score, reward_model, pairs: what ranks them, as in `rlhf`.
    """
    base = base or dpo(problems=8)
    base = rlhf(base, score=score, reward_model=reward_model, pairs=pairs)
    own = ranked(by=base.required("reward"), n=n)
    first = base.loop if sft_steps == 0 else sft_first(steps=sft_steps, share=SHARE, field=field, inner=base.loop)
    loss = wrpo_loss(alpha=alpha, beta=beta, start=sft_steps, annealed=annealed)
    return base.but(rollout=with_demonstrations(inner=own, fields=(field,)), objective=loss, loop=first)


fidelity = "core"
left_out = (
    "writing the replies of the source models (five each, at temperature .8 and top-p .95), which stand in the data; and separate "
    "parts of the data for fine-tuning and for preferences"
)
data = Data(
    chosen=Column("the best reply of the source models", setting="field"),
    rejected=Column("a worse reply, of which the reward model learns; not with one of your own", optional=True),
)

KNOWN = {"score": note_quality(), "field": "solution", "lr": 1e-4}
check = Check(
    says="with a better writer's winner beside the own one, such writers' replies become likelier than by DPO on own replies alone",
    versus="wrpo", task="notes", measure="chosen_per_token", direction="higher", margin=0.048,
    settings={"alpha": 0.5, **KNOWN}, versus_settings={"alpha": 0.0, **KNOWN},
    by=preference_margins(chosen="solution"), steps=60,
    fault=Within("chosen_per_token", high=-0.2, says="log-likelihood per token of better writers' replies, by own ones alone"),
    learns=None, start=START,
    tried="quality of the replies (.645 and .669 at 1e-4); at 3e-4 both sides fall below their start, by up to .4; with 16 prompts "
    "at 1e-4 .764 and .728, sd of a pair .05; accuracy on arithmetic:biased=0.75,error=0.1: .577 and .574; how often such replies "
    "gain more than worse ones: .97 by own replies alone",
    finding="better writers' replies become likelier on both sides alike: log-likelihood per token -.83 before, -.35 with their "
    "winner and -.33 without. In this world own winners read like theirs, so that there is nothing to gain by them",
)  # fmt: skip
baseline = "dpo"
