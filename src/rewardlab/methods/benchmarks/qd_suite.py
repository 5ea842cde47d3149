"""QD-suite: three small problems on which quality-diversity search fails for one reason each, at a difficulty of one's choice.

    spiral:    g -> (a t cos t, a t sin t), t = g in [0, alpha pi]     Euclidean distance is not distance along the curve
    plateaus:  g -> |g| for R_2k <= |g| < R_2k+1, else R_2k+1          a plateau of width 2k^3 + 1 stops fixed mutation at some k
    trap:      g -> N(g; mu_1, s_1^2) + beta N(g; mu_2, s_2^2)         the steep hill is more evolvable, the flat one is higher
    R_2k+1 = R_2k + 2k^3 + 1,   R_2k+2 = R_2k+1 + 2k^3 + 1;   nothing is rewarded: to be covered is the space of behaviours

Coverage is the share of the bins that any individual was in: stretches of equal length along the spiral, stretches of the rising
parts, values up to the higher hill. The goal is the centre of the spiral, the last rising part, values above the lower hill.

Salehi & Doncieux 2022, arXiv:2205.03207, and QDax (adaptive-intelligent-robotics/QDax, 0e61d6b, qdax/tasks/qd_suite): the behaviour
on rising parts is the norm, and search starts in the middle of the spiral. With the paper's s_2^2 = 1e4 the steep hill would be the
higher one; with QDax's 1e3, taken here, about a third of the values lies above the lower hill, as the paper says.
(inferred): bins, the box of the trap, and that it gets harder as the lower hill gets steeper at its height.

All start at one point with one mutation: chance alone (random), novelty search, MAP-Elites, CMA-ME (CMA-ES ranked by improvement)
and CMA-ES ranked by progress in a random direction of behaviours (adaptive); the last three are those of pyribs. A search of one's
own is a function of (landscape, seed) that returns a pyribs scheduler, or what has `ask()` and `tell(objective, measures)`:

    rewardlab study qd_suite --own mine.py:my_search --repeats 10
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe, Run, seed_of, study
from rewardlab.errors import RewardlabError
from rewardlab.rewards.user.functions import find
from rewardlab.settings.domain import PositiveInt
from rewardlab.util.extras import require
from rewardlab.util.intervals import with_bounds

kind = "benchmark"
BATCH, NEAREST, ARCHIVE, ADDED, GENERATIONS = 30, 10, 200, 5, 20
"""Individuals of a generation; neighbours, archive and newcomers to it of novelty search; generations of an adaptive CMA-ES."""
SPIRAL, STRETCHES, VALUES = 100, 10, 100
"""Bins: along the spiral, on each rising part, of the values of the trap."""


@dataclass(frozen=True)
class Landscape:
    """A problem without a reward.

    behave: genotypes (n, d) within the bounds -> behaviours (n, m), which is what a search is told.  niche: genotypes, behaviours
    -> the bin of each (n,).  niches: how many there are.  goal: the first and the last bin of the goal.  start: (d,).  mutation:
    its standard deviation.  low, high: bounds of every gene.  cells, ranges: of a grid over the behaviours.
    """

    behave: Callable[[np.ndarray], np.ndarray]
    niche: Callable[[np.ndarray, np.ndarray], np.ndarray]
    niches: int
    goal: tuple[int, int]
    start: np.ndarray
    mutation: float
    low: float
    high: float
    cells: tuple[int, ...]
    ranges: tuple[tuple[float, float], ...]

    def inside(self, genotypes: np.ndarray) -> np.ndarray:
        return np.clip(genotypes, self.low, self.high)


# ---- the three problems -------------------------------------------------------------------------------------------------


def arc_length(angle: np.ndarray, a: float = 0.01) -> np.ndarray:
    """Of the spiral (a t cos t, a t sin t) from t = 0."""
    return a / 2 * (angle * np.sqrt(angle**2 + 1) + np.arcsinh(angle))


def spiral(alpha: float, a: float = 0.01, geodesic: bool = False) -> Landscape:
    """alpha: half turns.  geodesic: the search is told where on the curve an individual is, and not where in the plane."""
    last, radius = alpha * math.pi, a * alpha * math.pi
    whole = float(arc_length(np.array(last), a))

    def behave(g: np.ndarray) -> np.ndarray:
        return arc_length(g, a) if geodesic else a * g * np.concatenate((np.cos(g), np.sin(g)), 1)

    def niche(g: np.ndarray, _: np.ndarray) -> np.ndarray:
        return _bins(arc_length(g[:, 0], a) / whole, SPIRAL)

    start = 2 * math.pi * (1 + int(last / 2 / (2 * math.pi)))
    cells, ranges = ((900,), ((0.0, whole),)) if geodesic else ((30, 30), ((-radius, radius),) * 2)
    return Landscape(behave, niche, SPIRAL, (0, 0), np.array([start]), 0.3, 0.0, last, cells, ranges)


def boundaries(parts: int) -> np.ndarray:
    """R_0, R_1, ..., of so many rising parts, each with its plateau: (2 parts + 1,)."""
    widths = [2.0 * k**3 + 1 for k in range(parts) for _ in range(2)]
    return np.cumsum([0.0, *widths])


def plateaus(parts: int, genes: int = 2, mutation: float = 20.0) -> Landscape:
    """parts: rising parts that are to be covered, with a plateau between each and the next."""
    r = boundaries(4 * parts)

    def behave(g: np.ndarray) -> np.ndarray:
        norm = np.linalg.norm(g, axis=1, keepdims=True)
        at = np.clip(np.searchsorted(r, norm, side="right") - 1, 0, len(r) - 1)
        return np.where(at % 2 == 0, norm, r[at])

    def niche(_: np.ndarray, behaviours: np.ndarray) -> np.ndarray:
        value = behaviours[:, 0]
        part = (np.searchsorted(r, value, side="right") - 1) // 2
        begin, end = r[2 * part], r[2 * part + 1]
        # the constant value of a plateau is the end of the part below it
        plateau = np.isin(value, r[1::2])
        within = np.where(plateau, STRETCHES - 1, _bins((value - begin) / (end - begin), STRETCHES))
        return np.where(part < parts, part * STRETCHES + within, -1)

    last = (parts - 1) * STRETCHES
    goal, top = (last, last + STRETCHES - 1), float(r[2 * parts - 1])
    return Landscape(behave, niche, parts * STRETCHES, goal, np.zeros(genes), mutation, -10 * top, 10 * top, (1000,), ((0.0, top),))


def trap(steepness: float) -> Landscape:
    """steepness: of the lower hill, whose variance is divided by it while its height stays; 1 is the paper's."""
    means, spreads = np.array([[50.0, 125.0], [150.0, 125.0]]), np.array([70.0, 1000.0])
    weights = np.array([1.0, 20.0]) / (2 * math.pi * spreads)
    spreads[0] /= steepness

    def behave(g: np.ndarray) -> np.ndarray:
        return (weights * np.exp(-((g[:, None, :] - means) ** 2).sum(-1) / (2 * spreads))).sum(-1, keepdims=True)

    lower, top = (float(x) for x in behave(means)[:, 0])
    line = means[0] + np.linspace(0, 1, 1000)[:, None] * (means[1] - means[0])
    saddle = line[behave(line)[:, 0].argmin()]

    def niche(_: np.ndarray, behaviours: np.ndarray) -> np.ndarray:
        return _bins(behaviours[:, 0] / top, VALUES)

    above = int(_bins(np.array(lower / top), VALUES)) + 1
    mutation = 0.05 * math.sqrt(1000.0)
    return Landscape(behave, niche, VALUES, (above, VALUES - 1), saddle, mutation, 0.0, 250.0, (VALUES,), ((0.0, top),))


