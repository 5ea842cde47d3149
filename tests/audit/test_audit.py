"""Audits: sound rewards come out clean, weak ones are caught by the right probe, and nothing that a target does lasts."""

from __future__ import annotations

import functools
import json
import time
from pathlib import Path

import pytest
from checkpoints import checkpoint
from here import Here
from served_model import serving

from rewardlab import registry
from rewardlab.audit import audit, audits, conduct
from rewardlab.audit.built_in import KINDS, built_in
from rewardlab.audit.findings import Level, Trial, row_of, visible
from rewardlab.audit.judge import Judge
from rewardlab.audit.levels import Levels, gold_findings
from rewardlab.audit.loading import load, parse
from rewardlab.audit.page import page
from rewardlab.audit.problems import of_task
from rewardlab.audit.process import TargetProcess
from rewardlab.audit.replies import FORMATS, HOSTILE, reply_of
from rewardlab.audit.target import RewardResult, Row
from rewardlab.audit.terminal import show_audit
from rewardlab.commands import cli
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from tests.helpers.tiers import one_in

TARGETS = Path(__file__).parents[2] / "docs" / "audits" / "targets"


def examined(target, **rest):
    return audit.describe(audit.examine(Here(parse(str(target))), **rest), {}, 1.0)


def found(document, *severities):
    return {(f["probe"], f["name"]): f for f in document["findings"] if f["severity"] in (severities or ("fault",))}


pytestmark = pytest.mark.usefixtures("own_cache")


# ---- what is sound, and what is weak ---------------------------------------------------------------------------------


MARKED = {("endings", "not paid"), ("endings", "swapped")}
"""What is told of a reward that reads the last mark of a reply and nothing else."""


def test_a_sound_verifier_comes_out_clean():
    document = examined(f"{TARGETS}/sound.py:sound")
    assert document["verdict"] == "clean"
    # it asks for a mark, which is a convention that costs right replies
    assert found(document, "fault", "warning", "note").keys() == MARKED
    assert document["problems"] == {"numbers": 9, "units": 3, "choice": 4, "text": 4}
    assert not document["unfinished"]


WEAK = {
    "substring": {
        ("trivial", "echo"), ("trivial", "every option"), ("trivial", "mentioned before"), ("trivial", "thought against statement"),
        ("trivial", "withdrawn"), ("changes", "factor of ten"), ("crowds", "a thousand candidates"),
    },
    "last_number": {
        ("trivial", "mentioned after"), ("trivial", "either of two"), ("trivial", "negation"),
        ("changes", "leading dot"),
    },
    "always_one": {("gold", "anywhere"), ("health", "constant")},
    "always_zero": {("gold", "anywhere"), ("health", "constant")},
    "raises": {("health", "error")},
    "by_alarm": {("conduct", "thread")},
    "first_only": {("conduct", "batch"), ("conduct", "order")},
    "by_length": {("bias", "length"), ("hostile", "accepted")},
    "length_alone": {("bias", "length")},
    "not_a_number": {("health", "nan")},
}  # fmt: skip


@pytest.mark.parametrize(("name", "caught"), one_in(4, WEAK.items()))
def test_a_weak_reward_is_caught_by_the_right_probe(name, caught):
    faults = found(examined(f"{TARGETS}/weak.py:{name}"))
    assert caught <= faults.keys()
    assert all(f["failed"] for f in faults.values())
    # each has the flaw that it is named after, and no other one
    assert {probe for probe, _ in faults} <= {probe for probe, _ in caught} | ({"crowds"} if name == "by_length" else set())


@pytest.mark.slow
def test_examples_can_be_played_again(tmp_path):
    document = examined(f"{TARGETS}/weak.py:not_a_number")
    served = Here(parse(f"{TARGETS}/weak.py:not_a_number"))
    examples = [e for f in document["findings"] for e in f["examples"]]
    assert examples
    for example in json.loads(json.dumps(examples)):
        (paid,) = served.ask([row_of(example)])
        assert (paid.kind, paid.value) == (example["came"], example["reward"])


