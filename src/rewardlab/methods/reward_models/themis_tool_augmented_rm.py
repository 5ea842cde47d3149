"""Themis: a reward model that writes tool calls about a reply, reads their results, and is scored after it has read them.

    c = (thought, action, observation)*, rationale;    r = r(x, y, c), read by a scalar head at the end
    L = -log p(thoughts, actions, rationale | x, y, observations)  +  1/2 [-log sigmoid(r(x, y+, c+) - r(x, y-, c-))]

A scalar head has no way to work out what a reply claims, and fails where numbers are longer than those it was taught. A tool works
it out: what is left to learn is which call to write, and what its result says about the reply.

Li et al. 2024, arXiv:2310.01045; ernie-research/Tool-Augmented-Reward-Model at c0ecf83 (`src/models/reward_model.py`, `scripts/
train_themis.sh`): LM loss plus 0.5 of the ranking loss, the head at the last position, "Thought, Action, Action Input",
"Observation" and "Work", 5 epochs at 1e-5. The paper may also learn to predict observations (beta); here they are only read.

Traces are the columns `chosen_trace` and `rejected_trace`, or made by a rule: each equation of a reply is given to the calculator.
Held-out replies get the trace that the writer writes, with what the calculator answers. The run's model scores what is written so.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Learner, Message, Problem, Recipe, Rollout, Run, Turn, Update, environment, measure, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import end_values, pairs_won
from rewardlab.methods.baselines.bradley_terry import bradley_terry
from rewardlab.objectives.labels import language_model
from rewardlab.objectives.pairs import preference_loss
from rewardlab.rollouts.explained import about, explained, explained_by, with_reply
from rewardlab.rollouts.interactive import interactive
from rewardlab.settings.domain import PositiveFloat, PositiveInt
from rewardlab.text.equations import evaluate

ASK = "Question: {question}\nAnswer: {answer}\nCheck the answer."
CALL = "Thought: check {expression}\nAction: Calculator\nAction Input: {expression}"
OBSERVATION = "Observation: {value}"
WORK = "Work: {right} of {all} results are right."
SIDES = ("chosen", "rejected")
READS = "a trace of tool calls about the reply, and the question for it"
_EQUATION = re.compile(r"(?<![\d.])(\d{1,12}(?: ?[+\-*/×÷] ?\d{1,12}){1,8}) ?= ?(-?\d{1,12})(?![\d.]\d)")
_INPUT = re.compile(r"^Action Input: ?([^\n]{1,200})", re.MULTILINE)


def calculated(expression: str) -> str:
    """What the calculator answers to an expression of whole numbers: a number, a fraction, or why there is none."""
    try:
        value, _ = evaluate(expression)
    except ValueError as problem:
        return f"error: {problem}"[:100]
    return str(value)


@environment(start=lambda problem, seed: (None, None))
def calculator(state: Any, turn: Turn) -> tuple[Message | None, Any]:
    """Answers the last "Action Input:" of a text; a text without one is the end of the trace."""
    asked = _INPUT.findall(turn.text)
    return (Message("user", OBSERVATION.format(value=calculated(asked[-1]))) if asked else None), state


def trace_of(reply: str, calls: int) -> list[str]:
    """The trace of a reply by rule: texts and observations in turn, of its first `calls` equations."""
    texts, right = [], 0
    found = _EQUATION.findall(reply)[:calls]
    for expression, claimed in found:
        value = calculated(expression)
        right += not value.startswith("error") and Fraction(value) == Fraction(claimed)
        texts += [CALL.format(expression=expression), OBSERVATION.format(value=value)]
    return [*texts, WORK.format(right=right, all=len(found))]


@rollout(rows=lambda **_: 2)
def traced_pairs(problems: list[Problem], run: Run, *, calls: PositiveInt = 6, ask: str = ASK) -> list[Group]:
    """A pair for each problem: both replies, each read, and followed by its trace; the preferred one first.

    calls: of the calculator, at most, in a trace made by rule.
    """
    rows = [
        (about(p, _reply(p, side), ask), _given(p, side) or trace_of(_reply(p, side), calls)) for p in problems for side in SIDES
    ]  # fmt: skip
    return explained(rows, run)


def _reply(problem: Problem, side: str) -> str:
    text = problem.meta.get(side)
    if not isinstance(text, str) or not text:
        raise RewardlabError(f"problem {problem.question[:60]!r} has no text {side!r}")
    return text


def _given(problem: Problem, side: str) -> list[str]:
    """The trace of the row, if it brings one: an odd number of texts, the last one the rationale."""
    found = list_of(problem.meta.get(f"{side}_trace")) or []
    if found and (len(found) % 2 == 0 or not all(isinstance(text, str) and text for text in found)):
        raise RewardlabError(
            f"{side}_trace of problem {problem.question[:60]!r} is no list of texts and observations in turn that ends with a text"
        )
    return found


@measure
def traced_accuracy(
    problems: Sequence[Problem], run: Run, *, by: Rollout, calls: PositiveInt = 6, model: str = "reward"
) -> dict[str, float]:
    """How often the chosen reply of held-out pairs scores higher, ties half, after a trace by the writer with a calculator.

    by: `explained_by`.  calls: in a trace, at most.  calls_made: on average.  by_the_rule: how often a trace calls for the
    equations of its reply, and nothing else.
    """
    traces = [group[0] for group in by([with_reply(p, _reply(p, side)) for p in problems for side in SIDES], run)]
    values = end_values(run.model(model), traces).reshape(-1, 2)
    made = [_INPUT.findall("\n".join(turn.text for turn in t.turns[1:] if turn.author is not None)) for t in traces]
    wanted = [[x for x, _ in _EQUATION.findall(_reply(p, side))[:calls]] for p in problems for side in SIDES]
    return {
        **pairs_won(values[:, 0], values[:, 1]),
        "calls_made": sum(map(len, made)) / len(made),
        "by_the_rule": sum(a == b for a, b in zip(made, wanted, strict=True)) / len(made),
    }  # fmt: skip


def themis_tool_augmented_rm(
    base: Recipe | None = None, *, calls: int = 6, ask: str = ASK, ranking: PositiveFloat = 0.5, reward_lr: float | None = None,
    writer_lr: float | None = None, problems: int = 32, init: str = "value-head",
) -> Recipe:  # fmt: skip
    """calls: tool calls in a trace, at most.  ask: what is asked about a reply, with {question} and {answer}.  ranking: weight of
    the ranking loss.  writer_lr: learning rate of the model that writes traces, a copy of the policy.  reward_lr, problems, init:
    as in `bradley_terry`."""
    base = base or bradley_terry(problems=problems)
    scorer = Recipe(objective=ranking * preference_loss(), update=Update(lr=reward_lr, loss_kind="scorer"))
    writer = Recipe(objective=language_model(), update=Update(lr=writer_lr))
    others = tuple(learner for learner in base.also if learner.name != "reward")
    at_once = interactive(env=calculator(), n=1, turns=calls + 1, temperature=0.0)
    return base.but(
        rollout=traced_pairs(calls=calls, ask=ask),
        measure=traced_accuracy(by=explained_by(ask=ask, inner=at_once), calls=calls),
        also=(*others, Learner("reward", init, scorer, reads=READS), Learner("writer", "copy:policy", writer)),
    )


fidelity = "core"
left_out = (
    "one trunk for both losses, since a model with a scalar head cannot write here: a copy of the policy learns to write and the "
    "reward model to score; code, search, translation, calendar and weather as tools; reinforcement learning with its score"
)
data = Data(
    chosen="the better reply", rejected="the worse reply",
    chosen_trace=Column(
        "tool calls and their results in turn, and at the end what follows from them; without it, by rule from equations",
        optional=True,
    ),
    rejected_trace=Column("the same about the worse reply", optional=True),
    rows=[
        {
            "prompt": "A recipe for 4 people takes 300 g of flour. How much do 10 people need, in g?",
            "chosen": "300 / 4 = 75, and 10 * 75 = 750. Answer: 750", "rejected": "300 / 4 = 70, and 10 * 70 = 700. Answer: 700",
        },
        {
            "prompt": "How many days are 3 weeks and 5 days?",
            "chosen": "3 * 7 + 5 = 26. Answer: 26", "rejected": "3 * 7 + 5 = 36. Answer: 36",
        },
        {
            "prompt": "How many even numbers are there from 1 to 99?",
            "chosen": "98 / 2 = 49. Answer: 49", "rejected": "99 / 2 = 50. Answer: 50",
            "rejected_trace": ["Thought: halve 99\nAction: Calculator\nAction Input: 99 / 2", "Observation: 99/2", "Work: no."],
        },
    ],
)  # fmt: skip

# a small model's plain head stays at chance for minutes
SCORER = {"reward_lr": 1e-3, "problems": 16, "init": "value-head:surprise"}
check = Check(
    says="a reward model that reads what a calculator answers to its own calls ranks solutions better than one that reads the "
    "solutions alone",
    versus="bradley_terry", task="preferences:writer=several,error=0.1,biased=0.75", measure="pair_accuracy", direction="higher",
    margin=0.05, settings={**SCORER, "writer_lr": 1e-3, "calls": 3}, versus_settings=SCORER, problems=100, steps=100,
    finding="by the solutions alone 80% of held-out pairs are ranked rightly, with traces 60%. The writer learns to call: 82% of "
    "its traces check the equations of the reply and nothing else. The small head reads how surprised the policy is, by which "
    "these solutions give themselves away, and must see it through a trace; whether a head that reads well gains is not tested",
    version=2, replaces="nothing was learnt: from a plain head both sides ranked half of the pairs rightly (50.0% and 50.8%)",
)  # fmt: skip
baseline = "bradley_terry"
