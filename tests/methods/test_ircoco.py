"""IRCoCo: each token is paid what an evaluator foretells of the completion."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rows import batch_of, outcome

from rewardlab import registry
from rewardlab.core import Outputs, Run, Trajectory, Turn, ask
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import RewardlabError
from rewardlab.methods.process.ircoco import immediate, ircoco
from rewardlab.models.embedded import untrained
from rewardlab.objectives.progress import outcome_error
from rewardlab.rewards.length import length_penalty
from rewardlab.rewards.similarity import similar_to
from rewardlab.runs.config import RunConfig

ROWS = [("rddd", {"s": outcome(0.75)}), ("rd", {"s": outcome(0.25)}), ("rdd", {"s": outcome(None)})]
SAID = [[9.0, 0.5, 0.25, 1.0], [9.0, 0.5], [9.0, 0.5, 0.5]]


def batch(**columns):
    made = batch_of([[row] for row in ROWS], {"evaluator.value": SAID, **columns})
    made.length = torch.tensor([4, 2, 3])
    return made


def test_the_evaluator_learns_to_foretell_at_every_token():
    value = torch.tensor([[9.0, 0.5, 0.75, 0.0], [9.0, 1.0, 9.0, 9.0], [9.0, 9.0, 9.0, 9.0]])
    loss = outcome_error()(Outputs(value=value), batch(), Run(policy=None))
    assert loss.tolist() == [[0, 0.0625, 0, 0.5625], [0, 0.5625, 0, 0], [0, 0, 0, 0]]


def test_tokens_are_paid_what_it_says_and_not_what_was_earned():
    run, made = Run(policy=None), batch()
    found = immediate()(made.reward, made, run)
    assert found.tolist() == [[0, 0.5, 0.25, 1.0], [0, 0.5, 0, 0], [0, 0, 0, 0]]
    # at the ends it says 1 and 1/2, and 3/4 and 1/4 were earned
    assert run.metrics["evaluator_fit"] == pytest.approx(1.0)


def test_the_advantages_by_hand():
    # V before each token: 1/4 1/2 1/2, and 1/4; nothing of later tokens reaches an earlier one
    made = batch(value=[[0.25, 0.5, 0.5, 9.0], [0.25, 9.0], [0.0, 0.0, 0.0]])
    found = ircoco(registry.build("ppo", {"beta": 0.0, "gamma": 0.0})).credit(made.reward, made, Run(policy=None))
    raw = np.array([0.25, -0.25, 0.5, 0.25])
    wanted = (raw - raw.mean()) / raw.std(ddof=1)
    assert found[made.mask & made.rewarded.any(1, keepdim=True)].tolist() == pytest.approx(wanted.tolist(), abs=1e-5)
    assert not found[2].any()


def test_one_reply_and_replies_that_earn_the_same_have_no_fit():
    for rows in ([ROWS[0]], [ROWS[0], ("rd", {"s": outcome(0.75)})]):
        made, run = batch_of([[row] for row in rows], {"evaluator.value": SAID[: len(rows)]}), Run(policy=None)
        immediate()(made.reward, made, run)
        assert "evaluator_fit" not in run.metrics


def reply(text: str, **meta) -> Trajectory:
    return Trajectory(ask("?", **meta), (Turn("policy", np.zeros(1, np.int64), text=text),), "end")


def test_the_similarity_to_a_text_of_the_data():
    score = similar_to()([[reply("kept\n", solution="keep"), reply("keep", solution=" keep "), reply("", solution="a")]])[0]
    # "kept" becomes "keep" by two changes of four letters
    assert [s.value for s in score] == [0.5, 1.0, 0.0]
    assert similar_to(column="gold")([[reply("a", solution="a")]])[0][0].missing
    assert similar_to()([[reply("a", solution="b" * 10**6)]])[0][0].missing
    assert similar_to()([[reply("a" * 10**6, solution="a")]])[0][0].value == 0.0


def test_the_evaluator_learns_beside_the_policy():
    task, policy = registry.task("codes", test_size=2), untrained(hidden=32, layers=1)
    recipe = ircoco().but(problems=4)
    models = {name: policy.copy(name, value_head=True) for name in ("critic", "evaluator")}
    before = {k: v.clone() for k, v in models["evaluator"].state().items()}
    # the task's verifier is not asked for
    run = Run(policy, reference=policy.copy("reference"), models=models, max_new=4, seed=1)
    standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=2)))
    assert np.isfinite(run.metrics["evaluator/loss"])
    assert any(not torch.equal(v, before[k]) for k, v in models["evaluator"].state().items())


def test_bases():
    assert str(ircoco(registry.build("ppo").but(reward=length_penalty())).reward) == str(length_penalty())
    with pytest.raises(RewardlabError, match=r"give it a base with a learner of this name, as ppo has"):
        registry.build("grpo+ircoco")
    critic = next(x for x in ircoco().also if x.name == "critic")
    assert str(critic.recipe.credit).startswith("immediate()")
