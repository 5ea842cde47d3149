"""Reason-Act GRPO: reward an episode's tool calls and its answer; thoughts are free.

    r = a accuracy of the calls + b answer right + c form
    accuracy: share of the tools, names of arguments and values that are those of the gold calls, over all replies
    form: share of replies that are <think>...</think> and then something;    GRPO: one advantage for all decisions of an episode

Worked thoughts are costly, and SFT without them is brittle elsewhere. Here nobody writes or judges a thought: it is worth what it
leads to. The answer alone does not tell a good call from a lucky one, and calls alone do not teach what to make of their results;
so each is paid, in one number. Where no call is wanted, to make none is accurate.

Rawat et al. 2025, arXiv:2512.11277, of which abstract and summaries were read; no code was found. Theirs: GRPO, rewards for tool
accuracy and for the answer, a start after SFT on calls and answers without thoughts (`sft_steps`, on the column `solution`).
(inferred): that both are added, a = b = 1, c = .1 and what form is; accuracy in parts, R/S of ToolRL (arXiv:2504.13958), Jaccard
similarity of names and shares of right values; the calls of all replies together, in any order; no KL term. `calls=0` leaves GRPO
with the answer alone.

Calls are written as <tool_call>{"name", "arguments"}</tool_call>; env=... has tools that run.
"""

from typing import Any

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Environment, Recipe, Score, Trajectory
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of
from rewardlab.envs.tools import recorded_tools
from rewardlab.evals.episodes import episode_accuracy, right_by_the_way
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.sft import sft_first
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.interactive import in_place_of_replies, interactive
from rewardlab.text.answers import after_thinking
from rewardlab.text.tool_calls import call_of, calls_in
from rewardlab.verifiers.calls.calls import Call
from rewardlab.verifiers.calls.matching import agreement


@reward
def tool_accuracy(trajectory: Trajectory, *, field: str = "calls") -> Score:
    """Similarity of the calls of an episode's replies to the gold ones in meta[`field`], from 0 to 1.

    Calls that cannot be read spoil all, and one that stands in the place of the answer counts too.
    """
    gold = list_of(trajectory.problem.meta.get(field))
    try:
        wanted = [Call(*call_of(entry)) for entry in gold or []]
    except ValueError as e:
        return Score(None, why=f"the gold calls cannot be used: {e}")
    if gold is None:
        return Score(None, why=f"the problem has no gold calls in {field!r}")
    said = [calls_in(reply) for reply in trajectory.replies]
    if any(calls is None for calls in said):
        return Score(0.0, why="calls that cannot be read")
    made = [Call(*call) for calls in said for call in calls or []]
    if not wanted:
        return Score(float(not made), why="no call is wanted")
    return Score(agreement(wanted, made), why=f"{len(made)} calls, {len(wanted)} wanted")


@reward
def thinks_first(trajectory: Trajectory) -> float:
    """The share of an episode's replies that are <think>, a thought, </think>, and then something."""
    kept = [_thinks(reply.strip()) for reply in trajectory.replies]
    return sum(kept) / max(1, len(kept))


def _thinks(reply: str) -> bool:
    once = reply.count("<think>") == reply.count("</think>") == 1
    return once and reply.startswith("<think>") and bool(after_thinking(reply).strip())


def reason_act_tool_grpo(
    base: Recipe | None = None, *, env: Environment | None = None, n: int | None = None, turns: int = 3,
    calls: float = 1.0, answer: float = 1.0, form: float = 0.1, sft_steps: int = 0,
) -> Recipe:  # fmt: skip
    """env: the tools; without it, those that the base plays with, else recorded results.  n: episodes of a problem; None: as
    many as the base has, or else 8.  turns: the most replies of an episode.
    calls, answer, form: the weights a, b, c.  sft_steps: of SFT before; 0 where the model has had it.
    """
    base = base or grpo(n=n or 8)
    right: Any = base.reward or correct()
    paid = answer * right
    for weight, term in ((calls, tool_accuracy()), (form, thinks_first())):
        paid = paid + weight * term if weight else paid
    loop = sft_first(steps=sft_steps, field="solution", inner=base.loop) if sft_steps else base.loop
    made = base.but(reward=paid, loop=loop)
    # a base that plays in an environment keeps it, and keeps its measure
    if env is None and base.sampling_settings.get("env"):
        return made
    env = env or recorded_tools()
    measure = episode_accuracy(rollout=interactive(env=env, n=1, turns=turns))
    return made.but(rollout=in_place_of_replies(base.required("rollout"), env=env, n=n, turns=turns), measure=measure)


fidelity = "reading"
left_out = (
    "the SFT before RL, unless `sft_steps` says for how long; and its data, conversations whose calls and answers were made by a "
    "large model"
)
data = Data(
    answer="the gold answer",
    calls='the calls that are wanted, {"name", "arguments"} each; [] where none is',
    results=Column('calls with what they return, {"name", "arguments", "result"} each; not read with an `env`', optional=True),
    solution=Column("replies to imitate first, calls and answer, a list; read with `sft_steps`", optional=True),
    rows=[
        {
            "prompt": "Tools: bus(city, day). Is there a bus to Rome on day 3 after 6 o'clock? End with Answer: yes or no.",
            "answer": "yes",
            "calls": [{"name": "bus", "arguments": {"city": "Rome", "day": 3}}],
            "results": [{"name": "bus", "arguments": {"city": "Rome", "day": 3}, "result": "7 o'clock"}],
        },
        {
            "prompt": "Tools: bus(city, day). Thanks, is Rome in Italy? End with Answer: yes or no.",
            "answer": "yes",
            "calls": [],
            "results": [],
        },
    ],
)

RATE = {"problems": 16, "lr": 3e-4}
claim = Claim(
    says="after equal updates right answers come oftener from the right calls than where the answer alone is paid",
    versus="reason_act_tool_grpo", task="desk", measure="right_by_the_way", direction="higher", margin=0.06913,
    settings=RATE, versus_settings={**RATE, "calls": 0.0},
    by=right_by_the_way(rollout=interactive(env=recorded_tools(), n=3, turns=3), way=tool_accuracy()), steps=30,
    guard=Within("pass@1", low=-0.03),
    fault=Within("lucky", low=0.1, says="share of right answers after other calls, where the answer alone is paid"),
    learns="the_way", start=None,
    finding="of right answers 57% come from the right calls before, 95% where calls are paid too and 87% where the answer alone "
    "is, over twelve pairs of runs that vary much. Paying calls costs no right answers: 64% before, 92 and 87% after",
)  # fmt: skip
baseline = "grpo"
