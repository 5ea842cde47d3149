"""Endless Terminals: tasks for a shell that a model writes, runs and tests, and plain PPO on those that can be solved.

    a model writes a task with its hidden truth, then files and initial tests, then tests of the final state
    kept:  initial tests pass at the start, final tests fail there, and a strong model passes them in one of k attempts
    R = 1 if all final tests pass after the last command, else 0;    PPO; one command a turn, and what it prints

Environments are the bottleneck, not the algorithm: with enough tasks that are whole, a bare loop of command and output will do. A
task whose tests want what it does not say can only teach noise, and nothing in its text shows that; attempts do.

Gandhi et al. 2026, arXiv:2601.16443, by its abstract and the released code (kanishkg/endless-terminals, 1346de5): generator/ for
the stages and their prompts, o3's pass@16 > 0 as the filter; scripts/train_qwen3b.sh (SkyRL): PPO with GAE and
a critic of its own, 2 epochs a batch, 4 samples a prompt, at most 8 turns, temperature 0.6 (1 here, so that what is sampled is what
is trained). (inferred): our prompts, shorter than theirs; no KL, which that script does not name; lambda and clip range are PPO's.

`rewardlab data terminals TOPICS --model WRITER --solver STRONG --out tasks.jsonl` is the pipeline: each row of TOPICS says what a
task shall be about, and each task that stays has files, setup, tests and `solved` of `attempts`. Rows with tasks that are written
already are validated and attempted alike. Rows never solved are not trained on (`keep`); rows without the column are. Train with
`--verifier final_state`.
"""

from collections.abc import Sequence
from typing import Any

from rewardlab.checks.claim import Check
from rewardlab.core import Environment, Group, Problem, Recipe, Rollout, Run, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import number_of
from rewardlab.envs.terminal import terminal, untold_terminal
from rewardlab.errors import NothingKept
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.rollouts.interactive import in_place_of_replies, interactive
from rewardlab.util.counted import count

TIMES = 20
"""Batches that are looked through for tasks to keep."""


def solvable(problems: Sequence[Problem], column: str) -> list[Problem]:
    """The problems whose `column`, how many attempts solved them, is not 0; those of which nothing is known too."""
    return [p for p in problems if number_of(p.meta.get(column)) != 0]


@rollout(wraps="inner")
def only_solvable(problems: list[Problem], run: Run, *, inner: Rollout, column: str = "solved") -> list[Group]:
    """The groups of `inner` for problems that were solved by someone (`solvable`), further ones of the data in place of the others.

    Logged: skipped, the problems that were passed over.
    """
    kept, seen = solvable(problems, column), len(problems)
    for _ in range(TIMES):
        if len(kept) >= len(problems) or run.more_problems is None:
            break
        more = run.more_problems(len(problems) - len(kept))
        kept, seen = [*kept, *solvable(more, column)], seen + len(more)
    if not kept:
        raise NothingKept(f"of {seen} tasks none was solved in an attempt, by the column {column!r}: rewardlab data terminals")
    count(run, "skipped", seen - len(kept))
    return inner(kept, run)


def endless_terminals(
    base: Recipe | None = None, *, env: Environment | None = None, n: int | None = None, turns: int = 8, keep: str = "solved"
) -> Recipe:
    """env: the terminal; None: that of the base, else ours.  n: episodes of a task; None: the base's.  turns: the most commands.
    keep: the column that says how many attempts solved a task; "": all tasks are trained on.
    """
    base = base or ppo(n=4, beta=0.0, epochs=2)
    if env is not None or not base.sampling_settings.get("env"):
        play: dict[str, Any] = {"env": env or terminal(), "turns": turns}
        episodes = in_place_of_replies(base.required("rollout"), n=n, **play)
        base = base.but(rollout=episodes, measure=episode_accuracy(rollout=interactive(n=1, **play)))
    return base.but(rollout=only_solvable(inner=base.rollout, column=keep) if keep else base.rollout)


fidelity = "core"
left_out = (
    "containers of a distribution, with services, packages and a user's home: a task is a folder in the sandbox, with the programs "
    "of this machine and no network; the 3255 released tasks, whose tests name absolute paths of such containers; and that the "
    "container's definition is written again, up to five times, until the initial tests pass"
)

data = Data(
    files=Column("names of the files at the start, with their texts", optional=True),
    setup=Column("commands that are run before the episode", optional=True),
    tests="tests of the final state: a Python program of asserts, run in the folder, or a list of commands that must exit with 0",
    solved=Column("how many attempts of a strong model solved it; tasks with 0 are passed over", optional=True, setting="column"),
    answer=Column("not read", optional=True),
    verified_by="final_state",
    rows=[
        {
            "prompt": "The file sales.csv has lines of region,amount. Write the total of the north into north.txt.",
            "files": {"sales.csv": "north,10\nsouth,5\nnorth,7\n"},
            "tests": "assert int(open('north.txt').read()) == 17\nassert open('sales.csv').read().count('\\n') == 3",
            "solved": 5,
        },
        {
            "prompt": "run.sh does not start, something about permissions I think. Make it start by ./run.sh.",
            "files": {"run.sh": "#!/bin/bash\necho started\n", "notes/todo.txt": "ask about run.sh\n"},
            "tests": ["test -x run.sh", "./run.sh | grep -q started"],
        },
        {
            "prompt": "Put all .log files under logs into one archive logs.tar.gz and remove them.",
            "files": {"logs/a.log": "one\n", "logs/old/b.log": "two\n"},
            "setup": ["touch logs/keep.txt"],
            "tests": ["tar tzf logs.tar.gz | grep -q b.log", "test -f logs/keep.txt", "test -z \"$(find logs -name '*.log')\""],
            "solved": 2,
        },
    ],
)

check = Check(
    says="after equal updates more held-out tasks are solved where unsolvable ones, which the world names, were passed over",
    versus="endless_terminals", task="terminals:broken=0.6", measure="pass@1", direction="higher", margin=0.05,
    settings={"env": untold_terminal(), "turns": 2, "n": 1, "problems": 32},
    versus_settings={"env": untold_terminal(), "turns": 2, "n": 1, "problems": 32, "keep": ""},
    problems=100, steps=12,
    tried="one run of two development seeds: 0.87 against 0.75, and 0.91 against 0.66. A run before it, in a world with fewer "
    "names, broke off at a number of one side alone (`moved`), which is gone, and told nothing; the held-out tasks were 200 then",
    finding="where three fifths of the tasks cannot be solved, 12 steps on the others alone lead from 57% of held-out tasks "
    "solved to 73%, on all of them to 70%, and seeds differ by more: two for development had differed by 18 points. "
    "Which tasks those are the world says; that attempts find it out is not tested here",
)  # fmt: skip
baseline = "ppo"
