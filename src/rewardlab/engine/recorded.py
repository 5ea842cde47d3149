"""What a step is logged as: its metrics, and its rollouts when they are due."""

from __future__ import annotations

from collections.abc import Sequence

from rewardlab.core import Group, Run
from rewardlab.engine.distributed import on_rank_zero
from rewardlab.engine.episodes import environment_of, turns_of, warn_of_unread_pay
from rewardlab.engine.stats import after_update
from rewardlab.engine.step import Ops
from rewardlab.engine.term_conflicts import conflicts, truth_of
from rewardlab.runs.record import Recorder
from rewardlab.text.answers import final_answer


def due(run: Run, every: int) -> bool:
    """Whether something done every `every` steps is done after this one. After the last step it always is."""
    return run.over or (every > 0 and run.step % every == 0)


def record(ops: Ops, recorder: Recorder, seconds: float) -> None:
    """Write the step's line of metrics."""
    on_rank_zero(lambda: _record(ops, recorder, seconds))


def _record(ops: Ops, recorder: Recorder, seconds: float) -> None:
    run = ops.run
    run.log("tokens", run.tokens)
    for phase, duration in (*ops.seconds.items(), ("step", seconds)):
        run.log(f"seconds/{phase}", duration)
    recorder.line(run.step, run.metrics)


def record_rollouts(ops: Ops, recorder: Recorder) -> None:
    """Log accuracy and length of the policy's rollouts of a step; write them down when due. Nothing for a step without any."""
    if ops.step_data is not None:
        on_rank_zero(lambda: _record_rollouts(ops, recorder))


def _record_rollouts(ops: Ops, recorder: Recorder) -> None:
    # verifying and evaluating rollouts for the log must not use up the token budget
    with ops.run.unbilled():
        _log_rollouts(ops, recorder)


def _log_rollouts(ops: Ops, recorder: Recorder) -> None:
    assert ops.step_data is not None
    run, (groups, scores, batch) = ops.run, ops.step_data
    truth = truth_of(groups, scores, run) if scores else []
    verdicts = [verdict for row in truth for verdict in row if verdict is not None]
    if verdicts:
        run.log("truth", sum(verdicts) / len(verdicts))
        run.log("distinct", distinct_right(groups, truth))
        for name, share in alike(truth).items():
            run.log(name, share)
    for name, share in conflicts(scores, truth).items():
        run.log(name, share)
    # nothing is learnt from a pair of two equal texts
    if ops.recipe.update.loss_kind == "preference" and (pairs := [group for group in groups if len(group) > 1]):
        run.log("paired", sum(len({t.reply for t in group}) > 1 for group in pairs) / len(pairs))
    run.log("length", float(batch.mask.sum() / len(batch)))
    stops = [t.stop for group in groups for t in group]
    run.log("cut_off", stops.count("length") / max(1, len(stops)))
    if environment_of(ops.recipe) is not None:
        episodes = [t for group in groups for t in group]
        for name, value in turns_of(episodes, run).items():
            run.log(name, value)
        if run.step == 1:
            warn_of_unread_pay(episodes, ops.recipe, ops.task)
    # step 1 is always recorded: a broken prompt or reward is best seen there
    if due(run, ops.settings.record_every) or run.step == 1:
        # a policy that does not learn has the same log-probs after the step as before
        learns = ops.recipe.objective is not None
        with ops.as_sampled(ops.policy):
            after = after_update(run.policy, batch, ops.settings.micro_tokens) if learns else {}
        recorder.rollouts(run, groups, scores, batch, truth, after)


def alike(truth: Sequence[Sequence[float | None]]) -> dict[str, float]:
    """Of the groups of several replies that were all judged, the shares in which all are right, and in which all are wrong."""
    judged = [[verdict for verdict in row if verdict is not None] for row in truth if len(row) > 1 and None not in row]
    if not judged:
        return {}
    right, wrong = ([all((v >= 1.0) == wanted for v in row) for row in judged] for wanted in (True, False))
    return {"all_right": sum(right) / len(judged), "all_wrong": sum(wrong) / len(judged)}


def distinct_right(groups: list[Group], truth: list[list[float | None]]) -> float:
    """How many different right answers a group has on average."""
    answers = [
        {final_answer(t.reply) for t, verdict in zip(group, row, strict=True) if verdict is not None and verdict >= 1.0}
        for group, row in zip(groups, truth, strict=True)
    ]
    return sum(map(len, answers)) / len(answers)
