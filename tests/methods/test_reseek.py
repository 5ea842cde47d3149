"""ReSeek: verdicts on what was found, and what each is paid, against the released code's table."""

import numpy as np
import pytest
import torch

from rewardlab import build
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.agents.reseek import TOLD, answers_in, holds, judged, reseek, verdicts_of
from rewardlab.rewards.reward import reward

NEEDED = "<information>\nDoc 1 (Title: Fidelio) Beethoven, who came from the Bonn, wrote it.\n</information>"
OTHER = "<information>\nDoc 1 (Title: Mozart) Born in Salzburg.\n</information>"


@reward
def right(trajectory):
    return Score(None, why="down") if "?" in trajectory.reply else float("Bonn" in trajectory.reply)


def episode(*texts):
    turns = [Turn(None, np.zeros(3, np.int64), text="Where?")]
    for i, text in enumerate(texts):
        author = None if i % 2 else "policy"
        logprobs = None if i % 2 else np.zeros(2, np.float32)
        turns.append(Turn(author, np.zeros(2, np.int64), logprobs, logprobs, text=text))
    return Trajectory(ask("Where?", "Bonn"), tuple(turns), "end")


def paid(*texts, **settings):
    ((score,),) = judged(**settings)([[episode(*texts)]], Run(policy=None, verify=right()))
    return score.value


S, YES, NO = "<search>a</search>", "<judge>Yes</judge>", "<think>Hm.</think> <judge> no </judge>"
BONN, ROME = "<answer>Bonn</answer>", "<answer>Rome</answer>"


@pytest.mark.parametrize(
    ("texts", "value"),
    [
        # ends right: a Yes is right whatever was found, a No only of what lacks the answer
        ((S, NEEDED, YES + BONN), 0.4),
        ((S, OTHER, YES + BONN), 0.4),
        ((S, OTHER, NO + S, NEEDED, YES + BONN), 0.8),
        ((S, NEEDED, NO + S, NEEDED, YES + BONN), -0.3 + 0.4),
        # ends wrong: what was found decides
        ((S, NEEDED, YES + ROME), 0.3),
        ((S, OTHER, YES + ROME), -0.6),
        ((S, OTHER, NO + S, NEEDED, NO + ROME), 0.3 - 0.3),
        # without a verdict, an answer, or a search
        ((S, NEEDED, BONN), 0.0),
        ((S, NEEDED, YES + S), 0.0),
        ((BONN,), 0.0),
        ((YES + BONN,), 0.0),
        # a failed search is no information
        ((S, "<information>\nThe search failed: no answer\n</information>", NO + ROME), 0.0),
        ((S, NEEDED, YES + "?"), None),
    ],
)
def test_each_verdict_is_paid_as_in_the_table(texts, value):
    assert paid(*texts) == (None if value is None else pytest.approx(value))


def test_without_trust_a_yes_must_be_of_what_holds_the_answer():
    assert paid(S, OTHER, YES + BONN, trust=False) == pytest.approx(-0.6)


def test_a_verdict_is_of_what_stands_right_before_it():
    t = episode(S, OTHER, S, NEEDED, YES + BONN)
    assert verdicts_of(t) == [(NEEDED, True)]


def test_information_holds_whole_words_and_one_of_several_answers():
    assert holds("She lives in Bonn.", ["bonn"])
    assert not holds("Bonneville", ["Bonn"])
    assert holds("the United States", ["USA", "The United States"])
    assert not holds("anything", [""])
    assert answers_in('["a", "b"]') == ["a", "b"]
    assert answers_in(42) == ["42"]
    # by an embedding: three of three n-grams in common, and none
    assert holds("red tower", ["Red Tower"], "ngrams", 0.9)
    assert not holds("red tower", ["Bonn"], "ngrams", 0.1)


def test_the_sum_is_credited_to_the_whole_episode_relative_to_its_group():
    recipe = reseek(build("grpo").but(reward=right()))
    run = Run(policy=None, verify=right())
    group = [episode(S, NEEDED, YES + BONN), episode(S, OTHER, YES + ROME)]
    scores = recipe.reward([group], run)
    assert [s.value for s in scores[0]] == pytest.approx([1.4, -0.6])
    batch = collate([group], scores, torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    # (1.4 - .4) / std, of two numbers 2 apart the std is sqrt(2); what was read is not trained on
    assert credit[0].tolist() == pytest.approx([0] * 3 + [0.7071] * 2 + [0] * 2 + [0.7071] * 2, abs=1e-3)
    assert torch.allclose(credit[1], -credit[0])


def test_the_policy_is_told_to_judge():
    assert "<judge>No</judge>" in TOLD
    assert reseek(corpus="http://h/retrieve").rollout.settings["env"].settings["tell"] == TOLD
    assert [p.name for p in reseek(judging=0.0).reward.walk()] == ["correct"]


def test_the_rewards_of_the_paper_are_settings():
    recipe = reseek(build("grpo").but(reward=right()), boost=0.0, trust=False)
    group = [episode(S, NEEDED, YES + BONN), episode(S, OTHER, YES + BONN), episode(S, OTHER, NO + S, NEEDED, NO + ROME)]
    ((a, b, c),) = recipe.reward([group], Run(policy=None, verify=right()))
    # right: 1 + .3 and 1 - .6, wrong: .3 - .3
    assert [a.value, b.value, c.value] == pytest.approx([1.3, 0.4, 0.0])
