"""A sparse autoencoder: k directions to a row, and what they leave unexplained."""

from __future__ import annotations

import pytest
import torch

from rewardlab.methods.imitation import resa_sae_tuning as autoencoder


def by_hand(k: int) -> torch.Tensor:
    weights = {
        "encoder": torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), "encoder_bias": torch.tensor([0.0, -1.0, 0.0]),
        "decoder": torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), "decoder_bias": torch.tensor([1.0, 1.0]),
    }  # fmt: skip
    return autoencoder.reconstructed(torch.tensor([[4.0, 6.0], [-1.0, 1.0]]), weights, k)


def test_a_row_is_rebuilt_of_the_directions_that_it_excites_most():
    # less the bias (1, 1): (3, 5) excites 3, 5 - 1 = 4 and 0; (-2, 0) excites 0, 0 and 2
    assert torch.equal(by_hand(1), torch.tensor([[1.0, 5.0], [-1.0, 1.0]]))
    assert torch.equal(by_hand(2), torch.tensor([[4.0, 5.0], [-1.0, 1.0]]))
    # more than there are: all
    assert torch.equal(by_hand(9), by_hand(3))


def test_what_is_unexplained_is_a_share_of_the_variance():
    x = torch.tensor([[0.0, 0.0], [2.0, 0.0]])
    # around its mean (1, 0) x varies by 1 + 1; the second row is missed by 1
    assert autoencoder.unexplained(x, torch.tensor([[0.0, 0.0], [1.0, 0.0]])) == pytest.approx(0.5)
    assert autoencoder.unexplained(x, x.mean(0).expand(2, 2)) == pytest.approx(1.0)


@pytest.mark.slow
def test_activations_of_few_directions_are_learnt():
    g = torch.Generator().manual_seed(0)
    directions = torch.nn.functional.normalize(torch.randn(40, 16, generator=g), dim=1)

    def batches(n: int):
        for _ in range(n):
            which = torch.stack([torch.randperm(40, generator=g)[:2] for _ in range(256)])
            yield torch.einsum("nk,nkd->nd", 1 + torch.rand(256, 2, generator=g), directions[which]) + 3.0

    fresh = next(batches(1))
    untrained = autoencoder.untrained(16, 128, torch.Generator().manual_seed(1), torch.device("cpu"))
    untrained["decoder_bias"] = fresh.mean(0)
    weights, left = autoencoder.learn(batches(300), 128, 2, 3e-3, torch.Generator().manual_seed(1))
    assert left < 0.2
    assert autoencoder.unexplained(fresh, autoencoder.reconstructed(fresh, weights, 2)) < 0.25
    assert autoencoder.unexplained(fresh, autoencoder.reconstructed(fresh, untrained, 2)) > 0.5
    assert not any(w.requires_grad for w in weights.values())
    torch.testing.assert_close(weights["decoder"].norm(dim=1), torch.ones(128))


def test_the_same_seed_learns_the_same():
    x = [torch.randn(32, 4, generator=torch.Generator().manual_seed(i)) for i in range(5)]
    one, two = (autoencoder.learn(x, 16, 2, 1e-2, torch.Generator().manual_seed(7))[0] for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)
