"""Nested plain data with arrays and trajectories in it, to JSON plus a flat dictionary of tensors, and back.

What a method keeps in `run.memory` is saved this way: numbers, strings, lists, tuples, dictionaries (any plain keys), tensors,
arrays, and the dataclasses of `core` (problems, turns, trajectories, scores).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch

from ..core import Message, Problem, RewardlabError, Score, Term, Trajectory, Turn

_CLASSES = {c.__name__: c for c in (Message, Problem, Turn, Trajectory, Score, Term)}


def pack(value: Any, tensors: dict[str, torch.Tensor], where: str = "memory") -> Any:
    """JSON data for `value`; tensors and arrays go into `tensors`. Raises RewardlabError with the place of what cannot be saved."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, torch.Tensor | np.ndarray):
        name = f"t{len(tensors)}"
        array = isinstance(value, np.ndarray)
        tensors[name] = torch.from_numpy(np.ascontiguousarray(value)) if array else value.detach().cpu().contiguous().clone()
        return {"$": "array" if array else "tensor", "name": name}
    if isinstance(value, list):
        return [pack(v, tensors, f"{where}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, tuple):
        return {"$": "tuple", "of": [pack(v, tensors, f"{where}[{i}]") for i, v in enumerate(value)]}
    if isinstance(value, dict):
        return {
            "$": "dict",
            "of": [[pack(k, tensors, where), pack(v, tensors, f"{where}[{k!r}]")] for k, v in value.items()],
        }
    if type(value).__name__ in _CLASSES:
        fields = {f.name: pack(getattr(value, f.name), tensors, f"{where}.{f.name}") for f in dataclasses.fields(value)}
        return {"$": type(value).__name__, "of": fields}
    raise RewardlabError(
        f"{where} holds a {type(value).__name__}, which cannot be saved; keep plain data, arrays or trajectories there"
    )


def unpack(data: Any, tensors: dict[str, torch.Tensor]) -> Any:
    """The inverse of `pack`."""
    if isinstance(data, list):
        return [unpack(v, tensors) for v in data]
    if not isinstance(data, dict):
        return data
    kind = data["$"]
    if kind in ("array", "tensor"):
        found = tensors[data["name"]]
        return found.numpy() if kind == "array" else found
    if kind == "tuple":
        return tuple(unpack(v, tensors) for v in data["of"])
    if kind == "dict":
        return {unpack(k, tensors): unpack(v, tensors) for k, v in data["of"]}
    return _CLASSES[kind](**{k: unpack(v, tensors) for k, v in data["of"].items()})
