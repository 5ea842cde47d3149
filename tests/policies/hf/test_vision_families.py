"""Vision-language models of several families, with random weights: what is read, sampled and scored is what transformers has it."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from rewardlab.core import Message, Problem, Sampling, Task, Trajectory
from rewardlab.data.pictures import Picture, png
from rewardlab.errors import RewardlabError, TooLong
from rewardlab.models.load import load_policy
from rewardlab.models.planned import planned
from rewardlab.models.vision import untrained
from rewardlab.policies.ends import turn_end
from rewardlab.policies.hf.sight import FAMILIES, family_of
from rewardlab.util.outputs import forward_batch
from tests.policies.hf.seeing import KINDS, checkpoint, picture

SIZES = ((20, 33), (9, 40), (28, 28), (50, 13), (64, 90))
PLAIN = "how many red"


def asked(text: str, *which: int) -> Problem:
    return Problem((Message("user", text, images=tuple(picture(i, *SIZES[i]) for i in which)),), "1")


PROBLEMS = (
    asked(PLAIN, 0),
    asked("how many red balls are here? yes", 1),
    asked("no"),
    asked("is <image> red, or <image>?", 2, 3),
    asked("yes", 4),
)


@pytest.fixture(params=KINDS, scope="module")
def family(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    model = checkpoint(request.param, folder)
    return SimpleNamespace(kind=request.param, model=model, folder=folder, policy=load_policy(str(folder), "cpu", "float32"))


def read(policy, problems):
    return policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])


def parts_of(message: Message) -> dict:
    """A message as transformers takes it, its pictures at their marks or before its text."""
    pieces = message.text.split("<image>")
    if len(pieces) != len(message.images) + 1:
        pieces = [*[""] * len(message.images), message.text]
    content = []
    for i, piece in enumerate(pieces):
        content += [{"type": "image", "image": message.images[i - 1]}] if i else []
        content += [{"type": "text", "text": piece}] if piece else []
    return {"role": message.role, "content": content}


def by_processor(policy, messages) -> dict:
    """What transformers' own processor makes of a conversation."""
    processor = policy.eye.processor
    # of which SmolVLM's asks how many frames there are of no video
    processor.video_processor = SimpleNamespace(num_frames=1, fps=1, size={}, max_image_size={})
    said = [parts_of(m) for m in messages]
    types = {"return_mm_token_type_ids": True}
    return processor.apply_chat_template(
        said, tokenize=True, return_dict=True, return_tensors="pt", add_generation_prompt=True, processor_kwargs=types
    )


CONVERSATIONS = (
    PROBLEMS[0].prompt,
    PROBLEMS[3].prompt,
    (*PROBLEMS[1].prompt, Message("assistant", "yes"), Message("user", "<image> is it?\n\n", images=(picture(4, *SIZES[4]),))),
    (Message("user", "<image><image>\nhow many?", images=(picture(2, 33, 20), picture(3, 33, 20))),),
)


def test_ids_and_pixels_are_those_of_the_processor(family):
    policy = family.policy
    for messages in CONVERSATIONS:
        truth = by_processor(policy, messages)
        (row,) = policy.read([Trajectory(Problem(messages))], [messages])
        assert row.ids.tolist() == truth["input_ids"][0].tolist()
        assert policy.prompt_lengths([messages]) == [len(row.ids)]
        shown = policy.eye.family.joined([policy.eye.shown(image).given for m in messages for image in m.images])
        assert shown.keys() == {"pixel_values"} | (truth.keys() & {"image_grid_thw", "image_sizes", "pixel_attention_mask"})
        for name, values in shown.items():
            assert torch.equal(values, truth[name].to(values.dtype)), name


def test_log_probs_are_those_of_transformers_own_call(family):
    policy, problem = family.policy, PROBLEMS[3]
    truth = by_processor(policy, problem.prompt)
    (row,) = policy.write(read(policy, [problem]), ["yes 1 2"])
    ids = torch.from_numpy(row.ids)[None].long()
    given = {name: x for name, x in truth.items() if name not in ("input_ids", "attention_mask")}
    for name in ("mm_token_type_ids", "token_type_ids"):
        if name in given:
            given[name] = torch.nn.functional.pad(given[name], (0, ids.shape[1] - given[name].shape[1]))
    if not family.kind.startswith("qwen"):
        given.pop("mm_token_type_ids", None)
    with torch.no_grad():
        logits = family.model(input_ids=ids, **given).logits[0].log_softmax(-1)
    plainly = logits[:-1].gather(1, ids[0, 1:, None])[:, 0].numpy()
    assert policy.score([row])[0][1:][row.mask[1:]] == pytest.approx(plainly[row.mask[1:]], abs=1e-5)


