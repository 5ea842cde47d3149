"""Router-R1: other models asked by name, form, right answers and cost."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.agents.router_r1 import call_in, cheapness, fault_of, routed, router_r1, well_formed
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.asked import experts_in, named
from rewardlab.worlds.pools import POOL
from tests.helpers.scripted import ScriptedPolicy

EXPERTS = experts_in(
    '[{"name": "Qwen2.5-7B", "price": 0.3, "column": "qwen"}, {"name": "Llama 70B", "price": 0.9, "column": "llama"}]'
)
GOOD = (
    "<think>I need the author of Faust.</think><search>Qwen2.5-7B: Who wrote Faust?</search>"
    "<information>Goethe wrote it.</information><think>He was born in Frankfurt.</think><answer>Germany</answer>"
)
PROMPT = ask(
    "Where was the author of Faust born?", "Germany", qwen="Goethe wrote it.", llama=["Goethe wrote Faust.", "Born in Bonn."]
)


@reward
def verify(trajectory):
    text = trajectory.reply
    return Score(None, why="no verdict") if "?" in text else float("<answer>Germany</answer>" in text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOOD, ""),
        (GOOD.replace("Qwen2.5-7B:", "llama70b :"), ""),  # names are read in any case and spacing
        ("<think>I know.</think><answer>Germany</answer>", ""),
        ("<answer>Germany</answer>", "not one answer, some thinking"),
        ("The answer is Germany.", "not one answer"),
        (GOOD + " I am sure.", "begin with thinking and end"),
        (GOOD + "<answer>Austria</answer>", "not one answer"),
        (GOOD.replace("</think><search>", "<search>"), "not closed"),
        (GOOD.replace("Who wrote Faust?", "Who <think>wrote</think> it"), "in one another"),
        (GOOD.replace("I need the author of Faust.", "..."), "empty thinking"),
        (GOOD.replace("Qwen2.5-7B", "GPT"), "no model of the pool"),
        (GOOD.replace("Who wrote Faust?", " "), "without a question"),
        (GOOD.replace("Who wrote Faust?", "Tell Qwen2.5-7B: who wrote it"), "no model of the pool"),
        (GOOD.replace("<information>Goethe wrote it.</information>", ""), "an answer to each call"),
    ],
)
def test_the_form_of_an_episode(text, says):
    fault = fault_of(text, EXPERTS)
    assert says in fault
    assert bool(fault) == bool(says)


def test_a_thought_that_the_chat_template_opened_is_no_fault():
    """Templates of reasoning models end with <think>, so that what is sampled begins within the thought."""
    whole = episode(("Llama 70B: who", 1.0), last="<think>So.</think><answer>Germany</answer>")
    within = episode(("Llama 70B: who", 1.0), last="So.</think><answer>Germany</answer>")
    begun = replace(within, turns=tuple(replace(u, text=u.text.removeprefix("<think>")) for u in within.turns))
    unclosed = episode(last="<think>So.<answer>Germany</answer>")
    scores = well_formed(experts=EXPERTS)([[whole, within, begun, unclosed]])[0]
    assert [s.value for s in scores] == [1.0, 1.0, 1.0, -1.0]


def episode(*pairs: tuple[str, float | None], last: str) -> Trajectory:
    """Calls, each with its cost, and a last reply."""
    zero, none = np.zeros(1, np.int64), np.zeros(1, np.float32)
    turns = [Turn(None, zero)]
    for call, cost in pairs:
        turns.append(
            Turn("policy", zero, np.zeros(1, np.float32), np.zeros(1, np.float32), f"<think>why</think><search>{call}</search>")
        )
        turns.append(Turn(None, zero, text="<information>x</information>", reward=None if cost is None else -cost))
    turns.append(Turn("policy", zero, none, none, last))
    return Trajectory(PROMPT, tuple(turns), "end")


END = "<think>so</think><answer>{}</answer>"


def test_rewards_by_hand():
    run = Run(policy=None, verify=verify())
    recipe = router_r1(pool=json.dumps(EXPERTS), cost=0.5)
    group = [
        episode(last=END.format("Germany")),  # the only cost so far: 1/2
        episode(("Llama 70B: who", 16.0), last=END.format("Germany")),
        episode(("Llama 70B: who", 4.0), last=END.format("Austria")),
        episode(("Nobody: who", 0.0), last=END.format("Germany")),  # wrong form: -1, however right and cheap
        episode(last="<think>so</think><answer>?</answer>"),  # no verdict
    ]
    totals = [s.total for s in recipe.reward([group], run)[0]]
    # roots 0; 0 4: 5% and 95% of (0, 4) are .2 and 3.8; 4 is above
    assert totals[0] == pytest.approx(0.5 + 0.5 * 0.5)
    assert totals[1] == pytest.approx(0.5 + 0.5 * 0.0)
    # wrong: nothing, however cheap
    assert totals[2] == 0.0
    assert totals[3:] == [-1.0, None]
    # without the weight of cost, right answers alone
    alone = [s.total for s in router_r1(pool=json.dumps(EXPERTS), cost=0.0).reward([group], run)[0]]
    assert alone == [1.0, 1.0, 0.0, -1.0, None]


def test_costs_are_compared_with_those_of_earlier_steps_and_a_step_scored_again_is_scored_alike():
    run = Run(policy=None, verify=verify())
    first = [s.value for s in cheapness(window=3)([[episode(("a", x), last="") for x in (1.0, 9.0)]], run)[0]]
    assert first == [0.5, 0.0]
    run.step = 1
    later = [[episode(("a", 4.0), last="")]]
    # roots 1, 3 and 2: 5% and 95% are 1.1 and 2.9
    assert cheapness(window=3)(later, run)[0][0].value == pytest.approx(1 - 0.9 / 1.8)
    assert cheapness(window=3)(later, run)[0][0].value == pytest.approx(0.5)
    run.step = 2
    # the first one has left the window: 3, 2, and 2
    assert cheapness(window=3)(later, run)[0][0].value == 1.0
    held = run.for_evaluation()
    cheapness(window=3)(later, held)
    assert len(run.memory["router_r1.costs"]) == 3


class Talker(ScriptedPolicy):
    def text_lengths(self, texts):
        return [len(text) for text in texts]

    def read(self, trajectories, messages):
        self.heard = [m[-1].text for m in messages]
        return [
            t.plus(Turn(None, np.array([1]), text=m[-1].text, reward=m[-1].reward))
            for t, m in zip(trajectories, messages, strict=True)
        ]


def test_calls_are_answered_and_charged():
    calls = {
        0: ["<think>a</think><search>llama 70b: Who wrote Faust</search>", "<search>GPT: x</search>", "<search>no colon</search>"],
        1: [END.format("Germany"), END.format("?"), "never"],
    }
    policy = Talker(lambda t: calls[len(t.replies)])
    (group,) = routed(experts=EXPERTS, n=3, turns=3)([PROMPT], Run(policy, max_new=200))
    # the text of two that fits the question best, of 19 characters at .9 each
    assert [u.text for u in group[0].turns[1:]][1] == "<information>Goethe wrote Faust.</information>"
    assert group[0].paid[0][1] == pytest.approx(-0.9 * 19)
    # a name of nobody is told so, at no cost; what is no call ends the episode
    assert [u.text for u in group[1].turns[1:]][1] == "<information>None</information>"
    assert group[1].paid == [(group[1].ends[0], 0.0)]
    assert (len(group[2].replies), group[2].stop) == (1, "end")
    assert "Qwen2.5-7B (0.3 per million tokens)" in group[0].turns[0].text
    batch = collate([group], None, torch.device("cpu"))
    # what models say is masked
    assert int(batch.mask[0].sum()) == sum(len(r) + 1 for r in group[0].replies)


def test_the_last_reply_asks_nobody():
    policy = Talker(lambda t: ["<think>a</think><search>Qwen2.5-7B: Who wrote it</search>"])
    (group,) = routed(experts=EXPERTS, n=1, turns=2)([PROMPT], Run(policy, max_new=200))
    assert [u.author for u in group[0].turns] == [None, "policy", None, "policy"]
    assert len(group[0].paid) == 1


def test_calls_are_read_in_replies_of_real_models():
    assert call_in("<think>x</think>\n\n<search> Llama 70B: Who wrote: Faust? </search>") == ("Llama 70B", "Who wrote: Faust?")
    assert call_in("<search>first: a</search> <search>second: b</search>") == ("second", "b")
    assert call_in("<search>a: b</search><answer>c</answer>") is None
    assert call_in("I would search: for it") is None


@pytest.mark.parametrize(
    ("pool", "says"),
    [
        ("nowhere.json", "cannot be read"),
        ("[1", "is not JSON"),
        ("[]", "no list of models"),
        ('[{"about": "x"}]', "needs a name"),
        ('[{"name": "a", "model": "copy:policy"}, {"name": "A", "model": "copy:policy"}]', "a name of its own"),
        ('[{"name": "a"}]', "either a model or a column"),
        ('[{"name": "a", "price": -1, "model": "copy:policy"}]', "a price from 0 up"),
    ],
)
def test_a_pool_that_cannot_be_asked_is_refused(pool, says):
    with pytest.raises(RewardlabError, match=says):
        router_r1(pool=pool)


def test_models_of_the_run_are_frozen_and_served_ones_are_none(tmp_path):
    file = tmp_path / "pool.json"
    file.write_text(json.dumps([
        {"name": "Own", "model": "copy:policy", "price": 1}, {"name": "Far", "model": "openai:http://localhost:1/v1#x", "price": 2},
    ]))  # fmt: skip
    recipe = registry.build("router_r1", {"pool": str(file)})
    assert [(x.name, x.every) for x in recipe.also] == [("critic", 1), ("expert.Own", 0)]
    assert named(" far", experts_in(str(file)))["price"] == 2


def test_the_world_of_the_check_can_be_solved_by_the_cheap_expert_where_it_knows():
    task = registry.task("pools")
    for problem in task.test[:20]:
        *calls, last = problem.meta["solution"][::2]
        assert last.endswith(f"<answer>{problem.answer}</answer>")
        assert all(("Mini" in c) == any(r in c for r in ("friend", "boss")) for c in calls)
        text = "".join(problem.meta["solution"])
        assert fault_of(text, experts_in(POOL)) == ""
