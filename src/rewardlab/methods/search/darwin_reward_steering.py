"""DARWIN: evolutionary decoding: sample under mutated instructions, and periodically replace the worst replies by the best.

    explore:    x_1 .. x_n = mutations of an instruction of the archive, with one beam each
    exploit:    every m tokens score r(x, y_i) on the instruction x as it was asked; beams below the best 3 become copies of these
    archive:    an instruction whose beam was among the best most often, and ends above its parent's reward, takes its place

A strong pull towards the reward makes all beams alike, and a weak one steers little. Here the two have separate places: words that
differ keep the beams apart, and copying alone follows the reward. The reply with the highest reward of all iterations is given.

Hung et al. 2024, arXiv:2406.15193, and the released code (declare-lab/darwin, 7c878ce, darwin.py, utils.py): 5 mutations, the best
3, m = 40, 3 iterations, temperature 0.7, and a reply to the instruction as it was asked beside them, whose reward is the archive's
first. There beams share texts, here tokens; the prompt for mutations is in our words.

The reward must read unfinished replies, as a reward model does (`score=model_score(...)`). Unless mutate="column", the policy must
be able to reword an instruction.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Problem, Recipe, Run, Sampling, Trajectory, Turn, Update, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import accuracy
from rewardlab.rewards.correct_so_far import correct_so_far
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.best import best
from rewardlab.rollouts.stepwise import UNSURE, Stepping, grown, marked, started, to_the_end, worths
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.answers import after_thinking
from rewardlab.text.filled import filled

# ----------------------------------------------------------------------------------------------------------------------
#
# Replies that evolve: each is written to an instruction of its own, and the worst go on from what the best have written.

MUTATE = (
    "Below is an instruction. Write {n} others that ask for the same thing more clearly: with more detail, with less, or in other "
    "words. Give only the new instructions, as a list numbered from 1 to {n}, one a line.\n\nInstruction: {question}"
)
_NUMBERED = re.compile(r"^\s{0,8}[0-9]{1,3}\. {0,4}(\S.*)$", re.MULTILINE)


@dataclass
class Beam:
    """A reply as far as it is written.  read: its instruction, as the policy reads it.  said: what was written after that."""

    instruction: str
    read: Trajectory
    said: tuple[Turn, ...] = ()
    path: tuple[int, ...] = ()
    stop: str | None = None
    score: float = UNSURE

    def after(self, read: Trajectory) -> Trajectory:
        """What is written, as a reply to what is read here."""
        return replace(read, turns=(*read.turns, *self.said), path=self.path, stop=self.stop)


@dataclass
class Species:
    """The search for one problem.

    archive: instructions worth mutating, with rewards.  parent: the one that is mutated now.  wins: how often each beam was among
    the best.  ended: the rows found.
    """

    problem: Problem
    read: Trajectory
    archive: dict[str, float] = field(default_factory=dict)
    parent: str = ""
    beams: list[Beam] = field(default_factory=list)
    wins: Counter = field(default_factory=Counter)
    ended: list[Trajectory] = field(default_factory=list)


@rollout(rows=lambda n, iterations, **_: 1 + n * iterations)
def evolved(
    problems: list[Problem], run: Run, *, score: Reward, n: PositiveInt = 5, iterations: PositiveInt = 3, keep: PositiveInt = 3,
    every: PositiveInt = 40, mutate: Literal["policy", "column", "none"] = "policy", column: str = "rewrite",
    template: str = MUTATE, temperature: NonNegativeFloat = 0.7,
) -> list[Group]:  # fmt: skip
    """A reply to each problem, and in each iteration n more, sampled under mutations of an instruction of the archive, which starts
    with the problem's own. All rows are replies to the problem as it was asked, and `score` reads them so, whatever the policy
    read.

    After every `every` tokens a row that is open and not among the `keep` best goes on from what a random one of these has written.
    At the end of an iteration the two beams that were among the best most often put their instructions into the archive, and take
    their parent out, where their replies score above its own.
    mutate: "policy": it is asked for n others by `template`, with {question} and {n}, and where it does not give n the instruction
    stays; "column": beams take turns at the question and the texts in `column`; "none": all have the problem's own.
    Log-probs of turns are those under the instruction that they were written to. An instruction that leaves no room for a reply
    in the context is not used.

    Hung et al. 2024, arXiv:2406.15193
    """
    how, searches = Stepping(every, temperature, ()), [Species(t.problem, t) for t in started(problems, run)]
    first = to_the_end([s.read for s in searches], 0, temperature, run)
    for s, row, (known,) in zip(searches, first, worths([[t] for t in first], score, run), strict=True):
        s.archive, s.ended = {s.problem.question: known}, [row]
    for i in range(iterations):
        _mutated(searches, run, n, mutate, column, template, temperature)
        while live := [s for s in searches if any(b.stop is None for b in s.beams)]:
            _written(live, 1 + i * n, how, score, run)
            for s in live:
                _replaced(s, keep, run.rng("replacement"))
        for s in searches:
            s.ended += [b.after(s.read) for b in s.beams]
            update_archive(s.archive, s.parent, [(s.beams[k].instruction, s.beams[k].score) for k, _ in s.wins.most_common(2)])
    return [marked(s.ended, run) for s in searches]


def _written(searches: Sequence[Species], number: int, how: Stepping, score: Reward, run: Run) -> None:
    """All open beams of all searches go on, and are scored as replies to the problem."""
    places = [(s, k) for s in searches for k, b in enumerate(s.beams) if b.stop is None]
    rows = grown([s.beams[k].after(s.beams[k].read) for s, k in places], [number + k for _, k in places], how, run)
    for (s, k), row in zip(places, rows, strict=True):
        beam = s.beams[k]
        beam.said, beam.path, beam.stop = row.turns[len(beam.read.turns) :], row.path, row.stop
    mine = [[s.beams[k] for owner, k in places if owner is s] for s in searches]
    scored = worths([[b.after(s.read) for b in beams] for s, beams in zip(searches, mine, strict=True)], score, run)
    for beams, known in zip(mine, scored, strict=True):
        for beam, value in zip(beams, known, strict=True):
            beam.score = value


def _replaced(s: Species, keep: int, rng: torch.Generator) -> None:
    """What is open and not among the best goes on from one of the best."""
    top = sorted(range(len(s.beams)), key=lambda k: -s.beams[k].score)[:keep]
    s.wins.update(top)
    for k, beam in enumerate(s.beams):
        # a complete reply stays as it is, however bad
        if beam.stop is None and k not in top:
            donor = s.beams[top[int(torch.randint(len(top), (), generator=rng))]]
            beam.said, beam.path, beam.stop, beam.score = donor.said, donor.path, donor.stop, donor.score


def update_archive(archive: dict[str, float], parent: str, children: Sequence[tuple[str, float]]) -> None:
    """Put in the children that score above their parent; a child in other words takes the parent out."""
    better = {text: value for text, value in children if value > archive[parent]}
    archive |= better
    if any(text != parent for text in better):
        del archive[parent]


def _mutated(
    searches: Sequence[Species], run: Run, n: int, mutate: str, column: str, template: str, temperature: float
) -> None:  # fmt: skip
    """Each search has n new beams, to mutations of a random instruction of its archive."""
    rng = run.rng("mutation")
    for s in searches:
        s.parent, s.wins = list(s.archive)[int(torch.randint(len(s.archive), (), generator=rng))], Counter()
    if mutate == "policy":
        asked = [s.problem.reworded(filled(template, question=s.parent, n=str(n))) for s in searches]
        texts = [mutations(said, n) or [s.parent] for s, said in zip(searches, _said(asked, run, temperature), strict=True)]
    elif mutate == "column":
        texts = [[s.problem.question, *_recorded(s.problem, column)] for s in searches]
    else:
        texts = [[s.problem.question] for s in searches]
    for s, chosen in zip(searches, texts, strict=True):
        worded = {text: s.problem.reworded(text) for text in chosen}
        read = run.policy.read([Trajectory(p) for p in worded.values()], [p.prompt for p in worded.values()])
        fits = [(text, t) for text, t in zip(worded, read, strict=True) if len(t) + run.max_new <= run.policy.context]
        fits = fits or [(s.problem.question, s.read)]
        s.beams = [Beam(*fits[k % len(fits)]) for k in range(n)]


def _said(asked: Sequence[Problem], run: Run, temperature: float) -> list[str]:
    """The policy's replies; empty where a prompt leaves no room for one."""
    read = run.policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
    fits = [i for i, t in enumerate(read) if len(t) + run.max_new <= run.policy.context]
    rows = run.policy.extend([read[i] for i in fits], Sampling(run.max_new, temperature), run.rng("mutations")) if fits else []
    said = {i: t.reply for i, t in zip(fits, rows, strict=True)}
    return [said.get(i, "") for i in range(len(asked))]


