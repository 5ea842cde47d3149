"""The reward server: three protocols, answers that are the reward's own, limits, and workers that hang or die."""

import base64
import concurrent.futures
import contextlib
import importlib.util
import json
import math
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from listening import get, listening, post

from rewardlab.commands import cli
from rewardlab.core import Message, Problem, Run, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from rewardlab.prm import load_scorer
from rewardlab.processes.pool import Done
from rewardlab.registry.formula import read_reward
from rewardlab.servers.limits import Limits
from rewardlab.servers.pool import Pool
from rewardlab.servers.rewards import RewardServer
from rewardlab.servers.scoring import Scorer
from rewardlab.servers.serve_rewards import SCORER
from rewardlab.verifiers.contract import REPLY
from tests.helpers.checkpoints import checkpoint

MINE = '''
import os, time

def score(completion, answer, **columns):
    """What the reply says is what becomes of it."""
    if "hang" in completion:
        time.sleep(3600)
    if "die" in completion:
        os._exit(7)
    if "nothing" in completion:
        return None
    if "nan" in completion:
        return float("nan")
    if "raise" in completion:
        raise ValueError("as the reply says")
    if "slow" in completion:
        time.sleep(0.6)
    return len(completion) + columns.get("bonus", 0) + (answer == "x")

def rank(group, completions):
    """0 for the shortest reply of a prompt, 1 for the next ..."""
    return [float(sorted(completions, key=len).index(c)) for c in completions]
'''
SECONDS = 2.0


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    path = tmp_path_factory.mktemp("mine") / "mine.py"
    path.write_text(MINE)
    return str(path)


def made(rewards, workers=1, most=4096, limits=None, batch=64, **more) -> RewardServer:
    pool = Pool(SCORER, {"rewards": rewards, **more}, workers=workers, seconds=SECONDS, most=most)
    return RewardServer(pool, pool.start(), limits or Limits(1 << 20, seconds=0.5), batch)


@pytest.fixture(scope="module")
def server(mine):
    served = made([f"{mine}:score"], workers=2)
    with listening(served.app()) as url:
        served.url = url
        yield served
    served.pool.close()


def row(response, answer=None, **more):
    return {"prompt": "q?", "response": response, "answer": answer, **more}


# ---- what is answered ------------------------------------------------------------------------------------------------


def test_a_row_gets_what_the_reward_pays(server):
    answer = post(f"{server.url}/score", row("four", "x", meta={"bonus": 10}))
    assert answer.status == 200
    terms = {"score": {"value": 15.0, "weight": 1.0, "steps": []}}
    assert answer.document == {"score": 15.0, "steps": [], "terms": terms, "why": "", "extracted": ""}


@pytest.mark.slow
def test_a_formula_is_scored_with_its_terms_and_steps_as_in_training(mine):
    formula = f'final_number() + 0.5 * correct_steps() - 0.1 * length_penalty(per_token=0.25).named("long") + "{mine}:rank"'
    replies = ["7+5=12\nAnswer: 12", "7+5=13\nAnswer: 13", "nothing at all"]
    meta = {"steps": ["7+5=12"]}
    first, *rest = (row(reply, "12", meta=meta) for reply in replies)
    served = made([formula])
    try:
        with listening(served.app()) as url:
            # rank compares the replies to one prompt, however they lie among others
            rows = [first, {**row("another", "3", meta=meta), "prompt": "p?"}, *rest]
            first, other, *rest = post(f"{url}/score", {"rows": rows}).document["scores"]
    finally:
        served.pool.close()
    (scores,) = read_reward(formula)([[trajectory(reply, "12", meta) for reply in replies]], Run(None))
    for told, score in zip([first, *rest], scores, strict=True):
        assert told["score"] == pytest.approx(score.total)
        assert told["steps"] == [[at - 1, r] for at, r in score.steps]
        assert {k: t["value"] for k, t in told["terms"].items()} == {k: t.value for k, t in score.terms.items()}
        assert told["extracted"] == score.extracted
    assert [told["terms"]["rank"]["value"] for told in (first, *rest, other)] == [1.0, 2.0, 0.0, 0.0]
    assert first["steps"] == [[6, 0.5], [16, 0.5]]