def _bins(share: np.ndarray, n: int) -> np.ndarray:
    return np.clip((share * n).astype(int), 0, n - 1)


# ---- the searches -------------------------------------------------------------------------------------------------------


class Drift:
    """Each parent has a child, and of both generations as many as there were live on, whoever they are."""

    def __init__(self, landscape: Landscape, seed: int):
        self.land, self.rng = landscape, np.random.default_rng(seed)
        self.parents = self.children = np.tile(landscape.start, (BATCH, 1))
        self.known = landscape.behave(self.parents)

    def ask(self) -> np.ndarray:
        noise = self.rng.normal(0.0, self.land.mutation, self.parents.shape)
        self.children = self.land.inside(self.parents + noise)
        return self.children

    def tell(self, objective: np.ndarray, measures: np.ndarray) -> None:
        both, known = np.concatenate((self.parents, self.children)), np.concatenate((self.known, measures))
        living = self.living(known)
        self.parents, self.known = both[living], known[living]

    def living(self, known: np.ndarray) -> np.ndarray:
        return self.rng.permutation(len(known))[:BATCH]


class Novelty(Drift):
    """Those live on that are farthest from their nearest neighbours among parents, children and a random archive."""

    def __init__(self, landscape: Landscape, seed: int):
        super().__init__(landscape, seed)
        self.archive = self.known[:0]

    def living(self, known: np.ndarray) -> np.ndarray:
        others = np.concatenate((known, self.archive))
        apart = np.sqrt(((known[:, None, :] - others) ** 2).sum(-1))
        # the nearest of all is the individual itself
        novelty = np.partition(apart, NEAREST, axis=1)[:, 1 : NEAREST + 1].mean(1)
        joined = known[BATCH + self.rng.permutation(BATCH)[:ADDED]]
        archive = np.concatenate((self.archive, joined))
        self.archive = archive[self.rng.permutation(len(archive))[:ARCHIVE]]
        return np.argsort(-novelty, kind="stable")[:BATCH]


