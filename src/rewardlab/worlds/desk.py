"""Tool choice: a question, a call of the tool that knows, and the answer that its result decides.

    Over 5: a bus to Rome on day 3?     ->   <think>bus</think>
                                             <tool_call>
                                             {"name":"bus","parameters":{"city":"Rome","day":3}}
                                             </tool_call>
    bus: 7                              ->   <think>7 > 5</think>
                                             Answer: yes

The answer is yes or no, so that half of those who called a wrong tool, or none, are right by luck: the answer says little about the
call. Tools, requests and the careless teacher are those of `calls`; where its calls have no result, it guesses.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.text.tool_calls import answer_to
from rewardlab.worlds.calls import TOOLS, WORDING, Call, careless, sampled, write

ALIKE = (("bus", "train", "weather"), ("taxi", "alarm"))
"""Tools that know something about the same parameters."""


def desk(*, error: Share = 0.1, biased: Share = 0.9, test_size: PositiveInt = 150, size: PositiveInt | None = None) -> Task:
    """error, biased: how often the teacher of `demonstrate` goes wrong in a call at random, and by a rule of its own.
    test_size: there are some 1,700 questions, and a tenth of them is held out.  size: so many training problems, in epochs; None:
    endless.
    """
    for name, share in (("error", error), ("biased", biased)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"desk: {name} is a share between 0 and 1, not {share}")
    return Task(
        name="desk",
        train=training(_sample, ("desk",), size),
        test=test_set(_sample, ("desk",), test_size),
        verifier="final_answer",
        max_new=64,
        about="questions answered yes or no by the result of a tool",
        environment="recorded_tools",
        turns=3,
        demonstrate=partial(_demonstrate, error=error, biased=biased),
        columns=("prompt", "answer", "calls", "results", "tools", "solution"),
        warmup_steps=300,
        # a coin is right half of the time
        window=(0.5, 0.85),
    )


def _sample(rng: random.Random) -> Problem:
    call, bound, over = sampled(rng), rng.randint(3, 7), rng.random() < 0.5
    result = rng.randint(bound + 1, 9) if over else rng.randint(1, bound - 1)
    others = [name for names in ALIKE if call.name in names for name in names if name != call.name]
    results = [_recorded(call, result)]
    for name in others:
        known = {key: value for key, value in call.parameters.items() if f"{{{key}}}" in WORDING[name]}
        results.append(_recorded(Call(name, known), rng.randint(1, 9)))
    answer = "yes" if over else "no"
    talk = [write([call]), f"{call.name}: {result}", _conclusion(result, bound, answer)]
    return ask(
        f"Over {bound}: {WORDING[call.name].format(**call.parameters)}?", answer, calls=[call._asdict()], results=results,
        tools=TOOLS, solution=talk,
    )  # fmt: skip


def _recorded(call: Call, result: int) -> dict[str, Any]:
    return {**call._asdict(), "result": result}


def _conclusion(result: int | None, bound: int, answer: str) -> str:
    thought = "no result" if result is None else f"{result} {'>' if result > bound else '<'} {bound}"
    return f"<think>{thought}</think>\nAnswer: {answer}"


def _demonstrate(problem: Problem, rng: random.Random, *, error: float, biased: float) -> list[str]:
    """A talk as the careless teacher leads it: it believes the first result that it gets."""
    gold, bound = Call(**problem.meta["calls"][0]), int(problem.question.split()[1].rstrip(":"))
    made = careless(gold, rng, error, biased)
    said = answer_to([(call.name, call.parameters) for call in made], problem.meta["results"])
    first = said.split("\n")[0].partition(": ")[2]
    result = int(first) if first.isdigit() else None
    over = rng.random() < 0.5 if result is None else result > bound
    return [write(made), said, _conclusion(result, bound, "yes" if over else "no")]
