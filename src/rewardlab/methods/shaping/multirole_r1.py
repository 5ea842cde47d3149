"""MultiRole-R1: besides the answer, reward diverse language and, optionally, the number of perspectives.

    r = (1 - w) [right] + w D (+ p perspectives),    D: the mean of eight measures of one reply;    then GRPO's advantage of r
    D: different words, their entropy, how sentence lengths vary, kinds of sentences, change from sentence to sentence,
       Yule's K, different pairs of words, entropy of function words;    perspectives = min(1, different roles / most)

What is right may depend on who is asked. A reward for one answer makes a policy see the question from one side; here a reply that
varies, which widens the search, earns more, right or wrong, so that a group that is all right or all wrong teaches too.

Wang et al. 2025, arXiv:2507.20187 (fourth version, read in a public copy; its code could not be): delta R_acc + (1 - delta) R_div,
eight measures of equal weight (appendix F), w = 0.1 (appendix B.2). (inferred): kinds of sentences are told by . ? !, Yule's K
becomes 1 / (1 + K / 100), the list of function words, and that a measure that is above 1 counts as 1. In the paper roles are not
paid: replies learn them in a first stage, SFT on chains of three roles with contrasting views, which a model writes without labels
(each role is asked several times, and kept where it agrees with itself): train `sft` on such chains, and give its folder as
--model. `perspective` pays roles, which a regular expression counts.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Any

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe, Score, Trajectory
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.calibration import answer_sets
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.words import ngrams, sentences, words

# ---- How varied one reply is: in its words, and in the perspectives that it takes ------------------------------------

LONGEST = 20_000
"""Characters at the end of a reply that are read."""
FUNCTION_WORDS = (
    "the", "a", "an", "and", "or", "but", "if", "of", "to", "in", "on", "at", "by", "for", "with", "from", "as", "than", "that",
    "not",
)  # fmt: skip
YULE = 100.0
"""The value of Yule's K, of texts in English about 100, that counts as 1/2."""


@reward
def lexical_diversity(trajectory: Trajectory) -> Score:
    """The mean of eight measures from 0 to 1; 0 for a reply without words.

    types: different words, of all.  entropy: of the words, divided by the most that these words could have.  lengths: the standard
    deviation of the lengths of sentences, divided by their mean.  kinds: entropy of statements, questions and exclamations.
    sentences: 1 less the share of words that neighbouring sentences have in common (Jaccard).  yule: 1 / (1 + K / 100).
    bigrams: different pairs of neighbouring words, of all.  function: entropy of function words in English.
    A single word, or sentence, has nothing that it could vary: 0 there, or the shortest reply would be the most varied.
    """
    text = trajectory.reply[-LONGEST:]
    said = words(text)
    if not said:
        return Score(0.0, why="no words")
    parts = [part for line in text.splitlines() for part in sentences(line) if words(part)]
    counts = Counter(said)
    found = {
        "types": len(counts) / len(said),
        "entropy": _entropy(counts, len(counts)),
        "lengths": _variation([len(words(part)) for part in parts]),
        "kinds": _entropy(Counter("?" if "?" in part[-3:] else "!" if "!" in part[-3:] else "." for part in parts), 3),
        "sentences": _change([set(words(part)) for part in parts]),
        "yule": 1 / (1 + _yule(counts) / YULE) if len(said) > 1 else 0.0,
        "bigrams": _different(ngrams(said, 2)),
        "function": _entropy(Counter(word for word in said if word in FUNCTION_WORDS), len(FUNCTION_WORDS)),
    }
    return Score(math.fsum(found.values()) / len(found), why=", ".join(f"{name} {value:.2f}" for name, value in found.items()))


@reward
def perspectives(trajectory: Trajectory, *, pattern: str, max_roles: PositiveInt = 4) -> Score:
    """How many different perspectives a reply takes, divided by `max_roles`, and at most 1.

    pattern: a regular expression that is searched in every line; its first group, if there is one, names the perspective, so that
    the same one twice counts once. E.g. "^As an? ([^,:]+)", or "^Role [0-9]+: (.+)".
    """
    try:
        expression = re.compile(pattern)
    except re.error as e:
        raise RewardlabError(f"perspectives: the pattern {pattern!r} is not a regular expression: {e}") from e
    matches = [match for line in trajectory.reply[-LONGEST:].splitlines() if (match := expression.search(line[:500]))]
    named = {" ".join((match[1] if expression.groups else match[0]).lower().split()) for match in matches}
    return Score(min(1.0, len(named) / max_roles), why=", ".join(sorted(named)) or "none")


