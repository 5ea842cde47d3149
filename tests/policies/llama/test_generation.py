"""Drawing replies: what is drawn, how likely it was, where it ends, and that no way of batching changes any of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers
from transformers.generation import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from rewardlab.core import Message, Sampling, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.policies.llama import decode, decoder
from rewardlab.policies.llama.decode_step import fold
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.llama.native.library import library
from rewardlab.policies.llama.native_steps import FewRows, NativeSteps
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.policies.llama.steps import Steps
from rewardlab.policies.replies import StopMarks
from rewardlab.policies.sampler import sample
from tests.helpers.tiers import one_in

CPU = torch.device("cpu")
SMALL = {
    "model_type": "llama", "vocab_size": 512, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 48, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}, "tie_word_embeddings": False, "bos_token_id": None,
    "eos_token_id": 0,
}  # fmt: skip
QUESTIONS = ["1 + 2 = ?", "what is 12 * 3, and then 7 more?", "a", "use 3, 4 and 9 to make 31", "1 + 2 = ?", "what now?"]


@pytest.fixture(params=["c++", "pytorch"])
def steps(request, monkeypatch):
    """The kind of decoding steps: those in C++ are used wherever there is a compiler."""
    if request.param == "pytorch":
        monkeypatch.setattr(decode, "runs_in_cpp", lambda policy: False)
        return Steps
    if library() is None:
        pytest.skip("no C++ compiler")
    return NativeSteps


@pytest.fixture
def policy(words, steps):
    """Random weights, large enough that replies vary and depend on the whole prompt."""
    generator = torch.Generator().manual_seed(0)
    model = Llama(SMALL)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) * 0.3 + (p.dim() == 1))
    return LlamaPolicy(model, words, CPU, torch.float32)


@pytest.fixture
def peer(policy, tmp_path):
    policy.save(tmp_path)
    return transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()


@pytest.fixture
def restless(policy):
    """Every eighth token ends a reply, so that rows end at different times."""
    policy.ends = frozenset(range(0, 512, 8))
    return policy


def scripted(words, text):
    """A policy that writes `text` and begins anew: a Llama whose layers add nothing, and whose head names each token's successor.

    No token may occur twice in the text; the prompt's last token is a newline.
    """
    ids = words(text)["input_ids"]
    newline = words("\n")["input_ids"]
    assert len({*ids}) == len(ids)
    changes = {"hidden_size": 512, "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 256, "intermediate_size": 8}
    model = Llama(SMALL | changes)
    with torch.no_grad():
        for p in model.layers.parameters():
            p.zero_()
        model.embed.copy_(torch.eye(512))
        model.head.zero_()
        for now, following in zip([*newline, *ids], [*ids, *ids[:1]], strict=False):
            model.head[following, now] = 1.0
    return LlamaPolicy(model, words, CPU, torch.float32)


def prompts(policy, questions=QUESTIONS):
    asked = [ask(q) for q in questions]
    return policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])


def extend(policy, rows, seed=0, **sampling):
    return policy.extend(rows, Sampling(**sampling), torch.Generator().manual_seed(seed))


def drawn(rows):
    return [t.turns[-1].ids.tolist() for t in rows]


def greedy(policy, rows, max_new=24, **more):
    return extend(policy, rows, max_new=max_new, temperature=0.0, **more)


# ---- what is drawn ---------------------------------------------------------------------------------------------------


def test_greedy_replies_are_those_of_transformers(policy, peer):
    rows = prompts(policy)
    replies = greedy(policy, rows)
    for t, reply in zip(rows, drawn(replies), strict=True):
        ids = torch.from_numpy(t.ids)[None]
        wanted = peer.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False, pad_token_id=0)
        assert reply == wanted[0, len(t) :].tolist()
    assert len({tuple(d) for d in drawn(replies)}) == len(set(QUESTIONS))
    assert all((t.turns[-1].sampled == 0).all() for t in replies)


@pytest.mark.parametrize("top_k", [0, 20])
@pytest.mark.parametrize("top_p", [1.0, 0.8])
@pytest.mark.parametrize("temperature", [1.0, 0.6, 1.7])
def test_both_logprobs_of_a_draw_are_those_of_transformers_logits(policy, peer, temperature, top_p, top_k):
    rows = extend(policy, prompts(policy), max_new=10, temperature=temperature, top_p=top_p, top_k=top_k)
    for t in rows:
        turn, ids = t.turns[-1], torch.from_numpy(t.ids)
        with torch.no_grad():
            logits = peer(input_ids=ids[None]).logits[0, -len(turn.ids) - 1 : -1]
        warped = TemperatureLogitsWarper(temperature)(ids, logits)
        warped = TopKLogitsWarper(top_k)(ids, warped) if top_k else warped
        warped = TopPLogitsWarper(top_p)(ids, warped) if top_p < 1 else warped
        chosen = torch.from_numpy(turn.ids)[:, None]
        np.testing.assert_allclose(turn.logprobs, logits.log_softmax(-1).gather(1, chosen).squeeze(1), atol=1e-4)
        np.testing.assert_allclose(turn.sampled, warped.log_softmax(-1).gather(1, chosen).squeeze(1), atol=1e-4)


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.7, "top_p": 0.9}, {"temperature": 0.0}])
def test_raw_logprobs_are_those_of_a_rescoring(policy, sampling):
    rows = extend(policy, prompts(policy), max_new=20, **sampling)
    for t, scored in zip(rows, policy.score(rows), strict=True):
        np.testing.assert_allclose(t.turns[-1].logprobs, scored[-len(t.turns[-1].ids) :], atol=1e-4)


def test_a_turn_says_who_wrote_it_when_and_what(policy):
    policy.step = 7
    for t in extend(policy, prompts(policy), max_new=5):
        turn = t.turns[-1]
        assert (turn.author, turn.step, turn.text) == ("policy", 7, policy.decode(turn.ids))
        assert t.mask.tolist() == [False] * (len(t) - len(turn.ids)) + [True] * len(turn.ids)


def test_a_seed_decides_all_draws(policy):
    rows = prompts(policy)
    assert drawn(extend(policy, rows, 1, max_new=12)) == drawn(extend(policy, rows, 1, max_new=12))
    assert drawn(extend(policy, rows, 1, max_new=12)) != drawn(extend(policy, rows, 2, max_new=12))


def test_rows_with_one_prompt_draw_apart(policy):
    replies = drawn(extend(policy, prompts(policy, ["1 + 2 = ?"] * 8), max_new=8))
    assert len({tuple(r) for r in replies}) == 8


def test_no_rows_give_no_rows(policy):
    assert extend(policy, []) == []


# ---- how rows are run changes nothing --------------------------------------------------------------------------------


def test_a_prompt_computed_once_for_its_group_is_as_if_computed_for_each(policy, steps, monkeypatch):
    questions = ["1 + 2 = ?", "what now, and why?", "1 + 2 = ?", "1 + 2 = ?", "what now, and why?"]
    computed = []
    prefill = steps.prefill
    monkeypatch.setattr(steps, "prefill", lambda self, new, slots: (computed.append(len(new)), prefill(self, new, slots)))
    together = greedy(policy, prompts(policy, questions))
    assert computed == [2]
    for t, question in zip(together, questions, strict=True):
        alone = greedy(policy, prompts(policy, [question]))[0]
        assert drawn([t]) == drawn([alone])
        np.testing.assert_allclose(t.turns[-1].logprobs, alone.turns[-1].logprobs, atol=1e-4)


@pytest.mark.parametrize("slots", [1, 3, 5])
def test_more_rows_than_slots_all_finish_in_order_as_if_there_were_room(restless, slots, monkeypatch):
    rows = prompts(restless, [f"{q} {i}" for i, q in enumerate(QUESTIONS * 3)])
    wanted = greedy(restless, rows)
    assert {t.stop for t in wanted} == {"end", "length"}
    assert len({len(d) for d in drawn(wanted)}) > 4
    monkeypatch.setitem(decode.MAX_ROWS, "cpu", slots)
    found = greedy(restless, rows)
    assert drawn(found) == drawn(wanted)
    assert [t.stop for t in found] == [t.stop for t in wanted]
    assert [t.problem.question for t in found] == [t.problem.question for t in rows]
    for t, scored in zip(found, restless.score(found), strict=True):
        np.testing.assert_allclose(t.turns[-1].logprobs, scored[-len(t.turns[-1].ids) :], atol=1e-4)


def test_prompts_prefilled_in_several_parts_are_as_in_one(policy, monkeypatch):
    rows = prompts(policy)
    wanted = drawn(greedy(policy, rows))
    monkeypatch.setattr(decoder, "PREFILL_TOKENS", 1)
    assert drawn(greedy(policy, rows)) == wanted


@pytest.mark.parametrize("steps", ["pytorch"], indirect=True)
def test_gaps_are_closed_when_rows_end_and_none_wait(restless, monkeypatch):
    rows = prompts(restless, [f"{q} {i}" for i, q in enumerate(QUESTIONS * 3)])
    sizes = []
    monkeypatch.setattr(decoder, "ROWS_MULTIPLE", 2)
    compact = decoder.Decoder._compact
    monkeypatch.setattr(decoder.Decoder, "_compact", lambda self, kept: (compact(self, kept), sizes.append(len(self.slots))))
    found = greedy(restless, rows)
    assert len(sizes) > 1
    assert sizes == sorted(sizes, reverse=True)
    monkeypatch.setattr(decoder.Decoder, "_compact", lambda self, kept: None)
    assert drawn(greedy(restless, rows)) == drawn(found)


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("sampling", one_in(2, [{"temperature": 0.7, "top_p": 0.9}, {}, {"temperature": 0.0}]))
def test_rows_drawn_by_several_workers_are_those_of_one(restless, sampling, two_threads, monkeypatch):
    rows = prompts(restless, [f"{q} {i}" for i, q in enumerate(QUESTIONS * 6)])
    assert decode.workers(restless, len(rows), Sampling()) == 2
    assert len(rows) < 64
    found = [extend(restless, rows, max_new=24, **sampling) for _ in range(3)]
    assert torch.get_num_threads() == 2
    monkeypatch.setattr(decode, "SMALL_BYTES", 0)
    assert decode.workers(restless, len(rows), Sampling()) == 1
    alone = extend(restless, rows, max_new=24, **sampling)
    for other in found:
        assert drawn(other) == drawn(alone)
        assert [t.stop for t in other] == [t.stop for t in alone]
        for t, first in zip(other, found[0], strict=True):
            assert np.array_equal(t.turns[-1].logprobs, first.turns[-1].logprobs)


def test_what_ends_a_worker_ends_the_call(restless, two_threads):
    def broken(text):
        raise ValueError("the predicate broke")

    with pytest.raises(ValueError, match="the predicate broke"):
        extend(restless, prompts(restless, QUESTIONS * 6), max_new=200 // 4, stop_when=broken)
    assert torch.get_num_threads() == 2


def test_enough_rows_are_counted_by_one_worker(policy, two_threads):
    """With several it would depend on their speed which rows come first."""
    assert decode.workers(policy, 100, Sampling(enough=3)) == 1
    assert decode.workers(policy, 8, Sampling()) == 1


def test_weights_that_changed_in_place_are_those_drawn_from(policy):
    extend(policy, prompts(policy), max_new=4)
    with torch.no_grad():
        for p in policy.parameters():
            p.data.mul_(0.9)
    rows = extend(policy, prompts(policy), max_new=12)
    for t, scored in zip(rows, policy.score(rows), strict=True):
        np.testing.assert_allclose(t.turns[-1].logprobs, scored[-12:], atol=1e-4)


def test_a_row_draws_the_same_whatever_is_drawn_beside_it(restless):
    """Chance is dealt per row beforehand, in order."""
    rows = prompts(restless, [f"{q} {i}" for i, q in enumerate(QUESTIONS * 3)])
    whole = drawn(extend(restless, rows, max_new=20))
    assert drawn(extend(restless, rows[:5], max_new=20)) == whole[:5]


@pytest.mark.parametrize(
    "family", [{"model_type": "qwen2"}, {"model_type": "qwen3"}, {"num_key_value_heads": 4}, {"num_key_value_heads": 1}]
)
def test_norms_biases_and_heads_of_all_families_are_drawn_with_as_they_are_scored(words, family, steps):
    generator, model = torch.Generator().manual_seed(0), Llama(SMALL | family)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) * 0.3 + (p.dim() == 1))
    policy = LlamaPolicy(model, words, CPU, torch.float32)
    rows = extend(policy, prompts(policy), max_new=20)
    for t, scored in zip(rows, policy.score(rows), strict=True):
        np.testing.assert_allclose(t.turns[-1].logprobs, scored[-len(t.turns[-1].ids) :], atol=1e-4)


@pytest.mark.parametrize("head_dim", [8, 32, 64])
def test_steps_in_cpp_give_the_logits_of_those_in_pytorch(words, head_dim):
    """Prompts of many lengths, more tokens than C++ takes at a time, and rows that run in some of the slots only."""
    if library() is None:
        pytest.skip("no C++ compiler")
    model = Llama(SMALL | {"head_dim": head_dim}).initialise(torch.Generator().manual_seed(0))
    rng, slots = np.random.default_rng(0), 40
    lengths = rng.integers(1, 30, slots)
    texts = [rng.integers(0, 512, n) for n in lengths]
    live, ids = np.flatnonzero(rng.random(slots) < 0.7), rng.integers(0, 512, slots)
    logits = []
    with torch.inference_mode():
        for kind in (Steps, NativeSteps):
            steps = kind(model, kind.prepared(fold(model, torch.float32)), slots)
            steps.grow(31)
            steps.admit(np.arange(slots), lengths)
            steps.prefill(texts, [[slot] for slot in range(slots)])
            logits.append(steps.step(live, ids, lengths))
    assert sum(lengths) > 256
    torch.testing.assert_close(*logits, atol=1e-5, rtol=1e-5)


def test_small_float32_policies_on_cpus_are_sampled_in_cpp(policy, steps, monkeypatch):
    assert decode.runs_in_cpp(policy) == (steps is NativeSteps)
    rough = LlamaPolicy(policy.model, policy.tokenizer, CPU, torch.bfloat16)
    assert not decode.runs_in_cpp(rough)
    monkeypatch.setattr(decode, "SMALL_BYTES", 0)
    assert not decode.runs_in_cpp(policy)


@pytest.fixture
def junk_in_new_memory():
    """PyTorch's own check: uninitialised memory reads as NaN."""
    assert torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def test_junk_in_new_memory_does_not_matter(policy, request):
    """A cache of uninitialised memory once let a stray NaN through: its weight of 0 does not help."""
    rows = prompts(policy)
    first = extend(policy, rows, max_new=16)
    request.getfixturevalue("junk_in_new_memory")
    assert torch.empty(3).isnan().all()
    second = extend(policy, rows, max_new=16)
    assert drawn(first) == drawn(second)
    assert all(np.isfinite(t.turns[-1].logprobs).all() for t in second)
    assert all(np.isfinite(x).all() for x in policy.score(second))


