r"""GUI-G2: pay the place that a reply points at by Gaussians as wide as the target, for its centre and for what it covers.

    R_point = exp(-1/2 sum over x, y of ((c - mu) / s)^2)                            c: centre of what is said, mu: of the target
    R_cov = product over x, y of sqrt(2 s s' / (s^2 + s'^2)) exp(-(c - mu)^2 / (4 (s^2 + s'^2)))
    s = alpha side of the target,  s' = alpha side of the box that is said;    R = R_point + R_cov + R_format, then GRPO with a KL

R_cov is exp of minus the Bhattacharyya distance of the two Gaussians. A reward for hits alone is the same for a near miss and for
a guess, and for the middle of a button and its edge. With spreads in proportion to the target, a small icon asks for the precision
that it needs, and a large panel pays from further away.

Tang et al. 2025, arXiv:2507.15846, and ZJU-REAL/GUI-G2 (gaussian_grpo.py, 3e5988e; run_grpo_gaussian.sh, f6b5ed0): alpha = .5, the
plain sum of the three, n = 8, beta = .04, and a form of [x1,y1,x2,y2] and nothing else. As there, a box is the same from
whichever corners it is written. Its R_cov adds 1e-8 to a product of variances, which in shares of the screen would drown them, and
rounds to three digits: neither is done here.
(inferred): points, which the release does not read, earn R_point alone; other ways of writing boxes; several gold boxes, of which
the nearest counts; a fixed `sigma`, an ablation of the paper. `sparse` pays hits in the place of both Gaussians.
"""

import json
import math
import re
from collections.abc import Sequence

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Problem, Recipe, Score, Trajectory
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.rewards import mean_reward
from rewardlab.evals.term_means import term_means
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.regularise import kl_to_reference
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat
from rewardlab.text.answers import after_thinking
from rewardlab.worlds.scenes import first_box_iou

# ---- The place that a reply points at --------------------------------------------------------------------------------

# so many digits that no square of them overflows
NUMBER = r"-?(?:\d{1,9}(?:\.\d{1,20})?|\.\d{1,20})"
PAIR = rf"[\[(]\s*({NUMBER})\s*,\s*({NUMBER})\s*[\])]"
BOX = r"[\[(]\s*" + r"\s*,\s*".join([f"({NUMBER})"] * 4) + r"\s*[\])]"
PLACES = tuple(
    re.compile(pattern)
    for pattern in (
        BOX,
        # the two corners (1,2),(3,4); a point (1,2)
        rf"{PAIR}\s*,?\s*{PAIR}",
        PAIR,
        rf"<(?:bbox|box)>\s*{'[ ,]+'.join([f'({NUMBER})'] * 4)}\s*<",
        rf"<point>\s*({NUMBER})[ ,]+({NUMBER})\s*<",
        # {"x": 1, "y": 2}, click(x=1, y=2), <point x="1" y="2">
        rf"""\bx["']?\s*[=:]\s*["']?({NUMBER})["']?[\s,]*["']?y["']?\s*[=:]\s*["']?({NUMBER})""",
    )
)
BOX_ALONE = re.compile(rf"(?:<answer>\s*)?{BOX}(?:\s*</answer>)?")

Span = tuple[float, float]
"""The lower and the upper end along one axis."""


def place_in(reply: str) -> tuple[Span, Span] | None:
    """The first box or point of a reply's answer, as its spans in x and y, of which a point's are empty; None without either.

    What a reply thinks, and what it says before its last <answer>, is no answer.
    """
    said = after_thinking(reply).rpartition("<answer>")[2].partition("</answer>")[0]
    found = [match for pattern in PLACES if (match := pattern.search(said))]
    if not found:
        return None
    # of forms that begin at the same place the longest is meant: two corners are no point
    first = min(found, key=lambda match: (match.start(), -match.end()))
    return _spans([float(number) for number in first.groups()])


def _spans(numbers: Sequence[float]) -> tuple[Span, Span]:
    x, y = sorted(numbers[::2]), sorted(numbers[1::2])
    return (x[0], x[-1]), (y[0], y[-1])


def targets(problem: Problem, column: str) -> list[tuple[Span, Span]]:
    """The gold boxes of a problem: one, or a list of several. RewardlabError for a column that holds none."""
    problem.required(column, by="gui_g2", how="It is the gold box, [x1, y1, x2, y2], in the units in which the model points")
    given = problem.meta[column]
    try:
        # a table of text holds it as text
        numbers = np.asarray(json.loads(given) if isinstance(given, str) else given, float).reshape(-1, 4).tolist()
    except (ValueError, TypeError):
        numbers = []
    boxes = [_spans(box) for box in numbers]
    # what is no number is neither smaller nor larger
    if not boxes or not all(low < high for box in boxes for low, high in box):
        raise RewardlabError(
            f"gui_g2: the column {column!r} of {problem.question[:60]!r} is a gold box [x1, y1, x2, y2] with two sides above 0, "
            f"or a list of such boxes, not {given!r}"
        )
    return boxes


# ---- Rewards ---------------------------------------------------------------------------------------------------------


def middle(span: Span) -> float:
    return (span[0] + span[1]) / 2


def side(span: Span) -> float:
    return span[1] - span[0]


@reward
def gaussian_point(
    trajectory: Trajectory, *, alpha: PositiveFloat = 0.5, sigma: NonNegativeFloat = 0.0, column: str = "boxes"
) -> Score:
    """exp(-1/2 d^2) of the place that is said, d: how far its centre is from the target's, in spreads; 0 where none is said.

    alpha: the spread as a share of the target's side, in x and in y.  sigma: one for all targets in the place of that, in the
    units of the boxes; 0: none.  column: the gold box.  Tang et al. 2025, arXiv:2507.15846
    """
    gold, said = targets(trajectory.problem, column), place_in(trajectory.reply)
    if said is None:
        return Score(0.0, why="says neither a box nor a point")
    apart = min(
        sum(((middle(s) - middle(t)) / (sigma or alpha * side(t))) ** 2 for s, t in zip(said, box, strict=True)) for box in gold
    )
    return Score(math.exp(-apart / 2), why=f"its centre is {math.sqrt(apart):.2g} spreads from the target's")


