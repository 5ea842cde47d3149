"""Shop-R1: a difficulty-aware reward for simulated actions, so that the easy action is not always chosen.

    r = format + v(a) + alpha s,    format = 1/2 for JSON with a rationale and an action
    v = 0 if the type of action is wrong, else
        terminate         .3
        click             .3 + .2 [name given] + D R(name)
        type_and_submit   .3 + .1 [name given] + .1 [text given] + .1 R(name) + D R(text)
    s = mean over the rationale's tokens of KL(pi || uniform)

R: ROUGE-L with what the person clicked on or typed, where it is at least .75, else 0;  D = 1000. To leave is what many people do,
and easy to predict: paid for exact actions alone, a simulator learns to say that everybody leaves. No one knows a person's true
rationale; what stands in for its quality is how certain the policy is of it.

Zhang et al. 2025, arXiv:2507.17842, table 1 and section 3, with D = 1000, alpha = .005 and a KL of .001 (through notes on the paper
in public repositories; the authors' code is not out). (inferred): the paper divides s by the size of the vocabulary as well, which
would leave nothing of it, and so is left out; of an action with other fields the last one is D times, the others .1 times their
R; the rationale is what stands before `"action"`.
"""

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Data
from rewardlab.evals.pairs import reward_gap
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.intrinsic import negentropy
from rewardlab.worlds.shopping import action_right, action_value


def shop_r1(
    base: Recipe | None = None, *, scale: float = 1000.0, at: float = 0.75, certainty: float = 0.005, n: int = 8,
    beta: float = 0.001,
) -> Recipe:  # fmt: skip
    """scale: D.  at: the least likeness that counts.  certainty: alpha; 0 leaves it out.  n, beta: of grpo. The reward takes the
    place of a base's.
    """
    base = base or grpo(n=n, beta=beta)
    paid = action_value(scale=scale, at=at)
    return base.but(reward=paid + certainty * negentropy(before='"action"') if certainty else paid)


SCALED, EXACT = action_value().named("scaled"), action_right().named("exact")
fidelity = "core"
left_out = (
    "the SFT on rationales, written by a large model, before it; and the division of s by the size of the vocabulary, which would "
    "leave nothing of it"
)
data = Data(
    answer='the next action, {"type", "name"?, "text"?}, or its JSON',
    rows=[
        {
            "prompt": "Page: search box, button Buy. Done: nothing. What does the shopper do next?",
            "answer": {"type": "type_and_submit", "name": "search box", "text": "red shoes"},
        },
        {
            "prompt": "Page: red shoes, $40, button Buy. Done: searched red shoes. What next?",
            "answer": {"type": "click", "name": "Buy"},
        },
    ],
)

# by construction: both kinds of reply are written so that the rival orders them wrongly
check = Check(
    says="paid by parts, a careful simulator of shoppers earns more than one for whom everybody leaves; by exact actions, less",
    versus=None, task="shopping:test_size=4000", measure="gap.scaled", direction="higher", margin=0.34, against="gap.exact",
    model="untrained", by=own_share(inner=reward_gap(reward=SCALED + EXACT)), problems=4000, steps=1,
    fault=Within("gap.exact", high=0.0, says="by exact actions: careful less lazy, in standard deviations"), learns=None,
    start=None, sanity=True,
    finding="a careful simulator of shoppers earns .57 standard deviations more than one for whom everybody leaves; by exact "
    "actions .12 less. Both are written so: it shows the formula at work, and no policy was trained by it",
)  # fmt: skip
baseline = "grpo"
