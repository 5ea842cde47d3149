"""A model as a judge: what it is asked, how its judgement is read, and that no judgement is never a bad one."""

import json
import math

import numpy as np
import pytest
from served_model import Server, choice, serving

from rewardlab import api, registry
from rewardlab.clients.messages import Failure, Reply, Token
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.judges.marks import PREFERENCES, VERDICTS, Marks
from rewardlab.models.load import load_policy
from rewardlab.registry.formula import read_reward
from rewardlab.rewards.judge import judge
from rewardlab.runs.config import RunConfig
from rewardlab.settings.options import is_relative

SCALE = Marks(low=1, high=5)


def group(*replies: str, question: str = "2 + 2?", answer: str | None = "4") -> list[Trajectory]:
    problem = ask(question, answer)
    return [Trajectory(problem, (Turn("policy", np.zeros(1, np.int64), text=reply),), "end") for reply in replies]


def values(scores: list) -> list:
    return [[s.value for s in row] for row in scores]


def says(body: dict) -> str:
    """A judge of numbers: it likes larger ones, takes 4 for right, and says nothing readable of what is no number."""
    prompt = body["messages"][-1]["content"]

    def between(start: str, end: str) -> str:
        return prompt.split(start)[1].split(end)[0].strip()

    if "[Reply A]" in prompt:
        a, b = between("[Reply A]\n", "\n\n[Reply B]"), between("[Reply B]\n", "\n\n[End")
        if not (a.isdigit() and b.isdigit()):
            return "I cannot tell."
        return "[[A]]" if int(a) > int(b) else "[[B]]" if int(b) > int(a) else "[[C]]"
    reply = between("[Reply]\n", "\n\n[End")
    if not reply.isdigit():
        return "What is that?"
    return f"[[{'yes' if reply == '4' else 'no'}]]" if "[[yes]]" in prompt else f"I think [[9]] of it, or rather [[{reply}]]"


@pytest.fixture(scope="module")
def running():
    with serving(says) as server:
        yield server


@pytest.fixture
def server(running) -> Server:
    running.troubles, running.asked = [], []
    return running


def test_a_scale_from_0_to_1_and_no_verdict_where_none_can_be_read(server):
    run = Run(None)
    scores = judge(model=server.name)([group("1", "5", "9"), group("3", "hm")], run)
    assert values(scores) == [[0.0, 1.0, None], [0.5, None]]
    assert (scores[0][1].extracted, scores[0][1].why) == ("5", "I think [[9]] of it, or rather [[5]]")
    assert "no mark that can be read in the judgement 'What is that?'" in scores[1][1].why
    assert run.metrics["judge_no_verdict"] == 0.4


def test_a_verdict(server):
    assert values(judge(model=server.name, kind="verdict")([group("4", "5", "hm")], Run(None))) == [[1.0, 0.0, None]]


def test_a_failure_is_no_verdict_and_the_others_are_judged(server):
    server.troubles = ["no usage", "400", "400"]
    name = f"{server.name},concurrency=1"
    scores = judge(model=name, expected=False)([group("4", "4 "), group("4", "5")], Run(None))
    assert [[s.missing for s in row] for row in scores] == [[False, True], [True, False]]
    assert "the judge failed: HTTP 400" in scores[0][1].why


def test_pairs_in_both_orders(server):
    run = Run(None)
    scores = judge(model=server.name, kind="pairwise", expected=False)(
        [group("1", "7", "5", "5"), group("3"), group("2", "2")], run
    )
    # 5 loses to 7, wins against 1; the same text is not asked about
    assert values(scores) == [[0.0, 1.0, 0.5, 0.5], [None], [0.5, 0.5]]
    assert len(server.asked) == 10
    assert scores[1][0].why == "no other reply to compare it with"
    assert run.metrics["judge_prefers_first"] == 0.5
    near = judge(model=server.name, kind="pairwise", expected=False, opponents=1)([group("1", "7", "5", "6")], run)
    assert values(near) == [[0.0, 1.0, 0.0, 1.0]]


def test_a_comparison_of_which_one_order_cannot_be_read_does_not_count():
    def once(body: dict) -> str:
        return "[[A]]" if "[Reply A]\n1" in body["messages"][-1]["content"] else "no idea"

    with serving(once) as server:
        scores = judge(model=server.name, kind="pairwise", expected=False)([group("1", "2")], Run(None))
    assert values(scores) == [[None, None]]
    assert "no mark" in scores[0][0].why


def test_a_judge_that_prefers_what_stands_first_gains_nothing_and_shows():
    run = Run(None)
    with serving(lambda body: "[[A]]") as server:
        assert values(judge(model=server.name, kind="pairwise")([group("1", "2")], run)) == [[0.5, 0.5]]
    assert run.metrics["judge_prefers_first"] == 1.0


