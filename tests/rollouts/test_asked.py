"""Other models asked within an episode: behind an address, and of the run."""

from __future__ import annotations

from rewardlab.clients.messages import Failure, Reply
from rewardlab.core import Message, Run
from rewardlab.models.embedded import untrained
from rewardlab.rollouts.asked import replies_by
from tests.helpers.served_model import serving


def test_a_served_model_is_asked_with_all_prompts_at_once():
    with serving(lambda body: f"heard {body['messages'][-1]['content']}") as server:
        found = replies_by(Run(None), server.name, [(Message("user", "a"),), (Message("user", "b"),)], 20)
        assert [reply.text for reply in found] == ["heard a", "heard b"]
        assert {body["max_tokens"] for body in server.asked} == {20}
        assert replies_by(Run(None), server.name, [], 20) == []


def test_a_model_of_the_run_says_how_much_it_wrote_and_refuses_what_does_not_fit():
    run = Run(None, models={"other": untrained()})
    fits, long = replies_by(run, "other", [(Message("user", "2+3=?"),), (Message("user", "many words " * 500),)], 4)
    assert isinstance(fits, Reply)
    assert 1 <= fits.tokens <= 4
    assert isinstance(long, Failure)
    assert "does not fit the context of 'other'" in long.why
