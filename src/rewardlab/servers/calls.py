"""Functions in chats: told to the policy as in training, its calls read from replies, results given back."""

from __future__ import annotations

import json
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rewardlab.core import Message
from rewardlab.envs.tool_messages import answered, calls_of, told_of
from rewardlab.verifiers.calls.calls import Call, Malformed, tools_from

if TYPE_CHECKING:
    from rewardlab.servers.asked import Said

MARKS = ("<tool_call>", "[TOOL_CALLS]", "<|python_tag|>", "<function=")
"""What calls begin with in replies: what a reply says before is its content."""
KEPT = 10_000


class Calls:
    """The replies that called, by the ids that their calls were told by: a conversation that goes on holds what was written."""

    def __init__(self) -> None:
        self._replies: OrderedDict[str, str] = OrderedDict()

    def told(self, reply: str, schemas: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        """The message of a reply that calls, with its tool_calls; None where it makes no call, or none that can be read."""
        tools = tools_from(schemas)
        found = calls_of(reply, tools)
        if found is None or isinstance(found, Malformed):
            return None
        try:
            calls = [_told(call.bound(tools, defaults=False) if call.positional else call) for call in found]
        except Malformed:
            return None
        self._replies |= {call["id"]: reply for call in calls}
        while len(self._replies) > KEPT:
            self._replies.popitem(last=False)
        begin = min((at for mark in MARKS if (at := reply.find(mark)) >= 0), default=0)
        return {"role": "assistant", "content": reply[:begin].strip() or None, "refusal": None, "tool_calls": calls}

    def messages(self, said: Sequence[Said], schemas: Sequence[Mapping[str, Any]]) -> list[Message]:
        """A conversation as the policy reads it. Results that follow one another are those of one reply."""
        found = [told_of(schemas)] if schemas else []
        for m in said:
            if m.role == "tool" and found and found[-1].role == "tool":
                found[-1] = answered((*found[-1].results, m.text))
            elif m.role == "tool":
                found.append(answered([m.text]))
            else:
                found.append(Message("system" if m.role == "developer" else m.role, self._text(m)))
        return found

    def _text(self, said: Said) -> str:
        """What an assistant wrote. Of calls that were not told here: in the form of Hermes, which prompts in words name."""
        if not said.tool_calls:
            return said.text
        known = self._replies.get(said.tool_calls[0].id)
        if known is not None:
            return known
        calls = [f'<tool_call>\n{{"name": {json.dumps(c.function.name)}, "arguments": {c.function.arguments}}}\n</tool_call>'
                 for c in said.tool_calls]  # fmt: skip
        return "\n".join(filter(None, [said.text, *calls]))


def _told(call: Call) -> dict[str, Any]:
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    return {"id": f"call_{uuid.uuid4().hex[:24]}", "type": "function", "function": {"name": call.name, "arguments": arguments}}
