"""`rewardlab answer --prompt --tools`: what was said is shown before the answer."""

import json

from rewardlab.commands import cli
from tests.helpers.served_model import serving

WEATHER = '''
def weather(city: str) -> str:
    """Say how warm it is.

    Args:
        city: the city
    """
    return f"{city}: 7 degrees, " + "wind from the west, " * 30
'''
CALL = 'I look it up. <tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>'


def says(body):
    return CALL if len(body["messages"]) < 3 else "It is 7 degrees."


def test_calls_and_results_are_shown_in_short_before_the_answer_and_whole_as_json(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(WEATHER)
    with serving(says) as server:
        asked = ["answer", "majority_vote", "--model", server.name, "--prompt", "How warm is it in Oslo?", "--n", "2"]
        asked += ["--tools", f"{tmp_path / 'mine.py'}:weather"]
        assert cli.main(asked) == 0
        lines = capsys.readouterr().out.splitlines()
        at = next(i for i, line in enumerate(lines) if line.split()[:1] == ["prompt"])
        assert [" ".join(line.split()[:2]) for line in lines[at + 1 : at + 4]] == ["reply 1", "result 1", "reply 2"]
        assert CALL in lines[at + 1]
        assert "Oslo: 7 degrees" in lines[at + 2]
        assert "characters; --json has all)" in lines[at + 2]
        assert lines[at + 4].split(maxsplit=1) == ["answer", "It is 7 degrees."]
        assert cli.main([*asked, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert [one["by"] for one in told["conversation"]] == ["reply", "result", "reply"]
        assert told["conversation"][1]["text"].count("wind from the west") == 30
        assert told["answer"] == "It is 7 degrees."


def test_what_a_tool_prints_is_no_result(tmp_path, capfd):
    (tmp_path / "mine.py").write_text(WEATHER.replace("    return", "    print('I was called')\n    return", 1))
    with serving(says) as server:
        asked = ["answer", "majority_vote", "--model", server.name, "--prompt", "How warm is it in Oslo?", "--n", "2"]
        assert cli.main([*asked, "--tools", f"{tmp_path / 'mine.py'}:weather"]) == 0
    printed = capfd.readouterr()
    assert "I was called" not in printed.out
    assert printed.err.count("I was called") == 2
    assert "It is 7 degrees." in printed.out


def test_without_anything_that_answers_there_is_no_conversation(capsys):
    with serving(lambda body: "42") as server:
        assert cli.main(["answer", "majority_vote", "--model", server.name, "--prompt", "6 times 7?", "--n", "2", "--json"]) == 0
    assert "conversation" not in json.loads(capsys.readouterr().out)
