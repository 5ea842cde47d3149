"""GALAX: a graph network that learns what belongs together, and the rewards of a subgraph that grows."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.process import galax as subgraphs
from rewardlab.methods.process.galax import Graph, galax, grown_subgraph, learnt, logits, step_worth
from rewardlab.models.embedded import untrained
from rewardlab.text.splitters import mark
from rewardlab.worlds.modules import module_f1

#     A - B - C     D hangs on A
META = {
    "nodes": {"A": [1.0], "B": [1.0], "C": [1.0], "D": [0.0]}, "edges": [["A", "B"], ["B", "C"], ["A", "D"]], "seed": "A",
    "label": "case", "samples": [{"label": "control", "nodes": {"A": [0.0], "B": [0.0], "C": [1.0], "D": [0.0]}}],
}  # fmt: skip
LEARNT = {subgraphs.MEMORY: [], subgraphs.AUC: 0.5, subgraphs.CLASSES: ["case", "control"]}
PROBLEM = ask("seed A", "A B C", module=["A", "B", "C"], **META)


def written(policy, text, problem=PROBLEM):
    (t,) = policy.write(policy.read([Trajectory(problem)], [problem.prompt]), [text])
    return mark(t, "newline", policy.pieces, policy.name)


def test_the_network_by_hand():
    graph = Graph.of(META)
    # h = relu(x + 2 mean of neighbours), g = h, p from their mean less 2
    w1, w2 = torch.zeros(3, subgraphs.HIDDEN), torch.zeros(2 * subgraphs.HIDDEN + 1, subgraphs.HIDDEN)
    w1[0, 0], w1[1, 0], w2[0, 0] = 1.0, 2.0, 1.0
    w = torch.zeros(subgraphs.HIDDEN, 2)
    w[0, 1] = 1.0
    found = logits([w1, w2, w, torch.tensor([0.0, -2.0])], graph, [["A"], ["A", "B"], ["A", "D"], ["A", "C"]])
    assert not found[:, 0].any()
    found = found[:, 1]
    # A alone: 1; A and B: 1 + 2 each; A and D: 1 + 0 and 0 + 2; A and C are not joined: 1 each
    assert found.tolist() == pytest.approx([-1.0, 1.0, -0.5, -1.0])


def test_worth_of_a_step():
    # .8 - .5, and of two neighbours .9 and .4 the mean less .5
    assert step_worth([0.8, 0.9, 0.4], 1.0) == pytest.approx(0.3 + 0.15)
    assert step_worth([0.8, 0.9, 0.4], 0.0) == pytest.approx(0.3)
    # a whole graph has no neighbours: it stands for what may become of it
    assert step_worth([0.8], 1.0) == pytest.approx(0.6)
    # of four classes, chance is 1/4
    assert step_worth([0.8], 1.0, 0.25) == pytest.approx(1.1)


def judge_by_d(monkeypatch):
    def logits(w, graph, subsets):
        return torch.tensor([[-2.1972 if "D" in s else 2.1972, 0.0] for s in subsets])

    monkeypatch.setattr(subgraphs, "logits", logits)


def test_credit_of_nodes(monkeypatch):
    """p = .9 for subgraphs of A, B and C, .1 for those with D."""
    judge_by_d(monkeypatch)
    policy = untrained(hidden=32, layers=1)
    run = Run(policy, memory=dict(LEARNT), verify=module_f1())
    # B: p = .9, ahead C .9 and D .1;  D: p = .1, ahead C with D .1, and it is not kept;  C: joined to B, ahead D;  C again: invalid
    t = written(policy, "B\nD\nC\nC")
    (score,) = grown_subgraph(ahead=0.5)([[t]], run)[0]
    assert [x for _, x in score.steps] == pytest.approx([0.4, -0.4 - 0.2, 0.4 - 0.2, 0.4 - 0.2 - 1.0], abs=1e-4)
    assert score.why == "kept A B C"
    # C is not joined to A; a line that names no node costs nothing
    (score,) = grown_subgraph(ahead=0.0)([[written(policy, "C\nX\nB")]], run)[0]
    assert [x for _, x in score.steps] == pytest.approx([0.4 - 1.0, 0.4], abs=1e-4)
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


@pytest.mark.slow
def test_the_network_learns_to_tell_modules():
    task = registry.task("modules", test_size=2)
    samples = [pair for i in range(48) for pair in Graph.of(task.train[i].meta).samples()]
    assert [label for label, _ in samples[:2]] == ["case", "control"]
    weights, auc = learnt(samples, ["case", "control"], 0, 120)
    assert auc > 0.75
    assert all(torch.equal(a, b) for a, b in zip(weights, learnt(samples, ["case", "control"], 0, 120)[0], strict=True))


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
    with pytest.raises(RewardlabError, match="two classes or more"):
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
        assert set(have) == set(p.meta["module"])
        inside = np.mean([graph.features[x][0] for x in p.meta["module"]])
        assert inside > np.mean([graph.features[x][0] for x in graph.features if x not in p.meta["module"]])
        found.append(module_f1()([[written(policy, task.demonstrate(p, rng), p)]], Run(policy))[0][0].value)
    assert 0.4 < np.mean(found) < 0.8


REPLY = """<think>D could be next, or X.</think>
Here is the subgraph, starting from the seed:

