"""ExecVerify: step-level rewards for tracing a program, by white-box questions with an interpreter's answers.

    r = 2 [output right] ((1 - alpha) + alpha * share of the white-box questions answered rightly)
    asked: the line that is run after a line's k-th time, and the value and type of a variable after it

What a program returns can be guessed, or be right by luck: paid for it alone, a policy need not follow the steps, and imitating
explanations teaches their words. A trace says of every step what is true, so that each can be asked for and checked.

Tang et al. 2026, arXiv:2603.11226; reward, kinds of questions and which of them are asked follow the released code
(justForAnonymous/ExecVerify, d9d7187, train/verl/verl/utils/reward_score/white_box.py, data/extract_trace_dataset.py); alpha = 1/2,
up to 5 questions of each kind; GRPO without a KL term, n = 8, two updates of a batch, the mean over tokens (stage_one_rl.sh). There
the output is an assertion that is executed; here it is a value, compared as a literal.

--task executions:code=FILE takes rows with `code` (a Python function) and `call`: the sandbox traces it, and questions are made.
"""

from typing import Any

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Data
from rewardlab.evals.pairs import pair_agreement
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct, detail


def white_box(alpha: float = 0.5, output: Any = None) -> Reward:
    """The reward: a right output, more so where the steps to it are known."""
    return (output or correct()) * (2 * (1 - alpha) + 2 * alpha * detail(name="steps"))


def execverify(base: Recipe | None = None, *, alpha: float = 0.5, n: int = 8) -> Recipe:
    """alpha: how much of a right output's reward is for the steps.  n: replies per prompt."""
    base = base or grpo(n=n).but(minibatches=2, weighting=token_mean())
    return base.but(reward=white_box(alpha, base.reward))


fidelity = "core"
left_out = (
    "the inverse task, to find an input for an output, which pays 2; the synthesis of programs by a large model; SFT before it; "
    "and the second stage, on code generation: then train on --task FILE with tests"
)
data = Data(
    answer='what the call returns and what was asked of its run, {"output", "questions": [{"kind": "next" or "state", "answers"}]}',
    rows=[
        {
            "prompt": "1 def f(x):\n2  y = x + 3\n3  if y > 6:\n4   y = y - 4\n5  return y\nf(4)?\nline 3, time 1: next?\n"
            "line 4, time 1: y?\nOne answer a line within <answer>, the value of the call first.",
            "answer": {
                "output": "3",
                "questions": [{"kind": "next", "answers": ["y = y - 4"]}, {"kind": "state", "answers": ["3; int"]}],
            },
        },
        {"prompt": "def g(x): return 2 * x\nWhat is g(4)? State it within <answer>.", "answer": {"output": "8", "questions": []}},
    ],
    verified_by="trace_answers",
)

STEPS = aggregate(white_box()).named("white_box")
# by construction: what is compared reads the steps that the truth is made of
check = Check(
    says="of two replies the one that follows the program better is paid more, oftener than where the output alone is paid",
    versus=None, task="executions:test_size=4000", measure="pair_accuracy.white_box", direction="higher", margin=0.07,
    against="pair_accuracy.output", model="untrained",
    by=own_share(inner=pair_agreement(reward=STEPS + 0.0 * aggregate(correct()).named("output"))), problems=4000, steps=1,
    fault=Within("pair_accuracy.output", high=0.85, says="pairs in which the better trace is paid more, by the output"),
    learns=None, start=None, sanity=True,
    finding="of two replies the one that follows the program further is paid more in 84% of pairs, in 71% where the output alone "
    "is. The reward reads the steps that the truth is made of: no policy was trained by it",
)  # fmt: skip
baseline = "grpo"
