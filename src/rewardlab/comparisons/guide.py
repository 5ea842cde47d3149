"""docs/GUIDE.md, which method for what: a chapter for each league, its text, what was found, and the checks of its methods."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rewardlab.checks.levels import levels
from rewardlab.comparisons import league_records
from rewardlab.comparisons.facts import facts
from rewardlab.comparisons.guide_commands import on_your_rows, other_names
from rewardlab.comparisons.guide_engines import engines
from rewardlab.comparisons.league import League, league, leagues
from rewardlab.comparisons.telling import advice, cautions, of_baseline, reached, row_of, spending, standing_words, summary, verdict
from rewardlab.comparisons.words import BETTER, WORDS, WORSE
from rewardlab.registry import catalogue
from rewardlab.registry.catalogue import NOT_RUN
from rewardlab.registry.find import file_of
from rewardlab.registry.verdicts import last_of

Record = Mapping[str, Any]

INTRODUCTION = """# Which method for what

You know TRL or verl, you have a model, rows and a reward, and you want to know which of the published methods is worth your
GPU hours. Each section answers one wish; the table summarises them. Numbers are read from records; `make docs` writes this page.

{contents}

## How to read this page

- A **league** is a family of methods, its members, in the same **worlds**, each compared with one baseline. Two members are never
  compared with each other, only with the baseline.
- A **world** is a task with a small policy of known faults: about a million parameters, problems whose every step can be checked, a
  minute a run; one of them has a pretrained language model, and says so. Worlds were fixed before the methods were run. "Not run
  yet" names worlds that were planned and not run; they are often those in which no method had been tested before.
- Every difference is paired by seed: eight seeds, each from an initial policy of its own, where a section gives no other number.
  Where seeds share initial policies, each policy counts as one pair, by the mean of its seeds; an effect is the mean of these, so
  that levels and differences need not add up to the last digit. Each method has the learning rate that did best on two further
  seeds (development seeds) by the share of right replies over training, or by what the section names; other settings are the
  method's own. All make as many updates, or spend as many tokens where the section says so; what first phases and further models
  cost beside is told.
- The **AUC** of a scorer is how often it ranks a right step, or reply, above a wrong one; .5 is guessing.
- Some outcomes have a **guard**: what must not be lost for them, such as accuracy when replies get shorter.

Where a method stands:

{words}

On "undecided", take what is cheaper or simpler. "Equal" and "undecided" say nothing of your model: see what follows.

**What these worlds do not show.** They show what a method does and where it breaks, not what it gains on your model. Methods that
train were compared on small policies; annotators and scorers are simulated, so that the truth is known. Where replies and scores of
real models were recorded, the section says so, and methods are compared problem by problem. Each section has the command that runs
the same comparison on your rows with your model, here or with `--engine trl` for the methods that TRL carries; verl takes single
recipes (`rewardlab export-recipe`). [A case from end to end](tutorials/which_method.md): from rows to a verdict.

