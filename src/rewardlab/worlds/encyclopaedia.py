"""A small encyclopaedia of persons, works and towns that do not exist, whose names share words, so that a careless search errs.

    Where was the author of Red Tower born?      Search: Red Tower  ->  Red Tower is a novel by Ann Moor. Red Tower is set in Kelm.
                                                 Search: Ann        ->  Ann Vale is a painter born in Sorn in 1830. ...
                                                 Search: Ann Moor   ->  Ann Moor is a doctor born in Dree in 1860. ...
                                                 Answer: Dree
    Who was born first, Ann Moor or Bob Vale?    Search: Ann Moor ## Bob Vale   ->  both articles at once

Every problem has an encyclopaedia of its own, so that none can be memorised: the articles lie in the column `facts`, those that
answer the question in `supporting`, gold searches in `searches`. `type` is that of HotpotQA: "comparison" where these need nothing
of one another, "bridge" where the second needs what the first finds, "na" where there is only one. With
fictional entities in the place of real ones it is as the FictionalHot questions of ReSeek (Li et al. 2025, arXiv:2510.00568).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from rewardlab.core import Problem, Task, ask
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Paired, all_paired
from rewardlab.tasks.sources import test_set, training
from rewardlab.text.bm25 import index_of
from rewardlab.text.searches import NOTHING

FIRST = (
    "Ann", "Bob", "Cal", "Dee", "Eve", "Fay", "Gus", "Hal", "Ida", "Jon", "Kim", "Lea", "Max", "Ned", "Ola", "Pam", "Ray", "Sue",
    "Tom", "Una",
)  # fmt: skip
LAST = ("Moor", "Vale", "Hill", "Wood", "Lake", "Reed", "Ford", "Nash", "Pike", "Stone", "Cole", "Marsh")
KINDS = ("Red", "Old", "Lost", "High", "Last", "Dark", "Long", "Cold", "Wild", "Blue", "Deep", "Gold")
THINGS = ("Tower", "River", "Garden", "Letter", "Bridge", "Winter", "House", "Road", "Song", "Mirror", "Island", "Forest")
TOWNS = ("Kelm", "Sorn", "Dree", "Vosk", "Tarn", "Ruhl", "Mell", "Orb", "Lyss", "Hagg")
LANDS = ("Nordia", "Sudia", "Estia", "Westia")
JOBS = ("painter", "doctor", "writer", "sailor", "baker")
YEARS = tuple(str(year) for year in range(1810, 1900, 10))
AND = " ## "
"""Between two searches of one call, as in ParallelSearch."""
Document = dict[str, str]


def encyclopaedia(
    *, comparisons: Share = 0.4, error: Share = 0.3, together: Share = 0.0, judged: bool = False, misjudged: Share = 0.3,
    scripted: bool = False, test_size: PositiveInt = 500, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Questions of one search, of two of which the second needs the first, and comparisons, whose two searches are independent.

    comparisons: their share.  error: how often, per search, the teacher of `demonstrate` gives one word of the name alone, and goes
    on from whatever that finds.  together: how often it makes both searches of a comparison in one call; of a chain half as often,
    where the second is a guess.  judged: it says of each result whether it is of use, <judge>Yes</judge> or <judge>No</judge>, and
    after No it searches for the whole name.  misjudged: how often that is wrong.  scripted: each problem brings episodes of such
    teachers (`SCRIPTS`), and what they are worth.  size: so many training problems, in epochs; None: endless.
    """
    sample, key = partial(_sample, comparisons=comparisons), ("encyclopaedia", comparisons)
    train, test = training(sample, key, size), test_set(sample, key, test_size)
    return Task(
        name="encyclopaedia",
        train=Paired(train, _with_scripts) if scripted else train,
        test=all_paired(test, _with_scripts) if scripted else test,
        verifier="final_answer",
        max_new=24,
        about="questions on articles about persons, works and towns that share words of their names, which must be searched for",
        environment="search",
        turns=5,
        demonstrate=partial(_demonstrate, error=error, together=together, split=together / 2, judged=judged, misjudged=misjudged),
        columns=("prompt", "answer", "facts", "supporting", "searches", "type", "solution", *(SCRIPTED if scripted else ())),
        warmup_steps=900,
    )


# ---- articles -----------------------------------------------------------------------------------------------------------------


def _person(name: str, job: str, born: str, year: str, lives: str) -> Document:
    return {"title": name, "text": f"{name} is a {job} born in {born} in {year}. {name} lives in {lives}."}


