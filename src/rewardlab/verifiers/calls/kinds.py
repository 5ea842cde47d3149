"""What is wrong with calls, in the eight kinds of errors of FC-RewardBench (Agarwal et al. 2025, arXiv:2509.11963)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from .calls import Call, Malformed
from .verifier import Gold


def kind_of_error(gold: Gold, calls: list[Call] | Malformed) -> str:
    """What tells wrong calls, with arguments by name, from the gold ones: format, number, name, unexpected, missing_required,
    missing_optional, type or value; of several the first."""
    if isinstance(calls, Malformed):
        return "format"
    wanted = gold.calls or []
    if len(calls) != len(wanted):
        return "number"
    if Counter(call.name for call in calls) != Counter(call.name for call in wanted):
        return "name"
    # sorted is stable: several calls of one function are compared in their order
    pairs = zip(sorted(wanted, key=lambda c: c.name), sorted(calls, key=lambda c: c.name), strict=True)
    found = {_kind(a.arguments, b.arguments, gold.tools.get(a.name, {})) for a, b in pairs}
    return next(kind for kind in (*ARGUMENTS, "value") if kind in found or kind == "value")


ARGUMENTS = ("unexpected", "missing_required", "missing_optional", "type")


def _kind(gold: Mapping[str, Any], said: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if said.keys() - {*gold, *schema.get("properties", {})}:
        return "unexpected"
    if missing := gold.keys() - said.keys():
        return "missing_required" if missing & set(schema.get("required", gold)) else "missing_optional"
    return "type" if any(_json_type(gold[x]) != _json_type(said[x]) for x in gold) else "value"


def _json_type(value: Any) -> str:
    kinds = {bool: "boolean", int: "number", float: "number", str: "string", type(None): "null"}
    return kinds.get(type(value), "object" if isinstance(value, Mapping) else "array")
