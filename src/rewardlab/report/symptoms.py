"""Symptoms of a run, one function each: from the curves to a finding, or None.

Every limit stands beside the reason for it. They are limits of alarm: below them a run may be fine or not, above them somebody
should look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from rewardlab.report.agent_symptoms import failing, unended, unused
from rewardlab.report.finding import SHORTEST, SURE, Curves, Finding
from rewardlab.report.judge_symptoms import JUDGED, ORDERED, judge_drift, judge_order, judge_silent, master_keys, unread

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
EVALUATED = ("eval/judge_no_verdict", "eval/watched.prefers_first", "eval/watched.no_verdict")
"""What evaluations measure of a judge that pays, of which a run tells while it trains."""


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
            "see whether the reward itself pays for length; average the loss over tokens, not replies (dr_grpo, dapo); pay for "
            "brevity among right replies (hapo, grpo_lambda)"
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
    if told is None or len(curves.rows) < LEAST["standstill"] or abs(told.slope) > SURE or told.late > 0.95:
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


def none_paired(curves: Curves) -> Finding | None:
    """What learns from pairs, and in all the run no pair held two different texts."""
    steps, shares = curves["paired"]
    if not len(shares) or shares.max() > 0:
        return None
    text = (
        f"At none of {len(steps)} steps did a pair hold two different texts: what scores replies told no two apart, or gave no "
        "verdict, so that each stood beside itself. They taught nothing."
    )
    remedy = (
        "see what scores replies says of a few of them (rewardlab audit), take another judge or another form for it, or write more "
        "replies to each prompt"
    )
    return Finding("no pairs", text, remedy)


def at_the_end(curves: Curves) -> list[Finding]:
    """Why a run that ended as planned taught its policy little or nothing, as far as no evaluation has shown it before."""
    told = (none_accepted, none_paired, *((judge_silent, judge_order) if not any(name in curves for name in EVALUATED) else ()))
    return [finding for symptom in told if (finding := symptom(curves))]


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
    "calls and searches that fail": (("failed_calls", "failed_searches"), failing),
    "tools in use": (("calls",), unused),
    "ends of episodes": (("out_of_context", "out_of_turns"), unended),
    "judge's agreement": (("eval/watched.agreement",), judge_drift),
    "judge and empty replies": (("eval/watched.keys_paid",), master_keys),
    "judge's order": (ORDERED, judge_order),
    "judgements not read": (("eval/unread",), unread),
    "nothing accepted": (("accepted",), none_accepted),
    "pairs": (("paired",), none_paired),
    "judge without verdicts": (JUDGED, judge_silent),
}
"""By what is looked at: the metrics of which one is needed, and the function."""
LEAST = {"entropy": SHORTEST, "length": SHORTEST, "KL to the reference": SHORTEST, "gradient": SHORTEST, "standstill": 2 * SHORTEST}
"""Logged steps below which nothing is said of these."""
