"""Two processes that train together take the steps of one."""

from __future__ import annotations

import os
import signal
import socket
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp
from safetensors.torch import load_file, save_file

from rewardlab import RewardlabError, registry, train
from rewardlab.core import Learner, Problem, Recipe, Run, Score, Task, Trajectory, ask, credit, measure, objective, rollout
from rewardlab.credit.group import center, whiten
from rewardlab.credit.value import to_go
from rewardlab.engine import distributed
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import NothingKept, Stopped
from rewardlab.models import warmup
from rewardlab.models.embedded import untrained
from rewardlab.objectives.ratio import policy_gradient
from rewardlab.objectives.weighting import token_mean
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.prm import small
from rewardlab.rewards.imperfect import imperfect
from rewardlab.rewards.length import length_penalty
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent
from rewardlab.runs.config import RunConfig
from rewardlab.runs.metrics import read_metrics
from rewardlab.util.counted import count
from rewardlab.util.files import cached


@objective(unit="batch")
def spread_of_likelihood(out, batch, run):
    """A loss that no row has alone."""
    return torch.where(batch.mask, out.logprobs, 0.0).sum(1).var()


REPLIES = [["a", "quite long reply", "b c"], ["one two three four", "x"], ["yes", "no", "maybe so", "y"]]
REWARDS = [[1.0, 0.0, 0.5], [0.0, 2.0], [1.0, 1.0, None, 0.0]]


def recipe() -> Recipe:
    # whitened credit, a token mean and a loss of the whole batch: all need every row, whoever holds it
    return Recipe(
        credit=center() >> to_go() >> whiten(), objective=policy_gradient() + 0.1 * spread_of_likelihood(), weighting=token_mean()
    )


def trained(micro_tokens: int = 64) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
    """The weights after two updates on recorded rollouts, and the numbers of the last."""
    policy = untrained()
    problems = [ask(f"{i}?") for i, group in enumerate(REPLIES) for _ in group]
    asked = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = iter(policy.write(asked, [text for group in REPLIES for text in group]))
    groups = [[next(rows) for _ in group] for group in REPLIES]
    scores = [[Score(r) for r in row] for row in REWARDS]
    run = Run(policy)
    ops = Ops(recipe(), run, registry.task("arithmetic", test_size=2), RunConfig(micro_tokens=micro_tokens))
    for _ in range(2):
        ops.update(ops.collate(groups, scores))
    return {k: v.clone() for k, v in policy.state().items()}, run.metrics


def one_of_two(rank: int, port: int, out: str) -> None:
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    # a process that waits in vain says so soon
    distributed.PATIENCE = timedelta(minutes=2)
    scorer_before_they_meet(out)
    distributed.init()
    weights, metrics = trained()
    save_file(weights, f"{out}/rank{rank}.safetensors")
    torch.save(metrics, f"{out}/rank{rank}.metrics")
    order = distributed.map_sharded(lambda share: [x * 10 for x in share], [1, 2, 3])
    assert order == [10, 20, 30]
    assert distributed.map_sharded(lambda share: share * 2, [1, 2, 3]) == [1, 3, 1, 3, 2, 2]
    task = registry.task("arithmetic", test_size=2)
    ops = Ops(registry.build("grpo", {"n": 2}), Run(untrained(), max_new=4), task, RunConfig())
    groups = ops.rollout(ops.problems(3))
    torch.save([[t.ids.tolist() for t in g] for g in groups], f"{out}/rank{rank}.rollouts")
    torch.save(logged(), f"{out}/rank{rank}.logged")
    torch.save(kept_by_one(), f"{out}/rank{rank}.kept")
    torch.save(judged(), f"{out}/rank{rank}.judged")
    torch.save(refilled(), f"{out}/rank{rank}.refilled")
    torch.save(tokens_of_kto(), f"{out}/rank{rank}.tokens")
    made_by_one_of_them(out)
    torch.save(decided_by_the_first(), f"{out}/rank{rank}.decided")
    torch.save(the_first_alone(), f"{out}/rank{rank}.alone")
    torch.save(verified_by_one_of_them(), f"{out}/rank{rank}.verified")
    stopped_by_the_second(rank, out)
    torch.distributed.barrier()
    distributed.shutdown()


