"""EAG-RL: overlap with what an expert goes by, the two stages, and a world whose shortcut ends."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask, loop
from rewardlab.data.salient import fit, salient_file
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.worlds.charts import CAUSAL, FEATURES, SHORTCUT, charts, expert

NAMES = ["age", "bp", "hr", "wbc"]


def said(text: str, length: int = 3, **meta) -> Trajectory:
    zeros = np.zeros(length, np.float32)
    turns = (Turn(None, np.zeros(2, np.int64)), Turn("policy", np.zeros(length, np.int64), zeros, zeros, text))
    return Trajectory(ask("age 3, bp 8. Risk?", "high", **({"features": NAMES, "salient": ["bp", "wbc"]} | meta)), turns, "end")


def run() -> Run:
    return Run(None, verify=registry.part("reward", "final_answer"))


def totals(*rows: Trajectory, **settings) -> list[float | None]:
    return [s.total for s in registry.build("eag_rl", settings).reward([list(rows)], run())[0]]


# right + J / 2: J is 2/2;  1/3 (one of two, and another);  1/2;  0;  and behind a wrong answer too
CASES = [
    ("BP 8, wbc 7. Answer: high", 1.5),
    ("bp 8, hr 2. Answer: high", 1 + 1 / 6),
    ("bp 8. Answer: high", 1.25),
    ("age 3. Answer: high", 1.0),
    ("Answer: high", 1.0),
    ("bp 8, wbc 7. Answer: low", 0.5),
    # within other words, and after the answer, nothing is named
    ("bps and wbcs. Answer: high", 1.0),
    ("", 0.0),
]


def test_what_a_reply_earns_by_hand():
    assert totals(*(said(text) for text, _ in CASES)) == pytest.approx([worth for _, worth in CASES])
    assert totals(said(CASES[0][0]), said(CASES[5][0]), weight=0.0) == pytest.approx([1.0, 0.0])
    # listing everything is not going by it
    assert totals(said("age, bp, hr, wbc. Answer: high")) == pytest.approx([1 + 0.5 * 2 / 4])


def test_without_an_expert_the_answer_alone_is_paid():
    for meta in ({"salient": None}, {"salient": []}, {"features": None}, {"salient": [3]}):
        assert totals(said(CASES[0][0], **meta), said(CASES[5][0], **meta)) == [1.0, 0.0]
    assert totals(said(CASES[0][0], salient='["bp", "wbc"]')) == pytest.approx([1.5])


def test_the_credit_of_a_group_of_right_replies():
    recipe, r = registry.build("eag_rl"), run()
    group = [said(CASES[i][0], n) for i, n in ((0, 2), (2, 5), (3, 1))]
    batch = collate([group], recipe.reward([group], r), torch.device("cpu"))
    rewards = np.array([1.5, 1.25, 1.0])
    expected = torch.tensor((rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4))[:, None] * batch.mask
    assert torch.allclose(recipe.credit(batch.reward, batch, r).double(), expected, atol=1e-4)


def test_overlap_alone_is_never_imitated():
    # at .99 a wrong reply that goes by the expert's features would be taken for a right one
    with pytest.raises(RewardlabError, match="overlap alone"):
        registry.build("eag_rl", {"weight": 1.0})
    assert totals(said(CASES[5][0]), weight=1.0, guided=0) == [1.0]


class Ops:
    """What the loop asks of the engine, written down."""

    def __init__(self):
        self.done: list[str] = []

    def standard_step(self, recipe):
        self.done.append(str(recipe.weighting))

    def new_stage(self):
        self.done.append("new stage")


def test_the_best_right_replies_are_imitated_first_and_then_all_are_learnt_from():
    recipe, ops, r = registry.build("eag_rl", {"guided": 2}), Ops(), run()
    for r.step in range(4):
        recipe.loop(recipe, r, ops)
    first = "best_right(keep=1, right=0.99)"
    assert ops.done == [first, first, "new stage", "row_mean()", "row_mean()"]
    assert registry.build("eag_rl", {"guided": 0}).loop is None
    # of three right ones the one that goes by the expert's features alone, and no wrong one
    stage = registry.build("rejection_sampling", {"keep": 1, "right": 0.99})
    group = [said(CASES[i][0], n) for i, n in ((3, 2), (0, 4), (2, 1), (5, 3))]
    batch = collate([group, [said(CASES[5][0])]], recipe.reward([group, [said(CASES[5][0])]], r), torch.device("cpu"))
    assert (stage.weighting(batch).sum(1) > 0).tolist() == [False, True, False, False, False]


@loop
def noted(recipe, run, ops):
    """A base's own loop, as one that teaches a model of its reward first."""
    ops.done.append("of the base")
    ops.standard_step(recipe)


