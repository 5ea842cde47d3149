"""PRA: evidence for each step, by an agent and by words, and the beams that it prunes."""

from __future__ import annotations

import json
import random

import pytest
from scripted import ScriptedPolicy

from rewardlab import registry
from rewardlab.core import Run, Trajectory, ask
from rewardlab.methods.process.process_reward_agents import process_reward_agents
from rewardlab.models.embedded import untrained
from rewardlab.rewards.evidence import borne_out, evidenced_steps, query_in
from rewardlab.text.splitters import mark

PASSAGES = ["The friend of Ann is Bob.", "The boss of Bob is Cal.", "The boss of Ann is Dee."]
TRUE, FALSE = "The friend of Ann is Bob.\n", "The friend of Ann is Dee.\n"
SAYS = {
    "": [FALSE, TRUE], FALSE: ["Answer: Dee"], TRUE: ["The boss of Bob is Dee.\n", "The boss of Bob is Cal.\n"],
    TRUE + "The boss of Bob is Cal.\n": ["Answer: Cal"], TRUE + "The boss of Bob is Dee.\n": ["Answer: Dee"],
}  # fmt: skip
PROBLEM = ask("Who is the boss of the friend of Ann?", "Cal", passages=PASSAGES)


def written(policy, text, problem=PROBLEM):
    (t,) = policy.write(policy.read([Trajectory(problem)], [problem.prompt]), [text])
    return mark(t, "newline", policy.pieces, policy.name)


def test_false_steps_are_known_by_what_is_looked_up():
    policy = untrained(hidden=32, layers=1)
    rows = [
        written(policy, text) for text in (TRUE + "The boss of Bob is Dee.\nAnswer: Dee", "Answer: Cal", "The boss of Bob is Cal.")
    ]
    found = borne_out()([rows], Run(policy))[0]
    # the first line is in a passage, the second in none; the last line names one thing only
    assert [x for _, x in found[0].steps] == [1.0, 0.0]
    assert [at for at, _ in found[0].steps] == list(rows[0].steps[:2])
    assert (found[1].value, found[1].steps) == (0.5, ())
    assert found[2].total == 1.0
    # the same words in another order are another claim, of which nothing is known; nor is of one that no passage is like
    for text in ("The friend of Bob is Ann.", "The teacher of Cal is Ann."):
        assert borne_out()([[written(policy, text)]], Run(policy))[0][0].steps == ()
    assert borne_out()([[written(policy, TRUE, ask("?"))]], Run(policy))[0][0].value is None
    # passages with titles, and as JSON of a table, are passages too
    for passages in ([{"title": "Ann", "text": text} for text in PASSAGES], json.dumps(PASSAGES)):
        told = written(policy, (TRUE + FALSE).strip(), ask("?", passages=passages))
        assert [x for _, x in borne_out()([[told]], Run(policy))[0][0].steps] == [1.0, 0.0]


def test_beams_with_a_false_step_are_pruned_at_once():
    policy = ScriptedPolicy(SAYS)
    recipe = process_reward_agents(agent=borne_out(), width=1, branch=2)
    (group,) = recipe.rollout([PROBLEM], Run(policy, max_new=200))
    assert [t.reply for t in group] == [TRUE + "The boss of Bob is Cal.\nAnswer: Cal"] * 2
    # the false first step was sampled, and never gone on from
    assert policy.calls[1] == [TRUE, TRUE]
    # rewards of steps add up: one true step of two, both, and, though none of its steps is false, one alone
    model = untrained(hidden=32, layers=1)
    texts = [FALSE + "The boss of Bob is Cal.", TRUE + "The boss of Bob is Cal.", TRUE, FALSE]
    (scores,) = recipe.reward([[written(model, text.strip()) for text in texts]], Run(policy))
    assert [s.total for s in scores] == [1.0, 2.0, 1.0, 0.0]


class Agent:
    """A model whose queries are written down; its chances are those of untrained weights."""

    def __init__(self):
        self.policy, self.asked = untrained(hidden=32, layers=1), []
        self.context = 4000

    def read(self, rows, messages):
        self.asked += [m[-1].text for m in messages]
        return self.policy.read(rows, messages)

    def extend(self, rows, sampling, rng):
        said = ["No search" if "Answer" in t.problem.question.split("so far:")[1] else "Search: boss of Bob" for t in rows]
        return self.policy.write(rows, said)

    def write(self, rows, texts):
        return self.policy.write(rows, texts)

    def score(self, rows):
        return self.policy.score(rows)


def test_an_agent_decides_what_it_looks_up_and_reads_it_before_it_judges():
    policy, agent = untrained(hidden=32, layers=1), Agent()
    run = Run(policy, models={"judge": agent})
    t = written(policy, "The boss of Bob is Cal.\nAnswer: Cal")
    (scores,) = evidenced_steps(k=1)([[t, t]], run)
    # two beginnings, each asked about once, though two replies share them
    first, last, *told = agent.asked
    assert "Reasoning so far:\nThe boss of Bob is Cal.\n\n" in first
    assert "Answer: Cal" in last
    assert "Evidence:\nThe boss of Bob is Cal." in told[0]
    assert "Evidence:\nnone" in told[1]
    assert run.metrics["searched"] == 0.5
    assert scores[0].steps == scores[1].steps
    assert [at for at, _ in scores[0].steps] == list(t.steps)
    assert all(0 < x < 1 for _, x in scores[0].steps)
    assert query_in("hm\nSearch: a b") == "a b"
    assert query_in("No search") is None


@pytest.mark.slow
def test_the_world_is_remembered_wrongly_and_can_be_looked_up():
    task = registry.task("recalled", test_size=40)
    policy, rng = untrained(hidden=32, layers=1), random.Random(0)
    gold = [written(policy, p.meta["solution"], p) for p in task.test]
    assert all(s.total == 3.0 for (s,) in borne_out()([[t] for t in gold], Run(policy)))
    said = [written(policy, task.demonstrate(p, rng), p) for p in task.test for _ in range(5)]
    whole = [all(x for _, x in s.steps) for (s,) in borne_out()([[t] for t in said], Run(policy))]
    right = [t.reply.endswith(f"Answer: {t.problem.answer}") for t in said]
    assert 0.1 < sum(right) / len(right) < 0.7
    assert sum(whole) <= sum(right)
    with pytest.raises(Exception, match="hops"):
        registry.task("recalled", hops=9)
