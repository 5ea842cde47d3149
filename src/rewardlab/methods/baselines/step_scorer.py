"""A scorer of steps from labelled solutions: a process reward model, or, taught by outcomes, one of whole solutions.

    Q_t: log-odds that a solution is right so far, at the end of its step t;    loss: cross-entropy to the label of the step

    head        a value head on the model                                     (Lightman et al. 2023, arXiv:2305.20050)
    generative  logit(Yes) - logit(No) in a chat, after each step             (RLHFlow: Dong et al. 2024, arXiv:2405.07863)
    implicit    beta log(model / reference) of a step's tokens, or, taught by outcomes, of all up to its end
                                                                              (Yuan et al. 2024, arXiv:2412.01981)

    taught by   steps: every label;  first-error: labels up to the first wrong step, as PRM800K has them;  outcome: whether the
                solution is right, at its last step

Lightman et al. 2023, arXiv:2305.20050: what published process reward models have in common, without what makes each of them
special, above all where labels come from. The other losses are told in `objectives/step_labels.py`. `rewardlab prm train` trains
the same from a file, and saves it with a card.
"""

from typing import Literal

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.prm.recipe import scorer_recipe
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt, Share


def step_scorer(
    base: Recipe | None = None, *, form: Literal["head", "generative", "implicit"] = "head",
    loss: Literal["bce", "soft", "mse", "rank", "quantile"] = "bce", taught: Literal["steps", "first-error", "outcome"] = "steps",
    problems: PositiveInt = 16, epochs: PositiveInt = 1, lr: PositiveFloat | None = None, init: str = "value-head",
    by: Literal["min", "last", "product", "mean"] = "min", beta: PositiveFloat | None = None, zeta: NonNegativeFloat | None = None,
    tau: Share | None = None,
) -> Recipe:  # fmt: skip
    """problems: solutions in a batch.  init: of a head (`Learner.init`).  by: what a solution is worth, of its steps, where
    held-out ones to a question are chosen among.  beta: of form=implicit (0.05).  zeta: margin of loss=rank (4).  tau: of
    loss=quantile (0.5).
    """
    shape = {"beta": (beta, form, "implicit"), "zeta": (zeta, loss, "rank"), "tau": (tau, loss, "quantile")}
    given = {name: value for name, (value, _, _) in shape.items() if value is not None}
    for name in given:
        _, chosen, reads = shape[name]
        if chosen != reads:
            raise RewardlabError(f"step_scorer: {name} is read with {reads}, and not with {chosen}")
    recipe = scorer_recipe(form, loss, taught=taught, lr=lr, problems=problems, epochs=epochs, init=init, by=by, **given)
    if base is None:
        return recipe.but(name="step_scorer")
    changed = {"rollout": recipe.rollout, "reward": recipe.reward, "measure": recipe.measure}
    return base.but(**changed, objective=recipe.objective, update=recipe.update, also=(*base.also, *recipe.also))


fidelity = "core"
left_out = "where labels come from (`rewardlab prm label`), and the tokens that published models put between steps"
data = Data(
    steps="the solution: a list of its steps, as texts",
    labels=Column("for each step 1 (right), 0 (wrong), a share between them, or null", optional=True, setting="column"),
    right=Column("whether the solution's answer is right: true or false", optional=True, setting="column"),
    rows=[
        {
            "prompt": "Ann has 3 bags of 4 apples and eats 2. How many are left?", "labels": [1, 1], "right": True,
            "steps": ["In 3 bags there are 3 * 4 = 12 apples.", "12 - 2 = 10 apples are left."],
        },
        {
            "prompt": "A pen costs $3 and a book twice as much. What do both cost?", "labels": [0, 0], "right": False,
            "steps": ["The book costs 3 + 2 = 5 dollars.", "Both cost 3 + 5 = 8 dollars."],
        },
        {
            "prompt": "A train goes 60 km in an hour. How far does it go in 90 minutes?", "labels": [1, 0], "right": False,
            "steps": ["90 minutes are 1.5 hours.", "It goes 60 + 1.5 = 61.5 km."],
        },
    ],
)  # fmt: skip

# by construction: the rival is its own start, before anything was learnt
check = Check(
    says="a scorer taught by labelled steps tells right steps of held-out solutions from wrong ones",
    versus=None, task="labelled_solutions", measure="step_auc", direction="higher", margin=0.1, against="before.step_auc",
    settings={"init": "value-head:surprise", "problems": 32, "lr": 1e-3}, problems=200, steps=60, sanity=True,
    finding="right steps come above wrong ones in 99% of the pairs after 60 updates of 32 solutions, 50% before; a head that also "
    "reads surprise",
)  # fmt: skip
baseline = None
