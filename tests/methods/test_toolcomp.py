"""ToolComp: pairs in both orders as the released code scores them, odd rows, rank@1 by hand, and the labels of the study."""

import json

import numpy as np
import pytest

from rewardlab.core import Run
from rewardlab.methods.benchmarks.toolcomp import (
    BY,
    TODAY,
    benchmark,
    figures,
    marks,
    process_and_outcome,
    prompts,
    read,
    trajectory,
)
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict


def plan(text, history="[]", **columns):
    row = {
        "prompt": "q", "tools": "['date', 'calculator']", "historical_date": None, "history": history,
        "preferred": {"action plan": {"text": text}}, "dispreferred": {"action plan": {"text": "worse", "label": 0}},
    }  # fmt: skip
    (found,) = read(row | columns, "file")
    return found


def side(action, wrong=()):
    parts = {"thought": "t", "action": action, "action_input": "1", "observation": "o"}
    return {name: {"text": text, "label": int(name not in wrong)} for name, text in parts.items()}


def step(action, wrong=("action",), **columns):
    history = json.dumps([{"action plan": {"text": "p"}}, side("date")])
    return plan("", history, **({"preferred": side(action), "dispreferred": side("worse", wrong)} | columns))


def ranked(*correct, prompt="q"):
    row = {"prompt": prompt, "trajectories": [{"steps": [f"s{k}"], "correct": c} for k, c in enumerate(correct)]}
    (found,) = read(row, "file")
    return found


def figures_of(items, verdicts):
    return figures(Marks.of(items, [marks(i, v) for i, v in zip(items, verdicts, strict=True)]))


def asked(first, swapped):
    """What a judge says of (corrected, other), and of the other order: the preference for the one that is shown first."""
    return Verdict(orders={(0, 1): first, (1, 0): swapped})


@pytest.mark.parametrize(
    ("first", "swapped", "won"),
    [
        (1, 0, 1.0), (0.9, 0.2, 1.0), (0, 1, 0.0), (1, 1, 0.5), (0, 0, 0.5), (0.5, 0, 0.5), (1, 0.5, 0.5), (0.5, 1, 0.5),
        (None, 0, 0.5), (1, None, 0.5), (0, None, 0.5),
    ],
)  # fmt: skip
def test_a_pair_is_won_in_both_orders_and_any_tie_or_unread_verdict_is_a_tie(first, swapped, won):
    assert marks(plan("better"), asked(first, swapped))["won"] == won


def test_rewards_have_no_order_and_silence_is_a_tie():
    one = plan("better")
    won = [marks(one, v)["won"] for v in (Verdict((2.0, 1.0)), Verdict((1.0, 2.0)), Verdict((1.0, 1.0)), Verdict())]
    assert won == [1.0, 0.0, 0.5, 0.5]


def test_the_figures_of_the_released_code_and_of_the_part_that_was_wrong():
    items = [plan("a"), plan("b"), step("calculator"), step("date", ("thought", "action_input")), step("wiki", ())]
    found = figures_of(items, [asked(1, 0), asked(0, 1), asked(1, 0), asked(1, 1), asked(1, 0)])
    assert found["total_accuracy"] == pytest.approx(3.5 / 5)
    assert found["action_plan_only_accuracy"] == 0.5
    assert found["react_steps_accuracy"] == pytest.approx(2.5 / 3)
    assert (found["thought"], found["action"], found["action_input"]) == (0.5, 1.0, 0.5)
    assert "rank_1" not in found


@pytest.mark.parametrize("history", ["[]", "", "null", None, []])
def test_without_a_history_it_is_a_plan(history):
    one = plan("better", history)
    assert (one.subset, one.replies) == ("plan", ("better", "worse"))
    assert "Action plan" not in one.question


@pytest.mark.parametrize("date", [None, "", float("nan")])
def test_a_step_comes_after_the_plan_and_the_steps_before_it(date):
    one = step("calculator", historical_date=date, tools=["date"])
    assert one.replies[0] == "Thought: t\nAction: calculator\nAction Input: 1\nObservation: o"
    assert one.question.startswith(f"q\n\nToday is {TODAY}. Tools: date.\n\nAction plan:\np\n\nThought: t\nAction: date\n")
    assert "Today is 2024-01-02." in step("calculator", historical_date="2024-01-02").question


def test_a_side_without_its_text_is_refused():
    with pytest.raises(ValueError, match="action_input"):
        step("x", dispreferred={k: v for k, v in side("y").items() if k != "action_input"})
    with pytest.raises(ValueError, match="two trajectories"):
        ranked(True)


def test_rank_1_is_that_of_the_first_by_reward_and_equal_ones_share_it():
    items = [ranked(True, False, False), ranked(False, True, True, prompt="other"), ranked(False, False, prompt="none")]
    found = figures_of(items, [Verdict((0.1, 0.9, 0.2)), Verdict((0.7, 0.7, 0.1)), Verdict((0.5, 0.1))])
    assert found["rank_1"] == pytest.approx((0 + 0.5 + 0) / 3)
    assert found["chosen_blindly"] == pytest.approx((1 / 3 + 2 / 3 + 0) / 3)
    # alone they are all that there is to tell
    assert next(iter(found)) == "rank_1"
    assert figures_of(items[:1], [Verdict()])["rank_1"] == 0.0


def test_labels_end_at_the_first_error_and_a_faultless_trajectory_is_right():
    rng = np.random.default_rng(0)
    rows = prompts(rng, 40, (2, 4), 0.3, 4)
    for t in (t for row in rows for t in row["trajectories"]):
        known = [y for y in t["labels"] if y is not None]
        assert len(t["labels"]) == len(t["steps"])
        assert known.count(0.0) <= 1
        assert 0.0 not in known[:-1]
        assert t["labels"][len(known) :] == [None] * (len(t["labels"]) - len(known))
        assert t["correct"] or 0.0 in known
    assert 0.1 < np.mean([t["correct"] for row in rows for t in row["trajectories"]]) < 0.9


def test_the_tools_answer_what_they_are_asked():
    prices = {"tea": 4, "jam": 3}
    found = trajectory(np.random.default_rng(0), prices, [("plus", "tea"), ("minus", "jam")], 0.0)
    assert found["answer"] == 1
    assert found["labels"] == [1.0] * 4
    assert "Action Input: 4 - 3\nObservation: 1" in found["steps"][2]


@pytest.mark.slow
def test_a_process_reward_leads_where_trajectories_are_few():
    found = process_and_outcome(repeats=2)(Run(None, seed=11))
    assert found["orm_learnt"] > 0.05
    assert found["gain_weak"] > 0.02
    assert found["gain_weak"] > found["gain_weak_400"]
    # the highest step says nothing: every trajectory has a step that is right for certain
    assert found["prm_by_max"] < found["prm_weak"]
    assert next(iter(BY)) == "min"


def test_the_judges_prompt_has_its_places():
    assert all(f"{{{place}}}" in benchmark.prompt for place in ("prompt", "first", "second"))
