"""Answers on graphs that are not unique: whatever holds is right, by comparison with every answer there is, and nothing else."""

from __future__ import annotations

import json
import random
import statistics
import threading
import time
from itertools import combinations, pairwise, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardlab.errors import RewardlabError
from rewardlab.verifiers.graphs.checks import KINDS, judge, solvable
from rewardlab.verifiers.graphs.verifier import graph_solution
from rewardlab.worlds import graphs as tasks

SQUARE = {"nodes": ["A", "B", "C", "D"], "edges": [["A", "B"], ["B", "C"], ["C", "D"], ["D", "A"], ["A", "C"]]}
ROADS = {"edges": [["A", "B", 1], ["B", "C", 1], ["A", "C", 3], ["C", "D", 2], ["A", "D", 9]]}
ORDER = {"nodes": [1, 2, 3, 4], "edges": [[1, 2], [1, 3], [2, 4], [3, 4]], "directed": True}
RENAMED = {"edges": [["W", "X"], ["X", "Y"], ["Y", "Z"], ["Z", "W"], ["W", "Y"]]}
APART = {"nodes": ["A", "B", "C"], "edges": [["A", "B"]]}
ROUTE = {"kind": "shortest_path", "graph": ROADS, "source": "A", "target": "D"}
COLOURS = {"kind": "coloring", "graph": SQUARE, "colors": 3}

