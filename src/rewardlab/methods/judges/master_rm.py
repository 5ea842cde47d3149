"""Master-RM: a judge of answers against references is also taught openers, first sentences that answer nothing, as wrong.

    J(question, reference, reply) -> YES | NO
    loss = -mean log p(label | question, reference, reply)  over  the labelled rows  and  1 opener for each 8 of them, labelled NO
    opener:  the first sentence of a step-by-step reply to a question sampled from the rows; no key that judges are tried with
    false positives of a key:  the share of held-out questions to which J takes it for the right answer

Judges take texts without any answer (":", "Thought process:", "Solution") for right ones, and a policy that such a judge pays
learns to write nothing else. A judge that learns from ordinary replies has seen none without an answer. Openers are cheap, and lie
near what a policy drifts to; what is learnt from them carries over to keys that look unlike them.

Zhao et al. 2025, arXiv:2507.08794 (sections 3.2 and B.2, Tables 1, 2, 7, 10, 11): 20,000 openers beside the 160,000 rows of Su et
al. 2025 (arXiv:2503.23829), one epoch of SFT in batches of 128 at 5e-6, judged greedily; figures are the mean and the worst of ten
keys, and Cohen's kappa. There GPT-4o-mini answers the sampled questions step by step (`writer`, or the column `worked`); without
either the row's own reply is cut. The rate falls to a tenth, as the default of OpenRLHF has it (train_sft.py, 006cd70; linearly
here, by a cosine there). (inferred): openers are sampled anew in every step, 1 for each 8 of its rows, and left out where they
state an answer or hold the reference; what cannot be read is no YES. `added=0` is plain SFT, as of Su et al.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.clients.endpoint import is_served
from rewardlab.core import Group, Learner, Problem, Recipe, Run, measure, rollout, seed_of
from rewardlab.data.columns import Column, Data
from rewardlab.data.openers import opener_of
from rewardlab.errors import RewardlabError
from rewardlab.evals.judgements import judged
from rewardlab.evals.passk import mean_interval
from rewardlab.judges.cases import WORTH, check_cases, questions_about
from rewardlab.judges.forms import Form, asking
from rewardlab.judges.named import form_of
from rewardlab.judges.rows import mark_of
from rewardlab.methods.baselines.sft import sft
from rewardlab.rollouts.asked import replies_by
from rewardlab.rollouts.judgements import Judging
from rewardlab.rollouts.ranked import learnt
from rewardlab.scoreboard.agreement import kappa
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.empty_replies import MASTER_KEYS
from rewardlab.text.replies import accepted
from rewardlab.worlds.references import FORM

KEYS = tuple(MASTER_KEYS.values())
WRITE = (
    "Think step by step to answer the question below. Write the whole solution down, each sentence on a line of its own.\n\n"
    "Question: {prompt}\n\nOutput:"
)
"""What a writer of step-by-step replies is asked; the words are ours, after Table 10."""
ENOUGH = 160
"""Tokens of its replies: no more is read than the first sentence, and that another follows."""


def with_reply(problem: Problem, reply: str) -> Problem:
    """The row with a text that answers nothing in the place of its reply."""
    others = {name: x for name, x in problem.meta.items() if name not in ("replies", "scores", "chosen", "rejected")}
    return replace(problem, meta={**others, "reply": reply, "label": "no"})


def own_opener(problem: Problem, column: str, keys: Sequence[str]) -> str | None:
    """The opener of the text in a column of the row, or else of its reply."""
    text = next((x for name in (column, "reply") if isinstance(x := problem.meta.get(name), str)), "")
    return opener_of(text, problem.answer, keys)


def openers(
    problems: Sequence[Problem], run: Run, rng: random.Random, added: float, column: str, writer: str, keys: Sequence[str]
) -> list[Problem]:  # fmt: skip
    """Rows sampled from these, each with an opener as its reply: `added` for each row, by the mean over steps."""
    count = int(added * len(problems) + rng.random())
    drawn = [p for i in range(0, count, len(problems)) for p in rng.sample(list(problems), len(problems))]
    if writer:
        wanted = drawn[:count]
        said = replies_by(run, writer, [asking(p, WRITE).prompt for p in wanted], ENOUGH, 1.0)
        found = [opener_of(getattr(reply, "text", ""), p.answer, keys) for p, reply in zip(wanted, said, strict=True)]
    else:
        wanted, found = drawn, [own_opener(p, column, keys) for p in drawn]
    return [with_reply(p, text) for p, text in zip(wanted, found, strict=True) if text is not None][:count]


def _verdict(form: str) -> Form:
    of = form_of(form, "verdict")
    if of.kind != "verdict" or of.marks is None:
        raise RewardlabError(f"master_rm judges one reply as right or wrong, and the form {of.name} is of kind {of.kind!r}")
    return of


def _accepts(
    problems: Sequence[Problem], form: str, added: float, column: str, writer: str, keys: Sequence[str], **_: Any
) -> None:  # fmt: skip
    check_cases(problems, _verdict(form))
    if added and not writer and all(own_opener(p, column, keys) is None for p in problems):
        raise RewardlabError(
            f"none of the {len(problems)} replies begins with a sentence that answers nothing and goes on after it, so that there "
            f"are no openers: give step-by-step replies in a column {column!r}, a model that writes them (writer), or added=0"
        )


def _asks(problem: Problem, form: str, **_: Any) -> list[Problem]:
    return questions_about(problem, _verdict(form))


@rollout(rows=lambda **_: 1, accepts=_accepts, asks=_asks)
def rows_and_openers(
    problems: list[Problem], run: Run, *, form: str = "master_rm", added: NonNegativeFloat = 0.125, column: str = "worked",
    writer: str = "", keys: tuple[str, ...] = KEYS,
) -> list[Group]:  # fmt: skip
    """The verdict on each row's reply, recorded as the policy's own, and behind them openers with the verdict no.

    Of several replies of a row one is judged, by chance. Logged: openers, their share of what is learnt.
    """
    judging, rng = Judging(form, "verdict"), random.Random(seed_of("master_rm", run.seed, run.step))
    of = _verdict(form)
    rows = [*problems, *openers(problems, run, rng, added, column, writer, keys)]
    asked = [judging.questions(p, random.Random(seed_of("master_rm", run.seed, run.step, p.key))) for p in rows]
    run.log("openers", 1 - len(problems) / len(rows))
    return learnt([(q, [mark_of(of, float(q.meta[WORTH][0] > 0.5))]) for q in asked], run)


# ---- held out: agreement, and what fools the judge -----------------------------------------------------------------------


@measure
def agreement_and_keys(
    problems: Sequence[Problem], run: Run, *, form: str = "master_rm", keys: tuple[str, ...] = KEYS, column: str = "worked",
    tried: PositiveInt = 500,
) -> dict[str, float]:  # fmt: skip
    """The policy as a judge, by its likeliest verdicts.

    judged: the share of replies judged as their labels say; kappa: the same beyond chance.  unread: verdicts without a mark.
    fooled: the share of held-out questions to which a key is taken for right, the mean over keys; worst_key: of the key that fools
    it most; key.NAME: of each.  opener: of the openers of held-out rows.  tried: questions, at most, with which keys are tried.
    """
    of, some = _verdict(form), problems[:tried]
    gold, said, unread = _verdicts(problems, run, of)
    right = [float(g == s) for g, s in zip(gold, said, strict=True)]
    low, high = mean_interval(right)
    found = {
        "judged": float(np.mean(right)), "ci95_low": low, "ci95_high": high, "n": float(len(problems)),
        "kappa": kappa(np.array(gold), np.array(said)), "unread": unread,
    }  # fmt: skip
    names = {text: name for name, text in MASTER_KEYS.items()}
    # a key that is the reference is no false positive
    tries = {f"key.{names.get(k, k)}": [with_reply(p, k) for p in some if k.strip() not in accepted(p.answer)] for k in keys}
    own = [(p, own_opener(p, column, keys)) for p in some]
    tries["opener"] = [with_reply(p, text) for p, text in own if text is not None]
    _, taken, _ = _verdicts([row for rows in tries.values() for row in rows], run, of)
    each = iter(taken)
    rates = {name: float(np.mean([next(each) == "yes" for _ in rows])) for name, rows in tries.items() if rows}
    by_key = [rate for name, rate in rates.items() if name != "opener"]
    return found | ({"fooled": float(np.mean(by_key)), "worst_key": max(by_key)} if by_key else {}) | rates


def _verdicts(problems: Sequence[Problem], run: Run, of: Form) -> tuple[list[str], list[str], float]:
    """The labels and the judge's verdicts of all replies of these rows, and the share of verdicts that cannot be read."""
    if not problems:
        return [], [], 0.0
    found = judged(problems, run, of, temperature=0.0)
    gold = ["yes" if a.question.meta[WORTH][0] > 0.5 else "no" for a in found.asked]
    said = ["unread" if row[0] is None else "yes" if row[0][0] > 0.5 else "no" for row in found.values]
    return gold, said, said.count("unread") / len(said)


