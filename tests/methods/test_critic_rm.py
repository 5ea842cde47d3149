"""Critic-RM: critiques that agree with the label, two losses whose weights change, and scores over several critiques."""

from __future__ import annotations

import json
import math

import pytest
import torch
from reward_runs import taught
from rows import Replies, batch_of, outcome

from rewardlab import registry
from rewardlab.core import Outputs, Run, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.reward_models.critic_rm import agreeing, criticised_pairs, critique_and_score, score_of
from rewardlab.worlds.criticised_notes import criticised_notes


def pair(better, worse):
    return ask("Why?", chosen="a", rejected="b", chosen_critiques=better, rejected_critiques=worse)


def test_the_score_of_a_critique_is_the_last_one_that_it_states():
    said = ["Score: 7", "**Score: 3.5**", "Score: 2, no: score: 9/10", "Score: 10."]
    assert [score_of(text) for text in said] == [7.0, 3.5, 9.0, 10.0]
    assert [score_of(text) for text in ("", "A score of 7", "Score: 100", "Score: 11")] == [None] * 4


def test_critiques_stay_whose_scores_order_the_pair_as_its_label_does():
    assert agreeing(["no Score: 3", "yes Score: 9"], ["good Score: 8", "bad Score: 2"]) == ("yes Score: 9", "bad Score: 2")
    assert agreeing(["x Score: 5"], ["y Score: 5"]) is None
    assert agreeing(["x Score: 4"], ["y Score: 5"]) is None
    assert agreeing(["x"], ["y Score: 1"]) is None


def test_pairs_without_such_critiques_are_replaced_and_without_the_filter_all_stay():
    agree, turned = pair(["Score: 9"], ["Score: 1"]), pair(["Score: 1"], ["Score: 9"])
    run = Run(Replies([]))
    run.more_problems = lambda n: [agree] * n
    groups = criticised_pairs()([turned, agree], run)
    assert [[t.reply for t in group] for group in groups] == [["Score: 9", "Score: 1"]] * 2
    assert groups[0][1].problem.question.startswith("Question: Why?\nAnswer: b\n")
    assert run.metrics["agree"] == pytest.approx(2 / 3)
    (group,) = criticised_pairs(filtered=False)([turned], Run(Replies([])))
    assert [t.reply for t in group] == ["Score: 1", "Score: 9"]
    with pytest.raises(RewardlabError, match="higher score"):
        criticised_pairs()([turned], Run(Replies([])))


def test_the_policy_criticises_where_rows_bring_no_critiques():
    run = Run(Replies(["Score: 6", "Score: 7", "Score: 5", "Score: 8"]), max_new=9)
    (group,) = criticised_pairs(n=2)([ask("Why?", chosen="a", rejected="b")], run)
    assert [t.reply for t in group] == ["Score: 7", "Score: 5"]


@pytest.mark.parametrize(("step", "weight"), [(0, 1.0), (1, 0.5), (2, 0.0), (3, 0.0)])
def test_the_weight_moves_from_the_critiques_to_the_order_of_the_scores(step, weight):
    batch = batch_of([[("rdd", {"": outcome(0.0)}), ("rdd", {"": outcome(0.0)})]])
    out = Outputs(
        logprobs=torch.tensor([[-9.0, -1.0, -3.0], [-9.0, -4.0, 0.0]]), value=torch.tensor([[0.0, 0.0, 3.0], [0.0, 0.0, 1.0]])
    )
    loss = critique_and_score(falls=0.5)(out, batch, Run(None, step=step, steps=4))
    # both critiques cost 2 nats a token; the scores differ by 2
    assert loss.tolist() == pytest.approx([weight * 2.0 + (1 - weight) * math.log1p(math.exp(-2))])


def test_the_reward_model_learns_both_losses_unless_another_model_has_the_critiques_alone():
    scorer, writer = registry.build("critic_rm").also
    assert (scorer.name, str(scorer.recipe.objective), writer.init) == ("reward", "critique_and_score()", "copy:policy")
    assert str(registry.build("critic_rm", {"shared": False}).also[0].recipe.objective) == "score_alone()"


def test_critiques_of_notes_say_what_the_note_does_unless_they_are_careless():
    (true,) = criticised_notes(careless=0.0, critics=1, test_size=1).test
    assert score_of(true.meta["chosen_critiques"][0]) >= score_of(true.meta["rejected_critiques"][0])
    rows = criticised_notes(test_size=100).test
    kept = [agreeing(p.meta["chosen_critiques"], p.meta["rejected_critiques"]) for p in rows]
    any_of = [score_of(p.meta["chosen_critiques"][0]) > score_of(p.meta["rejected_critiques"][0]) for p in rows]
    assert 0.4 < sum(any_of) / 100 < 0.9 < sum(x is not None for x in kept) / 100


def test_both_models_learn_from_a_users_rows_and_the_run_is_a_reward_model(tmp_path):
    after, scores = taught("critic_rm", tmp_path, ["It names the cause. Score: 9"], shared=False, writer_lr=3e-3, k=2)
    assert 0 <= after["pair_accuracy"] <= 1
    assert math.isfinite(scores[0])
    _, *steps = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert steps[-1]["writer/loss"] < 0.9 * steps[0]["writer/loss"]
    # from the middle of the run the weight is 1, and the loss that of the order alone: it falls below that of equal scores
    assert steps[-1]["reward/loss"] < 0.9 * math.log(2)
