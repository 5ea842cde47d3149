"""The harness of agents that are the policy, for verifiers >= 0.4: a chat with tools, in this process.

The harnesses that come with verifiers are scripts, which `uv` runs in a process of their own, with packages that it installs.
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import Any

import httpx
from verifiers.v1.configs.harness import HarnessConfig
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.errors import HarnessError
from verifiers.v1.harness import Harness
from verifiers.v1.harnesses.utils.mcp import call_mcp, connect_mcp
from verifiers.v1.runtimes import ProgramResult

__all__ = ["Chat"]


class ChatConfig(HarnessConfig):
    """It has no settings of its own."""


class Chat(Harness[ChatConfig]):
    """Asks the model, calls the tools that it names, and asks again, until it names none."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_MCP = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(  # type: ignore[override]
        self, ctx: Any, trace: Any, runtime: Any, endpoint: str, secret: str, mcp_urls: dict[str, str], data: Any
    ) -> Any:
        """One segment: to the first reply that calls no tool."""
        system, prompt = self.resolve_prompt(data)
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            messages.append({"role": "user", "content": prompt})
        else:
            messages += [message_to_wire(message) for message in prompt or ()]
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(httpx.AsyncClient(timeout=None))
            servers = {"mcpServers": {name: {"url": url} for name, url in mcp_urls.items()}}
            tools, dispatch, connections = await connect_mcp(servers, stack)
            body = {"model": ctx.model, **({"tools": tools} if tools else {})}
            while True:
                answer = await client.post(
                    f"{endpoint.rstrip('/')}/chat/completions", json={**body, "messages": messages},
                    headers={"Authorization": f"Bearer {secret}"},
                )  # fmt: skip
                if answer.status_code != 200:
                    # a turn that was refused, and the end of the context, end the run; what was said is judged
                    if trace.stop_condition is None and "context_length" not in answer.text:
                        raise HarnessError(f"the model answered {answer.status_code}: {answer.text[:500]}")
                    return ProgramResult(exit_code=0, stdout="", stderr="")
                message = answer.json()["choices"][0]["message"]
                messages.append(message)
                if not message.get("tool_calls"):
                    return ProgramResult(exit_code=0, stdout="", stderr="")
                for call in message["tool_calls"]:
                    content = await _called(call["function"], dispatch, connections)
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})


async def _called(function: dict[str, Any], dispatch: dict[str, Any], connections: dict[str, Any]) -> Any:
    """What a tool says, or why it cannot be called."""
    if function["name"] not in dispatch:
        return f"error: unknown tool {function['name']!r}"
    arguments = json.loads(function["arguments"] or "{}")
    return await call_mcp(connections, dispatch, function["name"], arguments)
