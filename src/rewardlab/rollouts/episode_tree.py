"""Planning in an environment: search trees of an agent's episodes, and attempts that follow a reflection on the ones before.

The environment's state is plain data, so that an episode can be taken up again from any of its turns.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rewardlab.core import Environment, Group, Problem, Run, Sampling, Trajectory, rollout, seed_of
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.interactive import answer_once, has_room, interactive, log_calls, play
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share
from rewardlab.text.filled import filled

REFLECT = (
    "You were given a task:\n\n{question}\n\nThis is what you did:\n\n{episode}\n\nSTATUS: FAIL\n\nIn a few sentences: why, and "
    "what is your new plan?"
)
TOLD = "{question}\n\nReflections from previous attempts:\n{reflections}"


@dataclass(eq=False)
class Node:
    """A point of an episode at which the agent is to act, or its end.

    row: all of it is read and answered.  actions: the row after each action that was sampled there.  returns: of each action, the
    values of the episodes that went on from it.
    """

    row: Trajectory
    state: Any
    parent: tuple[Node, int] | None = None
    actions: list[Trajectory] = field(default_factory=list)
    children: dict[int, Node] = field(default_factory=dict)
    returns: dict[int, list[float]] = field(default_factory=dict)
    visits: int = 1

    def chosen(self, explore: float) -> int:
        """The action with the highest mean + explore sqrt(ln visits) / (1 + its visits); its mean is 0 before the first one."""

        def bound(i: int) -> float:
            seen = self.returns.get(i, [])
            return sum(seen) / max(1, len(seen)) + explore * math.sqrt(math.log(self.visits)) / (1 + len(seen))

        return max(range(len(self.actions)), key=bound)

    def untried_first(self, explore: float) -> int:
        """An action that was never taken, or else that with the highest mean + explore sqrt(ln visits / its visits) of those that
        have not ended the episode, if there are any."""
        if untried := [i for i in range(len(self.actions)) if i not in self.children]:
            return untried[0]
        going = [i for i, child in self.children.items() if child.row.stop is None] or list(self.children)

        def bound(i: int) -> float:
            seen, visits = self.returns.get(i, []), self.children[i].visits
            return sum(seen) / max(1, len(seen)) + explore * math.sqrt(math.log(self.visits) / visits)

        return max(going, key=bound)


@rollout(rows=lambda iterations, **_: iterations)
def episode_tree(
    problems: list[Problem], run: Run, *, env: Environment, score: Reward, iterations: PositiveInt = 10, branch: PositiveInt = 5,
    turns: PositiveInt = 4, explore: NonNegativeFloat = 6.36396103068, gamma: Share = 0.9, temperature: NonNegativeFloat = 1.0,
    choose: Literal["bound", "untried"] = "bound",
) -> list[Group]:  # fmt: skip
    """Monte-Carlo tree search over the turns of an episode; the group of a problem holds all episodes that were played to an end.

    Each iteration walks down by the upper bounds of `Node.chosen` to an action that was never taken, takes it, samples `branch`
    actions after it, and plays from there to the end. The score of that episode, times gamma for each turn on the way up, is a
    return of every action on the path.  Chen et al. 2025, arXiv:2502.12130

    choose: "untried": down to an action that was never taken, wherever there is one, and else by the bounds of
    `Node.untried_first`, past actions that ended the episode (Yuan et al. 2025, arXiv:2501.11425).
    """
    sampling = Sampling(run.max_new, temperature, stop=env.stop)
    roots = _roots(problems, run, env)
    _act([root for root in roots if root.row.stop is None], branch, sampling, run)
    groups: list[Group] = [[] for _ in roots]
    for _ in range(iterations):
        leaves = _taken([_walk(root, explore, choose) for root in roots], env, run, turns)
        _act([leaf for leaf in leaves if leaf.row.stop is None], branch, sampling, run)
        ends = _played(leaves, env, run, sampling, turns)
        for group, end in zip(groups, ends, strict=True):
            group.append(end)
        worth = [s.total for row in score([[t] for t in ends], run) for s in row]
        for leaf, value in zip(leaves, worth, strict=True):
            back_up(leaf, value, gamma)
    log_calls(env, [t for group in groups for t in group], run)
    return [[replace(t, path=(i,)) for i, t in enumerate(group)] for group in groups]


def _roots(problems: Sequence[Problem], run: Run, env: Environment) -> list[Node]:
    openings = [env.start(p, seed_of(run.seed, "environment", run.moment, p.key, 0)) for p in problems]
    prompts = [p.prompt if said is None else (*p.prompt, said) for p, (said, _) in zip(problems, openings, strict=True)]
    rows = run.policy.read([Trajectory(p) for p in problems], prompts)
    return [Node(t, state) for t, (_, state) in zip(rows, openings, strict=True)]


def _act(nodes: Sequence[Node], branch: int, sampling: Sampling, run: Run) -> None:
    """Sample the actions of each node; equal ones are one. An episode that leaves no room for another reply ends there."""
    for node in nodes:
        if not has_room(node.row, run):
            node.row = replace(node.row, stop="context")
    nodes = [node for node in nodes if node.row.stop is None]
    if not nodes:
        return
    rows = run.policy.extend([node.row for node in nodes for _ in range(branch)], sampling, run.rng("rollout"))
    for i, node in enumerate(nodes):
        node.actions = list({t.reply: t for t in rows[i * branch : (i + 1) * branch]}.values())


def _walk(node: Node, explore: float, choose: str = "bound") -> Node | tuple[Node, int]:
    """A node and an action that was never taken there; or the end of an episode."""
    while node.actions:
        at = node.chosen(explore) if choose == "bound" else node.untried_first(explore)
        if at not in node.children:
            return node, at
        node = node.children[at]
    return node


def _taken(found: Sequence[Node | tuple[Node, int]], env: Environment, run: Run, turns: int) -> list[Node]:
    """The nodes that the actions lead to; ends stay as they are."""
    new = [x for x in found if not isinstance(x, Node)]
    rows, states = [node.actions[at] for node, at in new], [copy.deepcopy(node.state) for node, _ in new]
    answer_once(env, rows, states, run, turns)
    for (node, at), row, state in zip(new, rows, states, strict=True):
        node.children[at] = Node(row, state, (node, at))
    return [x if isinstance(x, Node) else x[0].children[x[1]] for x in found]


def _played(leaves: Sequence[Node], env: Environment, run: Run, sampling: Sampling, turns: int) -> list[Trajectory]:
    """From each leaf an episode to its end."""
    live = [i for i, leaf in enumerate(leaves) if leaf.row.stop is None]
    rows, states = [leaves[i].row for i in live], [copy.deepcopy(leaves[i].state) for i in live]
    play(env, rows, states, run, sampling, turns)
    ended = dict(zip(live, rows, strict=True))
    return [ended.get(i, leaf.row) for i, leaf in enumerate(leaves)]


def back_up(leaf: Node, value: float | None, gamma: float) -> None:
    """Count a visit up to the root, and, of an episode with a verdict, its value as a return of each action on the way."""
    leaf.visits += 1
    # of an end the last action earns the value itself
    worth = value if value is None or leaf.row.stop is not None else gamma * value
    at = leaf.parent
    while at is not None:
        node, action = at
        node.visits += 1
        if worth is not None:
            node.returns.setdefault(action, []).append(worth)
            worth *= gamma
        at = node.parent


@rollout(rows=lambda **_: 1)
def with_reflection(
    problems: list[Problem], run: Run, *, env: Environment, score: Reward, n: PositiveInt = 4, turns: PositiveInt = 4,
    threshold: float = 0.0, temperature: NonNegativeFloat = 1.0, ask: str = REFLECT, told: str = TOLD,
) -> list[Group]:  # fmt: skip
    """The first of at most n attempts whose score is above the threshold; where none is, the first attempt.

    After each other one the policy says what went wrong, with {question} and {episode}, and reads that in the next attempt, with
    {question} and {reflections}: the last ones, as many as leave room for a reply. Of an episode that is too long to be read once
    more it says nothing.  Logged: attempts, per problem.  Shinn et al. 2023, arXiv:2303.11366
    """
    attempt = interactive(env=env, n=1, turns=turns, temperature=temperature)
    first: dict[int, Trajectory] = {}
    kept: dict[int, Trajectory] = {}
    said: list[list[str]] = [[] for _ in problems]
    pending, attempts = list(range(len(problems))), list[Trajectory]()
    for i in range(n):
        asked = [_reminded(problems[k], said[k], told, run, first.get(k)) for k in pending]
        # the row is one of the problem as it was asked
        rows = [replace(group[0], problem=problems[k]) for k, group in zip(pending, attempt(asked, run), strict=True)]
        attempts += rows
        worth = [s.total for row in score([[t] for t in rows], run) for s in row]
        tried = dict(zip(pending, rows, strict=True))
        first = first or tried
        kept |= {k: t for (k, t), v in zip(tried.items(), worth, strict=True) if v is not None and v > threshold}
        pending = [k for k in pending if k not in kept]
        if not pending or i == n - 1:
            break
        for k, text in zip(pending, _reflected([tried[k] for k in pending], run, ask), strict=True):
            said[k] += filter(None, [text])
    run.log("attempts", len(attempts) / max(1, len(problems)))
    log_calls(env, attempts, run)
    return [[kept.get(k, first[k])] for k in range(len(problems))]


def _reminded(problem: Problem, reflections: Sequence[str], told: str, run: Run, before: Trajectory | None) -> Problem:
    """The problem with the last reflections that leave room for a reply.  before: an attempt, which began as the next one will."""
    if not reflections or before is None:
        return problem
    # what an environment says first stands in the first turn, too
    begun = len(before.turns[0].ids) - len(_read(problem, run))
    for i in range(len(reflections)):
        asked = problem.reworded(filled(told, question=problem.question, reflections="\n".join(reflections[i:])))
        if begun + len(_read(asked, run)) + run.max_new <= run.policy.context:
            return asked
    return problem


def _read(problem: Problem, run: Run) -> Trajectory:
    return run.policy.read([Trajectory(problem)], [problem.prompt])[0]


def _reflected(rows: Sequence[Trajectory], run: Run, ask: str) -> list[str]:
    """What the policy says of each episode; "" of one that does not fit its context once more."""
    read = [_read(t.problem.reworded(filled(ask, question=t.problem.question, episode=shown(t))), run) for t in rows]
    fits = [i for i, t in enumerate(read) if len(t) + run.max_new <= run.policy.context]
    wrote = run.policy.extend([read[i] for i in fits], Sampling(run.max_new), run.rng("reflections")) if fits else []
    told = {i: t.reply.strip() for i, t in zip(fits, wrote, strict=True)}
    return [told.get(i, "") for i in range(len(rows))]


def shown(t: Trajectory) -> str:
    """An episode as text: what the agent did and was answered, a line each."""
    return "\n".join(f"{'Action' if turn.author else 'Observation'}: {turn.text.strip()}" for turn in t.turns[1:] if turn.text)
