"""RLAC: a critic names the one demand that a reply most likely fails, a validator checks only that, and both models learn from it.

    max_g min_c E[ v(x, y, c) ],   y ~ pi_g(. | x),   c ~ pi_c(. | x, y),   v in {0, 1}: whether y meets the demand c
    generator:  r(y) = v(x, y, c)        critic:  r(c) = 1 - v(x, y, c)
    both:       -log sigmoid(beta [log pi/old of the better - log pi/old of the worse]) over pairs with different rewards

A reply is good if it meets all demands, which is the minimum over them; to check all is dear, and a demand that is chosen by chance
is mostly one that is met. A critic that learns finds the minimum with one check, and follows the generator to new failures, where a
fixed one is soon satisfied.

Wu et al. 2025, arXiv:2511.01758, by its abstract, its project page and the authors' account of it (any online or offline algorithm
may train the two); no code was found. (inferred): the words; online pairs against the models as they sampled, as DPO needs a
reference of each model; n = 4 replies, 4 critiques of 2 of them; a critique that names no demand leaves its reply unharmed and is
paid 0. The validator runs an item's program where it has one, and else asks a frozen model.

`choice="random"` and `choice="all"` check a demand by chance, or every one, without a critic. Logged: validator_calls, of a step.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import Check
from rewardlab.core import (
    Batch,
    Group,
    Learner,
    Outputs,
    Part,
    Problem,
    Recipe,
    Rollout,
    Run,
    Sampling,
    Score,
    Scores,
    Trajectory,
    Update,
    objective,
    rollout,
    seed_of,
)  # fmt: skip
from rewardlab.core.part import decorator
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.passk import accuracy
from rewardlab.judges.forms import Reading, asking, conversation, own_form
from rewardlab.objectives.pairs import row_sum
from rewardlab.rewards.checklists import Item, check_programs, items_of, program_verdicts
from rewardlab.rewards.critiques import answers
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt
from rewardlab.text.answers import after_thinking
from rewardlab.worlds.failings import ASK

CRITICISE = (
    "An instruction and a reply follow. Name the one demand that the reply most likely fails: a single fact, rule or case that can "
    "be checked. Say it as a demand on the reply, in one sentence on the last line.\n\nInstruction:\n{prompt}\n\nReply:\n{reply}\n"
)
VALIDATE = (
    "An instruction, a reply and one demand on the reply follow. Check whether the reply meets this demand, whatever else is right "
    "or wrong with it. End with [[yes]] if it does, or [[no]] if it does not.\n\nInstruction:\n{prompt}\n\nReply:\n{reply}\n\n"
    "Demand:\n{item}\n"
)
CRITIC, VALIDATOR = "critic", "validator"
QUESTION, CRITICISED = "question", "criticised"
"""Columns of what a critic is asked: the instruction, and the reply."""
NOBODY = "nobody checks the demand: it has no program, and there is no validator (--validator)"
Choice = Literal["critic", "random", "all"]


class Case(NamedTuple):
    """A demand on a reply to an instruction; no demand where a critique names none."""

    problem: Problem
    question: str
    reply: str
    item: Item | None


def named(critique: str, items: Sequence[Item]) -> Item | None:
    """The item mentioned last, after any thinking, the longest of several that begin there; without items, the last line."""
    said = after_thinking(critique).strip()
    if not items:
        return Item(said.splitlines()[-1].strip()) if said else None
    found = [(said.lower().rfind(item.text.lower()), len(item.text)) for item in items]
    at = max(found)
    return items[found.index(at)] if at[0] >= 0 else None


def validated(cases: Sequence[Case], run: Run, validate: str, max_new: int) -> list[Score]:
    """v of each case: 1 if the reply meets the demand, or there is none, 0 if it does not; None, and why, where nobody can tell.

    Logs the checks that are made, added to those of this step.
    """
    found = [Score(1.0) if case.item is None else Score(None, why=NOBODY) for case in cases]
    by_program: dict[str, list[int]] = {}
    by_model: list[int] = []
    for i, case in enumerate(cases):
        if case.item is not None and case.item.program:
            by_program.setdefault(case.item.program, []).append(i)
        elif case.item is not None and VALIDATOR in run.models:
            by_model.append(i)
    for program, places in by_program.items():
        for i, verdict in zip(places, program_verdicts(program, [cases[i].reply for i in places]), strict=True):
            found[i] = Score(verdict, why="" if verdict is not None else "the program of the demand fails on the reply")
    for i, said in zip(by_model, _asked([cases[i] for i in by_model], run, validate, max_new), strict=True):
        found[i] = said
    calls = len(by_model) + sum(map(len, by_program.values()))
    run.log("validator_calls", run.metrics.get("validator_calls", 0.0) + calls)
    return found


def _asked(cases: Sequence[Case], run: Run, validate: str, max_new: int) -> list[Score]:
    asked = [asking(c.problem, validate, prompt=c.question, reply=c.reply, item=c.item.text if c.item else "") for c in cases]
    said = answers(run, VALIDATOR, asked, 1, Sampling(max_new, 0.0))[0] if asked else []
    read = [own_form("verdict").read(row[0]) if row else Reading(None, "the question does not fit its context") for row in said]
    return [
        Score(None, why=f"the validator: {said}; --validator names another, openai:URL#NAME too") if values is None
        else Score(float(values[0] > 0.5)) for values, said in read
    ]  # fmt: skip


# ---- the generator -------------------------------------------------------------------------------------------------------


@reward(over="groups", accepts=check_programs)
def survives(
    groups: list[Group], run: Run, *, choice: Choice = "critic", ask: str = CRITICISE, validate: str = VALIDATE,
    max_critique: PositiveInt = 256, max_validation: PositiveInt = 256, temperature: NonNegativeFloat = 1.0,
    column: str = "checklist", programs: bool = False,
) -> Scores:  # fmt: skip
    """1 for a reply that meets the demands that are checked, 0 for one that does not; no verdict where that cannot be told.

    choice: which are checked: the one that the critic names, one of the row's checklist by chance, or all of it.  programs: they
    alone check, and no validator."""
    rows = [t for group in groups for t in group]
    own = [items_of(t.problem.meta.get(column)) for t in rows]
    chosen = (
        _named_by_critic(rows, own, run, ask, max_critique, temperature) if choice == "critic" else _listed(rows, own, choice, run)
    )
    pairs = zip(rows, chosen, strict=True)
    cases = [Case(t.problem, conversation(t.problem), after_thinking(t.reply), item) for t, items in pairs for item in items]
    verdicts = iter(validated(cases, run, validate, max_validation))
    scores = iter([_worst([(item, next(verdicts)) for item in items]) for items in chosen])
    return [[next(scores) for _ in group] for group in groups]


def _named_by_critic(
    rows: Sequence[Trajectory], own: Sequence[Sequence[Item]], run: Run, ask: str, max_new: int, temperature: float
) -> list[list[Item | None]]:  # fmt: skip
    asked = [to_critic(t, ask) for t in rows]
    said, _ = answers(run, CRITIC, asked, 1, Sampling(max_new, temperature))
    return [[named(texts[0], items) if texts else None] for texts, items in zip(said, own, strict=True)]


def _listed(rows: Sequence[Trajectory], own: Sequence[Sequence[Item]], choice: Choice, run: Run) -> list[list[Item | None]]:
    if without := [t for t, items in zip(rows, own, strict=True) if not items]:
        said = f"choice={choice!r} checks items of a checklist, and the row of {without[0].problem.question[:60]!r} has none"
        raise RewardlabError(f"{said}: add the column 'checklist', or let a critic choose (choice='critic')")
    if choice == "all":
        return [list(items) for items in own]
    rng = random.Random(seed_of("rlac", run.seed, run.step))
    return [[rng.choice(items)] for items in own]


def _worst(found: Sequence[tuple[Item | None, Score]]) -> Score:
    """The minimum over demands; one that is not met decides, whatever is unknown of the others."""
    if failed := [item.text for item, v in found if item is not None and v.value == 0.0]:
        return Score(0.0, why=f"fails: {failed[0]}")
    if unknown := [v for _, v in found if v.value is None]:
        return unknown[0]
    return Score(1.0, why=", ".join(f"meets: {item.text}" if item else "no demand was named" for item, _ in found))


# ---- the critic ----------------------------------------------------------------------------------------------------------


def to_critic(t: Trajectory, ask: str) -> Problem:
    """The question to a critic about a reply."""
    said = after_thinking(t.reply)
    asked = asking(t.problem, ask, reply=said)
    return replace(asked, meta={**asked.meta, QUESTION: conversation(t.problem), CRITICISED: said})


problems_from = decorator(Part)


@problems_from
def to_criticise(
    groups: list[Group], scores: Scores, run: Run, *, each: PositiveInt = 2, ask: str = CRITICISE, max_new: PositiveInt = 256
) -> list[Problem]:
    """The first `each` different replies to every problem, to be criticised; those that do not fit the critic's context are not."""
    different = [list({t.reply: t for t in group}.values())[:each] for group in groups]
    asked = [to_critic(t, ask) for row in different for t in row]
    critic = run.model(CRITIC)
    read = critic.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
    return [p for p, t in zip(asked, read, strict=True) if len(t) + max_new <= critic.context]


