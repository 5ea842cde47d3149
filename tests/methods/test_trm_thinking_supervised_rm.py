"""TRM: how judgements of sentences are written, read, paid and counted, and what a policy earns by them."""

import pytest
import torch

from rewardlab import build
from rewardlab.core import Run, Score, Trajectory, ask
from rewardlab.credit.group import center
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.judges.sentences import LABELS, read, sentences_of, written
from rewardlab.methods.judges.trm_thinking_supervised_rm import (
    FORM,
    LINE,
    PATTERN,
    correct_sentences,
    labels_right,
    sentence_errors,
    sentence_judgements,
)  # fmt: skip
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent
from tests.helpers.rows import Replies

SENTENCES = [
    {"text": "It opened in 1899.", "faithful": "yes", "correct": "no", "reason": "It was 1889."},
    {"text": "Eiffel built it.", "faithful": 0, "correct": 1},
]
ROW = ask("What of the tower?", None, documents=["The tower opened in 1899."], sentences=SENTENCES)
GOLD = "1. Faithfulness: 1. Reasoning: It was 1889. Correctness: 0\n2. Faithfulness: 0. Reasoning:  Correctness: 1"
MODEL_LIKE = """**1.** **Faithfulness:** 1. **Reasoning:** The document says 1899; I know that the tower
opened in 1889, for the World's Fair. **Correctness: 0**

**2.** Faithfulness: 0. Reasoning: The documents are silent; it is well known. Correctness: 1."""


class Policy(Replies):
    context = 10**6

    def __init__(self, replies):
        super().__init__(replies)
        self.asked = []

    def extend(self, trajectories, sampling, rng):
        self.asked += [t.problem for t in trajectories]
        return super().extend(trajectories, sampling, rng)


def judgements(texts, row=ROW):
    policy = Policy(["?"] * len(texts))
    (group,) = sentence_judgements(inner=lambda problems, run: [[Trajectory(problems[0])]])([row], Run(policy))
    return Replies([]).write([group[0]] * len(texts), texts)


def test_a_judge_is_shown_documents_and_numbered_sentences_and_no_labels():
    policy = Policy(["?"])
    sentence_judgements(inner=independent(n=1))([ROW], Run(policy, max_new=9))
    (asked,) = policy.asked
    assert "- The tower opened in 1899." in asked.question
    assert "1. It opened in 1899.\n2. Eiffel built it." in asked.question
    assert "It was 1889" not in asked.question
    assert asked.meta[LABELS] == [[True, False], [False, True]]


def test_judgements_are_written_and_read():
    assert written(sentences_of(ROW), LINE) == GOLD
    assert read(GOLD, PATTERN, 2) == read(MODEL_LIKE, PATTERN, 2) == [(True, False), (False, True)]
    assert read(GOLD, PATTERN, 3) is None
    assert read("1. Correctness: 1", PATTERN, 1) is None
    assert read("yes no", r"(?P<correct>yes|no)", 2) == [(None, True), (None, False)]


def test_the_judge_is_paid_for_the_share_of_its_labels_that_are_right():
    said = [GOLD, GOLD.replace("Correctness: 0", "Correctness: 1"), GOLD.replace("Faithfulness: 1", "Faithfulness: 0"), "So it is."]
    group = judgements(said)
    recipe = build("trm_thinking_supervised_rm")
    scores = recipe.reward([group], Run(None))
    # of four labels 4, 3, 3 and none are right
    assert [s.total for s in scores[0]] == [1.0, 0.75, 0.75, 0.0]
    batch = collate([group], scores, torch.device("cpu"))
    assert center()(batch.reward, batch, Run(None)).sum(1).tolist() == [0.375, 0.125, 0.125, -0.625]
    alone = labels_right(faithful=0.0)([group], Run(None))
    assert [s.total for s in alone[0]] == [1.0, 0.5, 1.0, 0.0]
    half = labels_right(faithful=0.5)([group], Run(None))
    assert [s.total for s in half[0]] == pytest.approx([1.0, 2 / 3, 5 / 6, 0.0])