def map_elites(landscape: Landscape, seed: int, ranker: str = "") -> Any:
    """Of pyribs: an archive by cells whose elites mutate, or with a ranker one from which CMA-ES begins, again where it ends."""
    require("qd", "ribs", what="MAP-Elites")
    from ribs.archives import GridArchive
    from ribs.emitters import EvolutionStrategyEmitter, GaussianEmitter
    from ribs.schedulers import Scheduler

    genes = len(landscape.start)
    archive = GridArchive(solution_dim=genes, dims=landscape.cells, ranges=landscape.ranges, seed=seed)
    begin: dict[str, Any] = {"x0": landscape.start, "batch_size": BATCH, "seed": seed}
    if not ranker:
        bounds: dict[str, Any] = {"lower_bounds": [landscape.low] * genes, "upper_bounds": [landscape.high] * genes}
        return Scheduler(archive, [GaussianEmitter(archive, sigma=landscape.mutation, **begin, **bounds)])
    # restarts for want of improvement would end the growth of its steps on a plateau, where nothing is new
    rules: dict[str, Any] = {"selection_rule": "mu", "restart_rule": GENERATIONS} if ranker == "rd" else {}
    return Scheduler(archive, [EvolutionStrategyEmitter(archive, sigma0=landscape.mutation, ranker=ranker, **rules, **begin)])


SEARCHES: dict[str, Callable[[Landscape, int], Any]] = {
    "random": Drift, "novelty": Novelty, "map_elites": map_elites, "cma_me": partial(map_elites, ranker="2imp"),
    "adaptive": partial(map_elites, ranker="rd"),
}  # fmt: skip
FAMILIES: dict[str, tuple[Callable[[float], Landscape], tuple[float, ...]]] = {
    "spiral": (spiral, (10, 20, 40)), "plateaus": (lambda parts: plateaus(int(parts)), (4, 6, 8)), "trap": (trap, (0.1, 1, 10)),
}  # fmt: skip


# ---- what is measured ---------------------------------------------------------------------------------------------------


Explored = namedtuple("Explored", "coverage goal effort")
"""coverage: of all bins.  goal: of those of the goal.  effort: share of the budget until one of these was reached, or 1."""