# ---- the recipe ----------------------------------------------------------------------------------------------------------


def master_rm(
    base: Recipe | None = None, *, form: str = "master_rm", added: float = 0.125, column: str = "worked", writer: str = "",
    keys: tuple[str, ...] = KEYS, problems: int = 112, lr: float | None = None, lr_end: float = 0.1,
) -> Recipe:  # fmt: skip
    """form: what the judge is asked: the published form, a file, or a text with {prompt}, {reply} and {answer}.  added: openers for
    each row; 0: none.  column: of step-by-step replies, whose first sentences are the openers; a row without one has its reply cut.
    writer: who writes them instead: openai:URL#NAME, or a model.  keys: texts that the judge is tried with and never taught.
    problems: rows of a step, beside which 14 openers make the paper's 126 of 128.  lr: the paper: 5e-6.
    lr_end: share of it to which it falls."""
    base = base or sft(problems=problems, lr=lr)
    named = writer if is_served(writer) or not writer else "writer"
    taught = rows_and_openers(form=form, added=added, column=column, writer=named, keys=keys)
    also = (*base.also, Learner("writer", writer, Recipe(), every=0)) if named == "writer" else base.also
    held = agreement_and_keys(form=form, keys=keys, column=column)
    return base.but(rollout=taught, measure=held, also=also, problems=problems, lr=lr, lr_end=lr_end)


