"""Packed matrices multiply as plain ones do."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from rewardlab.policies.llama.linear import PACKS, gated, linear, linear_plus, pack

CLOSE = {torch.float32: {"atol": 1e-6, "rtol": 1e-5}, torch.bfloat16: {"atol": 1e-2, "rtol": 1.6e-2}}


def _random(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).div(shape[-1] ** 0.5).to(dtype)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("n", [1, 7, 64, 130])
def test_packed_products_equal_plain_ones(n, dtype, packed):
    x, rest = _random(n, 48, dtype=dtype), _random(n, 80, dtype=dtype)
    one, two = _random(80, 48, dtype=dtype), _random(80, 49, dtype=dtype)[:, 1:]  # the second lies in memory with gaps
    bias = _random(80, dtype=dtype)
    form = pack if packed else lambda w: w
    with torch.inference_mode():
        plain, other = F.linear(x.float(), one.float()), F.linear(x.float(), two.float())
        for found, wanted in (
            (linear(x, form(one)), plain),
            (linear(x, form(one), bias), plain + bias.float()),
            (linear_plus(x, form(two), rest), other + rest.float()),
            (gated(x, form(one), form(two)), F.silu(plain) * other),
        ):
            assert found.dtype == dtype
            torch.testing.assert_close(found.float(), wanted, **CLOSE[dtype])


def test_only_what_the_library_multiplies_is_packed():
    half = torch.zeros(4, 4, dtype=torch.float64)
    assert pack(half) is half
    assert pack(torch.zeros(4, 4)).is_mkldnn == PACKS


def test_the_sum_is_not_written_into_what_was_added():
    x, rest = _random(3, 8, dtype=torch.float32), _random(3, 5, dtype=torch.float32)
    before = rest.clone()
    with torch.inference_mode():
        linear_plus(x, pack(_random(5, 8, dtype=torch.float32)), rest)
    assert torch.equal(rest, before)
