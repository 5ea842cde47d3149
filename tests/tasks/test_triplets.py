"""Tasks made of a program, inputs and outputs: what is asked, what is right, what a proposal earns, and how play goes on."""

import random
from dataclasses import replace

import numpy as np
import pytest
from scripted import ScriptedPolicy

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.methods.sampling.absolute_zero import MEMORY, _past, self_play
from rewardlab.models.embedded import untrained
from rewardlab.sandbox import ProgramRun, Sandbox
from rewardlab.tasks.programs import ProgramError
from rewardlab.util.serialize import pack, unpack
from rewardlab.worlds.triplets import language as lists
from rewardlab.worlds.triplets import python
from rewardlab.worlds.triplets.language import KINDS, proposal, read_proposal, to_propose, to_solve, triplet
from rewardlab.worlds.triplets.rewards import solved_or_learnable, triplet_answer

TASK = triplet("keep > 3; sum", ["[1, 4]", "[5, 6, 2]", "[0]", "[9, 9]"])


def said(problem, text, path=(0,)):
    return Trajectory(problem, (Turn("policy", np.zeros(1, int), text=text),), "end", path)


def right(kind, text):
    return triplet_answer()([[said(to_solve(kind, TASK), text)]])[0][0].value


def test_a_triplet_is_what_its_program_makes_of_its_inputs():
    assert TASK.outputs == ("4", "11", "0", "18")
    with pytest.raises(ProgramError):
        triplet("sum; sum", ["[1]"])


def test_whatever_is_right_is_right():
    assert right("deduction", "[4]\nOutput: 4") == 1
    assert right("deduction", "Output: 5") == 0
    assert right("abduction", "Input: [4, 3, 3]") == 1  # not the input it was made from
    assert right("abduction", "Input: [4, 4]") == 0
    assert right("abduction", "Input: 4") == 0  # a number, which the program does not take
    assert right("induction", "Program: keep > 2; keep > 3; sum") == 1  # another program, the same function
    assert right("induction", "Program: max") == 0  # 9 of [9, 9], not 18
    assert right("induction", "Program: sum") == 1  # wrong on a shown example, right on both hidden ones, which alone decide


def test_induction_is_decided_by_the_examples_that_are_not_shown():
    problem = to_solve("induction", TASK)
    assert problem.question == "[1, 4] -> 4\n[5, 6, 2] -> 11\nProgram?"
    hidden = triplet("sum", ["[1, 4]", "[5, 6]", "[1, 1]", "[2, 2]"])
    # max is right on neither hidden example: 1 and 2 against 2 and 4
    assert triplet_answer()([[said(to_solve("induction", hidden), "Program: max")]])[0][0].value == 0
    assert triplet_answer()([[said(to_solve("induction", hidden), "Program: sum")]])[0][0].value == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_proposal_is_read_as_it_is_written(kind):
    problem = to_propose(kind, [TASK])
    program, inputs = read_proposal(problem, proposal(kind, TASK))
    assert triplet(program, inputs)[1:] == (TASK[1:] if kind == "induction" else (TASK.inputs[:1], TASK.outputs[:1]))
    assert "Program: keep > 3; sum" in problem.question or kind != "induction"


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        ("deduction", "Input: [1]"),
        ("deduction", "Program: sum"),
        ("deduction", "Program: explode\nInput: [1]"),
        ("deduction", "Program: sum\nInput: [1\n"),
        ("abduction", "Program: sum\nProgram: max\nInput: [1]"),
        ("induction", "Input: [1]\nInput: [1]\nInput: [2]\nInput: [3]"),
    ],
)
def test_what_is_no_proposal_is_not_read_as_one(kind, reply):
    with pytest.raises(ProgramError):
        read_proposal(to_propose(kind, [TASK]), reply)


