"""What a random player and an expert reach in games told in words: success and reward, over held-out games.

  python benchmarks/games.py babyai:GoToLocal textworld:coin_collector,level=5 --games 50

The random player chooses among the actions that are shown; the expert is MiniGrid's bot, TextWorld's own solution, or, for
Gymnasium's toy texts, value iteration over the package's own table of transitions (Blackjack: hit below 17).
"""

from __future__ import annotations

import argparse
import random
import re

from rewardlab import registry
from rewardlab.core import Problem, Task
from rewardlab.envs import babyai, gym_text, textworld

VALUES: dict[str, dict[int, float]] = {}


def game_of(problem: Problem, task: Task):
    """The game of a problem, and its expert."""
    meta = problem.meta
    if task.environment == "babyai_level":
        game = babyai.Level(meta["level"], meta["number"], meta["steps"])
        return game, lambda: babyai.expert(game)
    if task.environment == "textworld_game":
        game = textworld.playing_of(meta["game"], meta["level"], meta["number"])
        return game, lambda: textworld.expert(game)
    game = gym_text.TextGame(meta["id"], meta["options"], meta["number"])
    return game, lambda: by_values(game)


def actions_of(game, seen: str) -> list[str]:
    """The actions that a random player chooses from."""
    if isinstance(game, babyai.Level):
        return list(babyai.ACTIONS)
    if isinstance(game, textworld.Adventure):
        return re.split(", ", seen.rpartition("Possible commands: ")[2].rstrip("."))
    return list(game.names)


def by_values(game: gym_text.TextGame) -> str:
    """The best action by value iteration; in Blackjack, hit below 17."""
    env = game.env.unwrapped
    if not hasattr(env, "P"):
        return "hit" if sum(env.player) < 17 else "stick"
    if game.id not in VALUES:
        VALUES[game.id] = dict.fromkeys(env.P, 0.0)
        for _ in range(500):
            VALUES[game.id] = {state: max(worth(env, VALUES[game.id], state)) for state in env.P}
    values = worth(env, VALUES[game.id], env.s)
    return game.names[values.index(max(values))]


def worth(env, values: dict[int, float], state: int) -> list[float]:
    """What each action is worth in a state, discounted by 0.999."""
    return [sum(p * (pay + 0.999 * values[new] * (not over)) for p, new, pay, over in env.P[state][a]) for a in env.P[state]]


def play(problem: Problem, task: Task, rng: random.Random | None) -> tuple[float, int]:
    """What a game pays in all, and how many actions it took; without rng, by the expert."""
    game, expert = game_of(problem, task)
    paid, seen, over, actions = 0.0, game.seen, False, 0
    while not over and actions < task.turns:
        action = rng.choice(actions_of(game, seen)) if rng else expert()
        seen, pay, over = game.act(action)
        paid, actions = paid + pay, actions + 1
    return paid, actions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+", metavar="TASK")
    parser.add_argument("--games", type=int, default=50)
    args = parser.parse_args()
    print("| task | player | success | reward | actions |\n| --- | --- | --- | --- | --- |")
    for name in args.tasks:
        task = registry.task(name)
        for player in ("random", "expert"):
            rng = random.Random(0) if player == "random" else None
            results = [play(problem, task, rng) for problem in task.test[: args.games]]
            paid, actions = ([r[i] for r in results] for i in (0, 1))
            won, n = sum(p >= 1 - 1e-9 for p in paid), len(results)
            print(f"| `{name}` | {player} | {won / n:.0%} | {sum(paid) / n:.2f} | {sum(actions) / n:.1f} |", flush=True)


if __name__ == "__main__":
    main()
