"""Router-R1: a policy that thinks, asks other models by name, as often as it needs to, and is paid for right answers at low cost.

    <think>...</think><search>Model: question</search>   ->   <information>what the model says</information>   ->   ...
    R = -1 where the form is wrong;   else [right] ((1 - a) + a r_cost)
    cost = sum over calls of price * tokens that the model wrote;    r_cost = 1 - (sqrt(cost) - q05) / (q95 - q05), from 0 to 1

q05, q95: of the last 1000 costs, after the root; r_cost = 1/2 where they are equal. Whom to ask, what, and when to stop is one
decision process: the descriptions of the models are in the prompt, so that one that was never seen can be asked too. What models
say is read and not learnt from.

Zhang et al. 2025, arXiv:2506.09033, by its abstract, and the released code (ulab-uiuc/Router-R1, by the fork
programmer229/Router-R1): train.sh (69ac0cd) has PPO of 64 prompts, one episode each, 4 calls and a last reply, mini-batches of 32,
a KL of .001, and a = 0 unless asked for; verl/trainer/main_ppo.py (32225da) the form and the cost; qa_em.py (586f202, and other
forks) that a wrong answer is paid nothing, however cheap; prompt_pool.py and route_service.py (2dab00d) the prompts, shorter here,
and 512 tokens of a model at temperature 0. The form is also wrong where a question names its model. (inferred): a = .5, since at 0
nothing is paid for cost; lam = 1, as verl has it.

The pool is a JSON file, or its text, --pool pool.json: a list of {"name", "about", "price", "model"}, price in money for a million
tokens, model as judges are named (openai:URL#NAME, hf:PATH, model:RUN, copy:policy). With "column" in the place of "model", what a
model says was recorded in that column of the row: a text, or several, of which the one that fits the question best is told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.clients.endpoint import is_served
from rewardlab.clients.messages import Reply
from rewardlab.core import (
    Group,
    Learner,
    Message,
    Problem,
    Recipe,
    Rollout,
    Run,
    Sampling,
    Score,
    Scores,
    Trajectory,
    Turn,
    environment,
    measure,
    rollout,
)
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.asked import Expert, experts_in, named, replies_by
from rewardlab.rollouts.interactive import in_place_of_replies, play
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.bm25 import index_of
from rewardlab.text.filled import filled
from rewardlab.worlds.pools import POOL

TELL = (
    "Answer the question. First reason in <think> ... </think>, and again after each new information. If you lack knowledge, ask "
    "a model: <search> Name: question </search>, with a name from the list and a concrete question; think before why you ask, and "
    "which model fits best. Its reply comes in <information> ... </information>. When you know, write <answer> ... </answer>, "
    "nothing more.\n\nModels:\n{models}\n\nQuestion: {question}"
)
ASKED = (
    "You help another model, which asks you a part of what it wants to know. Answer it and explain briefly, or give what you know "
    "that helps. If you cannot, say so clearly, and that other models should be asked. Be concise.\n\nThe question: {question}"
)
STOP, NONE = ("</search>", "</answer>"), "None"
_TAG = re.compile(r"</?(?:search|answer|think|information)>")
PREFIX, WINDOW, TOKENS = "expert.", 1000, 512
ALONE = (
    '[{"name": "Assistant", "about": "What you were at first, with a context of its own.", "price": 1.0, "model": "copy:policy"}]'
)
"""The pool without any: the starting policy itself."""

# ---- what is asked, and what is said ----------------------------------------------------------------------------------


def call_in(reply: str) -> tuple[str, str] | None:
    """Name and question of the last call of a reply; None where it makes none, or answers."""
    calls = re.findall(r"<search>(.*?)</search>", reply, re.DOTALL)
    name, colon, question = calls[-1].partition(":") if calls else ("", "", "")
    return (name.strip(), question.strip()) if colon and question.strip() and "</answer>" not in reply else None


def replies_of(expert: Expert, questions: Sequence[str], rows: Sequence[Problem], run: Run) -> list[tuple[str, float]]:
    """What a model says to each question, and how many tokens that is; "" and 0 where it says nothing."""
    if column := expert.get("column"):
        said = [_recorded(problem, column, question) for problem, question in zip(rows, questions, strict=True)]
        return [(text, float(n)) for text, n in zip(said, run.policy.text_lengths(said), strict=True)]
    asked = [(Message("user", filled(ASKED, question=question)),) for question in questions]
    model = expert["model"] if is_served(expert["model"]) else PREFIX + expert["name"]
    found = replies_by(run, model, asked, TOKENS if is_served(model) else min(TOKENS, run.max_new))
    told = [reply if isinstance(reply, Reply) else Reply("") for reply in found]
    lengths = run.policy.text_lengths([reply.text for reply in told])
    return [(r.text, float(n if r.tokens is None else r.tokens)) for r, n in zip(told, lengths, strict=True)]


def _recorded(problem: Problem, column: str, question: str) -> str:
    problem.required(column, by="the pool of router_r1")
    said = problem.meta[column]
    texts = list_of(said)
    return str(said) if texts is None else next(iter(index_of(tuple(map(str, texts))).best(question)), "")


# ---- episodes --------------------------------------------------------------------------------------------------------


@environment(start=lambda problem, seed: (None, {"told": None, "cost": 0.0}))
def told_by_experts(state: dict[str, Any], turn: Turn) -> tuple[Message | None, dict[str, Any]]:
    """Passes on what a model said, and charges for it; an answer is the last reply, and so is one that neither asks nor answers."""
    if state["told"] is None:
        return None, state
    return Message("user", f"<information>{state['told']}</information>", reward=-state["cost"]), {"told": None, "cost": 0.0}


@rollout
def routed(
    problems: list[Problem], run: Run, *, experts: list[Expert], n: PositiveInt = 1, turns: PositiveInt = 5, tell: str = TELL,
    temperature: NonNegativeFloat = 1.0,
) -> list[Group]:  # fmt: skip
    """n episodes of each problem, of at most `turns` replies; each but the last may ask one of the models.

    tell: the prompt, with {models} and {question}.  What a call costs, price times tokens, is charged as a reward of the
    environment. All calls of a turn are made together, model by model. Logged: calls, of an episode.
    """
    models = "\n".join(f"{e['name']} ({e['price']:g} per million tokens): {e['about']}" for e in experts)
    rows = [(p, i) for p in problems for i in range(n)]
    prompts = [p.reworded(filled(tell, models=models, question=p.question)).prompt for p, _ in rows]
    episodes = run.policy.read([Trajectory(p, path=(i,)) for p, i in rows], prompts)
    env = told_by_experts()
    states = [env.start(p, 0)[1] for p, _ in rows]

    def answered(rows: list[Trajectory], inside: list[Any], live: list[int], replied: bool) -> list[int]:
        calls = {i: call for i in live if replied and len(rows[i].ends) < turns and (call := call_in(rows[i].reply))}
        for i in calls:
            inside[i] = {"told": NONE, "cost": 0.0}
        for expert in experts:
            mine = [i for i, (name, _) in calls.items() if named(name, [expert])]
            said = replies_of(expert, [calls[i][1] for i in mine], [rows[i].problem for i in mine], run) if mine else []
            for i, (text, tokens) in zip(mine, said, strict=True):
                # the marks are the policy's: what another model writes must not open or close any
                inside[i] = {"told": _TAG.sub("", text).strip() or NONE, "cost": expert["price"] * tokens}
        return live

    play(env, episodes, states, run, Sampling(run.max_new, temperature, stop=STOP), turns, together=answered)
    run.log("calls", float(np.mean([max(0, len(t.ends) - 1) for t in episodes])))
    return [episodes[i : i + n] for i in range(0, len(episodes), n)]


# ---- what an episode is paid -----------------------------------------------------------------------------------------


def cost_of(trajectory: Trajectory) -> float:
    """What its calls cost."""
    return -sum(pay for _, pay in trajectory.paid)


def fault_of(text: str, experts: Sequence[Expert]) -> str:
    """What is wrong with the form of an episode, replies and information in one text; "" where nothing is."""
    tags = ("search", "answer", "think", "information")
    parts = [(tag, body.strip()) for tag, body in re.findall(r"<(search|answer|think|information)>(.*?)</\1>", text, re.DOTALL)]
    bodies = {tag: [body for name, body in parts if name == tag] for tag in tags}
    marks = [mark for tag in tags for mark in (f"<{tag}>", f"</{tag}>")]
    if any(text.count(f"<{tag}>") != text.count(f"</{tag}>") for tag in tags) or any(m in b for _, b in parts for m in marks):
        return "tags that are not closed, or lie in one another"
    if len(bodies["answer"]) != 1 or not bodies["think"] or len(bodies["search"]) != len(bodies["information"]):
        return "not one answer, some thinking, and an answer to each call"
    if any(body in ("", "...") for body in bodies["think"]):
        return "empty thinking"
    if not text.strip().startswith("<think>") or not text.strip().endswith("</answer>"):
        return "it does not begin with thinking and end with the answer"
    for call in bodies["search"]:
        name, _, question = (x.strip().lower() for x in call.partition(":"))
        if call.count(":") != 1 or not question or name in question or not named(name, experts):
            return f"a call of no model of the pool, or without a question of its own: {call[:60]}"
    return ""


def opened(reply: str) -> str:
    """A reply with its thought opened: a chat template may have done that in the prompt, so that the reply begins within it."""
    before, closed, _ = reply.partition("</think>")
    return f"<think>{reply}" if closed and "<think>" not in before else reply


@reward
def well_formed(trajectory: Trajectory, *, experts: list[Expert]) -> Score:
    """1 for an episode of the form that the prompt asks for, else -1."""
    fault = fault_of("".join(turn.text if turn.author is None else opened(turn.text) for turn in trajectory.turns[1:]), experts)
    return Score(-1.0 if fault else 1.0, why=fault)


@reward(over="groups")
def cheapness(groups: list[Group], run: Run, *, window: PositiveInt = WINDOW) -> Scores:
    """1 - (sqrt(cost) - q05) / (q95 - q05), from 0 to 1, over the last `window` episodes up to this one; 1/2 if all cost alike."""
    known = run.memory.get("router_r1.costs", [])
    # a step may be scored again: what it added itself is left out
    seen = [[step, cost] for step, cost in known if step != run.step]
    scores: list[list[Score]] = []
    for group in groups:
        scores.append([])
        for t in group:
            seen = [*seen, [run.step, float(np.sqrt(max(0.0, cost_of(t))))]][-window:]
            low, high = np.percentile([cost for _, cost in seen], (5, 95))
            share = (seen[-1][1] - low) / (high - low) if high - low > 1e-8 else 0.5
            scores[-1].append(Score(1 - float(np.clip(share, 0, 1)), why=f"cost {cost_of(t):g}"))
    if not run.held_out:
        run.memory["router_r1.costs"] = seen
    return scores


@measure
def routed_accuracy(problems: Sequence[Problem], run: Run, *, rollout: Rollout) -> dict[str, float]:
    """pass@1 of episodes by the task's verifier, one without a verdict counting as wrong;  spent: what their calls cost on average,
    in money for a million episodes;  calls: how many they make."""
    if run.verify is None:
        raise RewardlabError("routed_accuracy needs the task's verifier, and this run has none: name a task")
    groups = rollout(list(problems), run)
    right = [float(np.mean([s.value is not None and s.value >= 1.0 for s in row])) for row in run.verify(groups, run)]
    rows = [t for group in groups for t in group]
    low, high = mean_interval(right)
    return {
        "pass@1": float(np.mean(right)), "ci95_low": low, "ci95_high": high, "n": float(len(right)),
        "spent": float(np.mean([cost_of(t) for t in rows])), "calls": float(np.mean([max(0, len(t.ends) - 1) for t in rows])),
    }  # fmt: skip


# ---- the recipe ------------------------------------------------------------------------------------------------------


def router_r1(
    base: Recipe | None = None,
    *,
    pool: str = "",
    n: int | None = None,
    turns: int = 5,
    cost: float = 0.5,
    problems: int = 64,
    tell: str = TELL,
) -> Recipe:
    """pool: the models, a JSON file or its text; without it, the policy as it starts.  n, turns: episodes of a problem (None: as
    many as the base has, or else 1), and replies of an episode: so many calls, and one more.  cost: a, the weight of a low cost.
    problems: of a step, where no base says otherwise.  tell: the prompt, with {models} and {question}."""
    base = base or ppo(n=n or 1, lam=1.0, beta=0.001, epochs=1, minibatches=2).but(problems=problems)
    experts = experts_in(pool or ALONE)
    local = [e for e in experts if "model" in e and not is_served(e["model"])]
    models = [Learner(PREFIX + e["name"], e["model"], Recipe(), every=0) for e in local]
    right: Any = base.reward or correct()
    played: dict[str, Any] = {"experts": experts, "turns": turns, "tell": tell}
    return base.but(
        rollout=in_place_of_replies(base.required("rollout"), routed, **played, n=n),
        # a wrong form closes the gate, and is all that an episode is paid
        reward=well_formed(experts=experts) >> (right * ((1 - cost) + cost * cheapness()) if cost else right),
        measure=routed_accuracy(rollout=routed(**played, n=1)),
        also=(*base.also, *models),
    )


fidelity = "core"
left_out = (
    "F1 in the place of right answers; a call and what follows it in one message of the policy (here the information is a message "
    "of its own); further tries after a reply that neither asks nor answers; information cut at 600 tokens"
)
data = Data(
    answer="the gold answer",
    helper=Column("what a model of the pool says, where its entry names this column: a text, or several", optional=True),
    rows=[
        {"prompt": "In which country was the author of Faust born?", "answer": "Germany", "helper": ["Goethe wrote Faust.",
         "Goethe was born in Frankfurt, Germany."]},
        {"prompt": "Which river flows through the capital of France?", "answer": "Seine", "helper": "Paris lies on the Seine."},
        {"prompt": "How many legs do three spiders have together?", "answer": "24", "helper": "A spider has eight legs."},
    ],
    verified_by="tagged_answer",
)  # fmt: skip

check = Check(
    says="paid for low cost too, a policy spends less on its experts than one that is paid for right answers alone, and is not "
    "right much less often",
    versus="router_r1", task="pools", measure="spent", direction="lower", margin=2.0,
    settings={"pool": POOL, "turns": 3, "tell": "{question}", "problems": 32},
    versus_settings={"pool": POOL, "turns": 3, "tell": "{question}", "problems": 32, "cost": 0.0},
    by=routed_accuracy(rollout=routed(experts=experts_in(POOL), n=8, turns=3, tell="{question}")), problems=32, steps=10,
    guard=Within("pass@1", low=-0.1), fault=Within("spent", low=5.0, says="what two calls cost at first"),
    tried="not in this version",
    finding="paid for low cost it spends 13.1 a question, else 14.0, and is right 2 points less often: not decided by five pairs, "
    "of which one went the other way by 9. It no longer asks the cheap expert whatever is wanted",
    version=2,
    replaces="wrong answers were paid for being cheap, too, which the released code does not: it spent 3.3 a question, and was "
    "right in 17% where the other was in 35%",
)  # fmt: skip
baseline = "ppo"
