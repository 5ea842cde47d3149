"""SemiReward: similarity of labels, what the rewarder learns, which pseudo-labels are kept, and the study on rows of one's own."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from rewardlab.checks.runs import study
from rewardlab.methods.reward_models import semireward as method
from rewardlab.tasks.few_labels import FewLabels


def blobs(classes: int = 2, labelled: int = 6, seed: int = 0) -> FewLabels:
    """Two clouds, whose class is their first coordinate's sign; as numbers, that coordinate itself."""
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.normal(size=(300, 2))).float()
    x[:, 0] += 2 * x[:, 0].sign()
    y = (x[:, 0] > 0).long() if classes else (x[:, 0] / 8 + 0.5).clamp(0, 1)
    return FewLabels((x[:labelled], y[:labelled]), (x[labelled:200], y[labelled:200]), (x[200:], y[200:]), classes)


HOW = method.Training(steps=60, batch=8, rate=3e-3, start=0.5, every=5, share=0.1, noise=0.1)


def test_similarity_of_labels_by_hand():
    one, other = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    # cosines 1, 0, -1 and 0.6
    pairs = [(one, one), (one, other), (one, -one), (torch.tensor([3.0, 4.0]), one)]
    assert [float(method.similarity(a, b)) for a, b in pairs] == pytest.approx([1.0, 0.5, 0.0, 0.8])


def test_similarity_of_numbers_falls_with_their_distance():
    at = method.bumps(torch.tensor([0.4, 0.4, 0.45, 0.6, 0.9]))
    found = method.similarity(at[0], at).tolist()
    assert found[0] == pytest.approx(1.0)
    assert found[1] > found[2] > found[3] > found[4] >= 0.5
    # 1/15 is a step of the points, and neighbours of a bump of width one step overlap by exp(-1/4)
    step = method.similarity(*method.bumps(torch.tensor([7 / 15, 8 / 15])))
    assert float(step) == pytest.approx((np.exp(-0.25) + 1) / 2, abs=1e-3)


@pytest.mark.slow
def test_the_rewarder_learns_how_like_a_label_is_to_the_true_one():
    torch.manual_seed(0)
    problem = blobs()
    judge = method.Judge(2, problem, rate=3e-3)
    x, y = problem.unlabelled
    true, wrong = (method.vector_of(problem, of) for of in (y, 1 - y))
    # made-up labels of every kind, so that no generator has to make them
    judge.generator = torch.nn.Linear(2, 2)
    for _ in range(150):
        judge.generator.weight.data = 5 * torch.randn(2, 2)
        judge.optimizers[1] = torch.optim.SGD(judge.generator.parameters(), lr=0.0)
        judge.learn(x, true)
    with torch.no_grad():
        right, off = judge.rewarder(x, true), judge.rewarder(x, wrong)
    assert float(right.mean()) > 0.9
    assert float(off.mean()) < 0.65
    # of as many right ones and wrong ones, those above the mean are the right ones
    kept = judge.kept(torch.cat((x, x)), torch.cat((true, wrong)))
    assert float((kept == torch.tensor([True] * len(x) + [False] * len(x))).float().mean()) > 0.95


def test_the_generator_learns_what_the_rewarder_likes():
    torch.manual_seed(0)
    problem = blobs()
    judge, likes_one = method.Judge(2, problem, rate=1e-2), torch.nn.Module()
    likes_one.forward = lambda x, y: y[:, 1]
    likes_one.weight = torch.nn.Parameter(torch.zeros(1))
    judge.rewarder = likes_one
    judge._step = lambda which, loss: method.Judge._step(judge, which, loss) if which == 1 else None
    x, _ = problem.unlabelled
    for _ in range(60):
        judge.learn(x, torch.zeros(len(x), 2))
    assert judge.generator(x).softmax(-1)[:, 1].mean().item() > 0.9


def test_filters_keep_nothing_what_is_sure_and_what_is_above_the_mean(monkeypatch):
    problem, student = blobs(), method.Student(2, 2)
    judge = method.Judge(method.WIDTH, problem, rate=1e-3)
    x = torch.tensor([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]])
    # confidences of .98, .98, .73, .98
    logits = torch.tensor([[0.0, 4.0], [4.0, 0.0], [0.0, 1.0], [0.0, 4.0]])
    monkeypatch.setattr(student, "forward", lambda x: (logits, torch.zeros(len(x), method.WIDTH)))
    monkeypatch.setattr(judge.rewarder, "forward", lambda x, y: torch.tensor([0.2, 0.9, 0.9, 0.4]))
    found = {name: method.selected(problem, student, judge, x, name) for name in method.FILTERS}
    assert found["reward"][0].tolist() == [1, 0, 1, 1]
    assert found["labelled"][1].tolist() == [False] * 4
    assert found["confidence"][1].tolist() == [True, True, False, True]
    # the mean reward is .6
    assert found["reward"][1].tolist() == [False, True, False, False]
    numbers = blobs(classes=0)
    monkeypatch.setattr(student, "forward", lambda x: (torch.full((4, 1), 0.3), torch.zeros(len(x), method.WIDTH)))
    assert method.selected(numbers, student, judge, x, "confidence")[1].tolist() == [True] * 4


@pytest.mark.parametrize("classes", [2, pytest.param(0, marks=pytest.mark.slow)])
def test_a_student_learns_from_few_labels_with_every_filter(classes):
    problem = blobs(classes)
    for name in method.FILTERS:
        done = method.trained(problem, name, HOW, seed=0)
        again = method.trained(problem, name, HOW, seed=0)
        assert (done.test, done.kept) == (again.test, again.kept)
        assert done.test < (0.2 if classes else 0.15)
        assert (done.kept > 0) == (name != "labelled")


@pytest.mark.slow
def test_the_study_reads_rows_of_ones_own_and_writes_pseudo_labels(tmp_path):
    rng = np.random.default_rng(0)
    rows = [{"a": float(x), "b": float(y), "kind": "up" if x > 0 else "down"} for x, y in rng.normal(size=(60, 2))]
    for row in rows[30:]:
        row["kind"] = None
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {
        "file": str(tmp_path / "rows.jsonl"),
        "label": "kind",
        "labelled": str(tmp_path / "out.jsonl"),
        "repeats": 1,
        "updates": 80,
    }
    found = study("semireward", 0, settings)
    assert {"labelled.error", "confidence.error", "reward.error", "reward.kept", "gain"} <= found.keys()
    # nobody knows the truth of these rows
    assert "reward.kept_error" not in found
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["row"] for row in written] == list(range(30))
    assert {row["label"] for row in written} <= {"up", "down"}
    assert all(0 < row["reward"] < 1 for row in written)
