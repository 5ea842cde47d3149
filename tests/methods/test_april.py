"""Partial rollouts by hand: who comes back when, what is kept, and that a killed run goes on bit for bit."""

import json
import random
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import registry, resume, train
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.sampling.april import partial, written
from rewardlab.models.embedded import untrained
from rewardlab.rewards.length import length_penalty
from rewardlab.verifiers.match import final_number
from rewardlab.worlds.euclid import euclid


class Scripted:
    """Writes replies of set lengths (by problem and row), all rows side by side; the log-prob of a token is its step."""

    name, step = "policy", 0

    def __init__(self, lengths):
        self.lengths, self.asked = lengths, []

    def read(self, trajectories, messages):
        return [t.plus(Turn(None, np.zeros(2, np.int64))) for t in trajectories]

    def extend(self, rows, sampling, rng):
        left = [self.lengths[t.problem.question][t.path[0]] - written(t) for t in rows]
        ending = sorted(x for x in left if x <= sampling.max_new)
        rounds = ending[sampling.enough - 1] if len(ending) >= sampling.enough else sampling.max_new
        self.asked.append((len(rows), rounds))
        return [self._write(t, min(x, rounds), x <= rounds, sampling.max_new) for t, x in zip(rows, left, strict=True)]

    def _write(self, t, n, ended, limit):
        logs = np.full(n, float(self.step), np.float32)
        turn = Turn(self.name, np.arange(n), logs, logs, "x" * n, step=self.step)
        return t.plus(turn, "end" if ended else "length" if n == limit else None)


def steps_of(run, part, questions):
    """The questions and lengths that come back at each step."""
    found = []
    for step, asked in enumerate(questions):
        run.step = run.policy.step = step
        found.append(part([ask(q) for q in asked], run))
    return found


def test_the_oldest_whole_groups_come_back_and_the_rest_goes_on():
    # two problems a step, two replies each; spare 0.5: one group stays under way
    lengths = {"a": [9, 2], "b": [3, 4], "c": [1, 1], "d": [2, 8]}
    run = Run(Scripted(lengths), max_new=20)
    part = partial(n=2, spare=0.5)
    first, second = steps_of(run, part, ["ab", "cd"])
    # step 0: one group must be whole; two rows short: 2 and 3 end (3 rounds); one row (4) of b left: 1 round more
    assert [g[0].problem.question for g in first] == ["b"]
    assert run.policy.asked[:2] == [(4, 3), (2, 1)]
    # step 1: under way a (9: 4 written, 5 to go), c, d; two groups must be whole, three rows short. c ends after 1, d's first after
    # 2; then one row is short (a's, or d's second): a's ends after 3 more rounds
    assert [g[0].problem.question for g in second] == ["a", "c"]
    assert run.policy.asked[2:] == [(5, 2), (2, 3)]
    [[short, long]] = run.memory["partial.policy"]
    assert (short.stop, written(short), long.stop, written(long)) == ("end", 2, None, 5)


def test_the_first_step_launches_the_spare_groups_too():
    """Two problems a step and two spare ones: four in progress, of which the shortest two come back."""
    lengths = {q: [n, n] for q, n in zip("abcdef", (9, 8, 1, 2, 3, 4), strict=True)}
    run = Run(Scripted(lengths), max_new=20, more_problems=lambda n: [ask(q) for q in "cdef"[:n]])
    part = partial(n=2, spare=1.0)
    first, second = steps_of(run, part, ["ab", "ef"])
    assert run.policy.asked[0][0] == 8
    assert [g[0].problem.question for g in first] == ["c", "d"]
    assert [g[0].problem.question for g in second] == ["e", "f"]
    assert [g[0].problem.question for g in run.memory["partial.policy"]] == ["a", "b"]


def test_a_filter_that_fills_up_its_batch_gets_as_many_groups_as_it_asks_for():
    """Four problems, of which two stay in progress; two more are asked for in the same step, and two remain in progress."""
    lengths = {q: [n, n] for q, n in zip("abcdef", (9, 8, 1, 2, 3, 4), strict=True)}
    run = Run(Scripted(lengths), max_new=20)
    part = partial(n=2, spare=0.5)
    assert [g[0].problem.question for g in part([ask(q) for q in "abcd"], run)] == ["c", "d"]
    assert [g[0].problem.question for g in part([ask("e"), ask("f")], run)] == ["e", "f"]
    assert [g[0].problem.question for g in run.memory["partial.policy"]] == ["a", "b"]


def test_every_token_keeps_the_log_prob_of_the_weights_that_wrote_it():
    run = Run(Scripted({"a": [9, 2], "b": [3, 4], "c": [1, 1], "d": [2, 8]}), max_new=20)
    _, second = steps_of(run, partial(n=2, spare=0.5), ["ab", "cd"])
    long = second[0][0]
    assert long.column("logprobs")[2:].tolist() == [0.0] * 4 + [1.0] * 5
    assert [t.step for t in long.turns if t.author] == [0, 0, 1, 1]
    assert long.replies == ["x" * 9]
    assert long.ends == [2 + 9 - 1]


