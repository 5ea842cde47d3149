"""MultiRole-R1: besides the answer, a reply is paid for the different perspectives that it takes, and for varied language.

    r = [right] + w (lexical + perspectives) / 2,    perspectives = min(1, different roles / most);    then GRPO's advantage of r

What is right may depend on who is asked. A reward for one answer makes a policy see the question from one side; here a reply that
goes through several roles earns more, right or wrong, and variety within it, which widens the search, counts as well.

Wang et al. 2025, arXiv:2507.20187: delta R_acc + (1 - delta) R_div, R_div a weighted sum of eight signals (notes on the paper in
public repositories; its code could not be read): vocabulary, entropy, lengths, structure and change of sentences, Yule's K,
different n-grams, function words. Here w stands for (1 - delta) / delta, and four of the eight are measured: different words and
bigrams, entropy, and change from sentence to sentence. (inferred): w = 0.2, equal weights, and that roles are paid, of which the
abstract says that reward functions promote them; they are counted by a regular expression, which fits the form that replies are
taught. Left out: credit for each role's answer, and the first stage, SFT on chains of several roles, which a model writes without
labels (roles are made up, asked in turn, and kept where they agree with themselves): train `sft` on such chains, and give its
folder as --model.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

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


@reward
def lexical_diversity(trajectory: Trajectory) -> Score:
    """The mean of four measures from 0 to 1; 0 for a reply without words.

    types: different words, of all.  bigrams: different pairs of neighbouring words, of all.  entropy: of the words, divided by that
    of as many different ones.  sentences: 1 less the share of words that neighbouring sentences have in common (Jaccard).
    A single word, or sentence, has nothing that it could vary: 0 there, or the shortest reply would be the most varied.
    """
    text = trajectory.reply[-LONGEST:]
    said = words(text)
    if not said:
        return Score(0.0, why="no words")
    found = {"types": len(set(said)) / len(said), "bigrams": _different(ngrams(said, 2)), "entropy": _entropy(said)}
    found["sentences"] = _change([set(words(sentence)) for line in text.splitlines() for sentence in sentences(line)])
    return Score(math.fsum(found.values()) / len(found), why=", ".join(f"{name} {value:.2f}" for name, value in found.items()))


@reward
def perspectives(trajectory: Trajectory, *, pattern: str, most: PositiveInt = 4) -> Score:
    """How many different perspectives a reply takes, divided by `most`, and at most 1.

    pattern: a regular expression that is searched in every line; its first group, if there is one, names the perspective, so that
    the same one twice counts once. E.g. "^As an? ([^,:]+)", or "^Role [0-9]+: (.+)".
    """
    try:
        expression = re.compile(pattern)
    except re.error as e:
        raise RewardlabError(f"perspectives: the pattern {pattern!r} is not a regular expression: {e}") from e
    matches = [match for line in trajectory.reply[-LONGEST:].splitlines() if (match := expression.search(line[:500]))]
    named = {" ".join((match[1] if expression.groups else match[0]).lower().split()) for match in matches}
    return Score(min(1.0, len(named) / most), why=", ".join(sorted(named)) or "none")


def _different(counts: Counter) -> float:
    return len(counts) / counts.total() if counts else 0.0


def _entropy(said: list[str]) -> float:
    shares = [count / len(said) for count in Counter(said).values()]
    return -math.fsum(p * math.log(p) for p in shares) / math.log(len(said)) if len(said) > 1 else 0.0


def _change(parts: list[set[str]]) -> float:
    common = [len(a & b) / len(a | b) for a, b in pairwise(part for part in parts if part)]
    return 1 - math.fsum(common) / len(common) if common else 0.0


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def multirole_r1(
    base: Recipe | None = None, *, weight: float = 0.2, roles: str = r"^Answer[ 0-9]*: *(.+)", most: int = 4
) -> Recipe:  # fmt: skip
    """weight: of diversity, beside 1 for a right answer.  roles: a regular expression that finds a role in a line.
    most: roles beyond which no more is paid.
    """
    base = base or grpo()
    diversity = 0.5 * lexical_diversity() + 0.5 * perspectives(pattern=roles, most=most)
    return base.but(reward=(base.reward or correct()) + weight * diversity)


data = Data(
    prompt='the question; ask for roles in a form that the pattern `roles` finds, such as a line "Answer 1: ..." for each',
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
    settings={"weight": 1.0, "most": 3, "lr": 3e-4}, versus_settings={"lr": 3e-4},
    by=answer_sets(rollout=independent(n=1)), steps=40, guard=Within("pass@1", low=-0.03),
    fault=Within("unique", high=0.85, says="different answers among those listed"),
    moved=Within("distinct", low=0.2, says="different answers in a reply, more than with GRPO"), learns=None,
    tried="again=0.7, 40 steps at 3e-4, three seeds: 1.9 more different answers, the right one among them .17 less often; "
    "chains of two at 1e-4, 60 steps: -.006, sd .046; as written here: +.056, sd .063, but first replies right less often by .039",
    finding="2.6 different answers in a reply, not 2.0; sets with the right one fall on both sides, from .50 to .32 and .35",
)  # fmt: skip
