"""Whether a rationale leads to the option that is chosen, and goes into all that it should."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Trajectory, Turn, ask

OPTIONS = ["York", "New York", "Bath"]


def value(text: str, part: str = "rationale_agrees", **meta) -> float | None:
    problem = ask("Which?", "A", **{"options": OPTIONS} | meta)
    reply = Trajectory(problem, (Turn("policy", np.zeros(1, np.int64), text=text),), "end")
    return registry.part("reward", part)([[reply]])[0][0].value


@pytest.mark.parametrize(
    ("text", "agrees"),
    [
        ("Bath is far, so York.\nAnswer: A", 1),
        ("So New York.\nAnswer: B", 1),
        ("So New York.\nAnswer: A", 0),
        ("York, but Bath.\nAnswer: A", 0),
        ("It must be option B.\nAnswer: B", 1),
        ("(B) is wrong, so (C).\nAnswer: Bath", 1),
        ("So Yorkshire.\nAnswer: A", 0),
        ("Answer: A", 0),
        ("So York.\nAnswer: A or B", 0),
        ("No idea.", 0),
        ("<think>So Bath.</think>\nYork was an option.\nAnswer: C", 1),
        ("", 0),
    ],
)
def test_the_option_named_last_is_the_one_that_is_chosen(text, agrees):
    assert value(text) == agrees


def test_options_by_letter_and_problems_without_any():
    assert value("So Bath.\nAnswer: B", options={"A": "York", "B": "Bath"}) == 1
    assert value("So Bath.\nAnswer: C", options=None) is None
    assert value("So Bath.\nAnswer: C", options=["one"]) is None
    assert value("So Bath.\nAnswer: C", options=7) is None


def test_the_share_of_what_should_be_mentioned():
    required = {"required": ["fever", "Stiff neck", "rash"]}
    assert value("- FEVER: x\nstiff neck\nAnswer: A, for the rash", "rationale_coverage", **required) == pytest.approx(2 / 3)
    assert value("feverish rashes\nAnswer: A", "rationale_coverage", **required) == 0
    assert value("fever, stiff neck, rash\nAnswer: A", "rationale_coverage", **required) == 1
    assert value("fever", "rationale_coverage", required=[]) is None
    assert value("fever", "rationale_coverage") is None
    assert value("fever", "rationale_coverage", required=["fever", 3]) is None
