"""KTO: single replies, good or bad, against a reference point that mismatched replies tell."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from rows import batch_of, row_of

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Outputs, Run, Score, Task, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.kto import judged, kto, kto_loss, mismatched, reference_point
from rewardlab.models.embedded import untrained


def row(question: str, tag: str, prompt: list[int], reply: list[int]) -> Trajectory:
    turns = (Turn(None, np.array(prompt, np.int64)), Turn("policy", np.array(reply, np.int64)))
    return Trajectory(ask(question), turns, "end", tag=tag)


class Linear:
    """A model whose log-prob of a token is `scale` times its id."""

    def __init__(self, scale: float, context: int = 100):
        self.scale, self.context = scale, context

    def score(self, rows):
        return [self.scale * t.ids for t in rows]


FOUR = [
    row("a", "chosen", [1], [10, 11]),
    row("a", "rejected", [1], [20]),
    row("b", "chosen", [2, 2], [30]),
    row("b", "rejected", [2, 2], [40, 41]),
]


# ---- mismatched ------------------------------------------------------------------------------------------------------


def ids(rows) -> list[list[int]]:
    return [t.ids.tolist() for t in rows]


def test_every_prompt_gets_the_reply_of_the_next_row_good_ones_first():
    # the order is a+, b+, a-, b-, and round again
    assert ids(mismatched(FOUR, 100)) == [[1, 30], [1, 40, 41], [2, 2, 20], [2, 2, 10, 11]]
    assert [t.mask.tolist()[-1] for t in mismatched(FOUR, 100)] == [True] * 4
    assert mismatched(FOUR, 100)[2].mask.tolist() == [False, False, True]


def test_replies_to_the_prompt_itself_are_passed_over():
    # the order is a+, a-, b-: after a+ comes a-, which answers the same prompt
    assert ids(mismatched([FOUR[0], FOUR[1], FOUR[3]], 100)) == [[1, 40, 41], [1, 40, 41], [2, 2, 10, 11]]


def test_what_would_not_fit_the_context_is_cut():
    assert ids(mismatched(FOUR, 2)) == [[1, 30], [1, 40], [2, 2], [2, 2]]


def test_one_problem_alone_has_nothing_to_be_mismatched_with():
    with pytest.raises(RewardlabError, match="two problems"):
        mismatched(FOUR[:2], 100)


# ---- the reference point ---------------------------------------------------------------------------------------------


def test_the_reference_point_by_hand():
    # log pi/ref of a token is (0.3 - 0.2) id; of the mismatched replies 30, 40 + 41, 20, 10 + 11: 3, 8.1, 2, 2.1, mean 3.8
    batch = collate([FOUR[:2], FOUR[2:]], None, torch.device("cpu"))
    run = Run(Linear(0.3), reference=Linear(0.2))
    assert reference_point()(batch.reward, batch, run).tolist() == [[pytest.approx(3.8)] * 4] * 4
    assert run.metrics == {"reference_point": pytest.approx(3.8)}


def test_the_reference_point_is_never_below_zero():
    batch = collate([FOUR[:2], FOUR[2:]], None, torch.device("cpu"))
    assert not reference_point()(batch.reward, batch, Run(Linear(0.2), reference=Linear(0.3))).any()


def test_swapping_tokens_is_swapping_texts():
    """The models' own log-ratios of replies written after other prompts."""
    policy, reference = untrained(seed=2), untrained(seed=1)
    problems = [ask(f"{i} + {i}?", chosen=f"{2 * i}", rejected=f"it is {2 * i + 1}") for i in range(3)]
    run = Run(policy, reference=reference)
    groups = judged()(problems, run)
    batch = collate(groups, None, policy.device)
    good, bad = ([p.meta[field] for p in problems] for field in ("chosen", "rejected"))
    texts = [good[1], good[2], bad[0], bad[1], bad[2], good[0]]
    asked = policy.read([Trajectory(p) for p in problems] * 2, [p.prompt for p in problems] * 2)
    swapped = policy.write(asked, texts)
    scored = zip(swapped, policy.score(swapped), reference.score(swapped), strict=True)
    ratio = [float((a - b)[t.mask].sum()) for t, a, b in scored]
    expected = sum(ratio) / 6
    assert expected > 0.1
    assert reference_point()(batch.reward, batch, run).flatten().tolist() == pytest.approx([expected] * batch.ids.numel(), abs=1e-4)


# ---- the loss --------------------------------------------------------------------------------------------------------


def told(tags: list[str], z0: float):
    """Rows of one decision whose log pi/ref is 2, -1, 1 ..., as far as there are tags."""
    batch = batch_of([[("rd", {})] for _ in tags], {"ref": [[0.0, 0.0]] * len(tags)})
    batch.rows = [(replace(row_of("rd"), tag=tag), Score(None)) for tag in tags]
    batch.credit = torch.full_like(batch.reward, z0)
    return batch


RATIOS = torch.tensor([[0.0, 2.0], [0.0, -1.0], [0.0, 1.0]])