@rollout(wraps="inner")
def critiques_of(problems: list[Problem], run: Run, *, inner: Rollout, max_new: PositiveInt = 256) -> list[Group]:
    """`inner` with replies of at most `max_new` tokens, since critiques are shorter than what they are about, or longer."""
    return inner(problems, replace(run, max_new=max_new))


@reward(over="groups")
def finds_failure(
    groups: list[Group], run: Run, *, validate: str = VALIDATE, max_validation: PositiveInt = 256, column: str = "checklist"
) -> Scores:  # fmt: skip
    """1 for a critique that names a demand that its reply fails, 0 for any other; no verdict where that cannot be told.

    Logged: failures_found, the share of critiques with a verdict that find one."""
    rows = [t for group in groups for t in group]
    items = [named(t.reply, items_of(t.problem.meta.get(column))) for t in rows]
    cases = [Case(t.problem, t.problem.meta[QUESTION], t.problem.meta[CRITICISED], i) for t, i in zip(rows, items, strict=True)]
    verdicts = validated(cases, run, validate, max_validation)
    known = [1.0 - v.value for v in verdicts if v.value is not None]
    if known:
        run.log("failures_found", sum(known) / len(known))
    scores = iter([v if v.value is None else Score(1.0 - v.value) for v in verdicts])
    return [[next(scores) for _ in group] for group in groups]