**Checks.** Beside the leagues, most methods have a test of their own, in a world chosen for it: a claim, in which it meets another
method, or a check of its mechanism, with a setting of its own switched off. Under "the check of each" stand what was tested, the
verdict (in words of its own: [what they mean](methods.md#how-to-read-this)), the levels, and the difference with its 98.4%
interval: a positive one favours the method, also where lower is better. `pass@1` is the share of right
replies, `auc.truth` its mean over training, `reranked` the share of problems for which the model picks a right reply, `judged` that
of right verdicts.
"""


CONTENTS = """| I want | try first | compared with | better than it, in how many worlds | worse than it |
| --- | --- | --- | --- | --- |"""
NONE = "none"
FEW = 3
"""Worlds of a league up to which those in which a method is better are named."""


def guide(folder: Path) -> str:
    known = {name: (league(name), league_records.read(name, folder)) for name in leagues()}
    told = {name: (found, record) for name, (found, record) in known.items() if record or written(name)}
    contents = "\n".join([CONTENTS, *(row_of_contents(found, record) for found, record in told.values())])
    sections = (section(name, found, record) if record else unrun(name, found) for name, (found, record) in told.items())
    words = "\n".join(f"- **{word}**: {meaning}." for word, meaning in WORDS.items())
    return INTRODUCTION.format(contents=contents, words=words) + "\n".join(sections) + ending()


def row_of_contents(found: League, record: Record | None) -> str:
    """A league in one row: what to try first, and who was better and worse than the baseline, in how many of the fit worlds."""
    link = f"[{found.want}](#{anchor(found)})"
    before = "; what was compared before it, there" if found.earlier else ""
    better, worse = (who(word, record) for word in (BETTER, WORSE)) if record else (f"no league yet{before}", "")
    return f"| {link} | {found.first or f'`{found.baseline}`'} | {found.baseline} | {better} | {worse} |"


def who(word: str, record: Record) -> str:
    """The members of which a word is true in some world, the most often first, with the worlds or their number."""
    fit = [world["name"] for world in record["worlds"] if world["fit"]]
    found: dict[tuple[str, ...], list[str]] = {}
    for member, words in standing_words(record).items():
        if where := tuple(name for name in fit if words[name] == word):
            found.setdefault(where if len(fit) <= FEW else ("",) * len(where), []).append(member)
    told = "; ".join(f"{', '.join(found[where])} ({places(where, fit)})" for where in sorted(found, key=len, reverse=True))
    return told or (f"{NONE} in {len(fit)}" if fit else "no world could decide")


def places(where: Sequence[str], fit: Sequence[str]) -> str:
    """In how many of the fit worlds, or in which where they are few: '2 of 2', 'in "notes"', '2 of 8'."""
    named = ", ".join(f'"{name}"' for name in where)
    return f"{len(where)} of {len(fit)}" if len(where) == len(fit) or not all(where) else f"in {named}"


def opening(found: League, record: Record) -> str:
    """What to begin with, and whether anything is better: the section's answer, before it is explained."""
    worlds, better = sum(world["fit"] for world in record["worlds"]), who(BETTER, record)
    first = f"**Begin with** {found.first or f'`{found.baseline}`'}."
    if not worlds:
        return f"{first} Nothing was decided: in no world did {found.baseline} learn as it must for that."
    if not better.startswith(NONE):
        return f"{first} Better than {found.baseline} in the comparison: {better}."
    others = len(record["members"]) - 1
    where = f"in {worlds} world{'s' * (worlds != 1)}"
    return f"{first} Of {others} other methods none was shown to be better than {found.baseline}, {where}."


def anchor(found: League) -> str:
    return f"i-want-{found.want}".replace(" ", "-").replace(",", "")


def section(name: str, found: League, record: Record) -> str:
    told = "\n".join(worlds(record))
    said = f"\n{advice(found, record)}\n" if found.advice else ""
    return f"""
## I want {found.want}

{opening(found, record)}

{chapter(name)}### Compared

{told}

{legend(record)}

{overview(record)}{other_names(found)}{said}
{facts(record)} The whole table, with costs and rates: [{name}](leagues/{name}.md).

{on_your_rows(name, found)}
{engines_of(name, found)}{checks(name, found)}"""


def unrun(name: str, found: League) -> str:
    """The section of a league that has a chapter and no record."""
    return f"""
## I want {found.want}

{chapter(name)}**Which of them is better was not measured in a league.** {found.earlier or "They have not been compared."}

{on_your_rows(name, found)}
{engines_of(name, found)}{checks(name, found)}"""


def written(name: str) -> str:
    """What stands in `leagues/NAME.md`; "" where there is no such file."""
    file = leagues()[name].with_suffix(".md")
    return file.read_text("utf-8").strip() if file.is_file() else ""


def chapter(name: str) -> str:
    """What is written of a league's family, with an empty line after it."""
    return f"{text}\n\n" if (text := written(name)) else ""


def engines_of(name: str, found: League) -> str:
    """The engines that carry its methods, as a paragraph of its own."""
    return f"\n{told}\n" if (told := engines(found, written(name))) else ""


def checks(name: str, found: League) -> str:
    """What the check of each member measured, where the family has a chapter: folded, since it is no comparison."""
    if not written(name):
        return ""
    rivals = (member for member in found.members if member.name != found.baseline)
    methods = dict.fromkeys(method for member in rivals for method in member.stack.split("+") if method != found.baseline)
    known = {row["name"]: row for row in catalogue.rows() if row["name"] in methods}
    told = {method: checked(method) if known[method]["verdict"] != NOT_RUN else "" for method in methods}
    lines = [
        f"- `{method}`: {known[method]['claim']}. **{known[method]['verdict']}**: {text}" for method, text in told.items() if text
    ]
    if unmeasured := [method for method, text in told.items() if not text]:
        lines.append(f"- not measured: {', '.join(unmeasured)}")
    listed = "\n".join(lines)
    return f'\n<details markdown="1"><summary>The check of each</summary>\n\n{listed}\n\n</details>\n'


def checked(method: str) -> str:
    """The levels, and the difference with its interval, of the last run of a method's check; "" without one."""
    file = catalogue.record_of(file_of(method))
    last = last_of(json.loads(file.read_text("utf-8"))) if file else {}
    low, high = last.get("interval") or last.get("ci95") or (None, None)
    if low is None or high is None:
        return ""
    pairs = len(last["effects"])
    return f"{levels(method, last)} Difference {last['effect']:+.3g} [{low:+.3g}, {high:+.3g}], {pairs} pairs of runs."


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
    return f"{verdict(row['standing'])}: {level}" if level else word


def legend(record: Record) -> str:
    """What the numbers of a cell are."""
    outcome, guard = record["outcome"], record["guard"]
    beside = f"; in brackets, {guard['says']}" if guard and guard["scale"] == "share" else ""
    return f"Each cell: the verdict, {outcome['says']}, and the difference from {record['baseline']}{beside}."


def ending() -> str:
    return """
## I want to know whether a gain is real

- **Two runs may differ by chance.** `rewardlab compare grpo X --task mine.jsonl --seeds 5` shows differences seed by seed, with
  intervals; a league corrects for how many methods were tried.
- **The gain may not come from the reward.** `rewardlab compare grpo randomcalculation_contamination --task mine.jsonl`: the second
  is paid at random, and what rises there too was not learnt from the reward.
- **The model may have seen the problems.** `rewardlab data contamination test.jsonl --model M --out probed.jsonl` tells how many
  prompts it completes word by word, and answers though part of them is hidden. Ask the same of newer rows, and compare.
- **Right answers may be guessed.** `rewardlab eval M --task mine.jsonl --k 1,16 --reasoning openai:URL#NAME` tells cot_pass@k
  beside pass@k: right, and for a right reason.
- **It may have become narrower.** `rewardlab train grpo+invisible_leash` counts the right answers that the start gives among 64
  replies and the trained policy does not, and the other way round.
- **The verifier may be wrong.** `rewardlab audit mine.py:reward` looks for replies that it wrongly accepts or refuses.
- **The policy may have found a hole in the reward.** `rewardlab train ... --watch`, then `rewardlab diagnose RUN`: where what is
  paid rises and the truth does not.
- **A process reward model may be fooled.** `rewardlab prm stress PATH --on solutions.jsonl` tells which kinds of broken reasoning
  it accepts, and how far style moves it.

## I want something else

`rewardlab list` shows all methods, [methods](methods.md) what the check of each found. A check tests a mechanism
under the conditions that its paper is about; only a league says that one method is better than another.
"""
