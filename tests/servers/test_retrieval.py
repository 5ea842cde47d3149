"""Search engines behind an address: the protocol of Search-R1, its server, and a client that never takes a failure for nothing."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time

import numpy as np
import pytest
from fastapi import FastAPI
from listening import get, listening, post
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

import rewardlab
from rewardlab import build, registry
from rewardlab.clients import retriever as client
from rewardlab.clients.retriever import PATIENCE, Retriever, SearchFailed, Unreachable, read, retriever_at
from rewardlab.core import Trajectory, Turn, ask
from rewardlab.data.corpus import corpus_of
from rewardlab.envs.search import TELL, search, tools
from rewardlab.errors import RewardlabError
from rewardlab.methods.process.stepsearch import search_progress
from rewardlab.servers.limits import Limits
from rewardlab.servers.retrieval import RetrievalServer
from rewardlab.text.searches import NOTHING, queries_of, results_of

DOCUMENTS = [
    {"id": "a", "title": "Emma", "text": "A novel of 1815 by Jane Austen."},
    {"id": "b", "title": "Ulysses", "text": "A novel by James Joyce."},
    {"id": "c", "title": "", "text": "Dublin is the capital of Ireland."},
]


@pytest.fixture(autouse=True)
def _alone(tmp_path, monkeypatch):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(client, "WAITS", (0.01, 0.01))
    retriever_at.cache_clear()


@pytest.fixture
def corpus(tmp_path):
    file = tmp_path / "docs.jsonl"
    file.write_text("".join(json.dumps(d) + "\n" for d in DOCUMENTS))
    return file


def made(corpus, **more):
    return RetrievalServer(corpus_of(corpus), "docs", **{"limits": Limits(), "topk": 2, "batch": 4, **more}).app()


def said(text: str) -> Turn:
    return Turn("policy", np.zeros(1, np.int64), text=text)


# ---- the protocol -----------------------------------------------------------------------------------------------------------


def test_the_server_answers_as_search_r1s_does(corpus):
    with listening(made(corpus)) as url:
        answer = post(f"{url}/retrieve", {"queries": ["james novel", "zebra"], "topk": 1, "return_scores": True})
        assert answer.status == 200
        (found,), nothing = answer.document["result"]
        assert found["document"]["contents"] == '"Ulysses"\nA novel by James Joyce.'
        assert found["document"]["id"] == "b"
        assert found["score"] == pytest.approx(corpus_of(corpus).scores("james novel").max())
        assert nothing == []
        # without scores the documents stand alone, and the server's number of them is two
        plain = post(f"{url}/retrieve", {"queries": ["novel"]}).document["result"]
        assert [d["title"] for d in plain[0]] == ["Ulysses", "Emma"]
        assert get(url).document["documents"] == 3
        assert post(f"{url}/retrieve", {"queries": ["a"] * 5}).status == 413
        assert post(f"{url}/retrieve", {"queries": "a"}).status == 422
        assert post(f"{url}/retrieve", {"queries": ["a"], "topk": 0}).status == 422


@pytest.mark.parametrize(
    "entry",
    [
        {"document": {"id": "7", "contents": '"Emma"\nA novel.'}, "score": 2.5},
        {"id": "7", "contents": '"Emma"\nA novel.'},
        {"document": {"id": "7", "title": '"Emma"', "text": "A novel.", "contents": "x"}, "score": 1},
    ],
)
def test_answers_are_read_with_scores_and_without(entry):
    ((document, score),) = read({"result": [[entry]]}, 1)[0]
    assert document == {"id": "7", "title": "Emma", "text": "A novel."}
    assert score == entry.get("score", 0)


def test_a_document_of_one_line_has_no_title():
    assert read({"result": [["Dublin is in Ireland."], []]}, 2) == [
        [({"id": "", "title": "", "text": "Dublin is in Ireland."}, 0.0)],
        [],
    ]


# ---- the environment --------------------------------------------------------------------------------------------------------


def test_a_corpus_may_be_an_address_with_the_same_answers(corpus):
    with listening(made(corpus)) as url:
        near, far = tools(corpus=str(corpus)), tools(corpus=f"{url}/retrieve")
        assert far.start(ask("Who wrote Emma?"), 0)[0].text == TELL
        for text in ("<search>novel by James</search>", "<search>zebra</search>", "Search: capital"):
            assert far({}, said(text))[0].text == near({}, said(text))[0].text
        assert far({}, said("<answer>Joyce</answer>"))[0] is None
        # an address without a path is that of Search-R1
        assert retriever_at(url).best("Joyce") == retriever_at(f"{url}/retrieve").best("Joyce") == [DOCUMENTS[1]]


def test_several_queries_of_a_reply_are_answered_together_in_their_order(corpus):
    calls = []
    app = made(corpus)

    async def counted(scope, receive, send):
        calls.append(scope["path"])
        await app(scope, receive, send)

    with listening(counted) as url:
        env = search(corpus=url, separator="##")
        answer = env({}, said("<search> Dublin ## ## zebra ## Austen </search>"))[0].text
    assert answer == (
        "<information>\nDoc 1: Dublin is the capital of Ireland.\nNothing found.\n"
        "Doc 1 (Title: Emma) A novel of 1815 by Jane Austen.\n</information>"
    )
    assert calls == ["/retrieve"]
    assert queries_of("Search: a ## b\nSearch: c", separator="##") == ["a", "b", "c"]
    # lines of small policies, over the documents of the row
    env = search(separator="##")
    _, state = env.start(ask("?", facts=["Ann: one.", "Bob: two."]), 0)
    assert env(state, said("Search: Bob ## Ann"))[0].text == "Bob: two. Ann: one."
    assert env(state, said("Search: Bob ## zebra"))[0].text == f"Bob: two. {NOTHING}"
    # without a separator a query is what stands between the tags
    assert search()(state, said("<search>Bob ## zebra</search>"))[0].text == "<information>\nDoc 1: Bob: two.\n</information>"


def test_every_method_that_takes_a_corpus_takes_an_address(corpus):
    for name in ("otc_po", "search_r2", "stepsearch", "igpo"):
        recipe = build(name, {"corpus": "http://127.0.0.1:1/retrieve"})
        saved = registry.load_recipe(json.loads(json.dumps(recipe.to_json())))
        assert saved.rollout.settings["env"].settings["corpus"] == "http://127.0.0.1:1/retrieve"


# ---- failures ---------------------------------------------------------------------------------------------------------------


def failing(answers) -> FastAPI:
    """A server that gives these answers one after another, the last of them for ever."""
    app = FastAPI()

    @app.post("/retrieve")
    async def retrieve():
        made = answers.pop(0) if len(answers) > 1 else answers[0]
        return made if not isinstance(made, dict | list) else JSONResponse(made)

    return app


def test_a_failed_search_is_told_to_the_policy_and_counted():
    good = {"result": [[{"document": {"contents": '"Emma"\nA novel.'}, "score": 1.0}]]}
    down = JSONResponse({"error": "index is loading"}, 503)
    with listening(failing([down, good, down, down, down, good])) as url:
        env = tools(corpus=url)
        # it passes by itself at the second try
        first = env({}, said("<search>Emma</search>"))[0].text
        assert first == "<information>\nDoc 1 (Title: Emma) A novel.\n</information>"
        second = env({}, said("<search>Emma</search>"))[0].text
        assert second.startswith("<information>\nThe search failed: HTTP 503")
        assert results_of(second) == []
        assert env({}, said("<search>Emma</search>"))[0].text == first
        engine = retriever_at(url)
        assert (engine.answered, engine.failed, engine.in_a_row) == (2, 1, 0)
        turns = tuple(Turn(None, np.zeros(1, np.int64), text=text) for text in ("the prompt", first, second))
        assert env.logged([Trajectory(ask("?"), turns)]) == {"failed_searches": 0.5}
    assert search().logged([Trajectory(ask("?"), turns)]) == {}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"results": []}, 'no lists of documents under "result"'),
        ({"result": []}, "it answered 0 queries of 1"),
        ({"result": [[{"body": "x"}]]}, 'neither "contents" nor "text"'),
        ([1], "no lists of documents"),
    ],
)
def test_an_answer_of_another_form_is_a_failure_and_not_nothing_found(answer, why):
    with listening(failing([answer])) as url:
        text = tools(corpus=url)({}, said("<search>Emma</search>"))[0].text
    assert why in text
    assert NOTHING not in text


def test_failures_in_a_row_stop_the_run():
    engine = Retriever("http://127.0.0.1:9/retrieve")
    for _ in range(PATIENCE - 1):
        with pytest.raises(SearchFailed, match="refused"):
            engine.search(["a"])
    with pytest.raises(Unreachable, match=rf"failed {PATIENCE} searches in a row; the last: .*refused.*Is it running\?"):
        engine.search(["a"])
    # the environment lets this one through
    env = tools(corpus="http://127.0.0.1:9/retrieve")
    for _ in range(PATIENCE - 1):
        assert "The search failed" in env({}, said("<search>a</search>"))[0].text
    with pytest.raises(RewardlabError, match="in a row"):
        env({}, said("<search>a</search>"))


def test_no_answer_in_time_is_a_failure(monkeypatch):
    monkeypatch.setattr(client, "TIMEOUT", 0.2)
    app = FastAPI()

    @app.post("/retrieve")
    def retrieve():
        time.sleep(1)
        return {"result": [[]]}

    with listening(app) as url, pytest.raises(SearchFailed, match=r"no answer within 0\.2 s"):
        retriever_at(url).search(["a"])


def test_an_answer_that_drips_is_not_waited_for_and_one_without_end_is_not_read(monkeypatch):
    """The limit of the socket is for each piece of an answer."""
    monkeypatch.setattr(client, "TIMEOUT", 0.4)
    app = FastAPI()

    async def drips():
        for _ in range(100):
            yield b" "
            await asyncio.sleep(0.1)

    @app.post("/drips/retrieve")
    def drip():
        return StreamingResponse(drips())

    @app.post("/floods/retrieve")
    def flood():
        return StreamingResponse(b" " * (1 << 20) for _ in range(1000))

    with listening(app) as url:
        with pytest.raises(SearchFailed, match=r"no answer within 0\.4 s"):
            retriever_at(f"{url}/drips/retrieve").search(["a"])
        with pytest.raises(SearchFailed, match="more than 32 MiB"):
            retriever_at(f"{url}/floods/retrieve").search(["a"])


def test_an_answer_too_deep_to_be_read_is_a_failure():
    app = FastAPI()

    @app.post("/retrieve")
    def retrieve():
        return Response("[" * 100_000, media_type="application/json")

    with listening(app) as url, pytest.raises(SearchFailed, match="no JSON"):
        retriever_at(url).search(["a"])


def test_a_score_that_is_no_number_is_none_and_an_empty_id_too():
    document = {"contents": "Emma\nA novel.", "id": None}
    for of in (float("nan"), 10**400):
        ((found, score),) = read({"result": [[{"document": document, "score": of}]]}, 1)[0]
        assert (found["id"], score) == ("", 0.0)
    assert read({"result": [[{"contents": "A novel.", "id": 0}]]}, 1)[0][0][0]["id"] == "0"


def test_what_no_other_request_could_mend_stops_at_once(corpus, monkeypatch):
    moved = FastAPI()

    @moved.post("/retrieve")
    async def retrieve():
        return RedirectResponse("http://elsewhere/retrieve", 307)

    with listening(moved) as url:
        with pytest.raises(Unreachable, match="give the address http://elsewhere/retrieve"):
            retriever_at(url).search(["a"])
        with pytest.raises(Unreachable, match=r"HTTP 404.*check the address"):
            retriever_at(f"{url}/search").search(["a"])
    with listening(made(corpus, limits=Limits(token="sesame"))) as url:
        with pytest.raises(Unreachable, match="RETRIEVER_KEY"):
            retriever_at(url).search(["a"])
        monkeypatch.setenv("RETRIEVER_KEY", "sesame")
        assert retriever_at(url).best("Joyce") == [DOCUMENTS[1]]
    with pytest.raises(RewardlabError, match="holds a password"):
        tools(corpus="http://me:secret@host/retrieve").start(ask("?"), 0)
    with pytest.raises(RewardlabError, match="no address of a search engine"):
        tools(corpus="http://").start(ask("?"), 0)


def test_gold_queries_without_an_answer_give_no_verdict():
    turns = (Turn(None, np.zeros(1, np.int64), text="?"), said("<search>a</search>"), Turn(None, np.zeros(1, np.int64), text="b"))
    score = search_progress(corpus="http://127.0.0.1:9/retrieve").function(
        Trajectory(ask("?", "x", searches=["a"]), turns), corpus="http://127.0.0.1:9/retrieve"
    )
    assert score.missing
    assert "refused" in score.why


# ---- the command ------------------------------------------------------------------------------------------------------------


def test_the_command_serves_a_file(corpus):
    command = [sys.executable, "-m", "rewardlab", "serve", "--corpus", str(corpus), "--port", "0", "--topk", "1", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        assert "serving 3 documents" in line
        found = post(line.split(" at ")[1].strip(), {"queries": ["novel"]}).document["result"]
        assert [d["title"] for d in found[0]] == ["Ulysses"]
        process.terminate()
        out, _ = process.communicate(timeout=20)
    finally:
        process.kill()
    assert json.loads(out)["requests"] == 1


def test_the_command_serves_one_thing(corpus):
    done = subprocess.run(
        [sys.executable, "-m", "rewardlab", "serve", "--corpus", str(corpus), "--reward", "math"], capture_output=True, text=True
    )
    assert done.returncode
    assert "serve each by a process of its own" in done.stdout + done.stderr


# ---- before a run -----------------------------------------------------------------------------------------------------------


def test_an_engine_that_does_not_answer_is_told_before_a_model_is_loaded(corpus, tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"{i}?", "answer": "1"}) + "\n" for i in range(20)))
    small = {"task": str(rows), "device": "cpu", "max_new": 4}
    nobody = "http://localhost:9/retrieve"
    says = f"the search engine at {nobody} failed: connection refused. Start it .rewardlab serve --corpus"
    for method in ("grpo", "igpo"):
        with pytest.raises(RewardlabError, match=says):
            rewardlab.plan(build(method, {"corpus": nobody}), "no_such_model", **small)
    with pytest.raises(RewardlabError, match=says):
        rewardlab.train(build("grpo", {"corpus": nobody}), "untrained", out=tmp_path / "run", **small)
    assert not (tmp_path / "run").exists()
    with pytest.raises(RewardlabError, match=says):
        rewardlab.answer(build("majority_vote", {"corpus": nobody}), "no_such_model", **small)
    # whoever asked it so often in vain is told so
    with pytest.raises(RewardlabError, match="failed 5 searches in a row"):
        rewardlab.evaluate("no_such_model", env=tools(None, nobody), **small)
    with listening(made(corpus)) as url:
        assert rewardlab.plan(build("grpo", {"corpus": url, "turns": 2}), "untrained", **small)["replies_per_episode"] == 2
        assert retriever_at(url).answered == 1
