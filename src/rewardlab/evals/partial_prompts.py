"""Whether a model has seen problems before: the first part of each prompt, what it completes, and whether it still answers.

    completed: the greedy continuation begins with the rest of the prompt, word by word;    rouge_l: F1 of the two
    answered: the continuation holds the right answer, though the problem was not all there

Wu et al. 2025, arXiv:2507.10532: with 60% of a question of MATH-500, Qwen2.5-Math-7B completes 54.6% and answers 53.6%; of newer
questions none and 2%. Text is continued as it stands, without a chat template. (inferred): the cut is between words;
case, commas and quotes make no difference; a rest of fewer than five words is not counted, since who never saw it may guess it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardlab.core import Group, Problem, Run, Sampling, Scores, Trajectory, Turn, measure
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.settings.domain import NonNegativeInt, PositiveShare
from rewardlab.text.words import rouge_l, words

LEAST = 5
"""Words that are hidden at least where a completion is counted."""


_UNHEARD = dict.fromkeys(map(ord, ",;'\"\u2018\u2019\u201c\u201d"))


@dataclass(frozen=True)
class Completion:
    """What a model made of the first part of a prompt.

    text: how it went on.  completed, rouge_l: against the rest of the prompt; None where that is too short to tell.  answered:
    whether it holds the right answer; None without a verdict, or without an answer to compare with.  tokens: sampled.
    """

    text: str
    completed: bool | None
    rouge_l: float | None
    answered: bool | None
    tokens: int


def cut(text: str, shown: float) -> tuple[str, str]:
    """The first part of a text, about this share of its characters, and the rest, of whole words; ("", text) of one word alone."""
    text = text.strip()
    spaces = [i for i, sign in enumerate(text) if sign.isspace() and not text[i - 1].isspace()]
    if not spaces:
        # no spaces between words: Chinese, Japanese, Thai
        at = round(shown * len(text)) if len(words(text)) == 1 and len(text) > 4 * LEAST else 0
        return text[:at], text[at:]
    at = min(spaces, key=lambda i: (abs(i - shown * len(text)), i))
    return text[:at], text[at:].lstrip()


def compared(text: str, rest: str, least: int = LEAST) -> tuple[bool | None, float | None]:
    """Whether a continuation begins with the rest, whatever its case, spaces, commas and quotes; and ROUGE-L of the rest and as
    many words of it.

    (None, None) where the rest has fewer than `least` words.
    """
    wanted = words(rest)
    if len(wanted) < least and len(rest.split()) < least and len(rest) < 4 * least:
        return None, None
    said = words(text)[: len(wanted)]
    return _squeezed(text).startswith(_squeezed(rest)), rouge_l(said, wanted)


def _squeezed(text: str) -> str:
    return "".join(text.casefold().translate(_UNHEARD).split())


def completions(
    problems: Sequence[Problem], run: Run, judge: Callable[[list[Group]], Scores], shown: float, least: int = LEAST
) -> list[Completion]:
    """What the policy of a run makes of the first parts of prompts, greedily.  judge: says whether a continuation is right.

    Raises RewardlabError for a policy that does not continue text of its own tokens, such as a served one.
    """
    parts = [cut(p.question, shown) for p in problems]
    found = [Completion("", None, None, None, 0)] * len(problems)
    # a prompt of one word has no part that could be shown
    told = [i for i, (first, _) in enumerate(parts) if first]
    done = _continued(run, [problems[i] for i in told], [parts[i] for i in told])
    for i, t, (verdict,) in zip(told, done, judge([[t] for t in done]), strict=True):
        completed, similar = compared(t.reply, parts[i][1], least)
        right = None if t.problem.answer is None or verdict.value is None else verdict.value >= 1.0
        found[i] = Completion(t.reply, completed, similar, right, t.written)
    return found


def _continued(run: Run, problems: Sequence[Problem], parts: Sequence[tuple[str, str]]) -> list[Trajectory]:
    """The first parts with their greedy continuations, of as many tokens as are hidden and a reply may have."""
    policy: Any = run.policy
    if not hasattr(policy, "check_fits"):
        raise RewardlabError(
            f"{policy.name} cannot continue a text without a chat template: name a model whose weights are here, a folder or one "
            "of the hub"
        )
    if not problems:
        return []
    # with the token that begins a text, if there is such
    tokens = policy.tokenizer([first for first, _ in parts], add_special_tokens=True, verbose=False)["input_ids"]
    begun = [
        Trajectory(p).plus(Turn(None, _open(ids, policy), text=first))
        for p, (first, _), ids in zip(problems, parts, tokens, strict=True)
    ]
    most = max(policy.text_lengths([rest for _, rest in parts])) + run.max_new
    for t in begun:
        policy.check_fits(t, most)
    return policy.extend(begun, Sampling(most, temperature=0.0), run.rng("partial prompts"))


def _open(ids: list[int], policy: Any) -> np.ndarray:
    """The tokens of a text without the end that some tokenizers write after it."""
    return np.asarray(ids[:-1] if len(ids) > 1 and ids[-1] in policy.ends else ids, np.int64)


def summary(found: Sequence[Completion]) -> dict[str, float]:
    """Shares and means over those that tell, each share with its 95% interval; what none tells is left out."""
    told: dict[str, float] = {"n": float(len(found))}
    for name in ("completed", "answered"):
        values = [float(value) for one in found if (value := getattr(one, name)) is not None]
        if values:
            low, high = mean_interval(values)
            told |= {name: float(np.mean(values)), f"{name}_low": low, f"{name}_high": high, f"{name}_of": float(len(values))}
    similar = [one.rouge_l for one in found if one.rouge_l is not None]
    return told | ({"rouge_l": float(np.mean(similar))} if similar else {})


@measure
def partial_prompts(
    problems: Sequence[Problem], run: Run, *, shown: PositiveShare = 0.6, least: NonNegativeInt = LEAST
) -> dict[str, float]:
    """completed: share of prompts whose rest the policy writes word by word, with its 95% interval; rouge_l of the two; answered:
    share that it answers rightly all the same.  shown: share of a prompt that it sees.  least: hidden words, where one counts."""
    return summary(completions(problems, run, lambda groups: run.verify(groups, run), shown, least))
