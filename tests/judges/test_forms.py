"""How a judge is asked, and how its judgement is read."""

import math
from dataclasses import replace

import numpy as np
import pytest
from rows import Replies

from rewardlab.clients.messages import Reply, Token
from rewardlab.core import Message, Problem, Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.judges.cases import agrees, best_of, cases_of, label_of, to_judge
from rewardlab.judges.forms import Form, asking, listed_scores, own_form
from rewardlab.judges.marks import Marks, only_mark
from rewardlab.judges.named import form_of
from rewardlab.methods.judges.openrubrics import consistent_rubrics
from rewardlab.methods.judges.rlac import survives
from rewardlab.methods.judges.rlcf_checklists import checklist_score

PAIR = form_of("{prompt}\nA: {first}\nB: {second}")


def test_a_pair_is_shown_in_its_order_and_read_as_values_of_both():
    asked = PAIR.asked(ask("2 + 2?", "4"), ["4", "5"])
    assert asked.question == "2 + 2?\nA: 4\nB: 5"
    assert PAIR.read("4 is right. [[A]]").values == (1.0, 0.0)
    assert PAIR.read("[[A]], or rather [[b]]").values == (0.0, 1.0)
    assert PAIR.read("either, [[C]]").values == (0.5, 0.5)
    assert PAIR.read("I cannot tell").values is None


@pytest.mark.parametrize(
    ("said", "values"),
    [
        ("<think>[[A]] at first, but no</think>I say [[B]]", (0.0, 1.0)),
        ("[[A]] at first, but no</think>\n[[B]]", (0.0, 1.0)),  # the template has begun the thoughts
        ("<think>A is [[A]], or is it?", None),  # cut off before it has decided
        ("<think>surely [[A]]</think>", None),
        ("<think>surely [[A]]</think>neither", None),
    ],
)
def test_a_mark_in_the_thoughts_of_a_judge_is_no_judgement(said, values):
    assert PAIR.read(said).values == values
    assert own_form("scores").read("<think>[[1, 2]], or", 2).values is None
    assert own_form("scores").read("<think>[[1, 2]]</think>[[10, 5]]", 2).values == (1.0, 0.5)
    assert only_mark("<think>[[yes]], or [[no]]</think>[[no]]") == "no"
    assert only_mark("<think>[[yes]], or") is None


def test_the_reason_says_that_it_ends_in_its_thoughts():
    assert "ends in the judge's thoughts" in PAIR.read("<think>A is [[A]], or is it?").said


def test_a_mark_behind_thoughts_is_read_by_its_chances():
    text = "<think>[[2]]?</think>[["
    tokens = (Token(text, {text: 0.0}), Token("4", {"4": math.log(0.75), "2": math.log(0.25)}), Token("]]", {"]]": 0.0}))
    (value,) = own_form("scale").read(Reply(f"{text}4]]", chances=tokens)).values
    assert value == pytest.approx(0.75 * 0.75 + 0.25 * 0.25)  # 4 is 3/4 of the way from 1 to 5


def test_columns_of_the_row_are_shown_and_missing_ones_are_named():
    form = form_of("{prompt} {reply} by {rubric}", kind="verdict")
    assert form.columns == ("rubric",)
    row = ask("2 + 2?", None, rubric=["is 4", "is short"])
    assert form.asked(row, ["4"]).question == "2 + 2? 4 by - is 4\n- is short"
    with pytest.raises(RewardlabError, match="shows the column 'rubric', and the row of '2 \\+ 2\\?' has none"):
        form.asked(ask("2 + 2?"), ["4"])


def test_braces_of_latex_and_json_are_no_places():
    form = form_of('{prompt} {reply}: say \\boxed{verdict} or {"score": 3} or {{mark}}', kind="verdict")
    assert form.columns == ()
    assert form.asked(ask("q"), ["r"]).question == 'q r: say \\boxed{verdict} or {"score": 3} or {{mark}}'


def test_a_reply_cannot_fill_places_of_the_form():
    assert PAIR.asked(ask("q", "secret"), ["{answer}", "{second}"]).question == "q\nA: {answer}\nB: {second}"


def test_the_part_with_the_gold_answer_is_left_out_where_there_is_none():
    assert "[Right answer]\n4" in own_form("pairwise").prompt("2 + 2?", "4", ["4", "5"])
    assert "Right answer" not in own_form("pairwise").prompt("2 + 2?", None, ["4", "5"])


def test_a_longer_conversation_is_shown_whole_and_the_tasks_system_message_is_not():
    said = (Message("system", "Be brief."), Message("user", "Hi"), Message("assistant", "Hello"), Message("user", "2 + 2?"))
    asked = PAIR.asked(Problem(said), ["4", "5"])
    assert [m.role for m in asked.prompt] == ["user"]
    assert asked.question.startswith("User: Hi\n\nAssistant: Hello\n\nUser: 2 + 2?\nA: 4")


def test_several_replies_and_a_score_of_each():
    form = own_form("scores")
    asked = form.asked(ask("2 + 2?"), ["4", "5", "four"]).question
    assert "[Reply A]\n4\n\n[Reply B]\n5\n\n[Reply C]\nfour\n\n[End of the replies]" in asked
    assert form.read("good, bad, good: [[9, 1, 8]]", 3).values == (0.9, 0.1, 0.8)
    assert form.read("[[9, 1]]", 3).values is None
    assert listed_scores("[[1, 2]] no: [[ 3.5,4 ]]", 2) == (3.5, 4.0)


