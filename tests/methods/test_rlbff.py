"""RLBFF: what the model is asked, what labels say, the loss of a yes and a no, and the head that starts from two words."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from reward_runs import taught
from rows import Replies

from rewardlab import registry
from rewardlab.core import Learner, Outputs, Recipe, Run, Trajectory, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import end_values
from rewardlab.methods.reward_models.rlbff import answer_of, entailment, satisfied, told, under_principle
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.rollouts.recorded import recorded


def row(label, reply="Four.", principle="Be brief."):
    return ask("2 + 2?", reply=reply, principle=principle, label=label)


def test_the_prompt_names_the_principle_and_the_reply_stays_as_it_is():
    ((t,),) = under_principle(inner=recorded(fields=("reply",)))([row("yes")], Run(Replies([])))
    assert (t.problem.question, t.reply) == ("2 + 2?\n\nA good reply is judged by this:\n- Be brief.", "Four.")
    with pytest.raises(RewardlabError, match="principle"):
        told(ask("2 + 2?", reply="4", label="yes"))


def test_labels_are_yes_or_no_and_nothing_between():
    known = [answer_of(x) for x in ("Yes", " no ", True, False, 1, "0", "true")]
    assert known == [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    assert [answer_of(x) for x in ("partially", 0.5, 2, None, "", [])] == [None] * 6


def test_a_yes_costs_minus_log_sigmoid_of_the_score_a_no_that_of_its_negative_and_partly_nothing():
    recipe = registry.build("rlbff")
    (learner,) = recipe.also
    run = Run(Replies([]))
    groups = recipe.rollout([row("yes", "a"), row("no", "b"), row("partially", "c")], run)
    batch = collate(groups, satisfied()(groups, run), torch.device("cpu"))
    out = Outputs(value=torch.full((3, batch.width), 2.0))
    # P(Yes) of the two words is sigmoid(2)
    wanted = [math.log1p(math.exp(-2)), math.log1p(math.exp(2)), 0.0]
    assert learner.recipe.objective(out, batch, run).tolist() == pytest.approx(wanted)


def likelier(policy, trajectory, words):
    """log P(first) - log P(second) as the token after the text, by the model's own log-probs."""
    said = [policy.write([trajectory], [word])[0] for word in words]
    at = len(trajectory)
    return float(np.subtract(*(policy.score([t])[0][at] for t in said)))


def test_the_head_starts_as_the_difference_of_the_log_probs_of_two_words():
    policy = untrained()
    model = learner_model(Learner("reward", "value-head:words=Yes,No", Recipe()), policy)
    problem = ask("Is it so?")
    for question in ("Is it so?", "And this one, is it brief?"):
        (read,) = policy.read([Trajectory(problem)], [ask(question).prompt])
        wanted = likelier(policy, read, ("Yes", "No"))
        assert abs(wanted) > 1e-4
        assert end_values(model, [read])[0] == pytest.approx(wanted, abs=1e-4)
    for init in ("value-head:words=Yes", "value-head:words=,No", "value-head:words=Yes,Yesterday"):
        with pytest.raises(RewardlabError, match=r"two words|same token"):
            learner_model(Learner("reward", init, Recipe()), policy)


class Judge:
    """A model whose score is what its prompt asks for: length, or brevity."""

    device = torch.device("cpu")

    def __init__(self, policy):
        self.policy = policy

    def evaluate(self, batch, wants):
        texts = [self.policy.tokenizer.decode(ids[:n]) for ids, n in zip(batch.ids, batch.length, strict=True)]
        signs = torch.tensor([-1.0 if "Be brief." in text else 1.0 for text in texts])
        return Outputs(value=(signs * (batch.length - 60))[:, None].expand(-1, batch.width))


def test_the_measure_counts_right_answers_and_pairs_that_turn_with_the_principle():
    policy = untrained()
    run = Run(policy, models={"reward": Judge(policy)})
    long = "It is four, as anybody who has ever counted that far with any care will tell you, and as sure as can be." * 2
    rows = [row("yes", "4"), row("no", long), row("no", "4"), row("partially", "4")]
    found = entailment()(rows, run)
    assert found["n"] == 3
    short, longer = end_values(run.models["reward"], policy.write(*_begun(policy, rows[:2])))
    # it says no to the long reply, and to the short one whatever it does, in one of two rows that differ in the label: 2 of 3
    assert longer < 0 != short
    assert found["accuracy"] == pytest.approx(2 / 3)
    pair = ask("2 + 2?", chosen="4", rejected=long, principle="Be brief.", label="yes", reply="4")
    found = entailment()([pair], run)
    assert (found["pair_accuracy"], found["untold"]) == (1.0, 0.0)


def _begun(policy, rows):
    shown = [told(p) for p in rows]
    return policy.read([Trajectory(p) for p in shown], [p.prompt for p in shown]), [p.meta["reply"] for p in rows]


def test_it_learns_from_a_users_rows_and_the_run_is_a_reward_model(tmp_path):
    after, scores = taught("rlbff", tmp_path, ["Trees save water.", "Because of gravity."])
    assert after["accuracy"] >= 0.5
    assert scores[0] != scores[1]
