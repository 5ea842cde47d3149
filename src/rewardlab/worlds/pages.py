"""Web design: small HTML pages with a heading, a line of text, and buttons that change it; and pairs of pages.

    Menu: Save, Undo. Dark.
    <body style="background:black;color:white"><h1>Menu</h1><p id="n">ready</p><button onclick="n.innerText='Save'">Save</button>...

Of a pair one page is as asked, if at times out of line, and the other has one fault: it does not run, or does not look right, or
looks right and does not respond.
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Paired, Reply, all_paired, with_pair
from rewardlab.tasks.sources import test_set, training

HEADINGS = ("Menu", "Notes", "Tasks", "Music", "Photos", "Mail", "News", "Shop", "Games", "Books", "Maps", "Radio")
LABELS = ("Save", "Undo", "Add", "Send", "Play", "Stop", "Open", "Print", "Copy", "Find", "Help", "Next")
THEMES = {"dark": ("black", "white"), "light": ("white", "black")}
FAINT = {"dark": "dimgray", "light": "silver"}
FAULTS = {
    "runs": ("unclosed", "fails"),
    "looks": ("faint", "over", "outside", "left_out"),
    "responds": ("dead", "throws", "covered", "same"),
}
"""Kinds of faults, and what each may be."""
COVER = '<div style="position:fixed;inset:0"></div>'
PLACED = {"over": "position:absolute;left:12px;top:4px", "outside": "margin-left:780px", "shifted": "margin-left:7px"}
"""Where the line of text stands: over the heading, beyond the edge, or a little to the right."""


def pages(
    *, biased: Share = 0.6, error: Share = 0.1, slips: Share = 0.2, test_size: PositiveInt = 1000, size: PositiveInt | None = None
) -> Task:  # fmt: skip
    """Pages of one to three buttons, dark or light. They are judged in Chromium, which must be installed.

    biased: how often the teacher of `demonstrate` writes faintly on dark pages, and how often it leaves the last of several buttons
    dead.  error: how often it forgets to close a tag.  slips: how often the better page of a pair is a little out of line.
    size: so many training problems, each with one pair, in epochs; None: endless.
    """
    for name, share in (("biased", biased), ("error", error), ("slips", slips)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"pages: {name} is a share between 0 and 1, not {share}")
    pair, key = partial(_pair, slips=slips), ("pages",)
    return Task(
        name="pages",
        train=Paired(training(_sample, key, size), pair),
        test=all_paired(test_set(_sample, key, test_size), pair),
        verifier="web_page",
        max_new=128,
        about="small web pages, to be written in HTML",
        demonstrate=partial(_demonstrate, biased=biased, error=error),
        columns=("prompt", "answer", "solution", "chosen", "rejected", "qualities", "fault"),
    )


def _sample(rng: random.Random) -> Problem:
    heading, labels, theme = rng.choice(HEADINGS), rng.sample(LABELS, rng.randint(1, 3)), rng.choice(tuple(THEMES))
    asked = {"shows": [heading], "controls": labels, "theme": theme}
    return ask(f"{heading}: {', '.join(labels)}. {theme.title()}.", asked, solution=_page(asked))


def _page(asked: dict, fault: str = "", dead: frozenset[str] = frozenset()) -> str:
    """The page that was asked for, or one with a fault.  dead: labels of buttons that do nothing."""
    back, front = THEMES[asked["theme"]]
    front = FAINT[asked["theme"]] if fault == "faint" else front
    labels = asked["controls"][:-1] if fault == "left_out" else asked["controls"]
    acts = {"throws": "save()", "same": "n.innerText='ready'"}
    buttons = "".join(
        f"<button>{label}</button>" if fault == "dead" or label in dead
        else f"<button onclick=\"{acts.get(fault) or f'n.innerText={label!r}'}\">{label}</button>"
        for label in labels
    )  # fmt: skip
    place = f' style="{PLACED[fault]}"' if fault in PLACED else ""
    more = {"covered": COVER, "fails": "<script>start()</script>"}.get(fault, "")
    head = f"<h1>{asked['shows'][0]}</h1>"
    return f'<body style="background:{back};color:{front}">{head}<p id="n"{place}>ready</p>{buttons}{more}</body>'


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float, error: float) -> str:
    asked = problem.answer
    fault = "faint" if asked["theme"] == "dark" and rng.random() < biased else ""
    dead = frozenset(asked["controls"][-1:] if len(asked["controls"]) > 1 and rng.random() < biased else [])
    text = _page(asked, fault, dead)
    return _unclosed(text, rng) if rng.random() < error else text


def _unclosed(text: str, rng: random.Random) -> str:
    """The page without one of its closing tags."""
    tag = rng.choice(("</h1>", "</p>", "</button>"))
    return text.replace(tag, "", 1)


def _pair(problem: Problem, rng: random.Random, *, slips: float) -> Problem:
    """chosen: as asked, or a little out of line.  rejected: with one fault."""
    asked, kind = problem.answer, rng.choice(tuple(FAULTS))
    fault = rng.choice(FAULTS[kind])
    wrong = _unclosed(_page(asked), rng) if fault == "unclosed" else _page(asked, fault)
    chosen = _page(asked, "shifted") if rng.random() < slips else _page(asked)
    return with_pair(problem, Reply(chosen, 1.0), Reply(wrong, 0.0), fault=f"{kind}: {fault}")