def made_by_one_of_them(out: str) -> None:
    """A policy that is not in the cache is made by the process that comes first, while the other waits for its folder."""
    os.environ["REWARDLAB_CACHE"] = f"{out}/cache"
    problems = registry.task("arithmetic", test_size=2).train
    taught = [replace(problems[i], meta={"solution": "1"}) for i in range(64)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(warmup, "measured_start", lambda policy, task: None)

        def make(folder: Path) -> None:
            policy = untrained()
            warmup.teach(policy, taught, 2, None)
            assert distributed.world_size() == 2
            policy.save(folder)

        made = LlamaPolicy.load(cached("taught", make), "cpu").state()
    assert any(not torch.equal(made[name], value) for name, value in untrained().state().items())


def scorer_before_they_meet(out: str) -> None:
    """A small scorer that is asked for before the processes have met is trained by one of them, while the other waits for it."""
    os.environ["REWARDLAB_CACHE"] = f"{out}/cache"

    def learnt(solutions, model, folder: Path, *, run: Path, **_) -> None:
        task = Task("mine", Endless([ask(f"Say {i}", i) for i in range(4)]), (), "exact_match", max_new=2)
        made = registry.build("grpo", {"n": 2, "problems": 2}).but(reward=length_penalty())
        train(made, untrained(), task, out=run, steps=1)
        folder.mkdir()
        (folder / "made").write_text(str(os.getpid()))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(distributed, "PATIENCE", timedelta(seconds=20))
        patched.setattr(small, "train_scorer", learnt)
        patched.setattr(small, "labelled_solutions", lambda name, task: [])
        patched.setattr(small.embedded, "checkpoint", lambda task: Path("embedded"))
        folder = small.checkpoint("arithmetic")
    assert (folder / "made").exists()
    assert not torch.distributed.is_initialized()


@measure
def which_rank(problems, run):
    return {"rank": float(torch.distributed.get_rank())}


def decided_by_the_first() -> list[dict[str, float]]:
    """What each process is told where the engine evaluates, and where a method's loop does; and what the second learner reads.

    A judge or a limit of time may decide otherwise in each process: here each says which one it is.
    """
    seen: list[str] = []

    def asked(groups, scores, run) -> list[Problem]:
        return [ask(f"rank {torch.distributed.get_rank()}, {i}?") for i in range(2)]

    second = registry.build("grpo", {"n": 2}).but(reward=length_penalty())
    recipe = registry.build("grpo", {"n": 2}).but(
        reward=length_penalty(), measure=which_rank(), also=(Learner("second", "copy:policy", second),)
    )
    run = Run(untrained(), models={"second": untrained()}, max_new=2)
    ops = Ops(recipe, run, Task("mine", [ask("a?"), ask("b?")], [ask("c?")], "exact_match"), RunConfig())
    ops.learners["second"].problems = asked
    groups = ops.rollout(ops.problems(2))
    scores = ops.score(groups)
    batch = ops.collate(groups, scores)
    sample = ops.rollout
    ops.rollout = lambda problems, learner: seen.extend(p.question for p in problems) or sample(problems, learner)
    ops.learn_due(batch, groups, scores)
    assert seen == ["rank 0, 0?", "rank 0, 1?"]
    return [distributed.on_rank_zero(ops.evaluate), ops.evaluate()]


def of_problems(problems, run):
    """Log the mean answer, and the mean of those above 5 where there are any; count the answers."""
    answers = [p.answer for p in problems]
    run.log("mean", sum(answers) / len(answers))
    if large := [x for x in answers if x > 5]:
        run.log("large", sum(large) / len(large))
    count(run, "answers", len(answers))
    return independent(n=2)(problems, run)


shared_out, in_one_place = rollout(of_problems), rollout(across_problems=True)(of_problems)


@reward(over="groups")
def paid_and_logged(groups, run):
    run.log("paid", len(groups))
    count(run, "answers", 10)
    return [[float(i) for i, _ in enumerate(group)] for group in groups]


@rollout
def above(problems, run, *, least=5):
    if not (kept := [p for p in problems if p.answer > least]):
        raise NothingKept(f"none of {len(problems)} is above {least}")
    return independent(n=2)(kept, run)


def kept_by_one() -> tuple[list[str], str]:
    """What is sampled where only the problem of the second process is kept; and what both hear where none is."""
    task = Task("mine", [ask("a?", 1), ask("b?", 6), ask("c?", 4)], (), "exact_match")
    recipe = registry.build("grpo", {"n": 2}).but(rollout=above())
    ops = Ops(recipe, Run(untrained(), max_new=2), task, RunConfig())
    groups = ops.rollout(task.train)
    ops.policy.recipe = recipe.but(rollout=above(least=9))
    with pytest.raises(NothingKept) as refused:
        ops.rollout(task.train)
    return [group[0].problem.question for group in groups], str(refused.value)


def logged() -> list[dict[str, float]]:
    """What is logged by a rollout whose problems are shared out, by one whose are not, and by a reward and a second learner."""
    found = []
    task = Task("mine", [ask("a?", 1), ask("b?", 6), ask("c?", 4)], (), "exact_match")
    for part in (shared_out(), in_one_place()):
        second = registry.build("grpo", {"n": 2}).but(reward=length_penalty())
        recipe = registry.build("grpo", {"n": 2}).but(
            rollout=part, reward=paid_and_logged(), also=(Learner("second", "copy:policy", second),)
        )
        run = Run(untrained(), models={"second": untrained()}, max_new=2)
        ops = Ops(recipe, run, task, RunConfig(patience=0))
        ops.learners["second"].problems = lambda groups, scores, run: run.log("asked", 7.0)
        groups = ops.rollout(ops.problems(3))
        found.append({name: float(value) for name, value in run.metrics.items()})
        scores = ops.score(groups)
        ops.learn_due(ops.collate(groups, scores), groups, scores)
        told = ("mean", "large", "answers", "paid", "asked")
        found.append({name: float(run.metrics[name]) for name in told if name in run.metrics})
    return found


@rollout
def judged_there(problems, run):
    """Samples, with what a judge whose errors are keyed by the run's seed says of them here."""
    groups = independent(n=2)(problems, run)
    said = imperfect(inner=length_penalty())(groups, run)
    return [[replace(t, tag=str(s.value)) for t, s in zip(*rows, strict=True)] for rows in zip(groups, said, strict=True)]


def judged() -> list[tuple[str, str, float]]:
    """Of samples of one problem, which each process has: the reply, what was said of it where it was sampled, and by the reward."""
    problem = ask("7+8=?", 15)
    recipe = registry.build("grpo", {"n": 2}).but(rollout=judged_there(), reward=imperfect(inner=length_penalty()))
    ops = Ops(recipe, Run(untrained(), max_new=6), Task("mine", [problem] * 2, (), "exact_match"), RunConfig(patience=0))
    groups = ops.rollout(ops.problems(2))
    return [
        (t.reply, t.tag, s.value)
        for group, row in zip(groups, ops.score(groups), strict=True)
        for t, s in zip(group, row, strict=True)
    ]


@reward
def ends_odd(trajectory):
    return float(trajectory.ids[-1] % 2)


def refilled() -> tuple[list[str], int]:
    """The problems of a step that samples further ones until it has four groups with a signal, and where the next begins."""
    run, task = Run(untrained(), max_new=3, verify=ends_odd()), registry.task("arithmetic", test_size=2)
    ops = Ops(registry.build("dapo", {"n": 2}), run, task, RunConfig())
    groups = ops.rollout(ops.problems(4))
    assert all(len({int(t.ids[-1]) % 2 for t in group}) == 2 for group in groups)
    return [group[0].problem.key for group in groups], ops.position


GIVEN: list[float] = []


@reward
def who(trajectory):
    GIVEN.append(10.0 * torch.distributed.get_rank() + int(trajectory.ids[-1]) % 2)
    return GIVEN[-1]


def verified_by_one_of_them() -> dict[str, list[float]]:
    """By what asks first, the reward, a rollout that filters, or a loop: the verdicts on a step's rollouts, and those given here.

    What the verifier says depends on the process, as a judge or a sandbox under load may.
    """
    found: dict[str, list[float]] = {}
    for name in ("grpo", "dapo", "loop"):
        GIVEN.clear()
        run = Run(untrained(), max_new=3, verify=who())
        recipe = registry.build("dapo" if name == "dapo" else "grpo", {"n": 2})
        ops = Ops(recipe, run, registry.task("arithmetic", test_size=2), RunConfig())
        groups = ops.rollout(ops.problems(4))
        (ops.verdicts if name == "loop" else ops.score)(groups)
        found[name] = [s.value for row in run.verdicts(groups) for s in row]
        found[f"{name}, given"] = list(GIVEN)
    return found


@credit
def by_verdict(a, batch, run):
    (row,) = run.verdicts([[t for t, _ in batch.rows]])
    return torch.tensor([s.value for s in row])[:, None].expand_as(a)


def the_first_alone() -> tuple[list[float], float]:
    """What a credit hears of the verifier, which the reward did not ask; and who makes what a loop wants made once."""
    run = Run(untrained(), max_new=3, verify=who())
    recipe = registry.build("grpo", {"n": 2}).but(reward=length_penalty(), credit=by_verdict())
    ops = Ops(recipe, run, registry.task("arithmetic", test_size=2), RunConfig())
    groups = ops.rollout(ops.problems(2))
    batch = ops.collate(groups, ops.score(groups))
    assert run.verify == who()
    return batch.credit[:, 0].tolist(), ops.once(lambda: float(torch.distributed.get_rank()))


def tokens_of_kto() -> list[int]:
    """The run's token total after each of two steps of KTO, whose credit scores replies with policy and reference on every rank."""
    policy, task = untrained(), registry.task("preferences", test_size=2)
    run = Run(policy, reference=policy.copy("reference"), max_new=8)
    ops = Ops(registry.build("kto", {"problems": 3}), run, task, RunConfig(micro_tokens=64))
    totals = []
    for _ in range(2):
        standard_loop(ops.recipe, run, ops)
        run.step += 1
        ops.bill.settle()
        totals.append(run.tokens)
    return totals


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("two")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # a fork need not import PyTorch again, and is possible as long as this process uses no GPU
    how = "spawn" if torch.cuda.is_initialized() else "fork"
    mp.start_processes(one_of_two, (port, str(out)), nprocs=2, start_method=how)
    return out


def test_two_processes_take_the_steps_of_one(two):
    weights, metrics = trained()
    for rank in range(2):
        other = load_file(two / f"rank{rank}.safetensors")
        assert all(torch.allclose(weights[k], other[k], atol=1e-6) for k in weights)
        found = torch.load(two / f"rank{rank}.metrics")
        assert found.keys() == metrics.keys()
        assert all(found[k] == pytest.approx(metrics[k], abs=1e-4) for k in metrics)


def test_both_see_the_same_rollouts_in_the_order_of_the_problems(two):
    first, second = (torch.load(two / f"rank{r}.rollouts") for r in range(2))
    assert first == second
    assert len(first) == 3
    assert len({str(g) for g in first}) == 3


def test_both_log_what_one_process_would_log(two):
    """The first process has the problems of answers 1 and 4, the second that of 6: a mean over both is one over problems."""
    sampled = {"mean": pytest.approx(11 / 3), "large": 6.0, "answers": 3.0}
    paid = sampled | {"answers": 13.0, "paid": 3.0, "asked": 7.0}
    assert logged() == [sampled, paid] * 2
    assert [torch.load(two / f"rank{rank}.logged") for rank in range(2)] == [[sampled, paid] * 2] * 2


def test_a_process_without_anything_to_learn_from_goes_on_with_the_other(two):
    kept = [torch.load(two / f"rank{rank}.kept") for rank in range(2)]
    assert kept == [(["b?"], "none of 2 is above 9")] * 2
    assert kept_by_one() == (["b?"], "none of 3 is above 9")


def test_a_judge_in_the_rollout_of_either_process_errs_as_that_of_the_reward(two):
    first, second = (torch.load(two / f"rank{rank}.judged") for rank in range(2))
    assert first == second
    assert [tag for _, tag, _ in first] == [str(value) for *_, value in first]
    # and yet both sample for themselves
    assert len({reply for reply, *_ in first}) == 4


def test_both_fill_the_batch_and_go_on_from_the_same_problem(two):
    (keys, position), other = (torch.load(two / f"rank{r}.refilled") for r in range(2))
    assert (keys, position) == other
    assert len(set(keys)) == 4
    assert position > 4


def test_work_that_every_rank_repeats_is_billed_once(two):
    totals = tokens_of_kto()
    assert 0 < totals[0] < totals[1]
    assert torch.load(two / "rank0.tokens") == torch.load(two / "rank1.tokens") == totals


def test_what_processes_may_decide_apart_the_first_decides_for_both(two):
    """And rank zero may evaluate within what it does for all."""
    assert [torch.load(two / f"rank{rank}.decided") for rank in range(2)] == [[{"rank": 0.0}] * 2] * 2


def test_a_rollout_is_verified_by_one_process_and_all_know_what_it_said(two):
    first, second = (torch.load(two / f"rank{rank}.verified") for rank in range(2))
    # GRPO's reward is asked by the first process for all
    assert first["grpo"] == second["grpo"] == first["grpo, given"]
    assert (len(first["grpo"]), second["grpo, given"]) == (8, [])
    assert first["loop"] == second["loop"] == first["loop, given"]
    assert (len(first["loop"]), second["loop, given"]) == (8, [])
    # DAPO's filter asks where a rollout was sampled
    assert first["dapo"] == second["dapo"]
    assert {x >= 10 for x in first["dapo"]} == {False, True}
    assert all(x < 10 for x in first["dapo, given"])
    assert all(x >= 10 for x in second["dapo, given"])


def test_credit_and_loops_may_ask_what_processes_would_hear_otherwise(two):
    (heard, maker), other = (torch.load(two / f"rank{rank}.alone") for rank in range(2))
    assert (heard, maker) == other
    assert len(heard) == 4
    assert max(heard) < 10
    assert maker == 0


def test_who_works_alone_waits_for_nobody_in_passes_of_a_divided_model(monkeypatch):
    def never(operation):
        raise AssertionError("the others would be waited for")

    monkeypatch.setattr(distributed.LOCKSTEP, "joins", [lambda: None])
    monkeypatch.setattr(distributed.LOCKSTEP, "_agreed", never)
    with distributed.alone(), distributed.in_turns():
        pass


def test_the_steps_do_move_the_weights():
    before = untrained().state()
    after, _ = trained()
    assert any(not torch.allclose(before[k], after[k], atol=1e-5) for k in before)


def stopped_by_the_second(rank: int, out: str) -> None:
    """Train; the second of the two processes alone gets SIGTERM, in its third step."""
    problems = [ask(f"Say {i}", i) for i in range(4)]
    task = Task("mine", Signalling(problems) if rank else Endless(problems), (), "exact_match", max_new=4)
    recipe = registry.build("grpo", {"n": 2, "problems": 2}).but(reward=length_penalty())
    with pytest.raises(Stopped, match="stopped by SIGTERM") as stopped:
        train(recipe, untrained(), task, out=Path(out) / "run", steps=50, checkpoint_every=10)
    with pytest.raises(RewardlabError, match="already holds a run of 3 steps"):
        train(recipe, untrained(), task, out=Path(out) / "run", steps=50)
    Path(out, f"rank{rank}.stopped").write_text("; ".join(getattr(stopped.value, "__notes__", [])))


class Endless:
    def __init__(self, problems: list[Problem]):
        self.problems = problems

    def __getitem__(self, i: int) -> Problem:
        return self.problems[i % len(self.problems)]


class Signalling(Endless):
    def __init__(self, problems: list[Problem]):
        super().__init__(problems)
        self.read: set[int] = set()

    def __getitem__(self, i: int) -> Problem:
        # the first time, before training, the lengths of the prompts are looked at
        if i == 5 and i in self.read:
            os.kill(os.getpid(), signal.SIGTERM)
        self.read.add(i)
        return super().__getitem__(i)


def test_a_signal_to_one_of_two_processes_stops_both_after_the_same_step_and_saves_it(two):
    """And what the first process refuses, the second refuses too, in place of waiting for it."""
    first, second = ((two / f"rank{rank}.stopped").read_text() for rank in range(2))
    assert first.startswith("the run is saved up to step 3; resume with: ")
    assert second == ""
    assert (two / "run" / "checkpoints" / "step-000003" / "state.json").exists()
    assert [line["step"] for line in read_metrics(two / "run")] == [0, 1, 2, 3]