def test_the_loop_of_a_base_takes_the_steps_of_both_stages():
    recipe, ops, r = registry.method("eag_rl")(registry.build("grpo").but(loop=noted()), guided=1), Ops(), run()
    for r.step in range(2):
        recipe.loop(recipe, r, ops)
    assert ops.done == ["of the base", "best_right(keep=1, right=0.99)", "new stage", "of the base", "row_mean()"]


def test_the_expert_finds_what_decides():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4))
    found = fit(x, x[:, 2] - 2 * x[:, 0] > 0.3)
    assert found.salient([1.0, 1.0, 1.0, 1.0], 2) == [0, 2]
    assert np.mean([found.predicts(row) == (row[2] - 2 * row[0] > 0.3) for row in x]) > 0.95
    # a value that is at its mean decides nothing, however large its coefficient
    assert found.salient([float(x[:, 0].mean()), 1.0, 1.0, 1.0], 1) == [2]


def test_the_expert_has_seen_nothing_but_training_rows(monkeypatch):
    shown = []
    monkeypatch.setattr("rewardlab.worlds.charts.fit", lambda x, y: (shown.extend(zip(x, y, strict=True)), fit(x, y))[1])
    expert.cache_clear()
    task = charts()
    expert(0.9)
    rows = [task.train[i] for i in range(len(shown))]
    assert [(p.meta["values"], p.answer == "high") for p in rows] == shown
    assert len(shown) == 200
    held_out = [p.meta["values"] for p in task.test]
    assert not any(x in held_out for x, _ in shown)


def test_the_expert_of_a_file_is_fitted_to_its_training_rows_alone(tmp_path):
    rng = np.random.default_rng(1)

    def write(name, sign):
        rows = [dict(zip(("age", "bp", "hr"), map(float, rng.normal(size=3)), strict=True)) for _ in range(120)]
        lines = [r | {"prompt": "?", "answer": "high" if sign * r["bp"] > 0 else "low"} for r in rows]
        (tmp_path / name).write_text("".join(json.dumps(r) + "\n" for r in [*lines, {"prompt": "?", "answer": "low", "age": "?"}]))
        return tmp_path / name

    train, test, out = write("train.jsonl", 1), write("test.jsonl", -1), tmp_path / "out.jsonl"
    told = salient_file(train, out, features=["age", "bp", "hr"], yes="high", k=1)
    assert (told["written"], told["dropped"], told["fitted_to"]) == (120, {"no number": 1}, 120)
    assert told["right"] > 0.95
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert sum(r["salient"] == ["bp"] for r in rows) > 100
    assert rows[0]["features"] == ["age", "bp", "hr"]
    assert totals(said("Mostly bp. Answer: high", **{k: rows[0][k] for k in ("features", "salient")})) == [1.5]
    # the answers of the other file are the opposite ones: were they learnt from, the expert would not be right on its own
    again = salient_file(train, tmp_path / "test.out.jsonl", features=["age", "bp", "hr"], yes="high", k=1, also=test)
    assert again["right"] == told["right"]
    assert again["written"] == 120
    for bad in ({"features": ["age"], "k": 2}, {"features": [], "k": 1}, {"features": ["bp"], "k": 1, "yes": "never"}):
        with pytest.raises(RewardlabError, match="salient: "):
            salient_file(train, out, **{"yes": "high", **bad})


@pytest.mark.slow
def test_the_expert_of_the_world_is_good_though_not_perfect():
    problems = charts().test
    right = np.mean([expert().predicts(p.meta["values"]) == (p.answer == "high") for p in problems])
    assert 0.8 < right < 1.0
    causal = {FEATURES[i] for i in CAUSAL}
    hits = np.mean([len(causal & set(p.meta["salient"])) / 2 for p in problems])
    assert 0.7 < hits < 0.95


@pytest.mark.slow
def test_the_shortcut_holds_in_training_and_not_where_habits_change():
    task = charts()

    def by(problem, of) -> bool:
        return (sum(problem.meta["values"][i] for i in of) >= 9) == (problem.answer == "high")

    train = [task.train[i] for i in range(400)]
    same, shifted = ([p for p in task.test if p.meta["kind"] == kind] for kind in ("same", "shifted"))
    assert all(by(p, CAUSAL) for p in (*train, *same, *shifted))
    assert min(np.mean([by(p, SHORTCUT) for p in x]) for x in (train, same)) > 0.9
    assert 0.4 < np.mean([by(p, SHORTCUT) for p in shifted]) < 0.6
    assert task.demonstrate(train[0], random.Random(1)).count(",") == 1