def test_bfloat16_draws_with_logprobs_close_to_exact_ones(policy):
    rough = LlamaPolicy(policy.model, policy.tokenizer, CPU, torch.bfloat16)
    rows = extend(rough, prompts(rough), max_new=16)
    for t, scored in zip(rows, policy.score(rows), strict=True):
        assert np.abs(t.turns[-1].logprobs - scored[-16:]).mean() < 0.1 * np.abs(scored[-16:]).mean()


# ---- where a reply ends ----------------------------------------------------------------------------------------------


def one(policy, **more):
    return greedy(policy, prompts(policy, ["go"]), **more)[0]


def test_a_reply_runs_to_its_length(words):
    t = one(scripted(words, "abcdef"), max_new=9)
    assert (t.reply, t.stop) == ("abcdefabc", "length")


def test_a_reply_ends_with_its_end_token_which_is_kept_but_not_shown(words):
    t = one(scripted(words, "abc<|im_end|>"), max_new=9)
    assert (t.reply, t.stop, t.ids[-1]) == ("abc", "end", words.eos_token_id)


@pytest.mark.parametrize(("stop", "reply"), [("d", "abcd"), ("cde", "abcde"), ("fa", "abcdefa"), ("x", "abcdefabc")])
def test_a_reply_ends_after_a_stop_string_within_one_token_or_over_several(stop, reply, words):
    t = one(scripted(words, "abcdef"), max_new=9, stop=("never", stop))
    assert (t.reply, t.stop) == (reply, "length" if stop == "x" else "stop")


