"""AesCoder's GRPO-AR: a page earns by running, by how it looks and by what responds; by nothing else if it does not run."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Term, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.verifiers.pages import browser
from rewardlab.worlds.pages import FAULTS, pages

# runs, looks, responds of five pages; the last has no verdict
PAGES = [(1.0, 1.0, 1.0), (1.0, 0.5, 2 / 3), (1.0, 1.0, 0.0), (0.0, 0.0, 0.0), None]
# .1 + .8 + .1; .1 + .4 + .2/3; .1 + .8; -.1
EARNED = [1.0, 0.5 + 0.2 / 3, 0.9, -0.1, None]


def said(number: int, length: int = 3) -> Trajectory:
    zeros = np.zeros(length, np.float32)
    turns = (Turn(None, np.zeros(2, np.int64)), Turn("policy", np.zeros(length, np.int64), zeros, zeros, str(number)))
    return Trajectory(ask("Menu. Dark.", None), turns, "end")


@reward(over="groups")
def known(groups, run):
    """What `web_page` would say of the pages above."""
    return [[_verdict(PAGES[int(t.reply)]) for t in group] for group in groups]


def _verdict(page):
    if page is None:
        return Score(None, why="no browser")
    terms = {f"web_page.{n}": Term(x, weight=None) for n, x in zip(("runs", "looks", "responds"), page, strict=True)}
    return Score(terms={"web_page": Term(float(min(page) == 1)), **terms})


def run() -> Run:
    return Run(None, verify=known())


def totals(**settings) -> list[float | None]:
    group = [said(i) for i in range(len(PAGES))]
    return [s.total for s in registry.build("aescoder_grpo_ar", settings).reward([group], run())[0]]


def test_what_a_page_earns_by_hand():
    assert totals() == pytest.approx(EARNED)
    # looks alone: nothing is lost by buttons that do nothing, or by not running
    assert totals(execution=0.0, static=1.0, interactive=0.0) == pytest.approx([1.0, 0.5, 1.0, 0.0, None])


def test_another_judge_of_looks_is_asked_in_place_of_the_measures_and_not_about_what_does_not_run():
    @reward
    def half(trajectory):
        return 0.5

    assert totals(looks=half()) == pytest.approx([0.6, 0.5 + 0.2 / 3, 0.5, -0.1, None])


def test_the_credit_of_a_group():
    recipe, r = registry.build("aescoder_grpo_ar"), run()
    group = [said(i, length=n) for i, n in ((0, 2), (2, 5), (3, 1))]
    batch = collate([group], recipe.reward([group], r), torch.device("cpu"))
    rewards = np.array([1.0, 0.9, -0.1])
    expected = torch.tensor((rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4))[:, None] * batch.mask
    assert torch.allclose(recipe.credit(batch.reward, batch, r).double(), expected, atol=1e-4)


def test_a_base_s_own_reward_is_kept():
    assert "length_where_solved" in str(registry.build("grpo_lambda+aescoder_grpo_ar").reward)


def test_pairs_of_the_world():
    task = pages(slips=0.5, test_size=1)
    problems = [task.train[i] for i in range(80)]
    assert {p.meta["fault"] for p in problems} == {f"{kind}: {x}" for kind, some in FAULTS.items() for x in some}
    assert all(p.meta["chosen"] != p.meta["rejected"] for p in problems)
    shifted = np.mean(["margin-left:7px" in p.meta["chosen"] for p in problems])
    assert 0.3 < shifted < 0.7


@pytest.mark.skipif(bool(browser.missing()), reason=browser.missing())
def test_in_a_browser_each_fault_is_seen_by_its_agent_alone():
    task, verify = pages(slips=0.0, test_size=1), registry.part("reward", "web_page")
    found: dict[str, dict[str, float]] = {}
    try:
        for problem in (task.train[i] for i in range(60)):
            if problem.meta["fault"] not in found:
                good, bad = verify.check_all([(problem.meta[side], problem.answer) for side in ("chosen", "rejected")])
                assert good.correct is True, good
                assert bad.correct is False, bad
                found[problem.meta["fault"]] = bad.parts
    except RewardlabError as problem:
        pytest.skip(str(problem))
    for fault, parts in found.items():
        kind = fault.partition(":")[0]
        assert (parts["runs"], parts["looks"] < 1) == ((0.0, True) if kind == "runs" else (1.0, kind == "looks")), fault
        assert parts["responds"] == 0 if kind != "looks" else parts["responds"] >= 0, fault
