r"""Branch and rethink: a judge first says what matters here and what may be wrong, then rereads both replies for just that.

    turn 1:  (D, h_1, h_2) ~ pi(. | x, y_1, y_2),   D at most 3 of a list of dimensions, h_j what may be wrong with reply j
    turn 2:  verdict       ~ pi(. | x, y_1, y_2, D, h_1, h_2)
    r = 0 if the verdict is right, -10 if it is wrong, -100 if either turn breaks its form
    A_i = (r_i - mean(r_j, j != i)) / std(r_j, j != i),   undivided where the others all earn the same
    loss = -mean over all tokens of both turns  min(ratio A, clip(ratio, .8, 1.28) A)  + beta KL(pi || pi at the start)

Who looks at everything at once looks at nothing closely, and misses what is small and decides. Naming a few dimensions first makes
the second look a search; it is learnt from the verdict alone, through both turns.

Jiao et al. 2025, arXiv:2510.23596, and the released YzjiaoNvd/BR-RM: nemo_rl/environments/brrm_environment.py at d20a4e0 (turns,
sections, eight abilities, rewards), examples/configs/grpo_brrm.yaml (each reply compared with the others; a mean over tokens) and
train_brrm_multinode_8b.sh at 5e62932 (8 judgements of a pair, a clip of .28 above, four updates of a step, beta = .001, 5e-7; for
14B 1e-6). The standard deviation is that of NeMo-RL's nemo_rl/algorithms/utils.py: the only right one of eight has an advantage of
10 there, where GRPO's is 2.5. Its code never refuses the form of the first turn; the paper says that it does, and here it is
checked (inferred): one to three abilities of the list, and both analyses. A verdict is \boxed{1} or \boxed{2} in its section;
`strict=False` asks for no sections, and reads [[A]] too. What is thought before a turn is no part of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check
from rewardlab.core import Batch, Message, Objective, Problem, Recipe, Run, Score, Trajectory, Turn, credit, environment, measure
from rewardlab.credit.group import group_sums, leave_one_out
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Data
from rewardlab.evals.judgements import questions
from rewardlab.evals.passk import mean_interval
from rewardlab.judges.cases import WORTH, agrees
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.ratio import clipped_ratio
from rewardlab.objectives.regularise import kl_to_reference
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.interactive import in_place_of_replies, interactive
from rewardlab.rollouts.judgements import judgements
from rewardlab.settings.domain import NonNegativeFloat
from rewardlab.text.answers import after_thinking
from rewardlab.worlds.duels import FORM

DIMENSIONS = (
    "Information Accuracy", "Computational Precision", "Logical Reasoning", "Implementation Capability", "Safety Awareness",
    "Response Completeness", "Instruction Adherence", "Communication Clarity",
)  # fmt: skip
FIRST = f"""Compare two responses to the last turn of the conversation below. Find out which abilities matter most for this very \
query, and what is wrong with each response in these. Be brief, and keep to the form.

**Context:**
[The Begin of Context]
{{prompt}}
[The End of Context]

**Responses:**
[The Begin of Response 1]
{{first}}
[The End of Response 1]

[The Begin of Response 2]
{{second}}
[The End of Response 2]

**Output Format:**
[Quality Assessment Focus]
One to three of these abilities: {", ".join(DIMENSIONS)}
[End of Quality Assessment Focus]

[Quality Analysis for Response 1]
- Critical Issues: errors and concerns in these abilities, or "None identified". Wrong conclusions, code that does not work and \
harmful content are critical.
[End of Quality Analysis for Response 1]

[Quality Analysis for Response 2]
- Critical Issues: the same of the other one
[End of Quality Analysis for Response 2]"""
SECOND = r"""Now read both responses again with these issues in mind: does each of them hold, and how much does it matter? What \
counts first depends on the query. Where it has a right answer (facts, calculations, technology): correctness, then the way to it, \
then presentation. Where it is open (writing, discussion): what the user wants, then content, then creativity. Where it sets \
constraints: that they are kept, then content, then clarity. Analyse step by step, and keep to the form:

[The Begin of Analysis on Response 1]
...
[The End of Analysis on Response 1]

[The Begin of Analysis on Response 2]
...
[The End of Analysis on Response 2]

