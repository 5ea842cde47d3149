"""What a league is: methods that promise the same, the worlds in which they meet, and the numbers that decide between them.

`leagues/NAME.py` makes `league = League(...)`; a text `leagues/NAME.md` opens its section of the guide, whether or not it was run.
Worlds, outcome, guard and rates are fixed for the whole family before any member is run, so that no method is examined in a world
of its own choosing.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rewardlab import registry
from rewardlab.errors import RewardlabError, unknown

if TYPE_CHECKING:
    from rewardlab.core import Measure
    from rewardlab.rewards.reward import Reward

BASELINE_RATES = (3e-5, 1e-4, 3e-4)
PAIRS = 8
"""Seeds on which members meet, unless more are asked for."""
OWN = "own"
"""The name of the world of a user's own problems."""


@dataclass(frozen=True)
class Outcome:
    """The number that decides.  number: as runs measure it.  better: which way.  says: what it is, in words.

    margin: the smallest difference that would matter to someone who chooses, in units of the number.  scale: "share", shown in
    percent; "log", a natural logarithm, shown as what it is the logarithm of; or "plain".  unit: of what is shown.
    """

    number: str
    better: Literal["higher", "lower"]
    says: str
    margin: float
    scale: Literal["share", "log", "plain"] = "share"
    unit: str = ""

    def __post_init__(self) -> None:
        if self.better not in ("higher", "lower") or not self.margin > 0:
            raise RewardlabError(f"the outcome {self.number} is better higher or lower, with a margin above 0, not {self.margin!r}")

    def gain(self, value: float) -> float:
        """A value, or a difference of values, so that more of it is better."""
        return value if self.better == "higher" else -value


@dataclass(frozen=True)
class Guard:
    """What must not be paid for the outcome: `number` may differ from the baseline's by no less than `at_least`, nor more than
    `at_most`.  scale, unit: how it is shown, as an Outcome's.
    """

    number: str
    at_least: float = -math.inf
    at_most: float = math.inf
    says: str = ""
    scale: Literal["share", "plain"] = "share"
    unit: str = ""


@dataclass(frozen=True)
class Member:
    """A method in a league.  name: distinct in it.  method: of the method or stack, if that is another name.  settings: there.

    values: of one of its settings, `knob`, for the frontier: each is run on a few seeds, shown, and not decided.  small: settings
    that fit the league's own small worlds alone, such as a length in tokens; on a user's problems the method has its own.
    by: how it makes one number of a world's reward of steps (`aggregate`); "" takes the reward as it is.
    reward: in place of the method's own, and of the world's.  rate: its setting that is the learning rate; "": the league's.
    columns: that it reads of rows of one's own, beside those that all members read.
    """

    name: str
    method: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    knob: str = ""
    values: tuple[float, ...] = ()
    small: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""
    reward: Reward | None = None
    rate: str = ""
    columns: tuple[str, ...] = ()

    @property
    def stack(self) -> str:
        return self.method or self.name


@dataclass(frozen=True)
class World:
    """Where members meet.  task, model: as on the command line; model None: the task's own.  reward: in place of the members' own.

    new: whether no member's check was made there, in words that say what it asks.  steps, settings, lora_rank: in place of the
    league's.  starts: initial small policies among which seeds are divided; 0: a model that has one start.
    sampled: whether seeds change what a member does there. Where replies were recorded they do not: members are run once, and
    compared problem by problem.
    tokens: of all models together, that each run may spend, in place of steps: where methods differ in what an update costs them.
    absent: members that cannot play there, and why.
    learns: whether the baseline must learn there. Where it need not, right replies are enough, and rates are chosen by the outcome
    first, then by what is guarded (`played.rate_levels`).  A single rate is everyone's, and is not tried beforehand.
    pairs: seeds on which members meet, if they are fewer than the league's; varied: whether members' knobs are turned there: of a
    pretrained model a run takes minutes.
    """

    name: str
    task: str
    says: str
    new: bool = False
    model: str | None = None
    reward: Reward | None = None
    steps: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    rates: tuple[float, ...] = ()
    lora_rank: int | None = None
    problems: int | None = None
    starts: int = PAIRS
    sampled: bool = True
    tokens: int | None = None
    absent: Mapping[str, str] = field(default_factory=dict)
    learns: bool = True
    pairs: int | None = None
    varied: bool = True


