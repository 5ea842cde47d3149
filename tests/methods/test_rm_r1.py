"""RM-R1: where the verdict is read, who is asked again and with what, and that its two stages follow one another."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.judges.cases import WORTH, Case, to_judge
from rewardlab.judges.named import form_of
from rewardlab.methods.judges.rm_r1 import distilled_judgements, right_at_the_end, rm_r1, told_verdict
from rewardlab.models.embedded import untrained
from rewardlab.worlds.duels import FORM

PAIR = ask("What is 17 + 5?", None, chosen="22", rejected="23")
REASONED = (
    "<type>Reasoning</type>\n\n<solution>17 + 5 = 22</solution>\n\n<eval><summary_A>22</summary_A> is right, and "
    "<quote_B>23</quote_B> is not.</eval>\n\n<answer>[[{}]]</answer>"
)


def question(first: bool = True, form: str = "rm_r1"):
    case = Case(("22", "23") if first else ("23", "22"), (1.0, 0.0) if first else (0.0, 1.0))
    return to_judge(PAIR, case, form_of(form))


def paid(text: str, **settings) -> float:
    row = Trajectory(question(), (Turn("policy", np.zeros(1, np.int64), text=text),), "end")
    return right_at_the_end(**settings)([[row]], Run(policy=None))[0][0].value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (REASONED.format("A"), 1.0),
        (REASONED.format("B"), -1.0),
        # answer_reward of the released code: the right tag in the last 80 characters, and the other one not
        (REASONED.format("B") + "<answer>[[A]]</answer>", -1.0),
        ("<answer>[[B]]</answer>" + "No, wait. " * 8 + "<answer>[[A]]</answer>", 1.0),
        ("<answer>[[A]]</answer>" + "." * 80, -1.0),
        ("[[A]]", -1.0),
        ("", -1.0),
    ],
)
def test_the_verdict_stands_at_the_end_and_alone(text, value):
    assert paid(text) == value


def test_the_whole_judgement_is_read_where_the_end_is_long():
    assert paid("<answer>[[A]]</answer>" + "." * 80, tail=200) == 1.0


def test_a_form_that_does_not_compare_is_refused():
    with pytest.raises(RewardlabError, match="rm_r1 compares two replies"):
        rm_r1(form="mt_bench")


@pytest.mark.parametrize(("first", "mark"), [(True, "<answer>[[A]]</answer>"), (False, "<answer>[[B]]</answer>")])
def test_a_second_writer_is_told_the_verdict_and_the_mistake(first, mark):
    asked = question(first)
    told = told_verdict(asked, "B, I feel.", form_of("rm_r1"), "\nright: {verdict}\nwrong: {judgement}")
    assert told.question == f"{asked.question}\nright: {mark}\nwrong: B, I feel."
    # what the judge is asked in general stays
    assert told.prompt[0] == asked.prompt[0]


class Writer:
    """A policy that is told what to write by a function of its prompt; what it is asked and records can be looked up."""

    context = 10_000

    def __init__(self, says):
        self.says, self.asked = says, []
        self.recorded = untrained(0, task=registry.task("duels:judged=true", test_size=1))

    def read(self, trajectories, messages):
        return self.recorded.read(trajectories, messages)

    def write(self, trajectories, texts):
        return self.recorded.write(trajectories, texts)

    def check_fits(self, trajectory, further):
        self.recorded.check_fits(trajectory, further)

    def extend(self, trajectories, sampling, rng):
        self.asked += [t.problem.question for t in trajectories]
        return self.write(trajectories, [self.says(t.problem.question) for t in trajectories])


def test_wrong_judgements_are_asked_for_again_and_learnt_under_the_plain_question():
    """Of four rows one brings a right judgement, one a wrong one; the writer is wrong at first, and once also when it is told."""
    rows = [
        ask("2+2", None, chosen="4", rejected="5", judgement="[[A]]"),
        ask("2+3", None, chosen="5", rejected="6", judgement_reversed="[[A]]"),
        ask("2+4", None, chosen="6", rejected="7"),
        ask("2+5", None, chosen="7", rejected="8"),
    ]

    def says(text: str) -> str:
        # told, it says what it is told; but of the last row nothing can be made of it
        return "?" if "2+5" in text else "so " + text[-5:] if "TOLD" in text else "[[C]]"

    writer = Writer(says)
    run = Run(writer, max_new=20)
    kept = distilled_judgements(by=right_at_the_end(form=FORM), form=FORM, again="TOLD {judgement} {verdict}")(rows, run)
    found = {t.problem.meta["question"]: t for (t,) in kept}
    assert list(found) == ["2+2", "2+3", "2+4"]
    assert found["2+2"].reply == "[[A]]"
    # its own judgement was about the reverse order
    assert (found["2+3"].reply, found["2+3"].problem.meta[WORTH]) == ("so [[B]]", [0.0, 1.0])
    assert all("TOLD" not in t.problem.question for t in found.values())
    assert len([text for text in writer.asked if "TOLD" in text]) == 3
    assert any("TOLD [[A]] [[B]]" in text for text in writer.asked)
    assert (run.metrics["right_first"], run.metrics["right_again"]) == (pytest.approx(1 / 4), pytest.approx(2 / 3))


def test_nobody_is_asked_again_without_words_for_it():
    writer = Writer(lambda text: "[[C]]")
    (group,) = distilled_judgements(by=right_at_the_end(form=FORM), form=FORM, again="")([PAIR], Run(writer, max_new=20))
    assert len(writer.asked) == 1
    # nothing to learn, but a batch
    assert group[0].reply == ""


def test_the_recipe_imitates_first_and_pays_right_verdicts_then():
    recipe = rm_r1()
    assert recipe.loop.settings["first"] == 20
    assert "distilled_judgements" in str(recipe.loop)
    assert "right_at_the_end" in str(recipe.reward)
    assert "kl_to_reference" in str(recipe.objective)
    assert rm_r1(distil=0).loop is None


def test_a_form_that_is_longer_than_the_context_is_told_in_words():
    """No judgement can be written then; the question by itself was taught, which ended in an IndexError in the model."""
    writer = Writer(lambda _: "")
    rows = [ask(f"What is {i} + 5? {'Think. ' * 400}", None, chosen="22", rejected="23") for i in (17, 18)]
    with pytest.raises(RewardlabError, match="exceed the model's context of"):
        distilled_judgements(by=right_at_the_end(form=FORM), form=FORM, again="")(rows, Run(writer, max_new=9_000))
