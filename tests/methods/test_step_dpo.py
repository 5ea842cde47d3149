"""Step-DPO: pairs cut to the first step in which they differ."""

from __future__ import annotations

import math

import pytest
import torch

from rewardlab import registry
from rewardlab.core import Outputs, Run, Trajectory, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.step_dpo import step_dpo, to_first_difference
from rewardlab.models.embedded import untrained
from rewardlab.objectives.pairs import dpo_loss
from rewardlab.rollouts.recorded import recorded

PAIRS = recorded(fields=("chosen", "rejected"))


@pytest.fixture(scope="module")
def policy():
    return untrained()


def cut(policy, chosen: str, rejected: str):
    problem = ask("Start with 7. Add 5. Multiply by 3.", "36", chosen=chosen, rejected=rejected)
    return to_first_difference(inner=PAIRS)([problem], Run(policy))[0]


def known(t) -> str:
    """What is read of a reply."""
    return "".join(turn.text for turn in t.turns[1:-1])


def test_what_both_begin_with_is_read_and_one_step_is_decided(policy):
    pair = cut(policy, "7+5=12\n12*3=36\nAnswer: 36", "7+5=12\n12*3=34\nAnswer: 34")
    assert [t.reply for t in pair] == ["12*3=36\n", "12*3=34\n"]
    assert [known(t) for t in pair] == ["7+5=12\n"] * 2
    # twelve, times, three, equals, two digits, the end of the line: 8 tokens each; no end of the reply
    assert [int(t.mask.sum()) for t in pair] == [8, 8]
    assert [bool(t.mask[-8:].all()) for t in pair] == [True, True]
    assert [t.tag for t in pair] == ["chosen", "rejected"]
    assert not any(int(t.ids[-1]) in policy.ends for t in pair)


def test_a_first_step_that_differs_leaves_nothing_to_read(policy):
    pair = cut(policy, "7+5=12\n12*3=36\nAnswer: 36", "7+5=13\n13*3=39\nAnswer: 39")
    assert [t.reply for t in pair] == ["7+5=12\n", "7+5=13\n"]
    assert [len(t.turns) for t in pair] == [2, 2]


def test_a_last_step_ends_the_reply(policy):
    pair = cut(policy, "7+5=12\nAnswer: 12", "7+5=12\nAnswer: 21")
    assert [t.reply for t in pair] == ["Answer: 12", "Answer: 21"]
    assert all(int(t.ids[-1]) in policy.ends for t in pair)


def test_a_reply_that_stops_too_early_differs_in_its_last_step(policy):
    pair = cut(policy, "7+5=12\n12*3=36", "7+5=12")
    assert [t.reply for t in pair] == ["7+5=12\n", "7+5=12"]
    assert int(pair[1].ids[-1]) in policy.ends


def test_steps_of_unequal_length_end_where_each_ends(policy):
    pair = cut(policy, "7+5=12\n12*3=36\nAnswer: 36", "7+5=12\nwell, that would be 100\nAnswer: 100")
    assert [t.reply for t in pair] == ["12*3=36\n", "well, that would be 100\n"]
    assert [known(t) for t in pair] == ["7+5=12\n"] * 2


def test_the_step_that_is_cut_out_is_the_first_mistake():
    task = registry.task("preferences")
    policy = untrained(task=task)
    problems = [task.train[i] for i in range(100)]
    places = set()
    for problem, (chosen, rejected) in zip(problems, to_first_difference(inner=PAIRS)(problems, Run(policy)), strict=True):
        k = known(chosen).count("\n")
        places.add(k)
        assert known(chosen) == known(rejected) == "".join(f"{step}\n" for step in problem.meta["steps"][:k])
        assert chosen.reply == problem.meta["steps"][k] + "\n"
        left, result = rejected.reply.split("=")
        assert left == chosen.reply.split("=")[0]
        assert eval(left) != int(result)
    assert places == {0, 1, 2}


def test_the_loss_is_that_of_the_step_alone(policy):
    # log pi/ref is 1/4 at each of the right step's 8 tokens, -1/8 at the wrong one's: margin 2 + 1, whatever it is elsewhere
    pair = cut(policy, "7+5=12\n12*3=36\nAnswer: 36", "7+5=12\n12*3=34\nAnswer: 34")
    batch = collate([pair], None, policy.device)
    batch.columns["ref"] = torch.zeros(batch.mask.shape)
    logprobs = torch.where(batch.mask, torch.tensor([[0.25], [-0.125]]), 100.0)
    loss = dpo_loss(beta=0.5)(Outputs(logprobs=logprobs), batch, Run(None))
    assert loss.tolist() == pytest.approx([math.log(1 + math.exp(-1.5))])


@pytest.mark.parametrize("before", ["7+5=12\nStep 2: ", ""])
def test_single_steps_of_rows_are_whole_after_the_steps_before(policy, before):
    """As in the released data: steps of several lines, and no end of the reply."""
    problem = ask("?", chosen="so\n12*3=36", rejected="so\n12*3=34\nhm", initial_reason_steps=before)
    pair = to_first_difference(inner=PAIRS)([problem], Run(policy))[0]
    assert [known(t) + t.reply for t in pair] == [f"{before}so\n12*3=36", f"{before}so\n12*3=34\nhm"]
    assert not any(int(t.ids[-1]) in policy.ends for t in pair)


def test_the_loss_of_single_steps_is_that_of_their_tokens_after_the_steps_before(policy):
    """log sigma(beta (log pi/ref of the right step - that of the wrong one)), both after the question and the steps before."""
    problem = ask("?", chosen="12*3=36", rejected="12*3=34", initial_reason_steps="7+5=12\n")
    batch = collate(to_first_difference(inner=PAIRS)([problem], Run(policy)), None, policy.device)
    batch.columns["ref"] = torch.zeros(batch.mask.shape)
    out = policy.evaluate(batch)
    ids = [
        policy.write(policy.read([Trajectory(problem)], [problem.prompt]), ["7+5=12\n" + text])[0]
        for text in ("12*3=36", "12*3=34")
    ]
    scored = [torch.tensor(x) for x in policy.score(ids)]
    # the last 7 tokens but for the end of the reply
    right, wrong = (x[-8:-1].sum() for x in scored)
    loss = dpo_loss(beta=0.5)(out, batch, Run(None))
    assert loss.item() == pytest.approx(float(-torch.nn.functional.logsigmoid(0.5 * (right - wrong))), abs=1e-4)


def test_replies_that_do_not_differ_and_groups_that_are_no_pairs_are_refused(policy):
    with pytest.raises(RewardlabError, match="the same"):
        cut(policy, "7+5=12", "7+5=12")
    with pytest.raises(RewardlabError, match="1 replies"):
        to_first_difference(inner=recorded(fields=("chosen",)))([ask("?", chosen="1")], Run(policy))


def test_it_stacks_on_other_losses_of_pairs():
    assert str(step_dpo().objective) == "dpo_loss(beta=0.4)"
    stacked = registry.build("ipo+step_dpo")
    assert str(stacked.objective) == "ipo_loss()"
    assert stacked.rollout == to_first_difference(inner=PAIRS)