def trajectory(reply, answer, meta) -> Trajectory:
    """A reply as a rollout whose tokens are characters, with lines as steps."""
    ids = np.asarray([*map(ord, reply)], np.int64)
    ends = (*(1 + i for i, c in enumerate(reply) if c == "\n"), len(reply))
    turns = (Turn(None, np.zeros(1, np.int64), text="q?"), Turn("policy", ids, text=reply))
    return Trajectory(Problem((Message("user", "q?"),), answer, meta), turns, stop="end", steps=ends)


def test_openrlhf_sends_prompts_with_replies_and_gets_rewards(server):
    body = {"query": ["<s>q?four</s>", "q?ab<|im_end|>\n"], "prompts": ["q?", "q?"], "labels": ["x", "y"]}
    answer = post(f"{server.url}/get_reward", body)
    # only end tokens are cut off, not what comes before them
    assert answer.document == {"rewards": [5.0, 13.0], "scores": [5.0, 13.0], "extra_logs": {"score": [5.0, 13.0]}}
    assert post(f"{server.url}/get_reward", {"query": [], "prompts": [], "labels": []}).document["rewards"] == []
    refused = post(f"{server.url}/get_reward", {**body, "prompts": ["q?", "another"]})
    assert (refused.status, refused.document["error"].split(":")[0]) == (422, "query.1 does not begin with prompts.1")
    assert post(f"{server.url}/get_reward", {**body, "labels": ["x"]}).status == 422
    assert post(f"{server.url}/get_reward", {"query": ["q?a"]}).document == {"error": "prompts: field required"}


TEMPLATES = {
    "chatml": ("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>"),
    "qwen with its system message": (
        "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n<|im_start|>user\n",
        "<|im_end|>\n<|im_start|>assistant\n",
        "<|im_end|>",
    ),
    "llama 3": (
        "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n",
        "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        "<|eot_id|>",
    ),
    "llama 2": ("<s>[INST] ", " [/INST]", "</s>"),
    "gemma": ("<bos><start_of_turn>user\n", "<end_of_turn>\n<start_of_turn>model\n", "<end_of_turn>"),
    "phi": ("<|user|>\n", "<|end|>\n<|assistant|>\n", "<|end|>"),
    "zephyr": ("<|user|>\n", "</s>\n<|assistant|>\n", "</s>"),
    "deepseek": ("<｜begin▁of▁sentence｜><｜User｜>", "<｜Assistant｜>", ""),
    "vicuna": ("A chat between a user and an assistant. USER: ", " ASSISTANT:", "</s>"),
    "alpaca": ("Below is an instruction.\n\n### Instruction:\n", "\n\n### Response:", "</s>"),
    "none": ("<s>", "", "</s>"),
}


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("prompt", ["q?", "assistant: q?\n", "q?q?"])
def test_openrlhfs_prompts_may_be_raw_where_queries_are_in_a_template(server, name, prompt):
    before, between, end = TEMPLATES[name]
    asked = prompt if name == "none" else prompt.strip()
    # what the reply says of the prompt is no place where it begins
    for reply in ("four", f"so {prompt.strip()} four"):
        body = {"query": [before + asked + between + reply + end], "prompts": [prompt], "labels": ["y"]}
        answer = post(f"{server.url}/get_reward", body)
        assert answer.document["rewards"] == [float(len(reply))], answer.document


@pytest.mark.parametrize("query", ["<|who|>q?<|who|>four", "<|im_start|>user\nq? four", "said q? four"])
def test_a_template_that_is_not_known_is_refused_and_not_scored(server, query):
    answer = post(f"{server.url}/get_reward", {"query": [query], "prompts": ["q?"], "labels": ["x"]})
    assert answer.status == 422
    assert "chat template" in answer.document["error"]


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({"role": "assistant", "content": None}, "prompt.1.content: must be a text, not null"),
        ({"content": "x"}, "prompt.1.role: field required"),
        ("x", "prompt.1: "),
    ],
)
def test_a_message_that_is_none_is_named_by_its_place(server, message, says):
    said = [{"role": "user", "content": "q?"}, message]
    answer = post(f"{server.url}/score", {"prompt": said, "response": "four"})
    assert answer.status == 422
    assert answer.document["error"].startswith(says)


