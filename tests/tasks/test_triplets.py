"""Tasks made of a program, inputs and outputs: what is asked, what is right, what a proposal earns, and how play goes on."""

import random
from dataclasses import replace

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn
from rewardlab.models.embedded import untrained
from rewardlab.tasks.programs import ProgramError
from rewardlab.tasks.triplets.language import KINDS, proposal, read_proposal, to_propose, to_solve, triplet
from rewardlab.tasks.triplets.rewards import solved_or_learnable, triplet_answer
from rewardlab.tasks.triplets.rollout import MEMORY, self_play
from rewardlab.util.serialize import pack, unpack

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
