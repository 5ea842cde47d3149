"""V0.5: a baseline between what was thought of a prompt and what its replies earn, and more replies where the two disagree."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from lengths import reply, run_at
from rows import batch_of, steps

from rewardlab import registry
from rewardlab.core import Run, ask, rollout
from rewardlab.credit.group import center
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.credit.v0_5 import (
    PRIOR,
    adaptive_resampling,
    baseline_error,
    check,
    saved_by_another,
    shrunk,
    subtract_prior,
    subtract_shrunk_mean,
    v0_5,
)
from rewardlab.rewards.monte_carlo import sampled_pass_rate
from rewardlab.rewards.recorded import number_in_data
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent

SAYS = {"r": "4", "w": "5", "?": "?"}


@rollout
def scripted(problems, run, *, n: int = 4):
    """The next n letters of each problem's script, every time it is asked."""
    asked = run.memory.setdefault("asked", {})
    groups = []
    for p in problems:
        start = asked.get(p.key, 0)
        asked[p.key] = start + n
        groups.append([replace(reply(2, SAYS[x], problem=p), path=(i,)) for i, x in enumerate(p.meta["script"][start:][:n])])
    return groups


def problem(script: str, prior=None, i: int = 0):
    return ask(f"2+2? {i}", "4", script=script, pass_rate=prior)