def test_the_loss_by_hand():
    # z0 1, beta 1/2:  good 2: 1 - s(1/2 (2 - 1)), weight 3;   bad -1: 1 - s(1/2 (1 + 1)), weight 5;   bad 1: 1 - s(0), weight 5
    def s(x):
        return 1 / (1 + math.exp(-x))

    batch = told(["chosen", "rejected", "rejected"], 1.0)
    loss = kto_loss(beta=0.5, desirable=3.0, undesirable=5.0)(Outputs(logprobs=RATIOS), batch, Run(None))
    assert loss.tolist() == pytest.approx([3 * (1 - s(0.5)), 5 * (1 - s(1.0)), 5 * 0.5])


def test_good_replies_are_raised_and_bad_ones_lowered():
    # d loss / d log pi = -+ w beta s (1 - s), at s(1/2) and s(1)
    logprobs = RATIOS[:2].clone().requires_grad_()
    kto_loss(beta=0.5)(Outputs(logprobs=logprobs), told(["chosen", "rejected"], 1.0), Run(None)).sum().backward()
    slope = [math.exp(x) / (1 + math.exp(x)) ** 2 for x in (0.5, 1.0)]
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [pytest.approx([0, -0.5 * slope[0]]), pytest.approx([0, 0.5 * slope[1]])]


# ---- data without pairs ----------------------------------------------------------------------------------------------


def test_a_problem_may_have_a_good_reply_or_a_bad_one_or_both():
    policy = untrained()
    problems = [ask("a", chosen="1", rejected="2"), ask("b", rejected="3"), ask("c", chosen="4", rejected=None)]
    groups = judged()(problems, Run(policy))
    assert [[(t.tag, t.reply, t.path) for t in g] for g in groups] == [
        [("chosen", "1", (0,)), ("rejected", "2", (1,))],
        [("rejected", "3", (1,))],
        [("chosen", "4", (0,))],
    ]


def test_a_reply_may_stand_beside_its_label():
    problems = [ask("a", completion="1", label=True), ask("b", completion="2", label=False), ask("c", completion="3", label=0)]
    groups = judged()([*problems, ask("d", completion="9", label=True, rejected="4")], Run(untrained()))
    assert [[(t.tag, t.reply, t.path) for t in g] for g in groups] == [
        [("chosen", "1", (0,))],
        [("rejected", "2", (1,))],
        [("rejected", "3", (1,))],
        [("rejected", "4", (1,))],
    ]


@pytest.mark.parametrize(
    ("label", "tag"), [("True", "chosen"), ("false", "rejected"), ("1", "chosen"), ("0", "rejected"), (1.0, "chosen")]
)
def test_a_label_may_be_a_text_as_tables_write_it(label, tag):
    ((row,),) = judged()([ask("a", completion="1", label=label)], Run(untrained()))
    assert row.tag == tag


@pytest.mark.parametrize("label", [None, "good", 2])
def test_a_row_whose_label_says_nothing_is_refused_before_training(label, tmp_path):
    rows = [{"prompt": f"{i}+1=?", "completion": f"{i + 1}", "label": label if i == 2 else True} for i in range(12)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(RewardlabError, match=r"line 3.*`label` of true or false"):
        train("kto", "untrained", str(tmp_path / "rows.jsonl"), out=tmp_path / "run", steps=1, settings={"problems": 4}, max_new=4)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("row", [{"solution": "3"}, {"completion": "3"}, {"completion": "3", "label": None}])
def test_a_problem_without_a_judged_reply_is_refused(row):
    with pytest.raises(RewardlabError, match="chosen or rejected or completion"):
        judged()([ask("a", chosen="1"), ask("b", **row)], Run(untrained()))


def test_it_learns_from_replies_none_of_which_are_pairs(tmp_path):
    """The good ones become likelier, the bad ones less so."""
    good = [ask(f"{i}?", str(i), chosen=f"Answer: {i}") for i in range(4)]
    bad = [ask(f"not {i}?", str(i), rejected=f"Answer: {i}") for i in range(4)]
    policy = untrained()
    task = Task("judged", [*good, *bad], good, "final_number", max_new=4)

    def likelihood(problems, field) -> float:
        return sum(float(x[t.mask].sum()) for (t,) in judged(fields=(field,))(problems, Run(policy)) for x in policy.score([t]))

    before = likelihood(good, "chosen"), likelihood(bad, "rejected")
    train(kto(problems=8, lr=3e-3), policy, task, steps=5, out=tmp_path / "run", eval_every=0, eval_problems=2)
    assert likelihood(good, "chosen") - before[0] > likelihood(bad, "rejected") - before[1] + 0.1


@pytest.mark.parametrize("written", [str, lambda text: [{"role": "assistant", "content": text}]])
def test_rows_of_a_completion_and_its_label_are_read_as_trl_has_them(written, tmp_path):
    rows = [{"prompt": f"{i}+1=?", "completion": written(f"it is {i}"), "label": bool(i % 2)} for i in range(12)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = registry.task(str(tmp_path / "rows.jsonl"))
    problems = [task.train[i] for i in range(4)]
    groups = judged()(problems, Run(untrained()))
    assert [(t.reply, t.tag) for (t,) in groups] == [
        (p.meta["completion"], "chosen" if p.meta["label"] else "rejected") for p in problems
    ]
    # a bad reply is nothing to imitate
    assert not any("solution" in p.meta for p in problems)
    result = train("kto", "untrained", task, out=tmp_path / "run", steps=1, settings={"problems": 4}, eval_problems=0, max_new=4)
    assert result.summary["steps"] == 1
