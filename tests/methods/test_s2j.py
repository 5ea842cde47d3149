"""S2J: what is paid for a judge's own solution, and how the gap between solving and judging is counted."""

import pytest
import torch

from rewardlab import build
from rewardlab.core import Message, Problem, Run, Score, Trajectory, ask
from rewardlab.credit.group import center
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.judges.cases import Case, to_judge
from rewardlab.judges.named import form_of
from rewardlab.methods.judges.s2j import (
    FORM,
    SMALL_FORM,
    SMALL_SOLUTION,
    own_solution,
    own_solution_right,
    question_of,
    solve_to_judge,
)
from rewardlab.rewards.reward import reward
from tests.helpers.rows import Replies

SUM = ask("What is half of 46?", "23", chosen="23.", rejected="28.")
WHY = ask("Why do leaves fall?", None, chosen="Trees save water.", rejected="Gravity.")
MODEL_LIKE = "<solution>Half of 40 is 20 and half of 6 is 3,\nso it is \\boxed{23}.</solution>\nReply A says 23, B says 28. [[A]]"


def judged(row, texts, first_is_better=True):
    """Judgements of one question, as a rollout has them."""
    case = Case((row.meta["chosen"], row.meta["rejected"]), (1.0, 0.0))
    asked = to_judge(row, case if first_is_better else case.at((1, 0)), form_of(FORM))
    return Replies([]).write([Trajectory(asked)] * len(texts), texts)


def test_the_own_solution_is_what_stands_last_between_the_tags():
    assert own_solution(MODEL_LIKE) == "Half of 40 is 20 and half of 6 is 3,\nso it is \\boxed{23}."
    assert own_solution("<solution>1</solution> no: <solution>2</solution> [[A]]") == "2"
    assert own_solution("<solution>cut off at 2") == "cut off at 2"
    assert own_solution("<solution> </solution> [[A]]") is None
    assert own_solution("It is 23. [[A]]") is None
    assert own_solution("12+5=17 17-3=14 A + B - [[A]]", SMALL_SOLUTION) == "14"


def test_one_judgement_is_paid_for_its_solution_and_for_its_verdict():
    texts = [
        MODEL_LIKE,
        "<solution>23</solution> [[B]]",
        "<solution>28</solution> [[A]]",
        "B is right. [[B]]",
    ]
    recipe, run = build("s2j"), Run(Replies([]))
    group = judged(SUM, texts)
    # verdict 1 or 0, solution 1 or 0
    scores = recipe.reward([group], run)
    assert [s.total for s in scores[0]] == [2.0, 1.0, 1.0, 0.0]
    assert run.metrics["solved"] == 0.5
    batch = collate([group], scores, torch.device("cpu"))
    # mean 1: solving with a wrong verdict is worth as much as the right verdict by luck
    assert center()(batch.reward, batch, run).sum(1).tolist() == [1.0, 0.0, 0.0, -1.0]
    half = build("s2j", {"weight": 0.5}).reward([group], run)
    assert [s.total for s in half[0]] == [1.5, 0.5, 1.0, 0.0]
    alone = build("s2j", {"weight": 0.0}).reward([group], run)
    assert [s.total for s in alone[0]] == [1.0, 0.0, 1.0, 0.0]


@reward
def words(trajectory) -> Score:
    """Words of a reply; 100 where the question is not the plain one."""
    return Score(float(len(trajectory.reply.split())) if trajectory.problem.question == WHY.question else 100.0)


def test_without_a_gold_answer_the_verdict_alone_counts_unless_something_scores_solutions():
    group = judged(WHY, ["<solution>Trees save water.</solution> [[A]]", "[[A]]"])
    paid = own_solution_right()([group], Run(Replies([])))
    assert [s.total for s in paid[0]] == [0.0, 0.0]
    # one with a gold answer beside it is not asked about
    both = own_solution_right(by=words())([group, judged(SUM, [MODEL_LIKE])], Run(Replies([])))
    assert [s.total for row in both for s in row] == [3.0, 0.0, 1.0]


def test_a_solution_is_scored_as_a_reply_to_the_whole_conversation():
    turns = (
        Message("system", "Be brief."),
        Message("user", "Take 46."),
        Message("assistant", "Yes."),
        Message("user", "Half of it?"),
    )
    row = Problem(turns, None, {"chosen": "23", "rejected": "28"})
    asked = to_judge(row, Case(("23", "28"), (1.0, 0.0)), form_of(FORM))
    assert question_of(asked).prompt == turns
    assert (
        question_of(to_judge(ask("Half of 46?"), Case(("23", "28"), (1.0, 0.0)), form_of(FORM))).prompt == ask("Half of 46?").prompt
    )


def test_the_gap_is_the_share_of_wrong_verdicts_where_the_question_is_solved():
    # the sum in both orders: solved and right, solved and wrong; the question without a gold answer does not count
    said = [MODEL_LIKE, "<solution>23</solution> [[A]]", "<solution>?</solution> [[B]]", "[[A]]"]
    policy = Replies(said)
    policy.context = 10**6
    found = solve_to_judge(alone=False)([SUM, WHY], Run(policy))
    assert (found["solved"], found["gap"], found["solved_misjudged"]) == (1.0, 0.5, 0.5)
    # right: the first, where the better reply stands first; the last two are wrong in both orders
    assert found["judged"] == 0.25
    policy.replies = ["<solution>28</solution> [[A]]", "<solution>23</solution> [[A]]"]
    found = solve_to_judge(alone=False)([SUM], Run(policy))
    assert (found["solved"], found["gap"], found["solved_misjudged"]) == (0.5, 1.0, 0.5)
    policy.replies = ["<solution>28</solution> [[A]]", "no idea"]
    assert solve_to_judge(alone=False)([SUM], Run(policy))["gap"] == 0.0


def test_solved_may_mean_that_the_policy_answers_the_question_itself():
    class Able(Replies):
        """Answers the question itself rightly, and judges without a solution."""

        context = 10**6

        def extend(self, trajectories, sampling, rng):
            self.replies = ["23" if t.problem.question == SUM.question else "[[A]]" for t in trajectories]
            return super().extend(trajectories, sampling, rng)

    found = solve_to_judge()([SUM, WHY], Run(Able([])))
    assert (found["solved"], found["gap"]) == (1.0, 0.5)
    assert solve_to_judge(alone=False)([SUM, WHY], Run(Able([])))["solved"] == 0.0


def test_a_pattern_without_a_solution_is_refused():
    with pytest.raises(RewardlabError, match="has no group"):
        build("s2j", {"solution": "<solution>"})
    with pytest.raises(RewardlabError, match="no regular expression"):
        build("s2j", {"solution": "(<solution>"})
    assert build("s2j", {"form": SMALL_FORM, "solution": SMALL_SOLUTION}).measure


def test_where_no_row_has_an_answer_nothing_is_said_of_what_is_solved():
    found = solve_to_judge()([WHY], Run(Replies(["[[A]]", "[[B]]"]), max_new=9))
    assert found["judged"] == 1.0
    assert not {"solved", "gap", "solved_misjudged"} & found.keys()