def test_a_proposal_earns_what_it_is_learnable():
    solve = to_solve("deduction", TASK)
    ask = to_propose("deduction", [TASK])
    good = "Program: keep > 3; sum\nInput: [1, 4]"
    groups = [[said(ask, text, (k,))] for k, text in enumerate([good, good, good, "Program: sum; sum\nInput: [1]", "nonsense"])]
    for k, answers in enumerate([["4", "4", "4", "4"], ["4", "5", "5", "5"], ["5", "5", "x", "5"]]):
        groups.append([said(solve, f"Output: {a}", (k, i)) for i, a in enumerate(answers)])
    values = [[s.value for s in row] for row in solved_or_learnable()(groups, None)]
    # solved by all: 0; by a quarter: 1 - 1/4; by none: 0; without a value: -1/2; unreadable: -1
    assert values[:5] == [[0.0], [0.75], [0.0], [-0.5], [-1.0]]
    assert values[5:] == [[1.0] * 4, [1.0, -0.5, -0.5, -0.5], [-0.5, -0.5, -1.0, -0.5]]


# ---- the task --------------------------------------------------------------------------------------------------------


def test_gold_solutions_are_right_and_slips_are_mostly_wrong():
    task = registry.task("triplets")
    assert {p.meta["kind"] for p in task.test} == set(KINDS)
    assert {p.meta["role"] for p in task.test} == {"solve"}
    verify, rng = triplet_answer(), random.Random(0)
    for p in task.test[:150]:
        assert verify([[said(p, p.meta["solution"])]])[0][0].value == 1
    careless = registry.task("triplets", error=0.9)
    slipped = [verify([[said(p, careless.demonstrate(p, rng))]])[0][0].value for p in task.test[:150]]
    assert np.mean(slipped) < 0.5
    for p in (task.train[i] for i in range(150)):
        if p.meta["role"] == "propose":
            triplet(*read_proposal(p, task.demonstrate(p, rng)))
            assert verify([[said(p, p.meta["solution"])]])[0][0].value == 1
            assert verify([[said(p, "Program: sum; sum\nInput: [1]")]])[0][0].value == 0


# ---- self-play -------------------------------------------------------------------------------------------------------


class Player:
    """The untrained policy, whose proposals are written for it: through `write`, as recorded text is."""

    def __init__(self, proposals):
        self.policy, self.proposals = untrained(0, task=registry.task("triplets")), proposals
        self.read, self.name = self.policy.read, "policy"

    def extend(self, rows, sampling, rng):
        if rows[0].problem.meta["role"] == "propose":
            return self.policy.write(rows, [self.proposals[t.problem.meta["kind"]] for t in rows])
        return self.policy.extend(rows, sampling, rng)


def test_valid_proposals_become_tasks_and_others_are_replaced_by_past_ones():
    player = Player({
        "deduction": "Program: * 2\nInput: [1, 2]",
        "abduction": "Program: sum; sum\nInput: [1]",
        "induction": "Input: [1]\nInput: [2]\nInput: [3]\nInput: [4, 4]",
    })  # fmt: skip
    run = Run(player, max_new=6)
    groups = self_play(n=3)([None] * 4, run)
    assert [len(g) for g in groups] == [1] * 4 + [3] * 4
    assert [g[0].tag for g in groups] == [f"{role}.{k}" for role in ("propose", "solve") for k in (*KINDS, KINDS[0])]
    asked = [g[0].problem for g in groups[4:]]
    assert asked[0].question == "Program: * 2\nInput: [1, 2]\nOutput?"
    assert asked[1].question == "Program: + 0\nOutput: [0, 1]\nInput?"  # the first task, for want of a valid one
    assert asked[2].meta["program"] == "+ 0"
    assert asked[2].meta["inputs"] == ["[1]", "[2]", "[3]", "[4, 4]"]
    assert groups[4][0].path[0] == groups[0][0].path[0]
    assert groups[5][0].path[0] not in {g[0].path[0] for g in groups[:4]}
    assert run.metrics["proposals_valid"] == 0.75
    # remembered once each, beside the first
    assert [len(run.memory[MEMORY][k]) for k in KINDS] == [2, 1, 2]


def test_what_was_played_is_shown_to_later_proposers():
    run = Run(Player(dict.fromkeys(KINDS, "")), max_new=6, seed=3)
    run.memory[MEMORY] = {k: [tuple(TASK), tuple(triplet("max", ["[7]"]))] for k in KINDS}
    groups = self_play(n=1, past=2, kinds=("deduction",))([None], run)
    said = groups[0][0].problem.question
    assert said.startswith("Propose deduction")
    assert "unlike: keep > 3; sum of [1, 4]" in said
    assert "unlike: max of [7]" in said
    saved = unpack(pack(run.memory, tensors := {}), tensors)
    again = self_play(n=1, past=2, kinds=("deduction",))([None], replace(run, memory=saved).detached())
    assert again[0][0].problem.question == said