[The Begin of Ranking Score]
\boxed{1 or 2}
[The End of Ranking Score]"""
_BOXED = re.compile(r"\\boxed\{\s{0,9}([12])\s{0,9}\}")
_MARK = re.compile(r"\\boxed\{\s{0,9}([12])\s{0,9}\}|\[\[([AB])\]\]")


# ---- the form of both turns ----------------------------------------------------------------------------------------------


def between(text: str, start: str, end: str) -> str | None:
    """What stands between two marks; None where one of them is missing, or nothing stands there."""
    _, found, rest = text.partition(start)
    inside, closed, _ = rest.partition(end)
    return inside.strip() or None if found and closed else None


def branches(text: str) -> tuple[str, ...] | None:
    """The dimensions that a first turn chooses; None where it chooses none or more than three, or lacks an analysis."""
    focus = between(text, "[Quality Assessment Focus]", "[End of Quality Assessment Focus]") or ""
    chosen = tuple(name for name in DIMENSIONS if name.casefold() in focus.casefold())
    analysed = all(
        between(text, f"[Quality Analysis for Response {i}]", f"[End of Quality Analysis for Response {i}]") for i in (1, 2)
    )
    return chosen if 1 <= len(chosen) <= 3 and analysed else None


def verdict(text: str, strict: bool) -> tuple[float, float] | None:
    """(1, 0) where a second turn prefers the first reply, (0, 1) the second; None without a verdict in its form."""
    if strict:
        found = _BOXED.findall(between(text, "[The Begin of Ranking Score]", "[The End of Ranking Score]") or "")
        first = found[0] == "1" if len(found) == 1 else None
    else:
        marks = ["".join(pair) for pair in _MARK.findall(text)]
        first = marks[-1] in ("1", "A") if marks else None
    return None if first is None else (float(first), float(not first))


def judged_twice(trajectory: Trajectory, strict: bool) -> tuple[float, float] | None:
    """The verdict of both turns; None where either breaks its form."""
    said = [after_thinking(text) for text in trajectory.replies]
    if len(said) != 2 or not said[0].strip() or (strict and branches(said[0]) is None):
        return None
    return verdict(said[1], strict)


@environment(start=lambda problem, seed, **_: (None, 1))
def rethink(state: Any, turn: Turn, *, second: str = SECOND) -> tuple[Message | None, Any]:
    """Asks for a second look after the first turn, and ends after the second."""
    return (Message("user", second) if state == 1 else None), state + 1


@reward
def right_verdict_in_form(
    trajectory: Trajectory, *, strict: bool = True, right: float = 0.0, wrong: float = -10.0, unformed: float = -100.0
) -> Score:  # fmt: skip
    """`right` or `wrong`, as the verdict of the second turn is; `unformed` where either turn breaks its form."""
    worth = trajectory.problem.meta.get(WORTH)
    if not worth:
        return Score(None, why=f"the problem is no question to a judge: it has no column {WORTH!r}")
    values = judged_twice(trajectory, strict)
    if values is None:
        return Score(unformed, why="a turn breaks its form")
    return Score(right if agrees(values, worth) else wrong, why=f"prefers the {'first' if values[0] else 'second'}")


@credit(compares_rows=True)
def scale_by_std_of_others(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Divide by the standard deviation (biased) of what the group's other rows earn; where they all earn the same, by nothing."""
    rewarded, events = batch.rewarded.float(), torch.where(batch.rewarded, batch.reward, 0.0)

    def of_others(x: Tensor) -> Tensor:
        return group_sums(x, batch)[batch.group] - x.sum(1)  # (B,)

    count = of_others(rewarded).clamp(min=1)
    variance = of_others(events.square()) / count - (of_others(events) / count).square()
    # below 0, and barely above it, by rounding alone
    std = variance.clamp(min=0).sqrt()[:, None]
    return torch.where(std > 1e-3, a / std.clamp(min=1e-3), a)


