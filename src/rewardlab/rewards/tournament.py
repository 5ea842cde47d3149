"""Comparisons of replies by the votes of a judge, and a tournament that turns them into rewards."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from rewardlab.core import Group, Problem, Run, Score, Scores, seed_of
from rewardlab.judges.named import form_of
from rewardlab.rewards.judge import judgements_by
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt
from rewardlab.text.answers import after_thinking

Pair = tuple[Problem, str, str]
"""A problem, and two replies to it."""
Matches = list[tuple[int, int]]
"""Replies of a group, by their places in it, that are compared; who stands first is shown first."""
Bracket = Generator[Matches, Sequence[float], tuple[list[int], list[int]]]
Places = Generator[Matches, Sequence[float], list[float]]
Shares = Callable[[Sequence[Pair]], Sequence[float | None]]


def votes_for_first(
    pairs: Sequence[Pair], run: Run, *, model: str, form: str, votes: int, temperature: float = 1.0, max_new: int = 0
) -> list[float | None]:  # fmt: skip
    """For each pair of replies the share of its votes for the first; 1/2 for the same text twice, None where no vote can be read.

    Every second vote reads the pair in the reverse order. No judge is shown the gold answer.
    """
    of = form_of(form)
    differ = [i for i, (_, a, b) in enumerate(pairs) if a != b]
    # what was thought before a reply is no part of it
    shown = [tuple(map(after_thinking, pairs[i][1:])) for i in differ]
    asked = [
        of.asked(replace(pairs[i][0], answer=None), both[:: -1 if k % 2 else 1])
        for i, both in zip(differ, shown, strict=True) for k in range(votes)
    ]  # fmt: skip
    said = judgements_by(run, model, asked, max_new or run.max_new, temperature, False, of) if asked else []
    found = [values[k % votes % 2] if (values := of.read(text, 2).values) else None for k, text in enumerate(said)]
    shares: list[float | None] = [0.5] * len(pairs)
    for n, i in enumerate(differ):
        read = [v for v in found[n * votes : (n + 1) * votes] if v is not None]
        shares[i] = float(np.mean(read)) if read else None
    return shares


def shares_won(
    pairs: Sequence[Pair], run: Run, *, model: str, form: str, votes: int, temperature: float = 1.0, max_new: int = 0
) -> list[float]:  # fmt: skip
    """As `votes_for_first`, with 1/2 where no vote can be read."""
    found = votes_for_first(pairs, run, model=model, form=form, votes=votes, temperature=temperature, max_new=max_new)
    return [0.5 if share is None else share for share in found]


# ---- a double elimination ------------------------------------------------------------------------------------------------


def places(count: int, rng: random.Random) -> Places:
    """Plays a double elimination: yields the matches of each round, is sent the shares that the first of each has won, and returns
    the place of every player, from 0 for the first that is out to 1 for the winner.

    Who loses goes to the lower bracket, and who loses there is out. The winners of both brackets meet at last, and once more if the
    one from the upper bracket loses, who has lost but once then. Of those who are out in one round, whoever has won more of its
    matches comes further. Two players have one match, and a tie is 1/2 for both; a player alone has 1/2.
    """
    won: list[list[float]] = [[] for _ in range(count)]
    upper, lower = rng.sample(range(count), count), list[int]()
    out: list[list[int]] = []
    if count < 3:
        yield from _round(upper, won, rng)
        return [own[0] if own else 0.5 for own in won]
    while len(upper) > 1 or len(lower) > 1:
        upper, fallen = yield from _round(upper, won, rng)
        lower, gone = yield from _round(lower + fallen, won, rng)
        out.append(gone)
    last, gone = yield from _round(upper + lower, won, rng)
    if last == lower:
        last, gone = yield from _round(upper + lower, won, rng)
    # sorted is stable: of equals, whose match came first is out first
    order = [i for left in [*out, gone, last] for i in sorted(left, key=lambda i: float(np.mean(won[i])))]
    return [order.index(i) / (count - 1) for i in range(count)]


def _round(bracket: list[int], won: list[list[float]], rng: random.Random) -> Bracket:
    """Neighbours meet: who goes on, and who has lost. A tie is decided by lot; whoever has no opponent goes on as the last."""
    matches = list(zip(bracket[::2], bracket[1::2], strict=False))
    shares = (yield matches) if matches else []
    on, lost = [], []
    for (a, b), share in zip(matches, shares, strict=True):
        won[a].append(share)
        won[b].append(1.0 - share)
        first = (rng.random() if share == 0.5 else share) > 0.5
        on.append(a if first else b)
        lost.append(b if first else a)
    return on + bracket[2 * len(matches) :], lost


@reward(over="groups", relative=True)
def double_elimination(
    groups: list[Group], run: Run, *, model: str, form: str = "", votes: PositiveInt = 1, temperature: NonNegativeFloat = 1.0,
    max_new: NonNegativeInt = 512,
) -> Scores:  # fmt: skip
    """The place of a reply in a tournament of its group, from 0 for the first that is out to 1 for the winner.

    Replies are compared in pairs, about 2 n comparisons for n of them; one is out after its second defeat, so that a single wrong
    verdict costs a good reply little. A comparison that cannot be read is a tie, decided by lot; no verdict for a group of which
    none can be read. The same text twice earns the mean of its places.
    model: that judges, of the run or openai:URL#NAME.  form: what it is asked, a published form by its name, a file, or a text with
    {prompt}, {first} and {second}; empty: ours of pairs.  votes: judgements of a pair, every second one in the reverse order.
    max_new: tokens of a judgement; 0: those of the run.  Wang et al. 2026, arXiv:2601.07349, code
    """
    asked = partial(votes_for_first, run=run, model=model, form=form, votes=votes, temperature=temperature, max_new=max_new)
    found, unread = _played(groups, run, asked)
    if compared := sum(map(len, unread)):
        run.log("judge_no_verdict", sum(map(sum, unread)) / compared)
    return [
        [Score(None, why="no comparison of the group could be read")] * len(group) if own and all(own)
        else [Score(_mean_place(t.reply, group, place)) for t in group]
        for group, place, own in zip(groups, found, unread, strict=True)
    ]  # fmt: skip


def _mean_place(text: str, group: Group, found: Sequence[float]) -> float:
    return float(np.mean([place for t, place in zip(group, found, strict=True) if t.reply == text]))


def _played(groups: list[Group], run: Run, shares: Shares) -> tuple[list[list[float]], list[list[bool]]]:
    """The places of each group; and of its comparisons of different texts, whether each could not be read.

    The matches of all groups' next rounds are judged at once: a served judge answers them side by side.
    """
    rngs = [random.Random(seed_of("double_elimination", run.seed, run.moment, group[0].problem.key)) for group in groups]
    playing = {g: places(len(group), rng) for g, (group, rng) in enumerate(zip(groups, rngs, strict=True))}
    answers: dict[int, list[float] | None] = dict.fromkeys(playing)
    found: list[list[float]] = [[] for _ in groups]
    unread: list[list[bool]] = [[] for _ in groups]
    while playing:
        matches: list[tuple[int, int, int]] = []
        for g in list(playing):
            try:
                matches += [(g, a, b) for a, b in playing[g].send(answers[g])]  # type: ignore[arg-type]
            except StopIteration as over:
                found[g] = over.value
                del playing[g]
        answers = {g: [] for g in playing}
        pairs = [(groups[g][a].problem, groups[g][a].reply, groups[g][b].reply) for g, a, b in matches]
        for (g, _, _), (_, one, other), share in zip(matches, pairs, shares(pairs), strict=True):
            unread[g] += [share is None] if one != other else []
            answers[g].append(0.5 if share is None else share)  # type: ignore[union-attr]
    return found, unread
