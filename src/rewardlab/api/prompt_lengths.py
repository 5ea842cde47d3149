"""Prompts too long for the model: found before training, and refused, dropped or shortened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import torch

from rewardlab.api.inputs import in_template, policy_of
from rewardlab.api.open_thoughts import tell_open_thoughts
from rewardlab.api.pictures import check_sees
from rewardlab.api.written_lengths import fit_written
from rewardlab.core import Environment, Message, Problem, ProblemSource, Recipe, Task
from rewardlab.engine.distributed import is_rank_zero
from rewardlab.engine.episodes import environment_of
from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import find
from rewardlab.models.load import Policy, use_template_of
from rewardlab.models.planned import is_checkpoint, planned
from rewardlab.policies.hf.sight import FAMILIES
from rewardlab.policies.text import TextPolicy
from rewardlab.policies.truncate import truncate_left
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Listed
from rewardlab.util.progress import console, unless_quick

SAMPLE = 200
"""Problems of an endless source that are looked at beforehand."""
FAR = 1 << 40
"""Positions between a problem of an endless source that is dropped and the one in its place."""
TRIES = 100
NO_ROOM = "take a model with a longer context, or an environment that begins with fewer words (fewer tools, shorter docstrings)"


def fit_prompts(
    task: Task,
    policy: Policy,
    config: RunConfig,
    recipe: Recipe | None = None,
    env: Environment | None = None,
    written: bool = True,
) -> tuple[Task, dict[str, Any]]:
    """The task with no prompt that is too long for the model, and what was found, as plain data for config.json.

    A prompt is too long if it leaves no room for a reply of `max_new` tokens, or for the recorded replies that the recipe learns
    from, after the message with which an environment opens. Where the rollout makes other questions of the rows, as for a judge,
    these are the prompts. config.overlong says what is done: "error", "drop" or "truncate-left" (of such questions as "drop").
    Of an endless source a sample is looked at, and the others as they come.  recipe: None looks at the held-out problems alone.
    env: what answers the replies, None: the recipe's. Of rows that hold what is learnt, such as judgements, `written` says how long
    these are with it.  written: False for a run of an older version, which did not look at these.
    """
    check_sees(task, policy, config)
    # other policies read no text, and set no limit; an encoder cuts by itself
    if not isinstance(policy, TextPolicy) or policy.cuts:
        return task, {}
    env = env or environment_of(recipe)
    opening = opening_of(env, task, policy) if env else 0
    fitter = Fitter(policy, config.overlong, config.max_new or task.max_new, opening, _asks(recipe))
    found: dict[str, Any] = {"context": policy.context, "max_new": fitter.max_new, "overlong": config.overlong}
    if recipe is not None:
        positions = range(config.start, config.start + min(SAMPLE, config.settled().steps * recipe.update.problems))
        train, found["train"] = fitter.source(task.train, _recorded(recipe), positions)
        if fields := _recorded(recipe):
            tell_open_thoughts(policy, train.problems if isinstance(train, Listed) else (train[i] for i in positions), fields)
        task = replace(task, train=train)
    if task.test:
        test, found["test"] = fitter.fit(task.test, "held-out")
        task = replace(task, test=test)
    if recipe is not None and written:
        task, rows = fit_written(task, policy, config, recipe)
        found |= {"written": rows} if rows else {}
    return task, found


def opening_of(env: Environment, task: Task, policy: TextPolicy) -> int:
    """Tokens of the message with which an episode of the first problem begins: how to search, which tools there are.

    The task's own environment opens with a game, of which nobody plays one for this.
    """
    problem = next(iter(task.test), None) or (task.train[0] if task.train else None)
    if task.played or problem is None:
        return 0
    message, _ = env.start(problem, 0)
    prompts = [problem.prompt, problem.prompt if message is None else (*problem.prompt, message)]
    alone, opened = policy.prompt_lengths(prompts)
    return opened - alone


def text_reader(model: str | Policy | None, config: RunConfig, task: Task) -> Policy:
    """The policy as far as it reads prompts: of a checkpoint the tokenizer alone, without weights."""
    return in_template(_reader(model, config, task), config)


def _reader(model: str | Policy | None, config: RunConfig, task: Task) -> Policy:
    name = config.model or task.model
    if not (model is None or isinstance(model, str)) or not is_checkpoint(name):
        return policy_of(model, config, task)
    from transformers import AutoConfig, AutoTokenizer

    from rewardlab.policies.hf.encoder import EncoderPolicy, is_encoder
    from rewardlab.policies.hf.model import context_of

    found = find(name, weights=False)
    if is_encoder(found.config):
        return EncoderPolicy.without_numbers(found.folder)
    if found.config.get("model_type") in FAMILIES:
        # how many tokens a picture has, the model's own configuration says
        return planned(name, "cpu", torch.float32)
    folder = str(found.folder)
    reader = TextPolicy(AutoTokenizer.from_pretrained(folder, trust_remote_code=False))
    use_template_of(reader, found.adapter)
    config_there = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    reader.context = context_of(SimpleNamespace(config=config_there), reader.tokenizer)
    return reader


@dataclass(frozen=True)
class Fitter:
    """Makes prompts fit into the context of a policy.  opening: tokens that an environment says after each.  asks: the questions
    that stand in place of a problem's prompt, None: it is asked itself."""

    policy: TextPolicy
    action: str
    max_new: int
    opening: int = 0
    asks: Callable[[Problem], Sequence[Problem]] | None = None

    def source(self, source: ProblemSource, fields: Sequence[str], sample: Sequence[int]) -> tuple[ProblemSource, dict[str, Any]]:
        """The training problems with no prompt too long.

        fields: columns of recorded replies that are learned from.  sample: positions of an endless source to look at.
        """
        if isinstance(source, Listed):
            problems, found = self.fit(source.problems, "training", fields)
            return replace(source, problems=problems), found
        _, found = self.fit([source[i] for i in sample], "sampled training", fields)
        if self.action == "error":
            # the policy itself refuses a prompt that the sample did not show
            return source, found
        return Fitting(source, lambda problem: self.one(problem, fields)), found

    def fit(self, problems: Sequence[Problem], which: str, fields: Sequence[str] = ()) -> tuple[list[Problem], dict[str, Any]]:
        """The problems that fit or were made to, and what was found.  which: names the problems in messages."""
        lengths = [
            length for part in unless_quick(f"measuring {which} prompts", problems)
            for length in zip(self._lengths(part), self._rooms(part, fields), strict=True)
        ]  # fmt: skip
        over = [i for i, (prompt, room) in enumerate(lengths) if prompt + room > self.policy.context]
        found = {"prompts": len(problems), "longest": max((prompt for prompt, _ in lengths), default=0), "overlong": len(over)}
        if not over:
            return list(problems), found
        if self.action == "error":
            raise self._refusal(problems, over, lengths, which, bool(fields))
        fitted = {i: self._shortened(problems[i], lengths[i][1]) for i in over}
        kept = [p for i, problem in enumerate(problems) if (p := fitted.get(i, problem)) is not None]
        found["dropped"] = len(problems) - len(kept)
        shortened = [p.prompt for p in fitted.values() if p is not None]
        fitting = [prompt for i, (prompt, _) in enumerate(lengths) if i not in fitted]
        found["longest_kept"] = max([*fitting, *(self.policy.prompt_lengths(shortened) if shortened else [])], default=0)
        self._say(found, which, bool(fields))
        if not kept:
            raise RewardlabError(f"no {which} prompt is left: {self._limit(bool(fields))}")
        return kept, found

    def one(self, problem: Problem, fields: Sequence[str] = ()) -> Problem | None:
        """The problem, shortened if need be; None if it is to be dropped."""
        (length,), (room,) = self._lengths([problem]), self._rooms([problem], fields)
        return problem if length + room <= self.policy.context else self._shortened(problem, room)

    def _lengths(self, problems: Sequence[Problem]) -> list[int]:
        """The tokens of each problem's prompt, or of the longest question that stands in its place."""
        if self.asks is None:
            return self.policy.prompt_lengths([p.prompt for p in problems])
        asked = [self.asks(p) for p in problems]
        counts = iter(self.policy.prompt_lengths([q.prompt for row in asked for q in row] or [(Message("user", ""),)]))
        return [max((next(counts) for _ in row), default=0) for row in asked]

    def _shortened(self, problem: Problem, room: int) -> Problem | None:
        # a question that is made of a row has no beginning that could be cut
        if self.action == "drop" or self.asks is not None:
            return None
        prompt = truncate_left(self.policy, problem.prompt, self.policy.context - room)
        return None if prompt is None else replace(problem, prompt=prompt)

    def _rooms(self, problems: Sequence[Problem], fields: Sequence[str]) -> list[int]:
        """The tokens after each prompt: of the opening and a sampled reply at full length, or of the longest recorded one."""
        if not fields:
            return [self.opening + self.max_new] * len(problems)
        # a field holds a reply, or a list of replies and messages; a problem may lack one, which the rollout judges
        replies = [[_texts(p.meta.get(field)) for field in fields] for p in problems]
        if without := next((p for p, of in zip(problems, replies, strict=True) if not any(of)), None):
            raise RewardlabError(
                f"problem {without.question[:60]!r} has no text in {' or '.join(map(repr, fields))} to learn from; it has: "
                f"{', '.join(without.meta) or 'nothing'}. Name the column of the replies with --completion-column"
            )
        counts = iter(self.policy.text_lengths([text for fields_of in replies for texts in fields_of for text in texts] or [""]))
        # each text is followed by an end token, and each message by what the template writes around it
        around = self.policy.prompt_lengths([(Message("user", ""),)])[0]
        return [max(sum(next(counts) + (around if i % 2 else 1) for i, _ in enumerate(texts)) for texts in of) for of in replies]

    def _limit(self, recorded: bool) -> str:
        context = f"the model's context of {self.policy.context:,} tokens"
        if recorded:
            return f"none fits {context} with its recorded reply"
        opened = f"after an opening message of {self.opening:,} tokens " if self.opening else ""
        asked = " as they are asked" if self.asks is not None else ""
        lower = NO_ROOM if self.opening >= self.policy.context else "lower --max-new"
        return f"replies of {self.max_new:,} tokens {opened}do not leave room for any{asked} in {context}; {lower}"

    def _refusal(
        self, problems: Sequence[Problem], over: list[int], lengths: list[tuple[int, int]], which: str, recorded: bool
    ) -> RewardlabError:
        longest = max(over, key=lambda i: sum(lengths[i]))
        prompt, room = lengths[longest]
        after = "the opening message and the reply" if self.opening and not recorded else "the reply"
        said = problems[longest].question if self.asks is None else self.asks(problems[longest])[0].question
        made, of = ("", "") if self.asks is None else (", as they are asked,", f" (of {problems[longest].question[:40]!r})")
        # recorded replies are as long as they are
        or_lower = "" if recorded else ", or lower --max-new"
        give = f"Give --overlong drop{'' if made else ' or truncate-left'}{or_lower}"
        if not recorded and self.opening >= self.policy.context:
            give = f"The opening message alone has {self.opening:,}: {NO_ROOM}"
        return RewardlabError(
            f"{len(over):,} of {len(problems):,} {which} prompts{made} are too long: the longest has {prompt:,} tokens, and with "
            f"{room:,} for {after} they exceed the model's context of {self.policy.context:,}: {said[:80]!r}{of}. {give}"
        )

    def _say(self, found: dict[str, Any], which: str, recorded: bool) -> None:
        if not is_rank_zero():
            return
        limit = (
            f"{self.policy.context:,} tokens with their replies"
            if recorded
            else f"{self.policy.context - self.max_new - self.opening:,} tokens"
        )
        cut = found["overlong"] - found["dropped"]
        done = [f"{verb} {n:,}" for verb, n in (("shortened", cut), ("dropped", found["dropped"])) if n]
        console.print(f"{' and '.join(done)} of {found['prompts']:,} {which} prompts over {limit}", highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Fitting:
    """Another source, its prompts made to fit as they come; in place of one that is dropped stands another, always the same."""

    of: ProblemSource
    fit: Callable[[Problem], Problem | None]

    def __len__(self) -> int:
        """Problems in an epoch; an endless source has no length."""
        return len(self.of)  # type: ignore[arg-type]

    def __getitem__(self, position: int) -> Problem:
        candidates = (self.fit(self.of[position + i * FAR]) for i in range(TRIES))
        if (problem := next((p for p in candidates if p is not None), None)) is None:
            raise RewardlabError(f"of {TRIES} prompts in a row none fits into the model's context; lower --max-new")
        return problem


def _asks(recipe: Recipe | None) -> Callable[[Problem], Sequence[Problem]] | None:
    """The questions that the rollout makes of a problem; None where it is asked as it is."""
    parts = recipe.rollout.walk() if recipe is not None and recipe.rollout is not None else ()
    found = next(((asks, part.settings) for part in parts if (asks := getattr(part.options, "asks", None))), None)
    return None if found is None else lambda problem: found[0](problem, **found[1])


def _recorded(recipe: Recipe) -> Sequence[str]:
    """The columns whose texts the rollout records instead of sampling."""
    return () if recipe.rollout is None else recipe.rollout.settings.get("fields", ())


def _texts(value: Any) -> list[str]:
    return [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