RIGHT_AND_WRONG = [
    (
        ROUTE,
        [
            "A -> B -> C -> D", "A → B → C → D", r"\boxed{A \to B \to C \to D}", "Answer: A, B, C, D.",
            '["A", "B", "C", "D"]', "A B C D",
            'Answer: {"path": ["A", "B", "C", "D"], "length": 4}', "The path is A-B-C-D (length 4)", "Path: a -> b -> c -> d",
            "<think>A -> D</think>\nAnswer: **A -> B -> C -> D**", "Answer:\nA -> B -> C -> D\n\nIt has length 4.", "A\nB\nC\nD",
            "<answer>A->B->C->D</answer>", "It is short.\nAnswer: node A -> node B -> node C -> node D. Nothing is shorter.",
        ],
        [
            "", "A -> C -> D", "A -> D", "A -> B -> D", "D -> C -> B -> A", "A -> B -> C", "A -> B -> C -> D -> E", "none",
            "no path", "A -> B -> C -> D or A -> D", '["A","B","C","D"] or ["A","D"]', '[["A","B","C","D"]]', "[]", "4",
            "A -> B -> A -> B -> C -> D", "<think>A -> B -> C -> D</think>", "not A -> B -> C -> D",
            '{"path": ["A", "B", "C", "D"], "other": ["A", "D"]}',
        ],
    ),
    (
        COLOURS,
        [
            "A: red, B: blue, C: green, D: blue", "A: 1\nB: 2\nC: 3\nD: 2", "- A = 1\n- B = 2\n- C = 3\n- D = 2",
            '{"A": 1, "B": 2, "C": 3, "D": 2}', '[["A", 1], ["B", 2], ["C", 3], ["D", 2]]',
            "Answer:\nA: red\nB: blue\nC: green\nD: blue\n\nB and D share one.",
            '{"coloring": {"A": 1, "B": 2, "C": 3, "D": 2}}', "A is red; B is blue; C is green; D is blue.",
            "Here is one:\n\nA: red, B: blue, C: green, D: blue",
        ],
        [
            "A: red, B: blue, C: red, D: blue", "A: 1, B: 2, C: 3", "A: 1, B: 2, C: 3, D: 4", "A: 1, B: 2, C: 3, D: 2, E: 1",
            "none", "{}", '{"A": 1, "A": 2, "B": 1, "C": 3, "D": 1}', "A: 1, A: 1, B: 2, C: 3, D: 2",
            '{"A": [1], "B": 2, "C": 3, "D": 2}', "A: , B: 2, C: 3, D: 2", '{"A": null, "B": 2, "C": 3, "D": 2}',
        ],
    ),
    (COLOURS | {"colors": ["red", "green", "blue"]}, ["A: Red, B: blue, C: green, D: blue"], ["A: 1, B: 2, C: 3, D: 2", "none"]),
    (COLOURS | {"colors": 2}, ["none", "No such colouring exists.", "Answer: impossible"], ["A: 1, B: 2, C: 1, D: 2", ""]),
    ({"kind": "coloring", "graph": SQUARE}, ["A: 1, B: 2, C: 3, D: 2"], ["A: 1, B: 2, C: 3, D: 4", "none"]),
    (
        {"kind": "maximum_matching", "graph": SQUARE},
        ["A-B, C-D", "(A, D), (B, C)", '[["B", "A"], ["C", "D"]]', "A - B\nC - D", "{(A,B), (C,D)}", "A -> B; C -> D"],
        ["A-C", "A-B, B-C", "B-D", "A-B, A-B", "A-B", "[]", "A, B", "A-B-C"],
    ),
    ({"kind": "matching", "graph": SQUARE, "size": 1}, ["A-C", "A-B, C-D"], ["[]", "B-D"]),
    ({"kind": "perfect_matching", "graph": SQUARE}, ["A-B, C-D"], ["A-C", "none"]),
    ({"kind": "perfect_matching", "graph": APART}, ["none", "no perfect matching"], ["A-B", "[]"]),
    (
        {"kind": "topological_order", "graph": ORDER},
        ["1, 2, 3, 4", "[1, 3, 2, 4]", "1 -> 3 -> 2 -> 4"],
        ["1, 4, 2, 3", "1, 2, 3", "1, 2, 2, 3, 4", "none"],
    ),
    ({"kind": "topological_order", "graph": {"edges": [[1, 2], [2, 1]], "directed": True}}, ["none"], ["1, 2", "2, 1"]),
    ({"kind": "hamiltonian_path", "graph": SQUARE}, ["B A D C", "A-B-C-D"], ["B D A C", "A-B-C", "none"]),
    ({"kind": "hamiltonian_path", "graph": SQUARE, "source": "A", "target": "B"}, ["A-D-C-B"], ["C-D-A-B"]),
    ({"kind": "hamiltonian_path", "graph": APART}, ["none"], ["A-B", "A-B-C"]),
    ({"kind": "hamiltonian_cycle", "graph": SQUARE}, ["A-B-C-D", "A-B-C-D-A", "C,D,A,B"], ["A-C-B-D", "B-A-C-D-B", "A-B-A"]),
    ({"kind": "hamiltonian_cycle", "graph": {"edges": [["A", "B"]]}}, ["none"], ["A-B", "A-B-A"]),
    ({"kind": "tsp_tour", "graph": {"edges": [*ROADS["edges"], ["B", "D", 1]]}}, ["A-B-D-C-A"], ["A-B-C-D-A", "A-C-B-D-A", "none"]),
    ({"kind": "tsp_tour", "graph": ROADS, "length": 13}, ["A-B-C-D-A"], ["A-C-B-D"]),
    (
        {"kind": "spanning_tree", "graph": SQUARE},
        ["A-B, B-C, C-D", "A-B, A-C, A-D"],
        ["A-B, B-C, A-C", "A-B, C-D", "A-B, B-A, C-D", "none"],
    ),
    ({"kind": "minimum_spanning_tree", "graph": ROADS}, ["A-B, B-C, C-D"], ["A-B, A-C, C-D", "A-B, B-C, A-D"]),
    ({"kind": "minimum_spanning_tree", "graph": APART}, ["none"], ["A-B"]),
    ({"kind": "independent_set", "graph": SQUARE}, ["B, D", '["D", "B"]'], ["A", "B", "A, C", "B, B", "B, D, E", "none"]),
    ({"kind": "independent_set", "graph": SQUARE, "size": 1}, ["A", "B, D"], ["A, B", "[]"]),
    ({"kind": "independent_set", "graph": SQUARE, "size": 3}, ["none"], ["B, D", "A, B, D"]),
    ({"kind": "clique", "graph": SQUARE}, ["A, B, C", "C, D, A"], ["A, B", "A, B, C, D", "A, A, B"]),
    ({"kind": "vertex_cover", "graph": SQUARE}, ["A, C"], ["B, D", "A, B, C", "A"]),
    ({"kind": "vertex_cover", "graph": SQUARE, "size": 3}, ["A, C", "A, B, C"], ["A, B, C, D", "B, D"]),
    ({"kind": "eulerian_path", "graph": SQUARE}, ["A-B-C-D-A-C", "C-A-B-C-D-A"], ["A-B-C-D-A", "A-B-C-A-D-C-A", "none"]),
    ({"kind": "eulerian_circuit", "graph": SQUARE}, ["none"], ["A-B-C-D-A-C"]),
    ({"kind": "eulerian_circuit", "graph": {"edges": [["A", "B"], ["A", "B"]]}}, ["A-B-A", "B,A,B"], ["A-B", "none"]),
    ({"kind": "bfs", "graph": SQUARE, "source": "A"}, ["A-B, A-D, A-C", "A-C, A-B, A-D"], ["A-B, B-C, A-D", "A-B, A-D", "none"]),
    ({"kind": "dfs", "graph": SQUARE, "source": "A"}, ["A-B, B-C, C-D", "A-C, C-B, C-D"], ["A-B, A-C, A-D", "A-B, B-C"]),
    ({"kind": "dominating_set", "graph": SQUARE}, ["A", "B, D"], ["B", "E"]),
    ({"kind": "edge_cover", "graph": SQUARE}, ["A-B, C-D", "A-D, B-C"], ["A-B, A-C", "B-D, A-C", "A-B, A-C, A-D"]),
    ({"kind": "isomorphism", "graph": SQUARE, "other": RENAMED}, ["A: W, B: X, C: Y, D: Z"], ["A: X, B: W, C: Y, D: Z", "A: W"]),
    ({"kind": "max_weight_matching", "graph": ROADS}, ["A-D, B-C"], ["A-B, C-D", "A-D", "A-C, C-D"]),
    ({"kind": "maximal_independent_set", "graph": SQUARE}, ["A", "B, D"], ["B", "A, B"]),
    ({"kind": "path", "graph": SQUARE, "source": "A", "target": "C"}, ["A-C", "A-B-C"], ["A-B-A-C", "B-C"]),
    ({"kind": "path", "graph": APART, "source": "A", "target": "C"}, ["none", "There is no path.", "unreachable"], ["A-C", "A-B"]),
]  # fmt: skip