@dataclass(frozen=True)
class League:
    """The methods of a family, decided together.

    question: what it answers.  want: what someone wants who should read it ("shorter answers").  baseline: the member with which
    all others are compared.  measure: what every run is measured by; None: each by its method's own, which must have the numbers
    that decide, as of judges that are asked in a form of their own.  learns: the number by which the baseline must learn, where
    something is trained, for a world to be fit.  settings: of all members that have them, so that replies, problems and passes are
    equal.  steps: updates of each run.  rates: from which each member chooses, by the mean of `chosen_by` on `rate_seeds`
    development seeds.  problems: held out.  left_out: methods of the
    family that are not in it, and why.  advice: what was learnt, for the guide; {world/member} stands for a level of the record.
    needs: what rows of one's own must have, and what decides there.  first: what to try first, for the guide's first table, in the
    light of the record; "": the baseline.  earlier: of a league that was not run, what was compared before it, in a sentence.
    scorer: the process reward model that members read, by name; on rows of one's own it is the one of --reward prm:PATH.
    rate: the setting that is the learning rate of what members train.  pairs: seeds on which members meet.
    answers: whether what decides needs answers in rows of one's own.  own_learns: whether the baseline must learn on these: not
    where another number decides, as length, for which a model may be right nearly always (`World.learns`).
    own_flags: what the printed command has for rows of one's own beside task, model and members.
    costs: further numbers of a run that are shown, with what they are; against the first of them the outcome is plotted.
    spends: a number that grows as a run learns, as its KL from the start, and what it is: runs are measured on the way, and members
    compared once more where both have spent as much.
    """

    question: str
    want: str
    baseline: str
    members: tuple[Member, ...]
    worlds: tuple[World, ...]
    outcome: Outcome
    measure: Measure | None
    guard: Guard | None = None
    learns: str | None = "pass@1"
    settings: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 40
    rates: tuple[float, ...] = BASELINE_RATES
    rate_seeds: int = 2
    chosen_by: str = "auc.truth"
    problems: int = 300
    left_out: Mapping[str, str] = field(default_factory=dict)
    advice: str = ""
    needs: str = ""
    first: str = ""
    earlier: str = ""
    scorer: str = ""
    rate: str = "lr"
    pairs: int = PAIRS
    answers: bool = True
    own_learns: bool = True
    own_flags: str = ""
    costs: Mapping[str, str] = field(default_factory=dict)
    spends: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        names = [member.name for member in self.members]
        if len(set(names)) < len(names):
            raise RewardlabError(f"a league has members of distinct names, not {', '.join(names)}")
        if self.baseline not in names:
            raise unknown("baseline: it must be a member", self.baseline, names)
        places = [world.name for world in self.worlds]
        if len(set(places)) < len(places) or not places:
            raise RewardlabError("a league needs worlds, of distinct names")
        absent = [name for world in self.worlds for name in world.absent]
        if missing := [name for name in absent if name not in names or name == self.baseline]:
            raise unknown("member that is absent from a world", missing[0], [name for name in names if name != self.baseline])

        if not self.own_learns and (self.guard is None or not math.isfinite(self.guard.at_least)):
            raise RewardlabError("own_learns=False: name a guard of which more is better, by which rates that are alike are chosen")

    @property
    def on_plain_rows(self) -> tuple[Member, ...]:
        """The members that can play on rows without special columns, the baseline among them."""
        return tuple(member for member in self.members if not member.columns)

    def member(self, name: str) -> Member:
        return next(member for member in self.members if member.name == name)

    def rate_of(self, member: Member) -> str:
        """The setting that is a member's learning rate."""
        return member.rate or self.rate

    def members_of(self, world: World) -> tuple[Member, ...]:
        """The members that play in a world."""
        return tuple(member for member in self.members if member.name not in world.absent)

    def rivals_of(self, world: World) -> tuple[Member, ...]:
        """Those that are compared with the baseline there."""
        return tuple(member for member in self.members_of(world) if member.name != self.baseline)


def leagues() -> dict[str, Path]:
    """Name to file of every league."""
    return {path.stem: path for path in sorted((registry.PACKAGE / "leagues").glob("*.py")) if not path.stem.startswith("_")}


def league(name: str) -> League:
    """A league by name. Raises RewardlabError for one that does not exist, with the nearest that do."""
    if name not in leagues():
        raise _no_league(name)
    found = importlib.import_module(f"rewardlab.leagues.{name}").league
    assert isinstance(found, League)
    return found


def _no_league(name: str) -> RewardlabError:
    """The error for a league that does not exist; a folder of methods is taken for one easily."""
    folders = {path.parent.name for path in registry.methods().values()}
    of_folder = f"; {name} is a folder of methods: rewardlab list --folder {name}" if name in folders else ""
    return RewardlabError(f"{unknown('league', name, leagues())}{of_folder}")
