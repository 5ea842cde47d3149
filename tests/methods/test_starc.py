"""Tabular MDPs, and distances between rewards on them."""

import math

import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run
from rewardlab.methods.studies.starc import (
    MDP,
    METRICS,
    best_policy,
    dard_form,
    distance,
    epic_form,
    expected_return,
    minimal_form,
    random_mdp,
    redistributed,
    regret,
    shaped,
    value_form,
    values,
)

D = torch.float64
STARC = [name for name in METRICS if name.startswith("starc")]


def chain() -> MDP:
    """Two states; action 0 stays, action 1 goes to the other. gamma = 1/2."""
    stay, go = torch.eye(2, dtype=D), torch.eye(2, dtype=D).flip(0)
    return MDP(torch.stack((stay, go), 1), torch.tensor([1.0, 0.0], dtype=D), 0.5)


def entering_one() -> torch.Tensor:
    """1 for every step that ends in state 1."""
    r = torch.zeros(2, 2, 2, dtype=D)
    r[:, :, 1] = 1.0
    return r


def small(seed: int) -> tuple[MDP, torch.Tensor, torch.Generator]:
    rng = torch.Generator().manual_seed(seed)
    mdp = random_mdp(rng, 6, 3, 0.9)
    return mdp, torch.randn(6, 3, 6, generator=rng, dtype=D), rng


def test_values_of_a_policy_by_hand():
    # uniform: half of all steps enter state 1 from anywhere, so V = 1/2 / (1 - 1/2) = 1 in both
    assert values(chain(), entering_one(), chain().uniform()).tolist() == pytest.approx([1.0, 1.0])


def test_the_best_policy_goes_to_what_pays_and_stays():
    mdp, r = chain(), entering_one()
    policy = best_policy(mdp, r)
    assert policy.argmax(-1).tolist() == [1, 0]
    assert float(expected_return(mdp, r, policy)) == pytest.approx(2.0)  # 1 + 1/2 + 1/4 + ...
    # the opposite reward keeps it out of state 1: it earns 0 of at most 2, at least 0
    assert float(regret(mdp, r, -r)) == pytest.approx(1.0)
    assert float(regret(mdp, r, r)) == pytest.approx(0.0)


def test_policy_iteration_agrees_with_value_iteration():
    mdp, r, _ = small(3)
    v = torch.zeros(6, dtype=D)
    for _ in range(500):
        v = (mdp.mean(r) + mdp.gamma * mdp.after(v)).amax(-1)
    assert torch.allclose(values(mdp, r, best_policy(mdp, r)), v, atol=1e-9)


def test_the_value_form_by_hand():
    # mean reward of (s, a): 1 where it leads to state 1; less V(s) = 1, plus 1/2 V(s') = 1/2:  +1/2 or -1/2
    form = value_form(chain(), entering_one())
    assert form[..., 0].tolist() == [[-0.5, 0.5], [0.5, -0.5]]
    assert torch.equal(form[..., 0], form[..., 1])


def test_the_epic_and_dard_forms_by_hand():
    # deterministic and symmetric: the mean reward from any state is 1/2, so all that is left is R - 1/2 + 1/4 - 1/4
    assert torch.allclose(epic_form(chain(), entering_one()), entering_one() - 0.5)
    assert torch.allclose(dard_form(chain(), entering_one()), entering_one() - 0.5)


@pytest.mark.parametrize("name", STARC)
@pytest.mark.parametrize("seed", [0, 1])
def test_what_changes_no_rank_is_no_distance(name, seed):
    mdp, r, rng = small(seed)
    noise = torch.randn(r.shape, generator=rng, dtype=D)
    potential = torch.randn(6, generator=rng, dtype=D)
    for same in (shaped(mdp, r, potential), redistributed(mdp, r, noise), 3.7 * r):
        assert float(distance(name, mdp, r, same)) == pytest.approx(0.0, abs=1e-9)
    # opposite wishes are as far apart as can be: s(-R) = -s(R), of length 1
    assert float(distance(name, mdp, r, -r)) == pytest.approx(2.0)
    nothing = shaped(mdp, torch.zeros_like(r), potential)
    assert float(distance(name, mdp, r, nothing)) == pytest.approx(1.0)
    assert float(distance(name, mdp, nothing, torch.zeros_like(r))) == 0.0


@pytest.mark.parametrize("name", ["epic", "dard"])
def test_the_others_see_redistribution_as_a_difference(name):
    mdp, r, rng = small(0)
    assert float(distance(name, mdp, r, 3.7 * r)) == pytest.approx(0.0, abs=1e-9)
    assert float(distance(name, mdp, r, redistributed(mdp, r, torch.randn(r.shape, generator=rng, dtype=D)))) > 0.1


def test_epic_takes_potential_shaping_out():
    mdp, r, rng = small(1)
    assert float(distance("epic", mdp, r, shaped(mdp, r, torch.randn(6, generator=rng, dtype=D)))) == pytest.approx(0.0, abs=1e-9)


def test_the_minimal_form_is_the_least_of_its_kind():
    mdp, r, rng = small(2)
    least = minimal_form(mdp, r)
    for _ in range(20):
        other = redistributed(
            mdp, shaped(mdp, least, 0.1 * torch.randn(6, generator=rng, dtype=D)), torch.randn(r.shape, generator=rng, dtype=D) / 10
        )
        assert other.norm() > least.norm()
    # and it is of the kind of r: every policy keeps its lead over any other, from any start
    policies = torch.randn(5, 6, 3, generator=rng, dtype=D).softmax(-1)
    before, after = (torch.stack([values(mdp, x, p) for p in policies]) for x in (r, least))
    assert torch.allclose(before - before[0], after - after[0], atol=1e-9)


def test_a_batch_of_rewards_is_measured_one_by_one():
    mdp, r, rng = small(4)
    others = torch.randn(3, 6, 3, 6, generator=rng, dtype=D)
    for name in METRICS:
        together = distance(name, mdp, r.expand_as(others), others)
        assert torch.allclose(together, torch.stack([distance(name, mdp, r, x) for x in others]))
    together = regret(mdp, r.expand_as(others), others)
    assert torch.allclose(together, torch.stack([regret(mdp, r, x) for x in others]))


def test_the_study_is_a_table_that_a_seed_repeats():
    recipe = registry.build("starc", {"worlds": 1, "pairs": 3, "way": 3, "states": 8})
    table = recipe.study(Run(None, seed=1))
    assert table == recipe.study(Run(None, seed=1)) != recipe.study(Run(None, seed=2))
    assert set(table) == {f"{kind}.{name}" for kind in ("correlation", "alike") for name in METRICS}
    assert all(math.isfinite(v) for v in table.values())
    assert all(table[f"alike.{name}"] < 1e-6 for name in STARC)
