"""Symptoms of a judge, from what evaluations measure of it: one that is watched (`evals/watched.py`), or one that is trained."""

from __future__ import annotations

from rewardlab.report.finding import Curves, Finding

DRIFT = (
    ("agreement", "agreement", "the same replies"),
    ("agreement_now", "agreement_high_now", "replies as the policy writes them now"),
)
"""Agreement of a judge, what of it may not lie below the interval at the start, and what it was measured on."""
UNREAD = 0.5  # of judgements: below that the measure says how a judge judges, above it how rarely it keeps to its form
SILENT = 0.1  # of judgements: more is no accident, and what can be judged is then a choice
JUDGED = ("judge_no_verdict", "eval/judge_no_verdict")
"""The share of what a judge that pays is asked on which it gives no verdict."""
ORDERED = ("eval/watched.prefers_first", "judge_prefers_first")
"""How often what stands first is preferred: of a judge that is watched, or in training."""
ORDER = 0.2  # from a half, of what stands first and is preferred: a judge of pairs that differ little is rarely further off


def judge_drift(curves: Curves) -> Finding | None:
    """A judge that agrees less with the truth than at the start: on the same replies, below the interval there; on the policy's
    own, where the two intervals do not meet."""
    began, low = (curves[f"eval/watched.{name}"][1] for name in ("agreement", "agreement_low"))
    for name, bound, what in DRIFT:
        steps, values = curves[f"eval/watched.{name}"]
        bounds = curves[f"eval/watched.{bound}"][1]
        if not len(low) or not len(values) or bounds[-1] >= low[0]:
            continue
        text = (
            f"The judge agreed with the truth in {began[0]:.0%} of comparisons at first, and in {values[-1]:.0%} at step "
            f"{steps[-1]:.0f}, on {what}."
        )
        remedy = "stop at the step before, train the judge on replies of now, add a verifier, or keep a KL to the start"
        return Finding("judge drifts", text, remedy)
    return None


def master_keys(curves: Curves) -> Finding | None:
    steps, counts = curves["eval/watched.keys_paid"]
    if not len(counts) or counts[-1] < 1:
        return None
    prefix = "eval/watched.key."
    known = dict.fromkeys(k for row in curves.rows for k in row if k.startswith(prefix))
    limit, mean = (curves[f"eval/watched.{name}"][1][-1] for name in ("key_limit", "mean"))
    paid = {k.removeprefix(prefix): curves[k][1][-1] for k in known if curves[k][0][-1] == steps[-1] and curves[k][1][-1] > limit}
    which = ", ".join(f"{name} {x:.3g}" for name, x in paid.items())
    text = f"The judge pays replies that answer nothing, at step {steps[-1]:.0f}: {which}; other replies get {mean:.3g} on average."
    return Finding("master key", text, "gate the judge by what must be there (answer_given() >> judge(...)), or take another judge")


def judge_order(curves: Curves) -> Finding | None:
    steps, shares = next((curves[name] for name in ORDERED if name in curves), curves[ORDERED[0]])
    if not len(shares) or abs(shares[-1] - 0.5) <= ORDER:
        return None
    place, share = ("first", shares[-1]) if shares[-1] > 0.5 else ("second", 1 - shares[-1])
    text = f"The judge prefers the reply that stands {place}, in {share:.0%} of comparisons at step {steps[-1]:.0f}."
    return Finding("position bias", text, "ask for reasons before the verdict, or take another judge: what it says is partly noise")


def unread(curves: Curves) -> Finding | None:
    """A judge that is trained, and whose judgements of held-out rows mostly end in no verdict."""
    steps, shares = curves["eval/unread"]
    if not len(shares) or shares[-1] < UNREAD:
        return None
    text = (
        f"{shares[-1]:.0%} of the judgements of held-out rows have no verdict that can be read, at step {steps[-1]:.0f}: what is "
        "measured says little of how it judges, and none of them is paid as right."
    )
    remedy = (
        "raise --max-new if they are cut off, imitate right judgements first, from a column of the data (rewardlab show METHOD "
        "names it), or begin with a model that keeps to the form"
    )
    return Finding("judgements not read", text, remedy)


def judge_silent(curves: Curves) -> Finding | None:
    """A judge that pays a policy, and gives no verdict on much of what it is asked: in training lately, or else held out."""
    found = [(share, name) for name in JUDGED if (share := curves.late(name)) is not None]
    if not found or found[0][0] <= SILENT:
        return None
    share, name = found[0]
    where = "of comparisons of held-out replies" if name.startswith("eval/") else "of what it was asked in the last quarter"
    text = f"The judge that pays the policy gave no verdict that can be read on {share:.0%} {where}: nothing is learnt from these."
    remedy = (
        "read what it writes (the reasons in the rollouts; rewardlab audit), give it more tokens if it is cut off, another form "
        "(template=, --form), marks alone where its server can (marks=grammar), or take another judge"
    )
    return Finding("judge without verdicts", text, remedy)


def of_judge(curves: Curves) -> list[Finding]:
    """What evaluations show to be wrong with a judge: with one that is watched (`evals/watched.py`), or one that is trained."""
    return [finding for symptom in (judge_drift, master_keys, judge_order, unread, judge_silent) if (finding := symptom(curves))]
