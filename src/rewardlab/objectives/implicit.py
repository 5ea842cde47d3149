"""Derivatives through the solution of an inner problem, without unrolling it.

x*(phi) = argmin_x f(x, phi)   =>   d/dphi g(x*) = -(d2f/dx dphi)^T (d2f/dx2)^-1 dg/dx
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def flat_gradient(loss: Tensor, parameters: Sequence[Tensor], graph: bool = False) -> Tensor:
    """(P,) the gradients of all parameters, flattened and concatenated; graph=True: they can be differentiated again."""
    # the graph is retained, because conjugate gradients differentiate it once per iteration
    gradients = torch.autograd.grad(loss, list(parameters), create_graph=graph, retain_graph=True, allow_unused=True)
    # autograd returns None for a parameter that the loss does not depend on
    return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for p, g in zip(parameters, gradients, strict=True)])


def hessian_product(loss: Tensor, parameters: Sequence[Tensor], damping: float = 0.0) -> Callable[[Tensor], Tensor]:
    """v -> (H + damping I) v, with H the Hessian of the loss."""
    # H v is the gradient of (gradient . v), so the P x P matrix is never built
    first = flat_gradient(loss, parameters, graph=True)
    return lambda v: flat_gradient(first @ v, parameters) + damping * v


def conjugate_gradients(apply: Callable[[Tensor], Tensor], b: Tensor, iterations: int, tolerance: float = 1e-6) -> Tensor:
    """x with apply(x) = b, for a symmetric positive definite `apply`, in at most `iterations` steps.

    It stops at a direction of negative curvature; if that is the first one, it returns b (Steihaug 1983). tolerance: of the
    residual's norm, relative to that of b.
    """
    x, residual = torch.zeros_like(b), b
    direction, size = residual, residual @ residual
    for i in range(iterations):
        image = apply(direction)
        curvature = direction @ image
        # the Hessian of a network need not be positive definite; along such a direction the quadratic has no minimum
        if curvature <= 0:
            return x if i else b
        step = size / curvature
        x, residual = x + step * direction, residual - step * image
        before, size = size, residual @ residual
        if size <= tolerance**2 * (b @ b):
            break
        direction = residual + (size / before) * direction
    return x


def through_solution(
    outer: Tensor, inner: Tensor, mixed: Sequence[Tensor], parameters: Sequence[Tensor], damping: float, iterations: int
) -> Tensor:
    """(len(mixed),) d outer / d phi through the parameters that minimise `inner`, solved by conjugate gradients.

    mixed: for each entry of phi, the derivative of `inner` by it.  damping: of the Hessian.
    """
    direction = conjugate_gradients(
        hessian_product(inner, parameters, damping), flat_gradient(outer, parameters), iterations
    )  # (P,)
    return -torch.stack([direction @ flat_gradient(m, parameters) for m in mixed])


def adam_step(moments: dict[str, Any], gradient: Tensor, betas: tuple[float, float] = (0.9, 0.99)) -> Tensor:
    """(n,) Adam's step for a gradient (n,) of a few numbers, before the learning rate: each entry is about 1 long at first.

    moments: kept between steps, empty at first; plain data, so that a run's memory can hold it.  Kingma and Ba 2015
    """
    share, new = torch.tensor(betas)[:, None], torch.stack((gradient, gradient.square()))
    moments["count"] = moments.get("count", 0) + 1
    moments["values"] = share * moments.get("values", torch.zeros_like(new)) + (1 - share) * new
    # divided by how much of the averages is filled: they begin at 0
    mean, square = moments["values"] / (1 - share ** moments["count"])
    return mean / square.sqrt().clamp(min=1e-12)
