"""SPAE: steps are credited by the rise of a potential, which a forced answer shows."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from rows import batch_of, outcome, steps

from rewardlab import registry
from rewardlab.core import Run, Sampling, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.evals.step_worth import step_agreement
from rewardlab.methods.credit.spae import check, potential, spae, step_potential
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent
from rewardlab.text.splitters import mark
from rewardlab.util.outputs import entropies


def credit_of(*rows, whole=False, **settings):
    """Of the potential and the outcome; `whole`: set to mean 0 and deviation 1 over the batch too."""
    recipe = spae(**settings)
    batch = batch_of([list(rows)])
    return (recipe.credit if whole else recipe.credit.of[0])(batch.reward, batch, Run(policy=None))


def row(pattern: str, verdict: float | None, phi: dict[int, float]):
    return pattern, {"correct": outcome(verdict), "step_potential": steps(phi, weight=0.0)}


def test_the_potential_at_its_corners():
    assert potential(1, 1) == 1
    assert potential(0, 1) == -1
    assert potential(0, 0) == 0
    assert potential(1, 0) == 0.5
    assert potential(0.5, 0.5) == pytest.approx(0.125)


def test_the_advantages_by_hand():
    # right, steps of 2 1 1 1 tokens and an answer of 1: potentials .2 .95 .95 .5;  wrong, one step: .4;  unequal lengths
    rows = row("rdddddd", 1.0, {2: 0.2, 3: 0.95, 4: 0.95, 5: 0.5}), row("rddd", 0.0, {2: 0.4})
    found = credit_of(*rows)
    # rises 0 .75 0 -.45 and 0, of the range 1.2: 3/8 1 3/8 0 and 3/8
    e = math.exp(3 / 8)
    mean = (3 * e + math.e + 1) / 5
    once, twice = 0.5 + 0.5 * math.exp(-1), 0.5 + 0.5 * math.exp(-2)
    still = 0.5 * (e - mean)
    # the third step comes after one full potential, the fourth after two, and it falls; the answer has the outcome alone
    right = [0.5 + still] * 2 + [0.5 + 0.5 * (math.e - mean), 0.5 * once + still, 0.5 * twice + 0.5 * (1 - mean), 0.5]
    wrong = [-0.5 + still] * 2 + [-0.5]
    assert found[0, 1:].tolist() == pytest.approx(right)
    assert found[1, 1:4].tolist() == pytest.approx(wrong)
    assert not found[:, 0].any()
    # and over all nine tokens mean 0, deviation 1
    both = np.array(right + wrong)
    both = (both - both.mean()) / both.std(ddof=1)
    found = credit_of(*rows, whole=True)
    assert found[0, 1:].tolist() + found[1, 1:4].tolist() == pytest.approx(both.tolist(), abs=1e-6)


def test_right_and_wrong_replies_alike_are_paid_less_for_what_came_after_the_answer_was_there():
    found = credit_of(row("rddd", 0.0, {1: 0.95, 2: -0.5}), row("rd", 1.0, {}), xi=0.0, alpha=1.0)
    assert found[0, 1:].tolist() == pytest.approx([-0.5, -0.5 * math.exp(-1), -0.5])
    assert found[1, 1].item() == pytest.approx(0.5)


def test_all_right_one_reply_and_missing_verdicts():
    # all right: no outcome, but the rises are left: 0 and .5, so e^0 and e^1, less their mean
    half = (math.e - 1) / 2
    found = credit_of(row("rddd", 1.0, {1: 0.0, 2: 0.5}), row("rd", 1.0, {}), xi=1.0)
    assert found[0].tolist() == pytest.approx([0, -half, half, 0])
    assert not found[1].any()
    assert credit_of(row("rddd", 1.0, {1: 0.0, 2: 0.5}), xi=2.0)[0].tolist() == pytest.approx([0, -2 * half, 2 * half, 0])
    # a row without a verdict gets nothing, and its rises do not count: those of the others are all 0, alike
    found = credit_of(row("rddd", None, {1: 0.0, 2: 0.5}), row("rdd", 1.0, {1: 0.3}), row("rdd", 0.0, {1: 0.3}), xi=1.0)
    assert not found[0].any()
    assert found[1, 1:3].tolist() == pytest.approx([0.5] * 2)
    assert found[2, 1:3].tolist() == pytest.approx([-0.5] * 2)
    # no step at all was judged
    assert credit_of(row("rd", 1.0, {}), row("rd", 0.0, {}))[:, 1].tolist() == pytest.approx([0.5, -0.5])
    batch = batch_of([[("rd", {"correct": outcome(1.0)})]])
    with pytest.raises(RewardlabError, match="step_potential"):
        spae().credit(batch.reward, batch, Run(policy=None))


def written(policy, problem, *texts):
    (prompt,) = policy.read([Trajectory(problem)], [problem.prompt])
    return [mark(t, "newline", policy.pieces) for t in policy.write([prompt] * len(texts), texts)]


def test_what_a_forced_answer_shows():
    policy = untrained(0, hidden=32, layers=1)
    problem = ask("Start with 7. Add 5.", "12")
    rows = written(policy, problem, "7+5=12\n12-0=12\nAnswer: 12", "Answer: 12")
    said = {of: step_potential(of=of, probes=3, tokens=4)([rows], Run(policy)) for of in ("potential", "sure", "right")}
    first, second = said["right"][0]
    # one number at the end of each step but the last; a reply of one step has none, and is no failure
    assert [at for at, _ in first.steps] == list(rows[0].steps[:-1])
    assert (second.steps, second.missing) == ((), False)
    # right: the gold answer's tokens after the first line and the mark
    (prompt,) = policy.read([Trajectory(problem)], [problem.prompt])
    (whole,) = policy.write([prompt], ["7+5=12\nAnswer: 12"])
    assert policy.pieces(whole.ids[-4:-1]) == [" ", "1", "2"]
    assert first.steps[0][1] == pytest.approx(float(np.exp(policy.score([whole])[0][-4:-1]).mean()), abs=1e-6)
    # sure: of the same three samples
    forced = [t.cut(len(t) - 1) for t in policy.write([prompt] * 2, ["7+5=12\nAnswer:", "7+5=12\n12-0=12\nAnswer:"])]
    # of a space and two digits, as the gold answer
    answers = policy.extend([t for t in forced for _ in range(3)], Sampling(3, 0.6), Run(policy).rng("probe"))
    spread = [h[len(forced[k // 3]) :][:3].mean() for k, h in enumerate(entropies(policy, answers))]
    sure = [float(np.exp(-np.array(spread[k : k + 3])).mean()) for k in (0, 3)]
    assert [x for _, x in said["sure"][0][0].steps] == pytest.approx(sure, abs=1e-5)
    both = [potential(r, s) for (_, r), s in zip(first.steps, sure, strict=True)]
    assert [x for _, x in said["potential"][0][0].steps] == pytest.approx(both, abs=1e-5)


def test_steps_from_the_end_of_the_thinking_on_are_not_probed(monkeypatch):
    policy = untrained(0, hidden=32, layers=1)
    problem = ask("Start with 7. Add 5.", "12")
    thought, plain = written(
        policy, problem, "<think>\n7+5=12\n12-0=12\n</think>\nIt is 12.\nSo\nAnswer: 12", "<think>\n7+5=12\n12-0=12"
    )
    forced = []
    monkeypatch.setattr(policy, "write", lambda rows, texts, write=policy.write: forced.extend(texts) or write(rows, texts))
    first, second = step_potential(probes=2, tokens=4)([[thought, plain]], Run(policy))[0]
    # of seven lines the first three stand before the one that closes it; without an end all but the last are probed
    assert [at for at, _ in first.steps] == list(thought.steps[:3])
    assert [at for at, _ in second.steps] == list(plain.steps[:2])
    # all answers are forced in one form
    assert not any("</think>" in text for text in forced)
    assert all("\nAnswer:" in text for text in forced)


class Probed:
    """A policy whose forced answers are this text."""

    def __init__(self, policy, text):
        self.policy, self.text = policy, text

    def __getattr__(self, name):
        return getattr(self.policy, name)

    def extend(self, rows, sampling, rng):
        whole = self.policy.write([Trajectory(t.problem, t.turns[:1]) for t in rows], [t.reply + self.text for t in rows])
        return [t.cut(len(t) - 1, self.policy.decode) for t in whole]


def test_what_follows_the_answer_does_not_change_how_sure_it_is():
    policy = untrained(0, hidden=32, layers=1)
    problem = ask("Start with 7. Add 5.", "12")
    rows = written(policy, problem, "7+5=12\n12-0=12\nAnswer: 12")
    sure = [
        [x for _, x in step_potential(of="sure", probes=2)([rows], Run(Probed(policy, text)))[0][0].steps]
        for text in (" 12", " 12 and so on", " 34")
    ]
    assert len(sure[0]) == 2
    assert sure[0] == pytest.approx(sure[1], abs=1e-6)
    assert sure[0] != pytest.approx(sure[2], abs=1e-6)


def test_problems_without_a_gold_text_and_rollouts_without_steps():
    policy = untrained(0, hidden=32, layers=1)
    (row,) = written(policy, ask("?", [1, 2]), "a\nb")
    assert step_potential()([[row]], Run(policy))[0][0].missing
    with pytest.raises(RewardlabError, match="set steps="):
        step_potential()([independent(n=1)([ask("?", "1")], Run(policy, max_new=2))[0]], Run(policy))


@reward(steps=True)
def counted(trajectory, *, times: float = 1.0):
    return [(at, times * k + (k == 2)) for k, at in enumerate(trajectory.steps)]


def test_agreement_is_the_correlation_over_steps():
    policy = untrained(0, hidden=32, layers=1)
    found = step_agreement(
        truth=counted(), rewards={"same": counted(times=1.0), "not": counted(times=-1.0)}, rollout=independent(n=2, steps="token")
    )([ask("?", "1")], Run(policy, max_new=6))
    assert found["agreement.same"] == pytest.approx(1.0)
    assert found["agreement.not"] < 0


def test_stacked_on_another_and_in_its_claim():
    assert "solved_between" in str(registry.build("dapo+spae").rollout)
    assert registry.build("spae", {"probes": 3}).reward.to_json() != registry.build("spae").reward.to_json()
    assert check.by.settings["rewards"]["potential"] == step_potential()
    assert torch.is_tensor(credit_of(row("rd", 1.0, {})))
