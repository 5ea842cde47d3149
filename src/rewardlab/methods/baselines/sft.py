"""SFT: maximise the likelihood of recorded solutions.

    loss = -mean over tokens of log pi(solution | prompt)

Ouyang et al. 2022, arXiv:2203.02155 (the first of its three stages). The small policies are warmed up with it. `sft_first` is the
same as the first stage of another method: learning from preferences starts from a policy that was trained on the chosen replies.
`other_first` is the same for a second model of a run, by whatever recipe it has.
"""

from typing import Any

from rewardlab.checks.claim import Check
from rewardlab.core import Loop, Recipe, Run, Update, loop
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import accuracy
from rewardlab.objectives.ratio import imitate
from rewardlab.objectives.weighting import token_mean
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import PositiveFloat, PositiveInt, Share

from .rlhf import pairs_in, teach


def sft(base: Recipe | None = None, *, field: str = "solution", lr: float | None = None, problems: int = 64) -> Recipe:
    """field: the column of the data that holds the text to imitate."""
    base = base or Recipe(name="sft", measure=accuracy(), update=Update(weight_decay=0.01, beta2=0.98))
    return base.but(
        rollout=recorded(fields=(field,)),
        objective=imitate(),
        weighting=token_mean(),
        lr=lr,
        loss_kind="imitation",
        small_lr=None,
        problems=problems,
    )


def steps_of(run: Run, share: float, setting: str) -> int:
    """A share of the run's steps, rounded down. Raises RewardlabError, naming the setting to give, where a budget ends the run."""
    if run.budget is not None:
        raise RewardlabError(f"this run ends at a budget, so that nobody knows a share of its steps: give {setting}")
    # the epsilon: a share such as 2/15 times 60 may come out just below the whole number that it is
    return int(share * run.steps + 1e-9)


@loop(wraps="inner", first=("steps",))
def sft_first(
    recipe: Recipe, run: Run, ops: Any, *, steps: PositiveInt | None = None, share: Share = 1 / 3, field: str = "chosen",
    sft_lr_scale: PositiveFloat = 10.0, inner: Loop | None = None,
) -> None:  # fmt: skip
    """SFT on the replies in `field` for the first `steps` training steps. Then the policy so far becomes the reference, and
    training goes on by the recipe, with a fresh optimiser.

    steps: None: the `share` of the run's.  sft_lr_scale: the learning rate of these steps, as a multiple of the recipe's.
    inner: how a step is taken.
    """
    steps = steps_of(run, share, "sft_steps") if steps is None else steps
    if 0 < run.step == steps:
        ops.new_stage()
    step = sft(field=field, lr=sft_lr_scale * recipe.update.rate) if run.step < steps else recipe
    inner(step, run, ops) if inner else ops.standard_step(step)


@loop(wraps="inner")
def other_first(
    recipe: Recipe, run: Run, ops: Any, *, model: str, pairs: PositiveInt | None = None, passes: PositiveInt = 1,
    inner: Loop | None = None,
) -> None:  # fmt: skip
    """Train the run's second model of this name by its own recipe, before the first step, on at most `pairs` of the data; None: on
    as many as all steps of the run take, which are the same ones.  inner: how a step is taken.
    """
    if (key := f"taught.{model}") not in run.memory:
        problems = pairs_in(ops, run, steps_of(run, 1, "pairs") * recipe.update.problems if pairs is None else pairs)
        teach(ops, run, model, problems, passes, ops.learners[model].recipe.update.problems, f"teaching the {model}")
        run.memory[key] = True
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)


fidelity = "whole"
data = Data(
    answer=Column("the gold answer, by which held-out replies are judged", optional=True),
    solution=Column("the reply to imitate (--completion-column names another)", setting="fields[0]"),
    rows=[
        {
            "prompt": "Ann has 3 apples and buys 2 bags of 4. How many has she?",
            "solution": "2 bags are 8 apples. 3 + 8 = 11.",
            "answer": "11",
        },
        {"prompt": "What is half of 46?", "solution": "Half of 40 is 20, half of 6 is 3: 23.", "answer": "23"},
    ],
)

check = Check(
    says="imitating right solutions raises pass@1 of a policy warmed up on careless ones",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="pass@1", direction="higher", margin=0.1, against="before.pass@1",
    steps=40, sanity=True,
    finding="36% right before and 92% after 40 steps on right solutions: it learns, as it must. It is the rival of other "
    "methods here",
    version=2, replaces="it holds by construction, which was not said; tokens were the budget",
)  # fmt: skip
baseline = None
