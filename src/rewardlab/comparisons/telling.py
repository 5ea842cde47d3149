"""What a league found, in sentences: for the guide, the pages and the terminal. Every number is read from the record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rewardlab.comparisons.league import OWN
from rewardlab.comparisons.levels import change, shown, span, times
from rewardlab.comparisons.standings import LEVEL
from rewardlab.comparisons.words import (
    ABSENT,
    AT_A_COST,
    BASELINE,
    BETTER,
    DEAR,
    EQUAL,
    FAILED,
    INERT,
    INSIDE,
    OFTEN,
    ROOM,
    UNDECIDED,
    UNFIT,
    WORSE,
)
from rewardlab.errors import RewardlabError

if TYPE_CHECKING:
    from rewardlab.comparisons.league import League

Record = Mapping[str, Any]
ORDER = (BETTER, AT_A_COST, EQUAL, UNDECIDED, WORSE, INERT, FAILED)
PLACE = re.compile(r"\{([^/{}]+)/([^/{}]+?)(?:\.(effect|guard|tokens|equal))?\}")
"""In advice: {world/member} is a level, {world/member.effect} its difference to the baseline, .equal that at equal spending (KL),
and .guard and .tokens what they say."""


def sentences(record: Record) -> Iterator[str]:
    """A sentence or two for each world."""
    for world in record["worlds"]:
        yield f"{world['name']}: {' '.join(of_world(world, record))}"


def unmet_of(world: Record) -> list[Record]:
    """The conditions of a world that are not met. Of an unfit one the others may not have been run, and are not told apart."""
    conditions = (*world["conditions"], world["told_apart"]) if world["fit"] else world["conditions"]
    return [one for one in conditions if not one["ok"]]


def unmet(condition: Record) -> str:
    """A condition of a world that is not met, with what was found."""
    found = "not defined" if condition["value"] is None else f"{condition['value']:.3g}"
    return f"{condition['what']}: {found}, needed {condition['needs']}"


def remedies(world: Record) -> list[str]:
    """What to do where a user's own problems decide nothing; a league's own worlds are fixed, and get none."""
    if world["name"] != OWN or not unmet_of(world):
        return []
    room = next((one for one in world["conditions"] if one["what"].startswith((ROOM, OFTEN))), None)
    if room is not None and not room["value"]:
        return ["no reply is right, from which nothing can be learnt: take easier problems, a better model, or a longer --max-new"]
    found = []
    if room is not None and not room["ok"]:
        side = "easier problems or a better model" if room["value"] < INSIDE[0] else "harder problems"
        found.append(f"take {side}: rewardlab data pass-rate and data filter choose them by what the model gets right")
    if any(not one["ok"] for one in world["conditions"] if one is not room):
        found.append("give the baseline more to learn from: more --steps, more problems, or higher --rates")
    return [*found, "more --seeds find smaller differences; with --dry-run they are told before"]


def of_world(world: Record, record: Record) -> Iterator[str]:
    """What the baseline reaches, who stands where, and what speaks against reading more into it."""
    base = row_of(world, record["baseline"])
    yield of_baseline(world, record)
    if world["fit"]:
        for word in ORDER:
            rows = [row for row in world["rows"] if row["standing"]["word"] == word]
            if rows:
                yield f"{word.capitalize()}: {', '.join(told(row, base, record) for row in rows)}."
    if equal := spending(world, record):
        yield equal
    yield from cautions(world)


def of_baseline(world: Record, record: Record) -> str:
    outcome, base = record["outcome"], row_of(world, record["baseline"])
    ends, beside = shown(base["mean"], outcome), guarded(base, record)
    if base["start"] is None:
        return f"With {record['baseline']}, {outcome['says']}: {ends}{beside}."
    return f"With {record['baseline']}, {outcome['says']}: {shown(base['start'], outcome)} at the start, {ends} at the end{beside}."


def cautions(world: Record) -> Iterator[str]:
    """Of a world that tells nothing, or of no difference among members, and of those that cannot play there."""
    if not world["fit"]:
        yield f"This world tells nothing of the others. Not met: {'; '.join(map(unmet, unmet_of(world)))}."
    elif not world["told_apart"]["ok"]:
        yield "All together they differ by no more than alike ones would by chance."
    if world["fit"] and (absent := absences(world)):
        yield absent


def at_equal(row: Record, outcome: Record) -> str:
    """Of a member: where it stands once both have spent as much, as in "better: +3.1 points (+0.4 to +5.8), at 0.28"; else ""."""
    found = row.get("at_equal")
    if not found or found["effect"] is None:
        return ""
    inside = span(found["low"], found["high"], outcome)
    return f"{found['word']}: {change(found['effect'], outcome)} ({inside}), at {found['spent']:.3g}"


def spending(world: Record, record: Record) -> str:
    """Where members stand at equal amounts of what runs spend, in a sentence; "" for a league that does not compare them so."""
    if not record.get("spends") or not world["fit"]:
        return ""
    by_word: dict[str, list[str]] = {}
    for row in world["rows"]:
        if (found := row.get("at_equal")) and found["effect"] is not None:
            moved = change(found["effect"], record["outcome"])
            by_word.setdefault(found["word"], []).append(f"{row['member']} ({moved} at {found['spent']:.2g})")
    told = "; ".join(f"{word} {', '.join(by_word[word])}" for word in ORDER if word in by_word)
    return f"At equal {record['spends'][1]}: {told}." if told else ""


def absences(world: Record) -> str:
    """Who cannot play in a world, and why; "" where all do."""
    by_reason: dict[str, list[str]] = {}
    for member, why in world.get("absent", {}).items():
        by_reason.setdefault(why, []).append(member)
    told = "; ".join(f"{', '.join(members)} ({why})" for why, members in by_reason.items())
    return f"{ABSENT.capitalize()}: {told}." if told else ""


def told(row: Record, base: Record, record: Record) -> str:
    """A member with its level, its difference, what it does to the guard, and its cost where that is another."""
    level = reached(row, base, record)
    return f"{row['member']} ({level})" if level else str(row["member"])


def reached(row: Record, base: Record, record: Record, guard: str = "") -> str:
    """A level, its difference, the guard's level and the cost: "30 tokens, -14%, right replies 58.2%, for 2x the tokens".

    "" for a member without a measurement.  guard: a form in which the guard's level is put, in place of its words.
    """
    outcome = record["outcome"]
    if row["mean"] is None or row["standing"]["effect"] is None:
        return ""
    cost = row["tokens"] / base["tokens"] if row["tokens"] and base["tokens"] else 1.0
    dear = f", for {times(row['tokens'], base['tokens'])} the tokens" if not 1 / DEAR < cost < DEAR else ""
    return f"{shown(row['mean'], outcome)}, {change(row['standing']['effect'], outcome)}{guarded(row, record, guard)}{dear}"


def guarded(row: Record, record: Record, form: str = "") -> str:
    """What it does to a guarded share; a guarded cost is told as a cost."""
    guard = record["guard"]
    if guard is None or guard["scale"] != "share" or not row["guard"]:
        return ""
    level = shown(row["guard"]["mean"], guard)
    return form.format(level) if form else f", {guard['says']} {level}"


def row_of(world: Record, member: str) -> Record:
    return next(row for row in world["rows"] if row["member"] == member)


def verdict(standing: Record) -> str:
    """Where a member stands, as it is shown: of a "worse" whose outcome was not decided, that the guard says so."""
    by_guard = standing["word"] == WORSE and standing["adjusted"] > LEVEL
    return f"{WORSE} by what is guarded" if by_guard else str(standing["word"])


def word_of(world: Record, member: str) -> str:
    """Where a member stands in a world, in which it may not be, or was not run since the world decides nothing."""
    missing = ABSENT if world["fit"] or member in world.get("absent", {}) else UNFIT
    return next((row["standing"]["word"] for row in world["rows"] if row["member"] == member), missing)


def advice(league: League, record: Record) -> str:
    """The league's advice with the levels of the record in it. Raises RewardlabError for a world or member that is not there."""
    worlds = {world["name"]: world for world in record["worlds"]}

    def level(match: re.Match[str]) -> str:
        name, member, what = match.groups()
        if name not in worlds or word_of(worlds[name], member) == ABSENT:
            raise RewardlabError(f"the advice names {match[0]}, which is not in the record")
        row = row_of(worlds[name], member)
        if what == "effect":
            return change(row["standing"]["effect"], record["outcome"])
        if what == "equal":
            return change(row["at_equal"]["effect"], record["outcome"])
        if what == "guard":
            return shown(row["guard"]["mean"], record["guard"])
        base = row_of(worlds[name], record["baseline"])
        return times(row["tokens"], base["tokens"]) if what == "tokens" else shown(row["mean"], record["outcome"])

    return PLACE.sub(level, league.advice)


def standing_words(record: Record) -> dict[str, dict[str, str]]:
    """By member, its word in each world."""
    return {member: {world["name"]: word_of(world, member) for world in record["worlds"]} for member in record["members"]}


def stands(method: str, records: Mapping[str, Record]) -> list[str]:
    """Of a method or stack: where it stands in each league that it is in, in words."""
    told = []
    for name, record in records.items():
        words = {
            f"{world['name']}, {row['member']}": row["standing"]["word"]
            for world in record["worlds"]
            for row in world["rows"]
            if row["method"] == method
        }
        if BASELINE in words.values():
            told.append(f"{name} league: the baseline")
        elif words:
            told.append(f"{name} league: {summary(method, words)}")
    return told


def summary(member: str, words: Mapping[str, str]) -> str:
    """Of a member: in how many of the fit worlds it is better, equal and worse."""
    fit = [word for word in words.values() if word not in (UNFIT, BASELINE, ABSENT)]
    counts = [f"{word} in {fit.count(word)}" for word in ORDER if word in fit]
    return f"{', '.join(counts)} of {len(fit)} worlds" if counts else "not compared"