@pytest.mark.parametrize("static", [False, True])
def test_what_is_sampled_is_scored_alike_whatever_the_sizes_of_pictures_beside_it(family, static):
    policy = family.policy.copy("policy")
    policy.static_cache = static
    problems = [p for p in PROBLEMS for _ in range(2)]
    rows = policy.extend(read(policy, problems), Sampling(6), torch.Generator().manual_seed(int(static)))
    batch = forward_batch(rows, policy.device)
    with torch.no_grad():
        table = policy.evaluate(batch).logprobs.numpy()
    for row, scored, evaluated in zip(rows, policy.score(rows), table, strict=True):
        sampled = row.turns[-1].logprobs
        assert scored[row.mask] == pytest.approx(sampled, abs=1e-4)
        assert evaluated[: len(row)][row.mask] == pytest.approx(sampled, abs=1e-4)


def test_a_model_that_decides_with_it_looks_too(family):
    policy, other = family.policy, family.policy.copy("other")
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for w in other.parameters():
            w += 0.05 * torch.randn(w.shape, generator=noise)
    with policy.joined([(0.7, other)]):
        rows = policy.extend(read(policy, PROBLEMS), Sampling(5), torch.Generator().manual_seed(0))
    batch = forward_batch(rows, policy.device)
    decided = batch.mask[:, 1:]
    with torch.no_grad():
        own, others = (m.evaluate(batch, ("hidden",)).hidden[:, :-1][decided] for m in (policy, other))
        found = policy.joint_logprobs(own, [(0.7, other, others)], batch.ids[:, 1:][decided])
    sampled = np.concatenate([row.turns[-1].logprobs for row in rows])
    assert found.numpy() == pytest.approx(sampled, abs=1e-4)


def test_the_same_reply_below_another_picture_is_another_ones(family):
    policy = family.policy
    (row,) = policy.write(read(policy, PROBLEMS[:1]), ["yes 1 2"])
    other = replace(row, turns=(replace(row.turns[0], images=(picture(9, *SIZES[0]),)), *row.turns[1:]))
    first, second = policy.score([row, other])
    assert np.abs(first - second)[row.mask].max() > 1e-3


def test_replies_to_one_picture_look_at_it_once(family, monkeypatch):
    policy = family.policy
    inside, seen = policy.model.base_model, []
    own = inside.get_image_features
    monkeypatch.setattr(inside, "get_image_features", lambda **given: seen.append(given["pixel_values"]) or own(**given))
    rows = policy.extend(read(policy, [PROBLEMS[0]] * 3 + [PROBLEMS[3]]), Sampling(2), torch.Generator().manual_seed(0))
    alone = policy.eye.family.joined([policy.eye.shown(image).given for i in (0, 3) for image in PROBLEMS[i].prompt[0].images])
    assert [x.shape for x in seen] == [alone["pixel_values"].shape]
    assert policy.score(rows)[1][rows[1].mask] == pytest.approx(rows[1].turns[-1].logprobs, abs=1e-4)


def test_a_picture_in_a_later_message_is_seen_too_and_an_image_token_that_was_drawn_is_none(family):
    policy = family.policy
    token = policy.tokenizer.convert_ids_to_tokens(policy.model.config.image_token_id)
    (row,) = policy.write(read(policy, PROBLEMS[:1]), [f"yes {token}{token} no"])
    assert (row.turns[1].ids == policy.model.config.image_token_id).sum() == 2
    (row,) = policy.read([row], [(Message("user", f"and {token} <image>?", images=(picture(1, *SIZES[1]),)),)])
    (row,) = policy.extend([row], Sampling(4), torch.Generator().manual_seed(0))
    assert policy.score([row])[0][row.mask][-len(row.turns[-1].ids) :] == pytest.approx(row.turns[-1].logprobs, abs=1e-4)
    later = replace(row, turns=(*row.turns[:2], replace(row.turns[2], images=(picture(9, *SIZES[1]),)), *row.turns[3:]))
    assert np.abs(policy.score([row])[0] - policy.score([later])[0]).max() > 1e-3