@reward
def gaussian_coverage(
    trajectory: Trajectory, *, alpha: PositiveFloat = 0.5, sigma: NonNegativeFloat = 0.0, column: str = "boxes"
) -> Score:
    """The Bhattacharyya coefficient of the Gaussians of the box that is said and of the target; 0 where no box is said.

    alpha, sigma, column: as of `gaussian_point`.  Tang et al. 2025, arXiv:2507.15846
    """
    gold, said = targets(trajectory.problem, column), place_in(trajectory.reply)
    if said is None or any(side(span) == 0 for span in said):
        return Score(0.0, why="says no box")
    best = max(
        math.prod(_overlap(s, t, *(sigma or alpha * side(span) for span in (s, t))) for s, t in zip(said, box, strict=True))
        for box in gold
    )
    return Score(best, why="overlap of its Gaussian with the target's")


def _overlap(said: Span, target: Span, a: float, b: float) -> float:
    """Of two Gaussians along one axis, whose spreads are a and b."""
    return math.sqrt(2 * a * b / (a * a + b * b)) * math.exp(-((middle(said) - middle(target)) ** 2) / (4 * (a * a + b * b)))


@reward
def box_alone(trajectory: Trajectory) -> Score:
    """1 where a reply is [x1, y1, x2, y2] and nothing else, but for thinking before it, and tags around it; else 0."""
    said = after_thinking(trajectory.reply).strip()
    return Score(float(BOX_ALONE.fullmatch(said) is not None), why="the form of its answer")


@reward
def target_hit(trajectory: Trajectory, *, column: str = "boxes") -> Score:
    """1 where the centre of the place that is said lies within the gold box, as benchmarks of GUI grounding count; else 0."""
    gold, said = targets(trajectory.problem, column), place_in(trajectory.reply)
    inside = said is not None and any(
        all(low <= middle(s) <= high for s, (low, high) in zip(said, box, strict=True)) for box in gold
    )
    return Score(float(inside), why="within the target" if inside else "outside of the target, or nowhere")


# ---- the recipe ------------------------------------------------------------------------------------------------------


def gui_g2(
    base: Recipe | None = None, *, alpha: float = 0.5, sigma: float = 0.0, point: float = 1.0, coverage: float = 1.0,
    form: float = 1.0, beta: float = 0.04, sparse: bool = False, column: str = "boxes",
) -> Recipe:  # fmt: skip
    """alpha, sigma: spreads as shares of the target's sides, or one for all.  point, coverage: weights of the two Gaussians.
    form: weight of 1 for a box and nothing else, for which the prompt must ask.  beta: weight of the KL.
    sparse: hits are paid in the place of both Gaussians.  column: the gold box.
    """
    base = base or grpo().but(measure=mean_reward(reward=target_hit(column=column)))
    spread = {"alpha": alpha, "sigma": sigma, "column": column}
    paid = target_hit(column=column) if sparse else point * gaussian_point(**spread) + coverage * gaussian_coverage(**spread)
    return base.but(
        reward=paid + form * box_alone() if form else paid,
        objective=base.required("objective") + beta * kl_to_reference() if beta else base.objective,
    )


fidelity = "core"
left_out = (
    "resizing of screenshots, which is the model's own, and of their boxes with them, which is the data's: a row states its box in "
    "the units in which the model points; and rounding"
)
data = Data(
    prompt="the instruction, with the screenshot or a description of the screen, and the form in which to point",
    boxes=Column("the gold box, [x1, y1, x2, y2], in the units in which the model points; or a list of boxes", setting="column"),
    answer="any text: boxes are compared",
    rows=[
        {
            "prompt": "The screen is 400 wide and 300 high. Top left is a menu, [0, 0, 60, 24]; below it a button Save, "
            "[20, 40, 90, 64].\nOutline the position corresponding to the instruction: save the file. The output should be only "
            "[x1,y1,x2,y2].",
            "boxes": [20, 40, 90, 64],
            "answer": "Save",
        },
        {
            "prompt": "The screen is 400 wide and 300 high. A list fills the right half; its last line, 20 high, says Log out.\n"
            "Outline the position corresponding to the instruction: log out. The output should be only [x1,y1,x2,y2].",
            "boxes": [200, 280, 400, 300],
            "answer": "Log out",
        },
    ],
)

claim = Claim(
    says="boxes overlap more with their targets than where hits are paid, after equal updates, and their centres hit as often",
    versus="gui_g2", task="scenes:refer=1.0", measure="first_box_iou", direction="higher", margin=0.03,
    settings={"problems": 12, "lr": 3e-4}, versus_settings={"sparse": True, "problems": 12, "lr": 3e-4},
    by=term_means(reward=first_box_iou() + target_hit()), problems=200, steps=20, guard=Within("target_hit", low=-0.03),
    fault=Within("first_box_iou", high=0.6, says="overlap with the target where hits are paid"), learns=None, start=None,
    tried="no other world, rate or margin",
    finding="boxes overlap by 35% with their targets before, by 35% after Gaussians and by 32% after hits alone: hits let go what "
    "they do not pay for, and Gaussians keep it. In 20 updates neither side hits more (50% before and after); all groups have a "
    "signal by Gaussians, 81% by hits",
)  # fmt: skip
