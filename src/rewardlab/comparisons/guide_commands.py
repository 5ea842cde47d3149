"""What the guide says of a league on rows of one's own: the command, what it needs, what it costs; and members by what is typed."""

from __future__ import annotations

import shlex
from typing import Any

from rewardlab import registry
from rewardlab.comparisons.league import League, Member
from rewardlab.comparisons.played import KNOB_SEEDS
from rewardlab.comparisons.words import INSIDE
from rewardlab.core import Part
from rewardlab.engine.rates import RATES

FEWER = 5
"""Seeds of the smaller league that is proposed."""


def on_your_rows(name: str, found: League) -> str:
    options = ("--lora-rank 16" if found.learns else "", "--reward prm:path/to/scorer" if found.scorer or not found.learns else "")
    option = " ".join(filter(None, (*options, found.own_flags, members_flag(found))))
    needs = f"{found.needs}{with_columns(found)}\n\n" if found.needs else ""
    return f"""On your own rows:

    rewardlab league {name} --task mine.jsonl --model path/to/checkpoint {option}

{needs}{cost(found)} {pretrained(found)}"""


def members_flag(found: League) -> str:
    """The members that can play on rows without special columns, as they are typed; "" where these are all."""
    names = ",".join(member.name for member in found.on_plain_rows if member.name != found.baseline)
    return f"--members {shlex.quote(names)}" if len(found.on_plain_rows) < len(found.members) else ""


def with_columns(found: League) -> str:
    """Who else can play on rows with further columns, as a sentence; "" where nobody is left."""
    by_columns: dict[tuple[str, ...], list[str]] = {}
    for member in found.members:
        if member.columns:
            by_columns.setdefault(member.columns, []).append(member.name)
    told = "; ".join(f"with {' and '.join(columns)}, {' and '.join(names)}" for columns, names in by_columns.items())
    return f" Further columns let others play: {told}." if told else ""


def cost(found: League) -> str:
    """How many runs a league makes on one task, and how to begin with fewer."""
    rival = next(member for member in found.on_plain_rows if member.name != found.baseline)
    both = tuple(member for member in found.members if member in (rival, found.member(found.baseline)))
    quoted = shlex.quote(rival.name)
    tried = f", each tried at 3 learning rates on {found.rate_seeds} seeds and then run on {found.pairs}" if found.learns else ""
    members = found.on_plain_rows
    varied = runs_that_vary(members, found.pairs)
    vary = f", and {varied} runs that vary a setting" if varied else ""
    at_least, more = ("at least ", " A method whose best rate is at an edge is tried beyond it.") if found.learns else ("", "")
    every = runs(found, members, found.pairs)
    begin = f"That is {at_least}{every} runs: {len(members)} methods{tried}{vary}.{more}"
    if not found.learns:
        return f"{begin} Nothing is trained. `--members {quoted}` compares one with the baseline alone."
    return (
        f"{begin} Begin smaller: `--members {quoted} --seeds {FEWER}` makes {runs(found, both, FEWER)}. The baseline goes first; "
        f"{where_unfit(found)} `--dry-run` says what is known already, and how long the rest takes once a run has ended."
    )


def where_unfit(found: League) -> str:
    """On which rows the baseline shows that nothing can be decided, and how rates are chosen where it need not learn."""
    if found.own_learns:
        return (
            "where it does not learn by four standard errors, or ends where there is no room, nothing can be decided and the "
            "others are not run: take more `--steps`, higher `--rates` or other problems."
        )
    most = f"{-100 * found.guard.at_least:g} points of {found.guard.says}" if found.guard else ""
    return (
        f"where it is right less than {INSIDE[0]:.0%} of the time, the others are not run. It need not learn: a model that is "
        f"right nearly always may come. Of each method's rates the best by the {found.outcome.says} is taken that costs no more "
        f"than {most} against another of them."
    )


def runs(found: League, members: tuple[Member, ...], pairs: int) -> int:
    each = pairs + (3 * found.rate_seeds if found.learns else 0)
    return len(members) * each + runs_that_vary(members, pairs)


def runs_that_vary(members: tuple[Member, ...], pairs: int) -> int:
    """The runs in which members vary their setting."""
    return sum(len(member.values) for member in members) * min(KNOB_SEEDS, pairs)


def pretrained(found: League) -> str:
    """At which rates members of a league that trains are tried on a pretrained model, in words."""
    if not found.learns:
        return ""
    first = registry.build(found.member(found.baseline).stack)
    usual = RATES[first.update.loss_kind if found.rate == "lr" else "scorer"]
    return (
        "On a pretrained model each method is tried at a third of its usual rate, at that, and at three times as much "
        f"({found.baseline}: {usual.whole:g}, with adapters {usual.adapters:g})."
    )


def other_names(found: League) -> str:
    """What to type for members whose names alone are not what was run, in a sentence; "" where all are."""
    others = [member for member in found.members if member.name != member.stack or rewarded(member)]
    ways = list(dict.fromkeys(member.by for member in others if member.by))
    # of those that differ in how they make one score of a reply's steps, one stands for all
    some = [member for member in others if not member.by or (member.by == ways[0] and member.name != "one sample")]
    told = "; ".join(f"{member.name}: `{typed(member, found)}`" for member in some)
    like_it = f"; and so by {', '.join(ways[1:])}" if ways[1:] else ""
    return f"\nOn the command line: {told}{like_it}.\n" if others else ""


def rewarded(member: Member) -> bool:
    """Whether it reads a reward that is not the method's own."""
    return member.reward is not None or any(isinstance(value, Part) for value in member.settings.values())


def typed(member: Member, found: League) -> str:
    """The method of a member with its settings, as they are given to `rewardlab train` (or `answer`, where nothing is trained)."""
    flags = [f"--{name.replace('_', '-')} {shown(value, found)}" for name, value in member.settings.items()]
    if member.reward is not None:
        flags.append(f"--reward {shown(member.reward, found)}")
    if member.by:
        flags.append(f"--reward \"aggregate(prm_steps(model='prm:PATH'), by='{member.by}')\"")
    return " ".join([member.stack, *flags])


def shown(value: Any, found: League) -> str:
    """A setting as it is typed; a process reward model of the league's own is one of the reader's."""
    if not isinstance(value, Part):
        return shlex.quote(str(value))
    text = str(value)
    if found.scorer:
        text = text.replace(found.scorer, "prm:PATH")
    return f'"{text}"'
