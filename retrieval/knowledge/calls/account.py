"""The account: what a repair does with every value of a call, from the two calls alone.

Each leaf of the repaired call has one origin, each leaf of the failed call one fate, and each key
that changes a reason. Nothing that a proposer states of itself enters it. From it follows the
class of the change (`Account.change_class`), and what is shown.

A leaf is a scalar or an empty container. Leaves are compared as bytes: `1`, `1.0` and `"1"` are
three values, and a mask is a value like any other.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from aftercall import models as m
from aftercall.json_patch import make_pointer
from aftercall.json_values import JsonValue
from aftercall.models import ChangeClass
from retrieval.knowledge.values.parameters import ParameterView, Path

Origin = Literal["moved", "recoded", "stated", "own", "setting", "unexplained"]
KeyReason = Literal["same", "spelling", "error", "level", "only", "left", "none"]
"""Why a value stands under another key:

- `same`: it does not, the keys are the same;
- `spelling`: the name is another spelling;
- `error`: the error names it;
- `level`: the schema states this level;
- `only`: the only place left, from under a neutral name;
- `left`: the only place left, from under a name with a meaning of its own;
- `none`: nothing states why.
"""


_RENAMED = frozenset(("spelling", "error", "only"))


class Origined(NamedTuple):
    """A leaf, or a subtree that moved whole, of the repaired call with its origin.

    `former` is the value of the failed call at `source`, that it was made of or stands for.
    """

    path: Path
    origin: Origin
    why: str
    value: JsonValue
    source: Path | None = None
    former: JsonValue = None
    key: KeyReason = "same"
    loses: str = ""
    rivals: tuple[Path, ...] = ()


class Dropped(NamedTuple):
    """A leaf of the failed call that the repaired one does not hold."""

    path: Path
    value: JsonValue
    why: str
    says_nothing: bool


class StatedValue(NamedTuple):
    """Who states a value, and how: `bound` and `default` put in what the caller left open."""

    origin: Origin
    why: str
    kind: Literal["bound", "default", "value"] = "value"


@dataclass(frozen=True, slots=True)
class Grounds:
    """What may explain a value or a key next to the call itself.

    `places` gives the views of the object at a path of the repaired call, by name; `listed` the
    values that are listed for a place; `state` who states a value for a place, whose former value
    is given (None where there was none); `renamed` whether the error names a key for another.
    """

    places: Callable[[Path], Mapping[str, ParameterView]] = lambda _: {}
    listed: Callable[[Path], tuple[JsonValue, ...]] = lambda _: ()
    state: Callable[[Path, JsonValue, JsonValue], StatedValue | None] = lambda *_: None
    renamed: Callable[[str, str], bool] = lambda *_: False


@dataclass(frozen=True, slots=True)
class CallAccount:
    """What a repair does: values that changed, values that are gone, and how many stayed."""

    kept: int
    values: tuple[Origined, ...]
    dropped: tuple[Dropped, ...]
    alters_qualifier: bool = False
    lost_keys: tuple[str, ...] = ()
    """Keys with a meaning of their own whose words stand nowhere in the repaired call."""
    bounds: frozenset[Path] = frozenset()
    """Places that were moved to a stated bound, or filled with a stated default."""
    change_class: ChangeClass = field(init=False)

    def __post_init__(self) -> None:
        """Read the class off the account."""
        object.__setattr__(self, "change_class", self._change_class())

    @property
    def unexplained(self) -> tuple[Origined, ...]:
        """Return values that no one stated and nothing of the call explains."""
        return tuple(each for each in self.values if each.origin == "unexplained")

    @property
    def former(self) -> Iterator[JsonValue]:
        """Yield values of the failed call that others were made of, or stand instead of."""
        seen = set[Path]()
        for each in self.values:
            if each.source is not None and (each.origin == "moved" or each.source not in seen):
                seen.add(each.source)
                yield each.former

    @property
    def questions(self) -> tuple[Origined, ...]:
        """Return values that more than one open place would take."""
        return tuple(each for each in self.values if each.rivals)

    def _change_class(self) -> ChangeClass:
        for each in self.values:
            is_of_call = each.origin in ("moved", "recoded")
            if each.rivals or each.key in ("left", "none"):
                return "semantic"
            if not is_of_call and each.path not in self.bounds:
                return "semantic"
        loses = any(each.loses for each in self.values) or bool(self.bounds or self.lost_keys)
        if loses or any(not each.says_nothing for each in self.dropped):
            return "lossy"
        if self.alters_qualifier:
            return "semantic"
        if not any(each.key == "only" for each in self.values):
            return "lossless"
        # Where another name of the object was unknown as well, either may be meant.
        renamed = Counter(
            each.path[:-1]
            for each in self.values
            if each.key in _RENAMED and each.source and isinstance(each.source[-1], str)
        )
        return "semantic" if max(renamed.values(), default=0) > 1 else "plausible"

    def to_model(self) -> m.Account:
        """Return the account as it is sent."""
        return m.Account(
            kept=self.kept,
            values=[
                m.AccountedValue(
                    path=make_pointer(each.path),
                    origin=each.origin,
                    from_=None if each.source is None else make_pointer(each.source),
                    why=each.why,
                    rivals=[make_pointer(rival) for rival in each.rivals],
                )
                for each in self.values
            ],
            dropped=[m.DroppedValue(path=make_pointer(d.path), why=d.why) for d in self.dropped],
        )
