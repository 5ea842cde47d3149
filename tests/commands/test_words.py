"""What is wrong with the words of a command line is said before any work begins, in the user's own spelling."""

import json
import sys

import pytest

from rewardlab.commands import cli
from rewardlab.commands.words import LONGEST, printable, shortened


@pytest.fixture
def say(tmp_path, monkeypatch, capsys):
    """Run words that must be refused, in a folder with one run; the one line on stderr."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "config.json").write_text('{"recipe": {}}')
    (tmp_path / "runs" / "mine" / "metrics.jsonl").touch()
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "plan.json").write_text("{}")

    def run(*words):
        assert cli.main(list(words)) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("rewardlab: ")
        assert said.err.count("\n") == 1
        return said.err

    return run


EMPTY = [
    *[("train", "grpo", "--task", "arithmetic", flag, "") for flag in ("--out", "--model", "--reward", "--test", "--track")],
    ("train", "--resume="), ("list", "--folder", ""), ("train", "grpo", "--task", " "), ("answer", "majority_vote", "--prompt", ""),
    ("compare", "grpo", "rloo", "--out", ""), ("verify", "math", "--in", "", "--out", "x"),
]  # fmt: skip


@pytest.mark.parametrize("words", EMPTY, ids=" ".join)
def test_an_empty_text_is_refused_by_the_name_of_its_flag(words, say, tmp_path):
    flag = [word for word in words if word[:2] == "--" and word != "--task"][-1:] or ["--task"]
    assert f"{flag[0].rstrip('=')} needs a value" in say(*words) or words[:2] == ("verify", "math")
    assert not list(tmp_path.glob("*.jsonl"))


@pytest.mark.parametrize(
    ("words", "name"), [(("eval", ""), "MODEL_OR_RUN"), (("export", "runs/mine", ""), "DIR"), (("show", ""), "METHOD")]
)
def test_an_empty_argument_is_refused_by_its_name(words, name, say):
    assert f"{name} is an empty text" in say(*words)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("eval runs/mien", "there is no folder runs/mien; did you mean runs/mine?"),
        ("eval runs/mien --task arithmetic", "there is no folder runs/mien; did you mean runs/mine?"),
        ("eval runs/*", "there is no folder runs/*, and * and ? stand for nothing here"),
        ("eval runs/mine/metrics.jsonl", "runs/mine/metrics.jsonl is a file of the run runs/mine: give runs/mine"),
        ("answer majority_vote --model runs/mien", "there is no folder runs/mien"),
        ("train --resume nowhere", "there is no folder nowhere"),
        ("train --resume both", "both is not a run folder but a comparison"),
        ("export runs/mien out", "there is no folder runs/mien; did you mean runs/mine?"),
        ("compare --resume runs/mine", "runs/mine is a run, not a comparison"),
        ("compare --resume nowhere", "nowhere does not exist; give the folder that `rewardlab compare` wrote"),
        ("list --debug=1", "unknown flag of list '--debug'"),
        ("eval embedded --k 1 8", "the values of --k are joined by commas: --k 1,8"),
        ("list foo", "unexpected 'foo'; list takes flags only"),
        ("eval a b", "unexpected 'b'; eval takes MODEL_OR_RUN and flags"),
        ("train grpo —steps 3", "'—steps' begins with a dash that is not a hyphen: write --steps"),
        ("train grpo --data-start -1", "--data-start must be a whole number from 0 up, not -1"),
        ("train grpo --lora_rank 0", "--lora-rank must be a whole number above 0, not 0"),
        ("train grpo --task arithmetic --n 0", "--n of grpo must be a whole number above 0, not 0"),
        ("train grpo --steps 2 --steps 3", "--steps is given twice"),
        ("train grpo --eps_high 2 --eps-high 3", "--eps-high is given twice"),
        ("train grpo --task arithmetic --trl", "--trl needs a value: --trl FIELD=VALUE"),
        ("train grpo --dry-run=false", "--dry-run is a switch and takes no value"),
        ("audit math --limit abc", "--limit must be a number above 0, not 'abc'"),
        ("bench _x", "unknown benchmark '_x'"),
        ("show --n 16 grpo", "unknown flag of show '--n'; known: --help, --json"),
        ("--hlep", "unknown flag '--hlep'; did you mean --help?"),
        ("compare grpo,rloo --task arithmetic", "methods to compare are written with spaces between them: grpo rloo"),
        ("train grpo --task arithmetic:", "nothing after the colon"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_as_it_was_typed(line, message, say):
    assert message in say(*line.split())


def test_debug_shows_where_and_keeps_the_exit_code(capsys):
    assert cli.main(["list", "--debug", "foo"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_json_is_taken_before_the_command_too(capsys):
    assert cli.main(["--json", "list", "--folder", "baselines"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["folder"] == "baselines"


def test_with_json_an_error_is_a_document_too(capsys):
    assert cli.main(["list", "--folder", "nowhere", "--json"]) == 2
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert document["code"] == 2
    assert said.err == f"rewardlab: {document['error']}\n"


def test_a_long_value_is_shortened_in_the_middle():
    said = shortened(f"unknown method '{'x' * 5000}'; known: {'a, ' * 1000}z")
    assert len(said) <= LONGEST
    assert said.startswith("unknown method 'xxx")
    assert said.endswith("a, z")


def test_bytes_that_are_not_text_in_this_locale_are_shown_as_the_text_they_are():
    word = "é".encode().decode("ascii", "surrogateescape")
    assert printable(word) == printable(repr(word))[1:-1] == "é"
    assert printable(b"\xff".decode("utf-8", "surrogateescape")) == "\ufffd"


@pytest.mark.parametrize(
    "line",
    [
        "show grop", "train grop --task arithmetic", "train grpo --task aritmetic", "train grpo --task arithmetic --reward corect",
        "train grpo --task arithmetic --bete 1", "verify mth --in a --out b", "audit nofile.py:f", "audit nosuchmodule:f",
        "audit htp://localhost/v1", "demo --out taken",
    ],
)  # fmt: skip
def test_a_wrong_name_does_not_wait_for_torch(line, tmp_path):
    import subprocess

    (tmp_path / "taken").touch()
    script = (
        "import sys; from rewardlab.commands import cli; code = cli.main(sys.argv[1:]); "
        "sys.exit('torch' in sys.modules or code != 2)"
    )
    done = subprocess.run([sys.executable, "-c", script, *line.split()], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
