"""ReasonFlux-PRM: thoughts are scored by the response that they lead to, a judge and one another, and as a whole by its template.

    step t of the thought:   r_t = sum_k softmax(a_t, q_t, c_t)_k (a_t, q_t, c_t)_k
       a: cosine with the nearest step of the response;   q: a judge's word;   c: chance of s_{t-1} among steps of other problems
    whole:                   R = share of right ones among N replies that follow the template of the response
    model:  (p_t - r_t)^2 at each step of the thought, (p_T - R)^2 at the end of the reply;    RL: (1 - online) outcome + online p

Models that learnt on tidy solutions misjudge the thinking of reasoning models, which goes back and branches, before a response that
does not. The response shows which thoughts were right; a template that helps shows that the strategy was.

Zou et al. 2025, arXiv:2506.18896 (summaries; CloudEngineHub/ReasonFlux, 72b1be9, has the use of the trained model and no training
of it). (inferred): the nearest step, the chance in place of its log, so that targets lie between 0 and 1, the heat, negatives
from the other problems of the batch, that both losses are one mean over labels, and that the score of a reply is the mean over
its thought and its end. There a larger model judges and writes templates; here `judge`, and without `writer` the response is its
own template.

Data: prompts with gold answers, and a policy whose replies have a line `mark` between thought and response.
"""

from typing import Any

from rewardlab.core import Learner, Recipe, Update
from rewardlab.evals.reranked import reranked
from rewardlab.evals.step_labels import label_quality
from rewardlab.objectives.step_labels import value_of_steps
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.algebra import aggregate, threshold
from rewardlab.rewards.imperfect_steps import imperfect_steps
from rewardlab.rewards.judged_steps import judged_steps
from rewardlab.rewards.model import step_score
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.rewards.thoughts import MARK, template_success, thought_steps
from rewardlab.rewards.weighed_steps import weighed_steps
from rewardlab.rollouts.independent import independent
from rewardlab.tasks.rethought.rewards import right_thoughts

JUDGE, WRITER = "judge", "writer"


def reasonflux_prm(
    base: Recipe | None = None, *, quality: Reward | None = None, judge: str = "copy:policy", writer: str = "", mark: str = MARK,
    embed: str = "ngrams", heat: float = 0.1, templates: int = 4, online: float = 0.0, n: int = 4, choose: int = 8,
    init: str = "value-head:surprise", lr: float = 1e-3, epochs: int = 1,
) -> Recipe:  # fmt: skip
    """quality: a reward of steps; None: the word of the model `judge`.  writer: the model that writes templates.  embed, heat: of
    alignment and coherence.  templates: N.  online: weight of the model's score in the policy's reward, if the base trains it.
    n: replies per problem.  choose: replies to choose from when it is measured.  init, lr, epochs: of the model."""
    base = base or Recipe(name="reasonflux_prm", update=Update(problems=8))
    steps = thought_steps(quality=quality or judged_steps(model=JUDGE), mark=mark, embed=embed, heat=heat)
    whole = template_success(n=templates, model=WRITER if writer else "", mark=mark)
    labels = weighed_steps(of={"steps": steps}, weights=(1.0,), whole={"template": whole}, hard=False)
    prm = Recipe(reward=labels, objective=value_of_steps(loss="mse"), update=Update(lr=lr, epochs=epochs))
    chances = threshold(step_score(model="prm"), at=0.0, soft=1.0)
    score = 0.5 * aggregate(chances, by="mean").named("steps") + 0.5 * aggregate(chances, by="last").named("whole")
    outcome: Any = base.reward or correct()
    models = [(JUDGE, "" if quality else judge), (WRITER, writer)]
    others = [Learner(name, made, Recipe(), every=0) for name, made in models if made]
    return base.but(
        rollout=independent(n=n, steps="newline"), measure=reranked(by=score, n=choose),
        reward=(1 - online) * outcome + online * score if online else outcome,
        also=(*base.also, *others, Learner("prm", init, prm)),
    )  # fmt: skip


NOISY = imperfect_steps(auc=0.75, of=right_thoughts())

claim = Claim(
    says="with alignment and coherence, targets of thoughts rank right steps above wrong ones better than the judge's word alone",
    versus=None, task="rethought", measure="auc.three", direction="higher", margin=0.08, against="auc.judge",
    by=label_quality(
        truth=right_thoughts(), rollout=independent(n=4, steps="newline"),
        annotators={"three": thought_steps(quality=NOISY), "judge": NOISY},
    ), problems=150, steps=1, fault=Within("auc.judge", high=0.85, says="AUC of the judge's word alone"), learns=None, start=None,
    tried="by steps that go on rightly, also from a wrong one, the three do no better than the judge: -.017 (2 seeds)",
)  # fmt: skip
baseline = None
kind = "reward-model"