def test_the_template_is_a_text_or_a_file_and_filled_in_one_go(server, tmp_path):
    file = tmp_path / "judge.txt"
    file.write_text('{"q": {prompt}} gold {answer}, {low} to {high} [Reply]\n{reply}\n\n[End')
    for template in (file.read_text(), str(file)):
        judge(model=server.name, template=template, expected=False)([group("{answer}")], Run(None))
        assert server.asked[-1]["messages"][0]["content"] == '{"q": 2 + 2?} gold 4, 1 to 5 [Reply]\n{answer}\n\n[End'
    judge(model=server.name, expected=False)([group("4", answer=None)], Run(None))
    assert "Right answer" not in server.asked[-1]["messages"][0]["content"]


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"model": "openai:nowhere"}, "not the address of a server"),
        ({"model": "critic", "low": 5, "high": 5}, "low must be below high"),
        ({"model": "critic", "template": "none.txt"}, r"none.txt is neither a text with \{reply\} in it nor a file"),
        ({"model": "critic", "template": "{prompt}"}, r"has no \{reply\} in it"),
        (
            {"model": "critic", "kind": "pairwise", "template": "{first}"},
            r"has no \{second\} in it, which a judge of kind 'pairwise'",
        ),
        ({}, "judge needs model"),
    ],
)
def test_wrong_settings_are_refused_where_they_are_written(settings, what):
    with pytest.raises(RewardlabError, match=what):
        judge(**settings)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[[4]]", 0.75), ("first [[1]], then [[ 5 ]]", 1.0), ("[[2.5]]", 0.375), ("[[0]]", None), ("[[6]]", None),
        ("score: 4", None), ("4", None), ("[[four]]", None), ("[[nan]]", None), ("", None), ("[[3]] [[x]]", None),
        ("[[-1]]", None), ("[[1e0]]", None),
    ],
)  # fmt: skip
def test_marks_are_read_strictly(text, value):
    assert SCALE.value(Reply(text))[0] == value


def test_words_as_marks():
    assert [Marks(VERDICTS).value(Reply(t))[0] for t in ("[[Yes]]", "[[no]]", "[[maybe]]", "yes")] == [1.0, 0.0, None, None]
    assert [Marks(PREFERENCES).value(Reply(t))[0] for t in ("[[A]]", "[[b]]", "[[C]]")] == [1.0, 0.0, 0.5]
    assert Marks(VERDICTS).value(Failure("down")) == (None, "the judge failed: down")


def tokens(*pieces: str, at: int, chances: dict[str, float]) -> tuple[Token, ...]:
    likely = {text: math.log(p) for text, p in chances.items()}
    return tuple(Token(piece, likely if i == at else {piece: 0.0}) for i, piece in enumerate(pieces))


def test_the_expected_value_over_the_chances_of_the_mark():
    plain = tokens("[[", "4", "]]", at=1, chances={"4": 0.6, "5": 0.2, "x": 0.2})
    assert SCALE.value(Reply("[[4]]", chances=plain))[0] == pytest.approx((0.6 * 0.75 + 0.2 * 1.0) / 0.8)
    # brackets and spaces within the token, and a mark before the last one
    glued = tokens("[[1]]", " or [[", " 2]]", at=2, chances={" 2]]": 0.5, " 4]]": 0.25, "4]]": 0.2, " ]]": 0.05})
    assert SCALE.value(Reply("[[1]] or [[ 2]]", chances=glued))[0] == pytest.approx((0.5 * 0.25 + 0.25 * 0.75) / 0.75)
    words = tokens("[[", "y", "es", "]]", at=1, chances={"y": 0.75, "n": 0.25})
    assert Marks(VERDICTS).value(Reply("[[yes]]", chances=words))[0] == pytest.approx(0.75)


def test_without_chances_that_fit_the_mark_itself_counts():
    other = tokens("something else", at=0, chances={"a": 1.0})
    assert SCALE.value(Reply("[[4]]", chances=other))[0] == 0.75
    # 1 begins 10 too: one token does not tell them apart
    ten = Marks(low=1, high=10)
    assert ten.value(Reply("[[10]]", chances=tokens("[[", "1", "0", "]]", at=1, chances={"1": 0.5, "9": 0.5})))[0] == 1.0
    # a score between two has no token
    assert SCALE.value(Reply("[[4.5]]", chances=tokens("[[", "4", ".5]]", at=1, chances={"4": 1.0})))[0] == 0.875


