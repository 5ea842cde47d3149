"""ToolComp: does a judge prefer the step of a tool-using agent that a human corrected, and does a reward rank trajectories rightly?

    a pair is won (1) if the corrected step is preferred in both orders, lost (0) if the other is, and else a tie (1/2)
    total_accuracy: the mean over all pairs;   action_plan_only_accuracy, react_steps_accuracy: over plans, and over steps
    rank_1: how often the trajectory with the highest reward, of the N sampled for a prompt, has the right answer

Nath et al. 2025, arXiv:2501.01290, and the released code (vaskar-open-source-research/toolcomp, inference/llm_as_judge_inference.py
and prompts/llm_as_judge.py), whose names of figures these are. A verdict that cannot be read is a tie there. Asked with both
orders, a judge that only looks at places comes to 1/2; a reward has no order, and equal scores are a tie. Read are the rows of
vaskarnath/toolcomp_process_supervision_eval: `history` is JSON, empty for a plan. thought, action and action_input: the accuracy on
steps in which that part was labelled 0, wrong (inferred). The paper calls what it trains for rank@1; no code or trajectories of it
are released: a row {"prompt": ..., "trajectories": [{"steps": [...], "correct": true}, ...]} is ours, and equal rewards share it.

The check trains an outcome and a process reward model on the same trajectories, as the paper does. (inferred): the process reward
of a trajectory is the minimum over its steps, with the mean, maximum, product and last step beside it; steps after the first wrong
one have no label.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe, Run, study
from rewardlab.prm.linear import LinearScorer, of_steps
from rewardlab.scoreboard.benchmark import Benchmark
from rewardlab.scoreboard.choices import expected_best, points
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict, users
from rewardlab.scoreboard.procedural import items_of

kind = "benchmark"
PLAN, STEP, RANK = "plan", "step", "trajectories"
TODAY = "Tuesday, September 03, 2024"
"""The date that the released code tells where a row has none."""
FIELDS = {"thought": "Thought", "action": "Action", "action_input": "Action Input", "observation": "Observation"}


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    """The corrected plan or step first, after what was done before it; or the trajectories of a prompt."""
    name = hashlib.sha256(json.dumps(row, sort_keys=True, default=str).encode()).hexdigest()[:16]
    if "trajectories" in row:
        found = row["trajectories"]
        steps = tuple(tuple(map(str, t["steps"])) for t in found)
        if len(steps) < 2 or not all(steps):
            raise ValueError(f"a prompt needs two trajectories or more, each with steps, and has {len(steps)}")
        worth = tuple(float(bool(t["correct"])) for t in found)
        yield Item(name, users(row["prompt"]), tuple("\n\n".join(s) for s in steps), worth, RANK, steps=steps)
        return
    history = row["history"]
    history = (json.loads(history) if isinstance(history, str) and history.strip() else history) or []
    better, worse = row["preferred"], row["dispreferred"]
    form: Callable[[Mapping[str, Any]], str] = _step if history else _plan
    labels = {part: (worse.get(part) or {}).get("label") for part in FIELDS} if history else {}
    meta = {"wrong": [part for part, label in labels.items() if label == 0 and part != "observation"]}
    yield Item(name, users(_before(row, history)), (form(better), form(worse)), (1.0, 0.0), STEP if history else PLAN, meta=meta)


def _plan(side: Mapping[str, Any]) -> str:
    return _text(side, "action plan")


def _step(side: Mapping[str, Any]) -> str:
    return "\n".join(f"{name}: {_text(side, part)}" for part, name in FIELDS.items())


def _text(side: Mapping[str, Any], part: str) -> str:
    if not isinstance(side.get(part), Mapping) or side[part].get("text") is None:
        raise ValueError(f"a side lacks the text of its {part}")
    return str(side[part]["text"])


def _before(row: Mapping[str, Any], history: Sequence[Mapping[str, Any]]) -> str:
    tools = row["tools"]
    tools = ast.literal_eval(tools) if isinstance(tools, str) else tools
    date = row.get("historical_date")
    # a column without a date holds null or NaN
    date = date if isinstance(date, str) and date else TODAY
    said = [str(row["prompt"]), f"Today is {date}. Tools: {', '.join(map(str, tools))}."]
    if history:
        said += [f"Action plan:\n{_plan(history[0])}", *map(_step, history[1:])]
    return "\n\n".join(said)


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    """won: 1, 1/2 or 0, and by the part that is wrong; of trajectories, whether the first by reward is right, and any one is."""
    if item.subset == RANK:
        n = len(item.replies)
        return {"rank_1": expected_best(points(item, verdict), item.worth, n), "any": float(np.mean(item.worth))}
    signs = [_sign(verdict.order(0, 1)), -_sign(verdict.order(1, 0))]
    won = 1.0 if min(signs) > 0 else 0.0 if max(signs) < 0 else 0.5
    return {"won": won} | dict.fromkeys(item.meta["wrong"], won)


def _sign(first: float | None) -> int:
    return 0 if first is None or first == 0.5 else 1 if first > 0.5 else -1


def figures(marks: Marks) -> dict[str, float]:
    """total_accuracy, of plans, of steps, and by the part that was wrong; rank_1 of trajectories, and `chosen_blindly`."""
    found = {
        "total_accuracy": marks.mean("won"), "action_plan_only_accuracy": marks.only(PLAN).mean("won"),
        "react_steps_accuracy": marks.only(STEP).mean("won"),
        **{name: marks.mean(name) for name in FIELDS if name in marks.columns},
        "rank_1": marks.mean("rank_1"), "chosen_blindly": marks.mean("any"),
    }  # fmt: skip
    known = {name: x for name, x in found.items() if not math.isnan(x)}
    return known or found


def _part(text: str, label: int = 1) -> dict[str, Any]:
    return {"text": text, "label": label}


def _side(thought: str, action: str, given: str, seen: str, wrong: str = "") -> dict[str, Any]:
    texts = {"thought": thought, "action": action, "action_input": given, "observation": seen}
    return {name: _part(text, int(name != wrong)) for name, text in texts.items()} | {"action plan": None}


_ASKED = {"prompt": "How old was the tower in 1989, in months?", "tools": "['calculator', 'wiki_search']", "historical_date": None}

benchmark = Benchmark(
    title="ToolComp", hub="vaskarnath/toolcomp_process_supervision_eval", read=read, marks=marks, figures=figures,
    chance={"total_accuracy": 0.5, "action_plan_only_accuracy": 0.5, "react_steps_accuracy": 0.5},
    prompt=(
        "An assistant answers a question with the help of tools. Below are the question, the tools, and what was done so far, "
        "which you take to be right; then two candidates for what comes next: an action plan, or one step (thought, action, action "
        "input, and what came back).\n\n{prompt}\n\n[Candidate A]\n{first}\n\n[Candidate B]\n{second}\n\nWhich candidate brings "
        "the assistant closer to the final answer? Do not mind its format. Say only [[A]], [[B]], or [[C]] if both are as good "
        "or as bad."
    ),
    example=(
        _ASKED | {
            "final_answer": "1200", "history": "[]",
            "preferred": {"action plan": _part("1. Look up when the tower was finished. 2. Count the months until 1989.")},
            "dispreferred": {"action plan": _part("1. Look up the height of the tower.", 0)},
        },
        _ASKED | {
            "final_answer": "1200", "history": json.dumps([
                {"action plan": _part("Look it up, then calculate.")},
                _side("When was it finished?", "wiki_search", '{"query": "tower"}', "It was finished in 1889."),
            ]),
            "preferred": _side("1989 - 1889 years, by 12.", "calculator", '{"expression": "(1989 - 1889) * 12"}', "1200"),
            "dispreferred": _side("1989 - 1889 years.", "calculator", '{"expression": "(1989 - 1889)"}', "100", "action_input"),
        },
    ),
)  # fmt: skip


# ---- its check: an outcome and a process reward model of the same trajectories ---------------------------------------

THINGS = ("tea", "jam", "rice", "salt", "milk", "corn", "figs", "soap")
SIGNS = {"plus": "+", "minus": "-", "times": "*"}
WEAK, STRONG = 0.2, 0.08
"""How often a policy errs at a step: the base model, and the fine-tuned one."""


def trajectory(rng: np.random.Generator, prices: Mapping[str, int], task: Sequence[tuple[str, str]], rate: float) -> dict[str, Any]:
    """Look up each price and calculate with it, in turn. An error is a call that does not do what the thought says, or a thought
    of something else; the tools answer what they are asked.  labels: 1, up to the first error, 0."""
    steps, labels, value, bad = [], list[float | None](), 0, False
    for k, (way, thing) in enumerate(task):
        wrong = [rng.random() < rate for _ in range(2)]
        key, thought = thing, thing
        if wrong[0]:
            key = str(rng.choice([x for x in THINGS if x != thing]))
            thought = key if rng.random() < 0.25 else thing
        steps.append(_line(f"I need the price of {thought}.", "lookup", key, prices[key]))
        calls = [wrong[0]]
        if k:
            sign = str(rng.choice([s for w, s in SIGNS.items() if w != way])) if wrong[1] else SIGNS[way]
            result = {"+": value + prices[key], "-": value - prices[key], "*": value * prices[key]}[sign]
            steps.append(_line(f"Now {value} {way} {prices[key]}.", "calculator", f"{value} {sign} {prices[key]}", result))
            value, calls = result, [*calls, wrong[1]]
        else:
            value = prices[key]
        labels += [None if bad or any(calls[:j]) else float(not c) for j, c in enumerate(calls)]
        bad = bad or any(calls)
    steps.append(_line("I have enough information.", "finish", str(value), "end"))
    return {"steps": steps, "labels": [*labels, None if bad else 1.0], "answer": value}


def _line(thought: str, action: str, given: str, seen: object) -> str:
    return f"Thought: {thought}\nAction: {action}\nAction Input: {given}\nObservation: {seen}"


def prompts(rng: np.random.Generator, n: int, prices: tuple[int, int], rate: float, each: int) -> list[dict[str, Any]]:
    """Rows of `each` trajectories of tasks with `prices[0]` up to `prices[1]` prices."""
    rows = []
    for _ in range(n):
        table = {thing: int(rng.integers(2, 30)) for thing in THINGS}
        task = [(str(rng.choice(list(SIGNS))), str(rng.choice(THINGS))) for _ in range(rng.integers(prices[0], prices[1] + 1))]
        truth = trajectory(rng, table, task, 0.0)["answer"]
        asked = " ".join([f"the price of {task[0][1]}", *(f"{way} the price of {thing}" for way, thing in task[1:])])
        several = [trajectory(rng, table, task, rate) for _ in range(each)]
        marked = [t | {"correct": t["answer"] == truth} for t in several]
        rows.append({"prompt": f"What is {asked}, in turn?", "trajectories": marked})
    return rows


BY: dict[str, Callable[[np.ndarray], float]] = {
    "min": np.min, "mean": np.mean, "max": np.max, "product": np.prod, "last": lambda x: x[-1],
}  # fmt: skip
"""How the chances of steps become the reward of a trajectory; the first is the one of the check."""


FEW, MANY = 60, 400


@study
def process_and_outcome(run: Run, *, n: int = 8, repeats: int = 4) -> dict[str, float]:
    """Both learn from FEW trajectories of two or three prices, half of them of each policy, with the same features and the same
    model; they rank n of four or five prices. orm_POLICY, prm_POLICY: rank@1, the mean over `repeats` training sets;
    gain_POLICY: the process model's lead, and with MANY trajectories; more_with_weak: how much larger it is on the weak policy;
    blind_POLICY: one trajectory in n; orm_learnt: orm_weak less blind_weak; prm_by_WAY: on the weak policy, by another way to sum
    steps up."""
    rng = np.random.default_rng(run.seed)
    tests = {policy: _featured(prompts(rng, 60, (4, 5), rate, n)) for policy, rate in (("weak", WEAK), ("strong", STRONG))}
    few, many = ([_ranked(rng, size, tests) for _ in range(repeats)] for size in (FEW, MANY))
    found = {name: float(np.mean([one[name] for one in few])) for name in few[0]}
    gains = {f"gain_{p}": found[f"prm_{p}"] - found[f"orm_{p}"] for p in tests}
    gains |= {f"gain_{p}_{MANY}": float(np.mean([one[f"prm_{p}"] - one[f"orm_{p}"] for one in many])) for p in tests}
    blind = {f"blind_{policy}": float(np.mean([np.mean(item.worth) for item, _ in rows])) for policy, rows in tests.items()}
    more = {"more_with_weak": gains["gain_weak"] - gains["gain_strong"], "orm_learnt": found["orm_weak"] - blind["blind_weak"]}
    return found | gains | more | blind


Featured = list[tuple[Item, list[list[np.ndarray]]]]


def _featured(rows: Sequence[dict[str, Any]]) -> Featured:
    """Items of trajectories, each with the features of its steps."""
    return [(item, [of_steps(item.question, steps) for steps in item.steps]) for item in items_of(benchmark, rows)]


def _ranked(rng: np.random.Generator, size: int, tests: Mapping[str, Featured]) -> dict[str, float]:
    """rank@1 on the tests of an outcome and a process model of `size` new trajectories."""
    orm, prm = _learnt([row for rate in (WEAK, STRONG) for row in prompts(rng, size // 2, (2, 3), rate, 1)])
    found = {}
    for policy, rows in tests.items():
        found[f"orm_{policy}"] = _rank_1((item, orm.chances(several)) for item, several in rows)
        steps = [(item, [prm.chances([[step] for step in row]) for row in several]) for item, several in rows]
        by = {way: _rank_1((item, [of(row) for row in several]) for item, several in steps) for way, of in BY.items()}
        found[f"prm_{policy}"] = by["min"]
        found |= {f"prm_by_{way}": x for way, x in by.items() if way != "min" and policy == "weak"}
    return found


def _rank_1(rewards: Iterable[tuple[Item, Iterable[float]]]) -> float:
    pairs = [(item, Verdict(tuple(map(float, row)))) for item, row in rewards]
    return figures(Marks.of([i for i, _ in pairs], [marks(i, v) for i, v in pairs]))["rank_1"]


def _learnt(rows: Sequence[Mapping[str, Any]]) -> tuple[LinearScorer, LinearScorer]:
    """The outcome model, from whole trajectories; the process model, from the labelled steps of the same ones."""
    known = [(t, of_steps(row["prompt"], t["steps"])) for row in rows for t in row["trajectories"]]
    orm = LinearScorer.fit([steps for _, steps in known], [float(t["correct"]) for t, _ in known])
    labelled = [(step, y) for t, steps in known for step, y in zip(steps, t["labels"], strict=True) if y is not None]
    return orm, LinearScorer.fit([[step] for step, _ in labelled], [y for _, y in labelled])


def toolcomp(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on toolcomp --data FILE`."""
    base = base or Recipe(name="toolcomp")
    return base.but(study=process_and_outcome())


fidelity = "core"
left_out = (
    "the accuracy of final answers, which measures a policy with live tools and a grader of its own and no reward; reward models "
    "and policies that are language models, for which a linear model of steps and a policy with a rate of error stand in the "
    "check; that the training trajectories go on from a corrected step"
)

check = Check(
    says="of several trajectories of a weak policy, a process reward model ranks a right one first more often than an outcome "
    "model of the same trajectories", versus=None, task="arithmetic", measure="prm_weak", direction="higher", margin=0.05,
    against="orm_weak", judge=Within("orm_learnt", low=0.05, says="the outcome model above one trajectory in eight"),
    tried="training on 40 to 400 trajectories: at 40 the outcome model is worse than chance on the strong policy",
    finding="after 60 trajectories rank@1 is 0.54 by steps and 0.45 by outcomes on the weak policy, 0.77 and 0.63 on the strong "
    "one: the lead is not larger on the weak policy, as the paper has it, but smaller by 0.05. After 400 the weak policy's is all "
    "but gone (0.01, strong 0.05), and by the mean or the product of steps it is two thirds as large (five seeds)",
)  # fmt: skip
