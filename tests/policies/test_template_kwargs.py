"""Keyword arguments of a chat template: every prompt has them, here and wherever a run's model goes."""

from __future__ import annotations

import copy
import json

import pytest
import yaml
from served_model import serving

from rewardlab import api, registry
from rewardlab.api.inputs import in_template, policy_of
from rewardlab.api.prompt_lengths import text_reader
from rewardlab.backends.verl.writing import configuration
from rewardlab.clients.endpoint import endpoint_of, identity
from rewardlab.clients.messages import Request
from rewardlab.core import Message, Sampling, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.models.load import load_policy
from rewardlab.models.planned import planned
from rewardlab.policies.template_kwargs import kwargs_in, with_kwargs
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.records import records

# as Qwen3's: thoughts are switched off by an empty block in the generation prompt
SWITCH = """{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{%- if enable_thinking is defined and enable_thinking is false %}

<think>

</think>

{% endif %}{{ date_string }}{% endif %}"""
OFF = {"enable_thinking": False}
ASKED = (Message("user", "2 + 2?"),)


@pytest.fixture
def folder(tmp_path):
    policy = untrained()
    policy.tokenizer = copy.deepcopy(policy.tokenizer)
    policy.tokenizer.chat_template = SWITCH
    policy.save(tmp_path / "model")
    return str(tmp_path / "model")


@pytest.fixture
def rows(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps({"prompt": f"{i} + 1?", "answer": str(i + 1)}) + "\n" for i in range(6)))
    return str(file)


@pytest.mark.parametrize(
    "told", [OFF, {"date_string": "1 Jan #} %} {{ 'x' }}\n\"2025\" 😀"}, {"date_string": None, "enable_thinking": {"a": [1, True]}}]
)
def test_a_template_with_them_writes_what_it_writes_when_it_is_given_them(folder, told):
    words = load_policy(folder, "cpu").tokenizer
    turns, own = [{"role": "user", "content": "2 + 2?"}], with_kwargs(words, told)
    for ends in (True, False):
        given = words.apply_chat_template(turns, tokenize=False, add_generation_prompt=ends, **told)
        assert own.apply_chat_template(turns, tokenize=False, add_generation_prompt=ends) == given
    assert (kwargs_in(own.chat_template), kwargs_in(words.chat_template)) == (told, {})


def test_later_ones_go_over_earlier_ones_name_by_name(folder):
    words = load_policy(folder, "cpu").tokenizer
    twice = with_kwargs(with_kwargs(words, {**OFF, "date_string": "x"}), {"date_string": "y"})
    assert kwargs_in(twice.chat_template) == {**OFF, "date_string": "y"}
    # one that is given when it is rendered still decides
    turns = [{"role": "user", "content": "?"}]
    shown = twice.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, date_string="z")
    assert shown.endswith("</think>\n\nz")


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"enable_thinkin": False}, "reads no 'enable_thinkin'; it reads date_string, enable_thinking"),
        ({"messages": []}, "messages is decided by whoever renders"),
        ({"bos_token": "x"}, "bos_token is decided"),
        ({"tools": []}, "--tools"),
    ],
)
def test_what_would_change_nothing_is_refused(folder, told, why):
    with pytest.raises(RewardlabError, match=why):
        with_kwargs(load_policy(folder, "cpu").tokenizer, told)


def test_a_model_without_a_template_is_refused(folder):
    policy = load_policy(folder, "cpu")
    policy.tokenizer.chat_template = None
    with pytest.raises(RewardlabError, match="no chat template"):
        in_template(policy, RunConfig(chat_template_kwargs=OFF))


@pytest.mark.parametrize("value", ['{"a b": 1}', "enable_thinking=false", "[1]"])
def test_the_flag_is_a_json_object_of_names(value):
    from rewardlab.commands.flags import FIELDS, read

    with pytest.raises(RewardlabError, match="--chat-template-kwargs must be names and values"):
        read("--chat-template-kwargs", FIELDS["chat_template_kwargs"].metadata["domain"], value)


def test_whatever_reads_a_prompt_is_told_them(folder, rows):
    config, task = RunConfig(model=folder, task=rows, chat_template_kwargs=OFF), records(path=rows)
    plain = load_policy(folder, "cpu").prompt_lengths([ASKED])[0]
    policy = policy_of(None, config, task)
    assert policy._render(ASKED).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    lengths = {text_reader(None, config, task).prompt_lengths([ASKED])[0], policy.prompt_lengths([ASKED])[0]}
    (longer,) = lengths
    assert longer > plain
    # a copy, such as the reference
    assert policy.copy("reference").prompt_lengths([ASKED]) == [longer]
    planned_with = api.plan("grpo", folder, rows, chat_template_kwargs=OFF, max_new=4)["prompts"]["train"]["longest"]
    assert planned_with == api.plan("grpo", folder, rows, max_new=4)["prompts"]["train"]["longest"] + longer - plain


