"""RL-Struct: a ladder of terms for structured output: it parses, stands alone, and has the right keys and values.

    r = w_s structure + w_f form + w_v validity + w_c content
    validity: it is JSON;  structure: Jaccard similarity of its keys, in their places, and the gold value's;  form: nothing stands
    around it;  content: the share of the gold value's leaves that it has in their places;    without validity all are 0

A reply that is nearly right earns nothing from a verifier, and where no reply of a group is right none is told from the others.
Here each rung can be learnt before the next one is ever reached.

Hu and Wu 2025, arXiv:2512.00319. The terms are the paper's; their exact definitions and weights are (inferred): structure and
content weigh 1, form and validity 1/2.
"""

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Data
from rewardlab.evals.groups import told_apart
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.another_answer import with_answer
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct, detail
from rewardlab.rollouts.independent import independent
from rewardlab.verifiers.text import edit_similarity


def ladder(structure: float = 1.0, form: float = 0.5, validity: float = 0.5, content: float = 1.0) -> Reward:
    """The weighted sum of what `json_value` says of a reply."""
    form_term = form * detail(name="format").named("form")
    others = {"structure": structure, "validity": validity, "content": content}
    return sum((weight * detail(name=name).named(name) for name, weight in others.items()), start=form_term)


def rl_struct(
    base: Recipe | None = None, *, structure: float = 1.0, form: float = 0.5, validity: float = 0.5, content: float = 1.0
) -> Recipe:
    """structure, form, validity, content: the weights. A base's reward beside the task's verifier is kept."""
    base = base or grpo()
    terms = ladder(structure, form, validity, content)
    # content is the verdict in parts, and takes its place
    return base.but(reward=terms if base.reward in (None, correct()) else base.reward + terms)


fidelity = "reading"
left_out = "the optional term for length; and LoRA, which is a setting of any run (`--lora-rank`)"
data = Data(
    answer="a JSON value",
    rows=[
        {"prompt": "Give name and age of Ann, who is 34, as JSON.", "answer": {"name": "Ann", "age": 34}},
        {"prompt": "List the primes below 6 as JSON.", "answer": [2, 3, 5]},
    ],
    verified_by="json_value",
)

check = Check(
    says="of two replies the one that takes fewer edits to be right is paid more, oftener than where being right alone is paid",
    versus=None, task="cards", measure="agreement", direction="higher", margin=0.03, against="agreement.correct",
    by=told_apart(
        reward=ladder() + 0.0 * correct(), truth=with_answer(inner=edit_similarity(), column="solution"), rollout=independent(n=8)
    ),
    problems=300, steps=1, fault=Within("signal.correct", high=0.9, says="share of groups in which being right tells any apart"),
    learns=None,
    finding="of two replies, the one that takes fewer edits to be right is paid more in 90% of pairs by the ladder, in 84% by "
    "being right alone, where ties count half. The ladder's weights are ours",
)  # fmt: skip
