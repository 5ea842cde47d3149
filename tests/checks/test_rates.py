"""Rates are chosen by what runs measure, on development seeds; a forest plot shows effects in margins."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from rewardlab.checks import rates as choosing
from rewardlab.checks.claim import Claim
from rewardlab.checks.runs import Done
from rewardlab.checks.workers import Failed
from rewardlab.comparisons.forest import LIMIT, _x, forest
from rewardlab.errors import RewardlabError

CLAIM = Claim(says="x", versus="grpo", task="arithmetic", measure="pass@1", direction="higher", margin=0.1, model="untrained")


def outcome(job):
    """Accuracy that depends on the rate: best at 1e-3 for RLOO and at 1e-4 for GRPO, where 3e-4 fails."""
    rate = job.recipe["update"]["lr"]
    if job.method == "grpo" and rate == 3e-4:
        return Failed("NotFinite: the gradient")
    right = {"rloo": rate * 100, "grpo": 0.2 - rate}[job.method]
    return Done({"auc.truth": right + job.config.seed / 1000, "pass@1": right}, [], 1.0)


def test_each_side_gets_the_rate_at_which_it_learns_most(monkeypatch):
    monkeypatch.setattr(choosing, "run_all", lambda _, jobs, __: iter_of(outcome(job) for job, _ in jobs))
    monkeypatch.setattr("rewardlab.checks.pairs._cache_policy", lambda *_: None)
    found = choosing.rates("rloo", (1e-4, 3e-4, 1e-3), (0, 2), claim=CLAIM)
    assert found["chosen"] == {"method": 1e-3, "baseline": 1e-4}
    assert found["chosen_by"] == "auc.truth"
    assert found["rates"][2]["auc.truth"] == pytest.approx(0.1 + 0.001)  # the mean over seeds 0 and 2
    assert found["rates"][4]["error"] == "NotFinite: the gradient"
    # what is compared decides where nothing is sampled in training
    assert choosing.rates("rloo", (1e-4,), (0,), claim=replace(CLAIM, learns=None), chosen_by="pass@1")["chosen_by"] == "pass@1"
    with pytest.raises(RewardlabError, match="development seeds, below 100"):
        choosing.rates("rloo", (1e-4,), (100,), claim=CLAIM)


def test_where_less_is_better_and_where_nothing_tells_rates_apart(monkeypatch):
    def lengths(job):
        rate = job.recipe["update"]["lr"]
        return Done({"length": {"rloo": rate * 1000, "grpo": 7.0}[job.method]}, [], 1.0)

    monkeypatch.setattr(choosing, "run_all", lambda _, jobs, __: iter_of(lengths(job) for job, _ in jobs))
    monkeypatch.setattr("rewardlab.checks.pairs._cache_policy", lambda *_: None)
    shorter = replace(CLAIM, measure="length", direction="lower", learns=None)
    found = choosing.rates("rloo", (1e-4, 3e-4, 1e-3), (0,), claim=shorter)
    assert found["chosen_by"] == "length"
    assert found["chosen"] == {"method": 1e-4, "baseline": 3e-4}
    assert found["tied"] == {"baseline": [1e-4, 3e-4, 1e-3]}
    assert choosing.rates("rloo", (1e-4, 1e-3), (0,), claim=replace(shorter, direction="higher"))["chosen"]["method"] == 1e-3


def iter_of(outcomes):
    yield from enumerate(outcomes)


def test_effects_are_drawn_in_margins_and_cut_with_an_arrow():
    rows = [
        {"name": "a<b", "effect": 0.2, "low": 0.1, "high": 0.3, "margin": 0.1, "verdict": "holds"},
        {"name": "c", "effect": 9.0, "low": 5.0, "high": 13.0, "margin": 1.0, "verdict": "undecided"},
    ]
    svg = forest(rows)
    root = ElementTree.fromstring(svg)
    circles = [float(c.get("cx")) for c in root.iter("{http://www.w3.org/2000/svg}circle")]
    assert circles == [pytest.approx(_x(2.0), abs=0.1), pytest.approx(_x(LIMIT), abs=0.1)]
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) == 1  # only the second goes on beyond the edge
    assert "a&lt;b" in svg


def test_the_interval_of_an_effect_stays_within_the_difference_of_two_shares():
    row = {"name": "a", "effect": 0.5, "low": -1.5, "high": 2.5, "margin": 0.5, "verdict": "undecided"}

    def ends(**about):
        (line,) = [x for x in ElementTree.fromstring(forest([row | about])).iter() if x.get("stroke-width") == "2"]
        return [float(line.get(key)) for key in ("x1", "x2")]

    shares = ends(measure="pass@1", values=[0.2, 0.9])
    assert shares == pytest.approx([_x(-2.0), _x(2.0)], abs=0.1)
    assert ends(measure="length", values=[0.2, 0.9]) == ends() == pytest.approx([_x(-3.0), _x(5.0)], abs=0.1)
