"""docs/GUIDE.md, which method for what, and a page for each league in docs/leagues. `make docs` writes them from the records."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rewardlab.checks.levels import levels
from rewardlab.comparisons import league_records
from rewardlab.comparisons.league import League, league, leagues
from rewardlab.comparisons.league_page import at_equal, by_problem, costs_of, differences, facts, plotted
from rewardlab.comparisons.levels import NOTHING, change, shown, span, times
from rewardlab.comparisons.parting import parting
from rewardlab.comparisons.telling import absences, advice, sentences, standing_words, summary
from rewardlab.comparisons.words import BASELINE, WORDS
from rewardlab.errors import RewardlabError
from rewardlab.registry import describe as catalogue
from rewardlab.registry.find import file_of
from rewardlab.registry.verdicts import last_of
from rewardlab.util.files import write_text

GUIDE, FOLDER = Path("docs") / "GUIDE.md", Path("docs") / "leagues"
Record = Mapping[str, Any]

INTRODUCTION = """# Which method for what

Written from the records of the leagues by `make docs`; do not edit it.

You know TRL or verl, you have a model, rows and a reward, and you want to know which of 250 published methods is worth your GPU
hours. Each section answers one wish. Where it says "compared", that was measured here, under these rules. All methods of a family
meet in the same worlds (a world is a task with a small policy of known faults), which were fixed before the league was run. Each
method learns at the learning rate that did best on two other seeds; other settings are its own. All make as many updates on as many
rollouts, or spend as many tokens where a section says so. Every difference is paired with the baseline, over eight seeds from eight
initial policies where a section gives no other number. *Better* and *worse* are corrected for the number of methods (Holm): the
chance that any of them in a world is wrong is at most 5%. *Equal* means that the 95% interval, not corrected, is smaller than what
would matter. *Undecided* means that these runs do not tell; it is not "equal". The order of two methods that are no baseline is
never decided. Where a section says "Not run yet", these are often the worlds in which none of the methods had been tested before.
The other sections say which method is for what, and what the check of each measured in a world of its own, which is no comparison.

The worlds are small: a policy of a million parameters, problems whose every step can be checked, a minute a run. Next to
nothing here was compared on a pretrained model. They show what a method does and where it breaks. Annotators and scorers are
simulated, so that the truth is known; where replies and scores were recorded of real models instead, the section says so, and
methods are compared problem by problem. What a method gains on your model they do not show. For that, each section ends with
the command that runs the same comparison on your own rows, with your model, here or in TRL and verl ([engines](ENGINES.md)).

{contents}
"""


PARTS = "reward and right replies part at update"
CHECKS = """What the check of each measured, in a world chosen for its claim. The word in bold is the verdict ([what it
means](methods.md)): "unfit world" means that the run says nothing about the method. A positive difference favours the method,
also where lower is better. `pass@1` is the share of right replies, `auc.truth` its mean over training, `reranked` the share of
problems for which the model picks a right reply, `judged` that of right verdicts. World, start and updates differ from one to
the next, so that they are no comparison of methods."""


def guide(folder: Path) -> str:
    known = {name: (league(name), league_records.read(name, folder)) for name in leagues()}
    told = {name: (found, record) for name, (found, record) in known.items() if record or written(name)}
    contents = "\n".join(
        f"- [I want {found.want}](#{anchor(found)}){': compared' if record else ''}" for found, record in told.values()
    )
    sections = (section(name, found, record) if record else unrun(name, found) for name, (found, record) in told.items())
    return INTRODUCTION.format(contents=contents) + "\n".join(sections) + ending()


def anchor(found: League) -> str:
    return f"i-want-{found.want}".replace(" ", "-").replace(",", "")


def section(name: str, found: League, record: Record) -> str:
    told = "\n".join(f"- {sentence}" for sentence in sentences(record))
    named = ("--lora-rank 16" if found.learns else "", "--reward prm:path/to/scorer" if found.scorer or not found.learns else "")
    option = " ".join(filter(None, named))
    said = f"{advice(found, record)}\n\n" if found.advice else ""
    return f"""
## I want {found.want}

{chapter(name, found)}{said}{told}

{overview(record)}
{facts(record)} The whole table, with costs and rates: [{name}](leagues/{name}.md).

    rewardlab league {name} --task mine.jsonl --model path/to/checkpoint {option}

