"""The tokens that a reward model scores, against those that a policy reads and writes in training."""

from __future__ import annotations

import copy

import pytest

from rewardlab.core import Message, Problem, Trajectory
from rewardlab.models.conversations import as_trained, by_template
from rewardlab.models.embedded import untrained
from rewardlab.policies.text import TextPolicy
from rewardlab.prm.head import chat_prompt

PROMPT, QUESTION = (Message("system", "Be short."), Message("user", "What is 2 + 2?")), (Message("user", "Is it so?"),)


def policy_of(template: bool) -> TextPolicy:
    words = copy.deepcopy(untrained().tokenizer)
    if not template:
        words.chat_template = None
        # a token that reaches from the end of a prompt into a reply
        words.add_tokens(["\n4"])
    return TextPolicy(words)


# as Gemma's, which knows no system, and with thoughts that are opened already, as DeepSeek-R1's
GEMMA = """{% for m in messages %}{% if m.role == "system" %}{{ raise_exception("System role not supported") }}{% endif %}[{{ m.role }}] {{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}[model] <think>
{% endif %}"""  # noqa: E501


@pytest.mark.parametrize("reply", ["4", "<think>\nHm.\n</think>\n\n4"])
def test_of_a_template_that_refuses_or_opens_something_too(reply):
    policy = policy_of(True)
    policy.tokenizer.chat_template = GEMMA
    (begun,) = policy.read([Trajectory(Problem(PROMPT))], [PROMPT])
    (row,) = policy.write([begun], [reply])
    assert as_trained(policy.tokenizer, PROMPT, reply) == row.ids.tolist()
    assert policy.tokenizer.decode(row.ids).count("<think>") == 1
    # and so do scorers of steps
    assert chat_prompt(policy.tokenizer, PROMPT) == begun.ids.tolist()


@pytest.mark.parametrize("after", [(), QUESTION])
@pytest.mark.parametrize("template", [True, False])
@pytest.mark.parametrize("reply", ["4", "Four, I think.\n", ""])
def test_a_reward_model_reads_the_tokens_of_training(reply, template, after):
    policy = policy_of(template)
    rows = policy.write(policy.read([Trajectory(Problem(PROMPT))], [PROMPT]), [reply])
    (row,) = policy.read(rows, [after]) if after else rows
    assert as_trained(policy.tokenizer, PROMPT, reply, after) == row.ids.tolist()


def test_the_whole_by_the_chat_template_goes_on_to_the_next_reply_after_a_question():
    words = untrained().tokenizer
    asked = "<|im_start|>user\nHm?<|im_end|>\n<|im_start|>assistant\nYes.<|im_end|>\n"
    prompt = [Message("user", "Hm?")]
    assert words.decode(by_template(words, prompt, "Yes.")) == asked
    more = "<|im_start|>user\nIs it so?<|im_end|>\n<|im_start|>assistant\n"
    assert words.decode(by_template(words, prompt, "Yes.", QUESTION)) == asked + more


def test_without_a_template_the_texts_are_lines():
    words = policy_of(template=False).tokenizer
    assert words.decode(by_template(words, PROMPT, "5")) == "Be short.\nWhat is 2 + 2?\n5"