# ---- the recipe ----------------------------------------------------------------------------------------------------------


@objective(unit="group", needs=("old",))
def online_pairs(out: Outputs, batch: Batch, run: Run, *, beta: PositiveFloat = 0.1) -> Tensor:
    """The mean of -log sigmoid(beta [log m/old of the better row - log m/old of the other]) over a group's pairs with different
    rewards; old: the model that learns, as it sampled. A group without such a pair, and rows without a verdict, teach nothing."""
    said = beta * row_sum(out.logprobs - batch.old, batch)
    earned, judged = row_sum(batch.reward, batch), batch.rewarded.any(1)
    better = (batch.group[:, None] == batch.group) & judged[:, None] & judged & (earned[:, None] > earned)  # (B, B)
    losses = torch.where(better, -F.logsigmoid(said[:, None] - said), 0.0)
    zeros = losses.new_zeros(batch.groups)
    total, count = (zeros.index_add(0, batch.group, x.sum(1)) for x in (losses, better.to(losses)))
    return total / count.clamp(min=1)


def rlac(
    base: Recipe | None = None, *, critic: str = "copy:policy", validator: str = "copy:policy", choice: Choice = "critic",
    ask: str = CRITICISE, validate: str = VALIDATE, n: int = 4, critiques: int = 4, each: int = 2, every: int = 1,
    beta: float = 0.1, lr: float | None = None, critic_lr: float | None = None, problems: int = 16, max_critique: int = 256,
) -> Recipe:  # fmt: skip
    """critic: its start (`Learner.init`).  validator: who checks demands without a program, openai:URL#NAME or a model that is
    frozen; empty: nobody.  choice: of the demand that is checked.  ask: what the critic reads, with {prompt} and {reply}.
    validate: what the validator does, with {item} too.  n: replies to a prompt.  critiques: of each of `each` replies, from which
    the critic learns, every `every` steps; 0: it is frozen.  beta: of the pairs.  max_critique: tokens of a critique."""
    base = base or Recipe(name="rlac", update=Update())
    learnt = Recipe(update=Update(lr=critic_lr)).but(
        rollout=critiques_of(inner=independent(n=critiques), max_new=max_critique),
        reward=finds_failure(validate=validate), objective=online_pairs(beta=beta),
    )  # fmt: skip
    asked = to_criticise(each=each, ask=ask, max_new=max_critique)
    others = [Learner(CRITIC, critic, learnt, asked, every)] if choice == "critic" else []
    others += [Learner(VALIDATOR, validator, Recipe(), every=0)] if validator else []
    paid = survives(choice=choice, ask=ask, validate=validate, max_critique=max_critique, programs=not validator)
    return base.but(
        rollout=base.rollout or independent(n=n), reward=paid,
        measure=base.measure or own_reward(reward=paid, rollout=independent(n=1)),
        objective=online_pairs(beta=beta), problems=problems, lr=lr, also=(*base.also, *others),
    )  # fmt: skip


fidelity = "reading"
left_out = "tools of the validator, such as a search over documents for facts; warming the critic up; its schedules and rates"
data = Data(
    checklist=Column(
        "demands of which the critic names one: texts, or objects with `item` and `program`, Python with verify_requirement(text); "
        "without it the critic uses its own words", optional=True, setting="column", needed_with=("choice", "random", "all"),
    ),
    rows=[
        {"prompt": "Write two sentences on the life of Ada Lovelace."},
        {"prompt": "Write a slogan in six words.",
         "checklist": [{"item": "six words", "program": "def verify_requirement(text):\n    return len(text.split()) == 6"}]},
        {"prompt": "Name three rivers of Europe, one a line.", "checklist": ["three rivers of Europe", "one a line"]},
    ],
)  # fmt: skip

SMALL = {"validator": "", "lr": 1e-4}
check = Check(
    says="with as many checks, a policy whose demands are chosen by a critic that learns fulfils all of them more often than one "
    "whose demands are chosen by chance",
    versus="rlac", task="failings", measure="pass@1", direction="higher", margin=0.05,
    settings={**SMALL, "critic": "embedded:failings:judged=true", "ask": ASK, "critic_lr": 1e-4, "each": 1, "max_critique": 6},
    versus_settings={**SMALL, "choice": "random", "n": 8}, by=accuracy(), problems=300, steps=40, learns=None,
    tried="its own side once: all wishes fulfilled in 23% and 45%, 119 checks in the last step; failures_found 12% there",
    finding="all wishes are fulfilled in 53%, by random demands in 62% (28% before); rewards differ in 57%, 78% of groups",
)  # fmt: skip
baseline = "dpo"
