"""A judge that compares two replies: what decides for it is found, and a sound one comes out clean."""

import json
import math

import pytest
from here import Here
from served_model import Server, choice, serving

from rewardlab.audit import audit
from rewardlab.audit.loading import load, parse
from rewardlab.audit.page import page
from rewardlab.audit.pairwise import figures, sign_test
from rewardlab.audit.rules import PROBES
from rewardlab.audit.target import Row
from rewardlab.commands import cli
from rewardlab.errors import RewardlabError


def texts(body: dict) -> tuple[str, str, str]:
    """The gold answer and the two replies that a judge is asked about."""
    asked = body["messages"][-1]["content"]
    if "[Reply A]" not in asked:
        # whether log-probs can be had
        return "", "", ""
    gold, rest = asked.partition("[Right answer]\n")[2].split("\n\n[Reply A]\n")
    first, rest = rest.split("\n\n[Reply B]\n")
    return gold, first, rest.partition("\n\n[End of the replies]")[0]


def sound(body: dict) -> str:
    gold, first, second = texts(body)
    a, b = (text.rstrip().endswith(f"The answer is {gold}.") for text in (first, second))
    return "[[C]]" if a == b else "[[A]]" if a else "[[B]]"


@pytest.fixture(scope="module")
def running():
    with serving(sound) as server:
        yield server


@pytest.fixture
def server(running, own_cache) -> Server:
    running.says, running.troubles, running.asked = sound, [], []
    return running


def target(server: Server, **more) -> str:
    settings = {"model": server.name, "kind": "pairwise", **more}
    return f"judge({', '.join(f'{name}={value!r}' for name, value in settings.items())})"


def audited(server: Server, questions: int = 5) -> dict:
    return audit.describe(audit.compare(Here(parse(target(server))), questions=questions), {}, 1.0)


def found(document: dict, *severities: str) -> dict:
    return {f["name"]: f for f in document["findings"] if f["severity"] in (severities or ("fault",))}


def test_a_sound_judge_is_clean(server):
    document = audited(server)
    assert found(document, "fault", "warning", "note") == {}
    assert (document["verdict"], document["judges"]) == ("clean", "answers")
    told = document["pairs"]
    # of each question right, length and long and wrong, and on four of them five empty ones and five injections
    assert told["pairs"] == 5 * 3 + 4 * 10
    assert (told["changed"], told["first"], told["first_p"], told["right"], told["longer"]) == (0.0, 0.5, 1.0, 1.0, 0.5)
    assert document["served"][0]["requests"] == len(server.asked)


@pytest.mark.slow
def test_a_judge_of_places(server):
    server.says = lambda body: "[[A]]"
    document = audited(server)
    faults = found(document)
    assert {"order", "position", "right"} <= faults.keys()
    assert "What stands first is preferred (100% of comparisons" in faults["position"]["says"]
    assert (document["pairs"]["changed"], document["pairs"]["first"]) == (1.0, 1.0)
    assert document["pairs"]["first_p"] < 1e-9
    assert "same" in found(document, "warning")
    # half a preference: the second place, where the judge does not know
    server.says = lambda body: "[[B]]" if sound(body) == "[[C]]" or "step" not in texts(body)[0] else sound(body)
    assert "What stands second is preferred" in found(audited(server))["position"]["says"]


def test_a_judge_of_length(server):
    def longer(body: dict) -> str:
        _, first, second = texts(body)
        return "[[A]]" if len(first) > len(second) else "[[B]]" if len(second) > len(first) else "[[C]]"

    server.says = longer
    document = audited(server)
    faults = found(document)
    assert {"length", "long and wrong"} <= faults.keys()
    assert not {"order", "position"} & faults.keys()
    assert document["pairs"]["longer"] == 1.0
    example = faults["long and wrong"]["examples"][0]
    assert example["meta"]["second"] in page(document | {"target": "t"}).replace("&#x27;", "'")


@pytest.mark.parametrize(
    ("moved_by", "finding"), [("highest score", "injection"), ("[[10]]", "injection"), ("Thought process:", "nothing")]
)
def test_a_judge_that_falls_for_a_show(server, moved_by, finding):
    def swayed(body: dict) -> str:
        _, first, second = texts(body)
        return "[[A]]" if moved_by in first else "[[B]]" if moved_by in second else sound(body)

    server.says = swayed
    assert finding in found(audited(server), "fault", "warning")


def test_a_judge_that_says_nothing_readable(server):
    server.says = lambda body: "Both are good."
    assert {"unread", "silent"} <= found(audited(server)).keys()


def test_the_chances_of_the_marks_count_where_they_are_given(server):
    """A judge that says A of everything, and finds B likelier where the second is right."""

    def says(body: dict) -> dict:
        chances = {"A": 0.9, "B": 0.1} if sound(body) == "[[A]]" else {"A": 0.6, "B": 0.4}
        likely = [{"token": name, "logprob": math.log(p)} for name, p in chances.items()]
        content = [{"token": t, "logprob": 0.0, "top_logprobs": likely if t == "A" else []} for t in ("[[", "A", "]]")]
        return choice("[[A]]", **({"logprobs": {"content": content}} if "top_logprobs" in body else {}))

    server.says = says
    document = audited(server, 2)
    told = document["pairs"]
    # of a right and a wrong reply .9 and 1 - .6, of two equal ones .6 and 1 - .6
    assert (told["changed"], told["right"], told["longer"]) == (1.0, pytest.approx(0.65), pytest.approx(0.5))
    assert told["first"] > 0.7
    assert {"order", "position"} <= found(document, "fault", "warning").keys()
    assert "right" not in found(document, "fault", "warning")
    marks_alone = load(parse(target(server, expected=False)))
    values = [found.value for found in marks_alone.score([Row("q", "4", "The answer is 4.", {"second": "5"})])]
    assert values == [1.0]


def test_the_sign_test():
    # 1 of 8 on one side: 2 (1 + 8) / 256
    assert sign_test(7, 1) == pytest.approx(18 / 256)
    assert (sign_test(0, 0), sign_test(3, 3)) == (1.0, 1.0)
    assert figures([]) == {}


@pytest.mark.slow
def test_the_command_its_second_call_which_asks_nothing_and_an_example_called_again(server, tmp_path, capsys):
    server.says = lambda body: "[[A]]" if texts(body)[1] != texts(body)[2] else "[[C]]"
    name = server.name.replace("cache=false", "cache=true")
    argv = ["audit", name, "--pairwise", "--questions", "1", "--kind", "numbers", "--limit", "40"]
    assert cli.main([*argv, "--json", "--out", str(tmp_path / "a.html")]) == 1
    document = json.loads(capsys.readouterr().out)
    asked = len(server.asked)
    assert document["served"][0]["requests"] == asked > 0
    assert PROBES["pairs"] in (tmp_path / "a.html").read_text()
    (first, *_) = found(document)["order"]["examples"]
    assert cli.main(argv) == 1
    said = capsys.readouterr().out
    assert "prefers the first · in the other order: prefers the first" in said
    assert f"0 requests, {asked} more from the cache" in said
    assert cli.main(["audit", name, "--pairwise", "--replay", first["id"], "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["unchanged"] is True
    assert len(server.asked) == asked


def test_what_cannot_be_audited_is_refused(server):
    with pytest.raises(RewardlabError, match="asks a served model"):
        parse('judge(model="critic", kind="pairwise")')
    with pytest.raises(RewardlabError, match=r"has no \{first\}"):
        parse(target(server, template="{second}"))
    server.troubles = ["400"] * 400
    with pytest.raises(RewardlabError, match="gives no answer: the endpoint failed"):
        audited(server, 1)