@np.errstate(divide="ignore", invalid="ignore")
def explore(landscape: Landscape, search: Any, evaluations: int) -> Explored:
    """Raises RewardlabError where the search proposes what is no batch of genotypes."""
    seen, (first, last), done, effort = np.zeros(landscape.niches, bool), landscape.goal, 0, 1.0
    while done < evaluations:
        asked = np.asarray(search.ask(), float)
        if asked.ndim != 2 or asked.shape[1] != len(landscape.start) or not len(asked) or not np.isfinite(asked).all():
            raise RewardlabError(f"ask() must return finite numbers of shape (n, {len(landscape.start)}), not {asked.shape}")
        behaviours = landscape.behave(genotypes := landscape.inside(asked))
        found = landscape.niche(genotypes, behaviours)
        seen[found[found >= 0]] = True
        done += len(genotypes)
        if effort == 1.0 and seen[first : last + 1].any():
            effort = min(1.0, done / evaluations)
        search.tell(np.zeros(len(genotypes)), behaviours)
    return Explored(float(seen.mean()), float(seen[first : last + 1].mean()), effort)


@study
def compared(run: Run, *, repeats: PositiveInt, evaluations: PositiveInt, own: str) -> dict[str, float]:
    """FAMILY.DIFFICULTY.SEARCH: coverage; .goal: of the goal's bins; .effort: share of the budget until the goal. And degrades: the
    least that novelty search and MAP-Elites lose from the easiest to the hardest; metric_bias: what novelty search gains where it
    is told distances along the spiral; leaves_plateaus: coverage that adaptive steps gain over fixed ones.
    """
    if own and ":" not in own:
        raise RewardlabError(f"which function of {own} makes the search? Write own=FILE.py:FUNCTION")
    searches = SEARCHES | ({"own": find(Path(own.rpartition(":")[0]), own.rpartition(":")[2], "search")} if own else {})
    found: dict[str, list[Explored]] = {}
    for seed in (seed_of("qd_suite", run.seed, repeat) % 2**31 for repeat in range(repeats)):
        for family, level, name in product(FAMILIES, range(3), searches):
            make, levels = FAMILIES[family]
            land = make(levels[level])
            once = explore(land, searches[name](land, seed), evaluations)
            found.setdefault(f"{family}.{levels[level]:g}.{name}", []).append(once)
        along = spiral(FAMILIES["spiral"][1][-1], geodesic=True)
        found.setdefault("geodesic.novelty", []).append(explore(along, Novelty(along, seed), evaluations))
    runs = {name: np.array(each) for name, each in found.items()}  # (repeats, 3)
    suffixes = ("", ".goal", ".effort")
    return _contrasts(runs) | {n + s: float(x) for n, each in runs.items() for s, x in zip(suffixes, each.mean(0), strict=True)}


def _contrasts(runs: dict[str, np.ndarray]) -> dict[str, float]:
    lost = []
    for (family, (_, levels)), search in product(FAMILIES.items(), ("novelty", "map_elites")):
        easiest, hardest = (runs[f"{family}.{level:g}.{search}"].mean(0) for level in (levels[0], levels[-1]))
        # the values below the lower hill are covered on either hill: the trap shows in those above
        lost.append(float((easiest - hardest)[1 if family == "trap" else 0]))
    adapted = runs["plateaus.8.adaptive"] - runs["plateaus.8.map_elites"]
    along = runs["geodesic.novelty"] - runs["spiral.40.novelty"]
    return {"degrades": min(lost)} | with_bounds("leaves_plateaus", adapted[:, 0]) | with_bounds("metric_bias", along[:, 0])


def qd_suite(base: Recipe | None = None, *, repeats: int = 5, evaluations: int = 6000, own: str = "") -> Recipe:
    """repeats: seeds of each search on each problem.  evaluations: of each.  own: FILE.py:FUNCTION, a search beside the others."""
    base = base or Recipe(name="qd_suite")
    return base.but(study=compared(repeats=repeats, evaluations=evaluations, own=own))


fidelity = "whole"

check = Check(
    says="coverage falls with difficulty on all three, and steps that adapt leave plateaus on which fixed ones stay", versus=None,
    task="arithmetic", measure="plateaus.8.adaptive", direction="higher", margin=0.1, against="plateaus.8.map_elites",
    settings={"repeats": 3}, fault=Within("degrades", low=0.05, says="coverage that fixed mutation loses from easiest to hardest"),
    finding="of eight rising parts MAP-Elites and novelty search cover 50%, CMA-ME 79%, steps that adapt 94%; from the shortest to "
    "the longest spiral novelty search falls from 92% to 48%, MAP-Elites from 80% to 15%; only such steps escape a steep trap",
)  # fmt: skip
