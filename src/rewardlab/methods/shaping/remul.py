"""REMUL: a reply is paid when other models, going on from the beginning of its reasoning, come to the answer that it gives.

    r = share of (listener, cut) that state the reply's own answer,    cuts after 1/4, 1/2 and 3/4 of the lines of its reasoning
    then, in the last steps:  loss = -mean over the answer's tokens of log pi(gold answer | x, the policy's own reasoning)

Who can be followed says what the answer hangs on. Right or wrong does not count in r; so that the policy does not get worse, it
learns the gold answers after its own reasoning, of which nothing is learnt then (masked SFT). In one reward, paying for being right
and for being followed pull against each other.

Sivakumaran et al. 2026, arXiv:2602.16154; reward, cuts, n = 5, temperature 0.7 and a KL of 0.001 are those of the released script
(nsivaku/remul, 7effae1), whose three listeners are Ministral-3-14B, Phi-4 and Qwen3-14B, the last one the speaker's own start, at
temperatures of 0.9 to 1.1. There masked SFT is a run after the other one, with LoRA; how many steps it gets here is (inferred).
Left out: an entropy bonus of 0.001, top-p. The measures of the paper are `early_answering`, `mistake_injection` and
`hint_attribution`, for any method.

Data: prompts whose replies reason before they answer, with answers for the SFT; and listeners: listeners="PATH,PATH".
"""

from typing import Any

from rewardlab.core import Learner, Loop, Recipe, Run, loop
from rewardlab.core.domain import NonNegativeFloat, PositiveFloat, Share
from rewardlab.evals.groups import told_apart
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.ratio import imitate
from rewardlab.objectives.weighting import token_mean
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.listeners import reasoning_transfer
from rewardlab.rewards.recorded import score_in_data
from rewardlab.rewards.task import correct
from rewardlab.rollouts.answered import append_answer
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.recorded import recorded


@loop(inner="of")
def answers_last(
    recipe: Recipe, run: Run, ops: Any, *, share: Share = 0.2, faster: PositiveFloat = 10.0, mark: str = "Answer:",
    temperature: NonNegativeFloat = 0.7, of: Loop | None = None,
) -> None:  # fmt: skip
    """The last `share` of the run, of its steps or its budget, imitates the gold answer after the policy's own reasoning; the other
    steps go by the recipe.

    faster: the learning rate of these steps, as a multiple of the recipe's.  mark: before an answer.  temperature: at which the
    reasoning is sampled.  of: how a step is taken.
    """
    # a sum of tenths is not exact
    if run.progress < 1 - share - 1e-9:
        of(recipe, run, ops) if of else ops.standard_step(recipe)
        return
    lesson = append_answer(of=independent(n=1, temperature=temperature), mark=mark)
    update = {"lr": min(1.0, faster * recipe.update.rate), "problems": recipe.update.problems}
    ops.standard_step(Recipe(rollout=lesson, objective=imitate(), weighting=token_mean()).but(**update))


def remul(
    base: Recipe | None = None, *, listeners: str = "copy:policy", share: float = 0.2, faster: float = 10.0, mark: str = "Answer:",
    hearing: float = 0.9, right: float = 0.0, n: int = 5, temperature: float = 0.7, beta: float = 0.001,
) -> Recipe:  # fmt: skip
    """listeners: what they start from (`Learner.init`), with commas between them.  share, faster, mark: of the masked SFT.
    hearing: the temperature of listeners.  right: weight of being right in the reward ("balanced" in the paper).  n, temperature,
    beta: of grpo. The reward takes the place of a base's.
    """
    base = base or grpo(n=n, temperature=temperature, beta=beta)
    names = {f"listener{i}": init.strip() for i, init in enumerate(listeners.split(","), 1)}
    heard = reasoning_transfer(models=tuple(names), temperature=hearing)
    paid = heard + right * correct() if right else heard
    return base.but(
        reward=paid,
        measure=own_reward(reward=paid, rollout=independent(n=1)),
        also=(*base.also, *(Learner(name, init, Recipe(), every=0) for name, init in names.items())),
        loop=answers_last(share=share, faster=faster, mark=mark, temperature=temperature, of=base.loop) if share else base.loop,
    )


HEARD = reasoning_transfer(models=("listener1",)).named("heard") + 0.0 * correct()
claim = Claim(
    says="of two right answers, listeners prefer the one that its lines lead to, which being right cannot tell apart", versus=None,
    task="hindsight:test_size=1000", measure="agreement.heard", direction="higher", margin=0.155, against="agreement.correct",
    by=own_share(
        of=told_apart(reward=HEARD, truth=score_in_data(), rollout=recorded(fields=("followed", "hindsight"))), parts=10
    ),
    problems=1000, steps=1, fault=Within("signal.correct", high=0.1, says="pairs that being right tells apart"), learns=None,
    start=None,
)  # fmt: skip
baseline = "grpo"
