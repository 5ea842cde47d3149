r"""LoongRL: long-context questions made of short multi-document ones, hidden at the end of one of several key chains.

    text: documents of this and of other questions, shuffled, with pairs {"key": "key"}. ... {"key": "question"}. after sentences
    told: the first key of one chain;    wanted: the answer of the question at its end
    r = 1 if gold in answer or answer in gold, else 0

To find the question one has to plan, look up, and look again; what is learnt so on 16K tokens is said to carry over to 128K. Other
chains end at other questions, which the same text answers: to answer the first question that is found is wrong. Short answers to
open questions come in many words, which exact match refuses, while F1 pays for namesakes.

Wang et al. 2025, arXiv:2510.19363; chains as in the authors' synthesis (Wangmerlyn/KeyChain, 7c3ff92). The reward looks both
ways, as in the paper, where the released code (rStar-RL/LoongRL, 2847cc5, longcontext_qa.py) asks for the gold answer in the box
alone, as any part of its text, where here words are whole; the most that an answer may be longer, 128 characters, is that of its
stricter form, which besides allows one box and 32 characters after the answer: not here, where no box is needed. n = 8 is that of
its script for Qwen2-7B. Matters of data: short mathematics, needles and plain long questions beside these (rewardlab data mix), a
first stage without chains, and a last one on what is not always solved (data pass-rate, data filter --pass-rate :0.99, data
curriculum).

`rewardlab data keychain` makes the prompts of rows with a question, its documents and an answer. A small world: keychain.
"""

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Data
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.pairs import pair_agreement
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.verifiers.match import two_way_match
from rewardlab.verifiers.text import token_f1


def loongrl_keychain(base: Recipe | None = None, *, longer: int = 128, n: int = 8) -> Recipe:
    """longer: characters by which an answer may be longer than the gold one.  n: of grpo. A base's reward beside the task's
    verifier is kept."""
    base = base or grpo(n=n).but(weighting=token_mean())
    judged = two_way_match(longer=longer)
    reward = judged if base.reward in (None, correct()) else base.reward + judged
    return base.but(reward=reward, measure=own_reward(reward=judged, rollout=independent(n=1)))


BOTH, F1 = two_way_match().named("both"), token_f1(of="answer").named("f1")
fidelity = "core"
left_out = (
    "the three stages and the mixture, which are made on files; groups that are all right or all wrong, which the script drops; "
    "its KL of .001 and four updates per batch"
)
data = Data(
    answer="the gold answer: a short text",
    rows=[
        {
            "prompt": 'The Danube flows through Vienna. {"k7": "k2"}. Bell was born in Scotland. {"k2": "Where was Bell born?"}. '
            "Start at the key k7, follow the keys to a question, and answer it.",
            "answer": "Scotland",
        },
        {
            "prompt": 'Paris lies on the Seine. {"a1": "a9"}. Rome lies on the Tiber. {"a9": "On which river does Rome lie?"}. '
            "Start at the key a1, follow the keys to a question, and answer it.",
            "answer": "the Tiber",
        },
    ],
)
check = Check(
    says="looked for in both directions, right answers in other words are paid above wrong ones more often than by F1",
    versus=None, task="keychain:test_size=4000", measure="pair_accuracy.both", direction="higher", margin=0.025,
    against="pair_accuracy.f1", model="untrained", by=own_share(inner=pair_agreement(reward=BOTH + F1)), problems=4000, steps=1,
    fault=Within("pair_accuracy.f1", high=0.85, says="right answers above wrong ones, by F1"), learns=None, start=None,
    finding="right answers in other words are paid above wrong ones in 83% of pairs, by F1 in 81%: a small difference, on answers "
    "that a world made. Nothing is trained, and no long text read",
)  # fmt: skip
baseline = "grpo"