def test_busy_is_the_share_of_slots_that_drew():
    run = Run(Scripted({"a": [9, 2], "b": [3, 4], "c": [1, 1], "d": [2, 8]}), max_new=20)
    steps_of(run, partial(n=2, spare=0.5), ["ab"])
    # 4 rows x 3 rounds, then 2 x 1; drawn 3 + 2 + 3 + 3, then 1 + 1
    assert run.metrics["busy"] == pytest.approx(13 / 14)
    assert run.metrics["carried"] == 1
    waiting = Run(Scripted({"a": [9, 2], "b": [3, 4]}), max_new=20)
    groups = steps_of(waiting, partial(n=2, spare=0.0), ["ab"])[0]
    assert len(groups) == 2
    assert waiting.metrics["busy"] == pytest.approx(18 / 36)
    assert waiting.memory["partial.policy"] == []


def test_nothing_is_lost_written_twice_or_too_long():
    rng = random.Random(0)
    names = [f"{step}-{i}" for step in range(30) for i in range(4)]
    lengths = {q: [rng.choice([1, 2, 3, 30]) for _ in range(3)] for q in names}
    run = Run(Scripted(lengths), max_new=12)
    back = steps_of(run, partial(n=3, spare=0.5), [names[i : i + 4] for i in range(0, len(names), 4)])
    assert [len(groups) for groups in back] == [2] + [4] * 29
    rows = [t for groups in back for group in groups for t in group]
    assert len({(t.problem.question, t.path) for t in rows}) == len(rows) == 3 * (2 + 4 * 29)
    assert all(written(t) == min(12, lengths[t.problem.question][t.path[0]]) for t in rows)
    assert all(t.stop == ("end" if lengths[t.problem.question][t.path[0]] <= 12 else "length") for t in rows)
    waiting = [t for group in run.memory["partial.policy"] for t in group]
    assert {(t.problem.question, t.path) for t in rows + waiting} == {(q, (i,)) for q in names for i in range(3)}


@pytest.fixture(scope="module")
def task():
    return euclid(test_size=4)


def test_a_killed_run_goes_on_bit_for_bit(task, tmp_path):
    policy = untrained()
    recipe = registry.build("grpo+april", {"problems": 4, "n": 2, "lr": 0.01}).but(reward=length_penalty(), measure=None)
    model = restless(policy)
    train(recipe, model, task, steps=4, out=tmp_path / "whole", max_new=24, eval_every=0, checkpoint_every=2)
    whole = lines(tmp_path / "whole")
    assert any(line["carried"] > 0 for line in whole)
    cut = tmp_path / "cut"
    shutil.copytree(tmp_path / "whole", cut)
    (cut / "summary.json").unlink()
    shutil.rmtree(cut / "checkpoints" / sorted(p.name for p in (cut / "checkpoints").glob("step-*"))[-1])
    done = resume(cut, task, restless(policy))
    assert lines(cut) == whole
    assert all(torch.equal(v, model.state()[k]) for k, v in done.run.policy.state().items())


def restless(policy):
    """A model of its own whose replies end early and late."""
    model = policy.copy("policy")
    model.ends = frozenset(range(0, 512, 16))
    return model


def lines(out):
    found = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if "seconds" not in k} for line in found if line["step"] > 0]


def test_it_draws_as_its_base_does():
    assert registry.build("grpo+april", {"n": 5, "temperature": 0.7}).rollout == partial(n=5, temperature=0.7)
    assert registry.build("april", {"spare": 0.25}).rollout == partial(spare=0.25)


# ---- the world of long tails -----------------------------------------------------------------------------------------


def test_subtraction_finds_the_divisor_in_as_many_steps_as_there_are_quotients():
    for problem in euclid(test_size=50).test:
        a, b = sorted((problem.meta["a"], problem.meta["b"]), reverse=True)
        assert np.gcd(a, b) == problem.answer
        quotients = []
        while b:
            quotients.append(a // b)
            a, b = b, a % b
        assert len(problem.meta["steps"]) == sum(quotients) - 1  # the last subtraction would leave 0
        row = Trajectory(problem, (Turn("policy", np.zeros(1), text=problem.meta["solution"]),))
        wrong = replace(row, turns=(replace(row.turns[0], text=f"Answer: {problem.answer + 1}"),))
        assert [s.value for s in final_number()([[row, wrong]])[0]] == [1.0, 0.0]


def test_the_teacher_slips_and_carries_on(task):
    rng = random.Random(0)
    said = [(p, task.demonstrate(p, rng)) for p in (task.train[i] for i in range(300))]
    right = sum(text == p.meta["solution"] for p, text in said) / 300
    assert 0.4 < right < 0.8
    assert all(len(text.splitlines()) <= 25 for _, text in said)


@pytest.mark.parametrize("wrong", [{"largest": 3}, {"longest": 1}, {"error": 1.5}])
def test_worlds_that_cannot_be_are_refused(wrong):
    with pytest.raises(RewardlabError, match="between"):
        euclid(**wrong)
