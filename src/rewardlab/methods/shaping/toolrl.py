"""ToolRL: fine-grained rewards for tool calls: right tools, parameter names and values, and format.

    r = R_format + R_correct,    R_correct = 6 R/S - 3 from -3 to 3,    R_format: 1 if the reply has the form that is wanted, else 0
    R = J(tools) + sum over gold calls of [J(parameter names) + right values],    S = 1 + sum over gold calls of (1 + parameters)

J is the Jaccard similarity of two multisets of names. Calls with a slip in one place earn nearly all, so that groups without any
right reply still tell their replies apart; all or nothing leaves such groups silent. Calls that cannot be read earn -3.

Qian et al. 2025, arXiv:2504.13958. Followed: the released reward, in copies of the repository (verl/utils/reward_score/rlla.py, in
WingchunSiu/ToolRL bcd6cf8 and verl-project/verl 5ca64e2): each gold call in turn takes the best call that is left, where the paper
looks for the best assignment of all; the same calls in the same order earn 3; a reply that should make no call has R_correct = 0.
Calls count in all of their blocks and in any syntax of `function_calls`; there, one a line in the first <tool_call> alone.
(inferred): values are equal as JSON is, so that true is not 1, and defaults of the tools' schemas count as given. `grain` is the
paper's study of granularity: "call" and "exact" are its intermediate and coarse rewards; two other variants of that study, which it
advises against, a reward for length and scales that change while training goes on, are not here. GRPO with n = 4, four updates of
a batch and the mean over tokens, as in its script (examples/grpo_trainer/run_grpo.sh, df16545).

Prompts name the tools and ask for <think>, <tool_call> and <response>.
"""

import re

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe, Score, Trajectory
from rewardlab.data.columns import Column, Data
from rewardlab.evals.own_reward import own_reward
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent
from rewardlab.verifiers.calls.calls import Malformed
from rewardlab.verifiers.calls.matching import Grain
from rewardlab.verifiers.calls.rewards import calls_matched
from rewardlab.verifiers.calls.verifier import gold_of
from rewardlab.verifiers.contract import Pair

CALLS, WORDS = "\n<tool_call>\n.*?\n</tool_call>", "\n<response>.*?</response>"


@reward
def form_wanted(trajectory: Trajectory) -> Score:
    """1 for <think>...</think>, and after it one block of calls where calls are wanted, and one of words where words are."""
    problem, said = trajectory.problem, trajectory.reply.strip()
    gold = gold_of(Pair(said, problem.answer, problem.question, problem.meta))
    if isinstance(gold, Malformed):
        return Score(None, why=f"the gold answer has no usable calls: {gold}")
    calls = gold.calls is None or bool(gold.calls)
    words = bool(problem.meta.get("response", not calls))
    tags = [tag for tag, wanted in (("tool_call", calls), ("response", words)) if wanted]
    # counted first: with each tag there once, the pattern below takes linear time
    once = all(said.count(f"<{tag}>") == said.count(f"</{tag}>") == 1 for tag in tags)
    pattern = f"<think>.*?</think>{CALLS * calls}{WORDS * words}"
    return Score(float(once and re.fullmatch(pattern, said, re.DOTALL) is not None), why=f"<think>, {', '.join(tags)} wanted")


def toolrl(base: Recipe | None = None, *, grain: Grain = "fine", max_reward: float = 3.0, form: float = 1.0, n: int = 4) -> Recipe:
    """grain: what is counted: "fine" parts, whole calls ("call"), or all calls at once ("exact").  max_reward: of R_correct, whose
    least is the same below 0.  form: weight of R_format.  n: of grpo.
    """
    matched = calls_matched(grain=grain, low=-max_reward, high=max_reward)
    paid = matched + form * form_wanted() if form else matched
    base = base or grpo(n=n).but(minibatches=4, weighting=token_mean(), measure=own_reward(reward=paid, rollout=independent(n=1)))
    return base.but(reward=paid)


fidelity = "core"
left_out = "a KL of .001 in the reward, which verl of that age adds where the loss has none"
data = Data(
    answer='the calls, {"name", "parameters"} each; of every row, [] where none is wanted in a task made in Python',
    tools=Column("the JSON schemas of the tools", optional=True),
    response=Column("true where words are wanted besides calls", optional=True),
    rows=[
        {
            "prompt": "Tools: weather(city). What is the weather in Oslo? Use <think>, <tool_call> and <response>.",
            "answer": [{"name": "weather", "parameters": {"city": "Oslo"}}],
        },
        {
            "prompt": "Tools: weather(city). Is it warm in Rome? Say that you look it up. Use <think>, <tool_call> and <response>.",
            "answer": [{"name": "weather", "parameters": {"city": "Rome"}}],
            "response": True,
        },
    ],
    verified_by="function_calls",
)

HARD = {"problems": 8, "n": 8}
claim = Claim(
    says="paid part by part, a policy makes more calls right while it learns than one that is paid for exact calls alone",
    versus="toolrl", task="calls:min_calls=2,biased=0.9", measure="auc.truth", direction="higher", margin=0.16, settings=HARD,
    versus_settings={**HARD, "grain": "exact"}, steps=40,
    fault=Within("train.signal", high=0.85, says="share of groups that teach anything, where calls must be exact"),
    moved=Within("train.signal", low=0.1, says="share of groups that teach anything"), start=None,
    finding="18% of replies make all calls right before, 76% and 75% after: paid in parts, 76% of groups teach anything late in "
    "training, against 71% for exact calls alone. That difference is too small here for the parts to show what they are for",
)  # fmt: skip
baseline = "grpo"
