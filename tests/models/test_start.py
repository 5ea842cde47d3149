"""The start of a small policy: measured by the task's own verifier, and worked at until it is right."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Trajectory, Turn
from rewardlab.models import embedded, warmup
from rewardlab.models.start import FILE, Start, fresh, keep, kept, measured_start

WINDOW = (0.3, 0.6)


def start(single: float, greedy: float | None = None, teacher: float | None = 0.45) -> Start:
    return Start(single, single if greedy is None else greedy, teacher, 300)


@pytest.fixture
def rounds(monkeypatch):
    """Teach an untrained policy in rounds that only mark its weights, with these starts after them; returns what was measured."""

    def teach(*starts: Start):
        policy, done = embedded.untrained(), []

        def lessons(policy, problems, steps, past, task, pupil):
            done.append((past, steps))
            for parameter in policy.model.parameters():
                parameter.data.fill_(float(past))

        monkeypatch.setattr(warmup, "_lessons", lessons)
        monkeypatch.setattr(warmup, "measured_start", lambda policy, task: starts[len(done) - 1])
        task = replace(registry.task("arithmetic", test_size=1), window=WINDOW)
        best = warmup.teach(policy, None, 150, task)
        return best, done, next(policy.model.parameters()).flatten()[0].item()

    return teach


def test_a_policy_that_has_learnt_too_little_is_taught_on(rounds):
    best, lessons, weights = rounds(start(0.11), start(0.24), start(0.37))
    # batches before each round, and in it: none is taught twice
    assert lessons == [(0, 150), (150, 300), (450, 600)]
    assert (best, weights) == (start(0.37), 450.0)


def test_a_policy_that_keeps_getting_better_is_not_taught_for_ever(rounds):
    best, lessons, _ = rounds(*(start(0.05 * i) for i in range(1, 9)))
    assert sum(steps for _, steps in lessons) == 150 + 300 + 600 + 1200 <= warmup.SMALL.most
    assert best == start(0.05 * 4)


def test_a_policy_within_the_window_is_taught_once(rounds, capfd):
    assert rounds(start(0.40)) == (start(0.40), [(0, 150)], 0.0)
    assert "note" not in capfd.readouterr().err


def test_the_best_policy_is_kept_where_more_lessons_make_it_worse(rounds, capfd):
    best, lessons, weights = rounds(start(0.22, teacher=0.5), start(0.15, teacher=0.5))
    assert (best, len(lessons), weights) == (start(0.22, teacher=0.5), 2, 0.0)
    assert "starts at 0.22" in (said := " ".join(capfd.readouterr().err.split()))
    assert "more warm-up did not help" in said


def test_a_policy_as_good_as_its_teacher_is_left_and_the_teacher_blamed(rounds, capfd):
    best, done, _ = rounds(start(0.09, teacher=0.1))
    assert (best, len(done)) == (start(0.09, teacher=0.1), 1)
    assert "its teacher is no better" in " ".join(capfd.readouterr().err.split())


def test_a_greedy_answer_that_is_right_already_is_pointed_out(rounds, capfd):
    rounds(start(0.49, greedy=0.98, teacher=0.5))
    assert "slips at random" in " ".join(capfd.readouterr().err.split())


def test_a_policy_that_starts_too_high_says_so(rounds, capfd):
    rounds(start(0.8, teacher=0.8))
    assert "raise the teacher's error" in " ".join(capfd.readouterr().err.split())


def test_a_start_is_measured_by_the_verifier_and_the_teacher_with_it():
    task = registry.task("arithmetic", test_size=1)
    found = measured_start(embedded.untrained(), task, n=60)
    assert max(found.single, found.greedy) < 0.1
    assert found.teacher == pytest.approx(0.47, abs=0.15)


@pytest.mark.slow
def test_episodes_are_measured_by_playing_them_and_unknown_ones_not_at_all():
    task = registry.task("facts", test_size=1, hops=1)
    policy = embedded.untrained(task=task)
    assert measured_start(policy, replace(task, max_new=4), n=4) == Start(0.0, 0.0, None, 4)
    assert measured_start(policy, replace(task, environment=None), n=4) is None


def test_a_start_is_measured_on_problems_that_no_warm_up_has_seen():
    task = registry.task("arithmetic")
    lessons = embedded.Demonstrations(task)
    problems = {p.key for p in fresh(task, 200)}
    assert len(problems) > 195
    assert not problems & {p.key for p in task.test}
    # a short chain may come again by chance
    assert len(problems & {lessons[i].key for i in range(2000)}) < 10


def test_the_start_is_written_beside_the_checkpoint_under_the_name_of_its_task(tmp_path, monkeypatch):
    arithmetic, hard = registry.task("arithmetic", test_size=1), registry.task("arithmetic:difficulty=4", test_size=1)
    assert kept(tmp_path, arithmetic) is None
    keep(tmp_path, arithmetic, start(0.4))
    keep(tmp_path, hard, start(0.2))
    assert kept(tmp_path, arithmetic) == start(0.4)
    assert kept(tmp_path, hard) == start(0.2)
    monkeypatch.setattr(embedded, "checkpoint", lambda task: tmp_path)
    assert embedded.start_of(hard) == start(0.2)
    assert len(json.loads((tmp_path / FILE).read_text())) == 2


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("arithmetic", False), ("countdown", False), ("arithmetic:difficulty=4", False), ("arithmetic:biased=0.5", True),
        ("arithmetic:redundant=0.3", True), ("countdown:largest=30", True), ("countdown:habit=0.9", True), ("euclid", True),
        ("preferences", True), ("preferences:error=0.22", False),
    ],
)  # fmt: skip
def test_a_task_that_is_taught_otherwise_has_a_policy_of_its_own(name, own):
    assert (embedded.with_own_policy(registry.task(name, test_size=1)) is not None) == own


def test_a_relative_of_the_shared_policy_begins_as_that_one(tmp_path, monkeypatch):
    shared = embedded.untrained(seed=5)
    shared.save(tmp_path)
    monkeypatch.setattr(embedded, "checkpoint", lambda task=None: tmp_path)
    monkeypatch.setattr(embedded, "teach", lambda policy, problems, steps, task, once: taught.append((steps, problems[3])))
    taught = []
    relative, other = registry.task("arithmetic:biased=0.7", test_size=1), registry.task("euclid", test_size=1)
    policy, _ = embedded.warm_up(task=relative)
    before = dict(shared.model.state_dict())
    assert all(bool((value == before[name]).all()) for name, value in policy.model.state_dict().items())
    assert embedded.tokenizer(relative) is embedded.tokenizer()
    embedded.warm_up(task=other)
    # the shared policy's steps, or the task's own; each on its own teacher's solutions
    assert [steps for steps, _ in taught] == [embedded.RELATIVE_STEPS, other.warmup_steps]
    assert taught[0][1].question.startswith("Start with")


@pytest.mark.parametrize("name", ["crossings", "duels", "mirrors", "occasions", "second_looks", "taught_duels"])
def test_what_a_small_judge_says_is_right_or_not_and_never_less_than_nothing(name):
    """A start is the mean of verdicts: with -1 for a wrong one, a judge that is right half of the time would start at 0."""
    task = registry.task(name, test_size=1)
    judged = registry.task(task.warmed_as) if task.warmed_as else registry.task(name, test_size=1, judged=True)
    row = judged.train[3]
    said = [Trajectory(row, (Turn("policy", np.zeros(1, np.int64), text=text),), "end") for text in ("no mark", "[[A]]", "[[B]]")]
    values = [s.value for s in registry.part("reward", judged.verifier)([said])[0]]
    assert values[0] == 0.0
    assert set(values[1:]) <= {0.0, 1.0}
