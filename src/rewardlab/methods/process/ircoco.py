"""IRCoCo: immediate token rewards: an evaluator predicts the quality of a completion from its prefix.

    evaluator: (E(x, y_1 .. y_t) - S)^2 at every t,   S: similarity of the whole completion to the reference
    r_t = E(x, y_1 .. y_t);     A_t = r_t + gamma V(x, y_1 .. y_t) - V(x, y_1 .. y_(t-1)) ...,   gamma = 0

Whether half a line of code is right cannot be checked, and a score at its end comes too late for the token at which it went wrong.
With gamma = 0 the critic foretells the evaluator's next word alone, and a token is credited for what this word rises by.

Li et al. 2024, arXiv:2401.16637. Scores of prefixes, not their differences, as the rewards, and that each weighs its own token
alone, are those of the released code (Libolun-star/IRCoCo, c29d963, Datasets/apps_dataset_rl_code.py, `rl_task`). (inferred): the
critic, of which the paper speaks, as PPO's. The evaluator learns beside the policy, from what it samples, a batch behind; there it
is trained before, and reads what comes before the completion too, as here. S is the edit similarity to the reference, or the reward
of the base.
"""

from dataclasses import replace

import torch
from torch import Tensor

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Batch, Learner, Recipe, Run, Update, credit
from rewardlab.credit.implicit import log_fit
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.own_reward import own_reward
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.objectives.progress import outcome_error
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.similarity import similar_to
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent


@credit(needs=("evaluator.value",))
def immediate(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Pay every decision the evaluator's score of the reply up to it, instead of the reply's reward.

    evaluator_fit is logged: the correlation over replies of what it says at their ends and what they earned.
    """
    said = batch.columns["evaluator.value"]
    log_fit(said.gather(1, (batch.length - 1)[:, None]).squeeze(1), batch, run, "evaluator_fit")
    # the policy is judged where its reply is: without a verdict nobody knows what it was worth
    return torch.where(batch.mask & batch.rewarded.any(1, keepdim=True), said, 0.0)


def ircoco(
    base: Recipe | None = None, *, column: str = "solution", gamma: float = 0.0, init: str = "value-head",
    evaluator_lr: float | None = None, evaluator_epochs: int = 4,
) -> Recipe:  # fmt: skip
    """column: with the reference.  gamma: of PPO, where no base is given.  init, evaluator_lr, evaluator_epochs: of the evaluator
    (`Learner.init`).  A base's reward beside the task's verifier is kept as S.
    """
    base = base or ppo(gamma=gamma)
    if not any(x.name == "critic" for x in base.also):
        raise RewardlabError("IRCoCo pays a policy that has a critic: give it a base with a learner of this name, as ppo has")
    score = similar_to(column=column) if base.reward in (None, correct()) else base.required("reward")
    # the critic foretells what the policy is paid
    own = tuple(
        replace(x, recipe=x.recipe.but(credit=immediate() >> x.recipe.credit)) if x.name == "critic" else x for x in base.also
    )
    evaluator = Recipe(
        objective=outcome_error(),
        weighting=token_mean(),
        update=Update(lr=evaluator_lr, epochs=evaluator_epochs, loss_kind="scorer"),
    )
    return base.but(
        reward=score,
        credit=immediate() >> base.required("credit"),
        measure=own_reward(reward=score, rollout=independent(n=1)),
        also=(*own, Learner("evaluator", init, evaluator)),
    )


fidelity = "core"
left_out = (
    "the likelihood of references in the loss; BLEU, which the released code has as S; completions of a fine-tuned model, written "
    "before, from which its policy learns; and an evaluator of greedy completions of each beginning, which stays as it is"
)
data = Data(
    answer=Column("tests or a gold answer, for a base that pays for it", optional=True),
    solution=Column("the reference completion", setting="column"),
    rows=[
        {
            "prompt": "Write a function add(a, b) that returns their sum.",
            "answer": {"tests": "assert add(2, 3) == 5\nassert add(0, 0) == 0"},
            "solution": "def add(a, b):\n    return a + b",
        },
        {
            "prompt": "Write a function twice(text) that returns the text two times.",
            "answer": {"tests": "assert twice('ab') == 'abab'\nassert twice('') == ''"},
            "solution": "def twice(text):\n    return text * 2",
        },
    ],
    verified_by="code",
)

claim = Claim(
    says="completions become more like the references than with PPO on their similarity at the end, after equal updates",
    versus="ppo", task="codes", measure="reward", direction="higher", margin=0.02, settings={"lr": 1e-4},
    versus_settings={"lr": 1e-4}, reward=similar_to(), by=own_reward(reward=similar_to(), rollout=independent(n=1)), steps=12,
    judge=Within("train.evaluator_fit", low=0.3, says="correlation of what the evaluator says at the end and what was earned"),
    learns="reward", span=(0.75, 1.0), start=None,
    tried="40 steps, at PPO's own rate of 3e-4 and at 1e-4: PPO reaches .99, this .96 and .97",
    finding="similarity to the references rises from .80 to .87 in 12 steps, with PPO on the similarity at the end to .96: paid "
    "at once it learns more slowly, although the evaluator foretells what a completion earns (correlation .78 at its end)",
)  # fmt: skip
baseline = "ppo"