def _different(counts: Counter) -> float:
    return len(counts) / counts.total() if counts else 0.0


def _entropy(counts: Counter, kinds: int) -> float:
    """Entropy of what is counted, divided by the most that so many kinds can have."""
    shares = [count / counts.total() for count in counts.values()]
    return -math.fsum(p * math.log(p) for p in shares) / math.log(kinds) if kinds > 1 else 0.0


def _variation(lengths: list[int]) -> float:
    return min(1.0, pstdev(lengths) / fmean(lengths)) if lengths else 0.0


def _yule(counts: Counter) -> float:
    """K = 10^4 (sum over words of their count squared - N) / N^2."""
    total = counts.total()
    return 1e4 * (math.fsum(count**2 for count in counts.values()) - total) / total**2


def _change(parts: list[set[str]]) -> float:
    common = [len(a & b) / len(a | b) for a, b in pairwise(parts)]
    return 1 - math.fsum(common) / len(common) if common else 0.0


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def multirole_r1(
    base: Recipe | None = None, *, weight: float = 0.1, perspective: float = 0.0, roles: str = r"^Answer[ 0-9]*: *(.+)",
    max_roles: int = 4,
) -> Recipe:  # fmt: skip
    """weight: w, of varied language.  perspective: p, of different roles.  roles: a regular expression that finds a role in a
    line; that given takes every answer that a reply states for a perspective.  max_roles: roles beyond which no more is paid.
    """
    base = base or grpo()
    right: Any = base.reward or correct()
    paid: Any = (1 - weight) * right + weight * lexical_diversity()
    # with a weight of 0 they are logged
    return base.but(reward=paid + perspective * perspectives(pattern=roles, max_roles=max_roles))


fidelity = "core"
left_out = (
    "the first stage, SFT on chains of several roles; answers that are judged role by role, or by what most roles say; and "
    "the measures' normalisation by length."
)

data = Data(
    prompt="the question, asking for several roles; with `perspective`, in a form that the pattern `roles` finds",
    answer="the gold answer",
    rows=[
        {
            "prompt": "Is it polite to arrive a quarter of an hour late to a dinner? Think as a guest from Brazil, as one from "
            'Japan and as the host in Germany, each with a line "Answer: yes or no", and give the host\'s answer last.',
            "answer": "no",
        },
        {
            "prompt": "Should a nurse tell a patient the diagnosis before the doctor does? Think as a patient, as a nurse and as a "
            'lawyer, each with a line "Answer: yes or no", and give what most would say last.',
            "answer": "no",
        },
    ],
)

claim = Claim(
    says="replies that go through several readings contain the one that was meant more often than GRPO's after equal updates",
    versus="grpo", task="ambiguous:difficulty=1,readings=4,answers=3,again=0.4",
    measure="coverage", direction="higher", margin=0.063,
    settings={"weight": 1 / 3, "perspective": 1 / 3, "max_roles": 3, "lr": 3e-4}, versus_settings={"lr": 3e-4},
    by=answer_sets(rollout=independent(n=1)), steps=40, guard=Within("pass@1", low=-0.03),
    fault=Within("unique", high=0.85, says="different answers among those listed"),
    moved=Within("distinct", low=0.2, says="different answers in a reply, more than with GRPO"), learns=None,
    tried="again=0.7, 40 steps at 3e-4, three seeds: 1.9 more different answers, the right one among them .17 less often; "
    "chains of two at 1e-4, 60 steps: -.006, sd .046; as written here: +.056, sd .063, but first replies right less often by .039; "
    "version 1: 2.6 different answers, not 2.0, and the right one among them in .32 and .35, of .50 at the start",
    finding="replies name .20 more different answers than GRPO's, and the one that was meant no more often: in 46%, GRPO 50%, "
    "54% before",
    version=2, replaces="varied language was four measures, now it is the paper's eight; weights are shares, as there",
)  # fmt: skip
