"""T-REG: token rewards from contrastive prompts, for a better and for a worse reply, as a regulariser of DPO.

    g_t = sigmoid(log pi_eval(y_t | better, y_<t) - log pi_eval(y_t | worse, y_<t)) - 1/2        in [-1/2, 1/2]
    loss = DPO + alpha w (R(y_w) + R(y_l)),    R(y) = -sum_t beta g_t log pi(y_t)
    w = sigmoid(beta log pi/ref(y_l) - beta log pi/ref(y_w))

DPO leaves open how a reply's implicit reward is spread over its tokens. R draws it to where the model itself, asked twice, finds
the reply good, and away from where it finds it bad, in both replies. w is DPO's own weight of a pair, without gradient: what is
learnt already is not drawn further. The scores of tokens are weak, so they regularise, and the label of the pair decides.

Zhou et al. 2024, arXiv:2412.02685 (ACL 2025), after a reading of the paper; no training script could be found. pi_eval is the
reference; alpha = 0.25 is the middle of the values that they try. (inferred): the wording of both prompts, from the four qualities
that they name; on other losses of pairs (ipo+t_reg) w is DPO's. A model that follows instructions is needed: a small one does not
write worse on demand; with `cued` > 0 a copy of it first learns to write the chosen reply on the one prompt and the rejected one on
the other (ours).
"""

import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Batch, Group, Learner, Outputs, Problem, Recipe, Run, Trajectory, credit, objective, rollout
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import decisive_tokens
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.sft import other_first, sft
from rewardlab.objectives.pairs import margin, row_sum
from rewardlab.rollouts.goals import reprompted
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import PositiveFloat
from rewardlab.text.filled import filled

EVALUATOR = "evaluator"
ASK = "Rewrite the response to this instruction so that it is more {how}.\n\nInstruction: {prompt}\n\nResponse: {reply}"
BETTER = ASK.replace("{how}", "helpful, correct, coherent and concise")
WORSE = ASK.replace("{how}", "unhelpful, incorrect, incoherent and verbose")


def asked(t: Trajectory, template: str, reply: str, run: Run) -> Trajectory:
    """The row's decisions after a prompt by a template, in which {prompt} and {reply} are replaced."""
    return reprompted(t, t.problem.reworded(filled(template, prompt=t.problem.question, reply=reply)), run)


@credit
def contrasted_tokens(
    a: Tensor, batch: Batch, run: Run, *, better: str = BETTER, worse: str = WORSE, model: str = "reference"
) -> Tensor:
    """g_t of each decision: weights for `follow_tokens`, not advantages.  model: of the run, which reads the two prompts."""
    rows, judge = [t for t, _ in batch.rows], run.model(model)
    sides = []
    for template in (better, worse):
        prompted = [asked(t, template, t.reply, run) for t in rows]
        sides.append([logprobs[t.mask] for t, logprobs in zip(prompted, judge.score(prompted), strict=True)])
    found = torch.zeros_like(a)
    for i, (t, up, down) in enumerate(zip(rows, *sides, strict=True)):
        found[i, : len(t)][torch.from_numpy(t.mask)] = torch.sigmoid(torch.from_numpy(up - down)).to(found) - 0.5
    run.log("token_gap", float(margin(row_sum(found, batch) / batch.mask.sum(1).clamp(min=1), batch).mean()))
    return found


@objective(unit="group", needs=("ref",))
def follow_tokens(out: Outputs, batch: Batch, run: Run, *, beta: PositiveFloat = 0.1) -> Tensor:
    """w (R(y_w) + R(y_l)) for pairs, with g_t in the credit."""
    weight = torch.sigmoid(-beta * margin(row_sum(out.logprobs - batch.ref, batch), batch)).detach()
    return -weight * beta * row_sum(batch.credit * out.logprobs, batch).view(-1, 2).sum(1)


@rollout(rows=lambda **_: 2)
def on_cue(problems: list[Problem], run: Run, *, better: str, worse: str) -> list[Group]:
    """The chosen reply after the prompt for a better one, the rejected after that for a worse one; {reply} is the other one."""
    pairs = recorded(fields=("chosen", "rejected"))(problems, run)
    return [[asked(c, better, r.reply, run), asked(r, worse, c.reply, run)] for c, r in pairs]


def t_reg(
    base: Recipe | None = None, *, alpha: float = 0.25, beta: float = 0.1, better: str = BETTER, worse: str = WORSE, cued: int = 0
) -> Recipe:
    """alpha: weight of the regulariser.  beta: of DPO.  better, worse: the prompts, with {prompt} and {reply}.  cued: pairs on
    which a copy of the model learns first to write on these prompts; 0: the reference reads them as it is.
    """
    base = base or dpo(beta=beta)
    if base.objective is None or "group" not in base.objective.units or base.credit or (cued and base.loop):
        raise RewardlabError("t_reg adds to an objective on pairs of replies; credit must be free, and with `cued` the loop too")
    scores = contrasted_tokens(better=better, worse=worse, model=EVALUATOR if cued else "reference")
    base = base.but(credit=scores, objective=base.objective + alpha * follow_tokens(beta=beta))
    if not cued:
        return base
    judge = Learner(EVALUATOR, "copy:policy", sft(problems=8).but(rollout=on_cue(better=better, worse=worse)), every=0)
    return base.but(also=(*base.also, judge), loop=other_first(model=EVALUATOR, pairs=cued, inner=base.loop))


fidelity = "core"
left_out = (
    "the paper's own wording of the two prompts, which was not found; the weight w of its variant for SimPO; and its pairs, the "
    "best and the worst of five replies of the reference by a reward model: any pairs will do here"
)
data = Data(chosen="the better reply", rejected="the worse reply")

check = Check(
    says="more of the implicit reward lies on the tokens with which replies begin to differ than after DPO",
    versus="dpo", task="preferences:biased=0.75,error=0.1", measure="decisive_share", direction="higher", margin=0.003,
    settings={"cued": 5120, "better": "Good: {prompt}", "worse": "Bad: {prompt}", "lr": 1e-4}, versus_settings={"lr": 1e-4},
    by=decisive_tokens(), steps=40, guard=Within("preferred", low=-0.03),
    fault=Within("decisive_share", high=0.6, says="share on the decisive tokens after DPO"),
    judge=Within("train.token_gap", low=0.01, says="mean score of the chosen reply's tokens above the other's"), learns=None,
    start=None, tried="the copy that scores learns first, from the very pairs of the 40 steps: a small model must; "
    "effect -.0025, sd .0024, token gap .0097 (3 seeds)",
    finding="52.9% of the implicit reward lies on decisive tokens, after DPO 52.8%: no difference that matters. The scores of "
    "tokens are weak, .03 apart of a possible 1, although the copy that gives them learnt from these very pairs",
)  # fmt: skip
