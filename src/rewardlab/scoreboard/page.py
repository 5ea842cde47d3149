"""The page of a scoreboard: raters by benchmarks, biases, clear differences, and the items on which raters disagree.

One HTML file that opens anywhere, offline. Its script only filters what is there by a text.
"""

from __future__ import annotations

import hashlib
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from rewardlab.data.pictures import address_of, fitted
from rewardlab.scoreboard.items import Item, Verdict
from rewardlab.scoreboard.lost import told

Document = Mapping[str, Any]
Judged = Sequence[tuple[str, Verdict]]
"""What each rater, by name, said of an item."""
STYLE = """
:root{color-scheme:light dark;--line:#8884;--ink:#2f6fdd;--good:#1a7f37;--bad:#cf222e;--soft:#8881}
body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin-bottom:.2rem} h2{margin-top:2.4rem;border-top:1px solid var(--line);padding-top:1rem}
.wide{overflow-x:auto} table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.5rem 0 1rem}
th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:Canvas}
td small{opacity:.7;margin-left:.3rem} tr.beside td,.note{opacity:.75} td.best{font-weight:700}
input{font:inherit;padding:.3rem .6rem;width:20rem;max-width:100%}
details{border:1px solid var(--line);border-radius:6px;margin:.4rem 0;padding:.3rem .7rem} summary{cursor:pointer}
.replies{display:grid;grid-template-columns:repeat(auto-fit,minmax(18rem,1fr));gap:.8rem}
.reply,.prompt{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--soft);border-radius:6px;padding:.6rem;margin:.4rem 0}
.reply.better{border-left:4px solid var(--good)} .reply.worse{border-left:4px solid var(--bad)}
.said{font-variant-numeric:tabular-nums;opacity:.85} .right{color:var(--good)} .wrong{color:var(--bad)}
"""
SCRIPT = """
const box=document.getElementById('filter');
box.addEventListener('input',()=>{const words=box.value.toLowerCase().split(/\\s+/).filter(Boolean);
for(const row of document.querySelectorAll('[data-text]')){const text=row.dataset.text.toLowerCase();
row.hidden=!words.every(word=>text.includes(word))}});
"""
SHOWN = 40
"""Items of a benchmark on which raters disagree that are shown."""
THUMBNAIL, PICTURES = 160, 4
"""Height and width of a picture that is shown, in pixels, and how many of a prompt."""
LONGEST = 2000
"""Characters of a text that are shown."""


def page(document: Document, items: Mapping[str, Sequence[Item]], judged: Mapping[str, Mapping[str, Sequence[Verdict]]]) -> str:
    """items: by benchmark.  judged: by benchmark and rater, verdicts on its items, of raters that were asked about all."""
    digest = b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    sections = "".join(
        section(name, about, document, disagreements(items[name], judged.get(name, {})))
        for name, about in document["benchmarks"].items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><title>Scoreboard</title><style>{STYLE}</style></head>'
        f"<body><h1>Scoreboard</h1><p>{len(document['raters'])} raters on {len(document['benchmarks'])} benchmarks: percent, with "
        'the 95% interval of a bootstrap over prompts.</p><p><input id="filter" placeholder="filter: a rater, a subset, a word">'
        f"</p>{left_out(document)}{overview(document)}{sections}<script>{SCRIPT}</script></body></html>\n"
    )


def left_out(document: Document) -> str:
    """The raters that could not be asked, or failed on all items of a benchmark."""
    lines = "".join(f"<li>{escape(told(row))}</li>" for row in document["failed"])
    return f"<p>Left out:</p><ul>{lines}</ul>" if lines else ""


def overview(document: Document) -> str:
    """The headline figure of every rater on every benchmark, the best one of each in bold."""
    names = list(document["benchmarks"])
    if len(names) < 2:
        return ""
    values = {rater: [_headline(row.get(name)) for name in names] for rater, row in document["raters"].items()}
    best = [max((v[k] for v in values.values() if not math.isnan(v[k])), default=math.nan) for k in range(len(names))]
    body = "".join(
        f'<tr data-text="{escape(rater)}"><td>{escape(rater)}</td>'
        + "".join(f'<td class="{"best" if v == b else ""}">{percent(v)}</td>' for v, b in zip(row, best, strict=True))
        + "</tr>"
        for rater, row in values.items()
    )
    return f"<h2>All benchmarks</h2>{_table(['rater', *(document['benchmarks'][n]['title'] for n in names)], body)}"


