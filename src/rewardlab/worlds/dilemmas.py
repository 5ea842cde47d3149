"""Iterated prisoner's dilemmas with neutral action names.

    You and another say red or blue, 5 times.          ->   red
    Both red: 3 each. Both blue: 1 each.                    The other: blue. You get 0.
    Only one blue: 5, and 0 for the other.             ->   blue ...

In each round it pays more to defect (here: blue), whatever the other says; over all rounds both get most by cooperating. How
much is paid, and which words stand for what, differs from problem to problem; the first of the two words cooperates.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from rewardlab.core import (
    Batch,
    Credit,
    Message,
    Problem,
    Run,
    Score,
    Task,
    Trajectory,
    Turn,
    Weighting,
    ask,
    environment,
    measure,
    seed_of,
)
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

# ---- A dilemma from the side of one player, against another player or a strategy -------------------------------------

State = dict[str, Any]


def move_of(reply: str, moves: Sequence[str]) -> int | None:
    """The number of the move that a reply consists of; None for any other reply."""
    return list(moves).index(reply.strip()) if reply.strip() in moves else None


def outcome(payoffs: Mapping[str, float], moves: Sequence[str], own: int | None, other: int | None) -> tuple[str, float]:
    """What a player is told after a round, and gets.

    Who says neither word gets the least that can be got, and the other player what both get for defecting.
    """
    by_moves = {
        (0, 0): payoffs["reward"], (0, 1): payoffs["sucker"], (1, 0): payoffs["temptation"], (1, 1): payoffs["punishment"],
    }  # fmt: skip
    missed = payoffs["sucker"] if own is None else payoffs["punishment"]
    pay = missed if own is None or other is None else by_moves[own, other]
    return f"The other: {'nothing' if other is None else moves[other]}. You get {pay:g}.", float(pay)


def _start(problem: Problem, seed: int, *, opponent: str) -> tuple[Message | None, State]:
    if missing := {"moves", "payoffs", "rounds"} - problem.meta.keys():
        raise RewardlabError(
            f"a dilemma has the columns moves, payoffs and rounds: {problem.question[:60]!r} lacks {sorted(missing)}"
        )
    game = {name: problem.meta[name] for name in ("moves", "payoffs", "rounds")}
    return None, {**game, "round": 0, "last": 0, "seed": seed, "other": None}


@environment(start=_start)
def dilemma(
    state: State, turn: Turn, *, opponent: Literal["tit-for-tat", "cooperates", "defects", "random"] = "tit-for-tat"
) -> tuple[Message | None, State]:
    """Says after each round what the other said, and pays what the player gets. The last round ends the game.

    opponent: how the other plays where no other player does (`against_itself` puts what another one says into state["other"]).
    """
    moves, k = state["moves"], state["round"]
    own = move_of(turn.text, moves)
    other = _planted(state, opponent) if state["other"] is None else move_of(state["other"], moves)
    said, pay = outcome(state["payoffs"], moves, own, other)
    # a strategy takes what is no move for a defection
    state = {**state, "round": k + 1, "last": 1 if own is None else own, "other": None}
    return Message("user", said, reward=pay, last=k + 1 >= state["rounds"]), state


def _planted(state: State, opponent: str) -> int:
    if opponent == "random":
        return random.Random(seed_of("dilemma", state["seed"], state["round"])).randrange(2)
    return {"cooperates": 0, "defects": 1, "tit-for-tat": state["last"]}[opponent]


# ---- the task ---------------------------------------------------------------------------------------------------------

WORDS = ("red", "blue", "green", "black", "white", "pink", "gold", "grey", "brown", "lime", "teal", "plum")


def dilemmas(
    *, rounds: PositiveInt = 5, kind: Share = 0.8, hard: Share = 0.5, test_size: PositiveInt = 1000, size: PositiveInt | None = None
) -> Task:  # fmt: skip
    """Games of so many rounds. Right is a player that cooperates in every round.

    kind, hard: how often the teacher cooperates after the other did, or at first, and how often after the other defected.
    size: so many training problems, in epochs; None: endless.
    """
    sample, key = partial(_sample, rounds=rounds), ("dilemmas", rounds)
    return Task(
        name="dilemmas",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="cooperates",
        max_new=6,
        about="iterated prisoner's dilemmas, in words; the other player is a strategy, or the policy itself",
        demonstrate=partial(_demonstrate, kind=kind, hard=hard),
        columns=("prompt", "moves", "payoffs", "rounds", "solution"),
        environment="dilemma",
        turns=rounds,
        warmup_steps=300,
    )


def _sample(rng: random.Random, *, rounds: int) -> Problem:
    give, keep = rng.sample(WORDS, 2)
    sucker = rng.randint(0, 4)
    punishment = sucker + rng.randint(1, 3)
    reward = punishment + rng.randint(2, 4)
    # below 2 reward - sucker, or players would get more by taking turns to exploit each other
    temptation = reward + rng.randint(1, reward - sucker - 1)
    said = (
        f"You and another say {give} or {keep}, {rounds} times.\nBoth {give}: {reward} each. Both {keep}: {punishment} each.\n"
        f"Only one {keep}: {temptation}, and {sucker} for the other."
    )
    payoffs = {"temptation": temptation, "reward": reward, "punishment": punishment, "sucker": sucker}
    return ask(said, None, moves=[give, keep], payoffs=payoffs, rounds=rounds, solution=give)


def _demonstrate(problem: Problem, rng: random.Random, *, kind: float, hard: float) -> list[str]:
    """A game between two players that answer what the other said last."""
    moves, talk = problem.meta["moves"], []
    last: tuple[Any, Any] = (0, 0)
    for _ in range(problem.meta["rounds"]):
        # each answers the other's last move
        said = [moves[0] if rng.random() < (hard if other else kind) else moves[1] for other in reversed(last)]
        last = (move_of(said[0], moves), move_of(said[1], moves))
        talk += [said[0], outcome(problem.meta["payoffs"], moves, *last)[0]]
    # the last round's outcome ends the game: nobody reads it
    return talk[:-1]


# ---- How a player of dilemmas behaved, whatever it was paid ----------------------------------------------------------


@reward
def cooperates(trajectory: Trajectory) -> Score:
    """The share of a player's rounds in which it cooperated."""
    moves = trajectory.problem.meta.get("moves")
    if not moves:
        return Score(None, why="the problem has no moves")
    played = [move_of(reply, moves) == 0 for reply in trajectory.replies]
    return Score(sum(played) / len(played) if played else 0.0)


