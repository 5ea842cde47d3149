"""RLAC: a critic names one demand, a validator checks it, the generator is paid where it is met and the critic where it is not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from rows import Replies, batch_of, outcome

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Outputs, Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.judges.rlac import (
    CRITICISED,
    QUESTION,
    finds_failure,
    named,
    online_pairs,
    rlac,
    survives,
    to_criticise,
)
from rewardlab.models.embedded import untrained
from rewardlab.rewards.checklists import Item

ASK, VALIDATE = "criticise|{prompt}|{reply}", "validate|{prompt}|{reply}|{item}"
HAS = "def verify_requirement(text):\n    return {word!r} in text.split()"
ITEMS = [{"item": word, "program": HAS.format(word=word)} for word in ("red", "blue")]
NOTE = ask("Name colours.", None, checklist=ITEMS)
FREE = ask("Name colours.", None)


class Says(Replies):
    """A model that says what `says` makes of the parts of a question; it keeps the questions."""

    def __init__(self, says):
        super().__init__([])
        self.says, self.asked = says, []

    def extend(self, trajectories, sampling, rng):
        self.asked += [t.problem.question for t in trajectories]
        said = [self.says(*t.problem.question.split("|")[1:]) for t in trajectories]
        return [t.plus(Turn("policy", np.zeros(1, np.int64), text=x), "end") for t, x in zip(trajectories, said, strict=True)]


def replied(problem, *texts: str) -> list[Trajectory]:
    return [Trajectory(problem, (Turn("policy", np.zeros(1, np.int64), text=text),), "end") for text in texts]


def with_models(**models) -> Run:
    return Run(policy=None, models=models, max_new=8)


def values(part, group, run) -> list[float | None]:
    (scores,) = part([group], run)
    return [s.value for s in scores]


# ---- the demand that is checked ------------------------------------------------------------------------------------------


def test_a_critique_names_the_item_that_it_mentions_last():
    items = [Item("red"), Item("blue")]
    assert named("Red is there, but not BLUE.", items) == items[1]
    assert named("All is well.", items) is None
    # without a checklist it is what the last line says
    assert named("Hm.\nSay where she was born.\n", []) == Item("Say where she was born.")
    assert named(" \n", []) is None
    # of demands that begin alike the one that is meant, and nothing that was only thought of
    alike = [Item("one a line, numbered"), Item("one a line")]
    assert named("It fails: one a line, numbered", alike) == named("It fails: one a line, numbered", alike[::-1]) == alike[0]
    assert named("<think>one a line?</think> one a line, numbered", alike) == alike[0]
    assert named("<think>Is it red?\nBlue, perhaps", []) is None


def test_a_reply_is_paid_by_the_one_demand_that_the_critic_names():
    """The critic always names blue: 'red' fails it, 'blue' meets it although red is missing. Two checks, one a reply."""
    run = with_models(critic=Says(lambda prompt, reply: "no blue"))
    assert values(survives(ask=ASK), replied(NOTE, "red", "blue"), run) == [0.0, 1.0]
    assert run.metrics["validator_calls"] == 2
    assert run.models["critic"].asked == ["criticise|Name colours.|red", "criticise|Name colours.|blue"]


def test_a_critique_that_names_nothing_harms_nobody_and_is_not_checked():
    run = with_models(critic=Says(lambda prompt, reply: "Fine."))
    assert values(survives(ask=ASK), replied(NOTE, "green"), run) == [1.0]
    assert run.metrics["validator_calls"] == 0


def test_rivals_check_one_demand_by_chance_or_all_of_them():
    group = replied(NOTE, "red", "blue red", "green", "blue red")
    run = with_models()
    assert values(survives(choice="all"), group, run) == [0.0, 1.0, 0.0, 1.0]
    assert run.metrics["validator_calls"] == 8
    run = with_models()
    found = values(survives(choice="random"), group * 8, run)
    assert set(found[0::4]) == {0.0, 1.0}
    assert set(found[1::4]) == {1.0}
    assert run.metrics["validator_calls"] == 32
    with pytest.raises(RewardlabError, match="checklist"):
        values(survives(choice="all"), replied(FREE, "red"), with_models())


def test_demands_without_a_program_go_to_the_validator_model():
    models = {
        "critic": Says(lambda prompt, reply: "Name blue."),
        "validator": Says(lambda prompt, reply, item: {"red": "[[no]]", "blue": "It does. [[yes]]"}.get(reply, "Hm.")),
    }
    run = with_models(**models)
    assert values(survives(ask=ASK, validate=VALIDATE), replied(FREE, "red", "blue", "green"), run) == [0.0, 1.0, None]
    assert models["validator"].asked[0] == "validate|Name colours.|red|Name blue."
    assert run.metrics["validator_calls"] == 3
    # where there is no validator, nobody can tell
    assert values(survives(ask=ASK), replied(FREE, "red"), with_models(critic=models["critic"])) == [None]


# ---- the critic ----------------------------------------------------------------------------------------------------------


def test_the_critic_is_paid_where_the_check_fails():
    """Of the reply 'red': blue is missing, red is not; a critique without a demand is paid nothing. Calls add up in a step."""
    problem = replace(NOTE, meta={"checklist": ITEMS, QUESTION: "Name colours.", CRITICISED: "red"})
    run = with_models()
    run.log("validator_calls", 5)
    assert values(finds_failure(), replied(problem, "blue", "red", "Fine."), run) == [1.0, 0.0, 0.0]
    assert run.metrics["validator_calls"] == 7
    assert run.metrics["failures_found"] == pytest.approx(1 / 3)


def test_each_different_reply_is_criticised_once():
    first, second = to_criticise(each=2, ask=ASK)([replied(NOTE, "red", "red", "blue", "x")], [], with_models(critic=Replies([])))
    assert (first.question, second.question) == ("criticise|Name colours.|red", "criticise|Name colours.|blue")
    assert (first.meta[QUESTION], first.meta[CRITICISED], first.meta["checklist"]) == ("Name colours.", "red", ITEMS)
    assert CRITICISED not in NOTE.meta


def test_the_game_is_zero_sum_for_a_demand_that_is_named():
    critic = Says(lambda prompt, reply: "blue")
    paid = values(survives(ask=ASK), replied(NOTE, "red", "blue"), with_models(critic=critic))
    asked = to_criticise(ask=ASK)([replied(NOTE, "red", "blue")], [], with_models(critic=critic))
    earned = [values(finds_failure(), replied(p, "blue"), with_models())[0] for p in asked]
    assert [a + b for a, b in zip(paid, earned, strict=True)] == [1.0, 1.0]


# ---- the pairs -----------------------------------------------------------------------------------------------------------


def test_pairs_by_hand():
    """Rewards 1, 0, 0, none; log m/old .4, -.2, 0 and 9: margins .6 and .4 at beta 1/2: .3, .2; the last row makes no pair.

    The second group has no pair, for its rewards are the same.
    """
    rows = [[("rd", {"r": outcome(x)}) for x in (1.0, 0.0, 0.0, None)], [("rd", {"r": outcome(1.0)})] * 2]
    batch = batch_of(rows)
    batch.old = torch.zeros_like(batch.reward)
    logprobs = torch.tensor([[9.0, x] for x in (0.4, -0.2, 0.0, 9.0, 1.0, 2.0)])
    loss = online_pairs(beta=0.5)(Outputs(logprobs=logprobs), batch, Run(policy=None))
    expected = sum(math.log1p(math.exp(-0.5 * gap)) for gap in (0.6, 0.4)) / 2
    assert loss.tolist() == pytest.approx([expected, 0.0])


def test_both_models_take_steps_and_rivals_have_no_critic(tmp_path):
    task = registry.task("failings", test_size=2)
    short = {"steps": 1, "eval_problems": 2, "max_new": 4, "device": "cpu", "patience": 0, "max_missing": 1.0}
    recipe = rlac(ask="{prompt}\n{reply}", n=2, critiques=2, problems=2, max_critique=4)
    assert train(recipe, untrained(0, task=task), task, out=tmp_path / "run", **short).summary["after"]["n"] == 2
    assert [x.name for x in recipe.also] == ["critic", "validator"]
    assert [x.name for x in rlac(choice="random", validator="").also] == []