def test_every_kind_has_right_and_wrong_answers():
    assert {problem["kind"] for problem, *_ in RIGHT_AND_WRONG} == set(KINDS)


@pytest.mark.parametrize(("problem", "right", "wrong"), RIGHT_AND_WRONG, ids=lambda x: x["kind"] if isinstance(x, dict) else None)
def test_whatever_holds_is_right_however_it_is_written(problem, right, wrong):
    for reply, found in zip(right, graph_solution().check_all([(reply, problem) for reply in right]), strict=True):
        assert found.correct is True, (reply, found)
    for reply, found in zip(wrong, graph_solution().check_all([(reply, json.dumps(problem)) for reply in wrong]), strict=True):
        assert found.correct is False, (reply, found)
        assert found.why


NAMES = ("a", "b", "c", "d", "e")
PAIRS = list(combinations(NAMES, 2))


@st.composite
def weighted(draw):
    edges = [[u, v, draw(st.integers(1, 3))] for u, v in PAIRS if draw(st.booleans())]
    return {"nodes": list(NAMES), "edges": edges, "directed": False}


def right(kind: str, graph: dict, reply: object, **more: object) -> bool:
    return judge(json.dumps({"kind": kind, "graph": graph, **more}), json.dumps(reply))[0]


def has_solution(kind: str, graph: dict, **more: object) -> bool:
    problem = json.dumps({"kind": kind, "graph": graph, **more})
    assert judge(problem, "none")[0] is not solvable(problem)
    return solvable(problem)


@settings(max_examples=12)
@given(weighted())
def test_walks_and_tours_agree_with_trying_them_all(graph):
    weight = {frozenset(edge[:2]): edge[2] for edge in graph["edges"]}

    def length(nodes):
        steps = [weight.get(frozenset(pair)) for pair in pairwise(nodes)]
        return None if None in steps else sum(steps)

    paths = {nodes: length(nodes) for n in range(1, 6) for nodes in permutations(NAMES, n) if nodes[0] == "a" and nodes[-1] == "e"}
    best = min((found for found in paths.values() if found is not None), default=None)
    assert has_solution("shortest_path", graph, source="a", target="e") is (best is not None)
    for nodes, found in paths.items():
        assert right("shortest_path", graph, nodes, source="a", target="e") is (found is not None and found == best)
        assert right("path", graph, nodes, source="a", target="e") is (found is not None)
    orders = {nodes: length(nodes) for nodes in permutations(NAMES)}
    tours = {nodes: length([*nodes, nodes[0]]) for nodes in orders}
    shortest = min((found for found in tours.values() if found is not None), default=None)
    assert has_solution("hamiltonian_path", graph) is any(found is not None for found in orders.values())
    assert has_solution("hamiltonian_cycle", graph) is has_solution("tsp_tour", graph) is (shortest is not None)
    for nodes in random.Random(0).sample(list(orders), 30):
        assert right("hamiltonian_path", graph, nodes) is (orders[nodes] is not None)
        assert right("hamiltonian_cycle", graph, nodes) is (tours[nodes] is not None)
        assert right("tsp_tour", graph, nodes) is (tours[nodes] is not None and tours[nodes] == shortest)


