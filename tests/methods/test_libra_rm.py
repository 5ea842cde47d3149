"""Libra-RM: verdicts without a reference, imitation of judgements that are not always right, and a policy paid by verdicts."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from rows import Replies, batch_of, outcome

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.judges.libra_rm import VERIFY, accuracy_by_subset, held_right, libra_rm
from rewardlab.models.embedded import untrained
from rewardlab.rollouts.judgements import accepted_judgements

FORM = "{prompt}|{reply}"


class Judge(Replies):
    """A verifier that holds what `says` makes of question and reply; it keeps the questions."""

    def __init__(self, says):
        super().__init__([])
        self.says, self.asked = says, []

    def extend(self, trajectories, sampling, rng):
        self.asked += [t.problem.question for t in trajectories]
        said = [self.says(*t.problem.question.split("|")) for t in trajectories]
        return [t.plus(Turn("policy", np.zeros(1, np.int64), text=x), "end") for t, x in zip(trajectories, said, strict=True)]


def even(prompt: str, reply: str) -> str:
    return "" if not reply.isdigit() else f"{reply} / 2. [[{'no' if int(reply) % 2 else 'yes'}]]"


def replied(problem, *texts: str) -> list[Trajectory]:
    return [Trajectory(problem, (Turn("policy", np.zeros(1, np.int64), text=text),), "end") for text in texts]


# ---- the policy that verdicts pay ----------------------------------------------------------------------------------------


def test_verdicts_pay_a_policy_without_its_answers():
    judge = Judge(even)
    recipe = libra_rm(judge="hf:somewhere", form=FORM)
    # the gold answer is odd: a judge that read it, or was checked against it, would pay otherwise
    group = replied(ask("A number?", "7"), "4", "7", "many")
    (scores,) = recipe.reward([group], Run(policy=None, models={"judge": judge}, max_new=8))
    assert [s.value for s in scores] == [1.0, 0.0, None]
    assert judge.asked == ["A number?|4", "A number?|7", "A number?|many"]


def test_the_credit_is_that_of_grpo_over_verdicts():
    """Verdicts 1, 0, 0, 0: mean 1/4, the first alone above it."""
    recipe = libra_rm(judge="hf:somewhere")
    batch = batch_of([[("rd", {"judge": outcome(x)}) for x in (1.0, 0.0, 0.0, 0.0)]])
    credit = recipe.credit(batch.reward, batch, Run(policy=None))[:, 1]
    assert credit[0] > 0
    assert torch.allclose(credit[1:], -credit[0] / 3 * torch.ones(3))


def test_a_judge_makes_it_train_a_policy():
    local, served = libra_rm(judge="hf:somewhere"), libra_rm(judge="openai:http://localhost:1/v1#judge")
    assert [(x.name, x.init, x.every) for x in local.also] == [("judge", "hf:somewhere", 0)]
    assert (served.also, served.reward.settings["model"]) == ((), "openai:http://localhost:1/v1#judge")
    assert local.loop is None
    assert libra_rm().loop.settings["first"] == 20
    assert libra_rm(distil=0).loop is None


def test_a_policy_that_pleases_its_judge_alone_is_seen():
    """Replies 4, 6, 7 and text, answers 4, 5, 7, 8: 4 and 6 are held right, 4 and 7 are; trusted: 4, text."""
    problems = [ask(f"Which{i}?", gold) for i, gold in enumerate("4578")]
    policy = Replies(["4", "6", "7", "many"])

    def verify(groups, run):
        return [[Score(float(t.reply == t.problem.answer)) for t in group] for group in groups]

    run = Run(policy, models={"judge": Judge(even)}, max_new=8, verify=verify)
    assert held_right(form=FORM)(problems, run) == {"held_right": 0.5, "n": 4.0, "pass@1": 0.5, "trusted": 0.5}
    # prompts that nobody has answered
    unlabelled = Run(policy, models={"judge": Judge(even)}, max_new=8, verify=lambda groups, run: [[Score(None)] for _ in groups])
    assert held_right(form=FORM)(problems, unlabelled) == {"held_right": 0.5, "n": 4.0}


def test_the_judge_does_not_read_what_was_thought_before_a_reply():
    judge = Judge(even)
    run = Run(Replies(["<think>7? No.</think>\n4"]), models={"judge": judge}, max_new=8)
    held_right(form=FORM)([ask("Which?", None)], run)
    assert judge.asked == ["Which?|\n4"]


# ---- the verifier --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "why"), [("{prompt} {answer} {reply}", "without a reference"), ("rm_r1", "verdicts on one reply")]
)
def test_forms_that_show_the_reference_or_compare_are_refused(form, why):
    for judge in ("", "hf:somewhere"):
        with pytest.raises(RewardlabError, match=why):
            libra_rm(form=form, judge=judge)


def test_the_gold_answer_stays_out_of_the_question():
    row = ask("Half of 46?", "23", reply="24", label="no")
    asked = accepted_judgements(by=libra_rm().reward, form=VERIFY, kind="verdict", n=1)
    kept = asked([row], Run(Judge(lambda *_: "It is not half. [[no]]"), max_new=8))
    assert "23" not in kept[0][0].problem.question
    assert "24" in kept[0][0].problem.question


@pytest.mark.parametrize(("easy", "imitated"), [(False, ["3"]), (True, ["3", "4"])])
def test_replies_that_all_judgements_are_right_about_are_not_imitated(easy, imitated):
    """Of two judgements of each reply, one of 3 is right, both of 4, and none of 5."""
    said = iter(["[[yes]]", "odd. [[no]]", "[[yes]]", "even. [[yes]]", "[[yes]]", "[[yes]]"])
    settings = libra_rm(form=FORM, tries=2, easy=easy).loop.settings
    rows = [ask(f"Even? {x}", None, reply=x, label=label) for x, label in (("3", "no"), ("4", "yes"), ("5", "no"))]
    kept = accepted_judgements(**{k: settings[k] for k in ("by", "form", "kind", "n", "easy")})(
        rows, Run(Judge(lambda *_: next(said)), max_new=8)
    )
    assert [t.problem.question.rpartition("|")[2] for (t,) in kept] == imitated
    assert kept[0][0].reply == "odd. [[no]]"


def test_right_verdicts_are_paid_one_and_all_else_nothing():
    row = ask("Even?", None, shown=["4"], worth=[1.0])
    (scores,) = libra_rm().reward([replied(row, "2 x 2 [[yes]]", "[[no]]", "Hm.")], Run(policy=None))
    assert [s.value for s in scores] == [1.0, 0.0, 0.0]


def test_accuracy_is_averaged_over_subsets_and_told_for_either_label():
    """Always yes: of subset a (yes, yes, no) 2/3 is right, of b (no) nothing: by subset 1/3, over all 1/2."""
    labels = [("a", "yes"), ("a", "yes"), ("a", "no"), ("b", "no")]
    rows = [ask(f"Even{i}?", None, reply="4", label=label, subset=subset) for i, (subset, label) in enumerate(labels)]
    found = accuracy_by_subset(form=FORM)(rows, Run(Judge(even), max_new=8))
    assert (found["judged"], found["by_subset"]) == pytest.approx((0.5, 1 / 3))
    assert (found["on_right"], found["on_wrong"]) == (1.0, 0.0)


def test_a_verifier_and_a_policy_on_bare_prompts_take_steps(tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"Start with {i}."}) + "\n" for i in range(8)))
    settings = {"form": FORM, "n": 2, "problems": 2}
    short = {"steps": 2, "eval_problems": 2, "max_new": 4, "device": "cpu", "patience": 0, "max_missing": 1.0}
    policy = untrained(0, task=registry.task("arithmetic", test_size=1))
    paid = train(
        libra_rm(judge="copy:policy", max_judgement=4, **settings), policy, registry.task(str(rows)), out=tmp_path / "a", **short
    )
    assert 0 <= paid.summary["after"]["held_right"] <= 1
    task = registry.task("mirrors", test_size=2)
    judge = train(libra_rm(distil=1, tries=2, **settings), untrained(0, task=task), task, out=tmp_path / "b", **short)
    assert 0 <= judge.summary["after"]["judged"] <= 1