{found.needs} `--dry-run` says how many runs it will make; how long they take is told after the first, and the smallest difference
that it can find once the baseline's rate is chosen. On a large model cut it down: `--members`, `--rates`, `--seeds 5`.
"""


def unrun(name: str, found: League) -> str:
    """The section of a league that has a chapter and no record."""
    return f"""
## I want {found.want}

{chapter(name, found)}**Which of them is better was not measured here:** they have not been compared with one another. The league
that compares them is defined, and `rewardlab league {name}` runs it; on your own rows:

    rewardlab league {name} --task mine.jsonl --model path/to/checkpoint --lora-rank 16

{found.needs}
"""


def written(name: str) -> str:
    """What stands in `leagues/NAME.md`; "" where there is no such file."""
    file = leagues()[name].with_suffix(".md")
    return file.read_text("utf-8").strip() if file.is_file() else ""


def chapter(name: str, found: League) -> str:
    """What is written of a league's family, and what the check of each of its methods measured."""
    if not (text := written(name)):
        return ""
    rivals = (member for member in found.members if member.name != found.baseline)
    methods = dict.fromkeys(method for member in rivals for method in member.stack.split("+"))
    known = {method: told for method in methods if (told := checked(method))}
    verdicts = {row["name"]: row["verdict"] for row in catalogue.rows()}
    lines = [f"- {method}, **{verdicts[method]}**: {told}" for method, told in known.items()]
    if unknown := [method for method in methods if method not in known]:
        lines.append(f"- not measured: {', '.join(unknown)}")
    heading = CHECKS
    return "\n\n".join([text, heading, "\n".join(lines)]) + "\n\n"


def checked(method: str) -> str:
    """The levels, and the difference with its interval, of the last run of a method's check; "" without one."""
    file = catalogue.record_of(file_of(method))
    last = last_of(json.loads(file.read_text("utf-8"))) if file else {}
    low, high = last.get("interval") or last.get("ci95") or (None, None)
    if low is None or high is None:
        return ""
    pairs = len(last["effects"])
    return f"{levels(method, last)} Difference {last['effect']:+.3g} [{low:+.3g}, {high:+.3g}], from {pairs} pairs of runs."


def overview(record: Record) -> str:
    """A row for each member: where it stands in each world."""
    worlds = [world["name"] for world in record["worlds"]]
    lines = [f"| against {record['baseline']} | {' | '.join(worlds)} | in all |", f"| --- | {'--- | ' * len(worlds)}--- |"]
    for member, words in standing_words(record).items():
        if member != record["baseline"]:
            lines.append(f"| {member} | {' | '.join(words[world] for world in worlds)} | {summary(member, words)} |")
    return "\n".join(lines) + "\n"


def ending() -> str:
    return """
## I want something else

`rewardlab list` shows all methods, [methods](methods.md) what the check of each found. A check tests a mechanism
under the conditions that its paper is about; only a league says that one method is better than another.
"""


# ---- The page of a league -----------------------------------------------------------------------------------------------


def document(name: str, found: League, record: Record) -> str:
    worlds = "\n".join(of_world(name, world, record) for world in record["worlds"])
    left = "\n".join(f"- {member}: {why}" for member, why in found.left_out.items())
    words = "\n".join(f"- **{word}**: {meaning}" for word, meaning in WORDS.items())
    return f"""# League: {found.want}

Generated from `src/rewardlab/results/leagues/{name}.json` by `make docs`; do not edit it.

**{found.question}** {facts(record)}

    rewardlab league {name}
{worlds}
{f"## Not in it{chr(10)}{chr(10)}{left}{chr(10)}" if left else ""}
## What the words mean

{words}
"""


def of_world(name: str, world: Record, record: Record) -> str:
    unmet = [one for one in (*world["conditions"], world["told_apart"]) if not one["ok"]]
    cautions = "".join(f"\n- Not met: {one['what']}; needed {one['needs']}." for one in unmet)
    plots = "".join(f"\n![{kind} of {world['name']}]({file})\n" for kind, file, _ in plots_of(name, world, record))
    unseen = " No method of this league had been tested in this world before." if world["new"] else ""
    absent = f" {told}" if (told := absences(world)) else ""
    return f"""
## {world["name"]}

{world["says"].capitalize()}.{unseen} `{world["task"]}`, {of_what(world)}.{absent}
{cautions}{plots}
{table(world, record)}
{rates(world)}"""


