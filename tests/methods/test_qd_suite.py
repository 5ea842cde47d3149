"""QD-suite: its three problems by hand, the searches, and a search of one's own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run
from rewardlab.errors import RewardlabError
from rewardlab.methods.benchmarks.qd_suite import (
    BATCH,
    FAMILIES,
    Drift,
    Explored,
    Novelty,
    arc_length,
    boundaries,
    explore,
    map_elites,
    plateaus,
    spiral,
    trap,
)


def column(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


def niches(land, genotypes: np.ndarray) -> list[int]:
    return land.niche(genotypes, land.behave(genotypes)).tolist()


def test_arc_length_is_that_of_a_polygon_of_many_sides():
    t = np.linspace(0, 10 * math.pi, 200_001)
    points = 0.01 * np.stack((t * np.cos(t), t * np.sin(t)), 1)
    assert arc_length(t[-1:])[0] == pytest.approx(np.linalg.norm(np.diff(points, axis=0), axis=1).sum(), rel=1e-6)


def test_spiral_is_told_in_the_plane_or_along_the_curve_and_counted_along_it():
    # a quarter turn: cos = 0, sin = 1; half a turn: cos = -1, sin = 0
    found = spiral(10).behave(column(math.pi / 2, math.pi))
    assert found == pytest.approx(np.array([[0, 0.005 * math.pi], [-0.01 * math.pi, 0]]))
    along = spiral(10, geodesic=True)
    assert along.behave(column(2.0)) == pytest.approx(arc_length(column(2.0)))
    # the length grows with the square of the angle: half of the angle is about a quarter of the length
    assert niches(spiral(40), column(0.0, 20 * math.pi, 40 * math.pi)) == [0, 25, 99]
    assert spiral(40).start.tolist() == [pytest.approx(2 * math.pi * 11)]


def test_boundaries_of_the_plateaus_are_those_of_the_paper():
    # R_i = R_(i-1) + 2 floor(i/2)^3 + 1 for odd i, + 2 (floor(i/2) - 1)^3 + 1 for even i
    expected = [0.0]
    for i in range(1, 9):
        k = i // 2 if i % 2 else i // 2 - 1
        expected.append(expected[-1] + 2 * k**3 + 1)
    assert boundaries(4).tolist() == expected == [0, 1, 2, 5, 8, 25, 42, 97, 152]


def test_a_plateau_has_one_value_in_every_direction_and_rising_parts_have_the_norm():
    land = plateaus(4)
    # rising up to 1, a plateau up to 2, rising up to 5, a plateau up to 8; (3, 4) has the norm 5: the plateau begins there
    given = np.array([[0.5, 0], [0, -1.5], [3, 0], [3, 4], [0, 7.9], [6, 8]])
    assert land.behave(given)[:, 0].tolist() == [0.5, 1, 3, 5, 5, 10]
    # ten bins a part: 0.5 of [0, 1) is bin 5; plateaus are in the last bin of their part; 3 is a third of [2, 5)
    assert niches(land, given) == [5, 9, 13, 19, 19, 21]
    # a fifth rising part begins at 152 and is none of the four that count
    assert niches(land, np.array([[0, 96.9], [0, 120.0], [0, 153.0]])) == [39, 39, -1]


def test_the_trap_is_steep_low_and_escaped_above_its_hill():
    paper = trap(1)
    lower, higher = paper.behave(np.array([[50.0, 125.0], [150.0, 125.0]]))[:, 0]
    assert higher == pytest.approx(20 / (2 * math.pi * 1000), rel=1e-6)
    assert lower == pytest.approx(1 / (2 * math.pi * 70) + higher * math.exp(-5), rel=1e-6)
    # about a third of the values lies above the lower hill, as the paper says
    assert 0.25 < 1 - lower / higher < 0.35
    assert paper.goal == (int(100 * lower / higher) + 1, 99)
    # it starts at a saddle: lower than both sides of the line between the hills, higher than across it
    at = float(paper.behave(paper.start[None])[0, 0])
    along, across = (paper.behave(paper.start + np.array([step, -np.array(step)]))[:, 0] for step in ([3.0, 0], [0, 3.0]))
    assert (along > at).all()
    assert (across < at).all()
    steep = trap(10)
    assert steep.behave(np.array([[50.0, 125.0]])) == pytest.approx(lower)
    assert steep.behave(np.array([[60.0, 125.0]])) < paper.behave(np.array([[60.0, 125.0]]))


class Fixed:
    """Proposes these batches in turn, and remembers what it was told."""

    def __init__(self, *batches):
        self.batches, self.told = list(batches), []

    def ask(self):
        return self.batches.pop(0)

    def tell(self, objective, measures):
        self.told.append((objective.tolist(), measures.tolist()))


def test_coverage_goal_and_effort_by_hand():
    # two parts: [0, 1) and [2, 5) of ten bins each, of which the second is the goal
    search = Fixed(np.array([[0.05, 0], [0.95, 0]]), np.array([[1.5, 0], [3.0, 0]]))
    found = explore(plateaus(2), search, evaluations=4)
    # bins 0, 9 (0.95 and the plateau at 1), and 13
    assert found == Explored(3 / 20, 1 / 10, 1.0)
    assert search.told == [([0, 0], [[0.05], [0.95]]), ([0, 0], [[1.0], [3.0]])]
    early = Fixed(np.array([[3.0, 0]]), *[np.array([[0.0, 0]])] * 3)
    assert explore(plateaus(2), early, evaluations=4).effort == 1 / 4


@pytest.mark.parametrize("batch", [np.zeros(2), np.zeros((3, 5)), np.zeros((0, 2)), np.full((1, 2), np.nan)])
def test_what_is_no_batch_of_genotypes_is_refused(batch):
    with pytest.raises(RewardlabError, match=r"shape \(n, 2\)"):
        explore(plateaus(2), Fixed(batch), 4)


def test_novelty_keeps_those_that_are_far_from_others_and_chance_does_not_look():
    land = plateaus(4)
    novel, drift = Novelty(land, 0), Drift(land, 0)
    for search in (novel, drift):
        search.ask()
    # of 60 individuals 50 are at one value and ten far apart from each other
    known = np.concatenate((np.zeros((50, 1)), 1000.0 * np.arange(1, 11)[:, None]))
    kept = novel.living(known)
    assert set(range(50, 60)) <= set(kept.tolist())
    assert len(kept) == len(drift.living(known)) == BATCH
    assert not set(range(50, 60)) <= set(drift.living(known).tolist())


def test_the_centre_of_the_spiral_is_out_of_the_bounds_of_nobody():
    land = spiral(10)
    asked = Drift(land, 1)
    for _ in range(3):
        genotypes = asked.ask()
        assert ((genotypes >= 0) & (genotypes <= land.high)).all()
        asked.tell(np.zeros(BATCH), land.behave(genotypes))


@pytest.mark.parametrize("family", FAMILIES)
def test_searches_of_pyribs_run_on_every_problem_and_a_seed_repeats_them(family):
    pytest.importorskip("ribs", reason="needs the extra 'qd'")
    make, levels = FAMILIES[family]
    for ranker in ("", "2imp", "rd"):
        once, again = (explore(make(levels[0]), map_elites(make(levels[0]), 5, ranker), 600) for _ in range(2))
        assert once == again
        assert 0 < once.coverage <= 1


def test_adaptive_steps_leave_a_plateau_that_stops_fixed_ones():
    pytest.importorskip("ribs", reason="needs the extra 'qd'")
    # the last plateau on the way is 251 wide, the mutation 20
    land = plateaus(7)
    fixed, adaptive = (explore(land, map_elites(land, 0, ranker), 3000) for ranker in ("", "rd"))
    assert fixed.effort == 1.0
    assert adaptive.effort < 0.5


def test_a_search_of_ones_own_is_compared_with_the_others(tmp_path):
    pytest.importorskip("ribs", reason="needs the extra 'qd'")
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\n\nclass Everywhere:\n"
        "    def __init__(self, land, seed):\n        self.land, self.rng = land, np.random.default_rng(seed)\n"
        "    def ask(self):\n        return self.rng.uniform(self.land.low, self.land.high, (30, len(self.land.start)))\n"
        "    def tell(self, objective, measures):\n        pass\n\n"
        "def search(landscape, seed):\n    return Everywhere(landscape, seed)\n"
    )
    recipe = registry.build("qd_suite", {"own": f"{file}:search", "repeats": 2, "evaluations": 300})
    found = recipe.study(Run(None, seed=0))
    # uniform samples of one gene cover the spiral, however its behaviours are told
    assert found["spiral.10.own"] > 0.8 > found["spiral.10.random"]
    assert found["leaves_plateaus.low"] <= found["leaves_plateaus"] <= found["leaves_plateaus.high"]
    with pytest.raises(RewardlabError, match=r"own=FILE\.py:FUNCTION"):
        registry.build("qd_suite", {"own": "mine.py"}).study(Run(None))
