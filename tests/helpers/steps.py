"""With which model a method takes its step in `make test`: one of five on the road, the others with a small policy of ours.

`make test-all` has every method take both.
"""

from __future__ import annotations

from rewardlab import registry
from rewardlab.data.columns import Data

STATED = {row["name"]: Data.from_json(row["data"]) for row in registry.rows() if row["data"]}
"""The rows that each method reads."""
ROAD = sorted(name for name, data in STATED.items() if not data.refuses)
"""Methods that learn from, or answer, rows of a user's own."""
BY_ROAD = frozenset(ROAD[::5])
"""Those of them that take their step in `make test` on rows of their template, with a model of transformers."""
