"""Think-RM: advantages from preferences, those of GRPO where there are scores; strengths, lengths; what is imitated."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.api import plan, train
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.credit.group import center, scale_by_std
from rewardlab.errors import RewardlabError
from rewardlab.judges.cases import Case, to_judge
from rewardlab.judges.named import form_of
from rewardlab.methods.judges.think_rm import advantages, preferred, right_strength, think_rm, won_against_start
from rewardlab.models.embedded import untrained
from rewardlab.policies.text import TextPolicy
from rewardlab.rollouts.judgements import accepted_judgements
from tests.helpers.rows import batch_of, outcome

PROBLEM = ask("Name a large number.", "7")
FORM = "{prompt}{answer}|{first}|{second}"


def group(*replies: str) -> list[Trajectory]:
    return [Trajectory(PROBLEM, (Turn("policy", np.zeros(1, np.int64), text=reply),), "end") for reply in replies]


class Judge:
    """A judge that says what `says` makes of two replies, once for each question; it keeps the questions."""

    context = 10_000

    def __init__(self, says):
        self.says, self.asked = says, []

    def read(self, trajectories, messages):
        return list(trajectories)

    def extend(self, trajectories, sampling, rng):
        self.asked += [t.problem.question for t in trajectories]
        texts = [self.says(*t.problem.question.split("|")[1:]) for t in trajectories]
        return [t.plus(Turn("policy", np.zeros(1, np.int64), text=x)) for t, x in zip(trajectories, texts, strict=True)]


def paid(judge: Judge, *replies: str, form: str = FORM, **settings) -> list[float]:
    run = Run(policy=None, models={"judge": judge}, max_new=8)
    ((*scores,),) = preferred(form=form, max_new=0, **settings)([group(*replies)], run)
    return [s.value for s in scores]


def larger(a: str, b: str) -> str:
    return "[[A]]" if int(a) > int(b) else "[[B]]"


# ---- advantages ----------------------------------------------------------------------------------------------------------


def test_with_scores_the_advantage_is_that_of_grpo():
    scores = [3.0, -1.0, 0.5, 0.5]
    d = np.subtract.outer(scores, scores)
    batch = batch_of([[("rd", {"r": outcome(x)}) for x in scores]])
    usual = (center() >> scale_by_std(eps=1e-12))(batch.reward, batch, Run(policy=None))
    assert advantages(d, eps=1e-12) == pytest.approx(usual[:, 1].tolist(), abs=1e-6)


def test_by_hand():
    """Three replies, of which the first wins twice, and the second wins against the third: the sums of d are 2, 0, -2.

    sum d^2 = 6, over 2 * 3 * 2 = 12: 1/2.   A = (2/3, 0, -2/3) / sqrt(1/2) = (.9428, 0, -.9428)
    """
    d = np.array([[0, 1, 1], [-1, 0, 1], [-1, -1, 0]])
    assert advantages(d, eps=1e-12) == pytest.approx([0.94281, 0, -0.94281], abs=1e-4)


def test_preferences_in_a_circle_and_replies_alone_teach_nothing():
    assert advantages(np.array([[0, 1, -1], [-1, 0, 1], [1, -1, 0]]), 1e-6) == pytest.approx([0, 0, 0])
    assert advantages(np.zeros((1, 1)), 1e-6).tolist() == [0.0]
    assert advantages(np.zeros((3, 3)), 1e-6).tolist() == [0.0] * 3


def test_the_advantage_reaches_every_token_as_it_is():
    recipe = think_rm(judge="copy:policy")
    batch = batch_of([[("rdd", {"preferred": outcome(0.7)}), ("rd", {"preferred": outcome(-0.7)})]])
    credit = recipe.credit(batch.reward, batch, Run(policy=None))
    assert torch.allclose(credit, torch.tensor([[0, 0.7, 0.7], [0, -0.7, 0.0]]))


# ---- what is preferred ---------------------------------------------------------------------------------------------------


def test_each_pair_is_judged_once_and_the_same_text_never():
    judge = Judge(larger)
    values = paid(judge, "5", "9", "5", by_length=False)
    # the gold answer is not shown
    assert judge.asked == ["Name a large number.|5|9", "Name a large number.|9|5"]
    # d = (0, -3, 0), (3, 0, 3), (0, -3, 0): sums -3, 6, -3;  sum d^2 = 36 over 12: 3
    assert values == pytest.approx([-1 / 3**0.5, 2 / 3**0.5, -1 / 3**0.5], abs=1e-5)


def test_a_long_judgement_says_less():
    """Of three replies, 2 is thought about at length: d = 1/5 for a short verdict, 1/50 for long ones.

    d_12 = -.02, d_13 = -.2, d_23 = -.02 (larger numbers win):  sums -.22, 0, .22
    """

    def says(a: str, b: str) -> str:
        return ("" if "2" not in (a, b) else "." * 45) + larger(a, b)

    total = 2 * (0.02**2 + 0.2**2 + 0.02**2)
    scale = (total / 12 + 1e-6) ** 0.5
    assert paid(Judge(says), "1", "2", "3") == pytest.approx([-0.22 / 3 / scale, 0, 0.22 / 3 / scale], abs=1e-9)
    # where all lengths are the same, they do not matter but for eps
    assert paid(Judge(larger), "1", "2", eps=1e-12) == pytest.approx(paid(Judge(larger), "1", "2", by_length=False), abs=1e-4)


def test_what_cannot_be_read_counts_nothing_and_a_group_of_which_nothing_can_has_no_verdict():
    silent = Judge(lambda a, b: "Hm." if "3" in (a, b) else larger(a, b))
    first, second, third = paid(silent, "1", "2", "3")
    assert (second > 0, first, third) == (True, -second, 0.0)
    assert paid(Judge(lambda a, b: "Hm."), "1", "2") == [None, None]


def test_strengths_of_a_published_form_count():
    """-2: the first is better by 2 of 3; d = 2 for the pair, whatever the length.  A = (2/2) / sqrt(8/4 + eps) = 1/sqrt 2."""
    graded = Judge(lambda *_: "x <answer>-2</answer>")
    assert paid(graded, "1", "2", form="think_rm_graded", by_length=False) == pytest.approx([0.5**0.5, -(0.5**0.5)], abs=1e-5)


# ---- the judge -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "strength", "said", "value"),
    [
        (True, 2, "-2", 1.0),
        (True, 2, "-3", 0.5),
        (True, 2, "2", 0.0),
        (False, 2, "2", 1.0),
        (False, 1, "3", 0.5),
        (True, None, "-1", 1.0),
        (True, None, "1", 0.0),
        (True, 2, "much", 0.0),
    ],
)
def test_exact_strengths_are_paid_whole_and_sides_half(first, strength, said, value):
    case = Case(("Mars", "None"), (1.0, 0.0)).at([0, 1] if first else [1, 0])
    asked = to_judge(ask("Name a planet.", None, strength=strength), case, form_of("think_rm_graded"))
    row = Trajectory(asked, (Turn("policy", np.zeros(1, np.int64), text=f"Well. <answer>{said}</answer>"),), "end")
    assert right_strength(form="think_rm_graded")([[row]], Run(policy=None))[0][0].value == value


class Writer:
    """Writes these judgements in turn."""

    context, check_fits = 1000, TextPolicy.check_fits

    def __init__(self, *texts: str):
        self.texts, self.recorded = texts, untrained(0, task=registry.task("duels:judged=true", test_size=1))

    def read(self, trajectories, messages):
        return self.recorded.read(trajectories, messages)

    def write(self, trajectories, texts):
        return self.recorded.write(trajectories, texts)

    def extend(self, trajectories, sampling, rng):
        return self.write(trajectories, list(self.texts))


def test_the_longest_right_judgement_is_imitated():
    settings = think_rm(form="A: {first} B: {second}").loop.settings
    row = to_judge(PROBLEM, Case(("7", "3"), (1.0, 0.0)), form_of(settings["form"]))
    writer = Writer("A + [[A]]", "A + B - [[A]]", "A + B - A + B - [[B]]", "[[A]]")
    kept = accepted_judgements(**{k: settings[k] for k in ("by", "form", "n", "keep")})([row], Run(writer, max_new=8))
    assert [t.reply for (t,) in kept] == ["A + B - [[A]]"]


# ---- the recipes ---------------------------------------------------------------------------------------------------------


def test_a_judge_makes_it_train_a_policy():
    local, served = think_rm(judge="hf:somewhere"), think_rm(judge="openai:http://localhost:1/v1#judge")
    assert [(x.name, x.init, x.every) for x in local.also] == [("judge", "hf:somewhere", 0)]
    assert local.reward.settings["model"] == "judge"
    assert (served.also, served.reward.settings["model"]) == ((), "openai:http://localhost:1/v1#judge")
    assert local.loop is None
    assert think_rm().loop.settings["first"] == 20


def test_the_policy_is_measured_against_its_start_in_both_orders():
    """A judge that always prefers what stands first says nothing of the policy: 1/2."""

    class Says(Judge):
        def read(self, trajectories, messages):
            return list(trajectories)

    mine, start = Says(lambda *_: ""), Says(lambda *_: "")
    mine.extend = lambda rows, *_: [t.plus(Turn("policy", np.zeros(1, np.int64), text="9")) for t in rows]
    start.extend = lambda rows, *_: [t.plus(Turn("policy", np.zeros(1, np.int64), text="1")) for t in rows]

    def won(judge: Judge) -> float:
        run = Run(mine, reference=start, models={"judge": judge}, max_new=8)
        return won_against_start(form=FORM, max_new=0)([PROBLEM, PROBLEM], run)["won"]

    assert won(Judge(larger)) == 1.0
    assert won(Judge(lambda a, b: "[[A]]")) == 0.5
    assert won(Judge(lambda a, b: larger(b, a))) == 0.0


def test_a_policy_learns_from_preferences_on_plain_prompts(tmp_path):
    """And a judge needs pairs, which are asked for before anything is loaded."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"Start with {i}."}) + "\n" for i in range(8)))
    task = registry.task(str(rows))
    policy = untrained(0, task=registry.task("arithmetic", test_size=1))
    recipe = think_rm(judge="copy:policy", form="{prompt} {first} {second}", n=3, problems=2, max_judgement=4)
    short = {"steps": 1, "eval_problems": 2, "max_new": 4, "device": "cpu", "patience": 0}
    # an untrained judge says nothing that can be read: a run must not go on by it in silence
    with pytest.raises(RewardlabError, match="6 of 6 rollouts got no verdict at step 1: no mark that can be read"):
        train(recipe, policy, task, out=tmp_path / "none", **short)
    result = train(recipe, policy, task, out=tmp_path / "run", max_missing=1.0, **short)
    assert (result.summary["after"]["won"], result.summary["after"]["judge_no_verdict"]) == (0.5, 1.0)
    with pytest.raises(RewardlabError, match=r"(?s)chosen:.*rejected:"):
        plan(registry.build("think_rm"), task=task)


def test_eight_judgements_teach_a_judge_and_four_replies_are_compared():
    assert think_rm().rollout.of[0].settings["n"] == 8
    assert think_rm(judge="copy:policy").rollout.settings["n"] == 4
    assert think_rm(judge="copy:policy", n=6).rollout.settings["n"] == 6
