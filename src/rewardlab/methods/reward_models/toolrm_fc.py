"""ToolRM: an outcome reward model of tool calls, from gold calls and the calls that models get wrong, under names made up anew.

    x = tool catalog and conversation;    y+ = the gold calls;    y- = a model's calls that the gold calls show to be wrong
    names of functions and arguments, in the catalog and in both replies, become random strings; arguments change their order
    L = -log sigmoid(r(x, y+) - r(x, y-)) + eta (r(x, y+) + r(x, y-))^2

The commonest error is one wrong value (650 of the 1,500 of FC-RewardBench), and no format gives it away. Under made-up names
nothing can be remembered of tools: what is left is to read the catalog and what was asked. The second term keeps scores around 0,
so that they can be thresholds and rewards.

Agarwal et al. 2025, arXiv:2509.11963, by texts that quote its equations and data: calls of 11 models of 0.5B to 32B, 180K samples,
10K of which need no call; names as in Hammer (Lin et al. 2024, arXiv:2410.04587). Its objective is written with the sign of the
second term turned round. No released code was found. (inferred): eta = 0.01, that of Eisenstein et al. 2023, arXiv:2312.09244;
names are made up after the models have called, which in the paper see made-up names; what a reply without calls says. So replies
whose calls cannot be read, which keep their true names, are in no pair with made-up ones.

`replies` of a row are models' replies; where there are none the policy writes them. Both sides are written as CALL below, and
--reward model:RUN scores what is written so, after a catalog as CATALOG. Held-out accuracy, under true names, is told by the kinds
of errors of FC-RewardBench, which holds such pairs of BFCL.
"""

import json
import random
import string
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Learner, Message, Problem, Recipe, Run, Sampling, Update, measure, rollout, seed_of
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of
from rewardlab.errors import NothingKept, RewardlabError
from rewardlab.evals.pairs import end_values
from rewardlab.evals.passk import mean_interval
from rewardlab.evals.reranked import reranked
from rewardlab.methods.baselines.bradley_terry import bradley_terry
from rewardlab.objectives.pairs import preference_loss
from rewardlab.rewards.model import model_score
from rewardlab.rollouts.ranked import recorded_pairs, written
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.verifiers.calls.calls import Call, Malformed, read_all, tools_from
from rewardlab.verifiers.calls.kinds import kind_of_error
from rewardlab.verifiers.calls.verifier import function_calls, gold_of
from rewardlab.verifiers.contract import Pair

CATALOG = "You can call these tools:\n{tools}"
CALL = "<tool_call>\n{call}\n</tool_call>"
NO_CALL = "None of the tools is of use here."
READS = "the tools, as a system message 'You can call these tools:' lists them, and calls between <tool_call> and </tool_call>"
SECONDS = 2.0
"""For the calls of a reply in Python syntax to be read."""


class Wrong(NamedTuple):
    """A wrong reply, its calls (Malformed: none can be read), and the kind of error."""

    text: str
    calls: list[Call] | Malformed
    kind: str


# ---- names made up anew ----------------------------------------------------------------------------------------------------


class Names:
    """Random strings for the functions of a catalog and their arguments, and for whatever else calls name: an English name would
    tell a wrong call without the catalog."""

    def __init__(self, tools: Mapping[str, Any], rng: random.Random) -> None:
        self.rng, self.functions = rng, {name: _made_up(rng) for name in tools}
        self.arguments = {name: {x: _made_up(rng) for x in schema.get("properties", {})} for name, schema in tools.items()}
        self.order = {name: rng.sample(list(known), len(known)) for name, known in self.arguments.items()}

    def tool(self, tool: Mapping[str, Any]) -> dict[str, Any]:
        """A tool, bare or in OpenAI's format, under its new names, its arguments in another order."""
        if isinstance(tool.get("function"), Mapping):
            return {**tool, "function": self.tool(tool["function"])}
        name, where = tool["name"], "input_schema" if "parameters" not in tool and "input_schema" in tool else "parameters"
        schema, new = tool.get(where) or {}, self.arguments[tool["name"]]
        told = {new[x]: schema["properties"][x] for x in self.order[name]}
        required = [new.get(x, x) for x in schema.get("required", [])]
        renamed = {**schema, "properties": told, **({"required": sorted(required)} if required else {})}
        return {**tool, "name": self.functions[name], where: renamed}

    def call(self, call: Call) -> Call:
        if call.name not in self.functions:
            self.functions[call.name] = _made_up(self.rng)
        known = self.arguments.setdefault(call.name, {})
        for name in call.arguments:
            if name not in known:
                known[name] = _made_up(self.rng)
        return Call(self.functions[call.name], {known[name]: value for name, value in call.arguments.items()})


def _made_up(rng: random.Random) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=8))


def in_form(calls: Sequence[Call]) -> str:
    """Calls as both sides of a pair write them."""
    told = [json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False) for call in calls]
    return "\n".join(CALL.format(call=call) for call in told) or NO_CALL


