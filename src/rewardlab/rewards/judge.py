"""LLM judges: a score, a verdict, or a preference between two replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, Literal

from rewardlab.clients.client import client_of
from rewardlab.clients.endpoint import endpoint_of, is_served
from rewardlab.clients.messages import Failure, Reply, Request
from rewardlab.core import Group, Problem, Run, Sampling, Score, Scores, Trajectory, seed_of
from rewardlab.data.pictures import addresses
from rewardlab.errors import RewardlabError
from rewardlab.judges.forms import Form, Kind, Reading
from rewardlab.judges.marks import LIKELY
from rewardlab.judges.named import form_of
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt
from rewardlab.text.answers import after_thinking

Judged = tuple[Reading, str]
"""What a judgement says, and the end of its text."""
Preferred = tuple[float | None, str]
"""How far the reply that stands first is preferred, from 0 to 1, or None; and the mark or the reason."""
Ask = Callable[[list[Problem], Sequence[int]], list[Judged]]
"""From questions, and how many replies each shows, to judgements."""


def _check(
    model: str, kind: Kind, template: str, low: int, high: int, samples: int, temperature: float, **_: Any
) -> None:  # fmt: skip
    if is_served(model):
        endpoint_of(model)
    if low >= high:
        raise RewardlabError(f"the judge's scale goes from low={low} to high={high}: low must be below high")
    if samples > 1 and temperature == 0:
        raise RewardlabError(f"{samples} judgements at temperature 0 are one and the same: give the judge a temperature, such as 1")
    form_of(template, kind)


def _compares(kind: Kind = "scale", template: str = "", **_: Any) -> bool:
    return form_of(template, kind).kind in ("pairwise", "scores")


@reward(over="groups", check=_check, relative=_compares)
def judge(
    groups: list[Group], run: Run, *, model: str, kind: Literal["scale", "verdict", "pairwise", "scores"] = "scale",
    template: str = "", low: NonNegativeInt = 1, high: PositiveInt = 5, expected: bool = True, opponents: NonNegativeInt = 0,
    max_new: NonNegativeInt = 512, temperature: NonNegativeFloat = 0.0, samples: PositiveInt = 1,
    thoughts: bool = False,
) -> Scores:  # fmt: skip
    """A judge model's score of a reply, from 0 to 1; no verdict where the judgement fails or cannot be read.

    model: openai:URL#NAME, a model of the run, or in training the name of one (smollm2, a folder, a run).  kind: "scale", a score
    [[s]] from low to high; "verdict", [[yes]] or [[no]]; "pairwise", the share of comparisons [[A]], [[B]] or [[C]] (a tie) with
    other replies of the group that it wins, each made in both orders; "scores", a score for each reply of the group, all shown at
    once, from 0 for the worst to 1 for the best of it.
    template: a published form by its name, which has a kind of its own, or NAME:FILE; or a text or a file with {prompt},
    {reply}, {answer}, {first} and {second} for pairs, {replies} for scores, and columns of the row. expected: take the mean over
    the chances of the mark's token, where the server gives them.  opponents: of each reply; 0: all others of its group.  max_new,
    temperature: of a judgement; 0 tokens: as many as the policy may write.  samples: of a question: the mean of those that can be
    read.  thoughts: whether what stands before </think> is read.  Zheng et al. 2023, arXiv:2306.05685; Liu et al., arXiv:2303.16634
    """
    form = form_of(template, kind, low, high)

    def ask(asked: list[Problem], shown: Sequence[int]) -> list[Judged]:
        every = [problem for problem in asked for _ in range(samples)]
        replies = judgements_by(run, model, every, max_new or run.max_new, temperature, expected, form)
        read = [(_read(form, reply, shown[i // samples]), _text(reply)) for i, reply in enumerate(replies)]
        return [_mean(read[i : i + samples]) for i in range(0, len(read), samples)]

    texts = [[t.reply if thoughts else after_thinking(t.reply) for t in group] for group in groups]
    if form.kind == "pairwise":
        scores = _compared(groups, texts, form, opponents, ask, run)
    elif form.kind == "scores":
        asked = [form.asked(group[0].problem, said) for group, said in zip(groups, texts, strict=True)]
        scores = [_of_all(*said, len(group)) for said, group in zip(ask(asked, [*map(len, groups)]), groups, strict=True)]
    else:
        rows = zip([t for group in groups for t in group], [text for said in texts for text in said], strict=True)
        asked = [form.asked(t.problem, [text]) for t, text in rows]
        found = iter([_score(*said) for said in ask(asked, [1] * len(asked))])
        scores = [[next(found) for _ in group] for group in groups]
    if flat := [s for row in scores for s in row]:
        run.log("judge_no_verdict", sum(s.missing for s in flat) / len(flat))
    return scores


def _mean(several: Sequence[Judged]) -> Judged:
    """The mean of the judgements of one question that can be read, with the text of the first of them."""
    known = [(reading.values, reading.said, text) for reading, text in several if reading.values is not None]
    if len(several) == 1 or not known:
        return several[0]
    values = tuple(sum(column) / len(known) for column in zip(*(own for own, _, _ in known), strict=True))
    return Reading(values, ", ".join(said for _, said, _ in known)), known[0][2]


def _read(form: Form, reply: Reply | Failure, shown: int) -> Reading:
    """What a judgement says; of one that cannot be read also what was asked for, and what may help."""
    reading = form.read(reply, shown)
    if reading.values is not None or isinstance(reply, Failure):
        return reading
    marks = form.marks.texts if form.marks else ()
    wanted = f" where {marks[0]} to {marks[-1]} was asked for" if marks else ""
    return Reading(None, f"{reading.said}{wanted}; try another template (a published form), more max_new, or another judge")


def _text(reply: Reply | Failure) -> str:
    return reply.text[-300:] if isinstance(reply, Reply) else reply.why


def _score(reading: Reading, text: str) -> Score:
    if reading.values is None:
        return Score(None, why=reading.said)
    return Score(reading.values[0], why=text, extracted=reading.said)


def _of_all(reading: Reading, text: str, count: int) -> list[Score]:
    values = reading.values or (None,) * count
    return [Score(value, why=reading.said if value is None else text) for value in values]


def _compared(
    groups: list[Group], texts: Sequence[Sequence[str]], form: Form, opponents: int, ask: Ask, run: Run
) -> Scores:  # fmt: skip
    pairs = [_pairs(group, opponents) for group in groups]
    asked = [
        form.asked(group[a].problem, [said[a], said[b]])
        for group, said, own in zip(groups, texts, pairs, strict=True) for x, y in own for a, b in ((x, y), (y, x))
    ]  # fmt: skip
    found = iter([reading for reading, _ in ask(asked, [2] * len(asked))])
    judged = [[(_first(next(found)), _first(next(found))) for _ in own] for own in pairs]
    first = [value for rows in judged for both in rows for value, _ in both if value is not None]
    if first:
        # what is preferred for standing first; 0.5 for a judge that does not look at the order
        run.log("judge_prefers_first", sum(first) / len(first))
    return [_shares(group, own, rows) for group, own, rows in zip(groups, pairs, judged, strict=True)]


def _first(reading: Reading) -> Preferred:
    return (reading.values[0] if reading.values else None), reading.said


def _pairs(group: Group, opponents: int) -> list[tuple[int, int]]:
    """Which replies of a group are compared; the same text twice is a tie that nobody is asked about."""
    n = len(group)
    # each with the next ones, around the circle
    near = {tuple(sorted((i, (i + k) % n))) for i in range(n) for k in range(1, opponents + 1)}
    return [(a, b) for a, b in combinations(range(n), 2) if (not opponents or (a, b) in near) and group[a].reply != group[b].reply]


def _shares(group: Group, pairs: Sequence[tuple[int, int]], judged: Sequence[tuple[Preferred, Preferred]]) -> list[Score]:
    """What share of its comparisons each reply of a group wins. A comparison of which one order cannot be read does not count."""
    won: list[list[float]] = [[] for _ in group]
    why = ["" for _ in group]
    for (a, b), ((first, said), (second, said_too)) in zip(pairs, judged, strict=True):
        if first is None or second is None:
            why[a] = why[b] = said if first is None else said_too
            continue
        # the second time, b stands first
        share = (first + 1.0 - second) / 2
        won[a].append(share)
        won[b].append(1.0 - share)
    compared = {i for pair in pairs for i in pair}
    # a reply that all others repeat is as good as they are
    ties = {i for i, t in enumerate(group) if i not in compared and sum(t.reply == other.reply for other in group) > 1}
    return [
        Score(sum(rows) / len(rows), why=f"{len(rows)} comparisons") if rows
        else Score(0.5, why="all its opponents say the same") if i in ties
        else Score(None, why=why[i] or "no other reply to compare it with")
        for i, rows in enumerate(won)
    ]  # fmt: skip


def judgements_by(
    run: Run, model: str, asked: list[Problem], max_new: int, temperature: float, expected: bool, form: Form
) -> list[Reply | Failure]:
    """What a judge says to each question: a model of the run, or openai:URL#NAME.  expected: ask for the chances of its marks."""
    if not is_served(model):
        return _by_model(run, model, asked, max_new, temperature)
    client = client_of(model)
    marks = form.marks.texts if form.marks else ()
    likely = LIKELY if expected and marks and asked and client.gives_chances(LIKELY) else 0
    # a judge that reasons first is not held to the mark alone
    marks = marks if form.at_once else ()
    # the same reply is judged alike whenever it is judged, and a question that is asked again is judged afresh
    seen: Counter[str] = Counter()
    seeds: list[int | None] = []
    requests: list[Request] = []
    for problem in asked:
        shown = addresses(problem.prompt)
        # the same words below other pictures are another question
        said = problem.key if shown else problem.question
        again = [seen[said]] if seen[said] else []
        seeds.append(seed_of("judge", run.seed, said, *again) % 2**31 if temperature > 0 else None)
        seen[said] += 1
        pairs = tuple((m.role, m.text) for m in problem.prompt)
        requests.append(Request(pairs, max_new, temperature, seed=seeds[-1], likely=likely, marks=marks, images=shown))
    return client.chat(requests)


def _by_model(run: Run, model: str, asked: list[Problem], max_new: int, temperature: float) -> list[Reply | Failure]:
    """The judgements of a model of the run; a prompt that does not fit its context gets none."""
    judging = run.model(model)
    read = judging.read([Trajectory(p) for p in asked], [p.prompt for p in asked]) if asked else []
    fits = [i for i, t in enumerate(read) if len(t) + max_new <= judging.context]
    sampling = Sampling(max_new, temperature)
    said = judging.extend([read[i] for i in fits], sampling, run.rng("judge")) if fits else []
    replies: dict[int, Reply | Failure] = {i: Reply(t.reply) for i, t in zip(fits, said, strict=True)}
    return [replies.get(i, Failure(f"it does not fit the context of {model!r}")) for i in range(len(asked))]