@pytest.mark.parametrize("stop", ["é", "bé", "→", "x→"])
def test_a_stop_string_may_end_in_a_character_of_several_tokens(stop, words):
    assert len(words(stop[-1])["input_ids"]) > 1
    t = one(scripted(words, f"a{stop}c"), max_new=9, stop=(stop,))
    assert (t.reply, t.stop) == (f"a{stop}", "stop")


def test_a_predicate_is_asked_at_every_new_line_and_never_between(words):
    asked = []

    def three_lines(text):
        asked.append(text)
        return text.count("\n") >= 3

    t = one(scripted(words, "abc\n"), max_new=40, stop_when=three_lines)
    assert (t.reply, t.stop) == ("abc\n" * 3, "predicate")
    assert asked == ["abc\n", "abc\n" * 2, "abc\n" * 3]


def test_the_last_token_allowed_may_still_end_a_reply_properly(words):
    assert one(scripted(words, "abc<|im_end|>"), max_new=4).stop == "end"
    assert one(scripted(words, "abc"), max_new=3, stop=("c",)).stop == "stop"


def test_a_tokenizer_may_know_more_tokens_than_the_model_can_draw(words):
    marks = StopMarks(scripted(words, "ab"), Sampling(stop=("b",)), vocab=200)
    assert len(marks.may_end) == len(words)
    assert marks.may_end[words("b")["input_ids"][0]]