# ---- pairs ---------------------------------------------------------------------------------------------------------------------


@rollout(rows=lambda **_: 2)
def mined_calls(
    problems: list[Problem], run: Run, *, n: PositiveInt = 8, obfuscate: bool = True, catalog: bool = True, gold: str = "chosen",
    temperature: NonNegativeFloat = 1.0, attempts: PositiveInt = 20,
) -> list[Group]:  # fmt: skip
    """A pair for each problem with a wrong reply: the gold calls, and one of its wrong replies.

    n, temperature: of replies that the policy writes where the column `replies` is missing.  obfuscate: made-up names, where there
    are `tools`.  catalog: write the tools before the conversation.  gold: the column with the gold calls as a reply; without it
    both sides are written in one form.  Problems that no reply gets wrong are replaced, `attempts` times.  Logged: wrong, the
    share of replies that are; usable, the share of problems with one.
    """
    kept: list[tuple[Problem, list[str]]] = []
    wanted, looked_at, rates = len(problems), 0, []
    for _ in range(attempts):
        looked_at += len(problems)
        shown = [_with_catalog(p, _tools(p)) if catalog else p for p in problems]
        for problem, texts in zip(problems, _replies(shown, run, n, temperature), strict=True):
            found = wrong_of(problem, texts)
            rates.append(len(found) / max(1, len(texts)))
            if pair := _pair(problem, found, obfuscate, catalog, gold):
                kept.append(pair)
        if len(kept) >= wanted or run.more_problems is None:
            break
        problems = run.more_problems(wanted - len(kept))
    if not kept:
        raise NothingKept(f"none of the replies to {looked_at} problems makes wrong calls: there is no pair to learn from")
    run.log("wrong", float(np.mean(rates)))
    run.log("usable", len(kept) / looked_at)
    groups = recorded_pairs(kept, run)
    for t in (t for group in groups for t in group):
        run.policy.check_fits(t, 0)
    return groups


def _tools(problem: Problem) -> list[Any]:
    return list_of(problem.meta.get("tools", problem.meta.get("function"))) or []