def test_messages_in_parts_and_with_calls_are_read(server):
    parts = {"role": "user", "content": [{"type": "text", "text": "q"}, {"type": "text", "text": "?"}]}
    called = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    assert post(f"{server.url}/score", {"prompt": [parts, called], "response": "four"}).document["score"] == 4.0


def test_slime_sends_one_and_gets_a_number(server):
    assert post(f"{server.url}/slime", {"prompt": "q?", "response": "four", "label": "x"}).document == 5.0
    said = [{"role": "user", "content": "q?"}]
    assert post(f"{server.url}/slime", {"prompt": said, "response": "four</s>", "label": None, "more": 1}).document == 4.0


@pytest.mark.parametrize(
    ("word", "failed", "status", "why"),
    [
        ("nothing", "none", 503, "returned None"),
        ("raise", "error", 500, "as the reply says"),
        ("nan", "error", 500, "nan"),
        ("hang", "timeout", 422, "took over 2 s"),
        ("die", "crash", 422, "the process died"),
    ],
)
def test_without_a_score_it_is_null_with_the_reason_and_never_zero(server, word, failed, status, why):
    answer = post(f"{server.url}/score", {"rows": [row("ab"), row(word), row("abc")]})
    before, none, after = answer.document["scores"]
    assert (answer.status, before["score"], after["score"]) == (200, 2.0, 3.0)
    assert (none["score"], none["failed"]) == (None, failed)
    assert why in none["why"]
    # protocols that have no word for it answer an error
    refused = post(f"{server.url}/slime", {"prompt": "q?", "response": word, "label": None})
    assert (refused.status, refused.document["code"]) == (status, failed)
    assert why in refused.document["error"]
    assert post(f"{server.url}/get_reward", {"query": ["q?a", f"q?{word}"], "prompts": ["q?"] * 2}).status == status


# ---- what is refused -------------------------------------------------------------------------------------------------


HOSTILE = {
    "not JSON": b"score me",
    "nothing": b"",
    "not UTF-8": b'{"response": "\xff"}',
    "NaN": b'{"response": "a", "answer": NaN}',
    "infinity": b'{"response": "a", "answer": 1e999}',
    "deep": b'{"response": "a", "answer": ' + b"[" * 100_000,
    "deep and closed": b'{"response": "a", "answer": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "half a surrogate pair": b'{"response": "\\ud800"}',
    "a number of many digits": b'{"response": "a", "answer": ' + b"9" * 100_000 + b"}",
    "another type": b'{"response": 5}',
    "another document": b"[1, 2, 3]",
    "no response": b'{"prompt": "q?"}',
    "an unknown field": b'{"response": "a", "reward": 1}',
    "messages without roles": b'{"response": "a", "prompt": [{"content": "x"}]}',
    "rows of another type": b'{"rows": {"a": 1}}',
    "too many rows": json.dumps({"rows": [{"response": "a"}] * 65}).encode(),
    "too long": b'{"response": "' + b"a" * (1 << 20) + b'"}',
}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ([], "the body: must be an object {...}, not a list"),
        ({"response": 3, "prompt": 7}, "prompt: must be a text or a list of messages; response: must be a text, not a number"),
        ({"says": "b"}, "response: field required; says: unknown field (fields: prompt, response, answer, meta, ids"),
        ({"rows": [3, {"says": "b"}]}, "rows.0: must be an object {...}, not a number; rows.1.response: field required; rows"),
        (
            {"rows": [{"response": "b", "weight": 2}]},
            "rows.0.weight: unknown field (fields: prompt, response, answer, meta, ids: other columns go into meta)",
        ),
        # which of the two is the response, nobody knows
        ({"response": "b", "completion": "c"}, "completion: unknown field"),
        ({"response": "a", "meta": []}, "meta: must be an object {...}, not a list"),
    ],
)
def test_all_wrong_fields_of_a_request_are_named_in_words(server, body, says):
    answer = post(f"{server.url}/score", body)
    assert answer.status == 422
    assert answer.document["error"].startswith(says)


