"""RIP: filter prompts by their pairs: keep those with a good and long rejected reply and a small reward gap.

    y_w, y_l = the best and the worst of N replies of the seed model under a reward r
    S = {x :  r(y_l) >= t1,  len(y_l) >= t2,  r(y_w) - r(y_l) <= t3};    DPO on S

A prompt that is garbled, contradictory or cut off makes a model guess: its worst reply is bad and short, and its replies differ by
luck. What is rejected tells more of a prompt than what is chosen. Prompts are dropped, never pairs improved.

Yu et al. 2025, arXiv:2501.18578, sections 3.1 and 3.3 and table 10. N = 64, temperature 0.8, top-p 0.95 (here n = 8, also in
their table 18). Their thresholds are numbers (1,878 characters, 0.126 and 0.042 of ArmoRM, which leave 4,538 of 20,000 prompts).
(inferred): bounds in percent, which fit any reward, and the median as default; lengths are in tokens. Pairs are sampled by the
frozen seed model when their prompt comes up, not beforehand, and those of the first `pool` prompts settle the percentages.

Replies are scored by a reward model that is taught first, of the columns `chosen` and `rejected`, by --reward-model PATH, or by a
reward (score=...). On files: rewardlab data pass-rate --keep-replies, data pairs, data filter --between rejected_score=50%: ...
"""

from __future__ import annotations

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.data.drops import Fates, first, staying
from rewardlab.data.filters import Bounds, within
from rewardlab.evals.rewards import mean_reward
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.rlhf import rlhf
from rewardlab.rewards.recorded import score_in_data
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.ranked import ranked
from rewardlab.settings.domain import PositiveInt
from rewardlab.worlds.notes import note_quality

# ---- Pairs that survive a filter of what is rejected in them ---------------------------------------------------------

MEMORY = "survivors.bounds"


# the bounds are found on the problems of the first step, which processes must not find apart
@rollout(wraps="inner", across_problems=True)
def filter_pairs(
    problems: list[Problem], run: Run, *, inner: Rollout, by: Reward, rejected_score: str | None = "50%:",
    rejected_length: str | None = "50%:", gap: str | None = ":50%", pool: PositiveInt = 256, attempts: PositiveInt = 20,
) -> list[Group]:  # fmt: skip
    """The pairs of `inner`, the better reply first, within bounds on three numbers: the rejected reply's score, its length in
    tokens, and the gap of the two scores under the reward `by`.

    Bounds are written as for `rewardlab data filter`, "0.2:", ":30%"; None is no bound. Those in percent are quantiles of the first
    `pool` pairs of the training data, found once in the first step and kept in run.memory. Problems whose pair does not survive are
    replaced by further ones, `attempts` times at most; if none survives, the first are kept, so that a step always has a batch.
    Held-out problems are all kept. Logged: the share that survives, the share dropped for each reason, and the means of the
    three numbers over the pairs that are kept.
    """
    if run.more_problems is None:
        return inner(problems, run)
    wanted = len(problems)
    if MEMORY not in run.memory:
        problems = [*problems, *run.more_problems(max(0, pool - wanted))]
    groups = inner(problems, run)
    rows = _rows(groups, by, run)
    if MEMORY not in run.memory:
        given = {"rejected_score": rejected_score, "rejected_length": rejected_length, "gap": gap}
        run.memory[MEMORY] = _settled(rows, {name: text for name, text in given.items() if text is not None})
    fates = _fates(rows, run)
    for _ in range(attempts - 1):
        missing = wanted - fates.count(None)
        if missing <= 0:
            break
        further = inner(run.more_problems(missing), run)
        groups, rows = [*groups, *further], [*rows, *_rows(further, by, run)]
        fates = _fates(rows, run)
    kept = staying(list(zip(groups, rows, strict=True)), fates) or list(zip(groups, rows, strict=True))
    _log(fates, [row for _, row in kept[:wanted]], run)
    return [group for group, _ in kept[:wanted]]


Row = dict[str, float | None]


def _fates(rows: list[Row], run: Run) -> Fates:
    judged = [within(rows, name, Bounds(*ends)) for name, ends in run.memory[MEMORY].items()]
    return first([None] * len(rows), *judged)


def _rows(groups: list[Group], by: Reward, run: Run) -> list[Row]:
    """The numbers of each pair, under the names of the columns that `rewardlab data pairs` writes."""
    rows: list[Row] = []
    for (_, rejected), scores in zip(groups, by(groups, run), strict=True):
        better, worse = (s.total for s in scores)
        gap = None if better is None or worse is None else better - worse
        rows.append({"rejected_score": worse, "rejected_length": float(rejected.mask.sum()), "gap": gap})
    return rows


