"""BeamPERL: exact-match rewards for beam reactions, trained on one load; evaluated on more loads and moved supports.

    r = w_f form + w_a [all reactions are stated, each within 1e-4 P of the solver's]

No solution is shown: what is learnt is what the equations of equilibrium pay. They are the same for more loads and for other places
of the supports, and yet the paper finds the first solved by what was learnt and the second not: the policy learns a template. So
held-out problems are of kinds, and accuracy is measured on each, through training.

Hage and Buehler 2025 (LAMM-MIT/BeamPERL). Followed: rewards.py (f2110d9) and train_model_beamrl.yaml (36f76c7): w_f = 1, w_a = 2,
groups of 4 at temperature .6; a KL of weight .04 is the default of TRL 0.15.2, which environment.yml names. There the form asks for
one </think> and a box behind it, which is `form` here; and a reply may state any numbers besides the right ones, which
`coefficients` allows by `extra` alone. LoRA of rank 32 is `--lora-rank 32`.
"""

from typing import Any

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Column, Data
from rewardlab.evals.kinds import accuracy_by_kind
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.format import answer_given, format_ok
from rewardlab.rewards.task import correct


def beamperl(
    base: Recipe | None = None, *, form_weight: float = 1.0, weight: float = 2.0, form: str = "", n: int = 4,
    temperature: float = 0.6, beta: float = 0.04,
) -> Recipe:  # fmt: skip
    """form_weight, weight: w_f and w_a.  form: a regular expression that replies should match; "": they state an answer.  n,
    temperature, beta: of grpo."""
    base = base or grpo(n=n, temperature=temperature, beta=beta).but(measure=accuracy_by_kind())
    formed = format_ok(pattern=form) if form else answer_given()
    right: Any = base.reward or correct()
    return base.but(reward=form_weight * formed.named("form") + weight * right)


fidelity = "core"
left_out = (
    "its data: beams of a symbolic solver, with questions in a model's words; and the form that is asked for by default, one "
    "</think> and a box behind it (`form`)"
)
data = Data(
    answer='multiples of a symbol, ["0.5P", "1.5P"]',
    kind=Column("by which held-out problems are told apart", optional=True),
    rows=[
        {"prompt": "A beam of length L on two supports carries P at its middle. Which reactions?", "answer": ["0.5P", "0.5P"]},
        {"prompt": "The load P stands at a quarter of the length. Which reactions?", "answer": ["0.75P", "0.25P"]},
    ],
    verified_by="coefficients",
)

SMALL = {"n": 8, "temperature": 1.0}
check = Check(
    says="trained on one load, the policy gains more on beams with more loads than on beams with moved supports",
    versus=None, task="beams:train=one", measure="apart", direction="higher", margin=0.05, against="before.apart",
    settings=SMALL, by=accuracy_by_kind(better="loads", worse="supports"), steps=40,
    fault=Within("before.pass@1.supports", low=0.1, high=0.6, says="accuracy with moved supports before training"),
    learns=None, tried="two development seeds: .78 to .93 right in training, +.017 on the shifted problems, +.02 apart (sd .05)",
    finding="trained on beams with one load, from 70% to 92% right, the policy stays at 3% to 4% on more loads and at 31% to 30% "
    "on moved supports: neither is learnt here, so that the paper's difference between them cannot show",
)  # fmt: skip
baseline = "grpo"