# ---- Advice whose use is known ----------------------------------------------------------------------------------------


@measure
def learnt_advice(
    problems: Sequence[Problem], run: Run, *, credit: Credit, weighting: Weighting, episodes: PositiveInt = 16,
    turns: PositiveInt = 8, updates: PositiveInt = 100, lr: PositiveFloat = 0.1, wrong: Share = 0.25, luck: NonNegativeFloat = 0.3,
) -> dict[str, float]:  # fmt: skip
    """Turns in which a strategy helps to reach a goal, or not; no model is asked. A policy of one number a turn learns to help.

    helpful.process: how often a strategy helps, on average over turns, after learning from `credit` of a judge's marks and the
    goal;  helpful.outcome: after learning from the goal alone, less its mean in the batch. One in two helps at first.
    wrong: how often the judge is wrong about a turn.  luck: the deviation of the goal from the share of strategies that help.
    """
    found = {}
    for name in ("process", "outcome"):
        logits = torch.zeros(turns, requires_grad=True)
        # detached: both meet the same luck
        optimizer, rng = torch.optim.Adam([logits], lr=lr), run.detached().rng("eval")
        for _ in range(updates):
            helps = torch.rand(episodes, turns, generator=rng) < logits.detach().sigmoid()
            marks = helps ^ (torch.rand(episodes, turns, generator=rng) < wrong)
            goal = (helps.float().mean(1) + luck * torch.randn(episodes, generator=rng)).clamp(0, 1)
            batch = _batch(marks, goal)
            if name == "process":
                worth = credit(batch.reward, batch, run)[:, 1::2]
            else:
                worth = (goal - goal.mean())[:, None].expand(episodes, turns)
            logprob = torch.where(helps, logits, -logits).sigmoid().log()
            optimizer.zero_grad()
            (-(weighting(batch)[:, 1::2] * worth * logprob).sum()).backward()
            optimizer.step()
        found[f"helpful.{name}"] = float(logits.detach().sigmoid().mean())
    return found | {"n": float(episodes)}


def _batch(marks: Tensor, goal: Tensor) -> Batch:
    """Episodes in which every other position is a strategy: 1 where it is marked, else the goal at the last."""
    paid = marks.float()
    paid[:, -1] = torch.where(marks[:, -1], 1.0, goal)
    reward = torch.stack((torch.zeros_like(paid), paid), -1).flatten(1)
    decided = torch.zeros_like(reward, dtype=torch.bool)
    decided[:, 1::2] = True
    zeros, rows = torch.zeros_like(reward), len(reward)
    length = torch.full((rows,), reward.shape[1])
    return Batch(zeros.long(), decided, length, zeros, reward, decided.clone(), torch.arange(rows))
