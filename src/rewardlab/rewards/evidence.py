"""Whether each step of a reply is supported by retrieved evidence, checked while the reply is being written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rewardlab.core import Group, Problem, Run, Sampling, Score, Scores, Trajectory
from rewardlab.data.values import list_of
from rewardlab.rewards.monte_carlo import count_cost
from rewardlab.rewards.own_verdict import chance_of
from rewardlab.rewards.reward import reward
from rewardlab.rewards.steps import step_texts, unequal
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.bm25 import index_of, words
from rewardlab.text.filled import filled
from rewardlab.text.splitters import mark

SEARCH = "Search:"
ASK = (
    "Question:\n{question}\n\nReasoning so far:\n{steps}\n\nMust something be looked up to tell whether the last step is right? "
    "If so, write one line 'Search: what to look for'. If not, write 'No search'."
)
DECIDE = "Question:\n{question}\n\nEvidence:\n{evidence}\n\nReasoning so far:\n{steps}\n\nIs the last step right? Answer + or -."
NONE = "none"
"""What stands for the evidence of a step for which nothing is looked up."""


@dataclass(frozen=True)
class Beginning:
    """A reply up to the end of a step: the problem, and the lines so far."""

    problem: Problem
    lines: tuple[str, ...]

    def asked(self, template: str, evidence: str = "") -> Problem:
        said = {"question": self.problem.question, "steps": "\n".join(self.lines), "evidence": evidence}
        return self.problem.reworded(filled(template, **said))


@dataclass(frozen=True)
class Agent:
    """How an agent judges: the settings of `evidenced_steps`."""

    model: str
    passages: str
    k: int
    ask: str
    decide: str
    max_new: int


def passages_of(problem: Problem, column: str) -> tuple[str, ...]:
    """The texts of the column, which may have titles, or none."""
    given = problem.meta.get(column)
    found = [_titled(x) for x in (given if isinstance(given, tuple) else list_of(given) or ())]
    return () if any(text is None for text in found) else tuple(text for text in found if text)


def _titled(document: Any) -> str | None:
    if isinstance(document, dict):
        return "\n".join(str(document[key]) for key in ("title", "text") if document.get(key))
    return document if isinstance(document, str) else None


def query_in(text: str) -> str | None:
    """What a line "Search: ..." asks for; None where there is none."""
    asked = (line.strip().removeprefix(SEARCH).strip() for line in text.splitlines() if line.strip().startswith(SEARCH))
    return next((query for query in asked if query), None)


@reward(over="groups")
def evidenced_steps(
    groups: list[Group], run: Run, *, model: str = "judge", passages: str = "passages", k: PositiveInt = 2, ask: str = ASK,
    decide: str = DECIDE, max_new: PositiveInt = 64,
) -> Scores:  # fmt: skip
    """At the end of each step, the chance that it is right, by an agent that may retrieve evidence first.

    The agent, a model of the run, reads the reply up to the step and writes a query, or none; then it reads the `k` best of the
    problem's passages (BM25), and says + or -: the step earns p(+) / (p(+) + p(-)). Equal beginnings are judged once in a call.
    passages: the column that holds the texts.  ask, decide: what it reads.  max_new: tokens of a query.
    No label where a question does not fit the agent's context.  Sohn et al. 2026, arXiv:2604.09482
    """
    rows = [t for group in in_lines(groups, run) for t in group]
    lines = [step_texts(t, "newline") for t in rows]
    begun = [
        [Beginning(t.problem, tuple(own[:i])) for i in range(1, len(own) + 1)] if len(own) == len(t.steps) else []
        for t, own in zip(rows, lines, strict=True)
    ]
    different = list({(b.problem.key, b.lines): b for row in begun for b in row}.values())
    chances = _judged(different, run, Agent(model, passages, k, ask, decide, max_new))
    known = {(b.problem.key, b.lines): x for b, x in zip(different, chances, strict=True)}
    said = [[known[b.problem.key, b.lines] for b in row] for row in begun]
    scores = iter([_score(t, own, x) if x else unequal(own, t) for t, own, x in zip(rows, lines, said, strict=True)])
    return [[next(scores) for _ in group] for group in groups]


def _judged(begun: Sequence[Beginning], run: Run, how: Agent) -> list[float | None]:
    agent, max_new = run.model(how.model), how.max_new
    first = [b.asked(how.ask) for b in begun]
    read = agent.read([Trajectory(p) for p in first], [p.prompt for p in first]) if first else []
    fits = [i for i, t in enumerate(read) if len(t) + max_new <= agent.context]
    said = agent.extend([read[i] for i in fits], Sampling(max_new, 0.0), run.rng("evidence")) if fits else []
    queries = {i: query_in(t.reply) for i, t in zip(fits, said, strict=True)}
    texts = [_evidence(b, queries.get(i), how.passages, how.k) for i, b in enumerate(begun)]
    if begun:
        run.log("searched", sum(q is not None for q in queries.values()) / len(begun))
    second = [b.asked(how.decide, text) for b, text in zip(begun, texts, strict=True)]
    told = agent.read([Trajectory(p) for p in second], [p.prompt for p in second]) if second else []
    room = [i for i, t in enumerate(told) if len(t) + 1 < agent.context]
    count_cost(run, len(fits), sum(map(len, read)) + sum(map(len, told)))
    chances = dict(zip(room, chance_of(agent, [told[i] for i in room], [""] * len(room), "+", "-"), strict=True))
    return [chances.get(i) for i in range(len(begun))]


def _evidence(begun: Beginning, query: str | None, passages: str, k: int) -> str:
    known = passages_of(begun.problem, passages)
    return "\n".join(index_of(known).best(query, k)) or NONE if query and known else NONE


def _score(t: Trajectory, lines: Sequence[str], said: Sequence[float | None]) -> Score:
    steps = [(at, x) for at, x in zip(t.steps, said, strict=True) if x is not None]
    return Score(steps=steps) if steps else Score(None, why="no step fits the agent's context")


@reward(over="groups")
def borne_out(groups: list[Group], run: Run, *, passages: str = "passages") -> Scores:
    """As `evidenced_steps`, by word matching: 1 at the end of a step whose words occur in a passage in its order, 0 if all but one
    do.

    The passages are the two that the step finds (BM25). A step of which they say neither has no label, and nor has one that is not
    looked up: one that holds fewer than two words that some of the problem's passages have and others have not, such as a last line
    with the answer. A reply without a label earns 1/2.
    """
    return [[_by_words(t, passages) for t in group] for group in in_lines(groups, run)]


def _by_words(t: Trajectory, column: str) -> Score:
    known, lines = passages_of(t.problem, column), step_texts(t, "newline")
    if not known:
        return Score(None, why=f"the problem has no column {column!r} with a list of texts")
    if len(lines) != len(t.steps):
        return unequal(lines, t)
    texts: list[set[str]] = [set(words(x)) for x in known]
    rare = texts[0].union(*texts) - (texts[0].intersection(*texts) if len(texts) > 1 else set())
    looked_up = [(at, words(x)) for at, x in zip(t.steps, lines, strict=True) if len(set(words(x)) & rare) >= 2]
    said = [(at, _borne_out(own, [words(x) for x in index_of(known).best(" ".join(own), 2)])) for at, own in looked_up]
    labels = [(at, label) for at, label in said if label is not None]
    return Score(steps=labels) if labels else Score(0.5, why="nothing that is known was stated")


def _borne_out(said: list[str], found: list[list[str]]) -> float | None:
    if any(_in_order(said, text) for text in found):
        return 1.0
    without = [[*said[:i], *said[i + 1 :]] for i in range(len(said))]
    return 0.0 if any(_in_order(most, text) for text in found for most in without) else None


def _in_order(said: list[str], found: list[str]) -> bool:
    """Whether words stand in a text in their order, perhaps with others between them."""
    left = iter(found)
    return all(word in left for word in said)


def in_lines(groups: list[Group], run: Run) -> list[Group]:
    """The rollouts with the ends of their lines as steps, unless the rollout has marked steps."""
    policy = run.policy
    return [[t if t.steps else mark(t, "newline", policy.pieces, policy.name) for t in group] for group in groups]
