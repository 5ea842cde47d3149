"""The client against a real server, which answers properly, late, by halves, or not at all."""

import threading
from collections.abc import Callable

import pytest
from served_model import NAME, Server, choice, echo, serving

from rewardlab.clients.cache import Cache
from rewardlab.clients.client import Client, client_of
from rewardlab.clients.endpoint import endpoint_of
from rewardlab.clients.messages import Failure, Reply, Request
from rewardlab.errors import RewardlabError


@pytest.fixture(scope="module")
def running():
    with serving() as server:
        yield server


@pytest.fixture
def server(running, monkeypatch, tmp_path) -> Server:
    """The server as it was when it began."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path))
    running.troubles, running.asked, running.headers, running.at, running.models = [], [], [], [], [NAME]
    running.slow, running.most = 0.0, 0
    return running


def client(server: Server, **options: object) -> Client:
    return Client(endpoint_of(",".join([server.name, *(f"{key}={value}" for key, value in options.items())])))


def ask(*texts: str, **settings: object) -> list[Request]:
    return [Request((("user", text),), 8, **settings) for text in texts]


def said(replies: list) -> list[str]:
    return [r.text if isinstance(r, Reply) else r.why for r in replies]


def test_many_requests_are_under_way_at_a_time_but_no_more_than_may_be(server):
    server.slow = 0.02
    texts = [f"question {i}" for i in range(12)]
    assert said(client(server, concurrency=3).chat(ask(*texts))) == texts
    assert server.most == 3


@pytest.mark.parametrize("trouble", ["429", "500", "503", "half", "not json", "wrong json"])
def test_what_may_pass_is_tried_again(server, trouble):
    server.troubles = [trouble, trouble]
    assert said(client(server).chat(ask("hello"))) == ["hello"]
    assert len(server.asked) == 3


@pytest.mark.parametrize("trouble", ["400", "422", "501"])
def test_a_request_that_is_refused_is_not_tried_again_and_the_others_are_answered(server, trouble):
    server.troubles = [trouble]
    first, second = client(server, concurrency=1).chat(ask("a", "b"))
    assert isinstance(first, Failure)
    assert f"HTTP {trouble}: told to say {trouble}" in first.why
    assert (second.text, len(server.asked)) == ("b", 2)


@pytest.mark.parametrize(
    ("trouble", "advice"), [("401", "set OPENAI_API_KEY"), ("404", "model's name"), ("429 insufficient_quota", "no credit")]
)
def test_a_wrong_key_or_address_or_no_credit_ends_it_at_once(server, trouble, advice):
    server.troubles = [trouble]
    with pytest.raises(RewardlabError, match=rf"small at http://127.*HTTP {trouble[:3]}.*{advice}"):
        client(server, concurrency=1).chat(ask("a", "b", "c"))
    assert len(server.asked) == 1


def test_retry_after_is_honoured(server):
    server.troubles = ["429 0.08"]
    client(server).chat(ask("a"))
    assert server.at[1] - server.at[0] >= 0.08
    # longer than the request may take in all: not waited for
    server.troubles = ["429 100"]
    (failed,) = client(server, total=10).chat(ask("a"))
    assert "asks to wait 100 s, which is longer than total=" in failed.why


def test_tries_end(server):
    server.troubles = ["500"] * 10
    (failed,) = client(server, retries=2).chat(ask("a"))
    assert "HTTP 500" in failed.why
    assert "tried 3 times" in failed.why
    assert len(server.asked) == 3


def test_a_server_that_hangs_is_left(server):
    server.troubles = ["hang"] * 2
    (failed,) = client(server, timeout=0.05, retries=1).chat(ask("a"))
    assert failed == Failure("no answer within 0.05 s (tried 2 times)", timed_out=True)


def test_replies_are_kept_on_disk_by_all_that_they_depend_on(server, tmp_path):
    def fresh() -> Client:
        return client(server, cache="true")

    first, usage = fresh(), fresh().usage
    one = ask("a", temperature=1.0, seed=1)
    assert said(first.chat(one)) == said(fresh().chat(one)) == ["a"]
    assert len(server.asked) == 1
    others = [ask("b", temperature=1.0, seed=1), ask("a", temperature=0.5, seed=1), ask("a", temperature=1.0, seed=2),
              ask("a", temperature=1.0, seed=1, sample=1), ask("a", temperature=1.0, seed=1, stop=("x",)),
              ask("a", temperature=1.0, seed=1, top_p=0.5), ask("a", temperature=1.0, seed=1, likely=5)]  # fmt: skip
    for i, request in enumerate(others, 2):
        fresh().chat(request)
        assert len(server.asked) == i
    # the same request twice at once is sent once
    assert said(first.chat(ask("twice", "twice"))) == ["twice", "twice"]
    assert len(server.asked) == len(others) + 2
    assert usage.tokens == 0
    assert (first.usage.requests, first.usage.cached) == (2, 0)
    assert (tmp_path / "served" / "replies.sqlite").is_file()


def test_without_a_cache_every_request_is_sent(server):
    client(server).chat(ask("a", "a"))
    assert len(server.asked) == 2


def test_failures_are_not_kept(server):
    server.troubles = ["400"]
    again = client(server, cache="true")
    assert isinstance(again.chat(ask("a"))[0], Failure)
    assert said(again.chat(ask("a"))) == ["a"]


@pytest.mark.parametrize("blank", [None, ""])
def test_an_answer_in_which_nothing_is_written_is_not_kept(server, monkeypatch, blank):
    again = client(server, cache="true")
    monkeypatch.setattr(server, "says", lambda body: choice(blank))
    assert said(again.chat(ask("a"))) == [""]
    monkeypatch.setattr(server, "says", echo)
    assert said(again.chat(ask("a"))) == ["a"]
    # of a reply that ran out of tokens while it was thinking another request would say no more
    monkeypatch.setattr(server, "says", lambda body: choice(blank, finish="length"))
    assert said(again.chat(ask("b"))) == [""]
    monkeypatch.setattr(server, "says", echo)
    assert said(again.chat(ask("b"))) == [""]


def test_a_broken_cache_is_said(server, tmp_path):
    path = tmp_path / "broken.sqlite"
    path.write_text("no database, but long enough to be read as the header of one " * 20)
    with pytest.raises(RewardlabError, match=r"broken.sqlite cannot be used: .*delete the file"):
        Client(endpoint_of(f"openai:{server.url}#small"), Cache(path)).chat(ask("a"))


def test_tokens_and_cost_are_counted(server):
    of = client(server, price_in=1e6, price_out=2e6)
    of.chat(ask("one two three", "four"))
    assert (of.usage.read, of.usage.written, of.usage.assumed, of.usage.cost) == (4, 4, 0, 12.0)
    # what is not counted is taken to be the most that was possible
    server.troubles = ["no usage"]
    of.chat(ask("five"))
    assert of.usage.written == 4 + 8
    assert of.usage.assumed == of.usage.tokens - 8


@pytest.mark.parametrize("at_once", [1, 8])
def test_no_request_is_sent_that_might_exceed_the_budget(server, at_once):
    (request,) = ask("some words here")
    # enough for one at a time, not for two
    of = client(server, budget=request.most_read + 8 + 20, concurrency=at_once, cache="true")
    with pytest.raises(RewardlabError, match=r"budget is used up: 24 of budget=171 tokens .* up to 148"):
        of.chat(ask(*(f"some words {i}" for i in range(9))))
    assert len(server.asked) == 4
    # what was paid for is kept, and a higher budget goes on from there
    more = client(server, budget=1000, cache="true")
    assert len(said(more.chat(ask(*(f"some words {i}" for i in range(9)))))) == 9
    assert (more.usage.cached, len(server.asked)) == (4, 9)


def test_the_budget_in_money(server):
    of = client(server, cost=1e-6, price_out=1.0)
    with pytest.raises(RewardlabError, match=r"0 of cost=1e-06 is spent, .* may cost up to 8e-06.*give a higher cost="):
        of.chat(ask("a"))
    assert not server.asked
    with pytest.raises(RewardlabError, match="needs its prices"):
        client(server, cost=1)


def test_the_key_is_sent_where_it_is_safe_and_never_said(server, monkeypatch, tmp_path):
    of = client(server)
    of.chat(ask("a"))
    assert "authorization" not in server.headers[-1]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    server.troubles = ["400"]
    of = client(server, cache="true")
    (failed,) = of.chat(ask("a"))
    assert server.headers[-1]["authorization"] == "Bearer sk-secret"
    assert "Bearer ***" in failed.why
    of.chat(ask("a"))
    assert b"sk-secret" not in b"".join(p.read_bytes() for p in (tmp_path / "served").iterdir())
    assert "sk-secret" not in repr(of) + repr(of.endpoint)
    monkeypatch.setenv("MINE", "other")
    client(server, key="MINE").chat(ask("a"))
    assert server.headers[-1]["authorization"] == "Bearer other"
    with pytest.raises(RewardlabError, match=r"environment variable NONE_SUCH.* is not set"):
        client(server, key="NONE_SUCH")
    assert not endpoint_of("openai:http://far.example/v1#m").secure


def test_a_server_that_is_not_there():
    of = Client(endpoint_of("openai:http://127.0.0.1:9/v1#m,cache=false,retries=1,backoff=0.01"))
    with pytest.raises(RewardlabError, match=r"m at http://127.0.0.1:9/v1 cannot be used: no connection .*is the server running"):
        of.chat(ask("a", "b"))


def test_a_server_that_goes_away_leaves_failures(tmp_path):
    with serving() as server:
        of = client(server, retries=0)
        of.chat(ask("a"))
    (failed,) = of.chat(ask("b"))
    assert "no connection" in failed.why


def test_the_only_model_of_a_server_needs_no_name(server):
    assert Client(endpoint_of(f"openai:{server.url}")).endpoint.model == "small"
    server.models = ["a", "b"]
    with pytest.raises(RewardlabError, match=r"serves a, b: say which, openai:http://127.*#NAME"):
        Client(endpoint_of(f"openai:{server.url}"))


@pytest.mark.parametrize(
    ("name", "url", "model"),
    [
        ("openai:http://localhost:8000#m", "http://localhost:8000/v1", "m"),
        ("openai:http://localhost:8000/v1/#a/b:free", "http://localhost:8000/v1", "a/b:free"),
        ("openai:https://h/v1/chat/completions#m", "https://h/v1", "m"),
        ("openai:https://h/proxy/openai#m,concurrency=3", "https://h/proxy/openai", "m"),
    ],
)
def test_names_are_read(name, url, model):
    assert (endpoint_of(name).url, endpoint_of(name).model) == (url, model)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("openai:gpt-4o", "not the address of a server; write openai:URL#NAME"),
        ("openai:http://u:secret@h/v1#m", "holds a password or a query"),
        ("openai:http://h#m,concurency=3", "unknown option of a served model 'concurency'; did you mean concurrency"),
        ("openai:http://h#m,budget", "'budget' of a served model has no value"),
        ("openai:http://h#m,retries=-1", "retries of a served model must be a whole number from 0 up, not -1"),
        ("openai:http://h,budget=1#m", "options follow the model's name"),
    ],
)
def test_names_that_cannot_be_read(name, says):
    with pytest.raises(RewardlabError, match=says) as error:
        endpoint_of(name)
    assert "secret" not in str(error.value)


def test_any_text_can_be_sent(server):
    server.says, before = (lambda body: ascii(body["messages"][0]["content"])), server.says
    odd = ["\x00", "\ud800", "€ \u202e 🙂", ""]
    assert said(client(server, cache="true").chat(ask(*odd))) == [ascii(text) for text in odd]
    server.says = before


def test_it_may_be_asked_from_several_threads(server):
    of, found = client(server), []

    def work(text: str) -> Callable[[], None]:
        return lambda: found.extend(said(of.chat(ask(text))))

    threads = [threading.Thread(target=work(f"q{i}")) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == ["q0", "q1", "q2", "q3"]


def test_one_client_serves_all_that_ask_for_the_same_model(server):
    assert client_of(server.name) is client_of(server.name)
