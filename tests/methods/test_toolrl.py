"""ToolRL: calls are paid part by part, from -3 to 3, and 1 for their form."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate

GOLD = [{"name": "a", "parameters": {"x": 1, "y": 2}}, {"name": "b", "parameters": {"z": "q"}}]
LINES = ('{"name": "a", "parameters": {"x": 1, "y": 2}}', '{"name": "b", "parameters": {"z": "q"}}')


def formed(*lines: str) -> str:
    return "\n".join(["<think>hm</think>", "<tool_call>", *lines, "</tool_call>"])


def reply(text: str, answer=GOLD, tokens: int = 3, **meta) -> Trajectory:
    zeros = np.zeros(tokens, np.float32)
    turn = Turn("policy", np.zeros(tokens, np.int64), zeros, zeros, text)
    return Trajectory(ask("Go", answer, **meta), (Turn(None, np.zeros(2, np.int64)), turn), "end")


def totals(*rows: Trajectory, **settings) -> list[float | None]:
    (scores,) = registry.build("toolrl", settings).reward([list(rows)], Run(policy=None))
    return [score.total for score in scores]


# S = 1 + 3 + 2 = 6, as the released code adds it up; R_correct = 6 R/S - 3 = R - 3 here, and 1 for the form
def test_the_reward_by_the_released_codes_formulas():
    value = LINES[0].replace("2}", "3}")
    rows = [
        formed(*LINES),
        formed(*LINES[::-1]),
        formed(value, LINES[1]),  # R = 1 + (1 + 1) + 2
        formed(LINES[0]),  # R = 1/2 + 3
        formed(LINES[0], *LINES),  # R = 2/3 + 3 + 2
        formed("{"),  # cannot be read
        f"<tool_call>{LINES[0]}</tool_call><tool_call>{LINES[1]}</tool_call>",  # right, and of another form
        "I will not.",
    ]
    assert totals(*map(reply, rows)) == pytest.approx([4, 4, 3, 1.5, 3.66667, -2, 3, -3], abs=1e-5)
    assert totals(*map(reply, rows), grain="exact") == pytest.approx([4, -2, -2, -2, -2, -2, 3, -3])
    # whole calls, S = 3: J(tools) + whole calls, times 6 / 3, less 3
    assert totals(*map(reply, rows[2:5]), grain="call") == pytest.approx([2, 1, 3.33333], abs=1e-5)
    assert totals(*map(reply, rows[5:]), max_reward=1.0, form=0.0) == pytest.approx([-1, 1, -1])


def test_where_no_call_is_wanted_words_are_the_form_and_calls_earn_nothing():
    words = "<think>hm</think>\n<response>No.</response>"
    assert totals(reply(words, []), reply(formed(*LINES), []), reply("No.", [])) == [1, 0, 0]
    # calls and words
    both = formed(*LINES) + "\n<response>Done.</response>"
    assert totals(reply(both, response=True), reply(formed(*LINES), response=True)) == pytest.approx([4, 3])


@pytest.mark.parametrize(
    "text",
    [
        "x" + formed(*LINES), formed(*LINES) + "x", formed(*LINES).replace("<think>", ""), formed(*LINES) + formed(*LINES),
        formed(*LINES).replace("</think>\n", "</think>"), "<tool_call>\n" + formed(*LINES),
    ],
)  # fmt: skip
def test_the_form_is_exact(text):
    (score,) = registry.build("toolrl").reward([[reply(text)]], Run(policy=None))[0]
    assert score.terms["form_wanted"].value == 0


def test_a_group_without_a_right_reply_still_teaches_and_without_gold_calls_there_is_no_credit():
    run, recipe = Run(policy=None), registry.build("toolrl")
    # R = 5, 3.5 and an answer that nobody can read: 2 + 1 and .5 + 1, and none
    group = [reply(formed(LINES[0].replace("2}", "3}"), LINES[1])), reply(formed(LINES[0]), tokens=5), reply("x", "no calls")]
    batch = collate([group], recipe.reward([group], run), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    # rewards 3 and 1.5: +-.75 from the mean, std 1.06066; .75 / (1.06066 + 1e-4) = .70704
    expected = torch.tensor([[0.70704], [-0.70704], [0.0]]).expand(batch.mask.shape) * batch.mask
    assert torch.allclose(credit, expected, atol=1e-4)
    exact = registry.build("toolrl", {"grain": "exact"})
    batch = collate([group], exact.reward([group], run), torch.device("cpu"))
    assert not exact.credit(batch.reward, batch, run).any()
