"""Score ranges of Sotopia's dimensions."""

from __future__ import annotations

RANGES = {
    "believability": (0.0, 10.0),
    "relationship": (-5.0, 5.0),
    "knowledge": (0.0, 10.0),
    "secret": (-10.0, 0.0),
    "social_rules": (-10.0, 0.0),
    "financial_and_material_benefits": (-5.0, 5.0),
    "goal": (0.0, 10.0),
}
"""By dimension, Zhou et al. 2023, arXiv:2310.11667."""
