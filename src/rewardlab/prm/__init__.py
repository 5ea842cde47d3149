"""Process reward models of every published convention: load_scorer(name) -> StepScorer."""

from rewardlab.prm.load import load_scorer
from rewardlab.prm.scorer import StepScorer

__all__ = ["StepScorer", "load_scorer"]
