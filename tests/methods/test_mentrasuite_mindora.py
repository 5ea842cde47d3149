"""Mindora: right answers count only where nothing contradicts them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.api.checking import settings_of
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.shaping.mentrasuite_mindora import data
from rewardlab.rewards.format import answer_given

CASE = ask("Which?", "B", options=["brin", "dask"])
RUN = Run(policy=None, verify=registry.part("reward", "choice"))
SOUND, CONTRADICTS, CONSISTENT, SILENT = "So dask.\nAnswer: B", "So brin.\nAnswer: B", "So brin.\nAnswer: A", "Answer: B"


def reply(text: str, problem=CASE) -> Trajectory:
    ids, logprobs = np.zeros(len(text.split()), np.int64), np.zeros(len(text.split()), np.float32)
    return Trajectory(problem, (Turn(None, np.zeros(2, np.int64)), Turn("policy", ids, logprobs, logprobs, text)), "end")


def totals(*texts: str, problem=CASE, **settings) -> list[float | None]:
    recipe = registry.build("mentrasuite_mindora", settings)
    return [s.total for s in recipe.reward([[reply(text, problem) for text in texts]], RUN)[0]]


def test_only_what_is_right_and_consistent_is_paid():
    assert totals(SOUND, CONTRADICTS, CONSISTENT, SILENT) == [1, 0, 0, 0]
    assert totals(SOUND, CONTRADICTS, CONSISTENT, SILENT, detect=False) == [1, 1, 0, 1]
    # a detector that finds fault with nothing
    assert totals(CONTRADICTS, detector=answer_given()) == [1]
    tags = "<think>So brin.</think><answer>B</answer>"
    # the form is a gate: nothing makes up for its lack, and it pays nothing by itself
    assert totals(tags, "<think>So dask.</think><answer>B</answer>", SOUND, form=True) == [0, 1, 0]


def test_thinking_that_is_too_short_or_too_long_is_not_paid():
    # "So dask." is three words and signs
    assert totals(SOUND, "So, by rash, dask.\nAnswer: B", shortest=4) == [0, 1]
    assert totals(SOUND, "So, by rash, dask.\nAnswer: B", longest=3) == [1, 0]
    assert totals(SOUND, longest=2, detect=False) == [0]
    assert totals(f"<think>{'dask ' * 2049}</think><answer>B</answer>", SOUND) == [0, 1]


def test_no_verdict_where_the_detector_has_none():
    assert totals(SOUND, problem=ask("Which?", "B")) == [None]
    assert totals(SOUND, problem=ask("Which?", "B"), detect=False) == [1]


def test_rows_need_options_where_the_rule_reads_them():
    def missing(**settings):
        recipe = registry.build("mentrasuite_mindora", settings)
        return data.missing([("row 1", {"prompt": "Which?", "answer": "a text"})], settings_of(recipe))

    assert missing() == {"options": ["row 1"]}
    assert missing(detect=False) == missing(detector=answer_given()) == {}


def test_the_credit_of_a_group_in_which_all_answers_are_right():
    # 1, 0, 0: mean 1/3, unbiased std .57735;  / (std + 1e-4): 1.15450, -.57725
    recipe, group = registry.build("mentrasuite_mindora"), [reply(SOUND), reply(CONTRADICTS), reply(SILENT)]
    batch = collate([group], recipe.reward([group], RUN), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, RUN)
    last = [float(row[mask][-1]) for row, mask in zip(credit, batch.mask, strict=True)]
    assert last == pytest.approx([1.15450, -0.57725, -0.57725], abs=1e-4)


def test_easy_problems_are_left_out_and_chains_are_imitated_first():
    recipe = registry.build("mentrasuite_mindora", {"sft_steps": 3, "hardest": 0.5})
    assert recipe.rollout.name == "solved_between"
    assert recipe.rollout.settings["high"] == 0.5
    assert recipe.loop.settings["steps"] == 3
    assert recipe.loop.settings["field"] == "solution"
    assert registry.build("mentrasuite_mindora").loop == registry.build("grpo").loop
    # the stage before leaves a base its own loop, in which a reward model is taught
    base = registry.build("rlhf")
    assert registry.method("mentrasuite_mindora")(base, sft_steps=3).loop.settings["inner"] == base.loop