def test_a_configuration_without_any_is_written_as_before():
    assert "chat_template_kwargs" not in RunConfig().to_json()
    assert RunConfig.from_json(RunConfig(chat_template_kwargs=OFF).to_json()).chat_template_kwargs == OFF


@pytest.mark.parametrize("rank", [None, 2])
def test_a_run_its_models_and_its_export_keep_them(folder, rows, tmp_path, rank, capsys):
    out = tmp_path / "run"
    settings = {"steps": 1, "max_new": 4, "eval_every": 0, "patience": 0, "lora_rank": rank}
    api.train("grpo", folder, rows, settings={"n": 2}, chat_template_kwargs=OFF, out=out, **settings)
    assert json.loads((out / "config.json").read_text())["chat_template_kwargs"] == OFF
    api.resume(out, steps=2)
    api.export(out, tmp_path / "export")
    for name in (out, tmp_path / "export"):
        assert load_policy(str(name), "cpu")._render(ASKED).endswith("</think>\n\n"), name
    if rank:
        without_weights = planned(str(out), "cpu", untrained().dtype)
        assert without_weights.prompt_lengths([ASKED]) == load_policy(str(out), "cpu").prompt_lengths([ASKED])
    capsys.readouterr()
    api.evaluate(str(out), k=(1,), problems=1)
    assert "chat_template_kwargs {'enable_thinking': False}" in capsys.readouterr().err
    # a run that trains on from it knows, too
    api.train("grpo", str(out), rows, settings={"n": 2}, out=tmp_path / "on", **settings)
    assert json.loads((tmp_path / "on" / "config.json").read_text())["chat_template_kwargs"] == OFF


def test_a_served_model_has_its_server_told_them():
    with serving() as server:
        for name, more in ((server.name, {}), (server.name + ',chat_template_kwargs={"enable_thinking": true, "a": 1}', {"a": 1})):
            server.asked = []
            policy = policy_of(None, RunConfig(model=name, chat_template_kwargs=OFF), None)
            (begun,) = policy.read([Trajectory(ask("?"))], [ASKED])
            policy.extend([begun], Sampling(2, temperature=0.0), None)
            assert server.asked[0]["chat_template_kwargs"] == {**more, **OFF}


def test_other_kinds_of_models_are_refused():
    with pytest.raises(RewardlabError, match="for models that read messages by a chat template"):
        policy_of(None, RunConfig(model="recorded", chat_template_kwargs=OFF), None)


def test_a_served_models_name_says_them_for_judges_too():
    name = 'openai:http://127.0.0.1:1/v1#m,chat_template_kwargs={"enable_thinking": false, "effort": "low"},budget=5'
    settings = endpoint_of(name).settings
    assert (settings.chat_template_kwargs, settings.budget) == ({**OFF, "effort": "low"}, 5)
    assert identity(name) == 'openai:http://127.0.0.1:1/v1#m,chat_template_kwargs={"effort": "low", "enable_thinking": false}'
    assert endpoint_of(identity(name)).settings.chat_template_kwargs == settings.chat_template_kwargs
    body = Request((("user", "?"),), 1).body("m", template=settings.chat_template_kwargs)
    assert body["chat_template_kwargs"] == {**OFF, "effort": "low"}
    assert "chat_template_kwargs" not in Request((("user", "?"),), 1).body("m", template={})
    with pytest.raises(RewardlabError, match="chat_template_kwargs of a served model must be names and values"):
        endpoint_of("openai:http://127.0.0.1:1/v1#m,chat_template_kwargs=false")


def test_an_export_to_verl_tells_it_them():
    text = configuration(registry.build("grpo", {}), steps=1, max_new=4, told=OFF)
    assert yaml.safe_load(text)["data"]["apply_chat_template_kwargs"] == OFF
    assert "chat_template" not in configuration(registry.build("grpo", {}), steps=1, max_new=4)


def test_trl_is_told_them_by_the_run():
    with pytest.raises(RewardlabError, match="--chat-template-kwargs, without --trl"):
        pytest.importorskip("rewardlab.backends.trl.settings").fields_of(
            RunConfig(engine="trl", engine_options={"chat_template_kwargs": OFF})
        )
