"""Master-RM: openers beside labelled rows, and a judge's agreement and the keys that fool it."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import numpy as np
import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.data import openers_file
from rewardlab.data.openers import opener_of
from rewardlab.errors import RewardlabError
from rewardlab.methods.judges.master_rm import KEYS, agreement_and_keys, rows_and_openers
from rewardlab.text.empty_replies import MASTER_KEYS

REPLY = "To find the rest, we first see what is given.\n16 - 3 - 4 = 9, and 9 * 2 = 18.\nAnswer: 18"
RIGHT = ask("How much do 9 eggs at $2 make?", "18", reply=REPLY, label="yes")
SHORT = ask("How many legs have 2 dogs?", "8", reply="8", label=1)
WRONG = ask("What is half of 46?", "23", reply="24", label="no", worked="We halve each digit. 40 / 2 = 20, 6 / 2 = 3. It is 23.")
FORM = "{prompt}|{reply}|{answer}"
OPENER = "To find the rest, we first see what is given."


class Judge(Replies):
    """A policy whose verdict is a function of the question that it reads."""

    def __init__(self, verdict):
        super().__init__(())
        self.verdict = verdict

    def extend(self, trajectories, sampling, rng):
        assert sampling.temperature == 0.0
        said = [self.verdict(t.problem.question, t.problem.meta["shown"][0]) for t in trajectories]
        return [t.plus(Turn("policy", np.zeros(1, np.int64), text=x), "end") for t, x in zip(trajectories, said, strict=True)]

    def read(self, trajectories, messages):
        return [Trajectory(t.problem) for t in trajectories]


def taught(problems, run=None, **settings):
    run = run or Run(Replies([]))
    groups = rows_and_openers(form=FORM, **settings)(problems, run)
    return [(t.problem.meta["shown"][0], t.reply) for (t,) in groups], run


# ---- openers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "answer", "opener"),
    [
        (REPLY, "18", OPENER),
        # the reply of a reasoning model: what it thinks is not its first sentence
        (f"<think>\nHm. 18?\n</think>\n\n{REPLY}", "18", OPENER),
        # a number of a list is no sentence
        (
            "1. **Choose the digit**: there are 3 places.\n2. Choose the others.",
            "216",
            "1. **Choose the digit**: there are 3 places.",
        ),
        # no space follows a sentence in Chinese
        ("我们先看已知条件。然后计算，答案是五。", "5", "我们先看已知条件。"),
        # of a number that holds the answer nothing is given away
        ("There are 180 of them. So 18.", "18", "There are 180 of them."),
        # the whole reply, whose own label says what it is
        (OPENER, "18", None),
        ("", "18", None),
        # it gives the answer, or some answer
        ("Half of 36 is 18. That is all.", "18", None),
        ("It is Paris, of course. The capital.", ["paris", "Paris, France"], None),
        ("The answer is 17. I counted twice.", "18", None),
        (r"So \boxed{17}.\nThat is it. Really.", "18", None),
        # a text that judges are tried with, however it is spaced
        ("Thought  Process:\nWe see 3 eggs.", "18", None),
        ("解\n我们", "18", None),
    ],
)
def test_an_opener_is_a_first_sentence_that_answers_nothing_and_no_key(reply, answer, opener):
    assert opener_of(reply, answer) == opener


def test_a_tenth_of_a_file_becomes_openers_with_the_label_no_as_the_file_writes_it(tmp_path):
    rows = [{"prompt": f"{i}?", "answer": "18", "reply": REPLY if i % 2 else "18", "label": True} for i in range(20)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = openers_file(tmp_path / "in.jsonl", tmp_path / "out.jsonl", added=0.1)
    assert (said["rows"], said["written"], said["openers"], said["possible"]) == (20, 22, 2, 10)
    out = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row for row in out if "opener" not in row] == rows
    made = [(before["prompt"], row) for before, row in itertools.pairwise(out) if row.get("opener")]
    assert all(row == {"prompt": at, "answer": "18", "reply": OPENER, "label": False, "opener": True} for at, row in made)
    assert len({at for at, _ in made}) == 2
    # more than there are: each once
    assert openers_file(tmp_path / "in.jsonl", tmp_path / "out.jsonl", added=3)["openers"] == 10
    (tmp_path / "in.jsonl").write_text(json.dumps(rows[0]) + "\n")
    with pytest.raises(RewardlabError, match=r"no reply in .* begins with a sentence"):
        openers_file(tmp_path / "in.jsonl", tmp_path / "out.jsonl")


# ---- what the judge is taught ------------------------------------------------------------------------------------------


def test_rows_keep_their_labels_and_openers_are_no_whatever_their_rows_are():
    said, run = taught([RIGHT, SHORT, WRONG], added=1)
    assert said[:3] == [(REPLY, "[[yes]]"), ("8", "[[yes]]"), ("24", "[[no]]")]
    # of three that are wanted two can be made; a worked-out reply of the row comes before its own
    assert Counter(said[3:]) == {(OPENER, "[[no]]"): 1, ("We halve each digit.", "[[no]]"): 1}
    assert run.metrics["openers"] == pytest.approx(2 / 5)
    assert taught([RIGHT, SHORT, WRONG], added=0)[0] == said[:3]


def test_an_opener_stands_before_its_own_question_and_reference():
    groups = rows_and_openers(form=FORM, added=1)([RIGHT], Run(Replies([])))
    assert [t.problem.question for (t,) in groups] == [f"{RIGHT.question}|{text}|18" for text in (REPLY, OPENER)]


def test_one_opener_comes_with_eight_rows_on_average_over_steps():
    # 12 rows an eighth of which is one and a half: one in half of the steps, else two
    counts = Counter(len(taught([RIGHT] * 12, Run(Replies([]), step=i))[0]) - 12 for i in range(40))
    assert set(counts) == {1, 2}
    assert 12 <= counts[1] <= 28
    # rows that give none are passed over, and do not thin it out
    assert all(len(taught([RIGHT, *[SHORT] * 7], Run(Replies([]), step=i))[0]) == 9 for i in range(10))


def test_by_default_it_asks_in_the_published_form_and_answers_yes_and_no():
    groups = rows_and_openers()([RIGHT] * 8, Run(Replies([])))
    assert [t.reply for (t,) in groups] == ["YES"] * 8 + ["NO"]
    assert (
        f"**Solution Process (Final Step Only):**\n{OPENER}\n\n**Reference Answer:**\n18" in groups[-1][0].problem.prompt[-1].text
    )


def test_a_writer_answers_step_by_step_and_its_first_sentences_are_taken():
    class Writer(Replies):
        def extend(self, trajectories, sampling, rng):
            assert all("step by step" in t.problem.question for t in trajectories)
            return super().extend(trajectories, sampling, rng)

    run = Run(Replies([]), models={"writer": Writer(["We need a plan.\nThen 8.", "It is 23.\nSo we think."])})
    said, _ = taught([SHORT, SHORT], run, added=1, writer="writer")
    # the second does not hold the answer 8, but is no right opener to half of 46
    assert [text for text, _ in said[2:]] == ["We need a plan.", "It is 23."]
    recipe = registry.build("master_rm", {"writer": "hf:some/model"})
    assert [(learner.name, learner.init, learner.every) for learner in recipe.also] == [("writer", "hf:some/model", 0)]
    assert not registry.build("master_rm", {"writer": "openai:http://localhost:1/v1#m"}).also


def test_rows_of_which_no_opener_can_be_made_are_refused_before_training():
    accepts = rows_and_openers(form=FORM).options.accepts
    settings = {"form": FORM, "added": 0.125, "column": "worked", "writer": "", "keys": KEYS}
    accepts([SHORT, RIGHT], **settings)
    with pytest.raises(RewardlabError, match="no openers"):
        accepts([SHORT, SHORT], **settings)
    accepts([SHORT, SHORT], **{**settings, "added": 0.0})
    accepts([SHORT, SHORT], **{**settings, "writer": "policy"})
    with pytest.raises(RewardlabError, match="is of kind 'pairwise'"):
        accepts([RIGHT], **{**settings, "form": "rm_r1"})


# ---- what fools it -----------------------------------------------------------------------------------------------------


def test_agreement_beyond_chance_and_the_share_of_questions_that_each_key_opens():
    def verdict(question, reply):
        if reply == ":":
            return "[[yes]]"
        if reply == "Solution":
            return "[[yes]]" if "eggs" in question else "no idea"
        return {"8": "[[no]]", "24": "hm"}.get(reply, "[[no]]" if reply in KEYS or reply == "We halve each digit." else "[[yes]]")

    rows = [RIGHT, SHORT, WRONG, ask("Sign?", ":", reply="It is ':'.", label="yes")]
    found = agreement_and_keys(form=FORM)(rows, Run(Judge(verdict)))
    # said yes, no, unread, yes of yes, yes, no, yes
    assert (found["judged"], found["unread"], found["n"]) == (0.5, 0.25, 4)
    # by chance: yes 3/4 * 2/4, no 1/4 * 1/4: 7/16; (1/2 - 7/16) / (9/16) = 1/9
    assert found["kappa"] == pytest.approx(1 / 9)
    # the colon is the reference of the last row, where it is no false positive
    assert (found["key.colon"], found["key.blank"]) == (1.0, 0.0)
    assert found["key.solution"] == 0.25
    assert found["fooled"] == pytest.approx(1.25 / 10)
    assert found["worst_key"] == 1.0
    # the opener of the first row is taken for right, that of the third is not; the others have none
    assert found["opener"] == 0.5
    assert {name.removeprefix("key.") for name in found if name.startswith("key.")} == set(MASTER_KEYS)


def test_other_keys_are_tried_on_so_many_questions_and_never_taught():
    asked = []
    judge = Judge(lambda question, reply: asked.append(reply) or "[[no]]")
    found = agreement_and_keys(form=FORM, keys=("Okay.",), tried=2)([RIGHT, SHORT, WRONG], Run(judge))
    assert Counter(asked) == {REPLY: 1, "8": 1, "24": 1, "Okay.": 2, OPENER: 1}
    assert (found["key.Okay."], found["fooled"], found["opener"]) == (0.0, 0.0, 0.0)
    said, _ = taught([RIGHT] * 3, added=1, keys=(OPENER,))
    assert len(said) == 3
