"""ThetaEvolve: evolve programs in a database, and train the model that writes children on their scores during the search.

    parent ~ database(problem);   children ~ pi(. | problem, parent, its score);   those that work join the database
    r = -.4 no program;  -.3 the parent again, or, with `known`, an old program;  -.2 it does not work;
        scale ((score - low) / (high - low))^power otherwise;               GRPO over the children of one parent

Evolution by a model that stays as it is forgets what it found out about searching. Where nothing is lost by repeating the parent, a
policy soon does so, and the search stands still: hence the penalty on what is not new.

Wang et al. 2025, arXiv:2511.23473, and the released code (ypwang61/ThetaEvolve; read in yanyi74/ThetaEvolve-adapted, d5318c2,
openevolve_adapted/openevolve/database.py, modular_utils/error_constants.py, score_transform.py, evolving_gym/single_task_gym.py,
slime/rollout/rm_hub/evolving_gym_rm.py, scripts/run_thetaevolve_task.sh): 10,000 programs, of which the parent is any of the
archive, the best 1000, in .6 of the cases and else any of all, each as likely; the penalties, of which that for known programs is
off (level 1 there); programs are equal whose comments alone differ, and here also whose layout does; a reply without a block has no
program; the shaping (power 3 and scale 5 for its packings); children that join after the round; no further programs in the prompt.
Its scripts (ypwang61/ThetaEvolve, 7c12898, run.sh, general.sh) pay scores as they are, take 16 children of each of 32 parents a
step, clip at 1.28 and keep groups whose rewards are all equal; here that is the base's, GRPO.

Programs that work need a reward above 0 (`--reward`, or the task's verifier: code runs in the sandbox). A problem that is there
several times in a step, as a single training problem is with `--problems 32`, has another parent each time.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, Score, Scores, Term, Trajectory, measure, rollout, uniform_of
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.scores import derive
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt, Share
from rewardlab.text.answers import after_thinking
from rewardlab.text.blocks import program_of as block_of
from rewardlab.text.blocks import program_spans
from rewardlab.text.filled import filled
from rewardlab.text.unit_tests import UNREADABLE

# ---- Databases of programs and their scores, from which parents are sampled, and which children join -----------------

MEMORY = "programs.database"
"""The key of `run.memory` that holds, by the key of the problem, a list of entries."""
Entry = dict[str, Any]
"""program: its text.  score.  step: in which it was written; -1 for the first."""
Sampler = Callable[[list[Problem], Run], list[Group]]
Judge = Callable[[list[Group], Run], Scores]
ASK = "{question}\n\nA program with the score {score}:\n{program}\n\nWrite a better program, as a whole."
"""What the policy reads, with {question}, {score} and {program}."""
PARENT, LONGEST = "parent", 60_000
"""The column of the parent, and the characters of a program above which it is not parsed."""
_DEFINED = re.compile(r"^(?:async def|def|class) (\w+)", re.MULTILINE)


def program_of(reply: str, parent: str) -> str:
    """The program of a reply, read as the verifier of code reads it: of several blocks the last that defines a name of the parent.

    "" without a block, unless the reply is Python, or the parent is no Python either: then programs may stand there bare.
    """
    found = block_of(reply, lambda: _DEFINED.findall(parent)).strip()
    bare = not program_spans(after_thinking(reply))
    return "" if bare and syntax_of(parent) and not syntax_of(found) else found


@functools.lru_cache(1 << 15)
def syntax_of(program: str) -> str:
    """A hash of the syntax tree, in which comments and layout are not; "" for what is no Python."""
    try:
        tree = ast.dump(ast.parse(program)) if len(program) <= LONGEST else ""
    except UNREADABLE:
        return ""
    return tree and hashlib.blake2b(tree.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def same_of(program: str) -> str:
    """What equal programs share: their syntax, or the text of what is no Python."""
    return syntax_of(program) or program.strip()


def begun(problems: Sequence[Problem], run: Run, by: Judge, column: str) -> list[list[Entry]]:
    """The databases of problems that were not seen before: the first program of each, and what it scores as a reply."""
    texts = [p.meta.get(column) for p in problems]
    for p, text in zip(problems, texts, strict=True):
        if not isinstance(text, str) or not text.strip():
            raise RewardlabError(f"problem {p.question[:60]!r} has no first program in the column {column!r} to evolve")
    read = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = run.policy.write(read, [str(text).strip() for text in texts])
    scores = by([[t] for t in rows], run)
    return [[{"program": t.reply.strip(), "score": s.total or 0.0, "step": -1}] for t, (s,) in zip(rows, scores, strict=True)]


def parent_of(entries: Sequence[Entry], exploit: float, archive: int, key: tuple[Any, ...]) -> Entry:
    """Any of the `archive` best, the older of equals, in a share `exploit` of cases, else any; chance depends on the key alone."""
    # a stable sort: of equals the older come first
    known = sorted(entries, key=lambda e: -e["score"])[:archive] if uniform_of("exploit", *key) < exploit else entries
    return known[int(uniform_of("parent", *key) * len(known))]


def asked(problem: Problem, parent: Entry, ask: str) -> Problem:
    """The problem as the policy reads it, with its parent in the column `parent`; answer and columns stay."""
    question = filled(ask, question=problem.question, program=parent["program"], score=f"{parent['score']:.3f}")
    made = problem.reworded(question)
    return replace(made, meta={**made.meta, PARENT: parent["program"], "database": problem.key})


def inserted(entries: list[Entry], found: Sequence[tuple[str, float]], step: int, capacity: int) -> list[Entry]:
    """The database with new programs that scored above 0, of equal ones the one that is there; the worst leave, if it is full."""
    known, grown = {same_of(e["program"]) for e in entries}, [*entries]
    for program, score in found:
        if program and score > 0 and same_of(program) not in known:
            known.add(same_of(program))
            grown.append({"program": program, "score": score, "step": step})
    # a stable sort: of equals the older stay
    kept = {id(e) for e in sorted(grown, key=lambda e: -e["score"])[:capacity]}
    return [e for e in grown if id(e) in kept]


def one_round(
    problems: Sequence[Problem], tables: dict[str, list[Entry]], run: Run, *, inner: Sampler, by: Judge, capacity: int,
    exploit: float, archive: int, start: str, ask: str, at: int,
) -> list[Group]:  # fmt: skip
    """Children of a parent for each problem, which are scored and join its table; `at` numbers the round."""
    if new := [p for p in problems if p.key not in tables]:
        tables.update(zip((p.key for p in new), begun(new, run, by, start), strict=True))
    # a problem that is there several times in a step has parents of their own
    seen: Counter[str] = Counter()
    parents = []
    for p in problems:
        again = (seen[p.key],) if seen[p.key] else ()
        parents.append(parent_of(tables[p.key], exploit, archive, (run.seed, at, p.key, *again)))
        seen[p.key] += 1
    groups = inner([asked(p, parent, ask) for p, parent in zip(problems, parents, strict=True)], run)
    for group, row in zip(groups, by(groups, run), strict=True):
        key, parent = (group[0].problem.meta[column] for column in ("database", PARENT))
        found = [(program_of(t.reply, parent), s.total or 0.0) for t, s in zip(group, row, strict=True)]
        tables[key] = inserted(tables[key], found, at, capacity)
    return groups


# ---- How far a policy evolves programs, as it is, from their first ones on -------------------------------------------


@measure
def evolution(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, by: Reward | None = None, rounds: PositiveInt = 4,
    capacity: PositiveInt = 10_000, exploit: Share = 0.6, archive: PositiveInt = 1000, start: str = "start", ask: str = ASK,
) -> dict[str, float]:  # fmt: skip
    """best: the mean over problems of the best score after `rounds` of children of one parent, in databases of their own.

    first: after one round.  lazy: share of children that are their parents; works: that score above 0.
    rollout: the children of each parent.  by: a reward; None: the task's verifier.
    """
    part = by or run.verify
    tables, bests, children = dict[str, list[Entry]](), list[float](), list[tuple[bool, bool]]()
    for at in range(rounds):
        groups = one_round(
            problems, tables, run, inner=rollout, by=part, capacity=capacity, exploit=exploit, archive=archive, start=start,
            ask=ask, at=at,
        )  # fmt: skip
        scores = part(groups, run)
        children += [
            (same_of(program_of(t.reply, parent := t.problem.meta[PARENT])) == same_of(parent), (s.total or 0.0) > 0)
            for g, row in zip(groups, scores, strict=True) for t, s in zip(g, row, strict=True)
        ]  # fmt: skip
        bests.append(float(np.mean([max(e["score"] for e in tables[p.key]) for p in problems])))
    return {
        "best": bests[-1], "first": bests[0], "lazy": float(np.mean([x for x, _ in children])),
        "works": float(np.mean([x for _, x in children])), "n": float(len(problems)),
    }  # fmt: skip


# ---- What a program that was made of another is worth: its score, scaled, and penalties for what is no new program ---

NONE, LAZY, WRONG = -0.4, -0.3, -0.2
"""Of a reply without a program, of one that is known, and of one that does not work."""


def shaped(score: float, low: float, high: float, power: float, scale: float) -> float:
    """scale ((score - low) / (high - low))^power, the score cut to [low, high]."""
    return scale * ((min(high, max(low, score)) - low) / (high - low)) ** power


@reward(over="groups")
def child_reward(
    groups: list[Group], run: Run, *, inner: Reward, known: bool = False, lazy: NonNegativeFloat = -LAZY, min_score: float = 0.0,
    max_score: float = 1.0, power: PositiveFloat = 1.0, scale: PositiveFloat = 1.0,
) -> Scores:  # fmt: skip
    """The reward `inner` of a program from `min_score` to `max_score`, shaped; instead of it -.4 for a reply without a program,
    `lazy` off for one that is its parent, or, with `known`, stood in the problem's database before this step, and -.2 where `inner`
    pays nothing.

    For replies to problems with the column `parent`, as `evolving` makes them.  Logged: lazy, the share of such replies.
    """
    tables, scores = run.memory.get(MEMORY, {}), inner(groups, run)
    old = {key: {same_of(e["program"]) for e in table if e["step"] < run.step} for key, table in tables.items()} if known else {}
    judged = [
        [_judged(t, s, old, (lazy, min_score, max_score, power, scale)) for t, s in zip(*rows, strict=True)]
        for rows in zip(groups, scores, strict=True)
    ]
    flat = [is_lazy for row in judged for _, is_lazy in row]
    run.log("lazy", sum(flat) / max(1, len(flat)))
    return [
        [derive("child_reward", None if x is None else Term(x), [s]) for (x, _), s in zip(*rows, strict=True)]
        for rows in zip(judged, scores, strict=True)
    ]


def _judged(t: Trajectory, score: Score, old: dict[str, set[str]], how: tuple[float, ...]) -> tuple[float | None, bool]:
    meta, (lazy, *rest) = t.problem.meta, how
    parent = str(meta.get(PARENT) or "")
    program = program_of(t.reply, parent)
    if not program:
        return NONE, False
    if (same := same_of(program)) == same_of(parent) or same in old.get(str(meta.get("database")), ()):
        return -lazy, True
    if score.total is None:
        return None, False
    return (shaped(score.total, *rest) if score.total > 0 else WRONG), False


# ---- Replies that begin from programs of a database, which they join -------------------------------------------------


@rollout(wraps="inner", across_problems=True)
def evolving(
    problems: list[Problem], run: Run, *, inner: Rollout, by: Reward, capacity: PositiveInt = 10_000, exploit: Share = 0.6,
    archive: PositiveInt = 1000, start: str = "start", ask: str = ASK,
) -> list[Group]:  # fmt: skip
    """The samples of `inner` with a program of the problem's database in the prompt; the children join the database by their
    reward.

    by: a reward of replies; above 0 for what works.  capacity: programs of each problem that are kept, the best.  exploit: how
    often the parent is any of the `archive` best ones, and else any program.  start: the column of the first program.  ask: what is
    read.  The databases are in the run's memory. Logged: best, the mean over problems of the best score that was found.
    Wang et al. 2025, arXiv:2511.23473
    """
    tables = run.memory.setdefault(MEMORY, {})
    how: dict[str, Any] = {"capacity": capacity, "exploit": exploit, "archive": archive, "start": start, "ask": ask}
    groups = one_round(problems, tables, run, inner=inner, by=by, at=run.step, **how)
    run.log("best", sum(max(e["score"] for e in tables[p.key]) for p in problems) / len(problems))
    return groups


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def thetaevolve(
    base: Recipe | None = None, *, capacity: int = 10_000, archive: int = 1000, exploit: float = 0.6, lazy: float = 0.3,
    known: bool = False, low: float = 0.0, high: float = 1.0, power: float = 1.0, scale: float = 1.0, start: str = "start",
    ask: str = ASK, rounds: int = 4, children: int = 4,
) -> Recipe:  # fmt: skip
    """capacity: of the database.  archive, exploit: how often the parent is any of so many best programs, else any.  lazy: the
    penalty for the parent again; with `known` for every program of the database.  low, high, power, scale: of the shaping.  start:
    the column of first programs.  ask: what is read, with {question}, {score} and {program}.  rounds, children: of the evolution
    that is measured."""
    base = base or grpo()
    by = base.reward or correct()
    database = {"capacity": capacity, "exploit": exploit, "archive": archive, "start": start, "ask": ask}
    return base.but(
        rollout=evolving(inner=base.required("rollout"), by=by, **database),
        reward=child_reward(inner=by, known=known, lazy=lazy, min_score=low, max_score=high, power=power, scale=scale),
        measure=evolution(rollout=independent(n=children), by=base.reward, rounds=rounds, **database),
    )


fidelity = "core"
left_out = "islands, cells and restarts of the database; children as differences to their parents; -.1 for what runs and is invalid"
data = Data(
    answer='tests, {"tests": "assert ..."} or {"io": [["input", "output"], ...]}',
    start=Column("a first program, from which all others are made", setting="start"),
    rows=[
        {"prompt": "Improve add.", "answer": {"tests": "assert add(2, 3) == 5"}, "start": "def add(a, b):\n    return a + b"},
        {"prompt": "Improve twice.", "answer": {"tests": "assert twice(2) == 4"}, "start": "def twice(a):\n    return a + a"},
    ],
    verified_by="code",
)

check = Check(
    says="a policy that learnt while it searched evolves better packings of new problems than it did before",
    versus=None, task="packings:size=16", measure="best", direction="higher", margin=0.005, against="before.best",
    settings={"ask": "Pack.\n{score}\n{program}", "problems": 8}, problems=60, steps=30,
    fault=Within("before.lazy", low=0.15, says="children that repeat their parent"), learns=None, start=None, sanity=True,
    tried="first programs without a score in the prompt: -.029 (2 seeds), and children that worked less often",
    finding="in 30 steps children that repeat their parent fall from 53% to 3%, and those that work from 79% to 36%; the best "
    "packing after four rounds is .440, .435 before: too little to decide",
)  # fmt: skip
baseline = "grpo"
