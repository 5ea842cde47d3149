"""Nested plain data with arrays and trajectories in it, to JSON plus a flat dictionary of tensors, and back.

What a method keeps in `run.memory` is saved this way: numbers, strings, lists, tuples, dictionaries (any plain keys), tensors,
arrays, and the dataclasses of `core` (problems, turns, trajectories, scores).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import torch

from rewardlab.core import Message, Problem, Score, Term, Trajectory, Turn
from rewardlab.errors import RewardlabError

_CLASSES = {c.__name__: c for c in (Message, Problem, Turn, Trajectory, Score, Term)}


def pack(value: Any, tensors: dict[str, torch.Tensor], where: str = "memory") -> Any:
    """JSON data for `value`; tensors and arrays go into `tensors`. Raises RewardlabError, naming the place, if it cannot."""
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        return _pack_array(value, tensors, where)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [pack(v, tensors, f"{where}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, tuple):
        return {"$": "tuple", "of": [pack(v, tensors, f"{where}[{i}]") for i, v in enumerate(value)]}
    if isinstance(value, dict):
        return {
            # pairs, because JSON turns keys into text and a method may use numbers or tuples
            "$": "dict",
            "of": [[pack(k, tensors, where), pack(v, tensors, f"{where}[{k!r}]")] for k, v in value.items()],
        }
    if _CLASSES.get(type(value).__name__) is type(value):
        fields = {f.name: pack(getattr(value, f.name), tensors, f"{where}.{f.name}") for f in dataclasses.fields(value)}
        return {"$": type(value).__name__, "of": fields}
    raise RewardlabError(
        f"{where} holds a {type(value).__name__}, which cannot be saved; keep plain data, arrays or trajectories there"
    )


def _pack_array(value: torch.Tensor | np.ndarray | np.generic, tensors: dict[str, torch.Tensor], where: str) -> dict[str, Any]:
    """Store a copy of the array: safetensors refuses shared memory, and the method may change its array before it is written."""
    name = f"t{len(tensors)}"
    if isinstance(value, torch.Tensor):
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {"$": "tensor", "name": name, "device": value.device.type}
    try:
        tensors[name] = torch.from_numpy(np.array(value, order="C"))
    except TypeError as e:
        raise RewardlabError(f"{where} holds an array of {value.dtype}, which cannot be saved; keep numbers there") from e
    return {"$": "array" if isinstance(value, np.ndarray) else "number", "name": name}


def unpack(data: Any, tensors: dict[str, torch.Tensor], device: torch.device | str = "cpu") -> Any:
    """The inverse of `pack`; tensors that were not on the CPU go to `device`."""
    if isinstance(data, list):
        return [unpack(v, tensors, device) for v in data]
    if not isinstance(data, dict):
        return data
    kind = data["$"]
    if kind == "tensor":
        tensor = tensors[data["name"]]
        return tensor if data["device"] == "cpu" else tensor.to(device)
    if kind in ("array", "number"):
        array = tensors[data["name"]].numpy()
        return array if kind == "array" else array[()]
    if kind == "tuple":
        return tuple(unpack(v, tensors, device) for v in data["of"])
    if kind == "dict":
        return {unpack(k, tensors, device): unpack(v, tensors, device) for k, v in data["of"]}
    fields = {k: unpack(v, tensors, device) for k, v in data["of"].items()}
    return _score_of_older_run(**fields) if "parts" in fields else _CLASSES[kind](**fields)


def _score_of_older_run(
    value: float | None, steps: Any, parts: dict[str, Term], why: str = "", outcome: bool | None = None, extracted: str = ""
) -> Score:
    """A Score saved by an older version, which stored value and steps beside the terms, and weight 0 for a term without a share."""
    if outcome is None:
        outcome = value != 0 or not steps
    terms = {name: dataclasses.replace(t, weight=t.weight or None) for name, t in parts.items()}
    score = Score(terms=terms or {"": Term(value if outcome else None, steps)}, missing=value is None, why=why, extracted=extracted)
    if value is None or (math.isclose(value, score.value or 0.0) and outcome == score.has_outcome):
        return score
    # the terms do not add up to the value: the rest was a constant in the reward's formula
    return dataclasses.replace(score, constant=value - (score.value or 0.0))
