"""Symptoms of episodes: calls and searches that fail, or are never made, and episodes that do not come to their end."""

from __future__ import annotations

from rewardlab.report.finding import Curves, Finding

FAILED = 0.25  # of the replies that call, or of searches: more is no slip, and the policy learns from errors
UNUSED = 0.02  # calls per episode: below that the tools are as good as not there
OUT_OF_CONTEXT = 0.1  # of episodes: each was stopped by the length of what it read
OUT_OF_TURNS = 0.5  # of episodes: whoever loses a game may use up its turns, but most should come to an end


def failing(curves: Curves) -> Finding | None:
    """Calls or searches of which an error was told."""
    calls, searches = curves.late("failed_calls"), curves.late("failed_searches")
    if searches is not None and searches > FAILED:
        text = f"{searches:.0%} of the last quarter's searches failed: the policy was told so, and learns from that."
        return Finding("failing searches", text, "see whether the search engine is running, and what it says (rollouts)")
    if calls is None or calls <= FAILED or not curves.late("calls"):
        return None
    text = f"{calls:.0%} of the last quarter's replies that call were told an error."
    remedy = (
        "read the errors in the rollouts: if arguments are wrong, say more in the tool's docstring, or imitate right calls first "
        "(sft); if the tool raises or takes too long, mend it"
    )
    return Finding("failing calls", text, remedy)


def unused(curves: Curves) -> Finding | None:
    """Tools that the policy may call, and does not."""
    calls = curves.late("calls")
    if calls is None or calls > UNUSED:
        return None
    text = f"The policy called its tools in {calls:.2g} replies of an episode in the last quarter: what is learnt is to do without."
    remedy = (
        "see in the rollouts whether it tries to call in a form that is not read; otherwise say in the prompt when to call, "
        "imitate episodes with calls first (sft), or give problems that it cannot solve alone"
    )
    return Finding("unused tools", text, remedy)


def unended(curves: Curves) -> Finding | None:
    """Episodes that were stopped, since the context was full or no turn was left."""
    context, turns = curves.late("out_of_context") or 0.0, curves.late("out_of_turns") or 0.0
    if context > OUT_OF_CONTEXT:
        text = f"{context:.0%} of the last quarter's episodes were stopped since the model's context was full."
        remedy = (
            "shorten what is answered (split the documents of a corpus into passages; --env \"functions(tools=('FILE.py:NAME',), "
            'shown=1000)"), lower --turns or --max-new, or take a model with a longer context'
        )
        return Finding("context used up", text, remedy)
    if turns > OUT_OF_TURNS:
        text = f"{turns:.0%} of the last quarter's episodes were stopped since no turn was left, and were judged unfinished."
        return Finding("turns used up", text, "raise --turns, or say in the prompt how an episode is ended")
    return None
