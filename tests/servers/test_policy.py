"""The policy server: what it says is what the policy says, in the words of the OpenAI API."""

import concurrent.futures
import json
import socket
import threading
import time
import urllib.request

import numpy as np
import pytest
import torch
from listening import get, listening, post

from rewardlab.core import Message, Problem, Sampling, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.models.load import load_policy
from rewardlab.servers.generator import CHUNK, Generator, Work
from rewardlab.servers.limits import Limits
from rewardlab.servers.policy import PolicyServer
from rewardlab.servers.serve_policy import name_of, writing

ASKED = {"role": "user", "content": "2 + 2?"}


@pytest.fixture(scope="module")
def policy():
    return load_policy("untrained", "cpu")


@pytest.fixture(scope="module")
def generator(policy):
    made = Generator(policy, most=64)
    yield made
    made.close()


@pytest.fixture(scope="module")
def url(generator):
    with listening(PolicyServer(generator, "small", Limits(), most_new=200).app()) as url:
        yield f"{url}/v1"


def chat(url, **more):
    body = {"model": "small", "messages": [ASKED], "max_tokens": 40, "temperature": 0, **more}
    return post(f"{url}/chat/completions", {k: v for k, v in body.items() if v is not None})


def said(policy, messages=(ASKED,), **sampling) -> Trajectory:
    prompt = tuple(Message(m["role"], m["content"]) for m in messages)
    begun = policy.read([Trajectory(Problem(prompt))], [prompt])
    seed = sampling.pop("seed", 0)
    sampling = Sampling(**{"max_new": 40, "temperature": 0.0, **sampling})
    return policy.extend(begun, sampling, torch.Generator().manual_seed(seed))[0]