def test_chances_are_asked_for_where_the_server_gives_them():
    def with_chances(body: dict) -> dict:
        if "top_logprobs" not in body:
            return choice("[[4]]")
        likely = [{"token": "4", "logprob": math.log(0.5)}, {"token": "2", "logprob": math.log(0.5)}]
        content = [{"token": t, "logprob": 0.0, "top_logprobs": likely if t == "4" else []} for t in ("[[", "4", "]]")]
        content[1]["logprob"] = math.log(0.5)
        return choice("[[4]]", logprobs={"content": content})

    for name, expected in (("with", 0.5), ("without", 0.75)):
        with serving(with_chances if name == "with" else lambda body: "[[4]]") as server:
            assert values(judge(model=server.name)([group("q")], Run(None))) == [[pytest.approx(expected)]]
            assert ("top_logprobs" in server.asked[-1]) == (name == "with")
            assert values(judge(model=server.name, expected=False)([group("q")], Run(None))) == [[0.75]]


def test_a_model_of_the_run_judges_too():
    policy = load_policy("untrained", "cpu")
    run = Run(policy, models={"critic": policy})
    (row,) = judge(model="critic", max_new=4)([group("4", "5")], run)
    assert [s.missing for s in row] == [True, True]
    assert policy.token_count.generated > 0
    (row,) = judge(model="critic", max_new=1 << 20)([group("4")], run)
    assert "does not fit the context" in row[0].why


def in_turn(*said: str):
    """A judge that says these texts in turn, with what it was sent."""
    left = iter(said)
    return serving(lambda body: next(left))


def test_the_mean_of_several_judgements_counts_and_each_is_sampled_afresh():
    with in_turn("[[5]]", "[[3]]", "hm", "[[1]]", "[[1]]", "[[2]]") as server:
        scores = judge(model=f"{server.name},concurrency=1", samples=3, temperature=1.0, expected=False)(
            [group("a", "b")], Run(None)
        )
        seeds = [body["seed"] for body in server.asked]
    # (1 + .5) / 2 without what cannot be read; (0 + 0 + .25) / 3
    assert values(scores) == [[0.75, pytest.approx(0.25 / 3)]]
    assert scores[0][0].extracted == "5, 3"
    assert len(set(seeds)) == 6


def test_judgements_of_both_orders_are_sampled_alike():
    # a before b: A, then B; b before a: B, then B. a wins the first order half of the time, the second always
    with in_turn("[[A]]", "[[B]]", "[[B]]", "[[B]]") as server:
        paid = judge(model=f"{server.name},concurrency=1", kind="pairwise", samples=2, temperature=1.0, expected=False)
        assert values(paid([group("a", "b")], Run(None))) == [[0.75, 0.25]]


def test_a_judge_reads_no_thoughts_unless_it_is_asked_to(server):
    thinking, cut_off = "<think>It is 5, surely.</think>4", "<think>Is it 4?"
    paid = judge(model=server.name, kind="verdict")
    # of a reply that was cut off in its thoughts there is nothing to judge
    assert values(paid([group("4", thinking, cut_off)], Run(None))) == [[1.0, 1.0, None]]
    prompts = [body["messages"][-1]["content"] for body in server.asked]
    assert not any("surely" in prompt or "Is it 4?" in prompt for prompt in prompts)
    judge(model=server.name, kind="verdict", thoughts=True)([group(thinking)], Run(None))
    assert "surely" in server.asked[-1]["messages"][-1]["content"]
    # two replies and two that only thought otherwise: the pair is judged by what was said
    assert values(judge(model=server.name, kind="pairwise")([group("<think>a</think>5", "<think>b</think>3")], Run(None))) == [
        [1.0, 0.0]
    ]


def test_samples_at_temperature_0_are_refused():
    with pytest.raises(RewardlabError, match="give the judge a temperature"):
        judge(model="policy", samples=4)


def test_a_judge_that_compares_says_that_its_pay_depends_on_the_group():
    assert [is_relative(judge(model="policy", kind=k)) for k in ("scale", "verdict", "pairwise", "scores")] == [
        False,
        False,
        True,
        True,
    ]
    assert is_relative(judge(model="policy", template="deepseek_grm"))
    assert not is_relative(judge(model="policy", template="prometheus"))


def test_grpo_with_a_judge_as_its_reward(tmp_path):
    def by_length(body: dict) -> str:
        reply = body["messages"][0]["content"].split("[Reply]\n")[1].split("\n\n[End")[0]
        return f"[[{1 + len(reply) % 5}]]"

    with serving(by_length) as server:
        reward = read_reward(f'judge(model="{server.name}")')
        recipe = registry.build("grpo", {"n": 4}).but(reward=reward)
        config = RunConfig(steps=1, max_new=4, eval_problems=2)
        result = api.train(
            recipe, load_policy("untrained", "cpu"), "arithmetic:difficulty=1,test_size=4", config=config, out=tmp_path / "run"
        )
    rows = [json.loads(line) for line in (result.out / "metrics.jsonl").read_text().splitlines()]
    assert [row["judge_no_verdict"] for row in rows if "judge_no_verdict" in row] == [0.0]
    assert 0.0 < rows[-1]["reward"] < 1.0
    assert registry.load_recipe(json.loads((result.out / "config.json").read_text())["recipe"]).reward == reward