def _with_catalog(problem: Problem, tools: Sequence[Any]) -> Problem:
    if not tools:
        return problem
    text = CATALOG.format(tools="\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools))
    first, *rest = problem.prompt
    # one system message: many chat templates take no second one
    told = (
        [Message("system", f"{first.text}\n\n{text}"), *rest] if first.role == "system" else [Message("system", text), first, *rest]
    )
    return replace(problem, prompt=tuple(told))


def _replies(problems: Sequence[Problem], run: Run, n: int, temperature: float) -> list[list[str]]:
    """What models replied, each text once; the policy is asked where the data does not say."""
    texts = [list_of(p.meta.get("replies")) for p in problems]
    asked = [i for i, known in enumerate(texts) if known is None]
    if asked:
        groups = written([problems[i] for i in asked], run, n, "policy", Sampling(run.max_new, temperature))
        for i, group in zip(asked, groups, strict=True):
            texts[i] = [t.reply for t in group]
    return [list(dict.fromkeys(known or [])) for known in texts]


def wrong_of(problem: Problem, texts: Sequence[str]) -> list[Wrong]:
    """The replies that do not make the gold calls, with their calls by name."""
    meant = gold_of(Pair("", problem.answer, problem.question, problem.meta))
    if isinstance(meant, Malformed) or meant.calls is None:
        why = meant if isinstance(meant, Malformed) else "it has tools alone"
        raise RewardlabError(f"problem {problem.question[:60]!r} has no gold calls in its answer: {why}")
    verdicts = function_calls().check_all([Pair(text, problem.answer, problem.question, problem.meta) for text in texts])
    texts = [text for text, verdict in zip(texts, verdicts, strict=True) if verdict.correct is False]
    found = []
    for text, calls in zip(texts, read_all(texts, "auto", SECONDS), strict=True):
        try:
            known = (
                calls
                if isinstance(calls, Malformed)
                else [c.bound(meant.tools, meant.accepted is None, meant.calls) for c in calls]
            )
        except Malformed as problem_with_it:
            known = problem_with_it
        found.append(Wrong(text, known, kind_of_error(meant, known)))
    return found


def _pair(
    problem: Problem, found: Sequence[Wrong], obfuscate: bool, catalog: bool, gold: str
) -> tuple[Problem, list[str]] | None:  # fmt: skip
    """The problem as it is shown, and the texts of its pair; the same each time. None where no wrong reply can be shown."""
    rng, tools, said = random.Random(seed_of("toolrm_fc", problem.key)), _tools(problem) if catalog else [], problem.meta.get(gold)
    obfuscate = bool(obfuscate and tools and not said)
    found = [wrong for wrong in found if not (obfuscate and isinstance(wrong.calls, Malformed))]
    if not found:
        return None
    wrong = rng.choice(found)
    tagged = replace(problem, meta={**problem.meta, "error": wrong.kind})
    if said:
        return _with_catalog(tagged, tools), [said, wrong.text]
    meant = gold_of(Pair("", problem.answer, problem.question, problem.meta))
    right = [] if isinstance(meant, Malformed) else list(meant.calls or [])
    # what cannot be read is shown as it is, and so is a reply that should have called
    calls = [] if isinstance(wrong.calls, Malformed) else wrong.calls
    if obfuscate:
        names = Names(tools_from(tools), rng)
        tools = [names.tool(tool) for tool in tools]
        right, calls = ([names.call(call) for call in of] for of in (right, calls))
    return _with_catalog(tagged, tools), [in_form(right), in_form(calls) if calls else wrong.text]


@measure
def fc_pairs(
    problems: Sequence[Problem], run: Run, *, n: PositiveInt = 8, catalog: bool = True, gold: str = "chosen", model: str = "reward"
) -> dict[str, float]:
    """On pairs of held-out problems under true names, how often the gold calls score higher, ties half; of each kind of error, too.

    centre: the mean of the two scores, in the mean over pairs.
    """
    groups = mined_calls(n=n, obfuscate=False, catalog=catalog, gold=gold)(list(problems), run)
    values = end_values(run.models[model], [t for group in groups for t in group]).reshape(-1, 2)
    wins = np.where(values[:, 0] == values[:, 1], 0.5, values[:, 0] > values[:, 1])
    kinds = np.array([group[0].problem.meta["error"] for group in groups])
    low, high = mean_interval(wins.tolist())
    return {
        "pair_accuracy": float(wins.mean()), "ci95_low": low, "ci95_high": high, "n": float(len(wins)),
        **{f"pair_accuracy.{kind}": float(wins[kinds == kind].mean()) for kind in sorted(set(kinds))},
        "centre": float(values.mean()),
    }  # fmt: skip


# ---- the recipe ---------------------------------------------------------------------------------------------------------------


def toolrm_fc(
    base: Recipe | None = None, *, center: float = 0.01, obfuscate: bool = True, catalog: bool = True, gold: str = "chosen",
    n: int = 8, reward_lr: float | None = None, problems: int = 32, init: str = "value-head",
) -> Recipe:  # fmt: skip
    """center: eta.  obfuscate: made-up names in training.  catalog: show the tools of the column `tools` before the conversation.
    gold: the column of the gold calls as a reply, if there is one; then no names are made up.  n: replies that the policy writes
    where rows bring none.  reward_lr, problems, init: as in `bradley_terry`."""
    base = base or bradley_terry(problems=problems)
    taught = Recipe(objective=preference_loss(center=center), update=Update(lr=reward_lr, loss_kind="scorer"))
    others = tuple(learner for learner in base.also if learner.name != "reward")
    return base.but(
        rollout=mined_calls(n=n, obfuscate=obfuscate, catalog=catalog, gold=gold),
        measure=fc_pairs(n=n, catalog=catalog, gold=gold),
        also=(*others, Learner("reward", init, taught, reads=READS if catalog else "")),
    )


fidelity = "core"
left_out = (
    "the data themselves (APIGen, dialogues of several turns, xlam-irrelevance) and asking eleven models: rows bring both; a "
    "reader of the published file of FC-RewardBench, whose kinds of errors are told here"
)
data = Data(
    answer="the gold calls: {name, arguments}, a list of them, or BFCL's lists of accepted values; an empty list where none fits",
    tools=Column("JSON schemas of the tools, {name, parameters}, bare or in OpenAI's format; also as `function`", optional=True),
    replies=Column("a list of models' replies; without it the policy is asked", optional=True),
    chosen=Column("the gold calls as a reply; without it both replies are written in one form", optional=True),
    verified_by="function_calls",
    rows=[
        {
            "prompt": "Is it warm in Oslo?", "answer": [{"name": "weather", "arguments": {"city": "Oslo"}}],
            "tools": [{"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}],
            "replies": ["<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bergen\"}}\n</tool_call>"],
        },
        {
            "prompt": "Wake me at 7.", "answer": [{"name": "alarm", "arguments": {"hour": 7}}],
            "tools": [{"name": "alarm", "parameters": {"type": "object", "properties": {"hour": {"type": "integer"}}}}],
            "replies": ["alarm(hour=7)", "alarm(hour=\"7\")", "Good night!"],
        },
    ],
)  # fmt: skip

# prompts of this world name no tools, and their replies have a form of their own
OWN_FORM = {"catalog": False, "gold": "solution", "init": "value-head:surprise", "reward_lr": 1e-3, "problems": 16, "n": 2}
check = Check(
    says="the best of 8 replies by a model that learnt from gold calls and the policy's own wrong ones is right more often than "
    "one (the model reads surprise)",
    versus=None, task="calls", measure="reranked", direction="higher", margin=0.05, against="pass@1", settings=OWN_FORM,
    by=reranked(by=model_score(model="reward"), n=8), problems=100, steps=40,
    finding="The best of 8 is right in 69% of problems, any one of them in 36%.",
)  # fmt: skip
baseline = "bradley_terry"