@pytest.mark.slow
def test_an_example_in_a_file_is_played_until_the_reward_is_mended(tmp_path, capsys):
    """What a colleague sends: the exit status says whether the reply is still paid as it was."""
    file, example = tmp_path / "reward.py", tmp_path / "example.json"
    file.write_text("def lenient(completion, answer):\n    return float(answer in completion)\n")
    paid = {"prompt": "What is 2 + 2?", "answer": "4", "response": "It is not 4.", "came": "number", "reward": 1.0}
    example.write_text(json.dumps(paid))
    audited = ["audit", f"{file}:lenient", "--replay", str(example), "--json"]
    assert cli.main(audited) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["unchanged"]
    assert said["now"]["reward"] == 1.0
    # of the same length, within the same second: what was compiled of the file before must not be taken for it
    file.write_text("def lenient(completion, answer):\n    return float(completion == answer)\n")
    assert cli.main(audited) == 0
    assert json.loads(capsys.readouterr().out)["now"]["reward"] == 0.0


@pytest.mark.parametrize("text", ["{", "[]", '{"prompt": "no reply"}'])
def test_a_file_that_holds_no_example_is_refused_by_name(text, tmp_path, capsys):
    (tmp_path / "example.json").write_text(text)
    assert cli.main(["audit", "final_number", "--replay", str(tmp_path / "example.json")]) == 2
    assert "example.json" in capsys.readouterr().err


@pytest.mark.slow
def test_the_reward_of_a_run_is_found_in_its_folder(tmp_path):
    recipe = registry.build("grpo").to_json()
    source = {"name": "arithmetic", "options": {}}
    (tmp_path / "config.json").write_text(json.dumps({"recipe": recipe, "source": source, "task": "arithmetic"}))
    target = load(parse(str(tmp_path)))
    assert target.name
    document = examined(tmp_path, questions=4)
    assert document["problems"]
    assert not found(document)


@pytest.mark.slow
def test_a_reward_that_changes_from_call_to_call(tmp_path):
    file = tmp_path / "reward.py"
    file.write_text(
        "import itertools\ncount = itertools.count()\n\ndef restless(completion, answer):\n"
        "    return float(answer in completion) + 1e-3 * (next(count) % 7)\n"
    )
    assert ("conduct", "repeat") in found(examined(f"{file}:restless"))


@pytest.mark.slow
def test_a_reward_of_form_is_not_blamed_for_not_knowing_answers(tmp_path):
    file = tmp_path / "reward.py"
    file.write_text(
        "def thinks(completions, **columns):\n"
        "    return [float(c[0]['content'].startswith('<think>') and '</think>' in c[0]['content']) for c in completions]\n\n"
        "def short(completion_ids, **columns):\n    return [-min(len(ids), 1000) / 1000 for ids in completion_ids]\n"
    )
    thinks, short = examined(f"{file}:thinks"), examined(f"{file}:short")
    assert (thinks["verdict"], thinks["judges"], thinks["handed_over_as"]) == ("clean", "form", "messages")
    assert (short["verdict"], short["judges"]) == ("clean", "form")
    assert found(short, "note").keys() >= {("bias", "length"), ("trivial", "full pay")}


SIGNATURES = """
import sys
sys.path.insert(0, "TARGETS")
from sound import sound
from rewardlab.verifiers.contract import Verdict, verifier
from rewardlab.rewards.reward import reward

def trl(prompts, completions, **columns):
    return [sound(c[-1]["content"], a) for c, a in zip(completions, columns["ground_truth"])]

def verl(data_source, solution_str, ground_truth, extra_info):
    return {"score": sound(solution_str, ground_truth)}

def made(by=1.0):
    def inner(completion, label):
        return by * sound(completion, label) - 3
    return inner

@reward
def part(trajectory, *, by=2.0):
    return by * sound(trajectory.reply, trajectory.problem.answer)

@verifier
def verdict(response, answer):
    return Verdict(bool(sound(response, answer)))
"""


@pytest.mark.slow
def test_signatures_of_trl_verl_and_rewardlab(tmp_path):
    file = tmp_path / "reward.py"
    file.write_text(SIGNATURES.replace("TARGETS", str(TARGETS)))
    for name in ("trl", "verl", "made(by=0.1)", "part", "verdict"):
        document = audit.describe(audit.examine(Here(parse(f"{file}:{name}")), kind="numbers"), {}, 1.0)
        assert found(document, "fault", "warning").keys() == MARKED, name
        assert document["problems"] == {"numbers": 9}
        assert document["handed_over_as"] == ("messages" if name == "trl" else "text")