@settings(max_examples=12)
@given(weighted())
def test_sets_and_colourings_agree_with_trying_them_all(graph):
    joined = {frozenset(edge[:2]) for edge in graph["edges"]}
    subsets = [set(chosen) for n in range(6) for chosen in combinations(NAMES, n)]

    def inside(chosen):
        return {frozenset(pair) for pair in combinations(sorted(chosen), 2)}

    holds = {
        "independent_set": [chosen for chosen in subsets if not inside(chosen) & joined],
        "clique": [chosen for chosen in subsets if inside(chosen) <= joined],
        "vertex_cover": [chosen for chosen in subsets if all(edge & chosen for edge in joined)],
    }
    for kind, sets in holds.items():
        best = (min if kind == "vertex_cover" else max)(map(len, sets))
        for chosen in subsets:
            assert right(kind, graph, sorted(chosen)) is (chosen in sets and len(chosen) == best)
    proper = dict.fromkeys((1, 2, 3), False)
    for colours in product((1, 2, 3), repeat=5):
        colouring = dict(zip(NAMES, colours, strict=True))
        fits = all(len({colouring[node] for node in edge}) == 2 for edge in joined)
        proper[len({*colours})] |= fits
        if colours[0] == 1:
            assert right("coloring", graph, colouring, colors=3) is fits
    for count in (1, 2, 3):
        assert has_solution("coloring", graph, colors=count) is any(proper[n] for n in range(1, count + 1))


@settings(max_examples=12)
@given(weighted())
def test_matchings_and_trees_agree_with_trying_them_all(graph):
    edges = [edge[:2] for edge in graph["edges"]]
    weight = {(u, v): w for u, v, w in graph["edges"]}
    subsets = [list(chosen) for n in range(5) for chosen in combinations(edges, n)]
    matchings = [chosen for chosen in subsets if len({node for edge in chosen for node in edge}) == 2 * len(chosen)]
    most = max(map(len, matchings))

    def joins_all(chosen):
        part = {"a"}
        for _ in NAMES:
            part |= {node for edge in chosen if part & {*edge} for node in edge}
        return len(part) == 5 and len(chosen) == 4

    trees = [chosen for chosen in subsets if joins_all(chosen)]
    lightest = min((sum(weight[tuple(edge)] for edge in chosen) for chosen in trees), default=None)
    assert has_solution("spanning_tree", graph) is bool(trees)
    for chosen in subsets:
        assert right("maximum_matching", graph, chosen) is (chosen in matchings and len(chosen) == most)
        assert right("spanning_tree", graph, chosen) is (chosen in trees)
        tree = chosen in trees and sum(weight[tuple(edge)] for edge in chosen) == lightest
        assert right("minimum_spanning_tree", graph, chosen) is tree


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=4), st.booleans())
def test_eulerian_walks_agree_with_trying_them_all(edges, directed):
    graph = {"nodes": ["a", "b", "c"], "edges": [list(edge) for edge in edges], "directed": directed}

    def used(pairs):
        return sorted(tuple(pair) if directed else tuple(sorted(pair)) for pair in pairs)

    walks = {walk: used(pairwise(walk)) == used(edges) for walk in product("abc", repeat=len(edges) + 1)}
    assert has_solution("eulerian_path", graph) is any(walks.values())
    assert has_solution("eulerian_circuit", graph) is any(fits and walk[0] == walk[-1] for walk, fits in walks.items())
    for walk in random.Random(0).sample(list(walks), min(20, len(walks))):
        assert right("eulerian_path", graph, walk) is walks[walk]
        assert right("eulerian_circuit", graph, walk) is (walks[walk] and walk[0] == walk[-1])
    for start, end in product("abc", repeat=2):
        fits = any(fits for walk, fits in walks.items() if (walk[0], walk[-1]) == (start, end))
        assert has_solution("eulerian_path", graph, source=start, target=end) is fits


