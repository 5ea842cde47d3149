"""Functions in chats: what the policy is told of them, how its calls are told, and how a conversation with results goes on."""

import json
import urllib.request

import numpy as np
import pytest
from listening import listening, post

from rewardlab.core import Message, Problem, Trajectory, Turn
from rewardlab.envs.tool_messages import answered, told_of
from rewardlab.models.embedded import tokenizer
from rewardlab.models.load import load_policy
from rewardlab.servers.generator import Generator
from rewardlab.servers.limits import Limits
from rewardlab.servers.policy import PolicyServer
from tests.helpers.checkpoints import checkpoint

SCHEMA = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"]},
        "return": {"type": "integer"},
    },
}
ASKED = {"role": "user", "content": "2 + 2?"}
CALL = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 2}}</tool_call>'


class Saying:
    """A policy that is made to write `says`; `read` are the prompts that it was given."""

    def __init__(self, folder):
        checkpoint(folder, tokenizer(), max_position_embeddings=4096)
        self.policy, self.says, self.read = load_policy(str(folder), "cpu"), "", []
        self.policy.extend = self.extend

    def extend(self, rows, sampling, rng):
        self.read += [self.policy.decode(row.ids) for row in rows]
        return [self._longer(row, sampling.max_new) for row in rows]

    def _longer(self, row, most):
        """A streamed reply is asked for in pieces."""
        ids = [*self.policy.tokenizer(self.says, add_special_tokens=False)["input_ids"], min(self.policy.ends)]
        written = sum(len(turn.ids) for turn in row.turns if turn.author)
        left = ids[written:]
        zeros, new = np.zeros(len(left[:most]), np.float32), np.asarray(left[:most])
        return row.plus(Turn("policy", new, zeros, zeros, text=self.policy.decode(new)), "end" if len(left) <= most else "length")

    def prompt(self, *messages):
        """How the policy reads these, as in training."""
        return self.policy.decode(self.policy.read([Trajectory(Problem(messages))], [messages])[0].ids)


@pytest.fixture(scope="module")
def saying(tmp_path_factory):
    return Saying(tmp_path_factory.mktemp("models") / "small")


@pytest.fixture(scope="module")
def url(saying):
    generator = Generator(saying.policy, most=8)
    with listening(PolicyServer(generator, "small", Limits(), most_new=200).app()) as url:
        yield f"{url}/v1/chat/completions"
    generator.close()


def chat(url, messages=(ASKED,), **more):
    return post(url, {"model": "small", "messages": list(messages), "max_tokens": 150, "tools": [SCHEMA], **more})


def choice(url, *given, **more):
    return chat(url, *given, **more).document["choices"][0]


def test_the_policy_is_told_of_functions_as_in_training_and_its_calls_are_told(url, saying):
    saying.says = f"I will add them.\n{CALL}\n{CALL.replace('2}', '3}')}"
    found = choice(url)
    assert saying.read[-1] == saying.prompt(told_of([SCHEMA]), Message("user", "2 + 2?"))
    assert (found["finish_reason"], found["message"]["content"]) == ("tool_calls", "I will add them.")
    calls = found["message"]["tool_calls"]
    assert [json.loads(c["function"]["arguments"]) for c in calls] == [{"a": 2, "b": 2}, {"a": 2, "b": 3}]
    assert {(c["type"], c["function"]["name"]) for c in calls} == {("function", "add")}
    assert len({c["id"] for c in calls}) == 2


def test_a_conversation_goes_on_with_what_was_written_and_all_results_of_a_reply(url, saying):
    saying.says = f"{CALL}\n{CALL}"
    called = choice(url)["message"]
    results = [{"role": "tool", "tool_call_id": c["id"], "content": x} for c, x in zip(called["tool_calls"], "45", strict=True)]
    wrote, saying.says = saying.says, "Answer: 4"
    found = choice(url, [ASKED, called, *results])
    assert (found["finish_reason"], found["message"]["content"]) == ("stop", "Answer: 4")
    before = (told_of([SCHEMA]), Message("user", "2 + 2?"))
    assert saying.read[-1] == saying.prompt(*before, Message("assistant", wrote), answered(["4", "5"]))
    # calls of another server
    call = {"id": "x", "function": {"name": "add", "arguments": '{"a": 2}'}}
    other = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert choice(url, [ASKED, other, results[0]])["message"]["content"] == "Answer: 4"
    written = '<tool_call>\n{"name": "add", "arguments": {"a": 2}}\n</tool_call>'
    assert saying.read[-1] == saying.prompt(*before, Message("assistant", written), answered(["4"]))


@pytest.mark.parametrize(
    "says", ["4", "<tool_call>{no JSON}</tool_call>", f"<think>{CALL}</think>4"], ids=["none", "unread", "thought"]
)
def test_a_reply_without_a_call_that_can_be_read_is_a_text(url, saying, says):
    saying.says = says
    found = choice(url)
    assert (found["finish_reason"], found["message"]["content"]) == ("stop", says)
    assert "tool_calls" not in found["message"]


def test_a_reply_that_was_cut_off_calls_nothing(url, saying):
    saying.says = f"{CALL} and more"
    found = choice(url, max_tokens=len(saying.policy.tokenizer(CALL, add_special_tokens=False)["input_ids"]))
    assert (found["finish_reason"], found["message"]["content"]) == ("length", CALL)


def test_without_a_choice_of_functions_none_are_told_and_none_are_called(url, saying):
    saying.says = CALL
    found = choice(url, tool_choice="none")
    assert (found["finish_reason"], found["message"]["content"]) == ("stop", CALL)
    assert saying.read[-1] == saying.prompt(Message("user", "2 + 2?"))


@pytest.mark.parametrize(("says", "finish"), [(CALL, "tool_calls"), ("Answer: 4", "stop")])
def test_a_stream_with_functions_is_one_part(url, saying, says, finish):
    saying.says = says
    body = {"model": "small", "messages": [ASKED], "max_tokens": 150, "tools": [SCHEMA], "stream": True}
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        first, *rest = [line.removeprefix(b"data: ") for line in reply.read().split(b"\n\n") if line]
    (part,) = json.loads(first)["choices"]
    assert (rest, part["finish_reason"], part["delta"]["role"]) == ([b"[DONE]"], finish, "assistant")
    if finish == "tool_calls":
        assert [(c["index"], c["function"]["name"]) for c in part["delta"]["tool_calls"]] == [(0, "add")]
    else:
        assert part["delta"]["content"] == says


@pytest.mark.parametrize(
    ("more", "param", "says"),
    [
        ({"tools": [{"type": "function"}]}, "tools", "tools.0.function"),
        ({"tools": [{"type": "web_search"}]}, "tools", "function"),
        ({"tools": [{**SCHEMA, "function": {"name": ""}}]}, "tools", "name"),
        ({"tool_choice": "required"}, "tool_choice", "'none' or 'auto'"),
        ({"tool_choice": {"type": "function", "function": {"name": "add"}}}, "tool_choice", "'none' or 'auto'"),
        ({"messages": [ASKED, {"role": "assistant", "tool_calls": [{"id": "x"}]}]}, "messages", "function"),
        ({"messages": [ASKED, {"role": "assistant", "function_call": {"name": "f"}}]}, "messages", "tool_calls"),
    ],
)
def test_what_is_no_function_and_no_call_is_refused_by_its_place(url, more, param, says):
    answer = chat(url, **more)
    assert (answer.status, answer.document["error"]["param"]) == (400, param)
    assert says in answer.document["error"]["message"]
