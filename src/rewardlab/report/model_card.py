"""The model card of a process reward model: README.md beside its weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

USE = {
    "head": (
        "It is a token classifier with the labels wrong and right. A solution is the prompt through the chat template, with the "
        "generation prompt (without a template: the prompt and a line break), then each step and a line break, prompt, steps and "
        "line breaks each tokenised by itself. A step's score is softmax[1] at the last token of its line break."
    ),
    "generative": (
        "It is a language model. The first user turn asks for a Yes or No to each step and holds the first step, each further "
        "user turn a step; the assistant's words before are Yes. A step's score is softmax(Yes, No)[Yes] where its word begins."
    ),
    "implicit": (
        "It is a language model. A step's score is sigmoid(beta * sum of log(model / reference)) over its tokens, or, where "
        "step_scorer.json says sums, over all tokens of the solution up to its end; the reference, and beta, are there too."
    ),
}


TAUGHT = {
    "steps": "labels of steps", "first-error": "labels of steps up to the first wrong one",
    "outcome": "whether whole solutions are right: a step's score is the chance that the solution so far ends right",
}  # fmt: skip


def card(name: str, about: Mapping[str, Any], settings: Mapping[str, float], found: Mapping[str, Any]) -> str:
    """about: model, data, kind, loss, trained_on, perhaps a threshold.  settings: of the loss and the kind.  found: figures on
    held-out problems, with `note` and `warning` of `prm/held_out.py`."""
    hard = f", right from {about['threshold']:g} up" if about.get("threshold") else ""
    used = {"rank": ("zeta",), "quantile": ("tau",)}.get(about["loss"], ()) + (("beta",) if about["kind"] == "implicit" else ())
    warning = f"**Warning**: {found['warning']}.\n\n" if found.get("warning") else ""
    how = "".join(f", {key} {settings[key]:g}" for key in used)
    return f"""---
base_model: {about["model"]}
tags: [process-reward-model, rewardlab]
---

# {name}

{warning}A process reward model: it scores each step of a solution by its chance of being right.

- base model: {about["model"]}
- data: {about["data"]}, {about["trained_on"]} solutions{hard}
- steps: by {about.get("splitter", "newline")}
- kind: {about["kind"]}; loss: {about["loss"]}{how}; taught by: {TAUGHT[about.get("taught", "steps")]}

## Use

Steps are penalised beside a reward for the answer: the plain sum of their scores, prm:{name}, pays for every further step.

    rewardlab prm eval {name} --on FILE
    rewardlab train reward_to_go --task TASK --reward 'correct() + prm_steps(model="prm:{name}", clip=0.5)'

    from rewardlab.prm import load_scorer

    load_scorer("{name}").score([("What is 1 + 2 * 3?", ["2 * 3 = 6", "1 + 6 = 7"])])

{USE[about["kind"]]}

{_figures(about["loss"], found)}"""


def _figures(loss: str, found: Mapping[str, Any]) -> str:
    rows = [*found["first_error"].items(), *((f"step {key}", value) for key, value in found["steps"].items())]
    figures = "\n".join(f"| {key.replace('_', ' ')} | {_shown(value)} |" for key, value in rows)
    bins = "\n".join(f"| {b['chance']:.3f} | {b['right']:.3f} | {b['n']} |" for b in found["reliability"])
    chance = "" if loss != "rank" else " This loss orders steps: its scores are no chances, whatever the table says."
    note = f"\nNote: {found['note']}." if found.get("note") else ""
    return f"""## Held-out figures

Of {found["solutions"]} solutions to problems that it was not trained on; a step is judged right above {found["threshold"]:g}.{note}

| figure | value |
| --- | --- |
{figures}

Calibration: steps by tenths of their score.{chance}

| mean score | share right | steps |
| --- | --- | --- |
{bins}
"""


def _shown(value: float) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
