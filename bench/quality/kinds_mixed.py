"""Two and three mistakes in one call, which servers of many kinds refuse; and calls beyond repair.

A mistake is drawn from a pool: one was developed on, the other is kept for a final table. A call
is beyond repair where a value is gone that nobody stated, or where it is the call of another tool.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.quality import bfcl, seal, voices
from bench.quality.kinds_damage import Draw, Made, Maker
from bench.quality.kinds_words import camel, number_in_words, snake, words_of
from bench.quality.trial import Json


@dataclass(slots=True)
class Wrong:
    """A call that goes wrong step by step: `free` are the names that nothing was done to yet."""

    sent: Json
    free: list[str]
    wraps: list[Callable[[Json], Json]] = field(default_factory=list)

    def rename(self, name: str, new: str) -> bool:
        """Give one name another one; whether that can be."""
        if new == name or new in self.sent or name not in self.free:
            return False
        self.sent = {(new if key == name else key): value for key, value in self.sent.items()}
        self.free.remove(name)
        return True

    def value(self, name: str, value: Any) -> bool:
        """Give one name another value."""
        self.sent = {**self.sent, name: value}
        self.free.remove(name)
        return True

    def add(self, draw: Draw, name: str, value: Any) -> bool:
        """Give a parameter that nobody wants."""
        if name in self.sent or name in draw.properties:
            return False
        self.sent = {**self.sent, name: value}
        return True


Mistake = Callable[[Draw, Wrong], bool]


def _renamed_by(names_for: Callable[[Draw, str], Sequence[str]]) -> Mistake:
    def mistake(draw: Draw, wrong: Wrong) -> bool:
        for name in draw.shuffled(wrong.free):
            for new in draw.shuffled(names_for(draw, name)):
                if new not in draw.properties and wrong.rename(name, new):
                    return True
        return False

    return mistake


def _valued_by(form: Callable[[str, Any], Any]) -> Mistake:
    def mistake(draw: Draw, wrong: Wrong) -> bool:
        for name in draw.shuffled(wrong.free):
            value = form(name, wrong.sent[name])
            if value is not None and name in wrong.sent:
                return wrong.value(name, value)
        return False

    return mistake


def _elsewhere(draw: Draw, name: str) -> list[str]:
    """What other tools call it; else with the tool's noun, or without its first words."""
    if found := seal.names_elsewhere(name, draw.properties.get(name, {})):
        return found
    words, noun = words_of(name), words_of(draw.call.tool)[-1].lower()
    short = ["_".join(words[at:]).lower() for at in range(1, len(words))]
    return [*short, f"{noun}_{name}"]


def _other_style(draw: Draw, wrong: Wrong) -> bool:
    """All names as another language writes them."""
    style = draw.rng.choice((camel, snake, lambda name: "-".join(words_of(name)).lower()))
    return _all_renamed(wrong, style)


def _all_renamed(wrong: Wrong, form: Callable[[str], str]) -> bool:
    """Give all names another form; whether one could be."""
    return sum(wrong.rename(name, form(name)) for name in list(wrong.free)) > 0


_EXTRA: tuple[tuple[str, Any], ...] = (
    ("verbose", True), ("reason", "the user asked for it"), ("language", "en"), ("max_results", 5),
    ("format", "json"), ("api_version", "v2"), ("include_metadata", False),
)  # fmt: skip


def _one_more(draw: Draw, wrong: Wrong) -> bool:
    return wrong.add(draw, *draw.rng.choice(_EXTRA))


def _packed(draw: Draw, wrong: Wrong) -> bool:
    key = draw.rng.choice(("params", "input", "body", "data"))
    wrong.wraps.append(lambda sent: {key: sent})
    return key not in draw.properties and len(wrong.wraps) == 1


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


KNOWN: tuple[Mistake, ...] = (
    _renamed_by(_elsewhere), _renamed_by(_elsewhere), _other_style, _one_more, _packed,
    _valued_by(lambda _, value: str(value) if _number(value) else None),
    _valued_by(lambda _, value: number_in_words(value) if _number(value) else None),
    _valued_by(lambda _, value: [value] if isinstance(value, str) else None),
    _valued_by(lambda _, value: ("yes" if value else "no") if isinstance(value, bool) else None),
)  # fmt: skip
"""The pool that was developed on."""


def _described(draw: Draw, name: str) -> list[str]:
    """What the tool's own description says that it is, as a name."""
    text = str(draw.properties.get(name, {}).get("description", "")).split("(")[0]
    words = [word.lower() for word in words_of(text) if word.lower() not in _SMALL][:3]
    styled = "_".join(words) if "_" in name or name.islower() else camel("_".join(words))
    return [styled] if words else []


_SMALL = frozenset(("the", "a", "an", "of", "to", "for", "in", "on", "is", "or", "and", "that",
                    "this", "which", "with", "be", "you", "want"))  # fmt: skip
_ROMANCE = {
    "name": "nome", "city": "citta", "date": "data", "number": "numero", "location": "luogo",
    "type": "tipo", "language": "lingua", "country": "paese", "address": "indirizzo",
    "title": "titolo", "text": "testo", "user": "utente", "price": "prezzo", "order": "ordine",
    "file": "arquivo", "message": "mensagem", "amount": "quantia", "owner": "dono", "id": "codigo",
    "query": "busca", "path": "caminho", "body": "corpo", "issue": "problema", "branch": "ramo",
    "repo": "repositorio", "year": "anno", "duration": "durata", "patient": "paziente",
}  # fmt: skip


def _translated(_: Draw, name: str) -> list[str]:
    words = [word.lower() for word in words_of(name)]
    said = [_ROMANCE.get(word, word) for word in words]
    return ["_".join(said)] if said != words else []


