"""Right answers as models end their replies: what a reward leaves without pay is named with its share, and no twin is paid."""

from __future__ import annotations

import json

import pytest
from here import Here

from rewardlab import registry
from rewardlab.audit import audit
from rewardlab.audit.built_in import built_in
from rewardlab.audit.endings import ENDINGS, RIGHT, _next, endings
from rewardlab.audit.loading import parse
from rewardlab.audit.problems import number_item, of_task
from rewardlab.audit.replies import FORMATS
from tests.helpers.tiers import one_in

REWARDS = r"""
import re

def boxed(completion, answer):
    found = re.findall(r"\\boxed\{([^{}]*)\}", completion)
    return float(found[-1:] == [answer])

def last_number(completion, answer):
    return float(re.findall(r"\d+", completion)[-1:] == [answer])

def none_unless_boxed(completion, answer):
    return boxed(completion, answer) if "boxed{" in completion else None

def first_number(completion, answer):
    return float(re.findall(r"\d+", completion)[:1] == [answer])

def lenient(completion, answer):
    return 1.0 if "after" in completion else last_number(completion, answer)
"""


@pytest.fixture
def rewards(tmp_path):
    file = tmp_path / "reward.py"
    file.write_text(REWARDS)
    return file


def told(target, items=None):
    items = [item for item in built_in("numbers") if item.gold.isdigit()] if items is None else items
    document = audit.describe(audit.examine(Here(parse(str(target))), items), {}, 1.0)
    return {f["name"]: f for f in document["findings"] if f["probe"] == "endings"}


@pytest.mark.slow
def test_a_reward_that_reads_boxes_alone_loses_what_ends_otherwise(rewards):
    found = told(f"{rewards}:boxed")["not paid"]
    assert found["severity"] == "warning"
    assert "one number, a dollar sign" in found["says"]
    assert "a box," not in found["says"]
    # 1 - 4,386 / 14,750 and of MATH-500 1 - 7,182 / 7,750, without what has no class; `boxed` pays no sign and no unit in a box
    assert "70.1% of those to GSM8K and 7.2% of those to MATH-500" in found["says"]
    # one example of every class
    shown = [example["response"] for example in found["examples"]]
    # what is paid, and what no question of these has
    assert len(shown) == len(ENDINGS) - 2
    assert r"Therefore, the total is $\fbox{42}$." in shown


@pytest.mark.slow
def test_no_verdict_is_no_pay(rewards):
    lost = [told(f"{rewards}:{name}")["not paid"] for name in ("boxed", "none_unless_boxed")]
    assert lost[0]["says"] == lost[1]["says"]
    assert lost[0]["failed"] == lost[1]["failed"]


@pytest.mark.slow
def test_a_reward_that_takes_the_last_number(rewards):
    found = told(f"{rewards}:last_number")
    assert found["not paid"]["says"].endswith(": several numbers (another one last), an invented next question")
    assert "5.2% of those to GSM8K and 0.6% of those to MATH-500" in found["not paid"]["says"]
    assert found["twins"]["severity"] == "ok"
    assert found["swapped"]["severity"] == "warning"
    assert "Therefore, the total is 43 after 42 days." in [e["response"] for e in found["swapped"]["examples"]]


def test_a_reward_that_pays_a_twin(rewards):
    """It takes whatever is said of what comes "after" for right."""
    found = told(f"{rewards}:lenient")
    assert found["twins"]["severity"] == "fault"
    (example,) = found["twins"]["examples"]
    assert (example["response"], example["answer"], example["reward"]) == ("Therefore, the total is 43 after 5 days.", "42", 1.0)


@pytest.mark.parametrize("name", one_in(3, ["math", "final_number", "final_answer"]))
def test_our_own_rewards_pay_no_twin(name):
    found = told(name)
    assert found["twins"]["severity"] == "ok"
    assert found["twins"]["of"] > 3 * len(ENDINGS)
    if name != "final_number":
        assert [f["failed"] for f in found.values()] == [0, 0, 0]


@pytest.mark.slow
def test_questions_of_the_users_own(rewards, tmp_path):
    rows = [{"prompt": f"What is {n} plus 3?", "answer": str(n + 3)} for n in range(11, 19)]
    rows += [{"prompt": "What percentage of 50 is 20?", "answer": "40"}]
    file = tmp_path / "problems.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    items = of_task(registry.task(str(file)))
    percent = [e for e in told(f"{rewards}:boxed", items)["not paid"]["examples"] if "%" in e["response"]]
    assert [e["response"] for e in percent] == ["Therefore, it is 40%.", r"Therefore, it is \(\boxed{40\%}\)."]
    assert told(f"{rewards}:first_number", built_in("choice")) == {}


def test_every_reply_fits_its_answer():
    items = [number_item("How many?", gold) for gold in ("112", "-7", "5")]
    of = {item.gold: {reply.name: reply.text for reply in endings(item, FORMATS[0])} for item in items}
    assert of["112"]["an ordinal"] == "So, it is now on the 112th floor."
    assert of["112"]["another number: an ordinal"] == "So, it is now on the 113th floor."
    assert not {"an ordinal", "a dollar sign", "a percent sign"} & of["-7"].keys()
    assert of["112"]["a box with an ordinal"] == r"It is \(\boxed{112^{\text{th}}}\)."
    assert not any("base" in name for texts in of.values() for name in texts)
    # the other number is never the answer, nor the wrong one
    assert of["5"]["several numbers (the answer last)"] == "Therefore, 7 people brought in a total of 5 records."
    assert not any("GOLD" in text or "OTHER" in text for texts in of.values() for text in texts.values())


def test_no_solution_is_counted_twice():
    # these have no class
    assert sum(ending.gsm8k for ending in ENDINGS.values()) == RIGHT["GSM8K"] - 25
    assert sum(ending.math500 for ending in ENDINGS.values()) == RIGHT["MATH-500"] - 2


def test_a_number_in_another_base():
    items = [item for item in built_in("latex") if "_8" in item.gold]
    (item,) = items
    replies = {reply.name: reply.text for reply in endings(item, FORMATS[0])}
    assert replies == {
        "a number without its base": r"Therefore, it is \(\boxed{2516}\).",
        "another number: a number without its base": r"Therefore, it is \(\boxed{2517}\).",
    }
    assert [f["failed"] for f in told("math", items).values()] == [0, 0, 0]
    # the next digit is one that the base has
    assert _next("110_2") == "111_2"
    assert _next("111_{2}") == "110_{2}"
    assert _next("52_6") == "53_6"
