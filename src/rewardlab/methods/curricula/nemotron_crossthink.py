r"""Nemotron-CrossThink: open questions of many domains, filtered for verifiability, rewarded if right AND well-formed.

    choice: question and options -> letter;     open: options taken away, the right one's text is the answer
    kept: the answer is one of the options;     open answers of at most ten words;     what a small model does not solve already
    r = right * form                            form: the answer is stated, in \boxed{} or after "answer"

Outside mathematics most questions come as multiple choice, and one in four guesses is paid there. Without the options there is
nothing to choose from; but long answers can be put in many ways, which rules take for wrong. Blends with about two general
questions to one of mathematics were the best.

Akter et al. 2025, arXiv:2504.13941; its data are public, its code is not. (inferred): the form, which `form` makes stricter
(r"<think>.+</think>.*\\boxed\{.+\}"), and that questions that speak of their options are not asked openly. The pipeline is that of
the tools on files: rewardlab data template, data pass-rate by a small model, data filter --pass-rate, data mix.
"""

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Column, Data
from rewardlab.evals.domains import by_domain
from rewardlab.evals.pairs import pair_agreement
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.format import answer_given, format_ok
from rewardlab.rewards.task import correct
from rewardlab.verifiers.named import named_verifier


def nemotron_crossthink(base: Recipe | None = None, *, form: str = "") -> Recipe:
    """form: a regular expression that whole replies should match; without it they should state an answer. Takes a base's reward."""
    base = base or grpo()
    formed = format_ok(pattern=form) if form else answer_given()
    return base.but(reward=(base.reward or correct()) * formed.named("form"))


fidelity = "core"
left_out = (
    "writing questions from the web's text, and the blends of their sources: files bring questions, and `data mix` blends them"
)
data = Data(
    answer="the gold answer: a letter, or a text of at most ten words",
    verifier=Column("the name of the verifier of the row; `rewardlab data template` writes it", optional=True),
    form=Column("choice or open, by which results are told apart; `rewardlab data template` writes it", optional=True),
    verified_by="named_verifier",
    rows=[
        {
            "prompt": "Which gas do plants take up?\nA. oxygen\nB. carbon dioxide",
            "answer": "B",
            "verifier": "choice",
            "form": "choice",
        },
        {"prompt": "Which planet is the largest of the solar system?", "answer": "Jupiter", "form": "open"},
    ],
)

BY_FORM = by_domain(inner=pair_agreement(reward=named_verifier()), column="form")
check = Check(
    says="asked openly, careful replies are paid above guesses more often than where there are options to choose from",
    versus=None, task="quiz:test_size=4000", measure="pair_accuracy.open", direction="higher", margin=0.02,
    against="pair_accuracy.choice", model="untrained", by=own_share(inner=BY_FORM, parts=21), problems=4000, steps=1,
    fault=Within("pair_accuracy.choice", high=0.85, says="careful replies above guesses, of which one in four is right"),
    learns=None, start=None, sanity=True,
    finding="careful replies are paid above guesses in 82% of pairs where a question is asked openly, in 78% where there are four "
    "options to guess from. Whether a policy learns more from open questions is not tested",
)  # fmt: skip
baseline = "grpo"
