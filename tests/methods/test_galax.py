"""GALAX: a graph network that learns what belongs together, and the rewards of a subgraph that grows."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.process.galax import galax
from rewardlab.models.embedded import untrained
from rewardlab.rewards import subgraphs
from rewardlab.rewards.subgraphs import Graph, grown_subgraph, learnt, logits, step_worth
from rewardlab.tasks.modules.rewards import module_f1
from rewardlab.text.splitters import mark

#     A - B - C     D hangs on A
META = {"nodes": {"A": [1.0], "B": [1.0], "C": [1.0], "D": [0.0]}, "edges": [["A", "B"], ["B", "C"], ["A", "D"]], "seed": "A"}
PROBLEM = ask("seed A", "A B C", module=["A", "B", "C"], **META)


def written(policy, text, problem=PROBLEM):
    (t,) = policy.write(policy.read([Trajectory(problem)], [problem.prompt]), [text])
    return mark(t, "newline", policy.pieces, policy.name)


def test_the_network_by_hand():
    graph = Graph.of(META)
    # h = relu(x + 2 mean of neighbours), g = h, p from their mean less 2
    w1, w2 = torch.zeros(3, subgraphs.HIDDEN), torch.zeros(2 * subgraphs.HIDDEN + 1, subgraphs.HIDDEN)
    w1[0, 0], w1[1, 0], w2[0, 0] = 1.0, 2.0, 1.0
    w = torch.zeros(subgraphs.HIDDEN)
    w[0] = 1.0
    found = logits([w1, w2, w, torch.tensor(-2.0)], graph, [["A"], ["A", "B"], ["A", "D"], ["A", "C"]])
    # A alone: 1; A and B: 1 + 2 each; A and D: 1 + 0 and 0 + 2; A and C are not joined: 1 each
    assert found.tolist() == pytest.approx([-1.0, 1.0, -0.5, -1.0])


def test_worth_of_a_step():
    # .8 - .5, and of two neighbours .9 and .4 the mean less .5
    assert step_worth([0.8, 0.9, 0.4], 1.0) == pytest.approx(0.3 + 0.15)
    assert step_worth([0.8, 0.9, 0.4], 0.0) == pytest.approx(0.3)
    # a whole graph has no neighbours: it stands for what may become of it
    assert step_worth([0.8], 1.0) == pytest.approx(0.6)


def test_credit_of_nodes(monkeypatch):
    """p = .9 for subgraphs of A, B and C, .1 for those with D."""
    monkeypatch.setattr(
        subgraphs, "logits", lambda w, graph, subsets: torch.tensor([-2.1972 if "D" in s else 2.1972 for s in subsets])
    )
    policy = untrained(hidden=32, layers=1)
    run = Run(policy, memory={subgraphs.MEMORY: [], subgraphs.AUC: 0.5}, verify=module_f1())
    # B: p = .9, ahead C .9 and D .1;  D: p = .1, ahead C with D .1, and it is not kept;  C: joined to B, ahead D;  C again: invalid
    t = written(policy, "B\nD\nC\nC")
    (score,) = grown_subgraph(ahead=0.5)([[t]], run)[0]
    assert [x for _, x in score.steps] == pytest.approx([0.4, -0.4 - 0.2, 0.4 - 0.2, 0.4 - 0.2 - 1.0], abs=1e-4)
    assert score.why == "kept A B C"
    # C is not joined to A; nor is a name that is no node
    (score,) = grown_subgraph(ahead=0.0)([[written(policy, "C\nX\nB")]], run)[0]
    assert [x for _, x in score.steps] == pytest.approx([0.4 - 1.0, 0.4 - 1.0, 0.4], abs=1e-4)
    group = [t, written(policy, "B")]
    recipe = galax(weight=0.5, ahead=0.0)
    scores = recipe.reward([group], run)
    batch = collate([group], scores, torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    # F1 without the seed A: B C D against B C is 4/5, B is 2/3; a node's tokens get what it and later ones earn besides
    z = (4 / 5 - 2 / 3) / 2 / ((4 / 5 - 2 / 3) / 2**0.5 + 1e-4)
    ends = [credit[0][at].item() for at in t.steps]
    assert ends == pytest.approx([z - 0.1, z - 0.3, z - 0.1, z - 0.3], abs=1e-3)
    assert credit[0][batch.mask[0]][0].item() == pytest.approx(z - 0.1, abs=1e-3)
    assert credit[1][batch.mask[1]].tolist() == pytest.approx([0.2 - z] * int(batch.mask[1].sum()), abs=1e-3)
    # of two replies with good nodes alone, the one that grew further gets more at every node
    group = [written(policy, "B\nC"), written(policy, "B")]
    batch = collate([group], recipe.reward([group], run), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    assert credit[0][batch.mask[0]].min() > credit[1][batch.mask[1]].max()
    # the answer alone
    alone = galax(weight=0.0)
    batch = collate([group], alone.reward([group], run), torch.device("cpu"))
    assert alone.credit(batch.reward, batch, run)[0][batch.mask[0]][0].item() == pytest.approx(1 / 2**0.5, abs=1e-3)
    assert grown_subgraph()([[written(policy, "B", ask("?"))]], run)[0][0].value is None


def test_the_network_learns_to_tell_modules():
    task = registry.task("modules", test_size=2)
    graphs = [Graph.of(task.train[i].meta) for i in range(48)]
    weights, auc = learnt(graphs, 0, 120)
    assert auc > 0.75
    assert all(torch.equal(a, b) for a, b in zip(weights, learnt(graphs, 0, 120)[0], strict=True))


def test_it_learns_once_and_is_remembered():
    task, policy = registry.task("modules", test_size=2), untrained(hidden=32, layers=1)
    more = iter(task.train[i] for i in range(10, 50))
    run = Run(policy, max_new=4, seed=1, verify=module_f1(), more_problems=lambda n: [next(more) for _ in range(n)])
    recipe = galax(graphs=5, graph_steps=3, n=2)
    groups = recipe.rollout([task.train[i] for i in range(3)], run)
    assert [p["seed"] for p in run.memory["examples"]] == [task.train[i].meta["seed"] for i in range(10, 15)]
    scores = recipe.reward(groups, run)
    assert not any(s.missing for row in scores for s in row)
    kept = run.memory[subgraphs.MEMORY]
    assert recipe.rollout([task.train[4]], run)
    assert len(run.memory["examples"]) == 5
    # from the memory alone another run scores alike
    assert recipe.reward(groups, Run(policy, memory=run.memory, verify=module_f1())) == scores
    assert run.memory[subgraphs.MEMORY] is kept
    with pytest.raises(RewardlabError, match="known module"):
        grown_subgraph()([[written(policy, "B", ask("?"))]], Run(policy))


def test_the_world():
    task, rng, found = registry.task("modules", test_size=60), random.Random(0), []
    policy = untrained(hidden=32, layers=1)
    for p in task.test:
        graph = Graph.of(p.meta)
        have = [graph.seed]
        for node in p.meta["solution"].splitlines():
            assert node in graph.around(have)
            have.append(node)
        assert set(have) == graph.module
        inside = np.mean([graph.features[x][0] for x in graph.module])
        assert inside > np.mean([graph.features[x][0] for x in graph.features if x not in graph.module])
        found.append(module_f1()([[written(policy, task.demonstrate(p, rng), p)]], Run(policy))[0][0].value)
    assert 0.4 < np.mean(found) < 0.8
