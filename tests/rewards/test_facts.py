"""Facts that replies disagree on, looked up in passages."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab.core import Trajectory, Turn, ask
from rewardlab.methods.verifiers.rewardagent import supported_facts

PASSAGES = ["The farm needs corn.", "The ship needs rice.", "Ann was born in Oslo in 1901."]


def reply(text: str, prompt: str = "What does the farm need?", **meta) -> Trajectory:
    return Trajectory(ask(prompt, **meta), (Turn("policy", np.zeros(1, np.int64), text=text),), "end")


def facts(*texts: str, prompt: str = "What does the farm need?", passages=PASSAGES, **settings) -> list[float | None]:
    group = [reply(text, prompt, passages=passages) for text in texts]
    return [s.value for s in supported_facts(**settings)([group])[0]]


def test_of_what_replies_disagree_on_the_evidence_decides():
    # they differ in corn and rice; the passage that fits the prompt has corn
    assert facts("It needs corn.", "It needs rice.") == [1.0, 0.0]
    # 1901 is in the evidence for a question about Ann, 1902 in no passage at all: no claim that could be checked
    assert facts("In 1901.", "In 1902.", "In Oslo, 1901.", prompt="When was Ann born?") == [1.0, 0.5, 1.0]
    # one of two claims is borne out
    assert facts("Corn and rice.", "Nothing.") == [0.5, 0.5]


def test_words_that_all_passages_share_are_no_claims():
    few = ["The farm needs corn.", "The ship needs rice."]
    assert facts("The corn, by the way.", "Send corn.", passages=few) == [0.5, 0.5]
    # of one passage alone, every word may be a claim
    assert facts("The corn.", "Rice.", passages=few[:1]) == [1.0, 0.5]


def test_replies_that_agree_give_nothing_to_check_and_so_does_one_alone():
    assert facts("It needs rice.", "it needs rice") == [0.5, 0.5]
    assert facts("It needs rice.") == [0.5]


@pytest.mark.parametrize("passages", [None, [], [1, 2]])
def test_without_passages_there_is_no_verdict(passages):
    assert facts("corn", "rice", passages=passages) == [None, None]
