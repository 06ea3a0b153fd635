"""Who states so: whose the marks of agents and sessions are, and what one principal can weigh.

A principal is a key, however many agents and sessions it names (4-rules.md, Trust). A mark of an
agent or a session that came with a key begins with the mark of that key and a point; without keys
all is the owner's, and marks have no such part.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Self, TypeVar

from aftercall.tables import sum_values
from mongo.contents import BETWEEN
from mongo.records import OWNER

MOST_OF_ONE = 4
"""Repairs, successes or sessions of one principal that count, where several say something."""
SURE = 0.80
"""Above it a suggestion may be followed (4-rules.md): what one other caller taught never is."""
T = TypeVar("T")


def key_mark(principal: str) -> str:
    """Return the short mark of a principal; empty for the owner."""
    if principal == OWNER:
        return ""
    return sha256(principal.encode()).hexdigest()[:8]


def make_mark(text: str, digest: Callable[[str], str]) -> str:
    """Return the mark of an agent or session, of a text that `mongo.contents.named` has made."""
    principal, found, name = text.partition(BETWEEN)
    if found:
        return f"{key_mark(principal)}.{digest(name)}"
    return digest(text)


def agent_mark(agent: str) -> str:
    """Return a short mark of an agent's name, empty where it has none."""
    return make_mark(agent, lambda name: sha256(name.encode()).hexdigest()[:12] if name else "")


def principal_of(mark: str) -> str:
    """Return the principal of a mark: that of a key, or nothing for the owner."""
    if "." in mark:
        return mark.partition(".")[0]
    return ""


def principals_of(marks: Collection[str]) -> int:
    """Return how many principals some marks are of."""
    if len(marks) == 1:
        return 1
    if marks and "." not in "".join(marks):
        return 1
    return len(set(map(principal_of, marks)))


def count_others(marks: Iterable[str], asker: str) -> int:
    """Return how many others some marks are to one that asks.

    All of another principal count as one.
    """
    own = principal_of(asker)
    told = (
        (whose, mark if whose == own else "") for mark in marks for whose in [principal_of(mark)]
    )
    return len(set(told) - {(own, asker)})


def largest_principal(marks: Collection[str]) -> str:
    """Return the principal with the most marks: of a full table, one of its marks makes space."""
    counts = Counter(map(principal_of, marks))
    return max(counts, key=lambda each: (counts[each], each))


def cap_marks(marks: Iterable[str], beside: Iterable[str] = ()) -> int:
    """Return how many marks count: `MOST_OF_ONE` of a principal, where there are others."""
    counts = Counter(map(principal_of, marks))
    if len(counts.keys() | set(map(principal_of, beside))) < 2:
        return sum(counts.values())
    return sum(min(MOST_OF_ONE, count) for count in counts.values())


OF_A_STRANGER = 0.02
"""What one principal alone weighs against two others or more, however often it speaks: to be seen,
and never to switch off what works for them."""


def is_one_stranger(against: Iterable[str], for_it: Iterable[str]) -> bool:
    """Return whether one principal alone speaks against what two others or more saw work."""
    whose = set(against)
    return len(whose) == 1 and len(set(for_it) - whose) > 1


def capped_against(against: Collection[str], for_it: Collection[str]) -> int:
    """Return how many marks count against what others say.

    `capped`, and of one other caller a single one.

    A single principal stands against two others or more: however often it repeats its word, it
    takes from no one what worked.
    """
    if is_one_stranger(map(principal_of, against), map(principal_of, for_it)):
        return 1
    return cap_marks(against, for_it)


def fairly_heard(
    said: Sequence[T], whose: Callable[[T], str], own: str | None = None, *, least: int = 0
) -> list[T]:
    """Return what the one that asks hears.

    All of its own, of each other at most as much as of all but it.

    So what a single other principal reports is not shown, beyond the `least`. The order stays; of
    each the last ones are received. `own` is the mark of the asker's principal; None for everyone's
    ears.
    """
    counts = Counter(map(whose, said))
    if counts.keys() <= {own}:
        return list(said)
    room = {
        of: count if of == own else max(least, len(said) - count) for of, count in counts.items()
    }
    kept: list[T] = []
    for each in reversed(said):
        room[whose(each)] -= 1
        if room[whose(each)] >= 0:
            kept.append(each)
    return kept[::-1]


def remember_mark(marks: list[str], mark: str, limit: int) -> None:
    """Add a mark to a bounded list: the oldest of the principal with the most makes space."""
    if mark not in marks:
        marks.append(mark)
        drop_loudest(marks, limit, str)


def drop_loudest(items: list[T], limit: int, mark: Callable[[T], str]) -> None:
    """Shorten a list in place: the first of the principal with the most goes, until it fits."""
    while len(items) > limit:
        marks = [mark(each) for each in items]
        if principals_of(marks) == 1:
            del items[:-limit]
            return
        whose = largest_principal(marks)
        del items[next(at for at, each in enumerate(items) if principal_of(mark(each)) == whose)]


def _weight_of(calls: int) -> float:
    return min(1.0, MAX_WEIGHT_OF_AGENT / calls)


def make_room(table: dict[str, T], key: str, limit: int, rank: Callable[[str], int]) -> None:
    """Remove the lowest of a full table, of the principal that has the most in it."""
    if key not in table and len(table) >= limit:
        whose = largest_principal([*table, key])
        of_one = [each for each in table if principal_of(each) == whose]
        del table[min(of_one or table, key=rank)]


MAX_WEIGHT_OF_AGENT = 20
"""Calls of one agent that count in full where there are several; more share the weight of these."""


@dataclass(frozen=True, slots=True)
class FairWeights:
    """What a call of each agent weighs, from 0 to 1.

    At most `MAX_WEIGHT_OF_AGENT` calls of each agent count in full, and of all agents beyond the
    sample together. So a flood of one agent moves no share by more than any other agent's word
    does. Where one agent made all calls, each weighs 1: there is no one to be outshouted.
    """

    of_agent: Mapping[str, float]
    of_others: float

    @classmethod
    def from_calls(cls, calls: int, agents: Mapping[str, int]) -> Self:
        """Return the fair in so many calls, with the sample of who made them."""
        others = calls - sum(agents.values())
        if len(agents) + (others > 0) <= 1:
            return cls({}, 1.0)
        whose = {agent: principal_of(agent) for agent in agents}
        principals = set(whose.values())
        if len(principals) < 2:  # of several each is one, however many its agents
            whose = {agent: agent for agent in agents}
        made_by = sum_values((whose[agent], made) for agent, made in agents.items())
        of_agent = {each: _weight_of(made_by[whose[each]]) for each in agents}
        if not others:
            return cls(of_agent, 0.0)
        return cls(of_agent, _weight_of(others))

    def fair_weight(self, calls: int, agents: Mapping[str, int]) -> float:
        """Return the weight of some of these calls, with the sample of who made those.

        At most `calls`.
        """
        weight = 0.0
        others = calls
        for agent, made in agents.items():
            voice = self.of_agent.get(agent)
            if voice is not None:
                weight += made * voice
                others -= made
        return weight + others * self.of_others
