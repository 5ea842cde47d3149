"""Weighted vote: answers by the sum of their replies' scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.api import answer
from rewardlab.core import Run, Sampling, Score, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import end_values
from rewardlab.methods.baselines.weighted_vote import own_probability, said_right, weighted_majority, weighted_vote
from rewardlab.models.embedded import untrained
from rewardlab.rollouts.best import best
from rewardlab.rollouts.vote import majority

RUN = Run(policy=None)


def chosen(votes: list[tuple[str, float | None]], by=None) -> str:
    group = [Trajectory(ask("?"), (Turn("policy", np.zeros(1, np.int64), text=text),)) for text, _ in votes]
    return (by or weighted_majority())(group, [Score(weight) for _, weight in votes], RUN).reply


def test_the_heaviest_answer_wins_over_the_most_frequent_and_the_best():
    # 35 has 3 x 0.2 = 0.6, 36 has 0.45 + 0.4 = 0.85, 37 has 0.8
    votes = [("Answer: 35", 0.2)] * 3 + [("a. Answer: 36", 0.4), ("b. Answer: 36", 0.45), ("Answer: 37", 0.8)]
    assert chosen(votes) == "b. Answer: 36"
    assert chosen(votes, majority()) == "Answer: 35"
    assert chosen(votes, best()) == "Answer: 37"


def test_equal_weights_are_a_majority_vote():
    votes = [("Answer: 1", 1.0), ("Answer: 2", 1.0), ("so it is 2", 1.0), ("Answer: 3", 1.0)]
    assert chosen(votes) == chosen(votes, majority()) == "Answer: 2"


def test_numbers_are_one_answer_by_value_and_words_by_letters():
    # 0 and 0.0 have 0.6 together, 7 has 0.5
    assert chosen([("Answer: 7", 0.5), ("Answer: 0", 0.2), ("Answer: 0.0", 0.4)]) == "Answer: 0.0"
    assert chosen([("Answer: no", 0.5), ("Answer: Yes", 0.3), ("Answer: yes", 0.3)]) == "Answer: Yes"


def test_an_answer_is_the_same_however_a_model_marks_it_up():
    # 0.3 four times for B and 0.5 twice for C; a half is a half; and a factorial is not its number
    marked = ["The answer is (B).", "**Answer:** B", r"so \boxed{\text{B}}", r"Answer: $\text{(B)}$."]
    assert chosen([("Answer: C", 0.5)] * 2 + [(text, 0.3) for text in marked]) == marked[0]
    assert chosen([("Answer: C", 1.0)] * 2 + [(text, 1.0) for text in marked], majority()) == marked[0]
    halves = [r"\boxed{\frac{1}{2}}", "Answer: 0.5", "Answer: $x^2$.", r"\boxed{x^2}", r"\boxed{x^2}"]
    assert chosen([(text, 0.4) for text in halves]) == "Answer: $x^2$."
    assert chosen([("Answer: 5!", 0.4), ("Answer: 5", 0.4), ("Answer: 6", 0.5)]) == "Answer: 6"


def test_who_has_no_answer_or_no_verdict_does_not_vote():
    assert chosen([("", 5.0), ("Answer: 1", None), ("Answer: 2", 0.1)]) == "Answer: 2"
    assert chosen([("Answer: 1", None), ("Answer: 2", None)]) == "Answer: 1"


def test_of_equals_the_first_is_taken():
    assert chosen([("Answer: 1", 0.0), ("Answer: 2", 0.0)]) == "Answer: 1"


def test_a_vote_below_zero_is_refused():
    with pytest.raises(RewardlabError, match=r"-0\.5"):
        chosen([("Answer: 1", -0.5), ("Answer: 2", 0.5)])


def test_without_a_verifier_the_mean_probability_of_a_token_weighs():
    # probabilities 1/2 and 1/8: the geometric mean is 1/4
    drawn = Turn("policy", np.zeros(2, np.int64), logprobs=np.log([0.5, 0.125]).astype(np.float32))
    recorded = Turn("policy", np.zeros(2, np.int64))
    scores = own_probability()([[Trajectory(ask("?"), (t,)) for t in (drawn, recorded)]], RUN)
    assert [s.value for s in scores[0]] == [pytest.approx(0.25), None]


@pytest.fixture(scope="module")
def policy():
    return untrained()


@pytest.fixture
def verifier(policy, tmp_path):
    """A model with a value head, as a folder."""
    model = policy.copy("reward", value_head=True)
    torch.nn.init.normal_(model.model.value_head, generator=torch.Generator().manual_seed(1))
    model.save(tmp_path / "verifier")
    return model, tmp_path / "verifier"


def test_a_verifiers_value_is_the_log_odds_of_being_right(policy, verifier):
    problems = [ask("1+1=?"), ask("2+3=?")]
    asked = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = policy.extend(asked * 2, Sampling(5), torch.Generator().manual_seed(0))
    scores = said_right()([rows[:2], rows[2:]], Run(policy, models={"verifier": verifier[0]}))
    odds = [math.log(s.value / (1 - s.value)) for row in scores for s in row]
    # a reply that was cut off is read as if it had ended there, where alone a verifier has learnt what to say
    expected = end_values(verifier[0], [t if t.stop == "end" else policy.write([t], [""])[0] for t in rows])
    assert np.ptp(expected) > 0.01
    assert odds == pytest.approx(expected.tolist(), abs=1e-4)


def test_a_trained_verifier_is_loaded_from_its_folder_and_its_reading_counted(policy, verifier):
    task = registry.task("arithmetic", test_size=20)
    plain = answer(weighted_vote(n=4), policy, task, problems=3, max_new=5)
    judged = answer(weighted_vote(n=4, scorer=str(verifier[1])), policy, task, problems=3, max_new=5)
    assert judged["replies"] == 4
    assert judged["tokens"] > plain["tokens"]


def test_a_verifier_that_cannot_read_the_replies_is_refused(policy):
    other = untrained(task=registry.task("facts")).copy("verifier", value_head=True)
    with pytest.raises(RewardlabError, match="tokenizer"):
        said_right()([[]], Run(policy, models={"verifier": other}))
