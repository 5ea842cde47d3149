"""ReasonFlux-PRM: thoughts are scored by the response that they lead to, a judge and one another, and as a whole by its template.

    step t of the thought:   r_t = sum_k softmax(a_t, q_t, c_t)_k (a_t, q_t, c_t)_k
       a: cosine with the nearest step of the response;   q: a judge's word;   c: chance of s_{t-1} among steps of other problems
    whole:                   R = share of right ones among N replies that follow the template of the response
    model:  mean over t of (p_t - r_t)^2 + final (p_T - R)^2, p_T at the end of the reply;    RL: (1 - online) outcome + online p

Models that learnt on tidy solutions misjudge the thinking of reasoning models, which goes back and branches, before a response that
does not. The response shows which thoughts were right; a template that helps shows that the strategy was.

Zou et al. 2025, arXiv:2506.18896 (summaries, and notes on the paper in zhaoyang97/Paper-Notes-en, for the two losses and softmax
weights; CloudEngineHub/ReasonFlux, 72b1be9, has the use of the trained model and no training of it). (inferred): final = 1, the
nearest step, the chance in place of its log, so that targets lie between 0 and 1, the heat, negatives from the other problems of
the batch, and that the score of a reply is the mean over its thought and its end. There a larger model judges and writes
templates; here `judge`, and without `writer` the response is its own template, with a blank for each number that it computed.

Data: prompts with gold answers, and a policy whose replies have a line `mark` between thought and response.
"""

from typing import Any

import torch
from torch import Tensor

from rewardlab.core import (
    Batch,
    Group,
    Learner,
    Outputs,
    Recipe,
    Run,
    Score,
    Scores,
    Term,
    Trajectory,
    Update,
    objective,
    with_surprise,
)  # fmt: skip
from rewardlab.core.domain import NonNegativeFloat
from rewardlab.core.score import derive
from rewardlab.evals.reranked import reranked
from rewardlab.evals.step_labels import label_quality
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.algebra import threshold
from rewardlab.rewards.imperfect_steps import imperfect_steps
from rewardlab.rewards.judged_steps import judged_steps
from rewardlab.rewards.model import step_score
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.rewards.thoughts import MARK, parts_of, sound_thoughts, template_success, thought_steps
from rewardlab.rewards.weighed_steps import weighed_steps
from rewardlab.rollouts.independent import independent

JUDGE, WRITER = "judge", "writer"


@objective(unit="row", wants=("value",))
def steps_and_whole(out: Outputs, batch: Batch, run: Run, *, final: NonNegativeFloat = 1.0) -> Tensor:
    """The mean over the labelled steps of a reply of (sigmoid(V) - label)^2, and `final` times the same of the label at its end."""
    error = torch.where(batch.rewarded, (out.value.sigmoid() - batch.reward.clamp(0, 1)).square(), 0.0)
    end = batch.mask & (batch.mask.flip(1).cumsum(1).flip(1) == 1)
    steps = batch.rewarded & ~end
    return torch.where(steps, error, 0.0).sum(1) / steps.sum(1).clamp(min=1) + final * torch.where(end, error, 0.0).sum(1)


@reward(over="groups")
def thought_and_end(groups: list[Group], run: Run, *, of: Reward, mark: str = MARK) -> Scores:
    """Half of the mean of what `of` says at the ends of the steps of the thought, and half of what it says at the end of the reply.

    Without a thought and a response, the mean over all steps takes the place of the first.
    """
    return [
        [_thought_and_end(t, s, mark) for t, s in zip(*rows, strict=True)] for rows in zip(groups, of(groups, run), strict=True)
    ]


def _thought_and_end(t: Trajectory, said: Score, mark: str) -> Score:
    known, parts = dict(said.steps), parts_of(t, mark)
    thought = [known[t.steps[i]] for i, _ in parts.thought if t.steps[i] in known] if parts else []
    if said.missing or not known:
        return derive("thought_and_end", None, [said])
    mean = sum(thought or known.values()) / len(thought or known)
    return derive("thought_and_end", Term((mean + known[max(known)]) / 2), [said])


def reasonflux_prm(
    base: Recipe | None = None, *, quality: Reward | None = None, judge: str = "copy:policy", writer: str = "", mark: str = MARK,
    embed: str = "ngrams", heat: float = 0.1, templates: int = 4, final: float = 1.0, online: float = 0.0, n: int = 4,
    choose: int = 8, init: str = "value-head", surprise: bool = False, lr: float | None = None, epochs: int = 1,
) -> Recipe:  # fmt: skip
    """quality: a reward of steps; None: the word of the model `judge`.  writer: the model that writes templates.  embed, heat: of
    alignment and coherence.  templates: N.  final: weight of the loss at the end.  online: weight of the model's score in the
    policy's reward, if the base trains it.  n: replies per problem.  choose: replies to choose from when it is measured.  init, lr,
    epochs: of the model.  surprise: it also reads the surprise of the policy (`Learner.init`), which no paper has.
    """
    base = base or Recipe(name="reasonflux_prm", update=Update(problems=8))
    steps = thought_steps(quality=quality or judged_steps(model=JUDGE), mark=mark, embed=embed, heat=heat)
    whole = template_success(n=templates, model=WRITER if writer else "", mark=mark)
    labels = weighed_steps(of={"steps": steps}, weights=(1.0,), whole={"template": whole}, hard=False)
    prm = Recipe(reward=labels, objective=steps_and_whole(final=final), update=Update(lr=lr, epochs=epochs, loss_kind="scorer"))
    chances = threshold(step_score(model="prm"), at=0.0, soft=1.0)
    score = thought_and_end(of=chances, mark=mark)
    outcome: Any = base.reward or correct()
    models = [(JUDGE, "" if quality else judge), (WRITER, writer)]
    others = [Learner(name, made, Recipe(), every=0) for name, made in models if made]
    return base.but(
        rollout=independent(n=n, steps="newline"), measure=reranked(by=score, n=choose),
        reward=(1 - online) * outcome + online * score if online else outcome,
        also=(*base.also, *others, Learner("prm", with_surprise(init, surprise), prm)),
    )  # fmt: skip


NOISY = imperfect_steps(auc=0.75, of=sound_thoughts())

claim = Claim(
    says="with alignment and coherence, targets of thoughts rank right steps above wrong ones better than the judge's word alone",
    versus=None, task="rethought", measure="auc.three", direction="higher", margin=0.08, against="auc.judge",
    by=label_quality(
        truth=sound_thoughts(), rollout=independent(n=4, steps="newline"),
        annotators={"three": thought_steps(quality=NOISY), "judge": NOISY},
    ), problems=150, steps=1, fault=Within("auc.judge", high=0.85, says="AUC of the judge's word alone"), learns=None, start=None,
    tried="by steps that go on rightly, also from a wrong one, the three do no better than the judge: -.017 (2 seeds)",
    version=2, replaces="a step was right where it was the gold step, which likeness to a right response tells: the truth had been "
    "changed after the three had done no better by the truth of now, steps that go on rightly from the one before",
)  # fmt: skip
baseline = None
kind = "reward-model"