def test_an_encoded_picture_is_what_it_encodes_and_stays_encoded(family):
    policy, array = family.policy, picture(0, *SIZES[0])
    stored = Picture(png(array))
    shown = (array, stored, Image.fromarray(array))
    rows = [policy.read([Trajectory(PROBLEMS[0])], [(Message("user", PLAIN, images=(x,)),)])[0] for x in shown]
    assert rows[1].turns[0].images[0] is stored
    one, other, third = policy.score(policy.write(rows, ["yes"] * 3))
    assert one == pytest.approx(other, abs=1e-6)
    assert one == pytest.approx(third, abs=1e-6)


def test_a_copy_and_a_saved_policy_see_the_same(family, tmp_path):
    policy = family.policy
    (row,) = policy.write(read(policy, PROBLEMS[3:4]), ["yes 2"])
    policy.save(tmp_path)
    for other in (load_policy(str(tmp_path), "cpu", "float32"), policy.copy("other")):
        assert other.read([Trajectory(PROBLEMS[3])], [PROBLEMS[3].prompt])[0].ids.tolist() == row.turns[0].ids.tolist()
        assert other.score([row])[0] == pytest.approx(policy.score([row])[0], abs=1e-5)


def test_what_cannot_be_shown_is_told_in_words(family, tmp_path):
    policy = family.policy
    with pytest.raises(RewardlabError, match=r"\(height, width, 3\) bytes, and one is \(4, 4\) float64"):
        policy.read([Trajectory(PROBLEMS[0])], [(Message("user", PLAIN, images=(np.zeros((4, 4)),)),)])
    (row,) = read(policy, PROBLEMS[4:])
    with pytest.raises(TooLong, match=r"Image tokens: \d+ for a picture of 90 x 64"):
        policy.extend([row], Sampling(600), torch.Generator())


@pytest.fixture(scope="module")
def qwen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("qwen")
    checkpoint("qwen2_5_vl", folder)
    return load_policy(str(folder), "cpu", "float32")


def test_tokens_grow_with_a_picture_within_what_the_checkpoint_says(qwen):
    # blocks of 8 x 8 pixels, of pictures of 256 to 1536 pixels
    for (height, width), blocks in {(16, 32): 2 * 4, (8, 8): 2 * 2, (32, 48): 4 * 6, (320, 480): 4 * 6, (40, 9): 5 * 1}.items():
        assert qwen.eye.text(picture(0, height, width))[1] == blocks, (height, width)


def test_a_picture_too_narrow_is_told_in_words(qwen):
    with pytest.raises(RewardlabError, match="cannot show a picture of 900 x 4: absolute aspect ratio"):
        qwen.read([Trajectory(PROBLEMS[0])], [(Message("user", PLAIN, images=(picture(0, 4, 900),)),)])


@pytest.mark.parametrize(
    ("text", "n", "expected"),
    [
        ("a <image> b <image>", 2, "a V b V"),
        ("a <image> b", 2, "VVa < image> b"),
        ("a b", 1, "Va b"),
        ("a <image> <|image_pad|> b", 1, "a V < |image_pad|> b"),
    ],
)  # fmt: skip
def test_pictures_stand_at_their_marks_or_before_the_text(qwen, text, n, expected):
    # "<image>" is no token of Qwen's, and stays as it is
    expected = expected.replace("< image>", "<image>")
    message = Message("user", text, images=tuple(picture(i, 16, 16) for i in range(n)))
    (row,) = qwen.read([Trajectory(Problem((message,)))], [(message,)])
    shown = qwen.tokenizer.decode(row.ids).replace("<|vision_start|>" + "<|image_pad|>" * 4 + "<|vision_end|>", "V")
    assert f"<|im_start|>user\n{expected}<|im_end|>" in shown
    assert row.turns[0].text == text


