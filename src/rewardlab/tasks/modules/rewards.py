"""How much of a module was found."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.data.values import list_of, map_of
from rewardlab.rewards.reward import reward
from rewardlab.text.named import added, bare, visible


@reward
def module_f1(trajectory: Trajectory) -> Score:
    """The F1 of the nodes that a reply names, one a line, against the column `module`, without the seed that the question names.

    Lists and sentences are read as models write them (`text/named.py`). A line of one word that is no node is a wrong one; a line
    of several that names none says nothing.
    """
    meta = trajectory.problem.meta
    module, seed, known = list_of(meta.get("module")), str(meta.get("seed", "")), map_of(meta.get("nodes")) or {}
    if not module:
        return Score(None, why="the problem has no module")
    wanted, named = set(module) - {seed}, list[str]()
    for line in visible(trajectory.reply.splitlines()):
        found = added(line, {*known, *module}, [seed, *named])
        word = bare(line)
        named += found or ([word] if word and " " not in word and not line.rstrip(" *_").endswith(":") else [])
    said = set(named) - {seed}
    hits = len(said & wanted)
    return Score(2 * hits / (len(said) + len(wanted)), why=f"{hits} of {len(wanted)} nodes, {len(said)} named")
