"""Symptoms of a run, one function each: from the curves to a finding, or None.

Every limit stands beside the reason for it. They are limits of alarm: below them a run may be fine or not, above them somebody
should look.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from rewardlab.report.divergence import trend
from rewardlab.runs.metrics import finite

Row = dict[str, Any]

SHORTEST = 8  # steps below which nothing is said of a tendency
SURE = 2.0  # standard errors of a slope that count as a tendency
COLLAPSED = 0.1  # of the entropy at the start: the policy hardly explores any more
DISSOLVED, NATS = 3.0, 1.0  # times the entropy at the start, and nats per token, at which a policy writes noise
GROWN, SHRUNK = 1.5, 0.5  # times the length at the start
CUT = 0.1  # of replies that end at the length limit: each earns what half a reply earns
UNFOUND = 0.02  # of replies without an answer that the verifier finds: each right one among them earns nothing
WITHOUT_SIGNAL = 0.5  # of groups: more than half of what is generated teaches nothing
CLIPPED = 0.2  # of tokens: DAPO's and GRPO's healthy runs clip a few in a hundred
MISMATCH = {"mismatch_far": 0.02, "mismatch": 0.1, "mismatch_probability": 0.03}
"""Between the probabilities that sampled a reply and those that train on it: the share of tokens that are a fifth off; the mean
difference of log-probs; the mean difference of probabilities. Rounding in bf16 stays well below (about 0.003 of the last)."""
FAR, TIMES = 0.5, 5.0  # nats per token from the reference, and times what it was in the middle of the run
FAR_AT_ONCE = 2.0  # nats per token, whatever it was
SPIKE = 20.0  # times the median of the gradient's norm
SAME = 1e-9
DRIFT = (
    ("agreement", "agreement", "the same replies"),
    ("agreement_now", "agreement_high_now", "replies as the policy writes them now"),
)
"""Agreement of a judge, what of it may not lie below the interval at the start, and what it was measured on."""
UNREAD = 0.5  # of judgements: below that the measure says how a judge judges, above it how rarely it keeps to its form
ORDER = 0.2  # from a half, of what stands first and is preferred: a judge of pairs that differ little is rarely further off


class Finding(NamedTuple):
    """Something wrong.  text: what the log shows, with its numbers and steps.  remedy: what to try."""

    name: str
    text: str
    remedy: str


class Curves:
    """The metrics of a run as arrays, without what is not finite."""

    def __init__(self, rows: list[Row]):
        self.rows = rows

    def __contains__(self, name: str) -> bool:
        return len(self[name][0]) > 0

    def __getitem__(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values of a metric."""
        known = [(row["step"], value) for row in self.rows if math.isfinite(value := finite(row.get(name)))]
        table = np.array(known, float).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def ends(self, name: str) -> tuple[float, float] | None:
        """The means of the first and of the last quarter; None for fewer than SHORTEST steps."""
        values = self[name][1]
        if len(values) < SHORTEST:
            return None
        quarter = len(values) // 4
        return float(values[:quarter].mean()), float(values[-quarter:].mean())

    def late(self, name: str) -> float | None:
        """The mean of the last quarter."""
        values = self[name][1]
        return float(values[-max(1, len(values) // 4) :].mean()) if len(values) else None

    def progress(self, since: float = -math.inf) -> Progress | None:
        """How the truth, or where none is logged the reward, went from a step on; None for fewer than SHORTEST steps."""
        for name, words in (("truth", "the truth"), ("reward", "the reward")):
            steps, values = self[name]
            values = values[steps >= since]
            if len(values) >= SHORTEST:
                quarter = len(values) // 4
                slope = float(trend(values, len(values))[0])
                return Progress(words, float(values[:quarter].mean()), float(values[-quarter:].mean()), slope)
        return None


class Progress(NamedTuple):
    """What training is for: its name in a sentence, its level early and late, and its slope in standard errors."""

    words: str
    early: float
    late: float
    slope: float

    @property
    def rises(self) -> bool:
        # nothing can rise from the ceiling
        return self.slope > SURE or self.late > 0.95

    def __str__(self) -> str:
        return f"{self.words} {'falls' if self.slope < -SURE else 'does not rise'} ({self.early:.3g} → {self.late:.3g})"


def entropy(curves: Curves) -> Finding | None:
    ends = curves.ends("entropy")
    if ends is None:
        return None
    early, late = ends
    steps, values = curves["entropy"]
    if late < COLLAPSED * early:
        since = steps[int(np.argmax(values < COLLAPSED * early))]
        told = curves.progress(since) or curves.progress()
        if told is None or told.rises:
            return None
        text = f"Entropy fell from {early:.3g} to {late:.3g} nats per token (below a tenth since step {since:.0f}), and {told}."
        remedy = (
            "raise the upper clip (dapo), keep a KL to the start, protect rare tokens (lp_reg), sample hotter, or lower the rate"
        )
        return Finding("entropy collapse", text, remedy)
    if late > DISSOLVED * early and late > NATS:
        text = f"Entropy rose from {early:.3g} to {late:.3g} nats per token: replies turn into noise."
        return Finding("entropy explosion", text, "lower the rate or the entropy bonus; see whether sampler and trainer agree")
    return None


def length(curves: Curves) -> Finding | None:
    ends, told = curves.ends("length"), curves.progress()
    if ends is None or told is None or told.rises or not ends[0]:
        return None
    early, late = ends
    if late > GROWN * early:
        remedy = (
            "average the loss over tokens, not replies (dr_grpo, dapo); pay for brevity among right replies (hapo, grpo_lambda)"
        )
        return Finding("length creep", f"Replies grew from {early:.0f} to {late:.0f} tokens while {told}.", remedy)
    if late < SHRUNK * early:
        remedy = (
            "see what the shortest replies earn: a reward that short replies win, or a length penalty that outweighs being right"
        )
        return Finding("length collapse", f"Replies shrank from {early:.0f} to {late:.0f} tokens while {told}.", remedy)
    return None


def cut_off(curves: Curves) -> Finding | None:
    # of an episode that an environment ends, every reply may have been cut off
    shares = [share for name in ("cut_off", "turns_cut_off") if (share := curves.late(name)) is not None]
    if (share := max(shares, default=0.0)) <= CUT:
        return None
    text = f"{share:.0%} of the last quarter's replies were cut off at the length limit, and were judged unfinished."
    return Finding(
        "replies cut off", text, "raise the length limit (--max-new), or penalise length softly before it (dapo's overlong)"
    )


def groups(curves: Curves) -> Finding | None:
    signal = curves.late("signal")
    if signal is None or 1 - signal <= WITHOUT_SIGNAL:
        return None
    right, wrong = curves.late("all_right"), curves.late("all_wrong")
    parts = f" ({right:.0%} all right, {wrong:.0%} all wrong)" if right is not None and wrong is not None else ""
    text = f"{1 - signal:.0%} of the last quarter's groups had one reward for all replies{parts}, and taught nothing by comparison."
    easier = "train on harder problems (rewardlab data pass-rate, then filter), or refill batches (dapo)"
    harder = "train on easier problems first, sample more replies, give hints or partial credit, or imitate before"
    if not parts:
        return Finding("groups without signal", text, f"if rewards are high, {easier}; if they are low, {harder}")
    assert right is not None
    assert wrong is not None
    return Finding("groups without signal", text, easier if right >= wrong else harder)


def clipped(curves: Curves) -> Finding | None:
    names = {"clip_share": "of tokens were clipped", "ratio_far": "of decisions had an importance ratio off by over 20%"}
    for name, words in names.items():
        share = curves.late(name)
        if share is not None and share > CLIPPED:
            text = f"{share:.0%} {words} in the last quarter: the batch is too old for the policy that it trains."
            return Finding("clipped share", text, "lower the rate, or make fewer updates from a batch (minibatches, epochs)")
    return None


def mismatch(curves: Curves) -> Finding | None:
    words = {
        "mismatch_far": "{:.1%} of tokens had a probability over 20% off between sampler and trainer",
        "mismatch": "log-probs of sampler and trainer differed by {:.3g} nats a token",
        "mismatch_probability": "probabilities of sampler and trainer differed by {:.3g} a token",
    }
    for name, limit in MISMATCH.items():
        value = curves.late(name)
        if value is not None and value > limit:
            text = f"In the last quarter {words[name].format(value)} (alarm: {limit:g}): gradients are of another policy."
            remedy = (
                "sample and train in one precision, correct by truncated importance weights, and see that weights are synchronised"
            )
            return Finding("sampler/trainer mismatch", text, remedy)
    return None


def kl(curves: Curves) -> Finding | None:
    values = curves["kl"][1]
    late = curves.late("kl")
    if len(values) < SHORTEST or late is None:
        return None
    middle = float(np.median(values[len(values) // 4 : -(len(values) // 4)]))
    if not (late > FAR_AT_ONCE or (late > FAR and late > TIMES * middle)):
        return None
    text = f"KL to the reference reached {late:.3g} nats a token in the last quarter, from {middle:.3g} in the middle of the run."
    return Finding("KL explosion", text, "go back to a checkpoint before, lower the rate, raise the KL's weight")


def unfound(curves: Curves) -> Finding | None:
    share = curves.late("no_answer")
    if share is None or share < UNFOUND:
        return None
    text = f"{share:.0%} of replies in the last quarter have no answer that the verifier can find; each counts as wrong."
    return Finding(
        "answers not found",
        text,
        'read the rollouts whose reason is "no answer found": if their answers are right, ask for \\boxed{} in the prompt, or use '
        "another verifier (rewardlab audit compares them); if they are cut off, raise --max-new",
    )


def gradients(curves: Curves) -> Finding | None:
    steps, values = curves["grad_norm"]
    if len(values) < SHORTEST or not (median := float(np.median(values))):
        return None
    worst = int(values.argmax())
    if values[worst] <= SPIKE * median:
        return None
    text = f"The gradient's norm was {values[worst]:.3g} at step {steps[worst]:.0f}, {values[worst] / median:.0f} times its median."
    return Finding("gradient spike", text, "look at that step's rollouts; clip the norm lower; leave out replies without an end")


def standstill(curves: Curves) -> Finding | None:
    told = curves.progress()
    if told is None or len(curves.rows) < 2 * SHORTEST or abs(told.slope) > SURE or told.late > 0.95:
        return None
    steps, went = len(curves.rows), f"from {told.early:.3g} to {told.late:.3g}"
    text = f"Nothing was learnt in {steps} steps that can be told from noise: {told.words} went {went}."
    return Finding(
        "standstill", text, "try another rate (a factor of 3 each way); see whether groups have a signal, and the reward's rollouts"
    )


def dead_terms(curves: Curves) -> Iterator[Finding]:
    """Terms of a reward of several that pay every reply alike."""
    terms = [name for name in dict.fromkeys(k for row in curves.rows for k in row) if name.startswith("reward/")]
    for name in terms if len(terms) > 1 else ():
        values = curves[name][1]
        spread = curves[name.replace("reward/", "spread/", 1)][1]
        if len(values) < SHORTEST or np.ptp(values) > SAME or (len(spread) and spread.max() > SAME):
            continue
        text = f"The reward term {name.removeprefix('reward/')} was {values[0]:.3g} at each of {len(values)} steps."
        yield Finding(
            "dead term", text, "it changes nothing: see whether it is broken, is always met, or is never reached; or drop it"
        )


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
    steps, shares = curves["eval/watched.prefers_first"]
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


def none_accepted(curves: Curves) -> Finding | None:
    """Texts are written to be imitated where they are accepted, and in all the run none was."""
    steps, shares = curves["accepted"]
    if not len(shares) or shares.max() > 0:
        return None
    text = f"Nothing was accepted at any of the {len(steps)} steps that imitate what was accepted: they taught nothing."
    remedy = (
        "give texts to imitate in a column of the data (rewardlab show METHOD names it), write more of them for each row, raise "
        "--max-new if they are cut off, or begin with a stronger model"
    )
    return Finding("nothing accepted", text, remedy)


def of_judge(curves: Curves) -> list[Finding]:
    """What evaluations show to be wrong with a judge: with one that is watched (`evals/watched.py`), or one that is trained."""
    return [finding for symptom in (judge_drift, master_keys, judge_order, unread) if (finding := symptom(curves))]


SYMPTOMS: Mapping[str, tuple[tuple[str, ...], Callable[[Curves], Finding | None]]] = {
    "entropy": (("entropy",), entropy),
    "length": (("length",), length),
    "replies cut off": (("cut_off", "turns_cut_off"), cut_off),
    "answers not found": (("no_answer",), unfound),
    "groups without signal": (("signal",), groups),
    "clipped share": (("clip_share", "ratio_far"), clipped),
    "sampler/trainer mismatch": (tuple(MISMATCH), mismatch),
    "KL to the reference": (("kl",), kl),
    "gradient": (("grad_norm",), gradients),
    "standstill": (("truth", "reward"), standstill),
    "judge's agreement": (("eval/watched.agreement",), judge_drift),
    "judge and empty replies": (("eval/watched.keys_paid",), master_keys),
    "judge's order": (("eval/watched.prefers_first",), judge_order),
    "judgements not read": (("eval/unread",), unread),
    "nothing accepted": (("accepted",), none_accepted),
}
"""By what is looked at: the metrics of which one is needed, and the function."""