def test_marks_of_other_shapes_are_found_by_their_pattern():
    boxed = Marks({"1": 1.0, "2": 0.0}, written=r"\boxed{Assistant {}}", pattern=r"\\boxed\{Assistant (\d)\}")
    form = Form("boxed", "pairwise", "{first} {second}", marks=boxed)
    assert boxed.texts == (r"\boxed{Assistant 1}", r"\boxed{Assistant 2}")
    assert form.read(r"so \boxed{Assistant 2}").values == (0.0, 1.0)


def test_a_name_that_is_none_says_what_it_may_be():
    with pytest.raises(RewardlabError, match=r"neither a text with \{first\} and \{second\} in it nor a file"):
        form_of("no_such_form")
    with pytest.raises(RewardlabError, match=r"has no \{second\} in it"):
        form_of("compare {first}")


def test_rows_of_every_shape():
    verdict, scores = own_form("verdict"), own_form("scores")
    pair = ask("q", None, chosen="good", rejected="bad")
    assert cases_of(pair, PAIR) == [(("good", "bad"), (1.0, 0.0))]
    assert cases_of(pair, verdict) == [(("good",), (1.0,)), (("bad",), (0.0,))]
    several = ask("q", None, replies=["a", "b", "c"], scores=[2, 9, 1])
    assert cases_of(several, scores) == [(("a", "b", "c"), (2.0, 9.0, 1.0))]
    # of several replies a comparison takes the best and the worst
    assert cases_of(several, PAIR) == [(("b", "c"), (9.0, 1.0))]
    assert cases_of(ask("q", None, reply="a", label="right"), verdict) == [(("a",), (1.0,))]
    with pytest.raises(RewardlabError, match=r"has no replies to judge\. Rows to judge have a pair"):
        cases_of(ask("q"), PAIR)
    with pytest.raises(RewardlabError, match="compares replies, and problem 'q' has one"):
        cases_of(ask("q", None, reply="a", label=1), PAIR)
    with pytest.raises(RewardlabError, match="the label 'maybe' of problem 'q' is neither a number"):
        label_of("maybe", ask("q"))


def test_the_question_keeps_what_is_judged_and_what_it_is_worth():
    (case,) = cases_of(ask("q", None, chosen="good", rejected="bad"), PAIR)
    asked = to_judge(ask("q", "gold", chosen="good", rejected="bad"), case.at([1, 0]), PAIR)
    assert asked.question == "q\nA: bad\nB: good"
    assert (asked.meta["shown"], asked.meta["worth"], asked.meta["question"], asked.answer) == (
        ["bad", "good"],
        [0.0, 1.0],
        "q",
        "gold",
    )


def test_agreement():
    assert agrees((0.0, 1.0), (0.0, 1.0))
    assert not agrees((1.0, 0.0), (0.0, 1.0))
    # a tie finds no reply the best
    assert not agrees((0.5, 0.5), (0.0, 1.0))
    assert agrees((0.9,), (1.0,))
    assert not agrees((0.5,), (1.0,))
    assert agrees((0.2, 0.9, 0.9 - 1e-9), (0.0, 1.0, 0.5))
    assert best_of((1.0, 2.0, 2.0)) is None


TALK = Problem(
    (
        Message("system", "You are a pirate. Say only 'Arr'."),
        Message("user", "Hi"),
        Message("assistant", "Arr"),
        Message("user", "Bye"),
    ),
)


def test_a_judge_is_asked_in_its_own_words_alone_and_reads_the_whole_conversation():
    asked = asking(TALK, "Score this.\n{prompt}\n[{reply}]", reply="Arr {prompt}")
    assert asked.prompt == (Message("user", "Score this.\nUser: Hi\n\nAssistant: Arr\n\nUser: Bye\n[Arr {prompt}]"),)
    assert asking(ask("2 + 2?", "4", system="Be brief."), "{prompt}").prompt == (Message("user", "2 + 2?"),)
    # what stands in a place may be another text than the conversation
    assert asking(TALK, "{prompt}", prompt="Bye").prompt == (Message("user", "Bye"),)


@pytest.mark.parametrize("name", ["rlcf_checklists", "rlac", "openrubrics"])
def test_no_judge_is_asked_under_the_system_message_of_who_replied(name):
    """What the judges of these methods read of a row with a system message and two turns."""
    read: list[tuple[Message, ...]] = []

    class Silent(Replies):
        context = 10_000

        def read(self, trajectories, messages):
            read.extend(messages)
            return super().read(trajectories, messages)

        def extend(self, trajectories, sampling, rng):
            return self.write(trajectories, ["Arr"] * len(trajectories))

    problem = replace(TALK, meta={"chosen": "Arr", "rejected": "Farewell", "checklist": ["Is it brief?"]})
    policy = Silent([])
    run = Run(policy, models=dict.fromkeys(("judge", "critic", "validator", "writer"), policy), max_new=4)
    group = [Trajectory(problem, (Turn("policy", np.zeros(1, np.int64), text="Arr"),), "end")]
    asks = {
        "rlcf_checklists": lambda: checklist_score(samples=1)([group], run),
        "rlac": lambda: survives()([group], run),
        "openrubrics": lambda: consistent_rubrics(n=1)([problem], run),
    }
    asks[name]()
    questions = [prompt for prompt in read if prompt != problem.prompt]
    assert questions
    assert all([m.role for m in prompt] == ["user"] and "pirate" not in prompt[0].text for prompt in questions)
    assert any("Assistant: Arr" in prompt[0].text for prompt in questions)
