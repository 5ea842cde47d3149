"""docs/GUIDE.md, which method for what: a chapter for each league, its text, what was found, and the checks of its methods."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.checks.levels import levels
from rewardlab.comparisons import league_records
from rewardlab.comparisons.league import League, league, leagues
from rewardlab.comparisons.league_page import facts
from rewardlab.comparisons.telling import advice, cautions, of_baseline, reached, row_of, spending, standing_words, summary
from rewardlab.comparisons.words import BETTER, WORSE
from rewardlab.engine.rates import RATES
from rewardlab.registry import describe as catalogue
from rewardlab.registry.find import file_of
from rewardlab.registry.verdicts import last_of

Record = Mapping[str, Any]

INTRODUCTION = """# Which method for what

Written from the records of the leagues by `make docs`; do not edit it.

You know TRL or verl, you have a model, rows and a reward, and you want to know which of 250 published methods is worth your GPU
hours. Each section answers one wish; the table has all in short. What was compared was measured here, under these rules. All
methods of a family meet in the same worlds (a world is a task with a small policy of known faults), which were fixed before the
league was run. Each method learns at the learning rate that did best on two other seeds; other settings are its own. All make as
many updates on as many rollouts, or spend as many tokens where a section says so. Every difference is paired with the baseline,
over eight seeds from eight initial policies where a section gives no other number. *Better* and *worse* are corrected for the
number of methods (Holm): the chance that any of them in a world is wrong is at most 5%. *Equal* means that the 95% interval, not
corrected, is smaller than what would matter. *Undecided* means that these runs do not tell; it is not "equal". The order of two
methods that are no baseline is never decided. Where a section says "Not run yet", these are often the worlds in which none of the
methods had been tested before. The other sections say which method is for what, and what the check of each measured in a world of
its own, which is no comparison.

The worlds are small: a policy of a million parameters, problems whose every step can be checked, a minute a run. Next to
nothing here was compared on a pretrained model. They show what a method does and where it breaks. Annotators and scorers are
simulated, so that the truth is known; where replies and scores were recorded of real models instead, the section says so, and
methods are compared problem by problem. What a method gains on your model they do not show. For that, each section ends with
the command that runs the same comparison on your own rows, with your model, here or in TRL and verl ([engines](ENGINES.md)).

{contents}
"""


CONTENTS = """| I want | try first | compared with | better than it, in how many worlds | worse than it |
| --- | --- | --- | --- | --- |"""
CHECKS = """### Checks of one method each

What the check of each measured, in a world chosen for its claim. The word in bold is the verdict ([what it
means](methods.md)): "unfit world" means that the run says nothing about the method. A positive difference favours the method,
also where lower is better. `pass@1` is the share of right replies, `auc.truth` its mean over training, `reranked` the share of
problems for which the model picks a right reply, `judged` that of right verdicts. World, start and updates differ from one to
the next, so that they are no comparison of methods."""


def guide(folder: Path) -> str:
    known = {name: (league(name), league_records.read(name, folder)) for name in leagues()}
    told = {name: (found, record) for name, (found, record) in known.items() if record or written(name)}
    contents = "\n".join([CONTENTS, *(row_of_contents(found, record) for found, record in told.values())])
    sections = (section(name, found, record) if record else unrun(name, found) for name, (found, record) in told.items())
    return INTRODUCTION.format(contents=contents) + "\n".join(sections) + ending()


def row_of_contents(found: League, record: Record | None) -> str:
    """A league in one row: what to try first, and who was better and worse than the baseline, in how many of the fit worlds."""
    better, worse = (who(word, record) for word in (BETTER, WORSE)) if record else (found.earlier or "not run yet", "")
    first = found.first or f"`{found.baseline}`"
    return f"| [{found.want}](#{anchor(found)}) | {first} | {found.baseline} | {better} | {worse} |"


def who(word: str, record: Record) -> str:
    """The members of which a word is true in some world, the most often first."""
    counts: dict[int, list[str]] = {}
    for member, words in standing_words(record).items():
        if times_said := [*words.values()].count(word):
            counts.setdefault(times_said, []).append(member)
    fit = sum(world["fit"] for world in record["worlds"])
    told = "; ".join(f"{', '.join(counts[n])} ({n} of {fit})" for n in sorted(counts, reverse=True))
    return told or f"none in {fit}"


def anchor(found: League) -> str:
    return f"i-want-{found.want}".replace(" ", "-").replace(",", "")


def section(name: str, found: League, record: Record) -> str:
    named = ("--lora-rank 16" if found.learns else "", "--reward prm:path/to/scorer" if found.scorer or not found.learns else "")
    option = " ".join(filter(None, named))
    told = "\n".join(worlds(record))
    said = f"\n{advice(found, record)}\n" if found.advice else ""
    return f"""
## I want {found.want}

{chapter(name)}### Compared

{told}

{legend(record)}

{overview(record)}{said}
{facts(record)} The whole table, with costs and rates: [{name}](leagues/{name}.md).

    rewardlab league {name} --task mine.jsonl --model path/to/checkpoint {option}