def test_programs_of_induction_are_those_that_were_proposed():
    """A scripted proposer of one new program a step; it never says one in induction."""
    programs, shown, solved = iter(["* 2", "+ 3", "sort", "reverse", "- 1", "abs", "sums", "drop 1"]), [], []
    inputs = "Input: [1]\nInput: [2, 2]\nInput: [3]\nInput: [4, 4]"
    player, run = Player({}), Run(None, max_new=4, seed=1, memory={})
    run.policy = player
    for step in range(4):
        player.proposals = {
            "deduction": f"Program: {next(programs)}\nInput: [5, {step}]",
            "abduction": f"Program: {next(programs)}\nInput: [{step}]",
            # no proposal in the last step: a past task is solved, of a proposed program too
            "induction": inputs if step < 3 else "nothing",
        }  # fmt: skip
        run.step = step
        groups = self_play(n=1)([None] * 3, run)
        shown.append(groups[2][0].problem.meta["program"])
        solved.append(groups[5][0].problem)
    assert shown[0] == "+ 0"
    assert len(set(shown)) > 1
    assert [p.meta["program"] for p in solved[:3]] == shown[:3]
    assert len(set(solved[3].meta["inputs"])) == 4
    assert {t.program for t in run.memory[MEMORY]["deduction"]} >= {"* 2", "sort", "- 1"}


def test_a_past_task_of_induction_is_of_a_proposed_program():
    tasks = {k: [triplet("* 2", ["[1]"]), triplet("sum", ["[2, 3]"])] for k in ("deduction", "abduction")}
    own = triplet("+ 0", ["[0]", "[4]", "[5]", "[6]"])
    found = [_past({**tasks, "induction": [own]}, "induction", lists, random.Random(i)) for i in range(20)]
    assert {t.program for t in found} == {"* 2", "sum"}
    assert all(len(set(t.inputs)) == 4 and triplet(t.program, t.inputs) == t for t in found)
    # where too few inputs are known, a task of its own kind
    few = {k: [triplet("sum; sum", [])] for k in ("deduction", "abduction")}
    assert _past({**few, "induction": [own]}, "induction", lists, random.Random(0)) == own


# ---- Python ----------------------------------------------------------------------------------------------------------

DEDUCTION = """<think>Something like ```python
def f(): pass
```</think>Here's a **challenging** task:

```python
def f(xs, k):
    # rotate, then keep what grows
    xs = xs[k:] + xs[:k]
    return [b for a, b in zip(xs, xs[1:]) if b > a]
```

And the input:

```input
[3, 1, 4, 1, 5], 2
```
"""
INDUCTION = "\n".join(f"```input\n{x}\n```" for x in ("[1, 2]", "[]", "'ab'", "f((1, 2))"))


@pytest.fixture
def sandboxed():
    try:
        Sandbox().run_programs([ProgramRun("")])
    except RewardlabError as problem:
        pytest.skip(str(problem))


def test_python_proposals_of_a_chat_model_are_tasks(sandboxed):
    (first,) = python.made([python.FIRST])
    assert first.outputs == first.inputs
    asked = python.to_propose("deduction", [first])
    # the prompt says what is asked and in which form
    assert all(x in asked.question for x in ("defines a function f", "```python", "```input", "return a"))
    program, inputs = python.read_proposal(asked, DEDUCTION)
    (task,) = python.made([(program, inputs)])
    # 4 1 5 3 1: 5 is more than the number before it
    assert (task.inputs, task.outputs) == (("[3, 1, 4, 1, 5], 2",), ("[5]",))
    assert "#" not in program
    program, inputs = python.read_proposal(python.to_propose("induction", [first]), INDUCTION)
    assert (program, inputs) == ("def f(a):\n    return a", ["[1, 2]", "[]", "'ab'", "(1, 2)"])


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("Sure!", "no ```python block"), ("```python\ndef f(:\n```\n```input\n1\n```", "no Python"),
        ("```python\nx = 1\n```\n```input\n1\n```", "no function f"), ("```python\ndef f(a): return a\n```", "0 different"),
        ("```python\nimport random\ndef f(a): return a\n```\n```input\n1\n```", "imports random"),
        ("```python\nfrom os.path import join\ndef f(a): return a\n```\n```input\n1\n```", "imports os.path"),
        ("```python\ndef f(a): return a\n```\n```input\nopen('x')\n```", "no plain data"),
        ("```python\ndef f(a): return a\n```\n```input\n" + "[" * 3000 + "\n```", "no plain data"),
    ],
)  # fmt: skip
def test_what_is_no_python_proposal_says_why(reply, why):
    with pytest.raises(ProgramError, match=why):
        python.read_proposal(python.to_propose("deduction", [TASK]), reply)