def of_what(world: Record) -> str:
    return f"{world['pairs']} problems" if by_problem(world) else f"{world['starts']} initial policies"


def table(world: Record, record: Record) -> str:
    outcome, guard = record["outcome"], record["guard"]
    kept = [guard["says"]] if guard else []
    names = ["method", outcome["says"], "difference", "95% interval (not corrected)", "p, corrected", *kept, "stands"]
    names += ["learning rate", "tokens, of all models", "at the baseline's tokens", "KL", "length"]
    names += [*costs_of(record).values(), PARTS]
    base = next(row for row in world["rows"] if row["member"] == record["baseline"])
    rows = [list(cells(row, base, record)) for row in world["rows"]]
    # what no method has, as the learning rate of a search, is no column
    shows = [i for i in range(len(names)) if i < 5 or any(row[i] not in ("", NOTHING) for row in rows)]
    return "\n".join(f"| {' | '.join(line[i] for i in shows)} |" for line in (names, ["---"] * len(names), *rows))


def cells(row: Record, base: Record, record: Record) -> Iterator[str]:
    outcome, standing = record["outcome"], row["standing"]
    start = f" (before: {shown(row['start'], outcome)})" if row is base and row["start"] is not None else ""
    yield from (row["member"], shown(row["mean"], outcome) + start)
    if standing["word"] == BASELINE:
        yield from ("", "", "")
    else:
        yield from (
            change(standing["effect"], outcome),
            span(standing["low"], standing["high"], outcome),
            f"{standing['adjusted']:.2g}",
        )
    if record["guard"]:
        yield shown(row["guard"]["mean"], record["guard"])
    yield from (standing["word"], f"{row['rate']:g}" if row["rate"] else NOTHING, times(row["tokens"], base["tokens"]))
    yield at_equal(row, base, outcome)
    parts = parting(row["curves"], row["updates"] or 0.0, outcome["margin"])
    for value in (row["beside"]["kl"], row["beside"]["length"], *map(row["beside"].get, costs_of(record)), parts):
        yield NOTHING if value is None else f"{value:.3g}"


def rates(world: Record) -> str:
    """The levels at all learning rates that were tried on development seeds."""
    lines = [
        f"- {row['member']}: "
        + ", ".join(f"{rate:g}: {NOTHING if level is None else f'{level:.3g}'}" for rate, level in row["rates"])
        for row in world["rows"]
        if row["rates"]
    ]
    return "\nBy learning rate, on development seeds:\n\n" + "\n".join(lines) + "\n" if lines else ""


def plots_of(name: str, world: Record, record: Record) -> Iterator[tuple[str, str, str]]:
    """(what, file, SVG) of a world's plots."""
    file, outcome = f"{name}-{world['name'].replace(' ', '-')}", record["outcome"]
    if drawn := differences(world, outcome):
        yield "differences", f"{file}.svg", drawn
    if drawn := plotted(world, record, f"{outcome['number']} ({outcome['better']} is better)"):
        yield "frontier", f"{file}-frontier.svg", drawn


def documents(folder: Path) -> dict[Path, str]:
    """All files, by their paths in the checkout."""
    found = {GUIDE: guide(folder)}
    for name in leagues():
        if record := league_records.read(name, folder):
            found[FOLDER / f"{name}.md"] = document(name, league(name), record)
            for world in record["worlds"]:
                found |= {FOLDER / file: svg for _, file, svg in plots_of(name, world, record)}
    return found


def write() -> list[Path]:
    """Write the guide and the pages of this checkout."""
    root = catalogue.repository()
    if root is None:
        raise RewardlabError("docs/GUIDE.md belongs to a checkout, and this rewardlab was installed without one")
    found = documents(league_records.FOLDER)
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    for old in (root / FOLDER).iterdir():
        # a league or a world that is gone leaves no page
        if old.relative_to(root) not in found:
            old.unlink()
    for path, text in found.items():
        write_text(root / path, text)
    return [root / path for path in found]


if __name__ == "__main__":
    print(*write(), sep="\n")
