"""Episodes with a slow tool: rewardlab's, in which nobody waits for others, against loops that wait for each turn of the batch.

SmolLM2-135M replies `turns` times in each of 32 episodes, 32 tokens a time, and a tool answers each reply after 0.2 to 2 seconds.
Both peers are rewardlab's own sampling in another order, so that the ratio is that of the order alone: `gathered` asks the tool for
the whole batch at once and goes on when the last answer has come (as asyncio.gather in trainers with asynchronous tools), `in-turn`
asks for one after another (as a loop over the batch does). Episodes a second of the clock, the three orders one after another, the
median of `repeats`.

  rewardlab bench agents
"""

from __future__ import annotations

import random
import statistics
import time
from typing import Any

from _sides import Rows, in_own_process, main, row, smollm2_model

SHORTEST, LONGEST = 0.2, 2.0
ORDERS = ("ours", "gathered", "in-turn")


def run(*, episodes: int = 32, turns: int = 4, max_new: int = 32, repeats: int = 3) -> Rows:
    settings = {"model": smollm2_model(), "episodes": episodes, "turns": turns, "max_new": max_new, "repeats": repeats}
    found = in_own_process(__file__, "orders", settings)
    about = {"episodes": episodes, "turns": turns, "max_new": max_new, "latency": [SHORTEST, LONGEST], **found["about"]}
    return [row(f"agents-{peer}", found["ours"], found[peer], "episodes/s", about) for peer in ORDERS[1:]]


def orders(model: str, episodes: int, turns: int, max_new: int, repeats: int) -> dict[str, Any]:
    from rewardlab.core import Message, Run, Sampling, Trajectory, ask, environment
    from rewardlab.models.load import load_policy
    from rewardlab.rollouts.interactive import play

    def begin(problem: Any, seed: int, **_: Any) -> tuple[None, random.Random]:
        return None, random.Random(seed)

    @environment(start=begin)
    def slow(state: random.Random, turn: Any, *, waits: bool = False) -> tuple[Message, random.Random]:
        time.sleep(state.uniform(SHORTEST, LONGEST))
        return Message("user", "The tool says: 42. Go on."), state

    policy = load_policy(model)
    problems = [ask(f"Question {i}: what does the tool say of {i}?") for i in range(episodes)]

    def seconds(order: str, seed: int) -> float:
        env = slow(waits=order != "in-turn")
        rows = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
        states = [env.start(p, 1000 * seed + i)[1] for i, p in enumerate(problems)]
        began = time.perf_counter()
        # whoever is asked about all episodes of a turn keeps them in step
        together = (lambda episodes, states, live, replied: live) if order == "gathered" else None
        play(env, rows, states, Run(policy, seed=seed, max_new=max_new), Sampling(max_new), turns, together)
        return time.perf_counter() - began

    seconds("ours", 0)
    taken: dict[str, list[float]] = {order: [] for order in ORDERS}
    for seed in range(1, repeats + 1):
        # one after another takes minutes, and little depends on chance there
        for order in ORDERS if seed == 1 else ORDERS[:2]:
            taken[order].append(seconds(order, seed))
    rates = {order: episodes / statistics.median(times) for order, times in taken.items()}
    return {**rates, "about": {"seconds": {order: [round(t, 2) for t in times] for order, times in taken.items()}}}


if __name__ == "__main__":
    main(run, {"orders": orders})
