"""Answers about people, of which each sentence may be true or false, beside documents that are sometimes wrong.

    Who are the boss and the friend of Ann?         1 Dee 0         faithful to the document, but the boss is Dee
    - The boss of Ann is Bob.                       0 Cal 1         not what the document says, but right
    - The friend of Ann is Gus.
    1. The boss of Ann is Bob.
    2. The friend of Ann is Cal.

The facts are the same in all problems, and learnt by heart. A judge writes a line for each sentence: whether it agrees with the
documents, what the judge remembers, and whether the sentence is right. The careless one misremembers, or goes by the document.
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Score, Task, Trajectory, ask
from rewardlab.judges.forms import own_form
from rewardlab.judges.sentences import LABELS, Sentence, agreement, read, sentences_of, to_judge, written
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Paired
from rewardlab.tasks.sources import changed, test_set, training
from rewardlab.worlds.facts import NAMES

PEOPLE = NAMES[:12]
RELATIONS = ("boss", "friend", "mother")
FORM = "{prompt}\n{reply}"
"""How a small judge is shown an answer: the documents stand in the prompt, and it needs no words about what to do."""
LINE = "{faithful} {reason} {correct}"
PATTERN = r"(?P<faithful>[01]) \w+ (?P<correct>[01])"


def truth(person: str, relation: str) -> str:
    """Who it is, in all problems: another person for each relation."""
    return PEOPLE[(PEOPLE.index(person) * 5 + 1 + 2 * RELATIONS.index(relation)) % len(PEOPLE)]


def documented(
    *, wrong: Share = 0.35, false: Share = 0.4, error: Share = 0.1, trusts: Share = 0.3, judged: bool = False,
    test_size: PositiveInt = 300, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Answers of two sentences.

    wrong: the share of documents that are.  false: of sentences that are; half of them say what a wrong document says, if it is
    wrong.  error: how often the careless judge misremembers.  trusts: how often it takes the document's word as its memory.
    judged: the rows are a judge's prompts.  size: so many training problems, in epochs; None: endless.
    """
    key, sample = ("documented", wrong, false), partial(_sample, wrong=wrong, false=false)
    train, test = training(sample, key, size), test_set(sample, key, test_size)
    teacher = f"wrong={wrong},false={false},error={error},trusts={trusts}"
    return Task(
        name="documented",
        train=Paired(train, _shown) if judged else train,
        test=changed(test, _shown) if judged else test,
        verifier="right_labels",
        max_new=28,
        about="sentences about people to be judged right or wrong, beside documents that may be wrong",
        demonstrate=partial(_demonstrate, error=error, trusts=trusts) if judged else None,
        columns=("prompt", "documents", "sentences", *((LABELS,) if judged else ())),
        warmup_steps=400,
        warmed_as=None if judged else f"documented:judged=true,{teacher}",
    )


def line(person: str, relation: str, other: str) -> str:
    return f"The {relation} of {person} is {other}."


def _sample(rng: random.Random, *, wrong: float, false: float) -> Problem:
    person, relations = rng.choice(PEOPLE), rng.sample(RELATIONS, 2)
    documents, sentences = [], []
    for relation in relations:
        known = truth(person, relation)
        others = [x for x in PEOPLE if x not in (known, person)]
        told = rng.choice(others) if rng.random() < wrong else known
        said = known
        if rng.random() < false:
            said = told if told != known and rng.random() < 0.5 else rng.choice(others)
        documents.append(line(person, relation, told))
        sentences.append({
            "text": line(person, relation, said), "faithful": int(said == told), "correct": int(said == known), "reason": known,
        })  # fmt: skip
    question = "\n".join([f"Who are the {' and the '.join(relations)} of {person}?", *(f"- {x}" for x in documents)])
    return ask(question, None, documents=documents, sentences=sentences)


def _shown(problem: Problem, _: random.Random | None = None) -> Problem:
    found = sentences_of(problem)
    return to_judge(problem, [s.text for s in found], own_form("verdict", FORM), [(s.faithful, s.correct) for s in found])


def _demonstrate(problem: Problem, rng: random.Random, *, error: float, trusts: float) -> str:
    """A careless judge's labels, which follow from what it takes to be true."""
    judged = []
    for document, s in zip(problem.meta["documents"], sentences_of(problem), strict=True):
        told, said = (text.rstrip(".").rpartition(" ")[2] for text in (document, s.text))
        taken = told if rng.random() < trusts else rng.choice(PEOPLE) if rng.random() < error else s.reason
        judged.append(Sentence(s.text, said == told, said == taken, taken))
    return written(judged, LINE)


@reward
def right_labels(trajectory: Trajectory) -> Score:
    """1 where a small judge's labels are all right, else 0."""
    labels = trajectory.problem.meta.get(LABELS)
    if not labels:
        return Score(None, why=f"the problem is no question to a judge: it has no column {LABELS!r}")
    return Score(float(agreement(read(trajectory.reply, PATTERN, len(labels)), labels) == 1.0))
