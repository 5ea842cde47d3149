"""Commands that read problems or load a policy share their flags."""

import argparse
import importlib
import shlex

import pytest

from rewardlab.commands import cli
from rewardlab.commands import flags as shared


def flags_of(command: str) -> set[str]:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    cli.module_of(command).flags(parser)
    return set(parser._option_string_actions)


@pytest.mark.parametrize("command", ["train", "compare", "eval", "answer", "search", "audit", "parity", "export-recipe"])
def test_every_command_that_reads_problems_takes_all_flags_about_them(command):
    assert {shared.flag_of(name) for name in shared.DATA} <= flags_of(command)


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        ("train", shared.MODEL),
        ("compare", shared.MODEL),
        ("answer", shared.LOADED),
        ("search", shared.LOADED),
        ("eval", shared.LOADED[1:]),
    ],
)
def test_every_command_that_loads_a_policy_takes_the_flags_about_it(command, fields):
    assert {shared.flag_of(name) for name in fields} <= flags_of(command)


def test_audit_takes_task_for_problems():
    parser = argparse.ArgumentParser()
    importlib.import_module("rewardlab.commands.audit").flags(parser)
    assert parser.parse_args(["math", "--task", "mine.jsonl"]) == parser.parse_args(["math", "--problems", "mine.jsonl"])


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_examples_of_help_are_command_lines_that_the_command_takes(name):
    command = cli.module_of(name)
    examples = [line.strip() for line in command.__doc__.splitlines() if line.strip().startswith(f"rewardlab {name}")]
    for example in examples:
        cli.parse(command, name, shlex.split(example, comments=True)[2:])


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("train grpo --lerning-rate 1e-4", "--lr"),
        ("train grpo --modle x", "--model"),
        ("train grpo --temprature 1", "--temperature"),
        ("train grpo --max-token 5", "--max-new"),
        ("train grpo --seeds 3", "--seed"),
        ("train grpo --batchsize 4", "--problems"),
        ("train grpo --promptcolumn q", "--prompt-column"),
        ("reproduce dr_grpo --seed 3", "--seeds"),
        ("eval embedded:arithmetic --numproblems 4", "--problems"),
        ("scoreboard length --benchmark llmbar", "--on"),
        ("scoreboard length --limits 3", "--limit"),
        ("audit math --second 5", "--seconds"),
        ("data filter x --passrate 0.1:0.9", "--pass-rate"),
        ("search best_of_n --n-sample 3", "--sampler or --n"),
        ("serve math --prot 3", "--port"),
        # it lacks what it needs too, for the same reason
        ("verify math --int x --out y", "--in"),
    ],
)
def test_a_near_miss_of_a_flag_is_told_what_it_is_near_and_nothing_else(line, meant, capsys):
    assert cli.main(shlex.split(line)) == 2
    assert f"did you mean {meant}?" in capsys.readouterr().err


def test_what_is_near_no_flag_is_told_all_flags(capsys):
    assert cli.main(["scoreboard", "length", "--timeout", "3"]) == 2
    assert "'--timeout'; known: --against, --data" in capsys.readouterr().err


def test_a_setting_that_is_a_text_stays_one_where_it_reads_as_json_or_a_number():
    given = {"--pool": '[{"name": "a"}]', "--tell": "7", "--turns": "3"}
    args = argparse.Namespace(settings=given, own_flags={}, reward=None)
    assert shared.method_settings(args, "router_r1") == {"pool": '[{"name": "a"}]', "tell": "7", "turns": 3}
    args.settings = {"--router_r1.pool": "[1]"}
    assert shared.method_settings(args, "grpo", "router_r1") == {"router_r1.pool": "[1]"}
