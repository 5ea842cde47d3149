"""The page of a league: one HTML file without scripts that opens anywhere, offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rewardlab.comparisons.facts import OVER, by_problem, facts, matters
from rewardlab.comparisons.forest import forest
from rewardlab.comparisons.levels import NOTHING, axis_of, change, level_and_start, percent, plotted_at, shown, span, times
from rewardlab.comparisons.parting import parting
from rewardlab.comparisons.plots import curves, paths, scatter
from rewardlab.comparisons.telling import absences, at_equal, remedies, unmet, unmet_of, verdict
from rewardlab.comparisons.words import BASELINE, WORDS

Record = Mapping[str, Any]
STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#1f2328;max-width:66rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin-bottom:.2rem}
h2{margin-top:2.4rem;border-top:1px solid #d0d7de;padding-top:1rem} h3{margin:1.6rem 0 .4rem}
.facts,.note{color:#57606a} .wide{overflow-x:auto} table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #eaeef2;white-space:nowrap}
th{font-weight:600;white-space:normal;vertical-align:bottom} td.word{white-space:normal;min-width:6rem}
.standings th:last-child{text-align:left}
th:first-child,td:first-child,td.word{text-align:left}
tr.better td.word{color:#1a7f37;font-weight:600} tr.worse td.word{color:#cf222e}
tr.base td{background:#f6f8fa} .caution{background:#fff8c5;padding:.5rem .8rem;border-radius:6px} svg{max-width:100%;height:auto}
pre{white-space:pre-wrap;background:#f6f8fa;padding:.6rem;border-radius:6px} summary{cursor:pointer}
"""


def page(record: Record, question: str) -> str:
    worlds = "".join(world_section(world, record) for world in record["worlds"])
    words = "".join(f"<dt>{escape(word)}</dt><dd>{escape(meaning)}</dd>" for word, meaning in WORDS.items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>League: {escape(record['name'])}</title><style>{STYLE}</style></head><body>"
        f'<h1>{escape(question)}</h1><p class="facts">{escape(facts(record))}</p>{worlds}'
        f"<h2>What the words mean</h2><dl>{words}</dl></body></html>\n"
    )


def world_section(world: Record, record: Record) -> str:
    policies = "1 initial policy" if world["starts"] == 1 else f"{world['starts']} initial policies"
    starts = f"{world['pairs']} problems" if by_problem(world) else policies
    unseen = " No member was checked here before." if world["new"] else ""
    parts = [
        f"<h2>{escape(world['name'])}</h2><p>{escape(world['says'])}. ",
        f"<code>{escape(world['task'])}</code>, {escape(world['model'])}, {starts}.{unseen}</p>",
        cautions(world),
        noted(absences(world)),
        forest_of(world, record["outcome"]),
        wide(standings_table(world, record)),
        titled("Right replies in training", learning(world, record)),
        parted(world, record["outcome"]["margin"]),
        frontier(world, record),
        titled("Along the runs", spent_path(world, record)),
        "<h3>What it costs</h3>",
        wide(cost_table(world, record)),
        rates(world),
        formulas(world),
    ]
    return "".join(parts)


def parted(world: Record, drop: float) -> str:
    """Whose reward went on rising while replies got worse, and from which update on."""
    found = {row["member"]: parting(row["curves"], row["updates"] or 0.0, drop) for row in world["rows"]}
    told = ", ".join(f"{name} (update {at:.0f})" for name, at in found.items() if at is not None)
    return f'<p class="note">The reward did not fall while right replies became fewer: {escape(told)}.</p>' if told else ""


