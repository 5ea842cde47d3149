"""VeRPO: weight unit tests by the rarity of passing them; equally rare tests share one weight.

    w_j = exp(-alpha rho_j) / (sum_k exp(-(rho_j - rho_k)^2 / 2 sigma^2) + delta),    rho_j: share of the group that passes test j
    R_turn = sum over the tests passed of w_j;    R_traj = gamma^turns if all are passed, else 0
    A = R_traj - mean R_traj + beta (R_turn - mean over the group's turns),    without a division by the deviation

Passing all tests is rare, so whole groups teach nothing. The share of tests passed tells replies apart, but most tests are easy:
by their number they make a program that handles the easy ones a bit better look like progress. Divided by the density of equally
hard tests, and weighed by their difficulty, those that few programs pass decide. A program that passes all earns most in any group.

Wang et al. 2026, arXiv:2601.03525 (equations 3 and 7-14, through a summary of the paper in public notes; its code is not out).
(inferred): alpha = 1, sigma = 0.1, delta = 1e-6, beta = 0.5, gamma = 1. Rates are those of the group at hand, as there. Each reply
of an episode is tested, and has an advantage of its own.
"""

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe, Score, Trajectory
from rewardlab.credit.group import center
from rewardlab.credit.terms import by_term
from rewardlab.credit.turns import turn_to_go
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Data
from rewardlab.evals.advantages import advantage_cosine
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.another_answer import with_answer
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct, detail
from rewardlab.rewards.tests import weighted_tests
from rewardlab.rollouts.independent import independent
from rewardlab.worlds.codes import list_program


@reward
def earliness(trajectory: Trajectory, *, gamma: float = 1.0) -> Score:
    """gamma to the power of the episode's number of replies."""
    return Score(gamma ** len(trajectory.ends))


def dense(alpha: float, sigma: float, delta: float, beta: float) -> Reward:
    return beta * weighted_tests(alpha=alpha, sigma=sigma, delta=delta).named("tests")


def verpo(
    base: Recipe | None = None, *, alpha: float = 1.0, sigma: float = 0.1, delta: float = 1e-6, beta: float = 0.5,
    gamma: float = 1.0, n: int = 8,
) -> Recipe:  # fmt: skip
    """alpha: how much more hard tests weigh.  sigma: rates nearer than this share a weight.  delta: keeps the density above 0.
    beta: weight of the tests.  gamma: what a reply more costs.  n: replies per prompt."""
    base = base or grpo(n=n)
    outcome = ((base.reward or correct()) * earliness(gamma=gamma)).named("outcome")
    chains = {"tests": center() >> turn_to_go(gamma=0.0)}
    return base.but(reward=outcome + dense(alpha, sigma, delta, beta), credit=by_term(chains=chains, others=center() >> to_go()))


fidelity = "core"
left_out = (
    "episodes of several replies, each after the errors of the last: by default one reply; a base that plays them brings them"
)
data = Data(
    answer='several tests, {"tests": "assert ..."} or {"io": [["input", "output"], ...]}',
    rows=[
        {
            "prompt": "Write a function add(a, b) that returns their sum.",
            "answer": {"tests": "assert add(2, 3) == 5\nassert add(0, 0) == 0"},
        },
        {
            "prompt": "Write a function twice(text) that returns the text two times.",
            "answer": {"tests": "assert twice('ab') == 'abab'\nassert twice('') == ''"},
        },
    ],
    verified_by="code",
)

check = Check(
    says="within groups, what programs are paid goes more with how many long inputs they are right on than the share of tests does",
    versus=None, task="codes", measure="cosine.tests", direction="higher", margin=0.01, against="cosine.share",
    by=advantage_cosine(
        reward=dense(1.0, 0.1, 1e-6, 1.0) + 0.0 * detail(name="passed").named("share") + 0.0 * correct(),
        truth=with_answer(inner=list_program(partial=True), column="suite"), rollout=independent(n=8),
    ),
    problems=300, steps=1,
    fault=Within("signal.correct", high=0.95, says="share of the groups with a signal in which passing all tests gives one"),
    learns=None, start=None,
    finding="within groups, pay follows how many long inputs a program is right on with a cosine of .94, against .92 for the "
    "share of tests and .84 for passing all: weighing tests by how hard they are adds little to counting them here",
)  # fmt: skip
baseline = "grpo"
