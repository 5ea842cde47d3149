"""GRAIL: ways through a knowledge graph, and what each turn adds to the shortest one."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.envs.knowledge_graph import action_in, graph_of, knowledge_graph, knows
from rewardlab.errors import RewardlabError
from rewardlab.methods.agents.grail import (
    PATHS,
    actions_of,
    grail,
    judged,
    points_of,
    remember_ways,
    said_of,
    shortest_way,
    ways_written,
)
from rewardlab.rewards.reward import reward
from tests.methods.test_agent_r import Talker

TRIPLES = [
    ["Faust", "author", "Goethe"],
    ["Goethe", "born in", "Frankfurt"],
    ["Frankfurt", "country", "Germany"],
    ["Goethe", "died in", "Weimar"],
    ["Weimar", "country", "Germany"],
    ["Faust", "language", "German"],
]
PROBLEM = ask("In which country was the author of Faust born?", "Germany", triples=TRIPLES, entities=["Faust"])
WAY = [tuple(t) for t in TRIPLES[:3]]


@reward
def verify(trajectory):
    return float("<answer>Germany</answer>" in trajectory.reply)


def said(text: str) -> Turn:
    return Turn("policy", np.zeros(1, np.int64), text=text)


def episode(*replies: str) -> Trajectory:
    one, none = np.zeros(1, np.int64), np.zeros(1, np.float32)
    turns = [Turn(None, one)]
    for i, text in enumerate(replies):
        turns += [Turn(None, one)] if i else []
        turns.append(Turn("policy", one, none, none, text))
    return Trajectory(PROBLEM, tuple(turns), "end")


DIRECT = episode(
    "<think>Who wrote it?</think><explore>Faust</explore>", "<choose>author</choose>", "<explore>Goethe</explore>",
    "<choose>born in; died in</choose>", "<explore>Frankfurt</explore>", "<choose>country</choose>", "<answer>Germany</answer>",
)  # fmt: skip


def test_the_graph_shows_what_is_around_an_entity_and_keeps_what_is_chosen():
    env = knowledge_graph()
    message, state = env.start(PROBLEM, 0)
    assert message.text.endswith("Start from: Faust")
    assert env.stop == ("</explore>", "</choose>", "</answer>")
    answer, state = env(state, said("<think><explore>Weimar</explore>?</think><explore> goethe </explore>"))
    assert answer.text == "Faust | author | Goethe\nGoethe | born in | Frankfurt\nGoethe | died in | Weimar"
    assert env(state, said("<choose>Born in; author</choose>"))[0].text == "Faust | author | Goethe\nGoethe | born in | Frankfurt"
    assert env(state, said("<choose>spouse</choose>"))[0].text == "None of them."
    assert env(state, said("<explore>Nobody</explore>"))[0].text == "Nothing is known of it."
    assert env(state, said("<answer>Germany</answer>"))[0] is None
    assert env(state, said("It is Germany."))[0] is None
    assert len(knowledge_graph(most=1)(state, said("<explore>Goethe</explore>"))[0].text.splitlines()) == 1


def test_a_graph_may_be_a_file(tmp_path):
    tsv, jsonl = tmp_path / "g.tsv", tmp_path / "g.jsonl"
    tsv.write_text("\n".join("\t".join(t) for t in TRIPLES))
    jsonl.write_text("\n".join(json.dumps(dict(zip(("head", "relation", "tail"), t, strict=True))) for t in TRIPLES))
    bare = ask("?", "x", entities=["Faust"])
    for file in (tsv, jsonl):
        env = knows(None, str(file))
        _, state = env.start(bare, 0)
        assert env(state, said("<explore>Weimar</explore>"))[0].text.splitlines()[-1] == "Weimar | country | Germany"
        assert graph_of(bare, str(file)) == graph_of(PROBLEM, "")
    with pytest.raises(RewardlabError, match="no list of"):
        knowledge_graph().start(bare, 0)
    with pytest.raises(RewardlabError, match="entities"):
        knowledge_graph().start(ask("?", "x", triples=TRIPLES), 0)
    with pytest.raises(RewardlabError, match="is no file"):
        grail(graph="nowhere.tsv").rollout.settings["inner"].settings["env"].start(bare, 0)
    tsv.write_text("a\tb\n")
    with pytest.raises(RewardlabError, match="row 1 of the graph"):
        knows(None, str(tsv)).start(bare, 0)


def test_the_shortest_way_in_what_was_seen():
    assert shortest_way(WAY, ["Faust"], ["germany"]) == WAY
    # in either direction, and from the nearest start
    assert shortest_way(WAY, ["Germany"], ["Faust"]) == WAY[::-1]
    assert shortest_way(WAY, ["Faust", "Goethe"], ["Germany"]) == WAY[1:]
    assert shortest_way(WAY[:2], ["Faust"], ["Germany"]) is None
    assert shortest_way(WAY, ["Germany"], ["Germany"]) is None
    assert points_of(WAY[::-1], ["Germany"]) == [("Germany", "country"), ("Frankfurt", "born in"), ("Goethe", "author")]


def test_turns_by_hand():
    wrong = [
        "<explore>Faust</explore>",  # on the way: 1, 0
        "<choose>language; author</choose>",  # the one relation, and one of two is superfluous: 1, -1/2
        "<explore>German</explore>",  # off the way: 0, -1
        "<choose>author</choose>",  # not what is wanted there: 0, -1
        "<explore>faust</explore>",  # again: 0, -1
        "I am not sure.",  # no action: 0, -1
        "<answer>Germany</answer>",  # 0, 0
    ]
    assert judged(wrong, WAY, ["Faust"]) == [(1, 0), (1, -0.5), (0, -1), (0, -1), (0, -1), (0, -1), (0, 0)]
    assert judged(DIRECT.replies, WAY, ["Faust"]) == [(1, 0), (1, 0), (1, 0), (1, -0.5), (1, 0), (1, 0), (0, 0)]
    assert judged([], WAY, ["Faust"]) == []


def test_a_relation_that_was_chosen_is_paid_once():
    again = ["<explore>Faust</explore>", "<choose>author</choose>", "<choose>author</choose>", "<choose>author; language</choose>"]
    assert judged(again, WAY, ["Faust"]) == [(1, 0), (1, 0), (0, -1), (0, -1)]


def test_ways_are_remembered_of_right_episodes_alone_and_only_if_shorter():
    run = Run(policy=None, verify=verify())
    lucky = episode("<explore>Faust</explore>", "<answer>Germany</answer>")
    remember_ways([[lucky]], run, "")
    # the answer was not in what it saw
    assert run.memory[PATHS] == {}
    remember_ways([[episode(*DIRECT.replies[:-1], "<answer>Austria</answer>")]], run, "")
    assert run.memory[PATHS] == {}
    remember_ways([[DIRECT]], run, "")
    assert run.memory[PATHS] == {PROBLEM.key: [list(t) for t in WAY]}
    remember_ways(
        [[episode("<explore>Goethe</explore>", "<explore>Faust</explore>", "<explore>Weimar</explore>", DIRECT.reply)]], run, ""
    )
    assert run.memory[PATHS] == {PROBLEM.key: [list(t) for t in WAY]}


def test_the_credit_of_each_turn_is_its_own():
    run = Run(policy=None, verify=verify())
    remember_ways([[DIRECT]], run, "")
    recipe = grail(sft_steps=0, precise=1.0, concise=0.5)
    a = episode("<explore>Faust</explore>", "<choose>author</choose>", "<answer>Germany</answer>")
    b = episode("<explore>German</explore>", "<choose>author; language</choose>", "<answer>Austria</answer>")
    batch = collate([[a, b]], recipe.reward([[a, b]], run), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)[batch.mask].view(2, 3)
    # precision 1 1 0 and 0 0 0, conciseness 0 0 0 and -1 -1 0: mean 1/3 and -1/3, the same deviation; outcomes 1 and 0
    spread = float(np.std([1, 1, 0, 0, 0, 0], ddof=1))
    up, down = (1 - 1 / 3) / spread, -(1 / 3) / spread
    outcome = 0.5 / float(np.std([1, 0], ddof=1))
    expected = [
        [up - 0.5 * down, up - 0.5 * down, down - 0.5 * down + outcome],
        [down - 0.5 * up, down - 0.5 * up, down - 0.5 * down - outcome],
    ]
    assert torch.allclose(credit, torch.tensor(expected), atol=2e-3)
    # without a way, the answer alone
    alone = recipe.reward([[a, b]], Run(policy=None, verify=verify()))
    assert [s.total for s in alone[0]] == [1.0, 0.0]


def test_the_way_is_written_as_an_episode_with_the_thoughts_that_were_had():
    steps = [
        "<think>Who wrote it?</think><explore>Faust</explore>",
        *(f"<explore>{name}</explore>" for name in ("Goethe", "Weimar", "Frankfurt")),
        "<answer>Germany</answer>",
    ]
    policy = Talker(lambda t: [steps[len(t.replies)]])
    policy.context = 10_000
    run = Run(policy, max_new=200, verify=verify())
    ((row,),) = ways_written(env=knowledge_graph(tell=""), n=1, turns=7)([PROBLEM], run)
    way = run.memory[PATHS][PROBLEM.key]
    # both towns lead to Germany; the one that was seen first counts
    assert [t[1] for t in way] == ["author", "born in", "country"]
    assert row.replies == [
        "<think>Who wrote it?</think><explore>Faust</explore>", "<choose>author</choose>", "<explore>Goethe</explore>",
        "<choose>born in</choose>", "<explore>Frankfurt</explore>", "<choose>country</choose>", "<answer>Germany</answer>",
    ]  # fmt: skip
    assert row.turns[2].text == "Faust | author | Goethe\nFaust | language | German"
    assert run.metrics["solved"] == 1
    lost = Run(Talker(lambda t: ["<answer>Austria</answer>"]), max_new=200, verify=verify())
    ((nothing,),) = ways_written(env=knowledge_graph(tell=""), n=1, turns=2)([PROBLEM], lost)
    assert not nothing.mask.any()


def test_actions_are_read_in_replies_of_real_models():
    assert action_in("<think>first <answer>x</answer></think>\nOK: <choose>born in;\ndied in ;</choose>") == (
        "choose",
        ("born in", "died in"),
    )
    assert action_in("<explore>Goethe") == ("explore", ("Goethe",))
    assert action_in("The answer is Germany.") is None
    assert said_of(("explore", ("Goethe",)), ["no", "I look: <explore>goethe</explore>"]) == "I look: <explore>goethe</explore>"
    assert actions_of(WAY[:1], ["Faust"], "x") == [("explore", ("Faust",)), ("choose", ("author",)), ("answer", ("x",))]


def test_what_it_is_made_of_and_the_world_of_the_check():
    recipe = registry.build("grail", {"explorer": "copy:policy"})
    assert [x.name for x in recipe.also] == ["explorer"]
    assert recipe.loop.settings["steps"] == 20
    task = registry.task("kin")
    for problem in task.test[:10]:
        *_, last = problem.meta["solution"]
        assert last == f"<answer>{problem.answer}</answer>"
        assert shortest_way([tuple(t) for t in problem.meta["triples"]], problem.meta["entities"], [problem.answer])
