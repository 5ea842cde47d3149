"""docs/GUIDE.md and a page for each league in docs/leagues. `make docs` writes them from the records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rewardlab.checks.levels import capital
from rewardlab.comparisons import league_records
from rewardlab.comparisons.facts import by_problem, facts
from rewardlab.comparisons.guide import guide
from rewardlab.comparisons.league import League, league, leagues
from rewardlab.comparisons.league_page import at_equal_tokens, costs_of, differences, learning, plotted, spent_path
from rewardlab.comparisons.levels import NOTHING, change, level_and_start, shown, span, times
from rewardlab.comparisons.parting import parting
from rewardlab.comparisons.telling import absences, at_equal, unmet, unmet_of, verdict
from rewardlab.comparisons.words import BASELINE, WORDS
from rewardlab.errors import RewardlabError
from rewardlab.registry import catalogue
from rewardlab.util.files import write_text

GUIDE, FOLDER = Path("docs") / "GUIDE.md", Path("docs") / "leagues"
Record = Mapping[str, Any]
PARTS = "reward and right replies part at update"
CHOSEN_BY = {"auc.truth": "the share of right replies over training"}
"""Numbers by which rates are chosen, in words."""


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
    cautions = "".join(f"\n- Not met: {unmet(one)}.\n" for one in unmet_of(world))
    plots = "".join(f"\n![{kind} of {world['name']}]({file})\n" for kind, file, _ in plots_of(name, world, record))
    unseen = " No method of this league had been tested in this world before." if world["new"] else ""
    absent = f" {told}" if (told := absences(world)) else ""
    return f"""
## {world["name"]}

{capital(world["says"])}.{unseen} `{world["task"]}`, {of_what(world)}.{absent}
{cautions}{plots}
{table(world, record)}
{rates(world, record)}"""


def of_what(world: Record) -> str:
    return f"{world['pairs']} problems" if by_problem(world) else f"{world['starts']} initial policies"


def table(world: Record, record: Record) -> str:
    outcome, guard = record["outcome"], record["guard"]
    kept = [guard["says"]] if guard else []
    names = ["method", outcome["says"], "difference", "95% interval (not corrected)", "p, corrected", *kept, "stands"]
    names += ["learning rate", "tokens, of all models", "at the baseline's tokens"]
    names += [f"at equal {record['spends'][1]}" if record.get("spends") else "", "KL", "length"]
    names += [*costs_of(record).values(), PARTS]
    base = next(row for row in world["rows"] if row["member"] == record["baseline"])
    rows = [list(cells(row, base, record)) for row in world["rows"]]
    # what no method has, as the learning rate of a search, is no column
    shows = [i for i in range(len(names)) if i < 5 or any(row[i] not in ("", NOTHING) for row in rows)]
    return "\n".join(f"| {' | '.join(line[i] for i in shows)} |" for line in (names, ["---"] * len(names), *rows))


def cells(row: Record, base: Record, record: Record) -> Iterator[str]:
    outcome, standing = record["outcome"], row["standing"]
    yield from (row["member"], level_and_start(row, outcome))
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
    yield from (verdict(standing), f"{row['rate']:g}" if row["rate"] else NOTHING, times(row["tokens"], base["tokens"]))
    yield at_equal_tokens(row, base, outcome)
    yield at_equal(row, outcome)
    parts = parting(row["curves"], row["updates"] or 0.0, outcome["margin"])
    for value in (row["beside"]["kl"], row["beside"]["length"], *map(row["beside"].get, costs_of(record)), parts):
        yield NOTHING if value is None else f"{value:.3g}"


def rates(world: Record, record: Record) -> str:
    """The levels, of the number by which rates are chosen, at all learning rates that were tried on development seeds."""
    lines = [
        f"- {row['member']}: "
        + ", ".join(f"{rate:g}: {NOTHING if level is None else f'{level:.3g}'}" for rate, level in row["rates"])
        for row in world["rows"]
        # a single rate was everyone's, and is in the table
        if len(row["rates"]) > 1
    ]
    number = CHOSEN_BY.get(record["chosen_by"], f"`{record['chosen_by']}`")
    return f"\nBy learning rate, {number} on the seeds kept for this choice:\n\n" + "\n".join(lines) + "\n" if lines else ""


def plots_of(name: str, world: Record, record: Record) -> Iterator[tuple[str, str, str]]:
    """(what, file, SVG) of a world's plots."""
    file, outcome = f"{name}-{world['name'].replace(' ', '-')}", record["outcome"]
    if drawn := differences(world, outcome):
        yield "differences", f"{file}.svg", drawn
    if drawn := learning(world, record):
        yield "learning curves", f"{file}-learning.svg", drawn
    if drawn := plotted(world, record):
        yield "frontier", f"{file}-frontier.svg", drawn
    if drawn := spent_path(world, record):
        yield "runs along the way", f"{file}-path.svg", drawn


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