@pytest.mark.slow
def test_python_programs_that_fail_or_waver_are_no_tasks(sandboxed):
    wavers, fools = "import tempfile; return tempfile.mktemp()", "print('=triplet=[]'); return 2"
    bodies = ("return 1 / 0", wavers, "return lambda: 1", "while True: pass", fools)
    found = python.made([(f"def f(a):\n    {body}", ["1"]) for body in bodies], seconds=1.0)
    assert [type(x).__name__ for x in found] == ["ProgramError"] * 4 + ["Triplet"]
    assert "ZeroDivisionError" in str(found[0])
    assert found[4].outputs == ("2",)


def test_python_solutions_are_judged_by_running_them(sandboxed):
    (task,) = python.made([("def f(a, b=1):\n    return sorted(a) * b", ["[2, 1]", "[3], 2", "[]", "'ba', 2"])])
    cases = [
        ("deduction", "So it sorts.\n```output\n[1,2]\n```", True), ("deduction", "**Output:** `[1, 2]`", True),
        ("deduction", "```output\n[2, 1]\n```", False), ("deduction", "no idea", None),
        ("deduction", "<think>```output\n[1, 2]\n```</think>", None),
        ("abduction", "```input\n[1, 2], 1\n```", True), ("abduction", "```input\nf((2, 1))\n```", True),
        ("abduction", "```input\n[1]\n```", False), ("abduction", "```input\n5\n```", False),
        ("induction", "```python\ndef f(x, n=1):\n    x = list(x); x.sort(); return x * n\n```", True),
        ("induction", "```python\ndef f(x, n=1): return x\n```", False), ("induction", "sort it", None),
    ]  # fmt: skip
    pairs = [(python.to_solve(kind, task), reply) for kind, reply, _ in cases]
    found = python.solved(pairs)
    assert [None if isinstance(x, ProgramError) else x for x in found] == [right for *_, right in cases]
    # the reward of a task, with tasks of the small language beside it
    rows = [[said(p, reply)] for p, reply in pairs] + [[said(to_solve("deduction", TASK), "Output: 4")]]
    values = [row[0].value for row in triplet_answer()(rows)]
    assert values == [float(x is True) for x in found] + [1.0]
    assert "f([2, 1]) returns [1, 2]" in python.to_solve("induction", task).question


def test_self_play_in_python_by_a_scripted_chat_model(sandboxed):
    def says(t):
        meta = t.problem.meta
        if meta["role"] == "propose":
            return [INDUCTION.replace("(1, 2)", "3") if meta["kind"] == "induction" else DEDUCTION]
        return ["```output\n[5]\n```", "```output\n[3]\n```"]

    run = Run(ScriptedPolicy(says), max_new=1000, memory={})
    recipe = registry.build("absolute_zero", {"n": 2, "language": "python"})
    groups = recipe.rollout([None] * 3, run)
    assert run.metrics["proposals_valid"] == 1.0
    scores = [[s.value for s in row] for row in recipe.reward(groups, run)]
    # one of two solutions of the deduction is right: its proposal earns 1/2; the others' solutions state no input and no program
    assert scores[0] == [0.5]
    assert scores[3] == [1.0, -0.5]
    assert scores[4:] == [[-1.0] * 2] * 2
    groups = recipe.rollout([None] * 3, run)
    assert any("rotate" not in t.question and "xs[k:]" in t.question for t in (g[0].problem for g in groups[:3]))
    # out of a saved memory it goes on
    saved = unpack(pack(run.memory, tensors := {}), tensors)
    again = recipe.rollout([None] * 3, replace(run, memory=saved))
    assert [len(g) for g in again] == [1] * 3 + [2] * 3