def events(url, path="chat/completions", **more) -> list[dict]:
    body = {"model": "small", "messages": [ASKED], "max_tokens": 40, "temperature": 0, "stream": True, **more}
    request = urllib.request.Request(f"{url}/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        lines = [line.removeprefix(b"data: ") for line in reply.read().split(b"\n\n") if line]
    assert lines.pop() == b"[DONE]"
    return [json.loads(line) for line in lines]


# ---- whole replies ---------------------------------------------------------------------------------------------------


def test_a_greedy_reply_with_its_log_probs_is_the_policys_own(url, policy):
    here = said(policy)
    answer = chat(url, logprobs=True, top_logprobs=3).document
    (choice,) = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": here.reply, "refusal": None}
    assert (choice["finish_reason"], choice["stop_reason"]) == ("length", None)
    tokens = choice["logprobs"]["content"]
    assert [t["token"] for t in tokens] == policy.pieces(here.turns[-1].ids)
    assert [t["logprob"] for t in tokens] == pytest.approx(here.turns[-1].logprobs.tolist(), abs=1e-4)
    for token in tokens:
        # the greedy token is the likeliest one
        assert len(token["top_logprobs"]) == 3
        assert token["top_logprobs"][0]["token"] == token["token"]
        assert token["top_logprobs"][0]["logprob"] == pytest.approx(token["logprob"], abs=1e-4)
        assert bytes(token["bytes"]).decode() == token["token"]
    assert answer["usage"] == {"prompt_tokens": len(here.turns[0].ids), "completion_tokens": 40, "total_tokens": len(here)}
    assert (answer["object"], answer["model"]) == ("chat.completion", "small")


def test_a_seed_repeats_what_is_sampled_and_n_replies_differ(url, policy):
    answers = [chat(url, seed=seed, n=3, temperature=1, top_p=0.9).document["choices"] for seed in (5, 5, 6)]
    texts = [[c["message"]["content"] for c in choices] for choices in answers]
    assert texts[0] == texts[1] != texts[2]
    assert len(set(texts[0])) == 3
    assert texts[0][0] == said(policy, seed=5, temperature=1.0, top_p=0.9).reply
    assert [c["index"] for c in answers[0]] == [0, 1, 2]
    # without a seed, and at the temperature that the API has by default, replies differ
    assert len({chat(url, temperature=None).document["choices"][0]["message"]["content"] for _ in range(3)}) == 3


def test_a_reply_ends_before_a_stop_string(url, policy):
    whole = said(policy).reply
    stop = whole[15:18]
    (choice,) = chat(url, stop=["never said", stop], logprobs=True).document["choices"]
    assert choice["message"]["content"] == whole[: whole.index(stop)]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
    told = "".join(t["token"] for t in choice["logprobs"]["content"])
    assert choice["message"]["content"].startswith(told)


def test_messages_of_all_roles_and_parts_are_read_through_the_template(url, policy):
    messages = [
        {"role": "system", "content": "Be short."},
        ASKED,
        {"role": "assistant", "content": "4"},
        {"role": "user", "content": "And 3?"},
    ]
    there = [
        {**messages[0], "role": "developer"},
        {"role": "user", "content": [{"type": "text", "text": "2 + "}, {"type": "text", "text": "2?"}]},
    ]
    answer = chat(url, messages=[*there, *messages[2:]])
    assert answer.document["choices"][0]["message"]["content"] == said(policy, messages).reply


def test_a_last_message_of_the_assistant_is_continued_where_asked(url, policy):
    prompt = (Message("user", ASKED["content"]),)
    (row,) = policy.read([Trajectory(Problem(prompt))], [prompt])
    begun = np.asarray(policy.tokenizer("The answer", add_special_tokens=False)["input_ids"], np.int64)
    (here,) = policy.extend([row.plus(Turn(None, begun))], Sampling(10, temperature=0.0), torch.Generator())
    last = {"role": "assistant", "content": "The answer"}
    answer = chat(url, messages=[ASKED, last], continue_final_message=True, add_generation_prompt=False, max_tokens=10)
    assert answer.document["choices"][0]["message"]["content"] == here.turns[-1].text


def test_text_is_completed_echoed_and_scored(url, policy):
    ids = policy.tokenizer("Start with 12.")["input_ids"]
    text = {"model": "small", "temperature": 0, "max_tokens": 5, "logprobs": 2}
    prompts = (["Start with 12."], [ids])
    (whole,) = zip(
        *(post(f"{url}/completions", {**text, "prompt": p, "echo": True}).document["choices"] for p in prompts), strict=True
    )
    assert whole[0]["text"] == whole[1]["text"]
    assert whole[0]["text"].startswith("Start with 12.")
    told = whole[0]["logprobs"]
    assert (
        len(told["tokens"]) == len(told["token_logprobs"]) == len(told["top_logprobs"]) == len(told["text_offset"]) == len(ids) + 5
    )
    (scored,) = policy.score([Trajectory(Problem(()), (Turn(None, np.asarray(ids, np.int64)),))])
    assert told["token_logprobs"][0] is told["top_logprobs"][0] is None
    assert told["token_logprobs"][1 : len(ids)] == pytest.approx(scored[1:].tolist(), abs=1e-4)
    new = post(f"{url}/completions", {**text, "prompt": ids}).document["choices"][0]
    assert "Start with 12." + new["text"] == whole[0]["text"]
    assert new["logprobs"]["token_logprobs"] == pytest.approx(told["token_logprobs"][len(ids) :], abs=1e-4)
    alone = post(f"{url}/completions", {**text, "prompt": ids, "echo": True, "max_tokens": 0}).document["choices"][0]
    assert (alone["text"], alone["logprobs"]["tokens"]) == ("Start with 12.", told["tokens"][: len(ids)])


def test_ids_of_a_reply_are_told_whole_where_asked(url, policy):
    ids = policy.tokenizer("Start with 12.")["input_ids"]
    asked = {"model": "small", "prompt": ids, "temperature": 0, "max_tokens": 5, "logprobs": 0, "return_token_ids": True}
    told = post(f"{url}/completions", asked).document["choices"][0]
    (here,) = policy.extend(
        [Trajectory(Problem(()), (Turn(None, np.asarray(ids, np.int64)),))], Sampling(5, 0.0), torch.Generator()
    )
    assert told["token_ids"] == here.turns[-1].ids.tolist()
    assert told["logprobs"]["token_logprobs"] == pytest.approx(here.turns[-1].logprobs.tolist(), abs=1e-4)
    assert post(f"{url}/completions", {**asked, "stream": True}).status == 400


# ---- streams ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, {"stop": ["6", "zzz"]}, {"n": 2}, {"logprobs": True}, {"max_tokens": CHUNK}])
def test_a_stream_says_in_parts_what_the_whole_reply_is(url, more):
    if more.get("stop"):
        whole = chat(url).document["choices"][0]["message"]["content"]
        # it begins in one chunk of tokens, and ends in the next
        more = {"stop": [whole[5:30], "zzz"]}
    whole = chat(url, **more).document
    parts = events(url, **more, stream_options={"include_usage": True})
    usage = parts.pop()
    assert (usage["choices"], usage["usage"]["prompt_tokens"]) == ([], whole["usage"]["prompt_tokens"])
    for choice in whole["choices"]:
        mine = [part["choices"][0] for part in parts if part["choices"][0]["index"] == choice["index"]]
        assert mine[0]["delta"]["role"] == "assistant"
        assert "".join(part["delta"].get("content", "") for part in mine) == choice["message"]["content"]
        assert [part["finish_reason"] for part in mine if part["finish_reason"]] == [choice["finish_reason"]]
        if "logprobs" in more:
            tokens = [t for part in mine for t in part["logprobs"]["content"]]
            assert [t["token"] for t in tokens] == [t["token"] for t in choice["logprobs"]["content"]]
    assert {part["object"] for part in parts} == {"chat.completion.chunk"}
    assert len(parts) >= (1 if more.get("stop") or more.get("max_tokens") else 3)


def test_text_is_streamed_too(url):
    body = {"prompt": "Start with 12.", "messages": None}
    parts = events(url, "completions", **body)
    whole = post(f"{url}/completions", {"model": "small", "prompt": "Start with 12.", "max_tokens": 40, "temperature": 0})
    assert "".join(part["choices"][0]["text"] for part in parts) == whole.document["choices"][0]["text"]


def test_where_the_client_leaves_nothing_more_is_written(url, generator):
    host, port = url.removeprefix("http://").removesuffix("/v1").split(":")
    body = json.dumps({"model": "small", "messages": [ASKED], "max_tokens": 200, "n": 64, "stream": True}).encode()
    before = generator.generated
    with socket.create_connection((host, int(port))) as client:
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        client.recv(1000)
    assert chat(url, max_tokens=1).status == 200
    # of 12,800 tokens
    assert generator.generated - before < 8000


# ---- many clients ----------------------------------------------------------------------------------------------------


def test_requests_that_are_alike_are_generated_together_and_answered_apart(url, policy, generator, monkeypatch):
    sizes = []
    extend = policy.extend
    monkeypatch.setattr(policy, "extend", lambda rows, *more: sizes.append(len(rows)) or extend(rows, *more))
    questions = [f"{i} + {i}?" for i in range(12)]
    with concurrent.futures.ThreadPoolExecutor(12) as clients:
        answers = list(clients.map(lambda q: chat(url, messages=[{"role": "user", "content": q}]).document, questions))
    monkeypatch.undo()
    texts = [a["choices"][0]["message"]["content"] for a in answers]
    assert texts == [said(policy, [{"role": "user", "content": q}]).reply for q in questions]
    assert sum(sizes) == 12
    assert max(sizes) > 1


def test_what_finds_no_room_is_told_to_come_again(policy):
    busy, free = threading.Event(), threading.Event()

    class Slow:
        """The policy, that waits before it writes."""

        def __getattr__(self, name):
            return getattr(policy, name)

        def extend(self, *given):
            busy.set()
            free.wait(10)
            return policy.extend(*given)

    generator = Generator(Slow(), most=1)
    server = PolicyServer(generator, "small", Limits(token="sesame"), most_new=200)
    key = {"Authorization": "Bearer sesame"}
    body = {"model": "small", "messages": [ASKED], "max_tokens": 2, "seed": 1}
    with listening(server.app()) as url, concurrent.futures.ThreadPoolExecutor(2) as clients:
        first = clients.submit(post, f"{url}/v1/chat/completions", body, key)
        assert busy.wait(5)
        second = clients.submit(post, f"{url}/v1/chat/completions", body, key)
        while not generator.waiting:
            time.sleep(0.01)
        for stream in (False, True):
            third = post(f"{url}/v1/chat/completions", {**body, "stream": stream}, key)
            assert (third.status, third.headers["retry-after"]) == (429, "1")
            assert third.document["error"]["type"] == "rate_limit_error"
        free.set()
        assert (first.result().status, second.result().status) == (200, 200)
        assert post(f"{url}/v1/chat/completions", body).status == 401
        assert get(f"{url}/v1/models").document["error"]["code"] == "invalid_api_key"
    generator.close()


def test_an_error_while_it_writes_is_told(policy):
    generator = Generator(policy, most=4)
    prompt = Trajectory(Problem((Message("user", "x"),)))
    work = generator.submit(Work([prompt], Sampling(4)))
    with pytest.raises(Exception, match=r".+"):
        work.done.result(timeout=10)
    # and the next request is served
    (row,) = policy.read([prompt], [prompt.problem.prompt])
    assert len(generator.submit(Work([row], Sampling(4))).done.result(timeout=10)) == 1
    generator.close()


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "status", "param", "says"),
    [
        ({"model": "gpt"}, 404, "model", "'small'"),
        ({"messages": []}, 400, "messages", "at least 1"),
        ({"messages": [{"role": "user", "content": None}]}, 400, "messages", "the user message has no content: give a text"),
        ({"messages": [ASKED, {"role": "user"}]}, 400, "messages", "messages.1: the user message has no content"),
        ({"messages": [{"role": "system", "content": []}, ASKED]}, 400, "messages", "the system message has no content"),
        ({"messages": [ASKED, {"role": "assistant", "content": None, "tool_calls": []}]}, 400, "messages", "or its tool_calls"),
        ({"messages": [ASKED, {"role": "tool", "content": None, "tool_call_id": "a"}]}, 400, "messages", "the tool message has no"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, 400, "messages", "wizard"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, 400, "messages", "image_url"),
        ({"temperature": "hot"}, 400, "temperature", "number"),
        ({"temperature": 3}, 400, "temperature", "2"),
        ({"n": 1000}, 400, "n", "128"),
        ({"max_tokens": 100_000}, 400, "messages", "context is"),
        ({"max_tokens": 201}, 400, "max_tokens", "--max-new"),
        ({"functions": [{"name": "f"}]}, 400, "functions", "not supported"),
        ({"frequency_penalty": 0.5}, 400, "frequency_penalty", "not supported"),
        ({"response_format": {"type": "json_object"}}, 400, "response_format", "not supported"),
    ],
)
def test_what_cannot_be_done_is_refused_in_the_words_of_the_api(url, more, status, param, says):
    answer = chat(url, **more)
    assert answer.status == status
    assert answer.document["error"].keys() == {"message", "type", "param", "code"}
    assert answer.document["error"]["param"] == param
    if param != "messages" or says != "wizard":
        assert says in answer.document["error"]["message"]


