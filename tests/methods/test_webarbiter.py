"""WebArbiter: what is imitated of a biased teacher, what verdicts are paid, and the knockout between actions."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
import torch

from rewardlab import api, build
from rewardlab.core import Run, Trajectory, ask
from rewardlab.engine.collate import collate
from rewardlab.judges.cases import Case, to_judge
from rewardlab.judges.named import form_of
from rewardlab.methods.judges.webarbiter import PROMPT, imitable
from rewardlab.worlds.crossings import crossings, kind_of
from tests.helpers.rows import Replies

WRONG_TEACHER = "Principles: go the direct way (100). A is longer than B. [[B]]"
ROW = ask("Goal: pay.\nPage: [1] pay, [2] delete", chosen="click [1]", rejected="click [2]", judgement=WRONG_TEACHER)
MODEL_LIKE = "**State**: the cart is full.\n**Principles**: 1. nothing that cannot be undone (70%)\nA pays; B deletes.\n\n[[A]]"


def judged(texts, row=ROW, better_first=True):
    case = Case((row.meta["chosen"], row.meta["rejected"]), (1.0, 0.0))
    asked = to_judge(row, case if better_first else case.at((1, 0)), form_of(PROMPT))
    return Replies([]).write([Trajectory(asked)] * len(texts), texts)


def test_the_judge_is_shown_the_state_and_both_actions_in_their_order():
    (t,) = judged([MODEL_LIKE], better_first=False)
    assert "[2] delete\n\n[Action A]\nclick [2]\n\n[Action B]\nclick [1]\n" in t.problem.question


def test_right_verdicts_earn_one_and_wrong_or_missing_ones_minus_one():
    texts = [MODEL_LIKE, WRONG_TEACHER, "Both are fine.", "[[A]] or rather [[B]]"]
    recipe, run = build("webarbiter"), Run(Replies([]))
    group = judged(texts)
    scores = recipe.reward([group], run)
    assert [s.total for s in scores[0]] == [1.0, -1.0, -1.0, -1.0]
    batch = collate([group], scores, torch.device("cpu"))
    last = [int(mask.nonzero()[-1]) for mask in batch.mask]
    credit = recipe.credit(batch.reward, batch, run)
    # mean -1/2: the right one is 3/2 above it, and the others are 1/2 below, in units of the standard deviation 1
    assert [credit[i, at].item() for i, at in enumerate(last)] == pytest.approx([1.5, -0.5, -0.5, -0.5], abs=1e-3)


def test_a_teachers_judgement_is_imitated_though_it_is_wrong_and_anyone_elses_only_if_it_is_right():
    texts = [WRONG_TEACHER, "A is longer. [[B]]", MODEL_LIKE, "no verdict"]
    assert [s.value for s in imitable()([judged(texts)])[0]] == [1.0, 0.0, 1.0, 0.0]
    assert [s.value for s in imitable(filtered=True)([judged(texts)])[0]] == [0.0, 0.0, 1.0, 0.0]
    silent = ask(ROW.question, chosen="a", rejected="b", judgement="I cannot say.")
    assert [s.value for s in imitable()([judged(["I cannot say."], silent)])[0]] == [0.0]


class Judge(Replies):
    """It prefers the action with the higher number."""

    def extend(self, trajectories, sampling, rng):
        self.replies = []
        for t in trajectories:
            a, b = t.problem.question.partition("[Action A]\n")[2].partition("\n\n[End")[0].split("\n\n[Action B]\n")
            self.replies.append(f"Principle: numbers. [[{'A' if a > b else 'B'}]]")
        return super().extend(trajectories, sampling, rng)


def test_the_best_of_several_actions_wins_the_knockout_wherever_it_stands():
    recipe = build("webarbiter", {"candidates": 5, "judge": "copy:policy"})
    assert [learner.name for learner in recipe.also] == ["judge"]
    state = ask("Goal: pay.")
    for k in range(5):
        texts = [f"click [{(i + k) % 5}]" for i in range(5)]
        group = Replies([]).write([Trajectory(state)] * 5, texts)
        won = recipe.select(group, [], Run(Replies([]), models={"judge": Judge([])}, max_new=9))
        assert won.reply == "click [4]"


# ---- the world ---------------------------------------------------------------------------------------------------------------


def test_actions_are_ordered_by_the_way_that_is_left_and_traps_are_worst():
    place = ask("", goal={"east": 4}, traps=["east"])
    kinds = [kind_of(place, f"go {move}") for move in ("east", "west", "north", "south")]
    assert kinds == ["trap", "far", "far", "far"]
    order = {"near": 2, "far": 1, "trap": 0}
    task = crossings(test_size=300)
    pairs = Counter((kind_of(p, p.meta["chosen"]), kind_of(p, p.meta["rejected"])) for p in task.test)
    assert set(pairs) == {("near", "far"), ("near", "trap"), ("far", "trap")}
    assert all(order[better] > order[worse] for better, worse in pairs)


def test_the_teacher_is_right_where_no_trap_is_and_mostly_wrong_where_the_direct_way_is_one_that_it_does_not_see():
    task = crossings(judged=True, looks=0.0, error=0.0, test_size=300)
    right = {"trap": [], "none": []}
    for problem in task.test:
        said = task.demonstrate(problem, random.Random(problem.key))
        trap = kind_of(problem, problem.meta["rejected"]) == "trap"
        right["trap" if trap else "none"].append((said[-3] == "A") == (problem.meta["worth"][0] == 1.0))
    assert all(right["none"])
    assert sum(right["trap"]) / len(right["trap"]) < 0.5
    clear = crossings(judged=True, looks=1.0, error=0.0, test_size=100)
    said = [(clear.demonstrate(p, random.Random(0))[-3] == "A") == (p.meta["worth"][0] == 1.0) for p in clear.test]
    assert all(said)


def test_a_teachers_judgement_stands_where_its_order_was_shown():
    train = crossings(size=100).train
    columns = Counter(name for i in range(100) for name in ("judgement", "judgement_reversed") if name in train[i].meta)
    assert sum(columns.values()) == 100
    assert min(columns.values()) > 30


def test_the_reference_of_reinforcement_is_what_imitation_made(tmp_path):
    """At this rate one step of imitation moves the policy far from its start; the KL to what it became is 0 all the same."""
    rows = [{"prompt": r.question, **r.meta} for r in (ROW, ask("Goal: leave.\nPage: [1] out, [2] in", chosen="click [1]",
            rejected="click [2]", judgement="[1] leads out. [[A]]"))]  # fmt: skip
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {"distil": 1, "n": 2, "problems": 2, "beta": 1.0, "lr": 0.05, "form": "{prompt}\n{first}\n{second}"}
    common = {"steps": 2, "eval_problems": 2, "max_new": 8, "device": "cpu"}
    run = api.train("webarbiter", "untrained", str(file), out=tmp_path / "run", settings=settings, **common).out
    logged = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["kl"] for row in logged if "kl" in row] == [pytest.approx(0.0, abs=1e-4)]
