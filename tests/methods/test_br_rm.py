"""BR-RM: the form of both turns, what a verdict earns, that both turns learn from it, and how it is measured."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Outputs, Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.judges.cases import Case, to_judge
from rewardlab.judges.named import form_of
from rewardlab.methods.judges.br_rm import (
    DIMENSIONS,
    FIRST,
    SECOND,
    between,
    br_rm,
    branches,
    rethought_accuracy,
    right_verdict_in_form,
    verdict,
)
from rewardlab.models.embedded import untrained
from rewardlab.worlds.duels import FORM
from tests.helpers.rows import batch_of, outcome

PAIR = ask("Name a planet.", None, chosen="Mars", rejected="The Moon")
LOOKED = """[Quality Assessment Focus]
{}
[End of Quality Assessment Focus]

[Quality Analysis for Response 1]
- Critical Issues: None identified
[End of Quality Analysis for Response 1]

[Quality Analysis for Response 2]
- Critical Issues: it may be no planet
[End of Quality Analysis for Response 2]"""
RANKED = """[The Begin of Analysis on Response 1]
\\boxed{{2}} would be wrong: Mars is a planet.
[The End of Analysis on Response 1]
[The Begin of Ranking Score]
{}
[The End of Ranking Score]"""
GOOD = LOOKED.format("Information Accuracy")


def row(*replies: str, better_first: bool = True) -> Trajectory:
    case = Case(("Mars", "The Moon"), (1.0, 0.0)).at([0, 1] if better_first else [1, 0])
    turns = []
    for i, text in enumerate(replies):
        if i:
            turns.append(Turn(None, np.zeros(1, np.int64), text=SECOND))
        zeros = np.zeros(2, np.float32)
        turns.append(Turn("policy", np.zeros(2, np.int64), zeros, zeros, text=text))
    return Trajectory(to_judge(PAIR, case, form_of(FIRST)), tuple(turns), "end")


def paid(*replies: str, better_first: bool = True, **settings) -> float:
    return right_verdict_in_form(**settings)([[row(*replies, better_first=better_first)]], Run(policy=None))[0][0].value


@pytest.mark.parametrize(
    ("first", "chosen"),
    [
        (GOOD, ("Information Accuracy",)),
        (LOOKED.format("Safety awareness, logical reasoning"), ("Logical Reasoning", "Safety Awareness")),
        # judging everything is judging nothing closely
        (LOOKED.format("Information Accuracy, Logical Reasoning, Implementation Capability, Safety Awareness"), None),
        (LOOKED.format("Beauty"), None),
        (GOOD.replace("[Quality Analysis for Response 2]", ""), None),
        (GOOD.replace("- Critical Issues: None identified", ""), None),
        ("Information Accuracy", None),
        ("", None),
    ],
)
def test_a_first_turn_chooses_a_few_dimensions_and_analyses_both(first, chosen):
    assert branches(first) == chosen


@pytest.mark.parametrize(
    ("text", "strict", "values"),
    [
        (RANKED.format("\\boxed{1}"), True, (1.0, 0.0)),
        (RANKED.format("\\boxed{ 2 }"), True, (0.0, 1.0)),
        (RANKED.format("\\boxed{1} or \\boxed{2}"), True, None),
        (RANKED.format("\\boxed{3}"), True, None),
        ("\\boxed{1}", True, None),
        (RANKED.format("\\boxed{1}").replace("[The End of Ranking Score]", ""), True, None),
        ("\\boxed{1}", False, (1.0, 0.0)),
        ("polite + - [[B]]", False, (0.0, 1.0)),
        ("[[A]] no, [[B]]", False, (0.0, 1.0)),
        ("polite", False, None),
    ],
)
def test_the_verdict_of_a_second_turn(text, strict, values):
    assert verdict(text, strict) == values


def test_right_wrong_and_out_of_form():
    first, second = RANKED.format("\\boxed{1}"), RANKED.format("\\boxed{2}")
    assert (paid(GOOD, first), paid(GOOD, second)) == (0.0, -10.0)
    assert (paid(GOOD, first, better_first=False), paid(GOOD, second, better_first=False)) == (-10.0, 0.0)
    # a right verdict does not mend a first turn without its form, nor one turn alone
    assert [paid("Mars is fine.", first), paid(GOOD, "The first."), paid(GOOD), paid("", first)] == [-100.0] * 4
    assert paid("polite", "polite + - [[A]]", strict=False) == 0.0
    assert paid("", "polite + - [[A]]", strict=False) == -100.0
    assert paid(GOOD, second, wrong=-1.0) == -1.0


def test_what_is_thought_before_a_turn_is_no_part_of_its_form():
    first = "<think>[Quality Assessment Focus] could be accuracy, or\n[End of Quality Assessment Focus]</think>\n\n" + GOOD
    second = f"<think>{RANKED.format('it may be 2')}</think>{RANKED.format(chr(92) + 'boxed{1}')}"
    assert paid(first, second) == 0.0


def test_the_defaults_are_those_of_the_released_scripts():
    """8 judgements of a pair and a KL of .001; the eight abilities stand in the question, beside marked context and replies."""
    recipe = br_rm()
    assert "0.001" in str(recipe.objective)
    assert "0.001" not in str(br_rm(beta=0.0).objective)
    assert recipe.update.minibatches == 4
    asked = row("").problem.question
    assert all(name in asked for name in DIMENSIONS)
    assert "[The Begin of Response 2]\nThe Moon\n[The End of Response 2]" in asked
    assert "[The Begin of Context]\nName a planet.\n[The End of Context]" in asked


RIGHT, WRONG = (RANKED.format(f"\\boxed{{{i}}}") for i in (1, 2))


def credited(*rows):
    recipe = br_rm()
    batch = collate([list(rows)], recipe.reward([list(rows)], Run(policy=None)), torch.device("cpu"))
    return recipe.credit(batch.reward, batch, Run(policy=None))


def test_both_turns_learn_from_the_verdict():
    """Rewards 0, 0, -10, -10. A right one: 0 - (-20/3) = 6.667, over the standard deviation of 0, -10, -10, which is
    sqrt(200/3 - (20/3)^2) = 4.714: 1.414 for each token of both turns, none for what is read between them."""
    credit = credited(row(GOOD, RIGHT), row(GOOD, RIGHT), row(GOOD, WRONG), row(GOOD, WRONG))
    expected = torch.tensor([1.0, 1, 0, 1, 1]) * 2**0.5
    assert torch.allclose(credit, torch.stack([expected, expected, -expected, -expected]), atol=1e-3)


def test_where_all_others_earn_the_same_nothing_is_divided():
    """Rewards 0, -10, -10: the right one has 0 - (-10) = 10, and each wrong one -10 - (-5) = -5 over the 5 of 0 and -10."""
    credit = credited(row(GOOD, RIGHT), row(GOOD, WRONG), row(GOOD, WRONG))
    assert credit[:, 0].tolist() == pytest.approx([10.0, -1.0, -1.0])
    assert credited(row(GOOD, RIGHT), row(GOOD, RIGHT)).abs().sum() == 0
    # a row alone has nobody to be compared with
    assert credited(row(GOOD, WRONG)).abs().sum() == 0


def test_the_loss_is_clipped_further_above_and_every_token_counts_the_same():
    """At a ratio of 2 an advantage of 1 gains 1.28, and one of -1 loses 2; rows of 4 and 2 tokens weigh 2 to 1."""
    recipe = br_rm(beta=0.0)
    batch = batch_of([[("dddd", {"r": outcome(0.0)}), ("dd", {"r": outcome(0.0)})]])
    batch.columns["old"] = torch.zeros(2, 4)
    batch.credit = torch.tensor([[1.0] * 4, [-1.0, -1.0, 0.0, 0.0]])
    loss = recipe.objective(Outputs(logprobs=torch.full((2, 4), 2.0).log()), batch, Run(policy=None))
    assert loss[0].tolist() == pytest.approx([-1.28] * 4)
    assert loss[1, :2].tolist() == pytest.approx([2.0] * 2)
    assert recipe.weighting(batch).sum(1).tolist() == pytest.approx([2 / 3, 1 / 3])


def test_sections():
    assert between("a [x] b [y] c", "[x]", "[y]") == "b"
    assert [between(text, "[x]", "[y]") for text in ("[x] b", "b [y]", "[x]  [y]", "[y] b [x]")] == [None] * 4


class TwoTurns:
    """Names a wish, and when it is asked to look, prefers the longer reply, or what stands first."""

    context = 10_000

    def __init__(self, by_length: bool):
        self.by_length, self.heard = by_length, []
        self.recorded = untrained(0, task=registry.task("second_looks:judged=true", test_size=1))

    def read(self, trajectories, messages):
        self.heard += [m.text for row in messages for m in row]
        return self.recorded.read(trajectories, messages)

    def extend(self, trajectories, sampling, rng):
        return self.recorded.write(trajectories, [self._said(t) for t in trajectories])

    def _said(self, t) -> str:
        if not t.replies:
            return "polite"
        first, second = t.problem.meta["shown"]
        return "polite + - [[A]]" if not self.by_length or len(first) > len(second) else "polite - + [[B]]"


def test_it_is_measured_in_both_orders():
    rows = [ask("We need corn.", None, chosen="we need corn please", rejected="corn")] * 3
    settings = {"form": FORM, "second": "Look.", "strict": False}
    longer, first = TwoTurns(by_length=True), TwoTurns(by_length=False)
    found = rethought_accuracy(**settings)(rows, Run(longer, max_new=16))
    assert (found["judged"], found["consistent"], found["unread"]) == (1.0, 1.0, 0.0)
    # "polite", and "polite + - [[A]]" in words, signs and brackets, each with its end
    assert found["first_tokens"] < found["second_tokens"]
    assert longer.heard.count("Look.") == 6
    found = rethought_accuracy(**settings)(rows, Run(first, max_new=16))
    assert (found["judged"], found["consistent"]) == (0.5, 0.0)
    assert rethought_accuracy(form=FORM, second="Look.")(rows, Run(first, max_new=16))["unread"] == 1.0