def _typed(draw: Draw, name: str) -> list[str]:
    short = {str: "str", bool: "bool", int: "int", float: "float", list: "arr", dict: "obj"}
    return [f"{short.get(type(draw.sent[name]), 'val')}_{name}", f"p_{name}", f"{name}1"]


def _dashes(_: Draw, wrong: Wrong) -> bool:
    """As options of a command."""
    return _all_renamed(wrong, lambda name: f"--{name.replace('_', '-')}")


def _dotted(draw: Draw, wrong: Wrong) -> bool:
    """As fields of an object that is not there."""
    of = draw.rng.choice(("params", "args", "request"))
    return _all_renamed(wrong, lambda name: f"{of}.{name}")


def _as_pairs(_: Draw, wrong: Wrong) -> bool:
    wrong.wraps.append(
        lambda sent: {"parameters": [{"name": name, "value": of} for name, of in sent.items()]}
    )
    return len(wrong.wraps) == 1


def _as_text(draw: Draw, wrong: Wrong) -> bool:
    key = draw.rng.choice(("payload", "request", "args"))
    wrong.wraps.append(lambda sent: {key: json.dumps(sent)})
    return key not in draw.properties and len(wrong.wraps) == 1


def _with_thought(draw: Draw, wrong: Wrong) -> bool:
    name = draw.rng.choice(("thought", "_comment", "justification", "tool_name"))
    return wrong.add(draw, name, draw.call.tool if name == "tool_name" else "as it was asked")


KEPT: tuple[Mistake, ...] = (
    _renamed_by(_described), _renamed_by(_translated), _renamed_by(_typed), _dashes, _dotted,
    _as_pairs, _as_text, _with_thought,
    _valued_by(lambda _, value: f"approx. {value}" if _number(value) else None),
    _valued_by(lambda _, value: f"{value} in total" if _number(value) else None),
    _valued_by(lambda name, value: {"type": "string", name: value}
               if isinstance(value, str) else None),
    _valued_by(lambda name, value: f"{name}={value}" if isinstance(value, bool | int) else None),
)  # fmt: skip
"""The pool for the final table."""


@dataclass(frozen=True, slots=True)
class Pool:
    """What mistakes and voices are drawn from."""

    mistakes: tuple[Mistake, ...]
    voices: tuple[voices.Voice, ...]


DEVELOPED = Pool(KNOWN, voices.KNOWN)
FINAL = Pool(KEPT, voices.KEPT)


def _refused(draw: Draw, pool: Pool, sent: Json, gold: Json | None = None) -> Made:
    """What is sent, and what a server says; BFCL's tools are executed and speak for themselves."""
    if draw.call.server in bfcl.DEVELOPMENT or draw.call.server == "retail":
        return Made(sent, gold=gold)
    validator = seal.Draft202012Validator(draw.schema)
    errors = sorted(validator.iter_errors(sent), key=str)
    voice = draw.rng.choice(pool.voices)
    error = voices.said(voice, draw.call.tool, errors) if errors else None
    return Made(sent, gold=gold, error=error)


def several(pool: Pool, count: int) -> Maker:
    """A maker of calls with so many mistakes."""

    def made(draw: Draw) -> Iterator[Made]:
        for _ in range(6):
            if sent := _wrong(draw, pool, draw.sent, count):
                yield _refused(draw, pool, sent)

    return made


def _wrong(draw: Draw, pool: Pool, right: Json, count: int) -> Json | None:
    wrong, done = Wrong(dict(right), list(right)), 0
    for mistake in draw.shuffled(pool.mistakes):
        done += mistake(draw, wrong)
        if done == count:
            break
    if done < count:
        return None
    sent = wrong.sent
    for wrap in wrong.wraps:
        sent = wrap(sent)
    return sent


def one_gone(pool: Pool) -> Maker:
    """A maker of calls that miss a value which nobody stated, and have another mistake."""

    def made(draw: Draw) -> Iterator[Made]:
        unstated = [
            name
            for name in draw.required
            if not isinstance(draw.sent[name], bool | dict | list)
            and not draw.is_stated(draw.sent[name])
            and len(str(draw.sent[name])) > 1
        ]
        for name in draw.shuffled(unstated):
            right = {key: value for key, value in draw.sent.items() if key != name}
            for count in (2, 1):
                sent = _wrong(draw, pool, right, count)
                if sent and str(draw.sent[name]) not in json.dumps(sent):
                    yield _refused(draw, pool, sent)

    return made


def of_another_tool(pool: Pool) -> Maker:
    """A maker of calls that were meant for another tool."""

    def made(draw: Draw) -> Iterator[Made]:
        schemas = seal.schemas() if draw.call.server == seal.SERVER else {}
        nouns = set(words_of(draw.call.tool)) - {words_of(draw.call.tool)[0]}
        near = [tool for tool in schemas if nouns & set(words_of(tool)) and tool != draw.call.tool]
        for tool in draw.shuffled(near):
            properties = schemas[tool]["properties"]
            if len(properties.keys() & draw.properties.keys()) * 2 <= len(properties) > 1:
                sent = {name: _any(of) for name, of in properties.items()}
                yield _refused(draw, pool, sent)

    return made


def _any(of: Json) -> Any:
    shown = of.get("example")
    if of.get("type") in ("integer", "number"):
        return 7
    return of.get("type") == "string" and (shown or "Northern Lights")


def families(pool: Pool) -> dict[str, Maker]:
    """The kinds of a pool that can be repaired."""
    return {"two mistakes": several(pool, 2), "three mistakes": several(pool, 3)}


def beyond_repair(pool: Pool) -> dict[str, Maker]:
    """Those that cannot."""
    return {"one value gone": one_gone(pool), "another tool's call": of_another_tool(pool)}
