"""The command line, as people and scripts meet it."""

import argparse
import errno
import inspect
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rewardlab.commands import bench, bills, cli, train
from rewardlab.engine import distributed
from rewardlab.errors import RewardlabError, Stopped
from rewardlab.registry import catalogue, details
from rewardlab.runs.config import RunConfig
from rewardlab.util.ranks import refuse_together

NOISY = '''"""Noisy: says something while it is imported."""
from rewardlab.core import Recipe
print("hello from a library")

def noisy(base=None, *, strength=1.0):
    return (base or Recipe(name="noisy")).but(lr=strength)

claim = None
'''
STOPPED = NOISY.replace("noisy", "interrupted").replace(
    'print("hello from a library")', "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
)


def rewardlab(*argv: str, **env: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "rewardlab", *argv]
    return subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)


@pytest.fixture
def methods(tmp_path):
    folder = tmp_path / "methods" / "command_line"
    folder.mkdir(parents=True)
    (folder / "noisy.py").write_text(NOISY)
    return folder.parent


TRAIN = "train grpo --task arithmetic"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("trian", "unknown command 'trian'; did you mean train?"),
        ("list --jsn", "unknown flag of list '--jsn'; did you mean --json?"),
        ("list --folder baseline", "unknown folder 'baseline'; did you mean baselines"),
        ("show grop", "unknown method 'grop'; did you mean grpo"),
        ("show GRPO", "unknown method 'GRPO'; did you mean grpo"),
        ("show grpo,hapo", "'grpo,hapo' is not one method; methods are stacked with a plus: grpo+hapo"),
        ("show grpo+", "'grpo+' lacks the name of a method beside a +"),
        ("show grpo hapo", "unexpected 'hapo'; a text with spaces needs quotes, and methods are stacked with a plus"),
        ("grpo --task arithmetic", "grpo is a method, not a command: rewardlab train grpo --task arithmetic"),
        (f"{TRAIN} -n 4", "unknown flag '-n'; flags have two dashes: --n"),
        (f"{TRAIN} --lr", "--lr needs a value"),
        (f"{TRAIN} --learning-rate 1e-4", "unknown flag of grpo '--learning-rate'; did you mean --lr?"),
        (f"{TRAIN} --retriever http://localhost:8000", "unknown flag of grpo '--retriever'; did you mean --corpus?"),
        (f"{TRAIN} --num_generations 8", "unknown flag of grpo '--num_generations'; did you mean --n?"),
        (f"{TRAIN} --steps 1.5", "steps must be a whole number above 0, not 1.5"),
        ("show", "the following arguments are required: METHOD (see rewardlab show --help)"),
        ("train --task arithmetic", "which method?"),
        ("train grpo", "which task? give --task NAME (known: ambiguous,"),
        ("train grpo --task aritmetic", "unknown task 'aritmetic'; did you mean arithmetic"),
        (f"{TRAIN} --stepps 3", "unknown flag of grpo '--stepps'; did you mean --steps"),
        (f"{TRAIN} --beat 3", "did you mean --beta"),
        ("audit correct --most 3", "unknown flag of audit '--most'; did you mean --questions?"),
        ("data ramp a.jsonl --out b.jsonl --most 3", "unknown flag of data ramp '--most'; it is called --max-masks now"),
        (f"{TRAIN.replace('grpo', 'v0_5')} --most 3", "unknown flag of v0_5 '--most'; it is called --max-n now"),
        (f"{TRAIN} --steps -3", "steps must be a whole number above 0, not -3"),
        (f"{TRAIN} --n many", "n of grpo must be a whole number above 0, not 'many'"),
        (f"{TRAIN} --reward none.py:f", "there is no reward file none.py"),
        (f"{TRAIN} --reward corect", "did you mean correct"),
        ("train grpo --resume runs/x --n 9", "from the run's config.json; drop grpo, --n"),
        (
            "train --resume runs/x --steps 9 --seed 1",
            "--resume takes all but --steps, --budget, --device, --sampler",
        ),
        ("train grpo --task arithmetic --reward-changed", "--reward-changed is for --resume DIR"),
        ("eval embedded --task arithmetic --k 1,no", "k must be a whole number above 0, not 'no'"),
        ("answer grpo", "nothing to answer: give --task, --test or --prompt, or a run as --model"),
        ("report no/such/run", "there is no run in no/such/run"),
        ("bench no-such", "unknown benchmark 'no-such'"),
    ],
)
def test_a_mistake_is_one_clear_line(line, message, capsys):
    assert cli.main(line.split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("rewardlab: ")
    assert message in said.err
    assert said.err.count("\n") == 1


def test_a_mistake_ends_the_process_with_code_2_and_debug_shows_where():
    plain = rewardlab("show", "grop")
    assert (plain.returncode, plain.stdout, plain.stderr.count("\n")) == (2, "", 1)
    debug = rewardlab("--debug", "show", "grop")
    assert debug.returncode != 0
    assert "Traceback" in debug.stderr


@pytest.mark.parametrize("line", ["compare grpo rloo --task arithmetic", "eval x --task arithmetic", "data decontaminate a b"])
def test_a_command_that_processes_do_not_share_is_refused_where_several_were_started(line, monkeypatch, capsys):
    together = {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    for name, value in together.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cli, "find", lambda argv: (None, argv[0], []))
    monkeypatch.setattr(cli, "parse", lambda *given: argparse.Namespace(json=False))
    assert cli.main(line.split()) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"rewardlab: rewardlab {line.split()[0]} is the work of one process, and 2 were started together")
    # what a scheduler leaves in the environment of a process that it starts alone
    monkeypatch.delenv("RANK")
    refuse_together("eval")


