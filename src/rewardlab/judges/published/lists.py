"""Published judges of any number of replies: a score for each, read from one judgement."""

from __future__ import annotations

import json
import math
import re

from rewardlab.judges.forms import Form

PRINCIPLE = "Prefer the response that is right, does what was asked, and is clear."

# every repetition in a pattern is bounded, and no two of them can take the same characters: a judgement may be any text
_BOXED = re.compile(r"\\boxed\{([\d.,\s]{1,400})\}")
_NUMBER = re.compile(r"\d{1,3}(?:\.\d{1,3})?")


def boxed_scores(text: str, shown: int) -> tuple[float, ...] | None:
    r"""The last \boxed{7, 3} of a judgement; None where it has not one number from 1 to 10 for each reply."""
    found = _BOXED.findall(text)
    parts = [part.strip() for part in found[-1].split(",")] if found else []
    if len(parts) != shown or not all(_NUMBER.fullmatch(part) and 1 <= float(part) <= 10 for part in parts):
        return None
    return tuple(map(float, parts))


def ranked_scores(text: str, shown: int) -> tuple[float, ...] | None:
    """The scores from 1 to 5 of {"scores": {"model-1": 2, ...}, "best-to-worst": [...]}, the last such object after the thinking.

    Its order parts replies of equal scores by less than any difference of scores. None where a reply has no score.
    """
    values = [x for x in given_scores(text, shown) if x is not None and 1 <= x <= 5]
    if len(values) < shown:
        return None
    names = [f"model-{i}" for i in range(1, shown + 1)]
    order = (_last_object(text.rpartition("</think>")[2]) or {}).get("best-to-worst")
    listed = list(map(str, order)) if isinstance(order, list) else []
    places = {name: k for k, name in enumerate(listed)} if sorted(listed) == sorted(names) else {}
    return tuple(x - 0.1 * places.get(name, 0) / shown for name, x in zip(names, values, strict=True))


def given_scores(text: str, shown: int) -> list[float | None]:
    """The scores of that object as they are, of each reply; None of one without a number."""
    scores = (_last_object(text.rpartition("</think>")[2]) or {}).get("scores")
    known = scores if isinstance(scores, dict) else {}
    return [_number(known.get(f"model-{i}")) for i in range(1, shown + 1)]


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _last_object(text: str) -> dict[str, object] | None:
    """The last JSON object with scores in it: from the last place where they are named, back to the brace before it."""
    at = text.rfind("scores")
    start = text.rfind("{", 0, at) if at > 0 else -1
    if start < 0:
        return None
    try:
        said, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


_DEEPSEEK_GRM = r"""Score the responses of an Assistant by criteria. Below are the context of a conversation, of which the last turn
is the User's query, and responses to it. Begin from the general criteria; then state further criteria that this query calls for,
with the weight of each; and give each response one overall score by all of them.
A score is an integer from 1 to 10: 1 means that the response meets nothing of the criteria, 6 that it meets them in part, and 10
that it meets them fully. Analyse step by step before you score, and be as strict as you can.

#### Evaluation Criteria ####
1. Instruction adherence: 9-10 it follows all instructions; 6-8 most of them; 3-5 some, but not the main ones; 1-2 none.
2. Usefulness: 9-10 accurate and complete; 6-8 useful, with gaps or slips; 3-5 of little use or mostly wrong; 1-2 useless.
3. Detail: 9-10 everything that matters is there; 6-8 some details are missing; 3-5 too few; 1-2 hardly any.
4. Relevance: 9-10 all of it belongs to the question; 6-8 some of it does not; 3-5 much of it does not; 1-2 none does.

#### Conversation Context ####
{prompt}

#### Responses to be Scored ####
{replies}

#### Output Format Requirements ####
Write three parts:
Specific Criteria: <further criteria for this query, and the weight of each>.
Analysis: <a comparison of the responses by the criteria>.
Scores: <the overall score of each response in their order, separated by commas, e.g. \boxed{x, x} for two responses>."""
_REWARDANYTHING = """You judge the responses of models to a prompt by an evaluation principle. How well a response keeps to the
principle counts more than what people like in general; never approve of harmful content.

1. Read the principle, the prompt and all responses, and think briefly about how each stands to the principle.
2. Score each response: 5 it keeps to the principle wholly and is excellent; 4 with small limits; 3 in the main; 2 in part, with
gaps that matter; 1 hardly, or against it.
3. Sort the responses from best to worst, those of equal scores too.

Where the responses differ much, use the whole scale.
Output this JSON and nothing else:
{
  "scores": {"model-1": 2, "model-2": 4, ...},
  "best-to-worst": ["model-2", "model-1", ...]
}"""
LISTS = (
    Form(
        "deepseek_grm", "scores", _DEEPSEEK_GRM, listed=boxed_scores, top=10,
        each="[The Begin of Response {number}]\n{text}\n[The End of Response {number}]",
        source="after Liu et al. 2025, arXiv:2504.02495, the appendix on prompts by a copy; marks of replies (inferred)",
    ),
    Form(
        "rewardanything", "scores", '{"principle": {principle}, "prompt": {prompt}, "responses": {{replies}}}',
        listed=ranked_scores, top=5, system=_REWARDANYTHING,
        each='"model-{number}": {text}', between=", ", quoted=True, defaults={"principle": PRINCIPLE},
        source="after Yu et al. 2025, arXiv:2506.03637; zhuohaoyu/RewardAnything rewardanything/processing.py at 41bd116",
    ),
)  # fmt: skip