@pytest.mark.parametrize("name", REPLY)
def test_a_response_may_have_the_names_by_which_functions_ask_for_it(server, name):
    rows = [{"prompt": "q?", name: "four", "answer": None}, row("four")]
    assert [x["score"] for x in post(f"{server.url}/score", {"rows": rows}).document["scores"]] == [4.0, 4.0]
    assert post(f"{server.url}/score", rows[0]).document["score"] == 4.0


@pytest.mark.parametrize("word", ["raise", "nothing", "nan"])
def test_why_a_row_has_no_score_speaks_of_this_row(server, word):
    why = post(f"{server.url}/score", row(word)).document["why"]
    assert "this row" in why
    assert "group 0" not in why


def test_a_judge_that_is_named_by_a_checkpoint_is_loaded_and_one_that_only_a_run_has_is_refused(tmp_path):
    checkpoint(tmp_path, tokenizer(), "LlamaForCausalLM", max_position_embeddings=2048)
    scorer = Scorer([f"judge(model='hf:{tmp_path}', max_new=4)"])
    (told,) = scorer([{**row("a"), "meta": {}}])
    # a random model writes no mark, or one by chance
    assert told["score"] is not None or "judgement" in told["why"]
    with pytest.raises(RewardlabError, match="the judge 'policy' is a model of the run that trains"):
        Scorer(["judge(model='policy')"])


def test_what_asks_for_a_tasks_verifier_is_refused_at_the_start_where_no_task_is_named():
    with pytest.raises(RewardlabError, match=r"correct\(\) asks the verifier of a task, and none is named: give --task TASK"):
        Scorer(["correct() - 0.001 * length_penalty()"])
    assert Scorer(["correct()"], task="arithmetic").about["reward"] == "correct()"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_body_is_refused_in_words(server, name):
    answer = post(f"{server.url}/score", HOSTILE[name])
    assert 400 <= answer.status < 500
    assert len(answer.document["error"]) > 10
    assert post(f"{server.url}/score", row("fine")).document["score"] == 4.0


