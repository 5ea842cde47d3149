"""ReMax: the greedy reply is what others are measured against; it is paid for and not learned from."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rows import Replies, batch_of, outcome

from rewardlab import registry
from rewardlab.core import Run, Sampling, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.baselines.remax import greedy_replies, less_greedy
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.verifiers.match import final_number


def said(question: str, gold: str, *replies: str) -> list[Trajectory]:
    problem = ask(question, gold)
    return [Trajectory(problem, (Turn("policy", np.zeros(1, np.int64), text=text),), "end") for text in replies]


def judged(groups, greedy: list[str]):
    run = Run(Replies(greedy))
    return less_greedy(inner=final_number())(groups, run), run


def test_rewards_less_that_of_the_greedy_reply_by_hand():
    # greedy right: 1 - 1, 0 - 1;  greedy wrong: 1 - 0, 0 - 0
    scores, run = judged([said("a", "2", "2", "3"), said("b", "5", "5", "6")], ["2", "7"])
    assert [[s.value for s in row] for row in scores] == [[0, -1], [1, 0]]
    assert [[s.terms["final_number"].value for s in row] for row in scores] == [[1, 0], [1, 0]]
    assert run.metrics["greedy"] == 0.5


def test_as_good_as_greedy_is_a_verdict_and_none_is_none():
    scores, run = judged([said("a", "2", "2"), said("b", "no number", "5")], ["2", "7"])
    assert scores[0][0].has_outcome
    assert scores[1][0].value is None
    assert run.metrics["greedy"] == 1.0  # of the one that is known


@reward(over="groups")
def of_known_replies(groups, run):
    """No verdict on "?", 1 for all else."""
    return [[None if t.reply == "?" else 1.0 for t in group] for group in groups]


def test_a_greedy_reply_without_a_verdict_leaves_none_to_the_others():
    [[score]] = less_greedy(inner=of_known_replies())([said("a", "2", "2")], Run(Replies(["?"])))
    assert score.value is None
    assert "greedy" in score.why


@reward(steps=True)
def by_tokens(trajectory):
    return [(0, 0.5), (len(trajectory) - 1, 0.25)]


def test_rewards_of_steps_stay_and_all_of_them_are_subtracted_once():
    problem = ask("a", "2")
    row = Trajectory(problem, (Turn("policy", np.zeros(2, np.int64), text="ab"),), "end")
    [[score]] = less_greedy(inner=by_tokens())([[row]], Run(Replies(["ab"])))
    assert (score.value, score.steps, score.total) == (-0.75, ((0, 0.5), (1, 0.25)), 0.0)


def test_each_token_pays_for_its_own_kl_alone():
    # as in the released code: log(pi_old / ref) of 1 and 2 at the two tokens of a reply that earns 1, 0 at that of one with -1
    rows = [[("rdd", {"a": outcome(1.0)})], [("rd", {"a": outcome(-1.0)})]]
    batch = batch_of(rows, {"ref": [[-9.0, -2.0, -3.0], [-9.0, 0.0]]})
    batch.old = torch.zeros(batch.mask.shape)
    batch.old[0, 1:] = torch.tensor([-1.0, -1.0])
    recipe = registry.build("remax", {"beta": 0.05})
    assert recipe.credit(batch.reward, batch, Run(None))[batch.mask].tolist() == pytest.approx([0.95, 0.9, -1.0])
    assert "ref" in recipe.needs
    assert "ref" not in registry.build("remax").needs


@pytest.fixture(scope="module")
def policy():
    return untrained()


def test_the_greedy_reply_is_the_likeliest_token_at_every_step(policy):
    run = Run(policy, max_new=6)
    [[row]] = greedy_replies([ask("2+3?", "5")], run)
    written = row.turns[-1].ids
    assert 1 <= len(written) <= 6
    for k in range(len(written)):
        before = row.cut(len(row.turns[0].ids) + k)
        [drawn] = policy.extend([before], Sampling(1, temperature=0.0), torch.Generator().manual_seed(k))
        assert drawn.turns[-1].ids[0] == written[k]


def test_it_costs_its_tokens_is_not_in_the_batch_and_moves_no_draw(policy):
    problems = [ask("2+3?", "5"), ask("4-1?", "3")]

    def step(greedy: bool):
        run = Run(policy, max_new=6, verify=final_number())
        recipe = registry.build("remax", {"greedy": greedy})
        before = run.token_count.total
        groups = recipe.rollout(problems, run)
        scores = recipe.reward(groups, run)
        return groups, collate(groups, scores, policy.device), run.token_count.total - before

    with_it, batch, spent = step(True)
    without, plain, less = step(False)
    assert [[t.turns[-1].ids.tolist() for t in g] for g in with_it] == [[t.turns[-1].ids.tolist() for t in g] for g in without]
    assert torch.equal(batch.ids, plain.ids)
    assert torch.equal(batch.mask, plain.mask)
    greedy = greedy_replies(problems, Run(policy, max_new=6))
    assert spent - less >= sum(int(t.mask.sum()) for g in greedy for t in g)


def test_credit_is_the_difference_at_every_token():
    [[good, bad]], _ = judged([said("a", "2", "2", "3")], ["3"])
    recipe = registry.build("remax", {"n": 2})
    batch = collate([said("a", "2", "2", "3")], [[good, bad]], torch.device("cpu"))
    assert recipe.credit(batch.reward, batch, Run(None))[:, 0].tolist() == [1.0, 0.0]
    assert str(registry.build("rloo+remax").reward) == "less_greedy(inner=correct())"
