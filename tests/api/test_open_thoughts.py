"""What is said of recorded replies where the chat template opens the thoughts of each."""

from __future__ import annotations

import copy

import pytest

from rewardlab.api.open_thoughts import tell_open_thoughts
from rewardlab.core import Message, Problem
from rewardlab.models.embedded import untrained

SAID = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant: "
OPENS, SWITCHED = SAID + "<think>\n{% endif %}", SAID + "{% if enable_thinking is not false %}<think>\n{% endif %}{% endif %}"
THOUGHT = "<think>\nHm.\n</think>\n\n4"


def told(capsys, template: str, *replies) -> str:
    policy = untrained()
    policy.tokenizer = copy.deepcopy(policy.tokenizer)
    policy.tokenizer.chat_template = template
    tell_open_thoughts(policy, [Problem((Message("user", "?"),), None, {"solution": reply}) for reply in replies], ["solution"])
    return capsys.readouterr().err


def test_replies_that_open_them_again_or_never_close_them_are_counted(capsys):
    said = told(capsys, OPENS, THOUGHT, "4", [THOUGHT, "<think> of 5", "5"])
    assert (
        "begins each reply with <think>; of the 4 recorded replies 2 begin with it too, which is left out of them; 2 never" in said
    )
    assert "--chat-template-kwargs" not in said


def test_a_template_that_has_a_switch_is_named(capsys):
    assert """(replies without thoughts: --chat-template-kwargs '{"enable_thinking": false}')""" in told(capsys, SWITCHED, "4")


@pytest.mark.parametrize(("template", "reply"), [(OPENS, "Hm.</think>4"), (SAID + "{% endif %}", "4"), (None, "4")])
def test_nothing_is_said_where_nothing_is_wrong(capsys, template, reply):
    assert told(capsys, template, reply) == ""
