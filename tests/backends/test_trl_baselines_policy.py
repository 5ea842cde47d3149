"""Losses and gradients of the policy-gradient baselines equal TRL's, where it has the same ones: see test_trl.py for how."""

from __future__ import annotations

import pytest
import torch
from test_trl import (
    CLOSE,
    QUESTIONS,
    REPLIES,
    REWARDS,
    N,
    assert_same_gradient,
    collated,
    hand_over,
    online_trainer,
    pushed,
    replay,
    row_credit,
    scored,
)

from rewardlab.core import Recipe, Run, Trajectory, ask
from rewardlab.engine.update import backward
from rewardlab.methods.baselines.cispo import cispo
from rewardlab.methods.baselines.dapo import dapo
from rewardlab.methods.baselines.dr_grpo import dr_grpo
from rewardlab.methods.baselines.gspo import gspo
from rewardlab.models.embedded import untrained

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def start():
    return untrained(hidden=32, layers=2)


@pytest.fixture(scope="module")
def groups(start) -> list[list[Trajectory]]:
    """Replies of unequal length, N to a question."""
    problems = [ask(q) for q in QUESTIONS for _ in range(N)]
    rows = start.write(start.read([Trajectory(p) for p in problems], [p.prompt for p in problems]), REPLIES)
    return [rows[i : i + N] for i in range(0, len(rows), N)]


# Weights that learn are far enough from those that wrote for every bound to be at work, and not for every reply.
CASES = {
    "dr_grpo": (dr_grpo(length=40), {"loss_type": "dr_grpo", "scale_rewards": "none", "max_completion_length": 40}),
    "dapo": (dapo(eps=0.1, eps_high=0.14), {"loss_type": "dapo", "epsilon": 0.1, "epsilon_high": 0.14}),
    "gspo": (
        gspo(eps=0.003, eps_high=0.004),
        {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 0.003, "epsilon_high": 0.004},
    ),
    # TRL's epsilon_high is the bound itself here
    "cispo": (cispo(eps_high=0.1), {"loss_type": "cispo", "epsilon_high": 1.1}),
}


@pytest.mark.parametrize("drift", [0.0, 0.3], ids=["on policy", "off policy"])
@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradient(name, start, groups, drift, tmp_path):
    recipe, config = CASES[name]
    wrote = pushed(start, 1)
    learns = pushed(wrote, 2, drift)
    trainer = online_trainer("GRPO", start, groups, REWARDS, tmp_path, **{"beta": 0.0, "num_iterations": 2} | config)
    hand_over(wrote, trainer.model, tmp_path / "wrote")
    inputs = replay(trainer)
    hand_over(learns, trainer.model, tmp_path / "learns")
    theirs = trainer.compute_loss(trainer.model, inputs)
    theirs.backward()

    run = Run(wrote)
    batch = collated(groups, scored(REWARDS), recipe, run)
    assert torch.allclose(row_credit(batch), inputs["advantages"], atol=CLOSE)
    stats = backward(learns, batch, recipe, run, 200)
    assert stats["loss"] == pytest.approx(theirs.item(), abs=CLOSE)
    assert_same_gradient(learns, trainer.model, tmp_path / "gradient")


@pytest.mark.parametrize("name", CASES)
def test_the_bounds_are_at_work(name, start, groups):
    """Off policy, the comparison would be another one without them."""
    recipe, _ = CASES[name]
    wrote = pushed(start, 1)
    learns = pushed(wrote, 2, 0.3)
    wide = {
        "dr_grpo": dr_grpo().but(objective=dapo(eps=0.9, eps_high=9.0).objective), "dapo": dapo(eps=0.9, eps_high=9.0),
        "gspo": gspo(eps=0.9, eps_high=9.0), "cispo": cispo(eps_high=9.0),
    }[name]  # fmt: skip

    def loss(of: Recipe) -> float:
        learns.model.zero_grad()
        used = recipe.but(objective=of.objective)
        return backward(learns, collated(groups, scored(REWARDS), used, Run(wrote)), used, Run(wrote), 200)["loss"]

    assert abs(loss(recipe) - loss(wide)) > 10 * CLOSE