def _work(title: str, author: str, town: str) -> Document:
    return {"title": title, "text": f"{title} is a novel by {author}. {title} is set in {town}."}


def _town(name: str, land: str, mayor: str) -> Document:
    return {"title": name, "text": f"{name} is a town of {land}. The mayor of {name} is {mayor}."}


def _articles(rng: random.Random) -> list[Document]:
    """Four persons with two first and two last names, four works likewise, and three towns, in random order."""
    towns = rng.sample(TOWNS, 3)
    people, works = (
        [f"{a} {b}" for a, b in product(rng.sample(first, 2), rng.sample(second, 2))]
        for first, second in ((FIRST, LAST), (KINDS, THINGS))
    )
    documents = [
        _person(name, rng.choice(JOBS), rng.choice(towns), year, rng.choice(towns))
        for name, year in zip(people, rng.sample(YEARS, 4), strict=True)
    ]
    documents += [_work(title, rng.choice(people), rng.choice(towns)) for title in works]
    documents += [_town(name, rng.choice(LANDS), rng.choice(people)) for name in towns]
    rng.shuffle(documents)
    return documents


_READS = {
    "author": re.compile(r"novel by (\w+ \w+)\."),
    "setting": re.compile(r"set in (\w+)\."),
    "birthplace": re.compile(r"born in (\w+) in"),
    "year": re.compile(r"born in \w+ in (\d+)\."),
    "land": re.compile(r"town of (\w+)\."),
    "mayor": re.compile(r"mayor of \w+ is (\w+ \w+)\."),
}
"""What an article may say, and how it is read from its text."""
_QUESTIONS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "born": ("Where was {} born?", "birthplace", ("birthplace",)),
    "wrote": ("Who wrote {}?", "author", ("author",)),
    "author_born": ("Where was the author of {} born?", "author", ("author", "birthplace")),
    "born_land": ("Of which land is the town where {} was born?", "birthplace", ("birthplace", "land")),
    "set_mayor": ("Who is the mayor of the town where {} is set?", "setting", ("setting", "mayor")),
}
"""By kind: the question, what the article that it begins with must say, and what is read from one article after another."""


_NAME = r"[A-Z]\w+ [A-Z]\w+"
"""Of a person or a work."""


def read_from(document: str, what: str) -> str | None:
    """What an article says, or None."""
    found = _READS[what].search(document)
    return found[1] if found else None


# ---- problems -----------------------------------------------------------------------------------------------------------------


def _sample(rng: random.Random, *, comparisons: float) -> Problem:
    documents = _articles(rng)
    by_title = {d["title"]: d for d in documents}
    if rng.random() < comparisons:
        people = [d["title"] for d in documents if read_from(d["text"], "year")]
        searches = rng.sample(people, 2)
        question = f"Who was born first, {searches[0]} or {searches[1]}?"
        answer, kind = min(searches, key=lambda name: int(read_from(by_title[name]["text"], "year") or 0)), "comparison"
    else:
        text, begins, hops = _QUESTIONS[rng.choice(list(_QUESTIONS))]
        start = rng.choice([d["title"] for d in documents if read_from(d["text"], begins)])
        question, searches, answer = text.format(start), [], start
        for what in hops:
            searches.append(answer)
            answer = str(read_from(by_title[answer]["text"], what))
        kind = "bridge" if len(hops) > 1 else "na"
    supporting = [by_title[title] for title in searches]
    turns = [text for title, d in zip(searches, supporting, strict=True) for text in (f"Search: {title}", d["text"])]
    # numbered, since there are few different questions but for comparisons, and held-out ones would nearly all be these
    question = f"No. {rng.randint(1, 9999)}: {question}"
    columns: dict[str, Any] = {"facts": documents, "supporting": supporting, "searches": searches, "type": kind}
    return ask(question, answer, **columns, solution=[*turns, f"Answer: {answer}"])


def look_up(documents: list[Document], query: str) -> str:
    """The text that a search finds."""
    return " ".join(index_of(tuple(d["text"] for d in documents)).best(query)) or NOTHING


# ---- the teacher --------------------------------------------------------------------------------------------------------------


