"""A served model as a policy: what it reads and says is what a policy reads and says that runs here."""

import numpy as np
import pytest
import torch
from served_model import Server, choice, serving

from rewardlab import api, registry
from rewardlab.core import Message, Sampling, Task, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.models.load import load_policy
from rewardlab.policies.served import ServedPolicy, cut, messages_of
from rewardlab.rewards.task import correct


@pytest.fixture(scope="module")
def lean():
    return load_policy("untrained", "cpu")


@pytest.fixture(scope="module")
def running(lean):
    with serving(policy=lean) as server:
        yield server


@pytest.fixture
def server(running) -> Server:
    running.troubles, running.asked = [], []
    return running


def begun(policy, *questions: str) -> list[Trajectory]:
    problems = [ask(q, system="Be short.") for q in questions]
    return policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])


def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_it_says_what_the_model_behind_the_server_says(server, lean):
    greedy = Sampling(6, temperature=0.0)
    (here,) = lean.extend(begun(lean, "2 + 2?"), greedy, rng())
    served = load_policy(server.name)
    (there,) = served.extend(begun(served, "2 + 2?"), greedy, rng())
    assert there.reply == here.reply != ""
    assert there.stop == here.stop == "length"
    assert served.decode(there.turns[-1].ids) == there.reply
    assert (there.turns[-1].author, there.turns[-1].logprobs) == ("policy", None)
    assert served.token_count.generated == 6
    assert server.asked[0]["messages"] == [{"role": "system", "content": "Be short."}, {"role": "user", "content": "2 + 2?"}]


def test_replies_differ_by_seeds_of_the_runs_random_stream(server):
    served = load_policy(server.name)

    def replies() -> list[str]:
        return [t.reply for t in served.extend(begun(served, *["2 + 2?"] * 3), Sampling(6), rng())]

    first = replies()
    assert len(set(first)) == 3
    assert replies() == first
    assert len({body["seed"] for body in server.asked}) == 3


def test_a_dialogue_is_sent_whole_and_with_its_roles():
    with serving(lambda body: f"reply {len(body['messages'])}") as server:
        served = load_policy(server.name)
        rows = served.extend(begun(served, "first?"), Sampling(6), rng())
        rows = served.read(rows, [(Message("tool", "42"), Message("user", "second?"))])
        (row,) = served.extend(rows, Sampling(6), rng())
        assert row.replies == ["reply 2", "reply 5"]
        sent = server.asked[-1]["messages"]
        # servers refuse a message of the role tool that follows no tool_calls of theirs: it is told in words
        assert [m["role"] for m in sent] == ["system", "user", "assistant", "user", "user"]
        assert sent[3]["content"] == "<tool_response>\n42\n</tool_response>"
        with pytest.raises(RewardlabError, match=r"begins a new reply.*prefill=true"):
            served.extend([row], Sampling(6), rng())
        going_on = load_policy(f"{server.name},prefill=true")
        (row,) = going_on.extend([row], Sampling(6), rng())
        assert server.asked[-1]["continue_final_message"] is True
        assert row.replies == ["reply 2", "reply 5reply 6"]


def test_text_of_another_policy_is_read_from_its_turns(lean):
    rows = lean.read(lean.write(begun(lean, "q?"), ["a"]), [(Message("user", "r?"),)])
    assert messages_of(rows[0]) == (("system", "Be short."), ("user", "q?"), ("assistant", "a"), ("user", "r?"))


@pytest.mark.parametrize("tells", [True, False])
def test_stop_strings_stay_in_the_reply_and_nothing_comes_after_them(tells):
    """Servers leave them out; most do not say which one it was, and then cannot be told to stop there."""
    full = "<a>x</a> and <b>y</b> and more"

    def says(body):
        stops = [(at, s) for s in body.get("stop", ()) if (at := full.find(s)) >= 0]
        at, by = min(stops, default=(len(full), None))
        return choice(full[:at], **({"stop_reason": by} if tells else {}))

    with serving(says) as server:
        served = load_policy(server.name)
        for _ in range(2):
            (row,) = served.extend(begun(served, "q?"), Sampling(6, stop=("</b>", "</a>")), rng())
            assert (row.reply, row.stop) == ("<a>x</a>", "stop")
        (row,) = served.extend(begun(served, "q?"), Sampling(6, stop=("nowhere",)), rng())
        assert (row.reply, row.stop) == (full, "end")
        # without being told: asked again without stop strings once, and never with them afterwards
        assert ["stop" in body for body in server.asked] == ([True] * 3 if tells else [True, False, False, False])


def test_a_reply_is_cut_at_the_first_end_of_a_line_that_suffices():
    two_lines = Sampling(stop=("never",), stop_when=lambda text: text.count("\n") >= 2)
    assert cut("a\nb\nc\n", two_lines) == ("a\nb\n", "predicate")
    assert cut("a\nb", two_lines) == ("a\nb", None)


def test_log_probs_are_those_of_the_model_behind_the_server(server, lean, tmp_path):
    lean.save_tokenizer(tmp_path)
    served = load_policy(f"{server.name},tokenizer={tmp_path}")
    rows = lean.write(begun(lean, "2 + 2?", "a longer question?"), ["4", "no"])
    for here, there in zip(lean.score(rows), served.score(rows), strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-5)
    assert [t.ids.tolist() for t in begun(served, "2 + 2?")] == [t.ids.tolist() for t in begun(lean, "2 + 2?")]
    with pytest.raises(RewardlabError, match="need its tokenizer"):
        load_policy(server.name).score(rows)
    with serving() as mute, pytest.raises(RewardlabError, match="does not score prompts"):
        load_policy(f"{mute.name},tokenizer={tmp_path}").score(rows)


def test_a_reply_that_does_not_come_ends_it_and_says_how_to_go_on(server):
    server.troubles = ["400"]
    served = load_policy(server.name)
    with pytest.raises(RewardlabError, match=r"gave no reply: HTTP 400.*run the same again to resume"):
        served.extend(begun(served, "q?"), Sampling(6), rng())


def test_it_cannot_be_trained_and_nothing_is_written(server, tmp_path):
    out = tmp_path / "run"
    for model in (server.name, ServedPolicy.load(server.name)):
        with pytest.raises(RewardlabError, match="a served model cannot be trained"):
            api.train("grpo", model, "arithmetic", out=out, steps=1)
    assert not out.exists()
    assert not server.asked
    served = load_policy(server.name)
    assert not hasattr(served, "adapt")
    with pytest.raises(RewardlabError, match="cannot be trained"):
        served.evaluate(None)
    with pytest.raises(RewardlabError, match="cannot be trained"):
        load_policy(server.name, lora_rank=4)


def test_best_of_n_and_evaluation_by_the_tasks_verifier():
    """The model knows the answer to one problem in two, so that both are known."""
    with serving(lambda body: "so 4\n#### 4" if "2 + 2" in body["messages"][-1]["content"] else "#### 5") as server:
        task = Task("sums", [ask("2 + 2?", "4")], (ask("2 + 2?", "4"), ask("7 + 7?", "14")), "math")
        found = api.answer(registry.build("best_of_n").but(reward=correct()), server.name, task, problems=2)
        assert found["accuracy"]["value"] == 0.5
        assert api.evaluate(server.name, task, k=(1, 2), problems=2)["pass@2"]["value"] == 0.5
        assert api.answer("majority_vote", server.name, prompt="2 + 2?")["answer"] == "so 4\n#### 4"
