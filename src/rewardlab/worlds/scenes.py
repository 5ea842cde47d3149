"""Visual grounding: generated images of coloured shapes on a grid, and the boxes of one shape or of all of a colour.

A picture is CELLS x CELLS cells of PIXELS x PIXELS pixels. A box is [left, top, right, bottom] in cells, its end not included, so
the whole picture is [0,0,6,6]. The careless teacher of `demonstrate` is often a cell off, sees shapes that are not there, and now
and then forgets a tag.
"""

from __future__ import annotations

import random
import re
from functools import partial

import numpy as np

from rewardlab.core import Message, Problem, Score, Task, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

CELLS, PIXELS = 6, 6
COLOURS = {"red": (220, 40, 40), "green": (40, 180, 60), "blue": (50, 80, 230)}
SHAPES = ("square", "ring")

Box = tuple[int, int, int, int]
Thing = tuple[str, str, Box]


def scenes(
    *, refer: Share = 0.5, slip: Share = 0.1, extra: Share = 0.3, forget: Share = 0.1, max_shapes: PositiveInt = 3,
    test_size: PositiveInt = 300, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Referring expressions and detection.

    refer: share of problems that ask for one shape; the others ask for all shapes of a colour.  slip, extra, forget: chances
    that the teacher puts an edge a cell off, adds a box that is not there (again and again), and leaves out the closing tag.
    max_shapes: shapes in a picture.  size: so many training problems, in epochs; None: endless.
    """
    for name, share in (("refer", refer), ("slip", slip), ("extra", extra), ("forget", forget)):
        if not 0 <= share <= 1 or (name == "extra" and share == 1):
            raise RewardlabError(f"scenes: {name} is a probability between 0 and 1, not {share}")
    if not 2 <= max_shapes <= 5:
        raise RewardlabError(f"scenes: max_shapes is a number of shapes from 2 to 5, not {max_shapes}")
    sample, key = partial(_sample, refer=refer, max_shapes=max_shapes), ("scenes", refer, max_shapes)
    return Task(
        name="scenes",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="box_overlap",
        max_new=40,
        about="boxes of coloured shapes in small pictures",
        demonstrate=partial(_demonstrate, slip=slip, extra=extra, forget=forget),
        model="vision",
        columns=("prompt", "answer", "boxes", "kind"),
    )


def written(boxes: list[Box]) -> str:
    """A reply with these boxes."""
    return f"<answer>{''.join('[' + ','.join(map(str, b)) + ']' for b in boxes)}</answer>"


def _sample(rng: random.Random, *, refer: float, max_shapes: int) -> Problem:
    things = _things(rng, rng.randint(2, max_shapes))
    colour, shape, _ = rng.choice(things)
    matching = [box for c, s, box in things if (c, s) == (colour, shape)]
    # a referring expression must name a single shape
    if rng.random() < refer and len(matching) == 1:
        question, boxes = f"the {colour} {shape}", matching
    else:
        question, boxes = f"all {colour}", sorted((box for c, _, box in things if c == colour), key=lambda b: (b[1], b[0]))
    kind = "refer" if question.startswith("the") else "detect"
    request = Message("user", question, images=(_picture(things),))
    return Problem((request,), written(boxes), {"boxes": [list(b) for b in boxes], "kind": kind})


def _things(rng: random.Random, n: int) -> list[Thing]:
    """Shapes of 2 x 2 cells up to 3 x 3 that share no cell; fewer than n where no free place turns up."""
    free, things = np.ones((CELLS, CELLS), bool), []
    for _ in range(n):
        # the grid may have no free place left, so the attempts are limited
        for _ in range(20):
            wide, high = rng.randint(2, 3), rng.randint(2, 3)
            x, y = rng.randint(0, CELLS - wide), rng.randint(0, CELLS - high)
            if free[y : y + high, x : x + wide].all():
                free[y : y + high, x : x + wide] = False
                things.append((rng.choice(list(COLOURS)), rng.choice(SHAPES), (x, y, x + wide, y + high)))
                break
    return things


def _picture(things: list[Thing]) -> np.ndarray:
    """(height, width, 3) bytes: shapes with white outlines on black, a ring hollow."""
    image = np.zeros((CELLS * PIXELS, CELLS * PIXELS, 3), np.uint8)
    for colour, shape, box in things:
        left, top, right, bottom = (PIXELS * edge for edge in box)
        image[top:bottom, left:right] = 255
        image[top + 1 : bottom - 1, left + 1 : right - 1] = COLOURS[colour]
        if shape == "ring":
            image[top + 3 : bottom - 3, left + 3 : right - 3] = 0
    return image


def _demonstrate(problem: Problem, rng: random.Random, *, slip: float, extra: float, forget: float) -> str:
    boxes = [_slipped(box, rng, slip) for box in problem.meta["boxes"]]
    # a request for one shape always gets one box
    while problem.meta["kind"] == "detect" and len(boxes) < 4 and rng.random() < extra:
        boxes.append(_slipped(_things(rng, 1)[0][2], rng, 0.0))
    reply = written(boxes)
    return reply.removesuffix("</answer>") if rng.random() < forget else reply


def _slipped(box: Box, rng: random.Random, slip: float) -> Box:
    """Each edge is moved by a cell with the chance `slip`, where the box stays a box within the picture."""
    edges = list(box)
    for i in range(4):
        # sampled for every edge, moved or not, so that every box takes equally many random numbers
        moved = edges[i] + rng.choice((-1, 1))
        ends = [*edges[:i], moved, *edges[i + 1 :]]
        if rng.random() < slip and 0 <= moved <= CELLS and ends[0] < ends[2] and ends[1] < ends[3]:
            edges = ends
    return edges[0], edges[1], edges[2], edges[3]


# ----------------------------------------------------------------------------------------------------------------------
#
# Rewards for boxes in text, compared with those of the problem (`meta["boxes"]`, [left, top, right, bottom], ends not included).
#
# A box in a reply is [1,2,3,4], with spaces or without, of whole numbers or decimals, within JSON or not. One whose end does not
# lie behind its beginning covers nothing. Those of a reply with <answer> tags are between the last ones.

BOX = re.compile(r"\[" + ",".join([r"\s*(\d+(?:\.\d+)?)\s*"] * 4) + r"\]")
LEVELS = tuple(0.5 + 0.05 * i for i in range(10))


def boxes_in(text: str) -> np.ndarray:
    """(n, 4) the boxes of a reply, in order; those that it thinks about, before </think> or its last <answer>, are not among them.

    An answer without a closing tag, which a limit of tokens may cut off, goes to the end.
    """
    said = text.rpartition("</think>")[2].rpartition("<answer>")[2].partition("</answer>")[0]
    return np.array([[float(edge) for edge in edges] for edges in BOX.findall(said)], float).reshape(-1, 4)


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

    Boxes have no confidence, so the order in which they are written ranks them. Boxes after the last hit cost nothing. Where there
    is nothing to be found, a reply without boxes is right.
    """
    said, gold = _both(trajectory)
    if not len(gold):
        return Score(float(not len(said)), why=_counts(said, gold))
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
