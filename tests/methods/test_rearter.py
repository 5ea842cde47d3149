"""ReARTeR: corrected scores, steps that are written again after an explanation, and pairs of steps."""

from __future__ import annotations

import math

import pytest
import torch
from rows import Replies
from scripted import ScriptedPolicy, last_digit

from rewardlab.core import Outputs, Run, Score, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.process.rearter import rearter
from rewardlab.objectives.pairs import dpo_loss
from rewardlab.rollouts.lookahead_search import TOLD, corrected, lookahead_pairs, lookahead_search

SAYS = {
    # a looks better, and leads nowhere
    "": ["a7\n", "b5\n"], "a7\n": ["a1\n"], "b5\n": ["b9\n"], "a7\na1\n": ["x1"], "b5\nb9\n": ["y9"],
}  # fmt: skip


def walked(says=SAYS, **settings):
    policy = ScriptedPolicy(says)
    run = Run(policy, max_new=50)
    ((t,),) = lookahead_search(score=last_digit(), branch=2, **{"threshold": 0.0, **settings})([ask("?")], run)
    return t.reply, policy, run


def test_the_later_score_mends_the_earlier_one():
    assert corrected(0.7, 0.1, 0.5) == pytest.approx(0.4)
    assert corrected(0.5, 0.9, 0.5) == pytest.approx(0.7)
    assert corrected(0.5, float("-inf"), 0.5) == 0.5
    # .7 against .5 without a look ahead; .7 - .3 against .5 + .2 with half of it
    assert walked(alpha=0.0)[0] == "a7\na1\nx1"
    assert walked(alpha=0.5)[0] == "b5\nb9\ny9"
    # a third of the difference is too little for the first step: .5 against .63
    assert walked(alpha=0.1)[0].startswith("a7\n")
    # a look ahead that is not wanted is not sampled
    assert len(walked(alpha=0.0)[1].calls) == 3


def test_a_doubtful_step_is_written_again_after_it_was_explained():
    says = dict(SAYS) | {"c8\n": ["d9"]}
    told = []

    class Policy(ScriptedPolicy):
        def read(self, trajectories, messages):
            told.extend(m[-1].text for m in messages)
            return super().read(trajectories, messages)

        def _longer(self, t, sampling, taken):
            # only who has read the explanation thinks of c
            if not t.reply and "criticised: too small" in t.problem.question:
                return ScriptedPolicy({"": ["c8\n"]})._longer(t, sampling, taken)
            return super()._longer(t, sampling, taken)

    explainer = Replies(["too small"])
    run = Run(Policy(says), models={"explainer": explainer}, max_new=50)
    part = lookahead_search(score=last_digit(), branch=2, alpha=0.0, threshold=0.75, explainer="explainer")
    ((t,),) = part([ask("What?")], run)
    # .7 is doubtful; .8 is not, and neither is .9
    assert t.reply == "c8\nd9"
    assert told == ["What?", TOLD.replace("{question}", "What?").replace("{explanation}", "too small")]
    assert run.metrics["refined_steps"] == 1
    # the explanation is no part of the row
    assert t.problem.question == "What?"
    assert [turn.text for turn in t.turns] == ["?", "c8\n", "d9"]
    # without an explainer the step is sampled again, which finds nothing new here
    assert walked(alpha=0.0, threshold=0.75)[0].startswith("a7\n")


def test_pairs_of_steps_and_their_loss():
    run = Run(ScriptedPolicy(SAYS), max_new=50)
    part = lookahead_pairs(score=last_digit(), branch=2, alpha=0.5, threshold=0.0, gap=0.1)
    (pair,) = part([ask("?")], run)
    assert [t.reply for t in pair] == ["b5\n", "a7\n"]
    recipe = rearter(gap=0.1, score=last_digit())
    batch = collate([pair], [[Score(0.0), Score(0.0)]], torch.device("cpu"))
    batch.columns["ref"] = torch.zeros(2, batch.width)
    # both steps are 3 tokens; that the better one is likelier by .4 a token makes the loss -log sigmoid(.1 * 3 * .4)
    assert batch.mask.sum(1).tolist() == [3, 3]
    logprobs = torch.zeros(2, batch.width)
    logprobs[0] = 0.4
    loss = dpo_loss(beta=0.1)(Outputs(logprobs=logprobs), batch, run)
    assert recipe.objective == dpo_loss(beta=0.1)
    (found,) = loss.values() if isinstance(loss, dict) else (loss,)
    assert found.sum().item() == pytest.approx(math.log1p(math.exp(-0.12)), rel=1e-4)
    # .7 against .55 after the look ahead: too near for a gap of .4
    assert lookahead_pairs(score=last_digit(), branch=2, threshold=0.0, gap=0.4)([ask("?")], run)[0][0].mask.sum() == 0


def test_without_a_pair_nothing_is_learnt():
    run = Run(ScriptedPolicy({"": ["a5"]}), max_new=50)
    ((a, b),) = lookahead_pairs(score=last_digit(), branch=2)([ask("?")], run)
    assert a is b or not (a.mask.any() or b.mask.any())
    assert rearter(explainer="copy:policy").also[0].every == 0