def _headline(entry: Mapping[str, Any] | None) -> float:
    return math.nan if not entry or not entry["figures"] else next(iter(entry["figures"].values()))["value"]


def section(name: str, about: Mapping[str, Any], document: Document, shown: str) -> str:
    entries = {rater: row[name] for rater, row in document["raters"].items() if name in row}
    figures = list(dict.fromkeys((about["headline"], *(f for entry in entries.values() for f in entry["figures"]))))
    lacks = f" Without {escape(about['lacks'])}." if about["lacks"] else ""
    lacks += f" Note: {escape(about['lacking'])}." if about["lacking"] else ""
    some = f" of {about['of']:,}" if about["of"] > about["items"] else ""
    body = "".join(figures_row(rater, entry, figures) for rater, entry in entries.items())
    beside = [*((p["rater"], p["figures"], p["source"]) for p in document.get("published", ()) if p["benchmark"] == name)]
    beside += [("by guessing", about["chance"], "")] if about["chance"] else []
    body += "".join(
        f'<tr class="beside" data-text="{escape(who)}"><td>{escape(who)} <small>{escape(source)}</small></td>'
        + "".join(f"<td>{percent(row.get(f))}</td>" for f in figures) + "<td></td>" * 4 + "</tr>"
        for who, row, source in beside
    )  # fmt: skip
    main = _table(["rater", *figures, "no verdict", "failed", "cut off", "cost"], body)
    asks = escape(about["asks"])
    equal = f" {about['equal']:,} more rows are equal to one of these." if about["equal"] else ""
    if about["other"]:
        at = escape(about["other_where"])
        equal += f" {about['other']:,} more rows have the id of an earlier one, ask something else and are left out (first {at})."
    return (
        f"<h2>{escape(about['title'])}</h2><p>{about['items']:,}{some} items, asked about {asks}.{equal}{lacks}</p>{main}"
        f"{bias_table(entries)}{differences(name, document)}{shown}"
    )


def figures_row(rater: str, entry: Mapping[str, Any], figures: Sequence[str]) -> str:
    cells = "".join(f"<td>{_figure(entry['figures'].get(figure))}</td>" for figure in figures)
    none = percent(entry["no_verdict"]) if entry["no_verdict"] else ""
    blind = " <small>blind: it reads the text alone</small>" if entry.get("blind") else ""
    cost = f"{entry['tokens']:,} tokens" if entry["tokens"] else _bill(entry["cost"])
    return (
        f'<tr data-text="{escape(rater)}"><td>{escape(rater)}{blind}</td>{cells}<td title="{escape(entry["why"])}">{none}</td>'
        f'<td title="{escape(entry["failure"])}">{entry["failed"] or ""}</td>'
        f"<td>{entry['cut'] or ''}</td><td>{cost}</td></tr>"
    )


def _bill(cost: Mapping[str, float]) -> str:
    if not cost:
        return ""
    money = f", {cost['cost']:.4g}" if cost["cost"] else ""
    return f"{cost['requests']:,.0f} requests, {cost['read'] + cost['written']:,.0f} tokens{money}"


def _figure(x: Mapping[str, Any] | None) -> str:
    if x is None:
        return ""
    interval = f"<small>{percent(x['ci95'][0])} – {percent(x['ci95'][1])}</small>" if x["ci95"] else ""
    return f"{percent(x['value'])}{interval}"


