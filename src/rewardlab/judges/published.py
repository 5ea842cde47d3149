"""Published forms of judges, by name."""

from __future__ import annotations

from collections.abc import Mapping

from rewardlab.judges.forms import Form

FORMS: Mapping[str, Form] = {}
