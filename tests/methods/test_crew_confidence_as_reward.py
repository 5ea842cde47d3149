"""CRew: the confidence in the tokens of the answer, and pairs of the widest gap in it, right over wrong."""

from __future__ import annotations

import numpy as np
import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.methods.intrinsic.crew_confidence_as_reward import answer_confidence, right_and_sure
from rewardlab.rewards.reward import reward
from rewardlab.text.answer_tokens import answer_tokens

PROMPT = ask("Q", "26")


class Scorer(Replies):
    """One token a character, whose probability is 1/2 in front of the digit that the reply begins with, then digit / 10."""

    def pieces(self, ids):
        return [chr(i) for i in ids]

    def score(self, trajectories):
        return [np.array([np.log(0.5 if chr(i) not in "0123456789" else int(chr(i)) / 10) for i in t.ids]) for t in trajectories]


def reply(text: str) -> Trajectory:
    ids = np.array([ord(c) for c in text], np.int64)
    return Trajectory(PROMPT, (Turn(None, np.array([ord("Q")])), Turn("policy", ids, text=text)), "end")


@reward
def verify(trajectory):
    return Score(None, why="none") if "?" in trajectory.reply else float("right" in trajectory.reply)


def run() -> Run:
    return Run(policy=Scorer([]), verify=verify())


def sure(*texts: str) -> list[float | None]:
    return [s.total for s in answer_confidence()([[reply(x) for x in texts]], run())[0]]


def test_the_mean_probability_of_the_answers_tokens_alone():
    # "26" of .2 and .6, whatever stands before it; "9" of .9
    assert sure("9+9=18\nAnswer: 26", "Answer: 9") == pytest.approx([0.4, 0.9])
    # of an answer that stands there several times, the last
    assert answer_tokens(reply("26 26\nAnswer: 26"), Scorer([]).pieces) == [15, 16]


def test_a_box_a_number_in_front_of_the_end_and_nothing():
    assert sure("so $\\boxed{9}$, not 1", "it is 8.") == pytest.approx([0.9, 0.8])
    assert sure("") == [None]
    assert answer_confidence()([[Trajectory(PROMPT)]], run())[0][0].missing


def test_tags_and_the_stop_of_a_sentence_are_no_part_of_an_answer():
    assert sure("<think>hm</think><answer> 26 </answer>", "The answer is 26.") == pytest.approx([0.4, 0.4])
    where = answer_tokens(reply("so\n<answer>26</answer>"), Scorer([]).pieces)
    assert where == [12, 13]


def test_tokens_of_several_characters_count_where_they_overlap_the_answer():
    row = Trajectory(PROMPT, (Turn("policy", np.arange(4), text="Answer: 26"),), "end")
    assert answer_tokens(row, lambda ids: ["Answer", ": 2", "6", ""]) == [1, 2]


def test_the_last_reply_of_an_episode_is_read():
    said, told = Turn("policy", np.array([ord("5")]), text="5"), Turn(None, np.array([ord("!")]))
    row = Trajectory(PROMPT, (said, told, Turn("policy", np.array([ord("5"), ord("7")]), text="57")), "end")
    assert answer_tokens(row, Scorer([]).pieces) == [2, 3]


def test_right_and_sure_is_best_and_wrong_and_unsure_is_worst():
    group = [reply(x) for x in ("right\nAnswer: 9", "right\nAnswer: 3", "wrong\nAnswer: 8", "wrong\nAnswer: 1", "?\nAnswer: 9")]
    assert [s.total for s in right_and_sure()([group], run())[0]] == [
        pytest.approx(1.9), pytest.approx(1.3), pytest.approx(0.8), pytest.approx(0.1), None
    ]  # fmt: skip


def test_replies_that_are_all_right_or_all_wrong_make_no_pair():
    for words in ("right", "wrong"):
        assert all(s.missing for s in right_and_sure()([[reply(f"{words}\nAnswer: {i}") for i in (1, 9)]], run())[0])
    # nor does a wrong one that states nothing make one of two right replies
    group = [reply("right\nAnswer: 9"), reply("right\nAnswer: 3"), reply("")]
    assert all(s.missing for s in right_and_sure()([group], run())[0])


@pytest.mark.parametrize(
    ("widest", "pair"), [(True, ["right\nAnswer: 9", "wrong\nAnswer: 1"]), (False, ["right\nAnswer: 3", "wrong\nAnswer: 7"])]
)
def test_pairs_of_the_widest_gap_are_learnt_from(widest, pair):
    class Writer(Scorer):
        def write(self, trajectories, texts):
            return [t.plus(reply(text).turns[1], "end") for t, text in zip(trajectories, texts, strict=True)]

        def extend(self, trajectories, sampling, rng):
            return [t.plus(reply(text).turns[1], "end") for t, text in zip(trajectories, self.replies, strict=True)]

    texts = ["right\nAnswer: 3", "wrong\nAnswer: 8", "right\nAnswer: 9", "wrong\nAnswer: 1", "wrong\nAnswer: 7"]
    writer = Writer(texts * 2)
    state = Run(policy=writer, models={}, verify=verify())
    recipe = registry.build("crew_confidence_as_reward", {"scorer": "policy", "n": 5, "widest": widest})
    groups = recipe.rollout([PROMPT, PROMPT], state)
    assert [[t.reply for t in group] for group in groups] == [pair] * 2
