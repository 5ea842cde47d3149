"""Reasoning and answer between tags."""

from __future__ import annotations

from .rationale import rationale


def in_tags(reply: str) -> str | None:
    """A reply as <think>rationale</think><answer>the rest</answer>, unless it has such tags; None where one of the two is empty."""
    if "</think>" in reply:
        return reply
    thought = rationale(reply)
    answer = reply.strip().removeprefix(thought).strip()
    return f"<think>{thought}</think><answer>{answer}</answer>" if thought and answer else None
