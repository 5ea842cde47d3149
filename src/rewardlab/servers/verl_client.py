"""A reward of rewardlab for verl: each response is sent to a running `rewardlab serve`.

    reward.custom_reward_function.path=THIS_FILE reward.custom_reward_function.name=compute_score

It needs nothing but Python. Requests that are refused because the server is busy, or not there, are made again.
"""

import json
import os
import time
import urllib.error
import urllib.request

URL = "http://127.0.0.1:8100"
"""Address of the server; the environment variable REWARDLAB_URL replaces it."""
NO_VERDICT = None
"""The score where the reward has none, and says why. None: an error is raised, since such a response is neither right nor wrong."""
SECONDS = 120.0
"""Limit of one request."""
TRIES = 8
PAUSE = 0.5
"""Seconds before the second try; each further wait is twice as long, or as long as the server asks."""
AGAIN = (408, 429, 502, 503, 504)


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    """The score of one response, a number. Raises RuntimeError where there is none."""
    columns = dict(extra_info or {})
    row = {
        "prompt": _prompt(columns), "response": solution_str, "answer": _plain(ground_truth),
        "meta": {"data_source": data_source, **{k: _plain(v) for k, v in columns.items() if k not in PROMPT}},
    }  # fmt: skip
    found = _post(row)
    if found["score"] is None:
        if NO_VERDICT is None:
            raise RuntimeError(f"no verdict: {found['why']}")
        return NO_VERDICT
    return found["score"]


PROMPT = ("question", "prompt", "problem")
"""Names of a column of extra_info that holds the prompt, which some rewards read. The first that is there is sent."""


def _prompt(columns):
    return next((columns[name] for name in PROMPT if isinstance(columns.get(name), str)), "")


def _plain(value):
    """A value of a data frame as JSON has it: arrays as lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def _post(row):
    url = os.environ.get("REWARDLAB_URL", URL).rstrip("/") + "/score"
    headers = {"Content-Type": "application/json"}
    if os.environ.get("REWARDLAB_KEY"):
        headers["Authorization"] = "Bearer " + os.environ["REWARDLAB_KEY"]
    for tried in range(1, TRIES + 1):
        try:
            request = urllib.request.Request(url, json.dumps(row).encode(), headers)
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as problem:
            said = problem.read(2000).decode(errors="replace")
            if problem.code not in AGAIN or tried == TRIES:
                raise RuntimeError(f"{url} answered {problem.code}: {said}") from problem
            wait = float(problem.headers.get("Retry-After") or 0)
        except OSError as problem:
            if tried == TRIES:
                raise RuntimeError(f"{url} cannot be reached: {problem}; is `rewardlab serve` running?") from problem
            wait = 0.0
        time.sleep(max(wait, PAUSE * 2 ** (tried - 1)))