def noted(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>' if text else ""


def titled(title: str, drawn: str) -> str:
    return f"<h3>{title}</h3>{drawn}" if drawn else ""


def wide(table: str) -> str:
    return f'<div class="wide">{table}</div>'


def cautions(world: Record) -> str:
    failed = unmet_of(world)
    return "".join(
        f'<p class="caution">{escape(text)}.</p>'
        for text in (*(f"Not met: {unmet(one)}" for one in failed), *(f"Try: {remedy}" for remedy in remedies(world)))
    )


def forest_of(world: Record, outcome: Record) -> str:
    drawn = differences(world, outcome)
    note = f"Differences from the baseline in units of what would matter ({matters(outcome)}); right is better."
    return f'{drawn}<p class="note">{escape(note)}</p>' if drawn else ""


def differences(world: Record, outcome: Record) -> str:
    """The forest plot of the members' differences from the baseline; nothing where none has one."""
    rows = [
        {"name": row["member"], "margin": outcome["margin"], "verdict": row["standing"]["word"]}
        | {key: row["standing"][key] for key in ("effect", "low", "high")}
        for row in world["rows"]
        if row["standing"]["effect"] is not None
    ]
    return forest(rows) if rows else ""


def standings_table(world: Record, record: Record) -> str:
    outcome, guard = record["outcome"], record["guard"]
    names = ["member", outcome["says"], "difference", "95% interval", "p, adjusted", *([guard["says"]] if guard else []), "stands"]
    body = "".join(standings_row(row, outcome, guard) for row in world["rows"])
    return f'<table class="standings"><thead><tr>{cells(names, "th")}</tr></thead><tbody>{body}</tbody></table>'


def standings_row(row: Record, outcome: Record, guard: Record | None) -> str:
    standing = row["standing"]
    base = standing["word"] == BASELINE
    middle = ["", "", ""] if base else [
        change(standing["effect"], outcome), span(standing["low"], standing["high"], outcome), f"{standing['adjusted']:.2g}",
    ]  # fmt: skip
    kept = [shown(row["guard"]["mean"], guard)] if guard else []
    told = verdict(standing) if row["failed"] is None else f"failed: {row['failed'][:80]}"
    kind = "base" if base else standing["word"].split()[0]
    first = cells([row["member"], level_and_start(row, outcome), *middle, *kept])
    return f'<tr class="{kind}">{first}<td class="word">{escape(told)}</td></tr>'


def learning(world: Record, record: Record) -> str:
    """The plot of right replies over training; nothing where nothing is trained."""
    lines = {row["member"]: [100 * share for share in row["curves"].get("truth", ())] for row in world["rows"]}
    return curves(lines, record["members"], "from the first update to the last", "right replies in training, %")


def frontier(world: Record, record: Record) -> str:
    """The outcome against a cost, or against what is guarded: where a member stands on both, and where its settings take it."""
    drawn = plotted(world, record)
    several = any(row["knob"] for row in world["rows"])
    note = '<p class="note">Small points: other values of a setting, on fewer seeds, not decided.</p>' if several else ""
    return titled("Frontier", drawn) + note if drawn else ""


def plotted(world: Record, record: Record) -> str:
    """The plot of the outcome against the league's first cost; against what is guarded, where it names none."""
    outcome, costs, guard = record["outcome"], costs_of(record), record["guard"]
    upwards = next(iter(costs.values())) if costs else axis_of(guard) if guard else ""
    points = [
        {"member": row["member"], "x": plotted_at(level, outcome), "y": beside if costs else plotted_at(beside, guard), "at": at}
        for row in world["rows"]
        for at, level, beside in places(row, costs)
    ]
    return scatter(points, record["members"], axis_of(outcome), upwards) if upwards else ""


def spent_path(world: Record, record: Record) -> str:
    """The plot of the outcome against what runs spend as they learn, for a league that compares members at equal amounts of it."""
    if not record.get("spends"):
        return ""
    lines = {row["member"]: row.get("path") or [] for row in world["rows"]}
    return paths(lines, record["members"], record["outcome"]["says"], record["spends"][1])


def costs_of(record: Record) -> Mapping[str, str]:
    """Further numbers that a league shows; a record of an earlier version has none."""
    return record.get("costs") or {}


def places(row: Record, costs: Mapping[str, str]) -> list[tuple[float | None, float | None, float | None]]:
    """(value of its setting, the outcome, what stands against it) of a member, for which the first is None, and of its settings."""
    if costs:
        return [(None, row["mean"], row["beside"].get(next(iter(costs))))]
    guarded = row["guard"]["mean"] if row["guard"] else None
    return [(None, row["mean"], guarded), *((at["at"], at["mean"], at["guard"]) for at in row["knob"])]


def cost_table(world: Record, record: Record) -> str:
    base = next(row for row in world["rows"] if row["member"] == record["baseline"])
    passes = list(base["pass_at"])[:6] if len(base["pass_at"]) > 1 else []
    equal = f"at equal {record['spends'][1]}" if record.get("spends") else ""
    names = ["member", "rate", "tokens", "against the baseline", "at equal tokens", equal, "length", "entropy", "KL"]
    costs = costs_of(record)
    names += [*costs.values(), *passes]
    lines = [cost_row(row, base, record["outcome"], list(costs), passes) for row in world["rows"]]
    # what no member has, as the KL of methods without a reference, is no column
    shows = [i for i in range(len(names)) if any(line[i] != NOTHING for line in lines)]
    header = cells([names[i] for i in shows], "th")
    body = "".join(f"<tr>{cells([line[i] for i in shows])}</tr>" for line in lines)
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def cost_row(row: Record, base: Record, outcome: Record, costs: Sequence[str], passes: Sequence[str]) -> list[str]:
    beside = row["beside"]
    return [
        row["member"],
        f"{row['rate']:g}" if row["rate"] else NOTHING,
        f"{row['tokens']:,.0f}" if row["tokens"] else NOTHING,
        times(row["tokens"], base["tokens"]),
        at_equal_tokens(row, base, outcome) or NOTHING,
        at_equal(row, outcome) or NOTHING,
        *(number(value) for value in (beside["length"], beside["entropy"], beside["kl"], *map(beside.get, costs))),
        *(percent(row["pass_at"].get(name)) for name in passes),
    ]


def at_equal_tokens(row: Record, base: Record, outcome: Record) -> str:
    """The level at the baseline's tokens; with what it spent, where its first update alone cost more."""
    equal = row["equal_tokens"]
    if not equal:
        return ""
    over = equal["tokens"] and base["tokens"] and equal["tokens"] > OVER * base["tokens"]
    return shown(equal["mean"], outcome) + (f" (spent {times(equal['tokens'], base['tokens'])})" if over else "")


def rates(world: Record) -> str:
    lines = "\n".join(
        f"{row['member']}: " + ", ".join(f"{rate:g} {number(level)}" for rate, level in row["rates"])
        for row in world["rows"]
        # a single rate was everyone's, and is in the table
        if len(row["rates"]) > 1
    )
    return f"<details><summary>Rates tried on development seeds</summary><pre>{escape(lines)}</pre></details>" if lines else ""


def formulas(world: Record) -> str:
    lines = "\n\n".join(f"{row['member']}\n{row['formula']}" for row in world["rows"])
    return f"<details><summary>Formulas</summary><pre>{escape(lines)}</pre></details>"


def cells(values: Sequence[str], tag: str = "td") -> str:
    return "".join(f"<{tag}>{escape(value)}</{tag}>" for value in values)


def number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3g}"
