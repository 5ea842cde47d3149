"""Mix-GRM: how judgements are merged and verified, which style a question gets, and how styles are counted."""

import pytest

from rewardlab import build
from rewardlab.core import Run, ask
from rewardlab.errors import RewardlabError
from rewardlab.judges.cases import WORTH
from rewardlab.judges.named import form_of
from rewardlab.methods.judges.mix_grm import (
    FORM,
    SMALL,
    SOLUTION,
    UNIT,
    in_breadth,
    in_depth,
    merged,
    mixed_judgements,
    objective,
    styles,
    styles_of,
)  # fmt: skip
from tests.helpers.rows import Replies

FACT = ask("What is half of 46?", "23", chosen="23", rejected="28")
TASTE = ask("Thank Ann.", None, chosen="Dear Ann, thanks!", rejected="ok thanks")
PLAIN = form_of(FORM)
ONE = "- **Tone**: A is warm, B is curt.\n- Length: both are short.\n\nSo A. [[A]]"
TWO = "1. tone: A is warm, B is not.\n2. Names: only A names Ann.\n[[A]]"
THREE = "Tone: A is warm, B is not.\nNames: only A names Ann.\n[[A]]"


def test_each_principle_is_named_once_by_what_most_say_of_it():
    assert merged([ONE]) == "- **Tone**: A is warm, B is curt.\n- Length: both are short."
    # tone: curt once, "not" with a number and without: all three differ, so the first counts; length is named once, names twice
    assert merged([ONE, TWO, THREE]).splitlines() == ["- **Tone**: A is warm, B is curt.", "2. Names: only A names Ann."]
    assert merged([ONE, TWO, THREE], rare=True).splitlines() == [
        "- **Tone**: A is warm, B is curt.", "- Length: both are short.", "2. Names: only A names Ann."
    ]  # fmt: skip
    # two say the same: it counts, though another came first
    assert merged([ONE, THREE, THREE]).splitlines()[0] == "Tone: A is warm, B is not."
    assert merged(["A is nicer. [[A]]"]) == ""
    small = [r"polite + - [[A]]", "signed - - polite - - [[A]]", "urgent + + polite + - [[A]]"]
    assert merged(small, SMALL["unit"], rare=True) == "polite + - signed - - urgent + +"


def test_a_judgement_in_breadth_ends_with_its_verdict():
    assert in_breadth([ONE, THREE], PLAIN, UNIT, rare=True) == (
        "- **Tone**: A is warm, B is curt.\n- Length: both are short.\nNames: only A names Ann.\n[[A]]"
    )
    assert in_breadth(["polite + - [[A]]", "signed + - [[A]]"], PLAIN, SMALL["unit"]) == "polite + - signed + - [[A]]"
    # the verdict of most
    other = ONE.replace("[[A]]", "[[B]]")
    assert [in_breadth(rows, PLAIN, UNIT)[-5:] for rows in ([other, ONE, ONE], [other, ONE])] == ["[[A]]", "[[B]]"]
    # no units: the first as it is
    assert in_breadth(["A is nicer. [[A]]", ONE.replace(":", ",")], PLAIN, UNIT) == "A is nicer. [[A]]"


def test_a_judgement_in_depth_has_solved_the_question():
    wrong, right = "<solution>46 - 18 = 28</solution> [[A]]", "<solution>\\boxed{23}</solution> A it is. [[A]]"
    assert in_depth([wrong, "23 [[A]]", right, right + "!"], "23", SOLUTION) == right
    assert in_depth([wrong, "23 [[A]]"], "23", SOLUTION) is None
    assert in_depth(["23 [[A]]", wrong, right], None, SOLUTION) == wrong
    assert in_depth(["23 [[A]]"], None, SOLUTION) is None


def test_questions_of_fact_get_depth_and_others_breadth():
    assert (objective(FACT), objective(TASTE)) == (True, False)
    assert [objective(ask("Thank Ann.", "any", objective=x)) for x in (False, "false", "no", 0)] == [False] * 4
    assert [objective(ask("Thank Ann.", None, objective=x)) for x in (True, "true", "yes", 1)] == [True] * 4
    assert [styles_of(p, "matched") for p in (FACT, TASTE)] == [["depth"], ["breadth"]]
    assert [styles_of(p, "mismatched") for p in (FACT, TASTE)] == [["breadth"], ["depth"]]
    assert styles_of(FACT, "both") == ["breadth", "depth"]