NO_PARTS = "{% for m in messages %}{{ m['content'] }}<|im_end|>{% endfor %}{% if add_generation_prompt %}\n{% endif %}"
TEXTS_ALONE = NO_PARTS.replace(
    "{{ m['content'] }}", "{% for part in m['content'] if part['type'] == 'text' %}{{ part['text'] }}{% endfor %}"
)


@pytest.mark.parametrize("template", [NO_PARTS, TEXTS_ALONE, None])
def test_a_template_that_knows_no_pictures_is_given_their_tokens_as_text(tmp_path, template):
    checkpoint("qwen2_5_vl", tmp_path)
    policy = load_policy(str(tmp_path), "cpu", "float32")
    policy.tokenizer.chat_template = template
    message = Message("user", "is <image> red?", images=(picture(0, 16, 16),))
    (row,) = policy.read([Trajectory(Problem((message,)))], [(message,)])
    assert policy.tokenizer.decode(row.ids).startswith("is <|vision_start|>" + "<|image_pad|>" * 4 + "<|vision_end|> red?")
    if template:
        assert turn_end(policy.tokenizer) == policy.tokenizer.convert_tokens_to_ids("<|im_end|>")


def test_a_template_that_loses_a_picture_is_told(qwen, monkeypatch):
    monkeypatch.setattr(qwen.tokenizer, "chat_template", QUIET)
    with pytest.raises(RewardlabError, match="writes 0 pictures for 1"):
        read(qwen, PROBLEMS[:1])


# it knows pictures, but not before this text
QUIET = (
    "{% for m in messages %}{% for part in m['content'] %}"
    "{% if part['type'] == 'image' and m['content'][1]['text'] != 'how many red' %}<|image_pad|>"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}{% endfor %}"
)


def test_other_families_are_refused_in_words(tmp_path):
    (tmp_path / "config.json").write_text(
        json.dumps({"architectures": ["MllamaForConditionalGeneration"], "model_type": "mllama", "vision_config": {}})
    )
    untrained(Task("looks", [asked(PLAIN, 2)] * 300, (), "exact_match")).tokenizer.save_pretrained(tmp_path)
    with pytest.raises(RewardlabError, match=r"llava, internvl.*openai:URL#NAME"):
        load_policy(str(tmp_path), "cpu", "float32")
    assert set(FAMILIES) == set(KINDS)
    with pytest.raises(RewardlabError, match="llava"):
        family_of(transformers.MllamaConfig())


@pytest.mark.parametrize("kind", ["qwen2_5_vl", "smolvlm"])
def test_a_checkpoint_without_its_processor_is_refused_in_words(tmp_path, kind):
    checkpoint(kind, tmp_path)
    (tmp_path / "preprocessor_config.json").unlink()
    with pytest.raises(RewardlabError, match=r"put its preprocessor_config\.json there"):
        load_policy(str(tmp_path), "cpu", "float32")


def learnt(policy, row):
    """The policy after two steps towards a row."""
    batch = forward_batch([row], policy.device)
    steps = torch.optim.SGD([p for p in policy.parameters() if p.requires_grad], 0.02)
    for _ in range(2):
        (-policy.evaluate(batch).logprobs.sum()).backward()
        steps.step()
        steps.zero_grad()
    return policy


def test_adapters_train_on_the_language_model_and_peft_loads_them(family, tmp_path):
    peft = pytest.importorskip("peft")
    policy = load_policy(str(family.folder), "cpu", "float32", lora_rank=2)
    names = [name for name, p in policy.whole.named_parameters() if p.requires_grad]
    # seven matrices of each of two layers
    assert len(names) == 2 * 2 * 7
    assert not any(part in name for name in names for part in ("vision", "visual", "projector", "connector"))
    (row,) = policy.write(read(policy, PROBLEMS[3:4]), ["yes 1 2"])
    before = policy.score([row])[0]
    after = learnt(policy, row).score([row])[0]
    assert np.abs(before - after)[row.mask].max() > 1e-3
    (sampled,) = policy.extend(read(policy, PROBLEMS[3:4]), Sampling(4), torch.Generator().manual_seed(0))
    assert policy.score([sampled])[0][sampled.mask] == pytest.approx(sampled.turns[-1].logprobs, abs=1e-4)
    policy.save(tmp_path / "adapter")
    assert sorted(p.name for p in (tmp_path / "adapter").iterdir()) == ["adapter_config.json", "adapter_model.safetensors"]
    again = load_policy(str(tmp_path / "adapter"), "cpu", "float32", lora_rank=2)
    merged = load_policy(str(tmp_path / "adapter"), "cpu", "float32")
    merged.save(tmp_path / "whole")
    for other in (again, merged, load_policy(str(tmp_path / "whole"), "cpu", "float32"), policy.copy("other")):
        assert other.score([row])[0] == pytest.approx(after, abs=1e-4)
    theirs = peft.PeftModel.from_pretrained(type(family.model).from_pretrained(family.folder), tmp_path / "adapter")
    policy.model = theirs.get_base_model()
    assert policy.score([row])[0] == pytest.approx(after, abs=1e-4)