def test_enough_rows_end_the_call_and_the_others_can_go_on(restless, monkeypatch):
    monkeypatch.setitem(decode.MAX_ROWS, "cpu", 8)
    rows = prompts(restless, [f"{q} {i}" for i, q in enumerate(QUESTIONS * 3)])
    whole = greedy(restless, rows, max_new=60)
    part = greedy(restless, rows, max_new=60, enough=7)
    done = [t for t in part if t.stop]
    assert 7 <= len(done) < len(rows)
    assert any(len(t.turns[-1].ids) == 0 for t in part)
    for t, full in zip(part, whole, strict=True):
        reply, wanted = drawn([t])[0], drawn([full])[0]
        assert reply == (wanted if t.stop else wanted[: len(reply)])
    left = [i for i, t in enumerate(part) if t.stop is None and whole[i].stop == "end"]
    resumed = greedy(restless, [part[i] for i in left], max_new=60)
    assert [t.ids.tolist() for t in resumed] == [whole[i].ids.tolist() for i in left]
    assert [t.reply for t in resumed] == [whole[i].reply for i in left]


def test_a_prompt_that_leaves_no_room_is_refused_with_its_text(policy):
    rows = prompts(policy, ["fine", "far too long " * 30])
    with pytest.raises(RewardlabError, match=r"exceed the model's context of 128: 'far too long far too long"):
        extend(policy, rows, max_new=8)
    with pytest.raises(RewardlabError, match="context of 128: 'fine'"):
        extend(policy, rows[:1], max_new=120)


