"""A trained judge: the policy compares two replies in words, and is rewarded for right verdicts alone.

    y ~ pi(. | x, reply A, reply B);     r(y) = 1 if the verdict in y is the label, else -1;     GRPO over n judgements of a pair

What published judges have in common (Chen et al. 2025, arXiv:2505.02387; Guo et al. 2025, arXiv:2505.14674; Liu et al. 2025,
arXiv:2504.02495), without what makes each of them special. Replies stand in a random order. With `distil`, so many first steps
imitate judgements whose verdict is right: those of the rows, or the policy's own.
"""

from typing import Any

from rewardlab.checks.claim import Check
from rewardlab.clients.endpoint import is_served
from rewardlab.core import Learner, Loop, Recipe, Rollout, Run, loop
from rewardlab.data.columns import Column, Data
from rewardlab.evals.judgements import judgement_accuracy
from rewardlab.judges.forms import Kind
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.sft import sft
from rewardlab.rewards.judgements import right_judgement
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.judgements import Keep, accepted_judgements, judgements
from rewardlab.settings.domain import NonNegativeInt, PositiveFloat, PositiveInt
from rewardlab.worlds.duels import FORM


@loop(wraps="inner", first=("first",))
def judgements_first(
    recipe: Recipe, run: Run, ops: Any, *, first: NonNegativeInt, by: Reward, form: str = "", kind: Kind = "pairwise",
    n: PositiveInt = 4, writer: str = "policy", keep: Keep = "first", easy: bool = True, kept: Rollout | None = None,
    sft_lr_scale: PositiveFloat = 5.0, inner: Loop | None = None,
) -> None:  # fmt: skip
    """Imitate accepted judgements (`accepted_judgements`) in the first `first` training steps. Then the policy so far becomes the
    reference, if there is one, and training goes on by the recipe.

    kept: the rollout of what is imitated, in place of accepted judgements.  sft_lr_scale: the learning rate of these steps, as a
    multiple of the recipe's; that of RM-R1 and of Think-RM, whose releases tell it.  inner: how a step of the recipe is taken.
    """
    if 0 < run.step == first:
        ops.new_stage()
    if run.step >= first:
        inner(recipe, run, ops) if inner else ops.standard_step(recipe)
        return
    kept = kept or accepted_judgements(by=by, form=form, kind=kind, n=n, writer=writer, keep=keep, easy=easy)
    ops.standard_step(_imitation(recipe, kept, sft_lr_scale))


def _imitation(recipe: Recipe, kept: Rollout, lr_scale: float) -> Recipe:
    update = recipe.update
    return sft(problems=update.problems).but(rollout=kept, lr=min(1.0, lr_scale * update.rate), measure=None)


@loop(wraps="inner", first=("first",))
def imitated_first(
    recipe: Recipe, run: Run, ops: Any, *, first: NonNegativeInt, kept: Rollout, sft_lr_scale: PositiveFloat = 5.0,
    inner: Loop | None = None,
) -> None:  # fmt: skip
    """Imitate what `kept` keeps in the first `first` training steps, and then train by the recipe; the policy so far becomes the
    reference, if there is one.  sft_lr_scale: as in `judgements_first`.  inner: how it takes a step.

    A step in which `kept` logs that nothing was accepted is taken by the recipe, too: it has nothing to imitate.
    """
    if 0 < run.step == first:
        ops.new_stage()
    if run.step < first:
        ops.standard_step(_imitation(recipe, kept, sft_lr_scale))
    if run.step >= first or run.metrics.get("accepted") == 0.0:
        inner(recipe, run, ops) if inner else ops.standard_step(recipe)


@loop(wraps="inner", first=("steps",))
def learner_alone(
    recipe: Recipe, run: Run, ops: Any, *, steps: PositiveInt, name: str = "verifier", inner: Loop | None = None
) -> None:  # fmt: skip
    """In each of the first `steps` steps the second model `name` learns, from what the policy writes, and the policy does not.

    inner: how the others are taken.
    """
    if run.step >= steps:
        return inner(recipe, run, ops) if inner else ops.standard_step(recipe)
    learner = ops.learners[name]
    every, learner.every = learner.every, 1
    try:
        ops.standard_step(recipe.but(objective=None))
    finally:
        learner.every = every


def judge_beside(judge: str) -> tuple[str, tuple[Learner, ...]]:
    """A trained judge beside a policy: the name by which rewards ask it, and the models of the run that it adds.

    judge: openai:URL#NAME, which adds none, or a model (`Learner.init`), which is loaded as "judge" and does not learn.
    """
    return (judge, ()) if is_served(judge) else ("judge", (Learner("judge", judge, Recipe(), every=0),))


def trained_judge(
    base: Recipe | None = None, *, form: str = "mt_bench_pairwise", kind: Kind = "pairwise", n: int = 8, problems: int = 16,
    distil: int = 0, keep: Keep = "first", votes: int = 1, wrong: float = -1.0, lr: float | None = None,
) -> Recipe:  # fmt: skip
    """form: what the judge is asked, a published form by name, a file, or a text with {prompt}, {first} and {second}.  kind: of a
    text.  n: judgements of a row.  problems: rows of a step.  distil: first steps that imitate right judgements, at five times lr.
    keep: which of several right ones.  votes: judgements of a held-out row in each order.  wrong: what a wrong verdict is
    paid."""
    base = base or grpo(n=n)
    asked = judgements(inner=base.rollout or independent(n=n), form=form, kind=kind)
    paid = right_judgement(form=form, kind=kind, wrong=wrong)
    first = judgements_first(first=distil, by=paid, form=form, kind=kind, keep=keep, inner=base.loop)
    return base.but(
        rollout=asked, reward=paid, measure=judgement_accuracy(form=form, kind=kind, k=votes), problems=problems,
        loop=first if distil else base.loop, lr=lr, small_lr=1e-4,
    )  # fmt: skip


fidelity = "core"
left_out = "what each published judge adds: principles, rubrics, solving first, branches, critiques by others; a KL to the start"
data = Data(
    chosen="the better reply", rejected="the worse reply",
    judgement=Column("a judgement to imitate in the first steps, where the better reply stands first", optional=True),
    judgement_reversed=Column("the same where the worse reply stands first", optional=True),
    rows=[
        {"prompt": "Why do leaves fall?", "chosen": "Trees save water in winter.", "rejected": "Because of gravity alone."},
        {"prompt": "How does one boil an egg?", "chosen": "Seven minutes in boiling water.", "rejected": "In a pan, somehow."},
    ],
)  # fmt: skip

check = Check(
    says="rewarded for its verdicts alone, a judge names more of what it has to check, and its verdicts are right more often",
    versus=None, task="duels", measure="judged", direction="higher", margin=0.1, against="before.judged",
    settings={"form": FORM}, problems=300, steps=160,
    finding="from 67% right verdicts to 75% in 160 steps, and from 56 to 64% of pairs that both orders rank alike; it names "
    "hardly more of what it has to check (22.7 tokens a judgement, 21.8 at first)",
    version=2,
    replaces="60 steps at 3e-4, the rate of small policies elsewhere: right verdicts stayed at 65%, and rewards fell, while on "
    "development seeds they rose at 1e-4 and at 3e-5, most of all within 80 steps",
)  # fmt: skip
baseline = None
