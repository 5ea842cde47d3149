"""Derivatives through the solution of an inner problem, without unrolling it.

x*(phi) = argmin_x f(x, phi)   =>   d/dphi g(x*) = -(d2f/dx dphi)^T (d2f/dx2)^-1 dg/dx
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
