"""Guide-GRPO: a hint where nobody was right, taken away before anything is learnt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from lengths import verify

from rewardlab import registry
from rewardlab.core import Outputs, Run, Trajectory, Turn, ask, rollout
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.sampling.guide_grpo import guide_grpo, hint_on_failure
from rewardlab.models.embedded import untrained
from rewardlab.objectives.ratio import imitate
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent

SAYS = {"r": "4", "w": "5", "?": "?"}


class Reader:
    """A prompt is as many tokens as its last message has words."""

    def read(self, trajectories, messages):
        return [
            t.plus(Turn(None, np.zeros(len(m[-1].text.split()), np.int64))) for t, m in zip(trajectories, messages, strict=True)
        ]

    def check_fits(self, trajectory, further):
        """Its context has no end."""


@rollout
def scripted(problems, run):
    """What stands in `plain`, each token of log-prob -2; with a hint, what stands in `hinted`, each of log-prob -1."""
    groups = []
    for p in problems:
        hinted = "Hint:" in p.question
        logprobs = np.full(2, -1.0 if hinted else -2.0, np.float32)
        (prompt,) = run.policy.read([Trajectory(p)], [p.prompt])
        said = p.meta["hinted" if hinted else "plain"]
        turns = [Turn("policy", np.array([7, 8]), logprobs, logprobs, SAYS[x], step=0) for x in said]
        groups.append([replace(prompt.plus(turn, "end"), steps=(len(prompt) + 1,)) for turn in turns])
    return groups


def problem(plain: str, hinted: str = "rrww", i: int = 0, **meta):
    return ask(f"2+2? {i}", "4", **{"plain": plain, "hinted": hinted, "hint": "add them", **meta})


def run_with(*problems, **settings):
    run = Run(policy=Reader(), verify=verify())
    return hint_on_failure(inner=scripted(), **settings)(list(problems), run), run


def said(groups):
    return ["".join(t.reply for t in g) for g in groups]


def test_only_groups_that_are_all_wrong_are_asked_again():
    # one right; all wrong; wrong or without a verdict; no verdict at all; all right
    groups, run = run_with(*(problem(x, i=i) for i, x in enumerate(["wrww", "wwww", "w?ww", "????", "rrrr"])))
    assert said(groups) == ["5455", "4455", "4455", "????", "4444"]
    assert run.metrics["guided"] == pytest.approx(0.4)
    assert run.metrics["rescued"] == 1.0
    groups, run = run_with(problem("wwww", "wwww"), problem("rrrr", i=1), everywhere=True)
    assert said(groups) == ["5555", "4455"]
    assert run.metrics["rescued"] == 0.5
    assert "rescued" not in run_with(problem("rrrr"))[1].metrics


def test_the_hint_is_gone_and_its_log_probs_stay():
    (group,), _ = run_with(problem("wwww"))
    for t in group:
        assert t.problem.question == "2+2? 0"
        assert len(t) == 4  # two words, two tokens
        assert t.steps == (3,)
        assert t.column("logprobs")[t.mask].tolist() == [-1.0, -1.0]
        # the trainer must not take these for tokens that it said to this prompt in this step
        assert [turn.step for turn in t.turns if turn.author] == [-1]
    (kept,), _ = run_with(problem("wwww"), plain=False)
    assert [t.problem.question for t in kept] == ["2+2? 0 Hint: add them"] * 4
    assert len(kept[0]) == 7


def test_the_loss_by_hand():
    recipe, run = guide_grpo(), Run(policy=Reader(), verify=verify())
    # the first is asked again, and has the log-probs of the hint; the second is not
    groups = recipe.rollout.with_innermost(scripted())([problem("wwww"), problem("rrww", i=1)], run)
    batch = collate(groups, correct()(groups, run), torch.device("cpu"))
    batch.credit = recipe.credit(batch.reward, batch, run)
    # A = (1/2) / (std of 1100 = .57735 + eps);  log pi -3 and -.5: after -1 the ratios are e^-2 = .1353 and e^.5 = 1.6487,
    # after -2 they are e^-1 = .3679 and e^1.5 = 4.4817
    logprobs = torch.zeros(batch.mask.shape)
    logprobs[:, 2], logprobs[:, 3] = -3.0, -0.5
    logprobs.requires_grad_()
    loss = recipe.objective(Outputs(logprobs=logprobs), batch, run)
    a = 0.5 / (3**-0.5 + 1e-4)
    low, high = np.exp(-2.0), np.exp(0.5)
    c = low + 0.9 * (high - low)
    # neither is clipped, right or wrong
    for row, sign in ((0, -1), (3, 1)):
        assert loss[row, 2:].tolist() == pytest.approx([sign * a * low / (low + c), sign * a * high / (high + c)], rel=1e-4)
    # plain: right min(.3679 A, .8 A), min(4.4817 A, 1.2 A);   wrong min(-.3679 A, -.8 A), min(-4.4817 A, -1.2 A)
    assert loss[4, 2:].tolist() == pytest.approx([-a * np.exp(-1.0), -1.2 * a], rel=1e-4)
    assert loss[7, 2:].tolist() == pytest.approx([0.8 * a, np.exp(1.5) * a], rel=1e-4)
    loss.sum().backward()
    # d/dlog pi of r / (r + c) is r c / (r + c)^2, with c held fixed: the token that is likelier without the hint learns on
    slopes = [-a * r * c / (r + c) ** 2 for r in (low, high)]
    assert logprobs.grad[0, 2:].tolist() == pytest.approx(slopes, rel=1e-4)
    assert logprobs.grad[4, 3] == 0


def test_terms_without_a_ratio_stay_and_one_with_it_is_needed():
    (_, ratio), (weight, kl) = guide_grpo(registry.build("grpo", {"beta": 0.1})).objective.terms()
    assert (ratio.name, weight, str(kl)) == ("bounded_where_guided", 0.1, "kl_to_reference()")
    assert guide_grpo(plain=False).objective == registry.build("grpo").objective
    with pytest.raises(RewardlabError, match="off-policy"):
        guide_grpo(registry.build("grpo").but(objective=imitate()))


def test_where_the_hint_comes_from():
    groups, _ = run_with(problem("w", "r", hint=None, solution="2+2=4\nAnswer: 4"), plain=False)
    assert groups[0][0].problem.question == "2+2? 0 Hint: 2+2=4"
    groups, _ = run_with(problem("w", "r", clue="{question}"), column="clue", plain=False)
    assert groups[0][0].problem.question == "2+2? 0 Hint: {question}"  # a text is not a place to be filled in


def test_a_group_without_a_hint_stays_as_it_is():
    groups, run = run_with(problem("ww", "rr", hint=" "), problem("ww", "rr", i=1))
    assert said(groups) == ["55", "44"]
    assert run.metrics["guided"] == 0.5
    groups, run = run_with(problem("ww", "rr", hint=None))
    assert said(groups) == ["55"]
    assert run.metrics["guided"] == 0
    assert "rescued" not in run.metrics


def test_with_a_policy_the_ratio_is_that_of_the_two_prompts():
    policy = untrained(hidden=32, layers=1)
    run = Run(policy, max_new=4, verify=verify())
    (group,) = hint_on_failure(inner=independent(n=3))([ask("What?", "4", hint="Say so.")], run)
    moved = group[0]
    (plain,) = policy.read([Trajectory(moved.problem)], [moved.problem.prompt])
    assert moved.ids[: len(plain)].tolist() == plain.ids.tolist()
    hinted = moved.problem.reworded("What? Hint: Say so.")
    (prompt,) = policy.read([Trajectory(hinted)], [hinted.prompt])
    (scored,) = policy.score([prompt.plus(replace(moved.turns[-1], logprobs=None), "end")])
    assert moved.column("logprobs")[moved.mask] == pytest.approx(scored[len(prompt) :], abs=1e-4)
    (other,) = policy.score([moved])
    assert np.abs(other[moved.mask] - scored[len(prompt) :]).max() > 1e-3


def test_it_keeps_its_bases_sampler():
    made = registry.build("guide-grpo", {"n": 3})
    assert made.rows_per_problem == 3
    plain = registry.build("grpo", {"n": 3})
    assert made.but(rollout=made.rollout.settings["inner"], objective=plain.objective) == plain.but(name=made.name)


@rollout(wraps="inner")
def without_the_first(problems, run, *, inner):
    """A filter, which passes on all groups but the first."""
    return inner(problems, run)[1:]


def test_around_a_filter_every_group_that_failed_is_sampled_again():
    run = Run(policy=Reader(), verify=verify())
    groups = hint_on_failure(inner=without_the_first(inner=scripted()))([problem("wwww", "rrrr", i) for i in range(3)], run)
    # the filter, asked again, would drop one of the two
    assert [group[0].problem.question for group in groups] == ["2+2? 1", "2+2? 2"]
    assert [t.reply for group in groups for t in group] == ["4"] * 8
