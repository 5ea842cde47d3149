"""Signals that ask to stop are obeyed at a good moment, and said at once."""

import os
import signal
import threading

import pytest

from rewardlab.errors import Stopped
from rewardlab.util import signals
from rewardlab.util.signals import stopping_at_once, stopping_later


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (signal.SIGINT, "rewardlab: finishing this step, then saving; Ctrl-C again stops now\n"),
        (signal.SIGTERM, "rewardlab: SIGTERM: finishing this step, then saving\n"),
    ],
)
def test_the_first_signal_is_noted_and_said_at_once(number, said, capfd):
    before = [signal.getsignal(n) for n in signals.STOPPING]
    with stopping_later("this step") as asked:
        assert asked.number == 0
        send(number)
        assert asked.number == number
        assert capfd.readouterr().err == said
    assert [signal.getsignal(n) for n in signals.STOPPING] == before


def test_a_second_ctrl_c_stops_and_a_second_sigterm_does_not():
    with stopping_later("this step", quiet=True) as asked:
        send(signal.SIGTERM)
        send(signal.SIGTERM)
        assert asked.number == signal.SIGTERM
        with pytest.raises(Stopped, match="stopped by SIGINT"):
            send(signal.SIGINT)


def test_a_ctrl_c_that_a_launcher_repeats_is_one(monkeypatch):
    with stopping_later("this step", quiet=True, started_together=True) as asked:
        send(signal.SIGINT)
        send(signal.SIGINT)
        monkeypatch.setattr(asked, "since", asked.since - 2 * signals.ECHO)
        with pytest.raises(Stopped):
            send(signal.SIGINT)


def test_handlers_of_others_and_ignored_signals_stay_and_ours_is_replaced():
    seen = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        with stopping_later("this step", quiet=True) as asked:
            send(signal.SIGTERM)
        assert (seen, asked.number) == ([signal.SIGTERM], 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with stopping_at_once():
            with stopping_later("this step", quiet=True) as asked:
                send(signal.SIGTERM)
            assert asked.number == signal.SIGTERM
            with pytest.raises(Stopped, match="stopped by SIGTERM"):
                send(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_in_another_thread_nothing_is_handled():
    found = []

    def inside():
        with stopping_later("this step") as asked:
            found.append(asked.number)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert found == [0]
