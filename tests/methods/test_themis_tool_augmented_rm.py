"""Themis: traces of tool calls by rule and by the writer, the losses of writer and scorer, and the score at a trace's end."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from reward_runs import taught
from rows import Replies, batch_of, outcome

from rewardlab import registry
from rewardlab.core import Outputs, Run, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.reward_models.themis_tool_augmented_rm import calculated, calculator, trace_of, traced_pairs

PAIR = ask("Twice 6, and 1?", chosen="2*6=12\n12+1=13\nAnswer: 13", rejected="2*6=14\n14+1=15\nAnswer: 15")


def test_the_rule_calls_the_calculator_for_each_equation_and_counts_those_that_hold():
    call = "Thought: check {0}\nAction: Calculator\nAction Input: {0}"
    assert trace_of("2*6=14\n14 + 1 = 15. So 15", 6) == [
        call.format("2*6"), "Observation: 12", call.format("14 + 1"), "Observation: 15", "Work: 1 of 2 results are right.",
    ]  # fmt: skip
    assert trace_of("2*6=14\n14+1=15", 1) == [call.format("2*6"), "Observation: 12", "Work: 0 of 1 results are right."]
    assert trace_of("There is nothing to work out.", 6) == ["Work: 0 of 0 results are right."]
    # a division by zero has no value, and so no claim about it holds
    assert trace_of("1/0=5", 6)[1:] == ["Observation: error: divides by zero", "Work: 0 of 1 results are right."]
    assert trace_of("123456 * 789 = 97406784", 6)[-1] == "Work: 1 of 1 results are right."


def test_the_calculator_answers_calls_and_a_text_without_one_ends_the_trace():
    def said(text):
        return calculator()(None, Turn("policy", np.zeros(1, np.int64), text=text), "here")[0]

    assert said("Thought: so\nAction: Calculator\nAction Input: 7 - 9 / 2").text == "Observation: 5/2"
    assert said("Action Input: import os").text.startswith("Observation: error: not an expression")
    assert said("Work: 1 of 1 results are right.") is None
    assert calculated("2**9999999").startswith("error")


def test_replies_and_observations_are_read_and_the_rest_of_a_trace_is_learnt():
    (group,) = traced_pairs()([PAIR], Run(Reading()))
    assert [t.problem.question for t in group] == [
        f"Question: Twice 6, and 1?\nAnswer: {PAIR.meta[side]}\nCheck the answer." for side in ("chosen", "rejected")
    ]
    learnt = ["".join(turn.text for turn in t.turns if turn.author) for t in group]
    read = [[turn.text for turn in t.turns if not turn.author] for t in group]
    assert learnt[1].endswith("Work: 1 of 2 results are right.")
    assert learnt[0].endswith("Work: 2 of 2 results are right.")
    assert read == [["Observation: 12", "Observation: 13"], ["Observation: 12", "Observation: 15"]]


class Reading(Replies):
    """Keeps the messages that it reads after the prompt."""

    def __init__(self):
        super().__init__([])

    def read(self, trajectories, messages):
        empty = np.zeros(1, np.int64)
        return [
            t.plus(Turn(None, empty, text=m[0].text), None) if t.turns else t for t, m in zip(trajectories, messages, strict=True)
        ]


def test_a_trace_of_the_row_is_taken_as_it_is_and_one_of_another_form_is_refused():
    given = ask("?", chosen="a", rejected="b", chosen_trace=["one", "two", "three"])
    (group,) = traced_pairs()([given], Run(Reading()))
    assert [turn.text for turn in group[0].turns] == ["one", "two", "three"]
    for wrong in (["one", "two"], ["one", 2, "three"]):
        with pytest.raises(RewardlabError, match="chosen_trace"):
            traced_pairs()([ask("?", chosen="a", rejected="b", chosen_trace=wrong)], Run(Reading()))
    with pytest.raises(RewardlabError, match="'rejected'"):
        traced_pairs()([ask("?", chosen="a")], Run(Reading()))


def test_half_of_the_ranking_loss_and_the_likelihood_of_the_trace():
    scorer, writer = registry.build("themis_tool_augmented_rm").also
    assert (scorer.name, writer.name, writer.init) == ("reward", "writer", "copy:policy")
    batch = batch_of([[("rdrd", {"": outcome(0.0)})] * 2])
    out = Outputs(value=torch.tensor([[0.0, 0.0, 0.0, 3.0], [0.0, 0.0, 0.0, 1.0]]))
    ((weight, ranking),) = scorer.recipe.objective.terms()
    assert (weight * ranking(out, batch, Run(None))).tolist() == pytest.approx([math.log1p(math.exp(-2)) / 2])
    # decisions are the second and the fourth position: what is read teaches nothing
    out = Outputs(logprobs=torch.tensor([[-9.0, -1.0, -9.0, -2.0], [-9.0, -4.0, -9.0, 0.0]]))
    assert writer.recipe.objective(out, batch, Run(None)).tolist() == [1.5, 2.0]


def test_both_models_learn_from_a_users_rows_and_the_run_is_a_reward_model(tmp_path):
    after, scores = taught("themis_tool_augmented_rm", tmp_path, ["Work: 2 of 2 results are right."], writer_lr=3e-3)
    assert 0 <= after["pair_accuracy"] <= 1
    # held out, the writer is on its own: traces of eight steps of teaching call for what they please
    assert 0 <= after["by_the_rule"] <= 1
    assert math.isfinite(scores[0])
    _, *steps = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    for loss in ("reward/loss", "writer/loss"):
        assert steps[-1][loss] < 0.9 * steps[0][loss]
