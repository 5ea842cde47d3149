"""Erdos: all fifty tasks, in tiers; both answers to yes-no questions; tasks and encodings kept for the test."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from rewardlab import registry
from rewardlab.errors import RewardlabError
from rewardlab.tasks.erdos.kinds import KINDS
from rewardlab.tasks.erdos.problems import READING, write


def test_the_fifty_tasks_and_their_tiers():
    assert len(KINDS) == 50
    assert Counter(kind.tier for kind in KINDS.values()) == {"easy": 14, "medium": 11, "hard": 16, "challenging": 9}


def test_every_task_has_a_right_answer_that_its_own_algorithm_accepts():
    judge = registry.part("reward", "graph_answer")
    for name in KINDS:
        task = registry.task("erdos", tasks=name, test_size=1)
        problems = [task.train[i] for i in range(4)]
        verdicts = judge.check_all([(p.meta["solution"], p.answer) for p in problems])
        assert [v.correct for v in verdicts] == [True] * 4, name


@pytest.mark.parametrize("name", [k for k, kind in KINDS.items() if kind.asks.startswith(("Is ", "Are ", "Have "))])
def test_yes_and_no_are_both_likely(name):
    task = registry.task("erdos", tasks=name, test_size=1)
    yes = sum(task.train[i].answer["value"] for i in range(80))
    assert 12 <= yes <= 68


def test_a_graph_in_four_ways():
    graph = {"nodes": [1, 2, 3], "edges": [[2, 1], [1, 3]], "directed": False}
    assert write(graph, "edges") == "Nodes 1 to 3. Edges: 2-1, 1-3."
    assert write(graph, "pairs") == "Nodes 1 to 3. Edges: (2, 1), (1, 3)."
    assert write(graph, "adjacency") == "1: 3, 2; 2: 1; 3: 1."
    assert write(graph, "sentences") == "Nodes 1 to 3. Edges: 2 is joined to 1. 1 is joined to 3."
    arrows = {"nodes": [1, 2], "edges": [[2, 1, 7]], "directed": True}
    assert write(arrows, "edges") == "Nodes 1 to 2. Edges: 2>1 7."
    assert write(arrows, "adjacency") == "1: none; 2: 1 7."


def test_unseen_tasks_and_encodings_are_tested_on_alone():
    task = registry.task('erdos:tasks=reading,unseen=["degree","common_neighbor"],unseen_encoding=adjacency,test_size=40')
    assert {task.train[i].meta["task"] for i in range(60)} == {"neighbor", "edge_existence"}
    assert {p.meta["task"] for p in task.test} == {"degree", "common_neighbor"}
    assert all("Edges:" not in p.question for p in task.test)
    # its small policy was taught all four
    taught = registry.task(task.warmed_as, test_size=1)
    assert {taught.train[i].meta["task"] for i in range(60)} == set(READING)


def test_a_teacher_overlooks_the_edges_that_name_a_node_second():
    task = registry.task("erdos:tasks=degree,biased=1.0,error=0.0,test_size=1")
    for i in range(20):
        problem = task.train[i]
        node = problem.meta["about"][0]
        first = sum(edge[0] == node for edge in problem.meta["edges"])
        assert task.demonstrate(problem, random.Random(i)).endswith(f"Answer: {first}")


@pytest.mark.parametrize("options", ["tasks=degre", "nodes=[2,3]", "biased=2", "encoding=xml", "tasks=degree,unseen=degree"])
def test_wrong_options_are_refused(options):
    with pytest.raises(RewardlabError):
        registry.task(f"erdos:{options}")