@pytest.mark.slow
def test_the_users_own_problems(tmp_path):
    rows = [{"q": f"What is {n} plus 3?", "gold": f"We add. #### {n + 3}"} for n in range(11, 41)]
    rows += [{"q": "And what is it in words?", "gold": "forty"}]
    file = tmp_path / "problems.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    task = registry.task(str(file), prompt_column="q", answer_column="gold")
    items = of_task(task)
    assert len(items) == 31
    document = examined("final_number", items=items, questions=4)
    # a gold answer that no reply can meet is a fault of data or reward, and named
    (example,) = found(document)["gold", "every question"]["examples"]
    assert example["prompt"] == "And what is it in words?"
    asked = {f["name"]: f["of"] for f in document["findings"] if f["probe"] == "gold"}
    assert asked["every question"] == 31
    assert sorted(asked.values())[0] <= 4


def test_answers_that_are_no_text_need_a_right_reply(tmp_path):
    file = tmp_path / "problems.jsonl"
    rows = [{"prompt": f"Task {n}", "answer": {"tests": "assert True"}} for n in range(3)]
    file.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(RewardlabError, match="canonical_solution"):
        of_task(registry.task(str(file)))
    file.write_text("\n".join(json.dumps(row | {"canonical_solution": f"def f(): return {i}"}) for i, row in enumerate(rows)))
    assert {item.gold for item in of_task(registry.task(str(file)))} == {f"def f(): return {i}" for i in range(3)}


def items_of(tmp_path, rows, **columns):
    file = tmp_path / "problems.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    return of_task(registry.task(str(file), **columns))


def test_the_users_own_queries_are_right_replies(tmp_path):
    shop = "CREATE TABLE shop (item TEXT, price INTEGER); INSERT INTO shop VALUES ('tea', 4), ('milk', 2), ('salt', 1)"
    # of four queries two return the same rows
    queries = [f"SELECT item FROM shop WHERE price > {n}" for n in (1, 2, 3)] + ["SELECT price FROM shop"]
    beside = items_of(tmp_path, [{"prompt": q[7:], "answer": q, "database": shop} for q in queries])
    within = items_of(tmp_path, [{"prompt": q[7:], "answer": {"query": q, "database": shop}} for q in queries])
    for items in (beside, within):
        assert {item.kind for item in items} == {"sql"}
        assert found(examined("sql", items=items, questions=4)) == {}


def test_tests_in_words_need_a_right_reply(tmp_path):
    rows = [{"prompt": f"Task {n}", "test": f"def test_a():\n    assert f() == {n}"} for n in range(3)]
    with pytest.raises(RewardlabError, match="is a text of tests, so no right reply"):
        items_of(tmp_path, rows, answer_column="test")
    items = items_of(tmp_path, [row | {"solution": f"def f(): return {n}"} for n, row in enumerate(rows)], answer_column="test")
    assert {(item.kind, item.gold) for item in items} == {("replies", f"def f(): return {n}") for n in range(3)}
    # of an answer that can be stated, a solution is no reply
    stated = items_of(tmp_path, [{"prompt": "2+2", "answer": "4", "solution": "2+2=4"}, {"prompt": "a", "answer": "b"}])
    assert {item.gold for item in stated} == {"4", "b"}
    words = items_of(tmp_path, [{"prompt": "a", "answer": "With great care"}, {"prompt": "b", "answer": "select all"}])
    assert {item.kind for item in words} == {"text"}


@pytest.mark.parametrize("kind", KINDS)
def test_our_own_questions_are_what_they_say(kind):
    items = built_in(kind)
    assert len(items) >= 3
    for item in items:
        assert item.gold != item.far
        assert item.gold not in [text for _, text in item.near]
        if kind == "numbers":
            value = registry.part("reward", "final_number")
            replies = [(fmt.write(item, text), item.answer) for fmt in FORMATS[:3] for text in (item.gold, item.far)]
            assert [found.correct for found in value.check_all(replies)] == [True, False] * 3
            assert not any(found.correct for found in value.check_all([(text, item.answer) for _, text in item.near]))
        if kind == "boolean":
            replies = [item.gold, item.far, *(text for _, text in item.near)]
            judged = registry.part("reward", "boolean_query").check_all([(text, item.answer) for text in replies])
            assert [found.correct for found in judged] == [True] + [False] * (len(replies) - 1)
            # what is wrong can be read: it finds too much, too little or something else
            assert all(found.parts["valid"] for found in judged)


