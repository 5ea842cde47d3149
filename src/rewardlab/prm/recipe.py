"""The recipe of a scorer of steps: recorded solutions, what their labels say as rewards, and a loss."""

from __future__ import annotations

from typing import Any

from rewardlab.core import Learner, Recipe, Update
from rewardlab.evals.labelled import labelled_steps
from rewardlab.objectives.step_labels import ratios_of_steps, value_of_steps, words_of_steps
from rewardlab.rewards.recorded import outcome_label, step_labels
from rewardlab.rollouts.labelled import labelled

KINDS = ("head", "generative", "implicit")
LOSSES = ("bce", "soft", "mse", "rank", "quantile")
TAUGHT = ("steps", "first-error", "outcome")
"""What a scorer is taught: every label; those up to the first wrong step; or, at the last step, whether the solution is right."""
LEARNS: dict[str, dict[str, Any]] = {
    "head": {"loss_kind": "scorer", "small_lr": 3e-4}, "generative": {"loss_kind": "imitation", "small_lr": 1e-4},
    "implicit": {"loss_kind": "preference", "small_lr": 1e-4},
}  # fmt: skip
"""By kind: which learning rate suits it (`engine/rates.py`)."""
SEPARATOR = "\n"


def scorer_recipe(
    kind: str, loss: str = "bce", *, taught: str = "steps", lr: float | None = None, problems: int = 16, epochs: int = 1,
    beta: float = 0.05, zeta: float = 4.0, tau: float = 0.5, init: str = "value-head", by: str = "min",
) -> Recipe:  # fmt: skip
    """A scorer of one of KINDS.  loss, zeta, tau: `objectives/step_labels.py`.  taught: one of TAUGHT.  problems: solutions in a
    batch.  init: of a head (`Learner.init`).  by: what a solution is worth, of its steps, when held-out ones are chosen among.
    """
    written = labelled(layout="chat" if kind == "generative" else "steps", separator=SEPARATOR)
    update = Update(problems=problems, lr=lr, lr_end=0.1, epochs=epochs, **LEARNS[kind])
    paid = outcome_label() if taught == "outcome" else step_labels(after_error=taught == "steps")
    plain = Recipe(rollout=written, reward=paid, update=update, name=f"process reward model ({kind}, {loss})")
    shape: dict[str, Any] = {"loss": loss, "zeta": zeta, "tau": tau}
    if kind == "head":
        learner = Recipe(objective=value_of_steps(**shape), update=update)
        return plain.but(measure=labelled_steps(rollout=written, by=by), also=(Learner("prm", init, learner),))
    if kind == "generative":
        return plain.but(objective=words_of_steps(**shape), measure=labelled_steps(rollout=written, kind="generative", by=by))
    # what is known of a whole solution is the log-ratio of all its tokens
    whole = taught == "outcome"
    measured = labelled_steps(rollout=written, kind="outcome-ratio" if whole else "implicit", beta=beta, by=by)
    return plain.but(objective=ratios_of_steps(beta=beta, sums=whole, **shape), measure=measured)