def test_a_model_with_a_value_head_draws_nothing(policy):
    with pytest.raises(RewardlabError, match="'critic' has a value head"):
        extend(policy.copy("critic", value_head=True), prompts(policy))


# ---- the sampler -----------------------------------------------------------------------------------------------------


def chance(n, seed=0):
    return torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def impossible(logits, *ranges):
    for start, stop in ranges:
        logits[start:stop] = -torch.inf
    return logits


@pytest.mark.parametrize("vocab", [1, 5, 128, 300])
@pytest.mark.parametrize("warped", [False, True])
def test_frequencies_of_draws_match_the_softmax(vocab, warped):
    """300 is no multiple of the block; a whole block, the first entry and the last ones are impossible."""
    logits = torch.randn(vocab, generator=torch.Generator().manual_seed(3))
    if vocab == 300:
        impossible(logits, (0, 1), (128, 256), (290, 300))
    sampling = Sampling(temperature=0.5, top_k=40) if warped else Sampling()
    n = 40_000
    ids, raw, sampled = sample(logits.repeat(n, 1), sampling, chance(n, 4))
    target = logits.double()
    if warped:
        target = (2 * target).masked_fill(target < target.topk(min(40, vocab)).values[-1], -torch.inf)
    p = target.softmax(0)
    count = torch.bincount(ids, minlength=vocab).double()
    assert len(count) == vocab
    assert (count[p == 0] == 0).all()
    seen = p > 0
    freedom = int(seen.sum()) - 1
    chi_square = float(((count - n * p)[seen] ** 2 / (n * p)[seen]).sum())
    assert chi_square <= freedom + 5 * (2 * freedom) ** 0.5 + 1e-9
    torch.testing.assert_close(sampled.double(), p.log()[ids], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(raw.double(), logits.double().log_softmax(0)[ids], atol=1e-5, rtol=1e-5)


def test_a_certain_token_is_always_drawn():
    for certain in (0, 127, 128, 299):
        logits = torch.full((500, 300), -torch.inf)
        logits[:, certain] = -3.0
        ids, raw, _ = sample(logits, Sampling(), chance(500))
        assert (ids == certain).all()
        assert raw.abs().max() < 1e-6


@pytest.mark.parametrize("uniform", [0.0, 1.0 - 2.0**-53])
def test_the_outermost_numbers_draw_the_outermost_possible_tokens(uniform):
    """Sums in blocks and sums of blocks differ by rounding, most where probabilities are of very different size."""
    logits = 8 * torch.randn(2000, 300, generator=torch.Generator().manual_seed(0))
    logits[:, :3] = logits[:, 250:] = -torch.inf
    ids, raw, _ = sample(logits, Sampling(), torch.full((2000,), uniform, dtype=torch.float64))
    assert raw.isfinite().all()
    if uniform == 0.0:
        assert (ids == 3).all()
    else:
        assert ids.max() < 250


def test_the_smallest_nucleus_is_the_likeliest_token():
    logits = torch.randn(200, 300, generator=torch.Generator().manual_seed(0))
    ids, _, sampled = sample(logits.clone(), Sampling(top_p=1e-6), chance(200))
    assert torch.equal(ids, logits.argmax(1))
    assert sampled.abs().max() < 1e-6


# ---- the chat template -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ended", [True, False])
def test_a_conversation_reads_as_the_template_renders_it_and_earlier_turns_stay(ended, words):
    policy = scripted(words, "abc<|im_end|>")
    told = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "1 + 2 = ?"}]
    rows = policy.read([Trajectory(ask("1 + 2 = ?", system="be brief"))], [[Message(m["role"], m["content"]) for m in told]])
    for question in ("and 3 more?", "twice that?"):
        rows = greedy(policy, rows, max_new=9 if ended else 2)
        before = rows[0].ids
        assert rows[0].reply == ("abc" if ended else "ab")
        rows = policy.read(rows, [[Message("system", "7"), Message("user", question)]])
        assert np.array_equal(rows[0].ids[: len(before)], before)
        told += [{"role": "assistant", "content": rows[0].reply}, {"role": "system", "content": "7"}]
        told += [{"role": "user", "content": question}]
        rendered = words.apply_chat_template(told, tokenize=False, add_generation_prompt=True)
        assert words.decode(rows[0].ids) == rendered
        assert rows[0].ids.tolist() == words(rendered)["input_ids"]
    assert [t.author for t in rows[0].turns] == [None, "policy", None, "policy", None]
    assert rows[0].mask.sum() == 2 * (4 if ended else 2)