def mutations(said: str, n: int) -> list[str]:
    """The instructions of a numbered list, after the thinking of a model that thinks; none unless there are n."""
    found = [text.strip() for text in _NUMBERED.findall(after_thinking(said))]
    return found if len(found) == n else []


def _recorded(problem: Problem, column: str) -> list[str]:
    """The other wordings of a problem, from its column: a text, or a list of them."""
    value = problem.meta.get(column)
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        raise RewardlabError(f"problem {problem.question[:60]!r} has no other wordings in {column!r}: a text, or a list of texts")
    return list(texts)


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def darwin_reward_steering(
    base: Recipe | None = None, *, score: Reward | None = None, n: int = 5, iterations: int = 3, keep: int = 3, every: int = 40,
    mutate: Literal["policy", "column", "none"] = "policy", column: str = "rewrite", template: str = MUTATE,
    temperature: float = 0.7,
) -> Recipe:  # fmt: skip
    """score: what judges unfinished replies; None: the recipe's reward, the policy's own mean log-probability unless another is
    given.  n: beams, one to each mutation.  keep: of the best.  every: m, in tokens.  mutate: who mutates instructions; "column":
    the file's own wordings take turns; "none": replacement alone.  template: what the policy is asked, with {question} and {n}.
    """
    base = base or Recipe(name="darwin_reward_steering", reward=likelihood(), measure=accuracy(), update=Update())
    score = score or base.required("reward")
    sampled = evolved(
        score=score, n=n, iterations=iterations, keep=keep, every=every, mutate=mutate, column=column, template=template,
        temperature=temperature,
    )  # fmt: skip
    return base.but(rollout=sampled, reward=score, select=best())


STRICT = {"score": correct_so_far(), "n": 6, "keep": 2, "iterations": 1, "every": 8, "temperature": 1.0}
"""An exact judge of finished lines, about as often as there are lines."""

fidelity = "core"
left_out = "scoring some tokens ahead, which the release has off by default; its top-k of 40"
data = Data(
    answer="the gold answer",
    rewrite=Column('other wordings of the prompt, a list; read by mutate="column"', optional=True),
)

# by construction: the rival does not read the second wording, and an exact judge chooses on both sides
claim = Claim(
    says="beams of mutated instructions and of the one that was asked find right replies oftener than as many of the latter alone",
    versus="darwin_reward_steering", task="wordings", measure="accuracy", direction="higher", margin=0.11,
    settings=STRICT | {"mutate": "column"}, versus_settings=STRICT | {"mutate": "none"}, problems=300,
    fault=Within("accuracy", high=0.9, says="accuracy of replacement alone"), learns=None, start=None, sanity=True,
    finding="98% right with beams on both wordings of a question, 76% with all beams on the one that was asked, at 248 tokens an "
    "answer. The file gives the second wording, in which the policy errs elsewhere; whether a policy writes such ones is not "
    "tested",
)  # fmt: skip
baseline = "best_of_n"