class Writer(Replies):
    """Writes of the judgements of each style the next one, for whatever order the replies stand in."""

    context = 10**6

    def __init__(self):
        self.asked = []

    def extend(self, trajectories, sampling, rng):
        self.replies = []
        for i, t in enumerate(trajectories):
            self.asked.append(t.problem.question)
            best = "A" if t.problem.meta[WORTH][0] == 1 else "B"
            depth, solved = "<solution>" in t.problem.question, "23" if i % 2 else "28"
            text = f"<solution>{solved}</solution>" if depth else f"Tone: {best} is warm.\nNames{i % 2}: one.\n"
            self.replies.append(f"{text} [[{best if i != 2 else 'C'}]]")
        return super().extend(trajectories, sampling, rng)


def test_what_is_imitated_has_the_tag_of_its_style_and_answers_the_plain_question():
    writer = Writer()
    run = Run(Replies([]), models={"writer": writer})
    (taste,), (fact,) = mixed_judgements(n=2, filtered=True, rare=True)([TASTE, FACT], run)
    best = "A" if taste.problem.meta[WORTH][0] == 1 else "B"
    assert taste.reply == f"Breadth: Tone: {best} is warm.\nNames0: one.\nNames1: one.\n[[{best}]]"
    # of the judgements in depth the first is a tie, and the second solves it
    assert fact.reply.startswith("Depth: <solution>23</solution> [[")
    assert "<solution>" not in fact.problem.question
    assert "PRINCIPLE" not in taste.problem.question
    assert ["as many principles" in q for q in writer.asked] == [True, True, False, False]
    assert (run.metrics["accepted"], run.metrics["principles"]) == (0.75, 3.0)
    (single,) = mixed_judgements(n=2, merge=False)([TASTE], run)[0]
    assert single.reply.count("Names") == 1
    # nothing kept: a question without a judgement
    ((none,),) = mixed_judgements(n=1, filtered=True)([FACT], run)
    assert none.reply == ""


def test_as_published_a_wrong_verdict_or_solution_is_no_reason_to_leave_a_judgement_out():
    run = Run(Replies([]), models={"writer": Writer()})
    (taste,), (fact,) = mixed_judgements(n=2)([TASTE, FACT], run)
    # a tie is a verdict, and 28 is a solution
    assert fact.reply == "Depth: <solution>28</solution> [[C]]"
    assert taste.reply.startswith("Breadth: Tone: ")
    assert run.metrics["accepted"] == 0.75
    assert build("mix_grm").reward.settings["wrong"] == -1.0
    assert "temperature=0.8" in str(build("mix_grm").rollout)


def test_styles_by_kind_of_question_are_counted_by_hand():
    said = ["Breadth: Tone: A.\nNames: A.\n[[A]]", "Depth: [[A]]", "Depth: 23 [[A]]", "Breadth: Tone: A.\n[[A]]"]
    policy = Replies(said)
    policy.context = 10**6
    found = styles(unit=r"(Tone|Names): [^\n]+")([TASTE, FACT], Run(policy))
    # each row in both orders: A is right in the first
    assert (found["judged_subjective"], found["judged_objective"]) == (0.5, 0.5)
    assert (found["breadth_subjective"], found["depth_objective"]) == (0.5, 0.5)
    assert found["principles"] == 1.0
    policy.replies = said[:2]
    assert "judged_objective" not in styles()([TASTE], Run(policy))


def test_patterns_without_a_group_and_forms_without_marks_are_refused():
    with pytest.raises(RewardlabError, match="has no group"):
        build("mix_grm", {"unit": "Tone"})
    with pytest.raises(RewardlabError, match="no regular expression"):
        build("mix_grm", {"solution": "("})
    with pytest.raises(RewardlabError, match="need a form with marks"):
        build("mix_grm", {"form": "{prompt} {replies}", "kind": "scores", "breadth_form": "", "depth_form": ""})
    # without a stage of imitation nobody writes
    assert build("mix_grm", {"distil": 0}).also == ()
