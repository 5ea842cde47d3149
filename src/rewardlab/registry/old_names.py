"""Names under which older versions saved parts: module paths ("rewardlab.credit.group:center") instead of slots."""

from __future__ import annotations

import re

SLOT_OF_FOLDER = {
    "rewards": "reward", "rollouts": "rollout", "credit": "credit", "objectives": "objective", "select": "select",
    "evals": "measure", "envs": "environment",
}  # fmt: skip
MOVED = {
    "rewardlab.core.score:Sum": "reward:Sum",
    "rewardlab.core.score:Product": "reward:Product",
    "rewardlab.core.score:Gate": "reward:Gate",
    "rewardlab.core.score:Scaled": "reward:Scaled",
    "rewardlab.core.score:Named": "reward:Named",
    "rewardlab.core.score:Constant": "reward:Constant",
    "rewardlab.core.objective:ObjectiveSum": "objective:ObjectiveSum",
    "rewardlab.core.objective:ObjectiveScaled": "objective:ObjectiveScaled",
    "rewardlab.core.objective:Chain": "credit:Chain",
    "rewardlab.objectives.tree:each_step_end_once": "weighting:each_step_end_once",
    "rewardlab.objectives.tree:best_right_once": "weighting:best_right_once",
    "rewardlab.rollouts.room:with_max_new": "rollout:with_max_new",
}
"""What the rule below does not give: expressions, weightings, and parts that carry another name now."""

_SHARED = re.compile(r"rewardlab\.(\w+)\.[\w.]+:(\w+)")
_OWN = re.compile(r"rewardlab\.methods\.\w+\.(\w+):(\w+)")
_NEW = re.compile(r"[a-z]+:.+")


def current_name(saved: str) -> str:
    """The name by which a saved part is found today."""
    if saved in MOVED:
        return MOVED[saved]
    if own := _OWN.fullmatch(saved):
        return f"part:{own[1]}/{own[2]}"
    if shared := _SHARED.fullmatch(saved):
        folder, name = shared.groups()
        return f"{'weighting' if 'weighting' in saved else SLOT_OF_FOLDER.get(folder, folder)}:{name}"
    return saved if saved.partition(":")[0] in _SLOTS else f"part:{saved}"


_SLOTS = (*SLOT_OF_FOLDER.values(), "weighting", "loop", "study", "part")