def test_a_body_that_ends_late_or_never_is_refused(server):
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as slow:
        slow.sendall(b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        began = time.monotonic()
        assert b"408" in slow.recv(1000)
        assert time.monotonic() - began < 5
    with socket.create_connection((host, int(port))) as endless:
        head = b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        endless.sendall(head)
        began = time.monotonic()
        # the server closes the connection while the client still writes
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - began < 10:
                endless.sendall(b"10000\r\n" + b"a" * 0x10000 + b"\r\n")
        assert time.monotonic() - began < 5
    assert post(f"{server.url}/score", row("fine")).status == 200


def test_other_paths_methods_and_types_are_refused(server):
    assert get(f"{server.url}/nothing").status == 404
    assert get(f"{server.url}/score").status == 405
    assert post(f"{server.url}/score", b"{}", {"Content-Type": "text/plain"}).status == 415


def test_with_a_token_nothing_is_scored_or_told_without_it(server):
    basic = base64.b64encode(b"anyone:sesame").decode()
    closed = RewardServer(server.pool, server.about, Limits(token="sesame"), 64)
    with listening(closed.app()) as url:
        for headers in ({}, {"Authorization": "Bearer open"}, {"Authorization": "sesame"}, {"Authorization": "Basic !"}):
            assert post(f"{url}/score", row("a"), headers).status == 401
            assert get(f"{url}/metrics", headers).status == 401
        for kind in ("Bearer sesame", f"Basic {basic}"):
            assert post(f"{url}/score", row("a"), {"Authorization": kind}).status == 200
        assert get(f"{url}/ready").status == get(f"{url}/health").status == 200


@pytest.mark.slow
def test_where_the_queue_is_full_clients_are_told_when_to_come_again(server, monkeypatch):
    monkeypatch.setattr(server.pool, "most", 4)
    with concurrent.futures.ThreadPoolExecutor(6) as clients:
        body = {"rows": [row("slow"), row("slow")]}
        answers = list(clients.map(lambda _: post(f"{server.url}/score", body), range(6)))
    assert sorted(a.status for a in answers) == [200] * 2 + [429] * 4
    assert all(int(a.headers["retry-after"]) >= 1 for a in answers if a.status == 429)
    assert server.pool.open == 0


# ---- what happens to its workers -------------------------------------------------------------------------------------


def test_every_call_is_answered_once_and_rightly_while_workers_are_killed(server):
    enough, killed, replaced = threading.Event(), [], server.pool.replaced

    def kill() -> None:
        while not enough.wait(0.25):
            with contextlib.suppress(ProcessLookupError, TypeError):
                fork = server.pool.workers[len(killed) % 2].fork
                os.kill(fork, signal.SIGKILL)
                killed.append(fork)

    killer, began = threading.Thread(target=kill), time.monotonic()
    killer.start()
    bodies = [{"rows": [row("a" * (10 * i + j)) for j in range(5)]} for i in range(100)]
    right = [[10.0 * i + j for j in range(5)] for i in range(100)]
    try:
        with concurrent.futures.ThreadPoolExecutor(8) as clients:
            while len(killed) < 4 and time.monotonic() - began < 30:
                answers = list(clients.map(lambda body: post(f"{server.url}/score", body), bodies))
                assert [[r["score"] for r in a.document["scores"]] for a in answers] == right
    finally:
        enough.set()
        killer.join()
    assert len(killed) >= 4
    assert server.pool.replaced > replaced
    assert server.pool.open == 0


def test_a_request_that_is_cancelled_ends_neither_a_worker_nor_the_shutdown():
    pool = Pool(SCORER, {}, workers=1, seconds=SECONDS, most=8)
    gone, other = pool.submit([b"1", b"2"]), pool.submit([b"3"])
    assert gone.cancel()
    # as a worker does with what it has taken from the queue
    taken = [pool._queue.popleft() for _ in range(2)]
    pool._settle(taken, [Done(1.0), Done(2.0)])
    late = pool.submit([b"4"])
    assert late.cancel()
    pool.close()
    assert [result.kind for result in other.result(timeout=1)] == ["stopped"]
    assert (gone.cancelled(), late.cancelled(), pool.open) == (True, True, 0)


def test_metrics_count_what_was_answered(server):
    post(f"{server.url}/score", row("fine"))
    get(f"{server.url}/{'x' * 20}")
    said = get(f"{server.url}/metrics").document
    numbers = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in said.splitlines() if line[:1] != "#"}
    assert numbers['rewardlab_requests_total{path="/score",status="200"}'] >= 1
    assert numbers['rewardlab_requests_total{path="other",status="404"}'] >= 1
    assert numbers['rewardlab_rows_total{result="scored"}'] >= 1
    assert numbers["rewardlab_workers_ready"] == 2
    assert numbers["rewardlab_queue_rows"] == 0
    assert math.isfinite(numbers['rewardlab_request_seconds_sum{path="/score"}'])


def test_a_reward_that_cannot_be_read_says_why(tmp_path):
    (tmp_path / "broken.py").write_text("import nothing_like_it\ndef score(completion): return 1.0")
    with pytest.raises(RewardlabError, match=r"broken.py, line 1.*nothing_like_it"):
        Scorer([f"{tmp_path}/broken.py:score"])


def test_a_process_reward_model_is_loaded_before_the_first_row_and_scores_the_steps_of_a_text(tmp_path, words):
    checkpoint(tmp_path / "prm", words, "LlamaForTokenClassification", num_labels=2)
    scorer = Scorer([f"prm:{tmp_path}/prm"])
    assert list(scorer.run.models) == [f"prm:{tmp_path}/prm"]
    (told,) = scorer([{**row("7+5=12\nAnswer: 12"), "meta": {}}])
    (chances,) = load_scorer(f"{tmp_path}/prm", "cpu").score([("q?", ["7+5=12", "Answer: 12"])])
    assert [at for at, _ in told["steps"]] == [6, 16]
    assert [r for _, r in told["steps"]] == pytest.approx(chances, abs=1e-5)
    assert told["score"] == pytest.approx(sum(chances), abs=1e-5)


