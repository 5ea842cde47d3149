"""CRAFT: rule rewards for plan, evidence, reasons and answer of a trace, and a judge's reward for their consistency.

    r = (form >> 1 + right + receipt) + w faith
    faith = mean of the checks that the template has: the reasons follow the plan; they cite what the receipt lists, and no more;
            the answer follows from the reasons; what they say is in the documents that they cite

    template   v1 plan, gold_docs, reason, answer;   v2 no plan;   v3 no gold_docs;   v4 reason, answer;   v5 answer alone

receipt: 1 where <gold_docs> lists the documents that are needed, 1/2 where it has some of them. A right answer with the right list
can still be badly reasoned, and rules cannot see it. Fewer sections are shorter, and leave less to audit; v3 to v5 have no receipt,
and v5 has no reasons to be judged.

Liu et al. 2026, arXiv:2602.01348; templates, rewards, weights of 1, the gate of the form, n = 8 and a KL of 0.04 are those of the
released code (Ameame1/CRAFT, 5d3b812, src/rewards and cfg/grpo_7b_v1_20k_full_8gpu_offline.yaml), where Qwen3-30B makes the four
checks. Here a program makes them, by words (`text/traces.py`); it needs the documents, and cannot see what is wrong but for the
words. `faith=0` leaves the judge out.
"""

from __future__ import annotations

from typing import Any, Literal

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe, Score, Trajectory
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of, number_of
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.pairs import pair_agreement
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.text import traces
from rewardlab.text.answers import after_thinking

# ----------------------------------------------------------------------------------------------------------------------
#
# Rewards for traces of answers from numbered documents: their form, what they cite, and whether they agree with themselves.


@reward
def trace_form(trajectory: Trajectory, *, template: Literal["v1", "v2", "v3", "v4", "v5"] = "v1") -> Score:
    """1 where the reply, but for thinking, is the template's sections in their order and nothing else (`text/traces.py`)."""
    # a reasoning model thinks before the trace begins
    right = traces.well_formed(after_thinking(trajectory.reply), template)
    return Score(float(right), why=f"{'' if right else 'not '}the sections {', '.join(traces.TEMPLATES[template])}")


@reward
def receipt(trajectory: Trajectory, *, column: str = "supporting") -> Score:
    """1 where <gold_docs> lists exactly the documents in a column of the problem, 1/2 for some of them, else 0."""
    wanted = [number_of(value) for value in list_of(trajectory.problem.meta.get(column)) or [None]]
    if None in wanted:
        return Score(None, why=f"the problem has no column {column!r} with a list of numbers")
    said = traces.listed(traces.section(after_thinking(trajectory.reply), "gold_docs") or "")
    numbers = {int(n) for n in wanted if n is not None}
    return Score(1.0 if said == numbers else 0.5 if said & numbers else 0.0, why=f"lists {sorted(said)} for {sorted(numbers)}")


@reward
def trace_consistency(
    trajectory: Trajectory, *, template: Literal["v1", "v2", "v3", "v4", "v5"] = "v1", column: str = "documents"
) -> Score:
    """The share of the template's checks of consistency that a reply passes, by its words (`text/traces.py`).

    No verdict where the problem has no column with a list of the documents, which are numbered from 1.
    """
    documents = list_of(trajectory.problem.meta.get(column))
    if not documents or not all(isinstance(text, str) for text in documents):
        return Score(None, why=f"the problem has no column {column!r} with a list of texts")
    found = traces.checks(after_thinking(trajectory.reply), template, documents)
    failed = [name for name, passed in found.items() if not passed]
    return Score(1 - len(failed) / max(1, len(found)), why=f"fails {', '.join(failed)}" if failed else "passes all checks")


# ---- the recipe ---------------------------------------------------------------------------------------------------------

Template = Literal["v1", "v2", "v3", "v4", "v5"]


def by_rule(right: Reward, template: Template = "v1") -> Reward:
    """The deterministic rewards: nothing but a trace of the right form earns any."""
    paid = 1 + right + receipt() if template in ("v1", "v2") else 1 + right
    return trace_form(template=template) >> paid


def craft_faithful_traces(
    base: Recipe | None = None, *, template: Template = "v1", judge: Reward | None = None, faith: float = 1.0, n: int = 8,
    beta: float = 0.04,
) -> Recipe:  # fmt: skip
    """template: the sections of a trace.  judge: a reward from 0 to 1 in place of the program's checks.  faith: its weight, w.
    n, beta: of grpo. A base's reward takes the place of the verifier's.
    """
    base = base or grpo(n=n, beta=beta)
    right: Any = base.reward or correct()
    paid = by_rule(right, template)
    if faith and template != "v5":
        paid = paid + faith * (judge or trace_consistency(template=template)).named("faith")
    return base.but(reward=paid, measure=own_reward(reward=paid, rollout=independent(n=1)))


fidelity = "core"
left_out = "the judge, Qwen3-30B, for which checks of words stand without `judge`, and its top-k and top-p."

data = Data(
    prompt="the question with its documents, numbered from 1, asking for the template's sections: <plan>, <gold_docs>, ...",
    answer="the gold answer, or a list of accepted ones",
    documents=Column("texts of the documents in their order; not read with a `judge` of your own, or faith=0", optional=True),
    supporting=Column("the numbers of the documents that are needed, for the templates v1 and v2", optional=True),
    verified_by="tagged_answer",
    rows=[
        {
            "prompt": "[1] The Trial is a novel by Franz Kafka.\n[2] Prague is the capital of the Czech Republic.\n[3] Franz Kafka "
            "was born in Prague in 1883.\nIn which city was the author of The Trial born? Write <plan>Subquestion1: ... "
            "Subquestion2: ...</plan><gold_docs>[numbers]</gold_docs><reason>Subquestion1: ... Evidence: doc [n] ...</reason>"
            "<answer>...</answer>.",
            "answer": "Prague",
            "documents": [
                "The Trial is a novel by Franz Kafka.",
                "Prague is the capital of the Czech Republic.",
                "Franz Kafka was born in Prague in 1883.",
            ],
            "supporting": [1, 3],
        },
        {
            "prompt": "[1] The Nile flows through Cairo.\n[2] Cairo is the capital of Egypt.\nWhich river flows through the "
            "capital of Egypt? Write <plan>...</plan><gold_docs>[numbers]</gold_docs><reason>...</reason><answer>...</answer>.",
            "answer": ["Nile", "the Nile"],
            "documents": ["The Nile flows through Cairo.", "Cairo is the capital of Egypt."],
            "supporting": [1, 2],
        },
    ],
)

JUDGED = aggregate(by_rule(correct()) + trace_consistency()).named("judged")
RULES = aggregate(by_rule(correct())).named("rules")
# by construction: both kinds of reply are written so that the rival orders them wrongly
check = Check(
    says="with a judge of consistency, the reward prefers faithful traces with slips to right answers that are badly reasoned",
    versus=None, task="traces:test_size=4000", measure="pair_accuracy.judged", direction="higher", margin=0.14,
    against="pair_accuracy.rules", model="untrained", by=own_share(inner=pair_agreement(reward=JUDGED + RULES)), problems=4000,
    steps=1, fault=Within("pair_accuracy.rules", high=0.6, says="faithful traces above unfaithful ones, by the rules alone"),
    sanity=True,
    finding="The rules alone prefer the faithful trace in 37% of the pairs, with the checks of consistency it is 66%. The "
    "pairs were written against the rules, and the checks compare words: a judge may see more, or be fooled "
    "otherwise.",
)  # fmt: skip
baseline = "grpo"