@pytest.mark.parametrize(
    "answer",
    [
        None, "", "{", [], {}, {"kind": "path"}, {"kind": "nonsense", "graph": SQUARE},
        {"kind": "path", "graph": {"edges": []}, "source": "A"}, ROUTE | {"source": "Z"}, ROUTE | {"graph": {"edges": [["A"]]}},
        ROUTE | {"graph": {"edges": [["A", "D", "far"]]}}, ROUTE | {"graph": {"edges": [["A", "D", float("nan")]]}},
        {"kind": "tsp_tour", "graph": {"edges": [list(e) for e in combinations(range(16), 2)]}},
    ],
)  # fmt: skip
def test_a_problem_that_cannot_be_judged_gives_no_verdict(answer):
    for reply in ("A -> D", ", ".join(map(str, range(16)))):
        found = graph_solution().check(reply, answer)
        assert found.correct in ((None, False) if answer and "kind" in answer and answer["kind"] == "tsp_tour" else (None,))
        assert found.why
    assert graph_solution().check(", ".join(map(str, range(16))), answer).correct is None


@pytest.mark.slow
def test_a_problem_that_takes_too_long_is_not_the_replys_fault_and_does_not_hold_up_others():
    rng = random.Random(1)
    hard = {"nodes": list(range(300)), "edges": [[u, v] for u, v in combinations(range(300), 2) if rng.random() < 0.2]}
    cover = {"kind": "independent_set", "graph": hard, "size": 60}
    start = time.perf_counter()
    found = graph_solution(seconds=1.0).check_all([("none", cover), ("A -> B -> C -> D", ROUTE), ("0", cover), ("A -> D", ROUTE)])
    assert time.perf_counter() - start < 20
    assert [one.correct for one in found] == [None, True, False, False]
    assert "took over 1 s" in found[0].why
    assert graph_solution(seconds=1.0).check("none", cover | {"solvable": True}).correct is False


@given(st.text() | st.text(alphabet='ABCD->,:()[]{}" 1\nor.'))
def test_no_reply_raises(reply):
    for problem in (ROUTE, COLOURS, {"kind": "maximum_matching", "graph": SQUARE}, {"kind": "clique", "graph": SQUARE}):
        assert judge(json.dumps(problem), reply)[0] in (True, False)


def test_hostile_replies_are_read_in_linear_time_from_any_thread():
    pieces = (
        "A -> ",
        "[",
        '{"A":',
        "A: 1, ",
        "(A, B), ",
        "A-",
        "-",
        "\n\n",
        "answer: ",
        "\\boxed{",
        " ",
        "A",
        "none ",
        "\x00",
        "[[",
        "9",
    )
    replies = [piece * (n // len(piece)) for piece in pieces for n in (19_000, 100_000)]
    problems = (ROUTE, COLOURS, {"kind": "maximum_matching", "graph": SQUARE})
    found = []

    def check():
        found.extend(graph_solution().check_all([(reply, problem) for reply in replies for problem in problems]))

    start = time.perf_counter()
    thread = threading.Thread(target=check)
    thread.start()
    thread.join()
    assert time.perf_counter() - start < 20
    assert len(found) == len(replies) * len(problems)
    assert not any(one.correct for one in found)
    assert all(one.correct is False and "took over" not in one.why for one in found)


def test_without_networkx_there_is_no_verdict(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = graph_solution().check("A -> D", ROUTE)
    assert found.correct is None
    assert "rewardlab[verify]" in found.why


@pytest.mark.parametrize("kind", tasks.KINDS)
def test_a_teacher_misses_at_most_as_often_as_asked(kind):
    task = tasks.graphs(kinds=kind, nodes=(3, 8), test_size=10, error=0.5)
    problems = [task.train[i] for i in range(60)]
    said = [(task.demonstrate(problem, random.Random(i)), problem.answer) for i, problem in enumerate(problems)]
    # a miss may be another right answer
    assert 0.4 < statistics.mean(found.correct for found in graph_solution().check_all(said)) < 1
    without = tasks.graphs(kinds=kind, nodes=(3, 8), test_size=10, error=0.0)
    assert all(without.demonstrate(problem, random.Random(0)) == problem.meta["solution"] for problem in problems)


@pytest.mark.parametrize(
    ("options", "says"), [({"kinds": "coloured"}, "kind of graph problem"), ({"nodes": (2, 4)}, "nodes"), ({"error": 2}, "error")]
)
def test_bad_options_are_refused_by_name(options, says):
    with pytest.raises(RewardlabError, match=says):
        tasks.graphs(**options)
