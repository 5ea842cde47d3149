"""LE-MCTS: several models write one solution, step by step, in a tree search that a process reward model guides.

    action: one of the models writes the next step;    next node = argmax of v + c sqrt(ln N / n), once each on the way is expanded
    v(node) = max over its children of v,  r(node) if it has none;    answer = argmax over complete replies of r

Votes over whole answers are lost where all models err somewhere, and mixed logits need one vocabulary; here a right first step of
one model is followed by a right second one of another. A mean over children would punish a node for the weaker models' steps, so
that its best child is what it is worth.

Park et al. 2024, arXiv:2412.15797, without released code. (inferred): a node is passed on the way down when `width` steps were
tried there; models take turns where the paper samples them; c. Where no reply is complete, the policy ends the best one. Here the
models share a vocabulary, so that rows are read as they were written; the paper's models read text.

Data: prompts, a scorer of steps (`rewardlab search --scorer`), and `models`: checkpoints or run folders beside the --model.
"""

from rewardlab.core import Learner, Recipe, Update
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.weighted_vote import own_probability
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.correct_so_far import correct_so_far
from rewardlab.rewards.imperfect import imperfect
from rewardlab.rollouts.ensemble import ensemble_tree
from rewardlab.select.best import best

POLICY, OTHER = "policy", "other"


def le_mcts(
    base: Recipe | None = None, *, models: tuple[str, ...] = (), iterations: int = 50, width: int = 3, explore: float = 1.0,
    temperature: float = 1.0, step_tokens: int | None = None, stop: tuple[str, ...] = ("\n",),
) -> Recipe:  # fmt: skip
    """models: the pool beside the policy; without any, the policy searches alone.  iterations: steps that are tried.
    width: steps tried at a node before the search goes below it.  explore: c.  step_tokens: most tokens of a step.
    stop: the texts that end one."""
    base = base or Recipe(name="le_mcts", reward=own_probability(), measure=accuracy(), update=Update())
    names = tuple(f"{OTHER}_{i}" for i in range(len(models)))
    search = ensemble_tree(
        score=base.required("reward"), models=(POLICY, *names), iterations=iterations, width=width, explore=explore,
        temperature=temperature, step_tokens=step_tokens, stop=stop,
    )  # fmt: skip
    others = tuple(Learner(name, path, Recipe(), every=0) for name, path in zip(names, models, strict=True))
    return base.but(rollout=search, select=best(), also=(*base.also, *others))


SMALL = {"iterations": 24, "width": 4}
CAREFUL = "embedded:arithmetic:biased=0.9,error=0.02,rules=*"
"""It always multiplies wrongly, and hardly ever errs otherwise; the policy always subtracts wrongly."""

claim = Claim(
    says="two models that each get one operation wrong are right more often in one tree than one of them in a tree as large",
    versus="le_mcts", task="arithmetic:biased=0.9,error=0.02,rules=-", measure="accuracy", direction="higher", margin=0.077,
    settings=SMALL | {"models": (CAREFUL,)}, versus_settings=SMALL, reward=imperfect(auc=0.9, of=correct_so_far()), problems=300,
    guard=Within("tokens_per_answer", high=15.0), fault=Within("accuracy", high=0.8, says="right answers of one model's tree"),
    learns=None, start=None,
    finding="right: .88, one model's tree .73, at 150 tokens an answer and 134: .4 more than the guard allows",
)  # fmt: skip
baseline = "mcts"
