"""ToolRM: gold calls against the calls that models get wrong, under made-up names, with scores kept around 0."""

from __future__ import annotations

import gzip
import json
import math
import random
from functools import cache

import pytest
import torch
from reward_runs import taught
from rows import Replies, batch_of, outcome

from rewardlab import registry
from rewardlab.core import Outputs, Run, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.reward_models.toolrm_fc import NO_CALL, Names, in_form, mined_calls, wrong_of
from rewardlab.tasks.sources import data_file
from rewardlab.verifiers.calls.calls import Call, read_all, tools_from
from rewardlab.verifiers.calls.verifier import function_calls, gold_of
from rewardlab.verifiers.contract import Pair

BUS = {
    "name": "bus",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "day": {"type": "integer"}, "seats": {"type": "integer"}},
        "required": ["city", "day"],
    },
}
TRAIN = {"name": "train", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
GOLD = [{"name": "bus", "arguments": {"city": "Rome", "day": 3, "seats": 2}}]


def problem(replies, answer=GOLD, **meta):
    return ask("Two seats to Rome on day 3.", answer, tools=[BUS, TRAIN], replies=replies, **meta)


def said(name, **arguments):
    return in_form([Call(name, arguments)])


WRONG = {
    "value": said("bus", city="Oslo", day=3, seats=2),
    "type": said("bus", city="Rome", day="3", seats=2),
    "missing_optional": said("bus", city="Rome", day=3),
    "missing_required": said("bus", city="Rome", seats=2),
    "unexpected": said("bus", city="Rome", day=3, seats=2, meal="soup"),
    "name": said("train", city="Rome"),
    "number": "\n".join([said("bus", city="Rome", day=3, seats=2)] * 2),
    "format": "<tool_call>bus to Rome",
}


def test_the_loss_is_bradley_terrys_and_keeps_the_sum_of_the_scores_near_0():
    batch = batch_of([[("rd", {"": outcome(0.0)})] * 2] * 2)
    out = Outputs(value=torch.tensor([[0.0, x] for x in (3.0, 1.0, -2.0, 2.0)]))
    loss = registry.build("toolrm_fc", {"center": 0.1}).also[-1].recipe.objective
    # differences 2 and -4, sums 4 and 0
    assert loss(out, batch, Run(None)).tolist() == pytest.approx([math.log1p(math.exp(-2)) + 1.6, math.log1p(math.exp(4))])
    assert str(registry.build("toolrm_fc").also[-1].recipe.objective) == "preference_loss(center=0.01)"


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_replies_are_told_from_right_ones_by_their_kind(kind):
    right = [said("bus", city="Rome", day=3, seats=2), 'bus(seats=2, city="Rome", day=3)']
    (found,) = wrong_of(problem([]), [*right, WRONG[kind]])
    assert (found.text, found.kind) == (WRONG[kind], kind)


def test_an_answer_without_gold_calls_is_refused():
    with pytest.raises(RewardlabError, match="no gold calls"):
        wrong_of(problem([], answer={"tools": [BUS]}), ["x"])


def test_made_up_names_are_the_same_in_catalog_and_calls_and_nothing_else_changes():
    names = Names(tools_from([BUS, TRAIN]), random.Random(0))
    tool, call = names.tool(BUS), names.call(Call("bus", {"city": "Rome", "day": 3}))
    assert call.name == tool["name"] != "bus"
    properties = tool["parameters"]["properties"]
    assert sorted(x["type"] for x in properties.values()) == ["integer", "integer", "string"]
    assert set(call.arguments) == set(tool["parameters"]["required"])
    assert list(call.arguments.values()) == ["Rome", 3]
    assert not properties.keys() & {"city", "day", "seats"}
    # the wrapper of OpenAI stays
    assert names.tool({"type": "function", "function": BUS}) == {"type": "function", "function": tool}


def test_names_that_no_tool_has_are_made_up_too_the_same_each_time():
    names = Names(tools_from([BUS, TRAIN]), random.Random(0))
    plane, again = (names.call(Call("plane", {"city": "Rome"})) for _ in range(2))
    meal = names.call(Call("bus", {"meal": "soup", "day": 3}))
    assert plane == again
    made = [plane.name, *plane.arguments, *meal.arguments]
    assert all(len(name) == 8 for name in made)
    assert len(set(made)) == 4
    assert (list(plane.arguments.values()), list(meal.arguments.values())) == (["Rome"], ["soup", 3])
    assert names.functions["plane"] not in (names.functions["bus"], names.functions["train"])
    assert meal.name == names.functions["bus"]


def test_replies_that_cannot_be_read_keep_their_names_and_are_in_no_pair_with_made_up_ones():
    run = Run(Replies([]))
    (group,) = mined_calls()([problem([WRONG["format"], WRONG["unexpected"], WRONG["format"] + " now"])], run)
    assert group[0].problem.meta["error"] == "unexpected"
    assert "bus" not in group[1].reply
    assert "meal" not in group[1].reply
    with pytest.raises(RewardlabError, match="no pair"):
        mined_calls()([problem([WRONG["format"]])], run)
    (group,) = mined_calls(obfuscate=False)([problem([WRONG["format"]])], run)
    assert group[1].reply == WRONG["format"]


def test_a_pair_is_the_gold_calls_and_wrong_ones_in_one_form_under_made_up_names():
    run = Run(Replies([]))
    (group,) = mined_calls()([problem(['bus(city="Oslo", day=3, seats=2)'])], run)
    shown, better, worse = group[0].problem, *(t.reply for t in group)
    assert shown.meta["error"] == "value"
    assert (run.metrics["wrong"], run.metrics["usable"]) == (1.0, 1.0)
    system, user = shown.prompt
    tools = [json.loads(line) for line in system.text.splitlines()[1:]]
    # by the tools that are shown one reply is right, and the other is not
    renamed = {"tools": tools}
    gold = [{"name": c.name, "arguments": c.arguments} for c in read_all([better], "hermes", 2.0)[0]]
    assert [function_calls().check(text, gold, meta=renamed).correct for text in (better, worse)] == [True, False]
    assert ("bus" in better + worse, "Rome" in better, "Oslo" in worse) == (False, True, True)
    assert user == problem([]).prompt[0]
    assert [t.reply for t in mined_calls()([problem(['bus(city="Oslo", day=3, seats=2)'])], run)[0]] == [better, worse]


def test_without_made_up_names_and_with_a_column_of_gold_replies_texts_stay():
    (group,) = mined_calls(obfuscate=False)([problem([WRONG["name"]])], Run(Replies([])))
    assert [t.reply for t in group] == [said("bus", city="Rome", day=3, seats=2), WRONG["name"]]
    (group,) = mined_calls(catalog=False)([problem(["so: train()"], chosen="the gold text")], Run(Replies([])))
    assert [t.reply for t in group] == ["the gold text", "so: train()"]
    assert len(group[0].problem.prompt) == 1


def test_where_no_call_is_wanted_a_reply_without_calls_is_preferred():
    (group,) = mined_calls(obfuscate=False)([problem([WRONG["name"], "No such tool."], answer=[])], Run(Replies([])))
    assert [t.reply for t in group] == [NO_CALL, WRONG["name"]]
    assert function_calls().check(NO_CALL, []).correct


def test_problems_that_no_reply_gets_wrong_are_replaced_and_the_policy_is_asked_where_rows_bring_no_replies():
    class Caller(Replies):
        def extend(self, trajectories, sampling, rng):
            return self.write(trajectories, self.replies[: len(trajectories)])

    run = Run(Caller(["bus(1)", said("bus", city="Rome", day=3, seats=2)]))
    run.more_problems = lambda n: [ask("Two seats to Rome on day 3.", GOLD, tools=[BUS])] * n
    right = problem([said("bus", city="Rome", day=3, seats=2)])
    (group,) = mined_calls(n=2, obfuscate=False)([right], run)
    assert (group[1].reply, group[0].problem.meta["error"]) == (in_form([Call("bus", {"city": 1})]), "missing_required")
    assert run.metrics["usable"] == 0.5
    assert run.metrics["wrong"] == pytest.approx((0 + 1 / 2) / 2)
    with pytest.raises(RewardlabError, match="makes wrong calls"):
        mined_calls()([right], Run(Replies([])))


# ---- real tools ----------------------------------------------------------------------------------------------------------------


@cache
def bfcl(name):
    def read(file):
        try:
            path = data_file("bfcl", f"{file}.jsonl.gz")
        except RewardlabError as lacking:
            pytest.skip(str(lacking))
        with gzip.open(path) as lines:
            return list(map(json.loads, lines))

    answers = {row["id"]: row["ground_truth"] for row in read(f"{name}_answers")}
    return [ask(row["question"][0][0]["content"], answers[row["id"]], function=row["function"]) for row in read(name)][:60]


@pytest.mark.parametrize("name", ["simple_python", "parallel_multiple", "live_simple"])
def test_on_bfcl_the_gold_side_is_right_and_each_slip_is_of_its_kind(name):
    for row in bfcl(name):
        gold = gold_of(Pair("", row.answer, row.question, row.meta))
        first, *rest = gold.calls
        assert wrong_of(row, [in_form(gold.calls)]) == []
        slips = {"name": Call("other_tool", first.arguments), "unexpected": Call(first.name, {**first.arguments, "zzz": 1})}
        required = [x for x in gold.tools[first.name].get("required", []) if x in first.arguments]
        if required:
            slips["missing_required"] = Call(first.name, {k: v for k, v in first.arguments.items() if k != required[0]})
        found = wrong_of(row, [in_form([slip, *rest]) for slip in slips.values()])
        assert [wrong.kind for wrong in found] == list(slips)
        assert [wrong.kind for wrong in wrong_of(row, [in_form([*gold.calls, first])])] == ["number"]
    # made-up names keep gold calls right by the tools that are shown
    names = Names(tools_from(row.meta["function"]), random.Random(1))
    shown = {"tools": [names.tool(tool) for tool in row.meta["function"]]}
    renamed = [names.call(call) for call in gold.calls]
    wanted = [{"name": c.name, "arguments": c.arguments} for c in renamed]
    assert function_calls().check(in_form(renamed), wanted, meta=shown).correct


def test_it_learns_from_a_users_rows_and_the_run_is_a_reward_model(tmp_path):
    after, scores = taught("toolrm_fc", tmp_path, [said("alarm", hour=7), "Good night!"])
    assert after["pair_accuracy"] == 1.0
    assert scores[0] != scores[1]
