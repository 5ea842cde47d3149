"""CodeLLM-DPO: DPO on pairs of the policy's own programs, one passing all tests and one failing, without PPO's reward tiers.

    n programs y ~ pi_SFT(x), each run on the tests of x;    y_w: passes all,  y_l: fails some;    no pair: x is left out
    loss = -log sigmoid(beta [log pi/pi_SFT(y_w) - log pi/pi_SFT(y_l)])

PPO is paid by rules set by hand: so much for a program that cannot be read, that raises an error, that fails a test, that passes
(`execution_tiers`). Such steps are coarse, and where one is set badly the policy learns that. A pair needs the order alone. The
programs are the policy's own: pairs by other models differ in ways that it never writes, and may make it unlearn what it knows.

Miao et al. 2024, arXiv:2410.18585, of which abstract and summaries were read; no code was found. Theirs: queries with tests,
several programs by the SFT policy, pairs by an executor, DPO. (inferred): n = 8 at temperature 1, equal texts count once, pairs in
the order in which their programs were written, `pairs` of them to a prompt, which share no program; beta; CodeRL's values for PPO's
tiers. Programs are written when their prompt comes up, by the frozen start: what a file of them, run beforehand, would hold. Any
verifier of right and wrong will do.
"""

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Problem, Recipe, Run, Sampling, Score, rollout
from rewardlab.data.columns import Data
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.objectives.pairs import dpo_loss
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.rewards.tests import execution_tiers
from rewardlab.rollouts.ranked import recorded_pairs, written
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt


@rollout(rows=lambda **_: 2)
def executed_pairs(
    problems: list[Problem], run: Run, *, by: Reward, n: PositiveInt = 8, pairs: PositiveInt = 1, model: str = "reference",
    temperature: NonNegativeFloat = 1.0,
) -> list[Group]:  # fmt: skip
    """Of n programs to each problem, run once each, up to `pairs` pairs of one that is right by the verifier `by` and one that is
    wrong, right first; no program is in two. A problem whose programs are all right, or all wrong, is left out; if there is no
    other, replies are paired with themselves, which teaches nothing, so that a step always has a batch.

    Programs without a verdict make no pair; equal texts count once.  model: who writes, as in `ranked`.
    """
    groups = written(problems, run, n, model, Sampling(run.max_new, temperature))
    chosen = [
        (group[0].problem, list(pair))
        for group, row in zip(groups, by(groups, run), strict=True)
        for pair in told_apart(group, row)[:pairs]
    ]
    run.log("paired", len({id(problem) for problem, _ in chosen}) / len(problems))
    return recorded_pairs(chosen or [(group[0].problem, [group[0].reply] * 2) for group in groups], run)


def told_apart(group: Group, verdicts: list[Score]) -> list[tuple[str, str]]:
    """The first right text with the first wrong one, the second with the second, and so on, as far as both reach."""
    judged = {t.reply: s.value >= 1.0 for t, s in zip(group, verdicts, strict=True) if s.value is not None}
    right, wrong = ([text for text, ok in judged.items() if ok is kind] for kind in (True, False))
    return list(zip(right, wrong, strict=False))


def codellm_dpo(
    base: Recipe | None = None, *, n: int = 8, pairs: int = 1, temperature: float = 1.0, beta: float = 0.1,
) -> Recipe:  # fmt: skip
    """n: programs that are written and run for each prompt.  pairs: the most pairs of a prompt.  beta: DPO's."""
    base = base or dpo(problems=8)
    made = executed_pairs(by=correct(), n=n, pairs=pairs, temperature=temperature)
    return base.but(rollout=made, objective=dpo_loss(beta=beta))


fidelity = "reading"
left_out = (
    "how many programs the paper samples and how, which of them it pairs, its beta, and its stages: the abstract and summaries do "
    "not say; supervised fine-tuning before"
)
data = Data(
    answer='tests, {"tests": "assert ..."} or {"io": [["input", "output"], ...]}',
    rows=[
        {
            "prompt": "Write a function add(a, b) that returns their sum.",
            "answer": {"tests": "assert add(2, 3) == 5\nassert add(0, 0) == 0"},
        },
        {
            "prompt": "Write a function twice(text) that returns the text two times.",
            "answer": {"tests": "assert twice('ab') == 'abab'"},
        },
    ],
    verified_by="code",
)

claim = Claim(
    says="from as many programs DPO on pairs of right and wrong ones learns more than PPO whose tiers pay a failed test too well",
    versus="ppo", task="codes:slow=0.6,biased=0.75", measure="pass@1", direction="higher", margin=0.04712,
    settings={"problems": 16, "n": 4, "pairs": 2, "epochs": 4, "lr": 1e-4, "beta": 0.3},
    versus_settings={"problems": 64, "lr": 3e-4},
    reward=execution_tiers(wrong=0.9), steps=10,
    fault=Within("train.truth", high=0.8, says="right programs in training where a failed test is paid nearly all"),
    tried="one seed each: PPO .739 at 1e-4, .769 at 3e-4, and with CodeRL's tiers .865 at 1e-4, more than DPO; DPO at 1e-4 "
    ".794, with beta=.1 .558, and .72 with n=8, at 3e-4 it diverges (.17 to .41, with beta from .1 to 1)",
    finding="58% of programs right before, 74% with DPO and 73% with PPO, although its tiers pay a failed test nearly all: over "
    "twenty pairs of runs they are alike. DPO spends a fifth of the tokens",
)  # fmt: skip