@measure
def rethought_accuracy(
    problems: Sequence[Problem], run: Run, *, form: str = FIRST, second: str = SECOND, strict: bool = True
) -> dict[str, float]:  # fmt: skip
    """Held-out pairs, judged in two turns and in both orders.

    judged: the share of right verdicts, where those out of form are wrong.  consistent: pairs that both orders rank alike.
    unread: verdicts out of form.  first_tokens, second_tokens: of each turn, on average.
    """
    _, asked = questions(problems, form_of(form))
    groups = interactive(env=rethink(second=second), n=1, turns=2)([a.question for a in asked], run)
    values = [judged_twice(group[0], strict) for group in groups]
    right = [v is not None and agrees(v, a.question.meta[WORTH]) for v, a in zip(values, asked, strict=True)]
    low, high = mean_interval([float(x) for x in right])
    # the orders of a row stand side by side, and the second one is turned round
    same = [a is not None and b is not None and a == b[::-1] for a, b in zip(values[::2], values[1::2], strict=True)]
    lengths = np.array([_lengths(group[0]) for group in groups])  # (questions, 2)
    return {
        "judged": float(np.mean(right)), "ci95_low": low, "ci95_high": high, "n": float(len(problems)),
        "consistent": float(np.mean(same)), "unread": float(np.mean([v is None for v in values])),
        "first_tokens": float(lengths[:, 0].mean()), "second_tokens": float(lengths[:, 1].mean()),
    }  # fmt: skip


def _lengths(trajectory: Trajectory) -> list[int]:
    """Tokens of the first turn and of the second; 0 where there is none."""
    ends = trajectory.ends[:2]
    decided = trajectory.mask.cumsum()
    total = [int(decided[end]) for end in ends]
    return [b - a for a, b in zip([0, *total], total, strict=False)] + [0] * (2 - len(total))


def br_rm(
    base: Recipe | None = None, *, form: str = FIRST, second: str = SECOND, strict: bool = True, n: int | None = None,
    problems: int = 16, wrong: float = -10.0, unformed: float = -100.0, eps: float = 0.2, eps_high: float = 0.28,
    beta: NonNegativeFloat = 1e-3, minibatches: int = 4, lr: float | None = None,
) -> Recipe:  # fmt: skip
    """form: what the judge is asked at first, a text or a file with {prompt}, {first} and {second}.  second: and then.  strict:
    whether both turns need their sections.  n: judgements of a row; None: the base's, or else 8.  problems: rows of a step.  wrong,
    unformed: what a wrong verdict is paid, and a turn out of form; a right one gets 0.  eps, eps_high: clip range below and above.
    beta: of the KL to the start.  minibatches: updates of a step. These four are for want of a base."""
    base = base or _by_others(n or 8, clipped_ratio(eps=eps, eps_high=eps_high), beta, minibatches)
    twice = in_place_of_replies(base.required("rollout"), env=rethink(second=second), n=n, turns=2)
    return base.but(
        rollout=judgements(inner=twice, form=form),
        reward=right_verdict_in_form(strict=strict, wrong=wrong, unformed=unformed),
        measure=rethought_accuracy(form=form, second=second, strict=strict),
        problems=problems,
        lr=lr,
        small_lr=1e-4,
    )


def _by_others(n: int, loss: Objective, beta: float, minibatches: int) -> Recipe:
    """GRPO in which each reply is compared with the others, and every token counts the same."""
    return grpo(n=n).but(
        credit=leave_one_out() >> scale_by_std_of_others() >> to_go(),
        objective=loss + beta * kl_to_reference() if beta else loss,
        weighting=token_mean(),
        minibatches=minibatches,
    )


fidelity = "core"
left_out = "three replies and more, which it compares pair by pair; the stops after each section; the warmup of its rate"
data = Data(
    chosen="the better reply", rejected="the worse reply",
    rows=[
        {"prompt": "Why do leaves fall?", "chosen": "Trees save water in winter.", "rejected": "Because of gravity alone."},
        {"prompt": "How does one boil an egg?", "chosen": "Seven minutes in boiling water.", "rejected": "In a pan, somehow."},
    ],
)  # fmt: skip

check = Check(
    says="rewarded for the verdict of its second turn alone, a judge that looks twice is right more often than at its start",
    versus=None, task="second_looks", measure="judged", direction="higher", margin=0.05, against="before.judged",
    settings={"form": FORM, "second": "Look.", "strict": False}, problems=200, steps=40,
    finding="paid for the verdict of its second turn alone, it goes from 57% to 71% right verdicts, though in its first turn "
    "it names no more wishes to look at than before (2.9 tokens, 2.8 before)",
)  # fmt: skip
baseline = "trained_judge"
