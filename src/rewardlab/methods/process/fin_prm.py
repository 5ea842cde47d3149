"""Fin-PRM: step labels by Monte Carlo, a judge and a knowledge base; reply labels by answer and knowledge coverage.

    step k:    w_i importance + w_q quality + w_a accuracy;    importance: share of n continuations that are right
               quality: a judge's word;     accuracy: whether what the step states stands in the knowledge base
    reply:     (outcome + share of the knowledge that the question needs) / 2
    labels:    1 where a step's is at least 1/2, the reply's above 1/2; cross-entropy
    score:     (1 - whole) mean over steps + whole p(reply)

Continuations blame a right step where the policy fails later, and spare a wrong one by luck; a judge without the field's
knowledge believes what sounds right; a knowledge base is silent on much. Where one of the three says nothing, the others decide.

Zhou et al. 2025, arXiv:2508.15202 (abstract and summaries, and DianJin-PRM in a copy of aliyun/qwen-dianjin, Amazing-J/qwen-dianjin
7aaad39, src/prm_trainer/prm_train.py, src/verl/models/fin_prm.py): cross-entropy of two classes, at the end of each step, and for
the reply at a token after its final answer; here on its last line, which is the answer. It labels with 8 continuations by another
model; here 4, a setting, by the policy. What makes labels is not public: (inferred) the weights, 1/2 as the threshold, and `whole`.
A wrong reply that states all the knowledge, and a right one that states none of it, have just 1/2, and count as wrong. There a
language model compares steps with the knowledge; `checks` may be such an agent (`evidenced_steps`), or by words (`borne_out`). Of
its three uses best-of-n is measured here; RL and the choice of data take the model as any other.
"""

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Learner, Recipe, Update, with_surprise
from rewardlab.data.columns import Column, Data
from rewardlab.evals.reranked import reranked
from rewardlab.evals.step_labels import label_quality
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.algebra import aggregate, threshold
from rewardlab.rewards.evidence import borne_out
from rewardlab.rewards.judged_steps import judged_steps
from rewardlab.rewards.model import step_score
from rewardlab.rewards.monte_carlo import monte_carlo_steps
from rewardlab.rewards.rationale_coverage import rationale_coverage
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.steps import correct_steps
from rewardlab.rewards.task import correct
from rewardlab.rewards.weighed_steps import weighed_steps
from rewardlab.rollouts.independent import independent

JUDGE = "judge"


def fin_prm(
    base: Recipe | None = None, *, importance: float = 1.0, quality: float = 1.0, accuracy: float = 1.0,
    checks: Reward | None = None, judge: str = "copy:policy", longest: int = 1024, whole: float = 0.5, n: int = 4,
    continuations: int = 4, choose: int = 8, init: str = "value-head", surprise: bool = False, lr: float | None = None,
    epochs: int = 1,
) -> Recipe:  # fmt: skip
    """importance, quality, accuracy: weights of the annotators; 0 leaves one out.  checks: a reward of steps, accuracy; None:
    `borne_out`.  judge, longest: the model of quality, and the tokens of its word.  whole: weight of the reply's own chance in its
    score.  n, continuations: replies per problem, and tries from each step.  choose: replies to choose from when it is measured.
    init, lr, epochs: of the model.  surprise: it also reads the surprise of the policy (`Learner.init`), which no paper has.
    """
    base = base or Recipe(name="fin_prm", update=Update(problems=8))
    said = {
        "importance": (importance, monte_carlo_steps(n=continuations)),
        "quality": (quality, judged_steps(model=JUDGE, form="each", max_new=longest)),
        "accuracy": (accuracy, checks or borne_out()),
    }  # fmt: skip
    used = {name: pair for name, pair in said.items() if pair[0]}
    labels = weighed_steps(
        inner={name: part for name, (_, part) in used.items()}, weights=tuple(w for w, _ in used.values()),
        whole={"outcome": correct(), "coverage": rationale_coverage(column="knowledge")},
    )  # fmt: skip
    chances = threshold(step_score(model="prm"), at=0.0, soft=1.0)
    score = (1 - whole) * aggregate(chances, by="mean").named("steps") + whole * aggregate(chances, by="last").named("reply")
    # labels are the model's own reward: the policy, which stays as it is, needs a verdict on every reply
    prm = Recipe(reward=labels, objective=label_cross_entropy(), update=Update(lr=lr, epochs=epochs, loss_kind="scorer"))
    judges = (Learner(JUDGE, judge, Recipe(), every=0),) if quality else ()
    return base.but(
        rollout=independent(n=n, steps="newline"),
        reward=base.reward or correct(),
        measure=reranked(by=score, n=choose),
        also=(*base.also, *judges, Learner("prm", with_surprise(init, surprise), prm)),
    )


fidelity = "core"
left_out = (
    "making the knowledge base: there a language model extracts terms and explanations from experts' analyses of the questions; "
    "here they are columns. How the sources of a label are weighed is inferred"
)
data = Data(
    answer="the gold answer",
    passages=Column("the knowledge base: a list of texts", optional=True),
    knowledge=Column("what the question needs of it: a list of texts", optional=True),
    rows=[
        {
            "prompt": "Which planet is nearest to the sun?",
            "answer": "Mercury",
            "passages": ["Mercury is the planet nearest to the sun.", "A year on Mercury takes 88 days."],
            "knowledge": ["Mercury is nearest"],
        },
        {
            "prompt": "How many days does a year on Mercury take?",
            "answer": "88",
            "passages": ["Mercury is the planet nearest to the sun.", "A year on Mercury takes 88 days."],
            "knowledge": ["88 days"],
        },
    ],
)

check = Check(
    says="continuations and an incomplete knowledge base together find more first errors than as many continuations alone",
    versus=None, task="recalled:written=0.6", measure="f1.both", direction="higher", margin=0.07, against="f1.importance",
    by=label_quality(
        truth=correct_steps(), rollout=independent(n=4, steps="newline"),
        annotators={
            "both": weighed_steps(inner={"importance": monte_carlo_steps(n=4), "accuracy": borne_out()}, weights=(1.0, 1.0)),
            "importance": weighed_steps(inner={"importance": monte_carlo_steps(n=4)}, weights=(1.0,)), "accuracy": borne_out(),
        },
    ), problems=100, steps=1, fault=Within("f1.importance", high=0.8, says="F1 of first errors by continuations alone"),
    learns=None, start=None, sanity=True,
    finding="of the first errors, continuations and the knowledge base together reach F1 .75, continuations alone .60, the base "
    "alone .63, which says nothing of what it does not hold: each finds errors that the other misses. The winner has more to go "
    "by, and no judge of quality is part of it",
)  # fmt: skip
baseline = None
kind = "reward-model"