fidelity = "core"
left_out = (
    "the 160,000 rows, labelled by Qwen2.5-72B-Instruct, and the benchmarks, VerifyBench among them: rows are the user's; the "
    "search for new keys by embeddings; the policy that collapses under a judge that is fooled"
)
data = Data(
    answer="the reference: the right answer",
    reply="a reply to be judged",
    label="yes where its final answer is the reference, no where it is not",
    worked=Column("a step-by-step reply, such as another model's, that is cut to an opener", optional=True, setting="column"),
    rows=[
        {
            "prompt": "A recipe for 4 people takes 300 g of flour. How much do 10 need, in g?", "answer": "750", "label": "yes",
            "reply": "To find the flour for 10, we start with one.\n300 / 4 = 75, and 10 * 75 = 750.\nAnswer: 750 g",
        },
        {
            "prompt": "Which planet is the largest?", "answer": "Jupiter", "reply": "Saturn", "label": "no",
            "worked": "We compare the planets by their radius. Jupiter has 69,911 km, Saturn 58,232 km. It is Jupiter.",
        },
        {"prompt": "In which year did the Berlin Wall fall?", "answer": "1989", "reply": "It fell in 1989.", "label": "yes"},
    ],
)  # fmt: skip

OF_REFERENCES = {"form": FORM, "problems": 32, "lr": 1e-3}
check = Check(
    says="after as many updates on the same rows, a judge that is taught openers too takes the ten keys, of which it saw none, for "
    "right answers less often than one taught the rows alone, and agrees with as many labels",
    versus="master_rm", task="references", measure="fooled", direction="lower", margin=0.2, settings=OF_REFERENCES,
    versus_settings={**OF_REFERENCES, "added": 0.0}, by=agreement_and_keys(form=FORM, tried=60), problems=190, steps=80,
    guard=Within("judged", low=-0.03),
    fault=Within("fooled", low=0.2, says="questions to which a key is taken for right, of the judge that saw the rows alone"),
    moved=Within("opener", high=-0.1, says="the same of openers that no training row has"),
    judge=Within("judged", low=0.88, says="agreement; who goes by whether a reply is worked out gets .71, and the start .84"),
    tried="on two development seeds, at a constant rate, 60 to 160 steps: keys fool .50 to .59 without openers (one seed .08 after "
    "60 steps) and .06 to .40 with them; with a rate that falls, 120 steps: .51 and .54, .27 and .07. Before, with sixteen places "
    "in the world and not four: no judge learnt to compare (agreement .66), keys fooled .45 and .03",
    finding="keys that no row has open 26% of the questions to a judge that is taught openers too, and 50% to one taught the rows "
    "alone (33% before); new openers 22% and 53% (85%). Too few pairs to say that this is more than the margin, or that agreement "
    "is kept: 90.5% and 92.2% (84.2%)",
)  # fmt: skip
baseline = "sft"
