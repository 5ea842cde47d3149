"""Rewards for boxes in text, compared with those of the problem (`meta["boxes"]`, [left, top, right, bottom], ends not included).

A box in a reply is [1,2,3,4]. One whose end does not lie behind its beginning covers nothing.
"""

from __future__ import annotations

import re

import numpy as np

from rewardlab.core import Score, Trajectory
from rewardlab.rewards.reward import reward

BOX = re.compile(r"\[(\d+),(\d+),(\d+),(\d+)\]")
LEVELS = tuple(0.5 + 0.05 * i for i in range(10))


def boxes_in(text: str) -> np.ndarray:
    """(n, 4) the boxes of a reply, in order."""
    return np.array([[int(edge) for edge in edges] for edges in BOX.findall(text)], float).reshape(-1, 4)


def overlaps(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n, m) intersection over union of boxes (n, 4) and (m, 4)."""
    lower, upper = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])  # (n, m, 2)
    shared = np.clip(upper - lower, 0, None).prod(-1)
    union = _area(a)[:, None] + _area(b)[None] - shared
    # two empty boxes have no union: their overlap is 0, not NaN
    return shared / np.where(union > 0, union, 1.0)


@reward
def first_box_iou(trajectory: Trajectory) -> Score:
    """Intersection over union of the first box of the reply with the requested one; 0 where the reply has none."""
    said, gold = _both(trajectory)
    if not len(said):
        return Score(0.0, why="no box found")
    return Score(float(overlaps(said[:1], gold[:1])[0, 0]), why=f"the first box against {gold[0].astype(int).tolist()}")


@reward
def average_precision(trajectory: Trajectory) -> Score:
    """COCO's mean over ten levels of overlap, 0.50 to 0.95, of the area under precision over recall.

    Boxes have no confidence, so the order in which they are written ranks them. Boxes after the last hit cost nothing.
    """
    said, gold = _both(trajectory)
    iou = overlaps(said, gold)
    return Score(float(np.mean([_area_under(_hits(iou, level), len(gold)) for level in LEVELS])), why=_counts(said, gold))


@reward
def no_more_boxes(trajectory: Trajectory) -> Score:
    """min(1, gold boxes / boxes written): the price of writing more boxes than there are."""
    said, gold = _both(trajectory)
    return Score(min(1.0, len(gold) / len(said)) if len(said) else 1.0, why=_counts(said, gold))


@reward
def box_overlap(trajectory: Trajectory) -> Score:
    """2 sum of overlaps / (boxes written + gold boxes), each gold box matched with one box, the best pairs first.

    For one box against one this is their intersection over union; boxes too many or too few lower it.
    """
    said, gold = _both(trajectory)
    iou, total = overlaps(said, gold), 0.0
    for _ in range(min(len(said), len(gold))):
        i, j = np.unravel_index(iou.argmax(), iou.shape)
        total += iou[i, j]
        # both boxes are matched now
        iou[i], iou[:, j] = 0.0, 0.0
    return Score(2 * total / (len(said) + len(gold)), why=_counts(said, gold))


def _both(trajectory: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    how = "They are the gold boxes, a list of [left, top, right, bottom]"
    trajectory.problem.required("boxes", by="a reward for boxes", how=how)
    return boxes_in(trajectory.reply), np.array(trajectory.problem.meta["boxes"], float).reshape(-1, 4)


def _counts(said: np.ndarray, gold: np.ndarray) -> str:
    return f"{len(said)} boxes for {len(gold)}"


def _area(boxes: np.ndarray) -> np.ndarray:
    return np.clip(boxes[:, 2:] - boxes[:, :2], 0, None).prod(-1)


def _hits(table: np.ndarray, level: float) -> np.ndarray:
    """(n,) whether each box, in order, finds a gold box that none before it found: the best of those left."""
    unmatched = table.copy()
    hits = np.zeros(len(table), bool)
    for i in range(len(table)):
        j = int(unmatched[i].argmax())
        # edges are whole numbers: only rounding lies between 0.55 and the level 0.55
        if unmatched[i, j] >= level - 1e-9:
            hits[i] = True
            unmatched[:, j] = -1.0
    return hits


def _area_under(hits: np.ndarray, gold: int) -> float:
    """Area under the precision at each hit, each raised to the best that follows."""
    if not hits.any():
        return 0.0
    precision = hits.cumsum() / np.arange(1, len(hits) + 1)
    # COCO's interpolation: precision never rises with recall
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float(envelope[hits].sum() / gold)
