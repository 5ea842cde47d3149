"""ReTool: PPO on the outcome alone teaches when to stop thinking in words and run code, whose output the loss does not see.

    a reply pauses at </code>;  the interpreter answers <interpreter>what was printed</interpreter>;  the policy goes on, with its
    variables kept, and so on until a reply without code, which is final
    R = +1 if the final answer is right, else -1;    PPO without KL, over the policy's own tokens alone

Nothing pays for a call and nothing says when one is due: a call is worth what the answer gains by it. Tokens of the interpreter
were not chosen by the policy; trained on them it would learn to invent output. They have no part in the loss, as all that an
environment says.

Feng et al. 2025, arXiv:2504.11536, by its abstract, the summaries of it, and the recipe released with verl (recipe/retool: 3848145;
run_qwen2.5_32b_dapo.sh, b16865f). Paper: PPO, KL 0, learning rate 1e-6, at most 16384 tokens, R as above. The released script takes
GRPO (n=16, at most 8 turns, clip 0.2 to 0.28), here `grpo+retool` or `dapo+retool`, and pays wrong episodes 0.1 for each call, at
most 0.4 in all: `calls=0.1`. (inferred): epochs, lambda and clip range, which are PPO's here.

Cold start: SFT on solutions whose computations are code (`sft_steps`; the paper's: two epochs). The column `solution` lists replies
and the interpreter's answers in turn. `rewardlab data code-traces SOLVED --model WRITER --out FILE` makes it of solutions in words:
the writer puts code in the place of computations, each block is run, and its true output stands in the trace; traces whose code
fails, or whose answer is not the gold one, are dropped. It also reads traces that are written already (the released ReTool-SFT).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Environment, Problem, Recipe, Rollout, Run, measure
from rewardlab.data.columns import Column, Data
from rewardlab.envs.interpreter import interpreter, untold_interpreter
from rewardlab.errors import RewardlabError
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.evals.passk import mean_interval
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.methods.baselines.sft import sft_first
from rewardlab.rewards.environment import calls_made
from rewardlab.rewards.task import correct
from rewardlab.rollouts.interactive import in_place_of_replies, interactive

MOST_PAID = 0.4
"""The most that the calls of a wrong episode can earn, in the released recipe."""


@measure
def calls_where_hard(problems: Sequence[Problem], run: Run, *, rollout: Rollout, column: str) -> dict[str, float]:
    """calls: the share of episodes in which the policy went on from an answer of the environment; hard, easy: that of problems
    whose `column` holds a true value, and of the others; when: their difference.  pass@1: as in `episode_accuracy`.
    """
    if run.verify is None:
        raise RewardlabError("calls_where_hard needs the task's verifier, and this run has none: name a task")
    groups = rollout(list(problems), run)
    right = [float(np.mean([s.value is not None and s.value >= 1.0 for s in row])) for row in run.verify(groups, run)]
    called = [float(np.mean([len(t.ends) > 1 for t in group])) for group in groups]
    sides = [[c for c, p in zip(called, problems, strict=True) if bool(p.meta.get(column)) is side] for side in (True, False)]
    hard, easy = (float(np.mean(side)) if side else float("nan") for side in sides)
    low, high = mean_interval(right)
    return {
        "pass@1": float(np.mean(right)), "ci95_low": low, "ci95_high": high, "n": float(len(right)),
        "calls": float(np.mean(called)), "hard": hard, "easy": easy, "when": hard - easy,
    }  # fmt: skip


def retool(
    base: Recipe | None = None, *, env: Environment | None = None, n: int | None = None, turns: int = 8, calls: float = 0.0,
    sft_steps: int = 0,
) -> Recipe:  # fmt: skip
    """env: the tools; without it, those that the base plays with, else the interpreter.  n: episodes of a problem; None: the
    base's.  turns: the most replies of an episode.  calls: paid to a wrong episode for each call.  sft_steps: of SFT before; 0
    where the model has had it.
    """
    base = base or ppo(beta=0.0)
    right: Any = base.reward or correct()
    paid = 2.0 * right - 1.0
    made = base.but(
        reward=paid + ((1.0 - right) * calls_made(each=calls, max_reward=MOST_PAID)).named("calls") if calls else paid,
        loop=sft_first(steps=sft_steps, field="solution", inner=base.loop) if sft_steps else base.loop,
    )
    # a base that plays in an environment keeps it, and keeps its measure
    if env is None and base.sampling_settings.get("env"):
        return made
    play: dict[str, Any] = {"env": env or interpreter(), "turns": turns}
    measure = episode_accuracy(rollout=interactive(n=1, **play))
    return made.but(rollout=in_place_of_replies(base.required("rollout"), n=n, **play), measure=measure)


fidelity = "core"
left_out = (
    "the reuse of the key-value cache over a call, which changes the speed alone; the interpreter has Python's standard library "
    "alone; what it answers is a message of its own, not a part of the reply"
)

data = Data(
    answer="the gold answer",
    solution=Column("what to imitate first: replies, and between them what the interpreter answers; read with `sft_steps`",
                    optional=True),
    rows=[
        {
            "prompt": "What is the sum of the digits of 2^100? Put your answer in \\boxed{}.",
            "answer": "115",
            "solution": [
                "The number is too long to write out by hand, so I compute it.\n<code>\n```python\n"
                "sum(map(int, str(2 ** 100)))\n```\n</code>",
                "<interpreter>\n115\n</interpreter>",
                "The sum is \\boxed{115}.",
            ],
        },
        {"prompt": "How many primes are there below 1000? Put your answer in \\boxed{}.", "answer": "168"},
        {"prompt": "What is $7 + 5$? Put your answer in \\boxed{}.", "answer": "12"},
    ],
)  # fmt: skip

PLAYED = interactive(env=untold_interpreter(), n=1, turns=2)
check = Check(
    says="paid for the outcome alone, the policy comes to run code where it does not know the answer, more than where it does",
    versus=None, task="products", measure="when", direction="higher", margin=0.2, against="before.when",
    settings={"env": untold_interpreter(), "turns": 2, "problems": 64}, by=calls_where_hard(rollout=PLAYED, column="large"),
    problems=400, steps=16, guard=Within("pass@1", low=0.0), guard_from="start",
    tried="one run of two development seeds, with 1000 problems: when 0.030 and -0.110 before, -0.003 and -0.002 after; pass@1 "
    "rises by 0.47. Fixed before it was run, and not changed after it",
    finding="it comes to run code everywhere, where it knows the answer too (in 99.7%, 41% at first), since a call costs "
    "nothing and is always right: 81% right instead of 38%, and no choosier",
)  # fmt: skip
baseline = "ppo"
