"""Steps are worth the share of their continuations that come out right."""

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Sampling, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.rewards.monte_carlo import monte_carlo_steps
from rewardlab.rewards.reward import reward
from rewardlab.text.splitters import mark


@reward
def even(trajectory):
    """Replies with an even number of letters are right, those that begin with x have no verdict."""
    return None if trajectory.reply.startswith("x") else float(len(trajectory.reply) % 2 == 0)


def written(policy, *texts):
    problem = ask("Start with 7.")
    (prompt,) = policy.read([Trajectory(problem)], [problem.prompt])
    return [mark(t, "newline", policy.pieces) for t in policy.write([prompt] * len(texts), texts)]


def test_each_step_gets_the_share_of_right_continuations_and_the_last_one_the_verdict():
    policy = untrained(0)
    rows = written(policy, "7+5=12\n12*3\nAnswer: 3", "1", "x\n2")
    run = Run(policy, verify=even(), max_new=6)
    before = policy.token_count.generated
    first, second, third = monte_carlo_steps(n=5)([rows], run)[0]
    # two steps before the last one of the first reply, one of the third, five continuations each
    assert 15 <= policy.token_count.generated - before <= 15 * 6
    # the same continuations again
    begun = [t.cut(at + 1, policy.decode) for t in (rows[0], rows[2]) for at in t.steps[:-1] for _ in range(5)]
    again = policy.extend(begun, Sampling(6), Run(policy).rng("monte_carlo"))
    wanted = [float(np.mean([len(t.reply) % 2 == 0 for t in again[k : k + 5]])) for k in (0, 5)]
    assert first.terms["monte_carlo_steps"].steps == (
        (rows[0].steps[0], wanted[0]), (rows[0].steps[1], wanted[1]), (rows[0].steps[2], float(len(rows[0].reply) % 2 == 0))
    )  # fmt: skip
    assert all(t.reply.startswith("7+5=12\n") for t in again[:10])
    assert second.terms["monte_carlo_steps"].steps == ((rows[1].steps[0], 0.0),)
    assert third.missing


def test_it_says_what_it_needs():
    policy = untrained(0)
    rows = written(policy, "1\n2")
    with pytest.raises(RewardlabError, match="task's verifier"):
        monte_carlo_steps()([rows], Run(policy))
    bare = policy.write([rows[0].cut(3)], ["1"])
    with pytest.raises(RewardlabError, match='steps="newline"'):
        monte_carlo_steps()([bare], Run(policy, verify=registry.part("reward", "exact_match")))
