"""CompassJudger-2: the opposite verdict in a judgement's place, and the margin between both at their token."""

import numpy as np
import pytest
import torch

from rewardlab import build
from rewardlab.core import Outputs, Run, Score, Trajectory, Turn, ask, rollout
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.judges.forms import own_form
from rewardlab.judges.marks import Marks
from rewardlab.methods.judges.compassjudger_2 import (
    WRONG,
    both_verdicts,
    short_of_margin,
    verdict_margin,
    verdicts_apart,
    with_other_verdict,
)
from rewardlab.models.embedded import untrained

PAIRS = own_form("pairwise").marks
ROW = ask("What is half of 46?", None, chosen="23", rejected="28")


def test_the_opposite_verdict_stands_in_the_place_of_the_last_mark():
    assert with_other_verdict("First I thought [[B]], but 23 is right. [[A]]", PAIRS) == (
        "First I thought [[B]], but 23 is right. [[B]]"
    )
    assert with_other_verdict("[[b]]", PAIRS) == "[[a]]"
    assert with_other_verdict("It is [[Yes]]", own_form("verdict").marks) == "It is [[no]]"
    # of a scale the furthest: 2 of 1 to 5 is nearer to 1
    assert with_other_verdict("[[2]]", Marks(low=1, high=5)) == "[[5]]"
    boxed = Marks({"1": 1.0, "2": 0.0}, pattern=r"\\boxed\{Assistant ([12])\}")
    assert with_other_verdict(r"So \boxed{Assistant 2}.", boxed) == r"So \boxed{Assistant 1}."
    assert with_other_verdict("I cannot say", PAIRS) is None
    assert with_other_verdict("[[D]]", PAIRS) is None


def row(ids, read=1):
    parts = (Turn(None, np.array(ids[:read])), Turn("policy", np.array(ids[read:])))
    return Trajectory(ROW, parts, "end")


def test_the_margin_to_the_likeliest_other_tokens_by_hand():
    """Token 0 of logits 2, 1, -3.5: 5 - 1 = 4 short of 5 over the first other, and nothing over the second: 4 / 2 = 2."""
    logits = torch.tensor([[2.0, 1.0, -3.5], [2.0, 1.0, -3.5]], requires_grad=True)
    short = short_of_margin(logits, torch.tensor([0, 1]), least=5.0)["short"]
    # token 1: 5 - (1 - 2) = 6 and 5 - (1 + 3.5) = .5, so 3.25
    assert short.tolist() == pytest.approx([2.0, 3.25])
    short.sum().backward()
    assert logits.grad.tolist() == [[-0.5, 0.5, 0.0], [0.5, -1.0, 0.5]]
    # of twelve other tokens, of which one is as likely as it and the rest far behind, only ten count
    many = torch.tensor([[0.0] * 2 + [-20.0] * 11])
    assert short_of_margin(many, torch.tensor([0]))["short"].tolist() == pytest.approx([10 / 10])


def test_margin_loss_by_hand():
    # a prompt of 1 token; the pair differs at position 3 (verdict 7 or 8), its end token is the same; the second has no verdict
    pairs = [[row([1, 5, 6, 7, 2]), row([1, 5, 6, 8, 2])], [row([1, 5, 2]), row([1, 5, 2])]]
    batch = collate(pairs, [[Score(0.0)] * 2] * 2, torch.device("cpu"))
    logprobs = torch.zeros(4, 5)
    logprobs[0] = torch.tensor([0.0, -1.0, -2.0, -0.5, -0.1])
    logprobs[2] = torch.tensor([0.0, -1.0, -3.0, 0.0, 0.0])
    short = torch.full((4, 5), 9.0)
    short[0, 3] = 2.0
    logprobs.requires_grad_()
    out, run = Outputs(logprobs=logprobs, extra={"short": short.requires_grad_()}), Run(None)
    # 2 of the margin, times .5, in the place of .5 = -log p(7)
    loss = verdict_margin(gamma=0.5)(out, batch, run)
    assert loss.tolist() == pytest.approx([(1 + 2 + 1 + 0.1) / 4, 2.0])
    loss.sum().backward()
    # at the verdict the margin alone, which weighs as one token does; nothing of the second row learns
    assert logprobs.grad[0].tolist() == pytest.approx([0, -0.25, -0.25, 0, -0.25])
    assert short.grad[0].tolist() == pytest.approx([0, 0, 0, 0.125, 0])
    assert logprobs.grad[1].abs().sum() == short.grad[1].abs().sum() == 0
    # without a margin likelihood has its place: (1 + 2 + .5 + .1) / 4
    assert verdict_margin(gamma=0.0)(out, batch, run).tolist() == pytest.approx([0.9, 2.0])


def test_all_right_judgements_of_eight_are_imitated_with_the_margin_of_the_paper():
    recipe = build("compassjudger_2")
    assert (recipe.rows_per_problem, recipe.objective.settings) == (8, {"gamma": 1.0, "least": 10.0})


@rollout
def said(problems, run, *, text: str):
    begun = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    return [[t] for t in (run.policy.write(begun, [text] * len(problems)) if text else begun)]


def test_rows_share_everything_before_the_verdict():
    run = Run(untrained(0))
    ((right, wrong),) = both_verdicts(inner=said(text="12+5=17 A + B - [[A]]"))([ROW], run)
    differ = np.flatnonzero(right.ids[: len(wrong)] != wrong.ids[: len(right)])
    assert len(right) == len(wrong)
    assert len(differ) == 1
    assert (wrong.tag, wrong.reply) == (WRONG, "12+5=17 A + B - [[B]]")
    # where no judgement was accepted there is nothing to learn
    ((first, second),) = both_verdicts(inner=said(text=""))([ROW], run)
    assert first.ids.tolist() == second.ids.tolist()
    assert not first.mask.any()


class Says:
    """An untrained model whose judgements are given."""

    def __init__(self, texts):
        self.model, self.texts = untrained(0), texts

    def __getattr__(self, name):
        return getattr(self.model, name)

    def extend(self, rows, sampling, rng):
        return [self.model.write([t], [text])[0] for t, text in zip(rows, self.texts, strict=True)]


def test_the_margin_of_held_out_judgements_is_that_of_the_right_verdict_whatever_was_said():
    run = Run(Says(["17 [[A]]", "17 [[A]]"]), max_new=16)
    found = verdicts_apart()([ROW], run)
    assert found["judged"] == 0.5
    # shown as it is, A is right; turned round, B is
    turned = verdicts_apart()([ROW], Run(Says(["17 [[B]]", "17 [[B]]"]), max_new=16))
    assert turned["verdict_margin"] == pytest.approx(found["verdict_margin"])
    assert "verdict_margin" not in verdicts_apart()([ROW], Run(Says(["17", "17"]), max_new=16))
    # a tie, whose opposite is A: right where the better one stands first, and there alone
    assert verdicts_apart()([ROW], Run(Says(["17 [[C]]", "17 [[C]]"]), max_new=16))["judged"] == 0.0


def test_a_form_without_marks_is_refused():
    with pytest.raises(RewardlabError, match="needs a form with marks"):
        build("compassjudger_2", {"form": "Score all: {prompt} {replies}", "kind": "scores"})