def test_what_served_models_were_asked_is_told_of_all_processes(monkeypatch):
    own = [{"model": "a", "requests": 3, "cached": 0, "cost": 0.5}]
    others = [{"model": "b", "requests": 1, "cached": 2, "cost": 0.0}, {"model": "a", "requests": 4, "cached": 1, "cost": 0.25}]
    monkeypatch.setattr(bills, "spent", lambda: {usage["model"]: usage for usage in own})
    monkeypatch.setattr(distributed, "all_gather", lambda asked: [asked, others])
    assert bills.since({}) == [{"model": "a", "requests": 7, "cached": 1, "cost": 0.75}, others[0]]


def test_our_own_mistake_is_one_line_too(monkeypatch, capsys):
    monkeypatch.setattr(details, "details", lambda name: 1 / 0)
    assert cli.main(["show", "grpo"]) == 1
    assert capsys.readouterr().err == "rewardlab: ZeroDivisionError: division by zero (--debug shows where)\n"


def test_what_is_said_in_lines_stays_in_lines():
    told = cli.explain(RewardlabError("rows lack columns:\n  steps:  a list of texts\n\n  label: 0 or 1\n"))
    assert told == ("rows lack columns:\nsteps: a list of texts\nlabel: 0 or 1", 2)


@pytest.mark.parametrize(
    ("number", "path", "message", "exit_code"),
    [
        (errno.ENOSPC, "runs/x/metrics.jsonl", "runs/x/metrics.jsonl: the disk is full; free some space", 1),
        (errno.ENOSPC, None, "the disk is full; free some space", 1),
        (errno.EROFS, "/cd/.best.12.tmp", "/cd/best: the file system is read-only; choose another place", 2),
        (errno.EACCES, "/root/x", "/root/x: permission denied; choose another place, or get the right to use this one", 2),
        (errno.ENOTDIR, "a.txt/x", "a.txt/x: a part of this path is a file, not a folder; choose another place", 2),
        (errno.ENOENT, "a.txt", "a.txt: there is no such file or folder", 2),
        (errno.ECONNREFUSED, None, "[Errno 111] Connection refused", 1),
    ],
)
def test_an_error_of_the_system_is_a_sentence_with_its_path(number, path, message, exit_code):
    assert cli.explain(OSError(number, os.strerror(number), path)) == (message, exit_code)