{found.needs} `--dry-run` says how many runs it will make; how long they take is told after the first, and the smallest difference
that it can find once the baseline's rate is chosen. {pretrained(found)}On a large model cut it down: `--members`, `--rates`,
`--seeds 5`.
{checks(name, found)}"""


def pretrained(found: League) -> str:
    """At which rates members of a league that trains are tried on a pretrained model, in words."""
    if not found.learns:
        return ""
    first = registry.build(found.member(found.baseline).stack)
    usual = RATES[first.update.loss_kind if found.rate == "lr" else "scorer"]
    return (
        "On a pretrained model each member is tried at a third of its usual rate, at that, and at three times as much "
        f"({found.baseline}: {usual.whole:g}, with adapters {usual.adapters:g}). "
    )


def unrun(name: str, found: League) -> str:
    """The section of a league that has a chapter and no record."""
    return f"""
## I want {found.want}

{chapter(name)}**Which of them is better was not measured in a league.** {found.earlier or "They have not been compared."}
The league that compares them is defined, and `rewardlab league {name}` runs it; on your own rows:

    rewardlab league {name} --task mine.jsonl --model path/to/checkpoint --lora-rank 16

{found.needs}
{checks(name, found)}"""


def written(name: str) -> str:
    """What stands in `leagues/NAME.md`; "" where there is no such file."""
    file = leagues()[name].with_suffix(".md")
    return file.read_text("utf-8").strip() if file.is_file() else ""


def chapter(name: str) -> str:
    """What is written of a league's family, with an empty line after it."""
    return f"{text}\n\n" if (text := written(name)) else ""


def checks(name: str, found: League) -> str:
    """What the check of each member measured, where the family has a chapter."""
    if not written(name):
        return ""
    rivals = (member for member in found.members if member.name != found.baseline)
    methods = dict.fromkeys(method for member in rivals for method in member.stack.split("+"))
    known = {method: told for method in methods if (told := checked(method))}
    verdicts = {row["name"]: row["verdict"] for row in catalogue.rows()}
    lines = [f"- {method}, **{verdicts[method]}**: {told}" for method, told in known.items()]
    if unknown := [method for method in methods if method not in known]:
        lines.append(f"- not measured: {', '.join(unknown)}")
    return "\n" + "\n\n".join([CHECKS, "\n".join(lines)]) + "\n"


def checked(method: str) -> str:
    """The levels, and the difference with its interval, of the last run of a method's check; "" without one."""
    file = catalogue.record_of(file_of(method))
    last = last_of(json.loads(file.read_text("utf-8"))) if file else {}
    low, high = last.get("interval") or last.get("ci95") or (None, None)
    if low is None or high is None:
        return ""
    pairs = len(last["effects"])
    return f"{levels(method, last)} Difference {last['effect']:+.3g} [{low:+.3g}, {high:+.3g}], from {pairs} pairs of runs."


def worlds(record: Record) -> Iterator[str]:
    """A line for each world: what it is, what the baseline reached there, and what speaks against reading more into it."""
    for world in record["worlds"]:
        told = (of_baseline(world, record), spending(world, record), *cautions(world))
        yield f"- **{world['name']}**, {world['says']}. {' '.join(filter(None, told))}"


def overview(record: Record) -> str:
    """A row for each member: where it stands in each world, and what it reached."""
    found = record["worlds"]
    ends = [" in all |", " --- |"] if len(found) > 1 else ["", ""]
    lines = [f"| against {record['baseline']} | {' | '.join(world['name'] for world in found)} |{ends[0]}"]
    lines.append(f"| --- | {'--- | ' * len(found)}".rstrip() + ends[1])
    for member, words in standing_words(record).items():
        if member != record["baseline"]:
            cells = [cell(world, member, words[world["name"]], record) for world in found]
            last = f" {summary(member, words)} |" if len(found) > 1 else ""
            lines.append(f"| {member} | {' | '.join(cells)} |{last}")
    return "\n".join(lines) + "\n"


def cell(world: Record, member: str, word: str, record: Record) -> str:
    """As in "better: 30 tokens, -14% (58.2%)"; the word alone where nothing was measured."""
    base, row = row_of(world, record["baseline"]), next((row for row in world["rows"] if row["member"] == member), None)
    if row is None or not world["fit"]:
        return word
    level = reached(row, base, record, guard=" ({})")
    return f"{word}: {level}" if level else word


def legend(record: Record) -> str:
    """What the numbers of a cell are."""
    outcome, guard = record["outcome"], record["guard"]
    beside = f"; in brackets, {guard['says']}" if guard and guard["scale"] == "share" else ""
    return f"Each cell: the verdict, {outcome['says']}, and the difference from {record['baseline']}{beside}."


def ending() -> str:
    return """
## I want something else

`rewardlab list` shows all methods, [methods](methods.md) what the check of each found. A check tests a mechanism
under the conditions that its paper is about; only a league says that one method is better than another.
"""
