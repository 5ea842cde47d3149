"""The reward agent: a served model routes, writes constraints as code, and judges facts; a sum by hand."""

from __future__ import annotations

import numpy as np
import pytest
from served_model import serving

from rewardlab import registry
from rewardlab.core import Message, Problem, Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.registry.formula import read_reward
from rewardlab.rewards.reward import reward
from rewardlab.rewards.verified_preference import verified_preference
from rewardlab.rollouts.best import best

SHORT, WHO, POEM = "Say hello in at most three words.", "Who wrote Faust?", "Write a poem."
PASSAGES = ["Goethe wrote Faust.", "Schiller wrote Die Raeuber."]


def reply(text: str, prompt: str, **meta) -> Trajectory:
    return Trajectory(ask(prompt, **meta), (Turn("policy", np.zeros(1, np.int64), text=text),), "end")


@reward
def length(trajectory):
    return 0.01 * len(trajectory.reply)


def agent(body) -> str:
    """What a capable model would say, by the request's own words. Its first function does not run."""
    said = body["messages"][-1]["content"]
    if said.startswith("Which checks"):
        return "[[A]]" if SHORT in said else "[[B]]" if WHO in said else "[[none]]"
    if said.startswith("List the constraints"):
        return 'Here: ["at most three words", "no digits"]'
    if said.startswith("Write a Python function"):
        if "at most three words" in said.partition("[Constraint]")[2].splitlines()[1]:
            broken = "[What was wrong" not in said
            return (
                f"```python\ndef check_following(response):\n    return {'lenght' if broken else 'len'}(response.split()) <= 3\n```"
            )
        return "```python\ndef check_following(response):\n    return not any(c.isdigit() for c in response)\n```"
    if "contradict each other" in said:
        return '["who wrote Faust"]'
    if "What should be looked up" in said:
        return "who wrote Faust"
    assert said.startswith("Which of two replies is more factual")
    assert "Goethe wrote Faust." in said.partition("[Instruction]")[0]
    first = said.partition("[Reply A]\n")[2].partition("\n\n[Reply B]")[0]
    return "A: [[9]] B: <<2>>" if "Goethe" in first else "A: [[2]] B: <<9>>"


def test_it_routes_writes_constraints_and_judges_facts():
    """Preferences alone like the longer reply; what the agent verifies turns them round, and leaves other prompts alone."""
    groups = [
        [reply("Hello there", SHORT), reply("Hello to all 7 of you", SHORT)],
        [reply("Schiller, I am quite sure", WHO, passages=PASSAGES), reply("Goethe", WHO, passages=PASSAGES)],
        [reply("Roses", POEM), reply("Roses are red", POEM)],
    ]
    run = Run(None)
    with serving(agent) as server:
        scores = verified_preference(model=server.name, preference=length())(groups, run)
        asked = [body["messages"][-1]["content"] for body in server.asked]
    found = [[s.total for s in row] for row in scores]
    # .11 + 1 + .5 against .21 + 0 + .5;  .25 + .5 + .2 against .06 + .5 + .9;  .05 and .13, + 1
    assert found[0] == pytest.approx([1.61, 0.71])
    assert found[1] == pytest.approx([0.95, 1.46])
    assert found[2] == pytest.approx([1.05, 1.13])
    assert (run.metrics["routed/form"], run.metrics["routed/facts"]) == pytest.approx((1 / 3, 1 / 3))
    # one function was put right once
    assert sum(text.startswith("Write a Python function") for text in asked) == 3
    assert scores[0][0].terms["form"].value == 1.0


def test_it_is_a_reward_by_name_and_chooses_the_best_of_n():
    with serving(agent) as server:
        made = read_reward(f'verified_preference(model="{server.name}", preference=length_penalty())')
        assert registry.load_part(made.to_json()) == made
        group = [reply("Hello to all 7 of you", SHORT), reply("Hello", SHORT)]
        scores = verified_preference(model=server.name, preference=length())([group], Run(None))
    # as `best_of_n --reward` selects, and as pairs are made: the higher one is the answer, or the chosen one
    assert scores[0][1].total > scores[0][0].total
    assert best()(group, scores[0], Run(None)).reply == "Hello"


def test_a_server_that_says_nothing_of_use_leaves_the_preference():
    groups = [[reply("a", SHORT), reply("bb", SHORT)], [reply("one", WHO)]]
    for says in (lambda body: "[[A]] [[B]] hm", lambda body: ""):
        with serving(says) as server:
            scores = verified_preference(model=server.name, preference=length())(groups, Run(None))
        assert [[s.total for s in row] for row in scores] == [[pytest.approx(1.01), pytest.approx(1.02)], [pytest.approx(1.03)]]


def test_a_model_that_is_not_served_is_refused():
    with pytest.raises(RewardlabError, match="openai:"):
        verified_preference(model="policy")


def test_a_conversation_is_judged_whole():
    turns = (Message("user", SHORT), Message("assistant", "Hi"), Message("user", "Again."))
    group = [
        Trajectory(Problem(turns), (Turn("policy", np.zeros(1, np.int64), text=text),), "end")
        for text in ("Hello", "Hello to you all")
    ]
    with serving(agent) as server:
        scores = verified_preference(model=server.name, preference=length())([group], Run(None))
    # the constraint was said in the first turn
    assert [s.terms["form"].value for s in scores[0]] == [1.0, 0.5]