def test_a_reader_that_leaves_is_no_error():
    command = [sys.executable, "-m", "rewardlab", "list", "--json"]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writer.stdout
    writer.stdout.close()
    assert writer.communicate()[1] == b""
    assert writer.returncode == 1


def test_what_an_error_was_told_on_its_way_is_said_too():
    stop, broken = Stopped(signal.SIGTERM), ValueError("no")
    for problem in (stop, broken):
        problem.add_note("resume with:\n  this")
    assert cli.stopped(stop) == "stopped; resume with: this"
    assert cli.explain(broken) == ("ValueError: no (--debug shows where); resume with: this", 1)
    assert cli.stopped(KeyboardInterrupt()) == "stopped"


@pytest.mark.parametrize("argv", [["list"], ["list", "--json"]])
def test_list_answers_at_once_without_torch(argv):
    """In processor time, which other tests that run beside this one do not lengthen."""
    code = f"import sys; from rewardlab.commands.cli import main; main({argv!r}); sys.exit('torch' in sys.modules)"
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert statistics.median(seconds) < 0.5


def test_list_has_the_promised_columns():
    rows = json.loads(rewardlab("list", "--json").stdout)
    assert {"grpo", "sft", "ppo"} <= {row["name"] for row in rows}
    columns = [
        "name",
        "folder",
        "system",
        "kind",
        "reference",
        "baseline",
        "claim",
        "shows",
        "verdict",
        "fidelity",
        "left_out",
        "idea",
        "leagues",
    ]
    assert all(list(row) == columns for row in rows)
    grpo = next(row for row in rows if row["name"] == "grpo")
    assert (grpo["folder"], grpo["system"]) == ("baselines", None)
    assert grpo["reference"] == "Shao et al. 2024, arXiv:2402.03300"


def test_json_is_one_document_whatever_libraries_print(methods):
    done = rewardlab("show", "noisy", "--json", REWARDLAB_METHODS=str(methods))
    assert json.loads(done.stdout)["idea"] == "says something while it is imported."
    assert "hello from a library" in done.stderr


def test_json_has_no_nan_and_plain_numbers():
    document = {"a": float("nan"), "b": np.float32(0.5), "c": np.arange(2), "d": Path("x"), "e": [float("inf")]}
    assert json.loads(cli.as_json(document)) == {"a": None, "b": 0.5, "c": [0, 1], "d": "x", "e": [None]}


def test_an_exported_environment_is_installed_from_its_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["export-env", "arithmetic", "--out", "lake env", "--rows", "2", "--test-rows", "2"]) == 0
    # a bare name would be looked up in the package index, where it may be anyone's
    assert capsys.readouterr().out.splitlines()[-1] == f"pip install '{tmp_path}/lake env'"


def test_show_tells_what_a_method_is(capsys):
    assert cli.main(["show", "grpo"]) == 0
    said = capsys.readouterr().out
    formula = "center() >> scale_by_std() >> to_go()"
    for piece in ("Formula", formula, "Changes against", "Claim", "--beta", "2402.03300"):
        assert piece in said


def test_alone_it_gives_an_overview(capsys):
    assert cli.main([]) == 0
    said = capsys.readouterr().out
    assert "rewardlab train grpo --task arithmetic" in said
    assert all(f"\n  {name} " in said for name in cli.COMMANDS)


def test_flags_that_are_not_the_commands_own_are_settings():
    own = {"--task": True, "--dry-run": False, "--prompt": True}
    line = "grpo --n 8 --task a --bias -0.5 --dry-run --flag --eps=0.1 --a.by 2 --prompt -1+2"
    words, settings = cli.split(line.split(), own)
    assert words == ["grpo", "--task=a", "--dry-run", "--prompt=-1+2"]
    assert settings == {"--n": "8", "--bias": "-0.5", "--flag": "true", "--eps": "0.1", "--a.by": "2"}


def parsed(line: str) -> argparse.Namespace:
    return cli.parse(train, "train", line.split())


