"""Questions over small graphs of triples, with roundabout ways to the answer and wrong ones that end there by chance.

    Who is the boss of the friend of Ann?         <explore>Ann</explore>      ->   Ann | friend | Bob  Cal | boss | Ann  ...
                                                  <choose>friend</choose>     ->   Ann | friend | Bob
                                                  <explore>Bob</explore>      ->   Bob | boss | Dee  ...
                                                  <choose>boss</choose>       ->   Bob | boss | Dee
                                                  <answer>Dee</answer>

The columns are those of a user: triples, entities that the question names, the answer. `chain` is the way that the question asks
for, which no method reads.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, Task, Trajectory, Turn, ask, measure, rollout, seed_of
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.util.ranking import auc_of
from rewardlab.worlds.facts import NAMES, RELATIONS


def kin(
    *, hops: PositiveInt = 2, people: PositiveInt = 8, relations: PositiveInt = 4, error: Share = 0.5, test_size: PositiveInt = 300,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Chains of `hops` relations among `people`, who have `relations` relations each.

    error: how often, per hop, the teacher of `demonstrate` takes another relation.  size: so many training problems, in epochs;
    None: endless.
    """
    if not hops < people <= len(NAMES) or not 1 < relations <= len(RELATIONS):
        raise RewardlabError(
            f"kin: people must be more than hops and at most {len(NAMES)}, and relations from 2 to {len(RELATIONS)}; "
            f"not {people} and {relations}"
        )
    sample, key = partial(_sample, hops=hops, people=people, relations=relations), ("kin", hops, people, relations)
    return Task(
        name="kin",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="tagged_answer",
        max_new=24,
        about=f"who is whose what: {hops} hops through a graph of triples",
        demonstrate=partial(_demonstrate, error=error),
        turns=2 * hops + 1,
        columns=("prompt", "answer", "triples", "entities", "chain", "solution"),
    )


def _sample(rng: random.Random, *, hops: int, people: int, relations: int) -> Problem:
    persons, known = rng.sample(NAMES, people), rng.sample(RELATIONS, relations)
    chain, asked = rng.sample(persons, hops + 1), [rng.choice(known) for _ in range(hops)]
    target = {(p, r): rng.choice([x for x in persons if x != p]) for p in persons for r in known}
    # last, so that the chain replaces random triples of the same person and relation
    way = [[p, r, q] for p, r, q in zip(chain, asked, chain[1:], strict=False)]
    target |= {(p, r): q for p, r, q in way}
    triples = [[p, r, q] for (p, r), q in target.items()]
    rng.shuffle(triples)
    question = f"Case {rng.randint(1, 9999)}: who is {''.join(f'the {r} of ' for r in reversed(asked))}{chain[0]}?"
    solution = _talk(triples, chain[0], asked)
    return ask(question, chain[-1], triples=triples, entities=[chain[0]], chain=way, solution=solution)


def _talk(triples: list[list[str]], person: str, asked: list[str]) -> list[str]:
    """Replies that follow these relations, with what is shown between them."""
    texts: list[str] = []
    for relation in asked:
        around = [t for t in triples if person in (t[0], t[2])]
        kept = [t for t in around if t[1] == relation and t[0] == person]
        shown = [t for t in around if t[1] == relation]
        texts += [f"<explore>{person}</explore>", _shown(around), f"<choose>{relation}</choose>", _shown(shown)]
        person = kept[0][2]
    return [*texts, f"<answer>{person}</answer>"]


def _shown(triples: list[list[str]]) -> str:
    return "\n".join(" | ".join(t) for t in triples)


def _demonstrate(problem: Problem, rng: random.Random, *, error: float) -> list[str]:
    known = sorted({t[1] for t in problem.meta["triples"]})
    asked = [rng.choice(known) if rng.random() < error else t[1] for t in problem.meta["chain"]]
    return _talk(problem.meta["triples"], problem.meta["entities"][0], asked)


# ---- Walks of nobody's, whose turns are known to be of use or not -----------------------------------------------------


@rollout
def wandering(problems: list[Problem], run: Run, *, n: PositiveInt = 16) -> list[Group]:
    """n walks of each problem, by chance alone: from the start one to four relations, whatever they are, and then an answer."""
    return [[_walk(p, random.Random(seed_of("kin", run.seed, run.moment, p.key, i))) for i in range(n)] for p in problems]


def _walk(problem: Problem, rng: random.Random) -> Trajectory:
    triples, known = problem.meta["triples"], sorted({t[1] for t in problem.meta["triples"]})
    texts = _talk(triples, problem.meta["entities"][0], [rng.choice(known) for _ in range(rng.randint(1, 4))])
    one = np.zeros(1, np.int64)
    turns = [Turn(None if i % 2 else "policy", one, text=text) for i, text in enumerate(texts)]
    return Trajectory(problem, (Turn(None, one), *turns), "end")


@measure
def turns_told_apart(problems: Sequence[Problem], run: Run, *, rollout: Rollout, process: Reward) -> dict[str, float]:
    """apart.process: the AUC by which the rewards of turns tell those that follow what was asked for from those that do not;
    apart.outcome: that of the right answer in the end.  useful: the share of turns that do. Answers are no such turns."""
    groups = rollout(list(problems), run)
    told: dict[str, list[tuple[float, bool]]] = {"process": [], "outcome": []}
    for group, row, verdicts in zip(groups, process(groups, run), run.verdicts(groups), strict=True):
        for t, score, verdict in zip(group, row, verdicts, strict=True):
            at = np.zeros(len(t))
            for term in score.terms.values():
                for position, value in term.steps:
                    at[position] += value * (term.weight or 0.0)
            for end, use in zip(t.ends, _uses(t), strict=False):
                told["process"].append((float(at[end]), use))
                told["outcome"].append((verdict.value or 0.0, use))
    useful = [use for _, use in told["process"]]
    apart = {f"apart.{name}": auc_of(scored) for name, scored in told.items()}
    return apart | {"useful": float(np.mean(useful)), "n": float(len(useful))}


def _uses(t: Trajectory) -> list[bool]:
    """Whether each turn but the answer explores someone on the chain for the first time, or chooses what is asked for there."""
    asked = {p: r for p, r, _ in t.problem.meta["chain"]}
    found: list[bool] = []
    person, seen = "", set()
    for reply in t.replies[:-1]:
        _, tag, said = reply.replace("</", "<").replace(">", "<").split("<")[:3]
        if tag == "explore":
            person = said
            found.append(person in asked and person not in seen)
            seen.add(person)
        else:
            found.append(asked.get(person) == said)
    return found