CHANGES = {
    "guided_json": {"type": "object"}, "guided_regex": "a+", "guided_choice": ["a"], "guided_grammar": "root ::= 'a'",
    "structured_outputs": {"json": {}}, "regex": "a", "json_schema": "{}", "repetition_penalty": 1.1, "length_penalty": 0.9,
    "stop_token_ids": [5], "ignore_eos": True, "min_p": 0.1, "min_tokens": 3, "bad_words": ["a"], "allowed_token_ids": [1],
    "logit_bias": {"5": 1}, "skip_special_tokens": False, "use_beam_search": True, "include_stop_str_in_output": True,
    "chat_template": "{{ messages }}", "chat_template_kwargs": {"enable_thinking": False}, "prompt_logprobs": 1, "best_of": 2,
    "reasoning_effort": "low", "add_generation_prompt": False, "tempurature": 0.5, "anything": 1, "max_new_tokens": 5,
    "truncate_prompt_tokens": 5, "tool_choice": "required",
}  # fmt: skip
SAME = {
    "repetition_penalty": 1.0, "min_p": 0.0, "stop_token_ids": [], "ignore_eos": False, "min_tokens": 0, "guided_json": None,
    "structured_outputs": None, "skip_special_tokens": True, "add_generation_prompt": True, "metadata": {"a": "b"}, "store": False,
    "chat_template_kwargs": {}, "user": "me", "parallel_tool_calls": True, "length_penalty": 1,
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("path", ["chat/completions", "completions"])
def test_what_would_change_replies_and_is_not_done_is_refused_by_name(url, name, path):
    body = {"model": "small", "max_tokens": 2, **({"messages": [ASKED]} if "chat" in path else {"prompt": "1 + 2"})}
    answer = post(f"{url}/{path}", {**body, name: CHANGES[name]})
    assert (answer.status, answer.document["error"]["param"]) == (400, name)
    assert name in answer.document["error"]["message"]
    if name == "tempurature":
        assert "did you mean temperature?" in answer.document["error"]["message"]


@pytest.mark.parametrize("name", SAME)
def test_what_is_as_by_default_is_taken(url, name):
    assert chat(url, **{name: SAME[name]}).document["choices"] == chat(url).document["choices"]


def test_what_changes_nothing_is_taken(url):
    same = {"tools": [], "frequency_penalty": 0, "response_format": {"type": "text"}, "user": "me", "logit_bias": {}, "stop": None}
    assert chat(url, **same).document["choices"] == chat(url).document["choices"]


@pytest.mark.parametrize("prompt", ["", [], [-1], [10**9], [[1], []], 5, [1, "a"], [[[1]]]])
def test_a_prompt_that_is_none_is_refused(url, prompt):
    assert post(f"{url}/completions", {"model": "small", "prompt": prompt}).status == 400


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"model": "small", "messages": NaN}', b'{"model": "\\ud800"}'])
def test_a_hostile_body_is_refused_in_the_shape_of_the_api(url, body):
    answer = post(f"{url}/chat/completions", body)
    assert (answer.status, answer.document["error"]["type"]) == (400, "invalid_request_error")


def test_models_are_listed_by_name(url):
    (model,) = get(f"{url}/models").document["data"]
    assert model["id"] == "small"
    assert get(f"{url}/models/small").document == model
    assert get(f"{url}/models/other").status == 404
    assert get(f"{url}/nothing").document["error"]["message"] == "GET /v1/nothing: not found"


def test_a_model_is_named_after_its_folder_and_must_write(tmp_path):
    folder = tmp_path / "mine"
    untrained().save(folder)
    assert name_of(str(folder)) == "mine"
    assert name_of("embedded:arithmetic") == "embedded:arithmetic"
    assert writing(str(folder), "cpu").decode(np.asarray([5])) is not None
    with pytest.raises(RewardlabError, match="served already"):
        writing("openai:http://127.0.0.1:9/v1#x", "cpu")