def test_flags_become_the_arguments_of_the_api():
    arguments = train.request(
        parsed("grpo --task arithmetic:difficulty=2 --n 4 --clip_norm 0.5 --steps 7 --seed 3 --out runs/x --max-new 40")
    )
    from rewardlab import api

    inspect.signature(api.train).bind(**arguments)
    inspect.signature(api.plan).bind(**arguments)
    assert str(arguments["recipe"].rollout) == "independent(n=4)"
    assert arguments["recipe"].update.clip_norm == 0.5
    assert arguments["config"] == RunConfig(
        method="grpo", task="arithmetic:difficulty=2", steps=7, seed=3, out=Path("runs/x"), max_new=40
    )


def test_rewards_of_ones_own_replace_the_methods_and_add_up(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def short(completion): return -len(completion)\n")
    recipe = train.request(parsed(f"grpo --task arithmetic --reward {path}:short --reward final_number"))["recipe"]
    assert [part.name for part in recipe.reward.of] == ["from_file", "final_number"]
    assert recipe.reward.of[0].bound == {"path": str(path), "function": "short"}


@pytest.fixture
def benchmarks(tmp_path, monkeypatch):
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    monkeypatch.setattr(catalogue, "repository", lambda: tmp_path)
    row = {"name": "fast-thing", "ratio": 4.2, "ours": 42, "peer": 10, "unit": "tokens/s", "settings": {}}
    fast = f"import sys\nassert sys.argv[1:] == ['--json']\nprint({json.dumps(row)!r})\n"
    (folder / "fast_thing.py").write_text(fast)
    (folder / "broken.py").write_text("raise SystemExit(3)\n")
    (folder / "_shared.py").write_text("raise SystemExit(9)\n")
    return row


def test_bench_runs_what_is_named_in_its_own_process(benchmarks, capsys):
    assert cli.main(["bench", "fast-thing", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [benchmarks]


def test_bench_goes_on_after_a_failure_and_says_so(benchmarks, capsys):
    assert cli.main(["bench", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == [{"name": "broken", "error": "exit code 3"}, benchmarks]
    bench.show([{"name": "broken", "error": "exit code 3"}, benchmarks])
    assert "exit code 3" in capsys.readouterr().out


def test_without_a_checkout_there_is_nothing_to_bench(monkeypatch, capsys):
    monkeypatch.setattr(catalogue, "repository", lambda: None)
    assert cli.main(["bench"]) == 2
    assert "from a checkout" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), pytest.param("SIGTERM", 143, marks=pytest.mark.slow)])
def test_stopping_by_signal_leaves_no_traceback_and_cleans_up(name, code, methods, tmp_path):
    """Before there is a run, as in a warm-up: nothing is left of it, and nothing to resume is promised."""
    (methods / "command_line" / "interrupted.py").write_text(STOPPED.replace("SIGINT", name))
    done = rewardlab("show", "interrupted", REWARDLAB_METHODS=str(methods))
    assert (done.returncode, done.stderr) == (code, "rewardlab: stopped\n")


def test_only_a_flag_lets_code_run_without_isolation(monkeypatch, capsys):
    monkeypatch.setenv("REWARDLAB_UNSAFE_SANDBOX", "")
    assert cli.main(["--version"]) == 0
    assert os.environ["REWARDLAB_UNSAFE_SANDBOX"] == ""
    assert cli.main(["--unsafe-sandbox", "--version"]) == 0
    assert os.environ["REWARDLAB_UNSAFE_SANDBOX"] == "1"


def test_a_report_takes_the_place_of_no_file_of_another_kind(tmp_path, capsys):
    (tmp_path / "run").mkdir()
    (precious := tmp_path / "precious.jsonl").write_text("{}\n")
    for runs in (["run"], ["run", "run"]):
        assert cli.main(["report", *(str(tmp_path / run) for run in runs), "--out", str(precious)]) == 2
        assert "precious.jsonl exists, and would be replaced by an HTML page" in " ".join(capsys.readouterr().err.split())
    assert precious.read_text() == "{}\n"