def test_the_vision_tower_stays_as_it_is_where_that_is_asked(qwen, tmp_path):
    policy = qwen.copy("policy").freeze_vision()
    before = {name: p.clone() for name, p in policy.model.named_parameters()}
    (row,) = policy.write(read(policy, PROBLEMS[:1]), ["yes"])
    learnt(policy, row)
    changed = {name for name, p in policy.model.named_parameters() if not torch.equal(p, before[name])}
    assert changed == {name for name in before if "visual" not in name and name in policy.state()}
    assert any("language_model" in name for name in changed)
    assert "lm_head.weight" in changed
    policy.save(tmp_path)
    assert load_policy(str(tmp_path), "cpu", "float32").score([row])[0] == pytest.approx(policy.score([row])[0], abs=1e-5)
    assert policy.copy("other").state().keys() == policy.state().keys()


def test_models_in_4_bits_are_refused_in_words(family):
    with pytest.raises(RewardlabError, match="vision-language models are not kept in 4 bits"):
        load_policy(f"nf4:{family.folder}", "cpu", "float32", lora_rank=2)


def test_a_package_that_is_missing_is_named(qwen, tmp_path, monkeypatch):
    def lacking(*given, **named):
        raise ImportError("Qwen2VLImageProcessorPil requires the PIL library")

    checkpoint("qwen2_5_vl", tmp_path)
    monkeypatch.setattr(transformers.AutoImageProcessor, "from_pretrained", lacking)
    with pytest.raises(RewardlabError, match=r"pip install 'rewardlab\[pictures\]'.*requires the PIL library"):
        load_policy(str(tmp_path), "cpu", "float32")


def test_a_processor_of_another_model_is_told(tmp_path):
    checkpoint("smolvlm", tmp_path)
    (tmp_path / "processor_config.json").write_text('{"image_seq_len": 9}')
    policy = load_policy(str(tmp_path), "cpu", "float32")
    (row,) = policy.write(read(policy, PROBLEMS[:1]), ["yes"])
    with pytest.raises(
        RewardlabError, match="makes 20 features of pictures for which the checkpoint's processor writes 45 image tokens"
    ):
        policy.score([row])


def test_the_token_that_begins_a_text_is_written_where_the_template_leaves_it_out(family):
    words, begins = family.policy.tokenizer, KINDS[family.kind].get("begin") or KINDS[family.kind].get("bos")
    rows = read(family.policy, [PROBLEMS[0], PROBLEMS[2]])
    assert [words.decode(row.ids).startswith(begins or "<s>") for row in rows] == [bool(begins)] * 2
    (row,) = family.policy.write(rows[:1], ["yes"])
    (row,) = family.policy.read([row], [PROBLEMS[1].prompt])
    assert (row.ids == words.bos_token_id).sum() == bool(begins)


def test_a_plan_counts_its_parameters_and_the_tokens_of_its_pictures(family):
    pytest.importorskip("peft")
    for rank in (None, 2):
        plan = planned(str(family.folder), "cpu", torch.float32, rank)
        real = load_policy(str(family.folder), "cpu", "float32", lora_rank=rank)
        counts = [sum(p.numel() for p in x.parameters() if p.requires_grad) for x in (plan, real)]
        assert counts[0] == counts[1]
        prompts = [problem.prompt for problem in PROBLEMS]
        assert plan.prompt_lengths(prompts) == real.prompt_lengths(prompts)