def _demonstrate(
    problem: Problem, rng: random.Random, *, error: float, together: float = 0.0, split: float = 0.0, judged: bool = False,
    misjudged: float = 0.0,
) -> list[str]:  # fmt: skip
    """Replies and results in turn.  together, split: how often a comparison, and a chain, begins with a call of two searches."""
    find, said = partial(look_up, problem.meta["facts"]), ""
    turns: list[str] = []

    def asked(title: str) -> str:
        return rng.choice(title.split()) if rng.random() < error else title

    def searched(title: str) -> str:
        """The article that the teacher ends with, where it looks for this one."""
        nonlocal said
        query = asked(title)
        for _ in range(2):
            found = find(query)
            turns.extend((f"{said}Search: {query}", found))
            said, useful = "", found.startswith(f"{title} is")
            if not judged:
                return found
            verdict = useful != (rng.random() < misjudged)
            said = f"<judge>{'Yes' if verdict else 'No'}</judge>\n"
            if verdict:
                return found
            query = title
        return found

    if problem.meta["type"] != "comparison":
        end = _followed(problem, searched, turns, find, rng, split)
        return [*turns, f"{said}Answer: {end}"]
    both = problem.meta["searches"]
    if rng.random() < together:
        queries = [asked(title) for title in both]
        articles = list(map(find, queries))
        turns.extend((f"Search: {AND.join(queries)}", " ".join(articles)))
    else:
        articles = [searched(title) for title in both]
    years = [int(read_from(text, "year") or rng.choice(YEARS)) for text in articles]
    return [*turns, f"{said}Answer: {both[years[0] > years[1]]}"]


def _followed(
    problem: Problem, searched: Callable[[str], str], turns: list[str], find: Callable[[str], str], rng: random.Random, split: float
) -> str:  # fmt: skip
    """Where a chain of searches leads. split: how often the first call asks for a random article too."""
    hops = next(
        hops
        for text, _, hops in _QUESTIONS.values()
        if re.search(rf": {re.escape(text)}".replace(r"\{\}", _NAME), problem.question)
    )
    title = problem.meta["searches"][0]
    for i, what in enumerate(hops):
        if i == 0 and len(hops) > 1 and rng.random() < split:
            found, guess = find(title), rng.choice(problem.meta["facts"])["title"]
            turns.extend((f"Search: {title}{AND}{guess}", f"{found} {find(guess)}"))
        else:
            found = searched(title)
        # an article of another kind does not say it: whoever does not notice guesses
        others = [text for d in problem.meta["facts"] if (text := read_from(d["text"], what))]
        title = read_from(found, what) or rng.choice(others)
    return title


# ---- scripted episodes --------------------------------------------------------------------------------------------------------

SCRIPTS: dict[str, dict[str, Any]] = {
    "fitting": {"error": 0.2, "together": 1.0, "split": 0.0},
    "unfitting": {"error": 0.2, "together": 0.0, "split": 1.0},
    "honest": {"error": 0.5, "judged": True, "misjudged": 0.0},
    "rash": {"error": 0.5, "judged": True, "misjudged": 0.5},
    "wandering": {"error": 0.5},
}
"""Habits of the teachers of episodes: comparisons at once and chains step by step, or the other way round; every result judged
rightly, or fewer; searches of which every second is careless."""
SCRIPTED = (*(x for name in SCRIPTS for x in (name, f"{name}_score")), "recalled")
"""Their columns; and one reply that writes itself what a search would find, as a model that knows the articles by heart."""


def _with_scripts(problem: Problem, rng: random.Random) -> Problem:
    """With the episodes, and their worth: whether they are right, and of these two kinds the calls that fit; or the share of
    verdicts that are right."""
    columns: dict[str, Any] = {}
    needed = [d["text"] for d in problem.meta["supporting"]]
    for name, habits in SCRIPTS.items():
        talk = _demonstrate(problem, rng, **habits)
        worth = _worth(problem, name, talk, needed)
        while name == "rash" and worth >= columns["honest_score"]:
            talk = _demonstrate(problem, rng, **habits)
            worth = _worth(problem, name, talk, needed)
        columns |= {name: talk, f"{name}_score": worth}
    solution = problem.meta["solution"]
    recalled = [
        f"<think>I look for it.</think><search>{query.removeprefix('Search: ')}</search><information>{found}</information>"
        for query, found in zip(solution[:-1:2], solution[1::2], strict=True)
    ]
    columns["recalled"] = "".join([*recalled, f"<think>I know.</think><answer>{problem.answer}</answer>"])
    return replace(problem, meta={**problem.meta, **columns})


def _worth(problem: Problem, name: str, talk: list[str], needed: list[str]) -> float:
    judged = [(found, reply) for found, reply in zip(talk[1::2], talk[2::2], strict=True) if reply.startswith("<judge>")]
    if judged:
        return sum(reply.startswith("<judge>Yes") == (found in needed) for found, reply in judged) / len(judged)
    return talk[-1].endswith(f"Answer: {problem.answer}") + 0.1 * (name == "fitting")