def test_a_judge_of_correctness_alone_and_sentences_of_unknown_faithfulness_are_paid_for_correctness():
    group = judgements(["0 1", "1 1"])
    assert [s.total for s in labels_right(pattern=r"(?P<correct>[01])")([group], Run(None))[0]] == [1.0, 0.5]
    row = ask("?", None, documents=[], sentences=[{"text": "It is.", "correct": "yes"}])
    group = judgements(["Faithfulness: 0. Correctness: 1", "Faithfulness: 1. Correctness: 0"], row)
    assert [s.total for s in labels_right()([group], Run(None))[0]] == [1.0, 0.0]


def test_errors_are_counted_by_both_labels():
    policy = Policy([GOLD, GOLD.replace("Correctness: 0", "Correctness: 1"), "unread"])
    found = sentence_errors()([ROW, ROW, ROW], Run(policy, max_new=9))
    # 3 sentences are incorrect, 1 is flagged, rightly: F1 = 2 * 1 / (1 + 3)
    assert found["error_f1"] == 0.5
    # the unfaithful ones that are flagged, one in each answer, are correct
    assert found["faithful_f1"] == 0.0
    # right labels of 6 sentences: 2 and 1; of the 4 that are read all are right about the documents
    assert (found["correct_accuracy"], found["faithful_accuracy"]) == (0.5, 1.0)
    assert found["unread"] == pytest.approx(1 / 3)


@reward
def words(trajectory) -> Score:
    return Score(float(len(trajectory.reply.split())))


def test_a_policy_is_paid_for_its_correct_sentences_and_for_usefulness():
    judge = Policy([GOLD, "1. Faithfulness: 1. Reasoning: so. Correctness: 1", "no labels"])
    group = Replies([]).write([Trajectory(ROW)] * 4, ["It opened in 1899. Eiffel built it.", "Eiffel built it.", "Who knows?", " "])
    run = Run(Replies([]), models={"trm": judge})
    scores = correct_sentences()([group], run)
    assert [s.total for s in scores[0]] == [0.5, 1.0, None, 0.0]
    assert "1. It opened in 1899.\n2. Eiffel built it." in judge.asked[0].question
    recipe = build("trm_thinking_supervised_rm", {"trm": "copy:policy", "useful": 0.5 * words()})
    assert [learner.every for learner in recipe.also] == [0]
    # .5 + .5 * 7 words, 1 + .5 * 3
    assert [s.total for s in recipe.reward([group], run)[0]] == [4.0, 2.5, None, 0.0]


def test_first_it_imitates_the_rows_own_judgements_and_then_it_is_rewarded():
    done = []

    class Ops:
        new_stage = staticmethod(lambda: done.append("new stage"))
        standard_step = staticmethod(lambda recipe: done.append(recipe.rollout))

    recipe = build("trm_thinking_supervised_rm", {"first": 1, "lr": 1e-4})
    for step in range(2):
        recipe.loop(recipe, Run(None, step=step), Ops)
    kept, between, sampled = done
    assert between == "new stage"
    assert "sentence_judgements" in str(sampled)
    ((taught,),) = kept([ROW], Run(Replies([])))
    assert taught.reply == GOLD
    assert taught.problem.question == judgements([""])[0].problem.question


def test_rows_and_patterns_that_say_nothing_are_refused():
    with pytest.raises(RewardlabError, match="no sentences to judge"):
        sentences_of(ask("Why?", None, documents=[], sentences=["plain text"]))
    with pytest.raises(RewardlabError, match="no group 'correct'"):
        build("trm_thinking_supervised_rm", {"pattern": "([01])"})
    with pytest.raises(RewardlabError, match="no regular expression"):
        build("trm_thinking_supervised_rm", {"pattern": "("})
    assert "{documents}" in FORM