def test_a_template_that_opens_with_a_token_of_its_own_says_it_once(words, tmp_path):
    words.save_pretrained(tmp_path)
    own = transformers.AutoTokenizer.from_pretrained(tmp_path)
    own.chat_template = "<|pad|>" + own.chat_template
    policy = scripted(own, "abc<|im_end|>")
    rows = policy.read(greedy(policy, prompts(policy, ["go"]), max_new=9), [[Message("user", "on")]])
    assert own.decode(rows[0].ids).count("<|pad|>") == 1


def test_a_recorded_reply_is_a_decision_closed_by_the_end_token(policy, words):
    rows = policy.write(prompts(policy, ["go", "on"]), ["12", "yes, 3"])
    for t, text in zip(rows, ["12", "yes, 3"], strict=True):
        assert (t.reply, t.stop) == (text, "end")
        assert t.ids[t.mask].tolist() == [*words(text)["input_ids"], words.eos_token_id]
        assert t.turns[-1].logprobs is None


def test_a_picture_is_refused(policy):
    with pytest.raises(RewardlabError, match="text-only"):
        policy.read([Trajectory(ask("?"))], [[Message("user", "what is this?", images=("x.png",))]])


# ---- few rows of a large model -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_few_rows_in_cpp_have_the_logits_of_pytorch_in_float32(words, dtype, atol, packs, threads, monkeypatch, request):
    """One to nine rows, by threads that share each product; weights in bfloat16 are those of the exact model, rounded.

    packs: as on a processor that multiplies bfloat16 itself, where PyTorch computes the prompts.
    """
    if library() is None:
        pytest.skip("no C++ compiler")
    monkeypatch.setattr(
        "rewardlab.policies.llama.native_steps.packed_formats", lambda: (torch.float32, torch.bfloat16)[: 1 + packs]
    )
    real = torch.get_num_threads()
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    # whoever asks for the threads is told so many, and sets them again: a process that forks later must have those it had
    request.addfinalizer(lambda: torch.set_num_threads(real))
    model = Llama(SMALL | {"model_type": "qwen2", "tie_word_embeddings": True}).initialise(torch.Generator().manual_seed(0))
    rng, slots = np.random.default_rng(0), 9
    lengths = rng.integers(1, 70, slots)
    texts, ids = [rng.integers(0, 512, n) for n in lengths], rng.integers(0, 512, slots)
    with torch.inference_mode():
        logits = {}
        for kind, form in ((Steps, torch.float32), (FewRows, dtype)):
            steps = kind(model, kind.prepared(fold(model, form)), slots)
            steps.grow(71)
            steps.admit(np.arange(slots), lengths)
            steps.prefill(texts, [[slot] for slot in range(slots)])
            logits[kind] = [steps.step(np.arange(n), ids, lengths)[:n] for n in range(1, slots + 1)]
        # all slots of PyTorch's steps are computed
        for n, found in enumerate(logits[FewRows], 1):
            torch.testing.assert_close(found, logits[Steps][-1][:n], atol=atol, rtol=1e-5)


def test_few_rows_of_a_large_model_are_sampled_in_cpp(policy, steps, monkeypatch):
    if library() is None:
        pytest.skip("no C++ compiler")
    rough = LlamaPolicy(policy.model, policy.tokenizer, CPU, torch.bfloat16)
    assert decode.few_in_cpp(rough, 1)
    monkeypatch.setattr(decode, "packed_formats", lambda: (torch.float32, torch.bfloat16))
    assert [decode.few_in_cpp(rough, n) for n in (4, 5, None)] == [True, False, False]
    narrow = LlamaPolicy(Llama(SMALL | {"intermediate_size": 40}), policy.tokenizer, CPU, torch.bfloat16)
    assert not decode.few_in_cpp(narrow, 1)
    # what is sampled has the log-probs of the model, and a seed repeats it
    rows = extend(rough, prompts(rough)[:2], max_new=16)
    assert drawn(rows) == drawn(extend(rough, prompts(rough)[:2], max_new=16))
    for t, scored in zip(rows, policy.score(rows), strict=True):
        assert np.abs(t.turns[-1].logprobs - scored[-16:]).mean() < 0.1 * np.abs(scored[-16:]).mean()