def bias_table(entries: Mapping[str, Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(bias for entry in entries.values() for bias in entry["biases"]))
    if not names:
        return ""
    body = "".join(
        f'<tr data-text="{escape(rater)}"><td>{escape(rater)}</td>'
        + "".join(f"<td>{percent(entry['biases'].get(name))}</td>" for name in names) + "</tr>"
        for rater, entry in entries.items()
    )  # fmt: skip
    note = (
        "Right where the better reply is the longer one, and where it is the shorter one: far apart, length decides. The same for "
        "Markdown. Consistent: the same verdict in both orders. Brier and calibration error: of sigmoid(score difference)."
    )
    return (
        f'<h3>What else moves them</h3>{_table(["rater", *(n.replace("_", " ") for n in names)], body)}<p class="note">{note}</p>'
    )


def differences(name: str, document: Document) -> str:
    rows = [row for row in document["differences"] if row["benchmark"] == name]
    clear = [f"{escape(r['better'])} above {escape(r['worse'])} by {100 * r['difference']:.1f}" for r in rows if r["clear"]]
    if not rows:
        return ""
    if not clear:
        return '<p class="note">No difference between two raters is clear of noise (all decided together, Holm).</p>'
    lines = "".join(f"<li>{line}</li>" for line in clear)
    return f"<details><summary>{len(clear)} of {len(rows)} differences are clear of noise</summary><ul>{lines}</ul></details>"


def _table(names: Sequence[str], body: str) -> str:
    header = "".join(f"<th>{escape(name)}</th>" for name in names)
    return f'<div class="wide"><table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>'


def percent(x: float | None) -> str:
    return "" if x is None or math.isnan(x) else f"{100 * x:.1f}"


# ---- where they disagree ------------------------------------------------------------------------------------------------


def disagreements(items: Sequence[Item], judged: Mapping[str, Sequence[Verdict]]) -> str:
    """The items on which raters are most divided, each with its prompt, its replies side by side, and what each rater said."""
    if len(judged) < 2 or not items or not items[0].pairs:
        return ""
    shares = np.array([[_right(item, v) for item, v in zip(items, verdicts, strict=True)] for verdicts in judged.values()])
    spread = np.nanmax(np.nan_to_num(shares, nan=0.0), 0) - np.nanmin(np.nan_to_num(shares, nan=1.0), 0)
    order = [i for i in np.argsort(-spread, kind="stable") if spread[i] > 0][:SHOWN]
    if not order:
        return ""
    blocks = "".join(_item(items[i], [(rater, v[i]) for rater, v in judged.items()]) for i in order)
    more = int((spread > 0).sum())
    return f"<h3>Where they disagree</h3><p class='note'>{len(order)} of {more:,} items.</p>{blocks}"


def _right(item: Item, verdict: Verdict) -> float:
    """The share of an item's pairs that are ranked right; NaN without a verdict."""
    known = [x for i, j in item.pairs if (x := verdict.prefers(i, j)) is not None]
    return float(np.mean([0.5 if x == 0.5 else float(x > 0.5) for x in known])) if known else math.nan


def _item(item: Item, judged: Judged) -> str:
    told = ", ".join(f'<span class="{_kind(item, v)}">{escape(rater)} {_words(item, v)}</span>' for rater, v in judged)
    top = max(item.worth)
    replies = "".join(
        f'<div><div class="reply {"better" if worth == top else "worse"}">{_cut(reply)}</div>'
        f'<div class="said">{_scores(k, judged)}</div></div>'
        for k, (reply, worth) in enumerate(zip(item.replies, item.worth, strict=True))
    )
    text = escape(f"{item.id} {item.subset} {item.question[:200]}", quote=True)
    return (
        f'<details data-text="{text}"><summary>{escape(item.subset)} <small>{escape(item.id)}</small>: {told}</summary>'
        f'{_pictures(item)}<div class="prompt">{_cut(item.question)}</div><div class="replies">{replies}</div></details>'
    )


def _pictures(item: Item) -> str:
    """The first pictures of the prompt, small."""
    small = [address_of(fitted(picture, min(THUMBNAIL, max(picture.shape)))) for picture in item.pictures[:PICTURES]]
    return "".join(f'<img alt="picture {k + 1} of {len(item.pictures)}" src="{x}"> ' for k, x in enumerate(small))


def _kind(item: Item, verdict: Verdict) -> str:
    share = _right(item, verdict)
    return "" if math.isnan(share) else "right" if share > 0.5 else "wrong"


def _words(item: Item, verdict: Verdict) -> str:
    share = _right(item, verdict)
    if math.isnan(share):
        return "no verdict"
    return {1.0: "right", 0.0: "wrong", 0.5: "undecided"}.get(share, f"{100 * share:.0f}% right")


def _scores(k: int, judged: Judged) -> str:
    known = [(rater, v.scores[k]) for rater, v in judged if k < len(v.scores)]
    return escape(" · ".join(f"{rater} {score:.3g}" for rater, score in known if score is not None))


def _cut(text: str) -> str:
    return escape(text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text) - LONGEST:,} more characters)")