1. **B** (it is joined to A)
2. I then add C, since B leads to it.

The module: done."""


def test_replies_are_read_as_models_write_them(monkeypatch):
    judge_by_d(monkeypatch)
    policy = untrained(hidden=32, layers=1)
    run = Run(policy, memory=dict(LEARNT))
    (score,) = grown_subgraph(ahead=0.0)([[written(policy, REPLY)]], run)[0]
    # two lines name a node; the others, and the thinking, neither earn nor cost
    assert [x for _, x in score.steps] == pytest.approx([0.4, 0.4], abs=1e-4)
    assert score.why == "kept A B C"
    (score,) = grown_subgraph(ahead=0.0)([[written(policy, "B, C and D")]], run)[0]
    assert [x for _, x in score.steps] == pytest.approx([0.4 + 0.4 - 0.4], abs=1e-4)
    (score,) = grown_subgraph()([[written(policy, "I cannot say.")]], run)[0]
    assert score.total == 0.0
    f1 = [module_f1()([[written(policy, text)]], run)[0][0].value for text in (REPLY, "B, C", "- `B`\n- `C`\n- `X`")]
    assert f1 == pytest.approx([1.0, 1.0, 4 / 5])


def test_the_network_never_sees_the_module():
    task = registry.task("modules", test_size=2)
    metas = [task.train[i].meta for i in range(12)]
    blind = [{k: v for k, v in meta.items() if k != "module"} for meta in metas]
    found = [learnt([p for m in ms for p in Graph.of(m).samples()], ["case", "control"], 3, 5) for ms in (metas, blind)]
    assert all(torch.equal(a, b) for a, b in zip(found[0][0], found[1][0], strict=True))
    assert "module" not in galax().rollout.settings["columns"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"edges": [["A", "B"], ["A", "Z"]]}, "joins 'Z', which is none of its 4 nodes"),
        ({"seed": "Z"}, "the seed 'Z'"),
        ({"edges": ["AB", ["A"]]}, "no pair of names"),
        ({"nodes": {"A": [1.0], "B": ["high"]}, "edges": [], "samples": []}, "the features of 'B'"),
        ({"nodes": {"A": [1.0], "B": [1.0, 2.0]}, "edges": [], "samples": []}, "'B' has 2 features"),
        ({"samples": [{"label": "control", "nodes": {"A": [1.0]}}]}, "column samples"),
    ],
)
def test_a_graph_that_contradicts_itself_is_named(changed, message):
    with pytest.raises(RewardlabError, match=message):
        Graph.of({**META, **changed})


def test_a_graph_of_a_table_is_read():
    assert Graph.of({k: json.dumps(v) if k in ("nodes", "edges", "samples") else v for k, v in META.items()}) == Graph.of(META)
    assert Graph.of({"nodes": META["nodes"]}) is None
