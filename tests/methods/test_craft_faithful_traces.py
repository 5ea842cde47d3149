"""CRAFT: rules behind the form, and a judge of whether a trace agrees with itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.rewards.reward import reward
from rewardlab.text import traces
from rewardlab.text.traces import checks, cited, listed, section, well_formed
from rewardlab.text.words import words
from rewardlab.worlds.traces import Hop, write

DOCUMENTS = ["The friend of Ann is Bob.", "The boss of Ann is Dee.", "The boss of Bob is Cal.", "The friend of Eve is Dee."]
PLAN, CHAIN = ["friend of Ann", "boss of [Answer1]"], [Hop("Bob", 1), Hop("Cal", 3)]
RIGHT = write(PLAN, [1, 3], CHAIN, "Cal")
PROBLEM = ask("Who is the boss of the friend of Ann?", "Cal", documents=DOCUMENTS, supporting=[1, 3])


def row(text: str, problem=PROBLEM) -> Trajectory:
    logprobs = np.zeros(2, np.float32)
    return Trajectory(problem, (Turn("policy", np.zeros(2, np.int64), logprobs, logprobs, text),), "end")


def totals(*texts: str, problem=PROBLEM, **settings) -> list[float | None]:
    run = Run(policy=None, verify=registry.part("reward", "tagged_answer"))
    (scores,) = registry.build("craft_faithful_traces", settings).reward([[row(text, problem) for text in texts]], run)
    return [score.total for score in scores]


def test_rules_behind_the_form_and_the_judge_beside_them():
    wrong = write(PLAN, [1, 3], CHAIN, "Dee")
    outside = write(PLAN, [1], CHAIN, "Cal")
    invented = write(PLAN, [1, 3], [Hop("Eve", 1), Hop("Cal", 3)], "Cal")
    # form, answer, list and four checks: 4.   Dee is not in documents 1 and 3, but the last line says it: 1 + 0 + 1 + 3/4
    # half the list, and what is cited is not all in it: 1 + 1 + 1/2 + 3/4;   no document 1 says Eve: 3 + 3/4
    assert totals(RIGHT, wrong, outside, invented) == [4, 2.75, 3.25, 3.75]
    assert totals(RIGHT, wrong, invented, faith=0.0) == [3, 2, 3]
    assert totals(invented, faith=2.0) == [4.5]


def test_thinking_before_the_trace_is_not_of_it():
    thought = f"<think>\nThe form is <plan>...</plan><gold_docs>[2]</gold_docs><answer>...</answer>.\n</think>\n\n{RIGHT}"
    assert totals(thought, RIGHT) == [4, 4]


def test_a_broken_form_earns_what_the_judge_gives_alone():
    around = f"Sure! {RIGHT}"
    # the sections are there, so that the judge can read them, but the reply is not of the form
    assert totals(around, "Cal", "", RIGHT.replace("<answer>Cal</answer>", "")) == [1.0, 0.0, 0.0, 0.75]


@pytest.mark.parametrize(
    ("template", "tags", "most"), [("v2", ("plan",), 4), ("v3", ("gold_docs",), 3), ("v4", ("plan", "gold_docs"), 3)]
)
def test_a_template_without_a_section_neither_asks_for_it_nor_pays_for_it(template, tags, most):
    text = RIGHT
    for tag in tags:
        text = text.replace(f"<{tag}>{text.partition(f'<{tag}>')[2].partition(f'</{tag}>')[0]}</{tag}>", "").strip()
    assert totals(text, template=template) == [most]
    assert totals(RIGHT, template=template)[0] <= 1  # a section too many


def test_answers_alone_are_judged_by_the_rules():
    assert totals("<answer>Cal</answer>", "<answer>Dee</answer>", template="v5") == [2, 1]


def test_what_the_data_lacks_gives_no_verdict_and_not_zero():
    nothing = ask("Who?", "Cal")
    assert totals(RIGHT, "Cal", problem=nothing) == [None, None]
    assert totals(RIGHT, "Cal", problem=nothing, faith=0.0) == [None, 0]
    assert totals("<answer>Cal</answer>", problem=nothing, template="v5") == [2]


@pytest.mark.parametrize(
    ("supporting", "paid"), [(["1", 3.0], 3), ("[1, 3]", 3), (["Ann", "Bob"], None), ([1, None], None), ([], None)]
)
def test_the_numbers_of_the_documents_that_are_needed(supporting, paid):
    assert totals(RIGHT, problem=ask("Who?", "Cal", documents=DOCUMENTS, supporting=supporting), faith=0.0) == [paid]


def test_documents_are_read_once_however_often_they_are_cited(monkeypatch):
    read = []
    monkeypatch.setattr(traces, "words", lambda text: read.append(text) or words(text))
    checks(f"<reason>{'It says so in docs [1, 2, 3, 4]. ' * 50}</reason><answer>Cal</answer>", "v4", DOCUMENTS)
    assert [read.count(document) for document in DOCUMENTS] == [1] * 4


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        (RIGHT, set()),
        (write(PLAN, [1, 3], [Hop("Bob", None), Hop("Cal", None)], "Cal"), {"plan_reason", "receipt_reason", "evidence"}),
        (write(PLAN, [1, 3], CHAIN[:1], "Cal"), {"plan_reason", "evidence"}),
        (write(PLAN, [1, 3], [Hop("Dee", 2), Hop("Cal", 3)], "Cal"), {"plan_reason", "receipt_reason"}),
        (write(PLAN, [1, 3], [Hop("Zed", 1), Hop("Cal", 3)], "Cal"), {"evidence"}),
        (RIGHT.replace("Final: Therefore the answer is Cal", "Final: Therefore it is Bob"), {"reason_answer"}),
        ("", {"plan_reason", "receipt_reason", "reason_answer", "evidence"}),
        ("<plan><reason>" * 3000, {"plan_reason", "receipt_reason", "reason_answer", "evidence"}),
        (RIGHT + "doc [1" * 30_000, {"plan_reason", "receipt_reason", "reason_answer", "evidence"}),
    ],
)
def test_the_checks_of_consistency(text, failed):
    assert {name for name, passed in checks(text, "v1", DOCUMENTS).items() if not passed} == failed


def test_reasons_in_prose_are_judged_sentence_by_sentence():
    said = "<reason>The friend of Ann is Bob, by doc [1]. His boss is {} (doc [3]).</reason><answer>{}</answer>"
    assert all(checks(said.format("Cal", "Cal"), "v4", DOCUMENTS).values())
    assert checks(said.format("Dee", "Dee"), "v4", DOCUMENTS) == {"reason_answer": True, "evidence": False}


def test_reading():
    assert cited("doc [1] and docs [2, 3], Docs [4,5]; [9]") == {1, 2, 3, 4, 5}
    assert (listed("[1, 3]"), listed("[]"), listed("1, 3"), listed("[1, x]")) == ({1, 3}, set(), set(), set())
    assert (section("<a> x </a>", "a"), section("<a>x</a><a>y</a>", "a"), section("</a><a>", "a")) == ("x", None, None)
    assert well_formed("<reason>x</reason>\n<answer></answer>\n", "v4")
    assert not well_formed("<answer>x</answer><reason>x</reason>", "v4")
    assert not well_formed("<answer><b></answer>", "v5")


@reward
def all_the_same(trajectory):
    return 0.5


def test_a_judge_of_ones_own_and_the_credit():
    run = Run(policy=None, verify=registry.part("reward", "tagged_answer"))
    recipe = registry.build("craft_faithful_traces", {"judge": all_the_same()})
    group = [row(RIGHT), row(write(PLAN, [1, 3], CHAIN, "Dee"))]
    batch = collate([group], recipe.reward([group], run), torch.device("cpu"))
    assert batch.reward.sum(1).tolist() == [3.5, 2.5]
    # +-1/2 from the mean, over a deviation of 1/sqrt 2
    credit = recipe.credit(batch.reward, batch, run)
    assert credit[:, 0].tolist() == pytest.approx([0.5**0.5, -(0.5**0.5)], abs=1e-3)


@pytest.mark.slow
def test_both_traces_of_a_pair_are_right_and_by_the_rules_the_worse_is_never_worse():
    task = registry.task("traces", test_size=60)
    pairs = [totals(p.meta["chosen"], p.meta["rejected"], problem=p, faith=0.0) for p in task.test]
    assert {p.meta["fault"] for p in task.test} == {"invented", "outside", "leap", "bare", "skipped"}
    assert all(unfaithful == 3 and faithful in (3, 2.5) for faithful, unfaithful in pairs)
    judged = [totals(p.meta["solution"], p.meta["rejected"], problem=p) for p in task.test]
    # whoever plans nothing agrees with it: the judge's words cannot see that
    assert all((bad == 4) == (p.meta["fault"] == "skipped") and good == 4 for p, (good, bad) in zip(task.test, judged, strict=True))