def _settled(rows: list[Row], bounds: dict[str, str]) -> dict[str, list[float | None]]:
    """The bounds as plain numbers, quantiles among them settled by these rows."""
    found = {}
    for name, text in bounds.items():
        settled = Bounds.read(text).settled([x for row in rows if (x := row[name]) is not None])
        found[name] = [settled.low, settled.high]
    return found


def _log(fates: Fates, kept: list[Row], run: Run) -> None:
    for name in run.memory[MEMORY]:
        run.log(f"dropped/{name}", sum(fate is not None and fate.reason == name for fate in fates) / len(fates))
    run.log("survived", fates.count(None) / len(fates))
    for name in kept[0]:
        if known := [x for row in kept if (x := row[name]) is not None]:
            run.log(name, sum(known) / len(known))


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def rip(
    base: Recipe | None = None, *, score: Reward | None = None, reward_model: str = "value-head", pairs: int | None = None,
    n: int = 8, rejected_score: str | None = "50%:", rejected_length: str | None = "50%:", gap: str | None = ":50%",
    pool: int = 256, temperature: float = 0.8, top_p: float = 0.95, sampled: bool = True,
) -> Recipe:  # fmt: skip
    """score: what ranks replies; without it a reward model, taught on `pairs` of the data or brought along (`rlhf`).  n: replies
    to each prompt.  sampled: false takes the data's own pairs.  rejected_score, rejected_length, gap: bounds, LOW:HIGH, in percent
    for quantiles; None: no bound.  pool: pairs that settle them.
    """
    base = base or dpo()
    by, rollout = score or score_in_data(), base.required("rollout")
    if sampled:
        base = base if base.reward is not None else rlhf(base, score=score, reward_model=reward_model, pairs=pairs)
        by = base.required("reward")
        rollout = ranked(by=by, n=n, temperature=temperature, top_p=top_p)
    bounds = {"rejected_score": rejected_score, "rejected_length": rejected_length, "gap": gap}
    return base.but(rollout=filter_pairs(inner=rollout, by=by, **bounds, pool=pool))


fidelity = "core"
left_out = (
    "Self-RIP, which writes new prompts from survivors (a policy here writes no prompts); stopping early by a validation set; 64 "
    "replies a prompt; and thresholds in the units of ArmoRM"
)
data = Data(
    chosen=Column("a good reply: teaches the reward model, not with one of your own; the pair where sampled is off", optional=True),
    rejected=Column("a worse reply, read with chosen", optional=True),
    chosen_score=Column("the score of chosen, read where sampled is off", optional=True),
    rejected_score=Column("the score of rejected, read where sampled is off", optional=True),
    rows=[
        {
            "prompt": "How can I fall asleep faster?",
            "chosen": "Keep the same bedtime every day and put screens away an hour before it.",
            "rejected": "Just sleep.",
            "chosen_score": 8.5,
            "rejected_score": 2.0,
        },
        {
            "prompt": "Why is the sky blue?",
            "chosen": "Air scatters blue light more than red light, so that blue reaches us from all sides.",
            "rejected": "Because it mirrors the sea.",
            "chosen_score": 9.0,
            "rejected_score": 1.0,
        },
    ],
)

KNOWN = {"score": note_quality(), "problems": 8, "pool": 128, "lr": 1e-4}
ALL = {"rejected_score": None, "rejected_length": None, "gap": None}
claim = Claim(
    says="DPO on the prompts that survive gives better replies to clear prompts than DPO on as many pairs of all prompts",
    versus="rip", task="notes:poor=0.6", measure="reward", direction="higher", margin=0.02, settings=KNOWN,
    versus_settings={**KNOWN, **ALL}, by=mean_reward(), steps=40,
    fault=Within("train.rejected_score", high=0.3, says="what rejected replies are worth where all prompts are learnt from"),
    learns="reward", start=None,
    finding="true reward, from 0 to 1: .54 at the start, .62 after DPO on the prompts that survive, .64 on all prompts. The "
    "filter does keep prompts with better worst replies (.39, not .27), but in this world that costs a little",
    version=2, replaces="at the rate of 3e-4 neither side learnt reliably: .44 to .79 unfiltered",
)  # fmt: skip
system = "rip-survival-prompts"
baseline = "dpo"