# ---- targets that do not come back -----------------------------------------------------------------------------------

TROUBLE = '''
import os, re, sys, time

def trouble(completion, answer):
    """Sound, but for what single replies do to it."""
    if completion == "":
        os._exit(3)
    if completion == ":":
        while True:
            time.sleep(0.01)
    if completion == " \\n":
        hoard = b"x" * (1 << 50)
    if completion.startswith("Thought"):
        sys.exit(0)
    print("a library that talks", flush=True)
    found = re.findall(r"answer is (.+)[.]", completion)
    return float(bool(found) and found[-1] == answer)

def endless(completion, answer):
    while True:
        pass

broken = {}["missing"] if os.environ.get("BREAK") else None
'''


@pytest.fixture
def trouble(tmp_path):
    file = tmp_path / "trouble.py"
    file.write_text(TROUBLE)
    return file


@pytest.mark.slow
def test_a_target_that_hangs_exits_and_hoards_is_survived(trouble, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    target = f"{trouble}:trouble"
    line = [target, "--kind", "numbers", "--limit", "0.5", "--out", str(tmp_path / "report.html")]
    assert cli.main(["audit", *line, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    faults = found(document)
    assert {name for probe, name in faults if probe == "health"} == {"hang", "crash", "error"}
    assert faults["health", "crash"]["examples"][0]["response"] == ""
    assert "sys.exit(0)" in " ".join(e["why"] for e in faults["health", "error"]["examples"])
    # what went wrong with single replies hides nothing of the rest
    assert not document["given_up"]
    assert {f["name"] for f in document["findings"] if f["probe"] == "changes"} >= {"sign", "last digit", "off by one"}
    hung = faults["health", "hang"]["examples"][0]["id"]
    assert cli.main(["audit", target, "--limit", "0.5", "--replay", hung]) == 1
    assert "it hung" in capsys.readouterr().out
    assert "<title>Audit of " in (tmp_path / "report.html").read_text()


def test_an_audit_ends_whatever_the_target_does(trouble):
    begun = time.monotonic()
    document = audits.audit_target(parse(f"{trouble}:endless"), "endless", budget=30.0, limit=0.3)
    assert time.monotonic() - begun < 33.0
    assert ("health", "hang") in found(document)
    assert document["unfinished"]


@pytest.mark.slow
def test_the_budget_begins_when_the_target_is_loaded_and_it_is_not_loaded_twice(tmp_path, capsys):
    """It has a thread, so that it cannot be forked, and to load it again would take more time than is left."""
    (tmp_path / "slow.py").write_text(
        "import threading, time\ntime.sleep(2.5)\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n\n"
        "def reward(completion, answer):\n    time.sleep(0.02)\n    return float(completion == answer)\n"
    )
    document = audits.audit_target(parse(f"{tmp_path / 'slow.py'}:reward"), "slow", kind=KINDS[0], budget=2.0, limit=1.0)
    assert document["loading"] > 2.5
    assert document["seconds"] < 2.0 + 2.0
    assert not document["given_up"]
    # which probes it gets to is a matter of how busy the machine is
    assert document["unfinished"]
    show_audit(document)
    assert f"loaded in {document['loading']:.0f} s, and audited for" in capsys.readouterr().out


def test_a_reward_model_is_loaded_before_the_first_call(tmp_path):
    checkpoint(tmp_path, tokenizer(), "LlamaForSequenceClassification", num_labels=1)
    assert load(parse(f"model:{tmp_path}")).run.models.keys() == {f"model:{tmp_path}"}


def test_trained_models_are_named_by_folders_of_where_one_is(tmp_path, monkeypatch):
    """`model:rm` is the folder rm, and no function rm of a module model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rm").mkdir()
    assert parse("model:rm")["settings"] == {"model": f"model:{tmp_path}/rm"}
    found = parse("prm:rm")
    assert (found["name"], found["settings"]) == ("prm_score", {"model": f"prm:{tmp_path}/rm"})
    with pytest.raises(RewardlabError, match="unknown model 'nothing'"):
        load(parse("prm:nothing"))


def test_the_process_is_gone_and_so_is_what_it_started(tmp_path):
    file = tmp_path / "reward.py"
    file.write_text(
        "import subprocess\n\ndef reward(completion, answer):\n"
        f"    child = subprocess.Popen(['sleep', '100'])\n    open({str(tmp_path / 'pids')!r}, 'a').write(f'{{child.pid}} ')\n"
        "    return 1.0\n"
    )
    with TargetProcess(parse(f"{file}:reward"), 5.0, 20) as served:
        (paid,) = served.ask([Row("", "1", "1", {})])
        assert paid.value == 1.0
        mine = served.child.process.pid
    for pid in (mine, *map(int, (tmp_path / "pids").read_text().split())):
        end = time.monotonic() + 5
        while alive(pid) and time.monotonic() < end:
            time.sleep(0.02)
        assert not alive(pid)


def alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_reward", "unknown reward part 'no_such_reward'"),
        ("no/such/file.py:f", "there is no reward file"),
        ("rewardlab.core:no_such", "unknown function in rewardlab.core:"),
        ("final_number(1)", "settings are given by name"),
        ("math(strictness=1)", "unknown hyperparameter of math"),
    ],
)
def test_a_target_that_is_not_there_could_not_be_run(target, message, capsys):
    assert cli.main(["audit", target]) == 2
    assert message in capsys.readouterr().err


# ---- judges ----------------------------------------------------------------------------------------------------------


SWAYED = "highest score"
"""Words in a reply that a judge who can be swayed gives the highest score for."""


def bench(body: dict, swayed: bool = False) -> str:
    """A small judge, which reads what is asked."""
    asked = body["messages"][0]["content"]
    gold = asked.partition("[Right answer]\n")[2].partition("\n")[0]
    reply = asked.partition("[Reply]\n")[2].rpartition("\n[End of the reply]")[0]
    stated = [line.rpartition("answer is ")[2].rstrip(". ") for line in reply.splitlines() if "answer is " in line]
    score = 10 if stated[-1:] == [gold] or (swayed and SWAYED in reply) else 1
    return f"I looked at all 7 steps. Score: [[{score}]]"


@pytest.fixture(scope="module")
def judge():
    with serving(bench) as server:
        yield server


def judged(server):
    served = Here(parse(server.url, {"concurrency": 8, "seconds": 5.0}))
    return audit.describe(audit.examine(served, built_in("numbers")[:3]), {}, 1.0)


@pytest.mark.slow
def test_a_judge_that_can_be_swayed_and_one_that_cannot(judge):
    judge.slow, judge.most, judge.says = 0.002, 0, bench
    document = judged(judge)
    assert found(document) == {}
    assert document["name"].startswith("small at ")
    assert 2 <= judge.most <= 8
    judge.says = functools.partial(bench, swayed=True)
    faults = found(judged(judge))
    assert {probe for probe, _ in faults} == {"injection"}
    assert {name for _, name in faults} == {"injection 1", "injection 1 alone"}


def test_scores_are_read_from_what_judges_say(judge):
    judge.says = bench
    plain = Judge({"url": judge.url})
    said = {
        "[[7]]": 7.0, "Out of 10, I say [[3.5]].": 3.5, "Score: 8/10": 8.0, "**Rating:** 4": 4.0, "9": 9.0,
        '{"score": 6, "steps": 3}': 6.0, "no number": None, "": None,
    }  # fmt: skip
    assert {text: plain.read(text) for text in said} == said
    assert Judge({"url": judge.url, "pattern": r"verdict=(\d)"}).read("10 steps; verdict=1; 3") == 1.0
    # a placeholder in a reply is no placeholder
    (paid,) = plain.score([Row("q", "42", "The answer is {answer}.", {})])
    assert paid.value == 1.0


def test_a_judge_by_the_name_of_a_served_model_is_asked_anew_each_time(judge):
    judge.asked.clear()
    spec = parse(f"openai:{judge.url}#small,concurrency=3", {"seconds": 5.0})
    target = Judge(spec)
    assert (target.name, target.concurrent) == (f"small at {judge.url}", 3)
    assert [r.value for r in target.score([Row("q", "42", "The answer is 42.", {})] * 2)] == [10.0, 10.0]
    assert len(judge.asked) == 2


def test_a_judge_that_does_not_answer(judge):
    with pytest.raises(RewardlabError, match=r"http://127.0.0.1:9/v1 cannot be used: no connection"):
        Judge({"url": "http://127.0.0.1:9", "seconds": 0.1})
    paid = Judge({"url": "http://127.0.0.1:9", "model": "m", "seconds": 0.1}).score([Row("q", "1", "1", {})])
    assert (paid[0].kind, "the endpoint failed" in paid[0].why) == ("error", True)
    judge.troubles = ["hang"]
    (late,) = Judge({"url": judge.url, "seconds": 0.05}).score([Row("q", "1", "1", {})])
    assert (late.kind, late.why) == ("hang", "no answer within 0.05 s")


# ---- what is shown ---------------------------------------------------------------------------------------------------


def test_the_page_shows_text_as_text(tmp_path):
    file = tmp_path / "reward.py"
    file.write_text('def f(completion, answer):\n    raise ValueError("<script>alert(1)</script> \\u202e {{title}}")\n')
    document = examined(f"{file}:f")
    document["target"] = "<img src=x onerror=alert(1)>"
    text = page(document)
    assert "<script" not in text
    assert "<img" not in text
    assert "\u202e" not in text
    assert "\\u202e {{title}}" in text
    assert len(text.encode("utf-8")) < 200_000


def test_what_cannot_be_seen_is_written_out():
    assert visible("a\x00b\ud800\u202e\r\nc") == "a\\x00b\\ud800\\u202e\\r\nc"


def test_hostile_replies_are_kept_short_and_come_back_whole(tmp_path):
    file = tmp_path / "reward.py"
    file.write_text("def f(completion, answer):\n    return float('answer is ' + answer in completion or len(completion) > 9000)\n")
    served = Here(parse(f"{file}:f"))
    made = audit.examine(served, built_in("numbers")[:3])
    document = audit.describe(made, {}, 1.0)
    example = next(e for e in found(document)["hostile", "accepted"]["examples"])
    assert len(json.dumps(example)) < 6_000
    assert len(row_of(json.loads(json.dumps(example))).reply) > 90_000
    assert len(HOSTILE) >= 30


def test_speed_is_told_in_calls_and_quantiles():
    tries = [audit.Trial("gold", None, None, None, None, RewardResult("number", 1.0, seconds=s / 1000)) for s in range(1, 102)]
    told = conduct.speed(tries)
    assert (told["calls"], told["max"]) == (101, 0.101)
    assert told["p50"] == pytest.approx(0.051)
    assert told["p99"] == pytest.approx(0.1)
    assert told["per_second"] == pytest.approx(101 / (0.101 * 51))


@pytest.mark.slow
def test_a_clean_audit_in_the_terminal(capsys):
    assert cli.main(["audit", "choice", "--kind", "choice"]) == 0
    assert "no fault found" in capsys.readouterr().out


def test_a_template_that_opens_the_thinking_is_told_of(tmp_path):
    file = tmp_path / "reward.py"
    file.write_text("def thinks(completions, **columns):\n    return [float(c.startswith('<think>')) for c in completions]\n")
    document = examined(f"{file}:thinks")
    assert ("invariances", "<think> in the template") in found(document, "warning")


def test_what_a_reward_is_not_made_for_could_not_be_run():
    with pytest.raises(RewardlabError, match="give some that it is made for"):
        examined("instructions", kind="numbers")


@pytest.mark.parametrize("name", ["function_calls", "citations", "instructions", "boolean_query"])
def test_verifiers_of_whole_replies_come_out_clean(name):
    assert not found(examined(name), "fault")


def test_a_question_that_time_left_half_tried_is_not_called_refused():
    """The first question is tried whole; of the second, where the time ended, only a format that the reward does not read."""
    first, second = built_in("numbers")[:2]
    read, other = FORMATS[:2]

    def gold(item, fmt, *values):
        replies = (fmt.write(item, item.gold), fmt.write(item, item.far))
        results = [None if value is None else RewardResult("number", value) for value in values]
        return [Trial("gold", item, fmt, reply_of(fmt.name, t), result=r) for t, r in zip(replies, results, strict=True)]

    trials = [
        *gold(first, read, 1.0, 0.0),
        *gold(first, other, 0.0, 0.0),
        *gold(second, other, 0.0, 0.0),
        *gold(second, read, 1.0, None),
    ]
    measured = {(id(first), read.name): Level(0.0, 1.0)}
    levels = Levels([first, second], [first, second], trials, measured, formats={"numbers": [read]})
    (whole, *_) = gold_findings(levels, must_judge=True, users=True)
    assert (whole.severity, whole.failed, whole.of) == ("ok", 0, 1)