def credits(*problems, **settings) -> list[list[float]]:
    recipe = v0_5(**settings)
    run = run_at()
    groups = recipe.rollout.with_innermost(scripted(n=4))(list(problems), run)
    batch = collate(groups, correct()(groups, run), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    assert not credit[~batch.mask].any()
    # both tokens of a reply share its credit
    assert (credit[:, 2] == credit[:, 3]).all()
    return [credit[batch.group == g, 3].tolist() for g in range(batch.groups)]


def test_the_advantages_by_hand():
    # n 4: s^2 = 1/16.  V .5, mean 3/4: (1/4)^2 = s^2, V alone.  V .2: (.5 - .2)^2 = .09, d^2 .0275: w .30556, b = .2 + .3 w
    found = credits(problem("rrrw", 0.5), problem("rrww", 0.2, 1), max_n=4)
    assert found[0] == pytest.approx([0.5, 0.5, 0.5, -0.5])
    assert found[1] == pytest.approx([1 - 0.2916667] * 2 + [-0.2916667] * 2)


def test_no_prior_no_verdict_one_reply_all_right_all_wrong():
    found = credits(problem("rrww"), problem("????", 0.5, 1), problem("rrr?", 1.0, 2), problem("wwww", 0.0, 3), max_n=4)
    assert found[0] == pytest.approx([0.5, 0.5, -0.5, -0.5])
    assert found[1] == [0.0] * 4
    # sure priors that come true leave nothing to learn
    assert found[2] == [0.0] * 4
    assert found[3] == [0.0] * 4
    # a sure one that fails: s^2 = 1/16, distance 1: w = 15/16
    assert credits(problem("rrrr", 0.0), max_n=4)[0] == pytest.approx([1 / 16] * 4)
    assert shrunk([1.0], 0.5) == 0.5  # one reply is never more than a standard error from one half
    assert saved_by_another([1.0], None) == saved_by_another([], 0.5) == 0.0


def test_what_another_reply_saves():
    # V .5, mean 1 of 4: d^2 3/16, s^2 1/16, so 3/64 now; with 1/20: (3/16 1/20) / (19/80)
    assert saved_by_another([1, 1, 1, 1], 0.5) == pytest.approx(3 / 64 - (3 / 320) / (19 / 80))
    assert saved_by_another([1, 1, 1, 0], 0.5) == 0.0


def test_doubted_prompts_alone_get_further_replies_until_they_are_not_doubted():
    # 0: agrees.  1: all right against V .5; 4 of 5 are .3 away, more than sqrt(1/20); 4 of 6 are 1/6 away, less than sqrt(1/24)
    # 2: never agrees: 16 replies.  3: no V
    problems = [problem("rwrwrrrr", 0.5), problem("rrrrwwwwrrrr", 0.5, 1), problem("r" * 40, 0.1, 2), problem("rrrrrr", None, 3)]
    run = run_at()
    groups = adaptive_resampling(inner=scripted(), prior=number_in_data())(problems, run)
    assert [len(g) for g in groups] == [4, 6, 16, 4]
    assert [t.path for t in groups[1]] == [(i,) for i in range(6)]
    assert [g[0].problem.key for g in groups] == [p.key for p in problems]
    assert PRIOR not in groups[3][0].problem.meta
    assert run.metrics["doubted"] == 0.5
    assert run.metrics["replies_per_problem"] == 7.5
    assert [len(g) for g in adaptive_resampling(inner=scripted(), prior=number_in_data(), max_n=6)(problems[2:3], run_at())] == [6]
    # where all contradict V, the seventeenth is not worth .0039 / 4; at a greater cost, the fifth is not
    free = adaptive_resampling(inner=scripted(), prior=number_in_data(), max_n=40)
    assert [len(g) for g in free(problems[2:3], run_at())] == [16]
    assert [len(g) for g in free.but(cost=0.02)(problems[2:3], run_at())] == [4]


def test_a_column_that_is_nowhere_is_an_error_that_says_what_writes_it():
    with pytest.raises(RewardlabError, match="no number in the column pass_rate; rewardlab data pass-rate"):
        adaptive_resampling(inner=scripted(), prior=number_in_data())([problem("rrrr")], run_at())


def test_parts_read_events_of_several_replies():
    batch = batch_of([[("rd", {"a": steps({1: 1.0})}), ("rdd", {"a": steps({2: 0.0})})]])
    batch.rows = [(replace(t, problem=problem("", 0.9)), s) for t, s in batch.rows]
    batch.rows = [(replace(t, problem=replace(t.problem, meta={PRIOR: 0.9})), s) for t, s in batch.rows]
    alone = subtract_prior()(batch.reward, batch, Run(policy=None))
    assert alone.tolist() == [pytest.approx([0, 0.1, 0]), pytest.approx([0, 0, -0.9])]
    # s^2 = 1/8, distance^2 .16: 1 - w = .78125, b = .703125 + .109375
    drawn = subtract_shrunk_mean()(batch.reward, batch, Run(policy=None))
    assert drawn[0, 1].item() == pytest.approx(1 - 0.8125)


class Drawn:
    """A policy that answers by the problem's script; the first letters are those of `baseline_error`'s own samples."""

    device = torch.device("cpu")

    def read(self, trajectories, messages):
        return list(trajectories)

    def extend(self, trajectories, sampling, rng):
        seen: dict = {}
        out = []
        for t in trajectories:
            k = seen[t.problem.key] = seen.get(t.problem.key, -1) + 1
            out.append(replace(reply(2, SAYS[t.problem.meta["truth"][k]], problem=t.problem)))
        return out


def test_the_error_of_a_baseline_by_hand():
    # truth 3/4, squared standard error (.25 with n-1) / 4 = 1/16.  the mean of "rrww" is 1/2, of V .25 1/4
    p = ask("2+2?", "4", script="rrww" * 2, truth="rrrw", pass_rate=0.25)
    told = adaptive_resampling(inner=scripted(), prior=number_in_data(), max_n=4)
    measure = baseline_error(
        reward=correct(),
        truth=independent(n=4),
        rollouts={"mean": scripted(), "prior": told},
        credits={"mean": center(), "prior": subtract_prior()},
    )
    found = measure([p], run_at(policy=Drawn()))
    assert found["error.mean"] == pytest.approx(1 / 16 - 1 / 16)
    assert found["error.prior"] == pytest.approx(1 / 4 - 1 / 16)
    assert (found["replies.mean"], found["replies.prior"], found["n"]) == (4.0, 4.0, 1.0)
    with pytest.raises(RewardlabError, match="of one name"):
        baseline_error(reward=correct(), truth=told, rollouts={"a": told}, credits={"b": center()})([p], run_at(policy=Drawn()))


def test_a_sampled_prior_that_is_wrong_about_some_prompts():
    groups = [[reply(1, problem=ask(f"{i}", "4", truth="rrrw"))] * 2 for i in range(200)]
    said = [row[0].value for row in sampled_pass_rate(n=4, astray=0.25)(groups, run_at(policy=Drawn()))]
    assert set(said) == {0.75, 0.25}
    assert 0.15 < said.count(0.25) / 200 < 0.35
    assert said == [row[1].value for row in sampled_pass_rate(n=4, astray=0.25)(groups, run_at(policy=Drawn()))]


def test_it_keeps_the_samplers_of_its_base_and_the_claim_measures_its_own_parts():
    assert registry.build("v0.5", {"n": 3}).rows_per_problem == 3
    assert "temperature=0.7" in str(v0_5(registry.build("grpo", {"temperature": 0.7})))
    assert str(check.by.settings["credits"]["shrunk"]) in str(v0_5().credit)


@rollout(wraps="inner")
def without_the_first(problems, run, *, inner):
    """A filter, which passes on all groups but the first."""
    return inner(problems, run)[1:]


def test_around_a_filter_every_doubted_group_gets_its_further_replies():
    recipe, run = v0_5(max_n=8), run_at()
    sampled = without_the_first(inner=scripted(n=4))
    doubting = recipe.rollout.but(inner=sampled)
    problems = [problem("rrrrrrrr", 0.0, i) for i in range(3)]
    groups = doubting(problems, run)
    # the filter, asked again, would drop one of the two
    assert [(group[0].problem.question, len(group)) for group in groups] == [("2+2? 1", 8), ("2+2? 2", 8)]
