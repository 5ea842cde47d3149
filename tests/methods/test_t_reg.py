"""T-REG: tokens are scored by the same reply after two contrary prompts, and DPO's implicit reward is drawn to them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from rows import batch_of

from rewardlab import registry
from rewardlab.core import Outputs, Run, Task, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import decisive_tokens
from rewardlab.methods.objectives.t_reg import BETTER, asked, follow_tokens, on_cue, t_reg
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.objectives.pairs import dpo_loss
from rewardlab.rollouts.recorded import recorded
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled

CUES = {"better": "Good: {prompt}", "worse": "Bad: {prompt}"}
PAIR = ask("2+3?", chosen="5", rejected="61")


@pytest.fixture(scope="module")
def policy():
    return untrained()


def test_a_token_scores_what_the_prompt_for_a_better_reply_says_above_the_other(policy):
    (rows,) = recorded(fields=("chosen", "rejected"))([PAIR], Run(policy))
    batch, run = collate([rows], None, policy.device), Run(policy, reference=policy)
    g = registry.build("t_reg", CUES).credit(batch.reward, batch, run)
    for i, t in enumerate(rows):
        prompted = [asked(t, template, "", run) for template in CUES.values()]
        assert [x.problem.question for x in prompted] == ["Good: 2+3?", "Bad: 2+3?"]
        up, down = (s[x.mask] for s, x in zip(policy.score(prompted), prompted, strict=True))
        by_hand = 1 / (1 + np.exp(down - up)) - 0.5
        assert g[i][batch.mask[i]].tolist() == pytest.approx(by_hand.tolist(), abs=1e-6)
        assert np.abs(by_hand).max() > 0.001
    assert g[~batch.mask].abs().max() == 0


def test_prompts_hold_the_question_and_the_reply_as_they_are(policy):
    (row,) = recorded(fields=("chosen",))([ask("What is {reply}?", system="Be kind.", chosen="{prompt}")], Run(policy))[0]
    moved = asked(row, BETTER, row.reply, Run(policy))
    assert moved.problem.question.endswith("Instruction: What is {reply}?\n\nResponse: {prompt}")
    assert moved.problem.prompt[0].text == "Be kind."
    assert moved.ids[moved.mask].tolist() == row.ids[row.mask].tolist()


def test_the_regulariser_by_hand():
    batch = batch_of([[("rdd", {}), ("rd", {})]], {"ref": [[0.0, -1.0, -1.0], [0.0, -1.0]]})
    batch.credit = torch.tensor([[9.0, 0.5, -0.25], [9.0, -0.5, 9.0]])
    logprobs = torch.tensor([[math.nan, -1.0, -3.0], [math.nan, -2.0, math.nan]], requires_grad=True)
    # log-ratios: 0 - 2 = -2 and -1.   w = sigmoid(.5 (-1 + 2));   R: -.5 (.5 * -1 - .25 * -3) and -.5 (-.5 * -2)
    w = 1 / (1 + math.exp(-0.5))
    loss = follow_tokens(beta=0.5)(Outputs(logprobs=logprobs), batch, Run(None))
    assert loss.tolist() == pytest.approx([w * (-0.125 - 0.5)])
    loss.sum().backward()
    # w has no gradient: a token is drawn by -w beta g alone
    assert logprobs.grad is not None
    assert logprobs.grad[:, 1:].flatten().nan_to_num(0).tolist() == pytest.approx([-w * 0.25, w * 0.125, w * 0.25, 0])


def test_it_adds_to_dpo_and_without_alpha_nothing():
    recipe = registry.build("t_reg", {"alpha": 0.0})
    assert str(recipe.objective) == "dpo_loss() + 0 * follow_tokens()"
    assert recipe.also == ()
    assert str(registry.build("ipo+t_reg").objective) == "ipo_loss() + 0.25 * follow_tokens()"
    for below in ("sft", "mappo", "kto"):
        with pytest.raises(RewardlabError, match="objective on pairs of replies"):
            t_reg(registry.build(below))
    assert dpo_loss() == recipe.objective.leaves()[0]


def test_on_cue_each_reply_follows_its_own_prompt_with_the_other_reply_in_it(policy):
    cue = on_cue(better="Better than {reply}: {prompt}", worse="Worse than {reply}: {prompt}")
    ((good, bad),) = cue([PAIR], Run(policy))
    assert (good.problem.question, good.reply) == ("Better than 61: 2+3?", "5")
    assert (bad.problem.question, bad.reply) == ("Worse than 5: 2+3?", "61")


@pytest.mark.slow
def test_a_copy_learns_to_write_on_cue_and_then_tells_the_replies_apart():
    problems = [ask(f"{i}+{i}=?", str(2 * i), chosen=f"{i}7", rejected=f"{i}3") for i in range(10, 18)]
    recipe = registry.build("t_reg", CUES | {"cued": 200, "problems": 4, "lr": 1e-3})
    run = Run(untrained().copy("policy"), steps=2, max_new=4, verify=registry.part("reward", "final_number"))
    run.reference = run.policy.copy("reference")
    run.models = {learner.name: learner_model(learner, run.policy) for learner in recipe.also}
    ops = Ops(recipe, run, Task("pairs", Shuffled(problems), problems[:2], "final_number", max_new=4), RunConfig())
    start = {name: x.clone() for name, x in run.policy.state().items()}
    recipe.loop(recipe, run, ops)
    assert all(torch.equal(x, run.reference.state()[name]) for name, x in start.items())
    assert run.metrics["token_gap"] > 0
    assert all(learner.every == 0 for learner in recipe.also)


class Tabled:
    """A policy with a set log-prob for each token of a reply, by its text."""

    def __init__(self, table):
        self.table = table

    def read(self, trajectories, messages):
        return [t.plus(Turn(None, np.zeros(2, np.int64))) for t in trajectories]

    def write(self, trajectories, replies):
        ids = [np.array([ord(c) for c in r], np.int64) for r in replies]
        return [t.plus(Turn("policy", i, text=r), "end") for t, i, r in zip(trajectories, ids, replies, strict=True)]

    def score(self, rows):
        return [np.array([-50.0, -50.0, *self.table[t.reply]], np.float32) for t in rows]


def test_the_share_of_the_implicit_reward_on_the_first_tokens_that_differ():
    zero = Tabled({"abcd": [0.0] * 4, "axc": [0.0] * 3, "ab": [0.0] * 2})
    now = Tabled({"abcd": [1.0, 2.0, 0.0, -1.0], "axc": [1.0, -4.0, 1.0], "ab": [0.5, -0.5]})
    pairs = [ask("?", chosen="abcd", rejected="axc"), ask("?", chosen="abcd", rejected="ab")]
    found = decisive_tokens()(pairs, Run(now, reference=zero))
    # (2 + 4) / (4 + 6);  the second begins the first: the last token that both have, (2 + .5) / (4 + 1)
    assert found["decisive_share"] == pytest.approx((0.6 + 0.5) / 2)
    assert found["decisive_margin"] == pytest.approx((6 + 2.5) / 2)
    # sums 2 above -2 and 2 above 0
    assert found["preferred"] == 1.0
    assert decisive_tokens()(pairs, Run(now, reference=now))["decisive_share"] == 0.0
    with pytest.raises(RewardlabError, match="reference"):
        decisive_tokens()(pairs, replace(Run(now), reference=None))