@pytest.mark.parametrize(
    ("reward", "lacks"),
    [
        ("negentropy()", "--tokenizer"),
        ("self_certainty()", "asks the policy itself"),
        ("math() + 0.1 * answer_confidence()", r"asks the policy itself \(score\)"),
        ("likelihood()", r"asks the policy itself \(its log-probs\)"),
        ("math() + self_alignment()", r"asks the policy itself \(read\)"),
    ],
)
def test_a_reward_that_reads_more_than_text_is_refused_before_anything_is_served(reward, lacks):
    with pytest.raises(RewardlabError, match=lacks):
        Scorer([reward])


def test_a_reward_whose_columns_a_made_up_reply_lacks_is_served():
    assert Scorer(["guidance()"]).about["alone"] is True


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_commands_of_the_documentation_are_command_lines_that_the_servers_take():
    page = (Path(__file__).parents[2] / "docs" / "SERVING.md").read_text("utf-8")
    lines = re.findall(r"rewardlab (serve(?:-model)? [^\n`]+)", page)
    assert len(lines) >= 7
    for line in lines:
        name, *words = shlex.split(line, comments=True)
        cli.parse(cli.module_of(name), name, words)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("serve", "which reward?"),
        ("serve --reward no_such_reward", "unknown reward"),
        ("serve --task arithmetic --host 0.0.0.0", "--key-from NAME"),
        ("serve --task arithmetic --key-from NOT_SET_ANYWHERE", "NOT_SET_ANYWHERE is not set"),
        ("serve --task arithmetic --port 70000", "a port, 0 to 65535"),
        ("serve --task arithmetic --queue 10", "would never fit"),
        ("serve-model runs/nothing", "runs/nothing"),
    ],
)
def test_a_wrong_command_line_is_refused_in_words(words, says, capsys):
    assert cli.main(words.split()) == 2
    assert says in capsys.readouterr().err


def test_sigterm_ends_it_when_the_last_request_is_answered(mine):
    command = [sys.executable, "-m", "rewardlab", "serve", "--reward", f"{mine}:score", "--port", "0", "--workers", "1", "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        url = server.stderr.readline().split(" at ")[1].split(" with ")[0]
        assert get(f"{url}/ready").status == 200
        with concurrent.futures.ThreadPoolExecutor(1) as client:
            under_way = client.submit(post, f"{url}/score", {"rows": [row("slow"), row("slow!")]})
            while "\nrewardlab_queue_rows 2.0" not in get(f"{url}/metrics").document:
                time.sleep(0.01)
            server.send_signal(signal.SIGTERM)
            assert [r["score"] for r in under_way.result().document["scores"]] == [4.0, 5.0]
        out, _ = server.communicate(timeout=20)
    finally:
        server.kill()
    assert server.returncode == 0
    assert json.loads(out)["rows"] == 2


@pytest.mark.slow
def test_verls_client_scores_by_the_server(server, tmp_path, monkeypatch):
    out = tmp_path / "client.py"
    assert cli.main(["serve", "--write-client", "verl", "--out", str(out), "--port", "1"]) == 0
    spec = importlib.util.spec_from_file_location("client", out)
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    assert client.URL == "http://127.0.0.1:1"
    monkeypatch.setattr(client, "PAUSE", 0.01)
    with pytest.raises(RuntimeError, match="rewardlab serve"):
        client.compute_score("d", "four", "x")
    monkeypatch.setenv("REWARDLAB_URL", server.url)
    extra = {"bonus": np.int64(10), "list": np.arange(2), "question": "q?"}
    assert client.compute_score("d", "four", "x", extra, router=None) == 15.0
    with pytest.raises(RuntimeError, match=r"no verdict.*returned None"):
        client.compute_score("d", "nothing", "x")
    monkeypatch.setattr(client, "NO_VERDICT", -1.0)
    assert client.compute_score("d", "nothing", "x") == -1.0
