"""How servers word what is wrong with a call, for the kinds of `kinds_wild`: `voices.toml`."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.quality.kinds_words import words_of
from bench.quality.voices import Voice, json_kind, rules
from bench.quality.voices_agents import kinds

_FILE = Path(__file__).with_name("voices.toml")
_TYPES = ("integer", "number", "boolean", "array", "object", "string")


def worded(
    says: Sequence[str], between: str | None = None, types: Mapping[str, str] | None = None
) -> Voice:
    """A voice of texts: what is around; what is missing, unknown, otherwise wrong, of no list.

    In them `{0}` is the parameter, `{1}` the type that is due (as `types` calls it) or the list,
    `{2}` the value, `{3}` its type; `{tool}`, `{Tool}`, `{label}` (the name in words), `{Name}`,
    `{known}` and `{place}` (in the schema, from 1). Only the first fault is told where nothing is
    between; what is of no list is otherwise wrong where there is no text for it.
    """
    around, missing, unknown, wrong, *unlisted = says
    forms = {"required": missing, "additionalProperties": unknown, "enum": (*unlisted, wrong)[0]}

    def voice(tool: str, errors: Sequence[Any]) -> str:
        told = []
        for rule, of, each in rules(errors):
            words, wanted = words_of(of) or [of], kinds(each.validator_value)
            if rule == "enum" and unlisted:
                wanted = ", ".join(map(str, each.validator_value))
            known = list(each.schema.get("properties", {}))
            told.append(forms.get(rule, wrong).format(
                of, (types or {}).get(wanted, wanted), json.dumps(each.instance)[:60],
                json_kind(each.instance), tool=tool, label=" ".join(words).lower(),
                Tool="".join(word[:1].upper() + word[1:] for word in words_of(tool)),
                Name="".join(word[:1].upper() + word[1:] for word in words),
                known=", ".join(known), place=known.index(of) + 1 if of in known else 1,
            ))  # fmt: skip
        whole = told[:1] if between is None else [each for each in told if each]
        return around.format((between or "").join(whole), tool=tool)

    return voice


def read_voices(batch: str) -> dict[str, Voice]:
    """Return the voices of a batch of `voices.toml`, by their names."""
    voices = {}
    for name, row in tomllib.loads(_FILE.read_text(encoding="utf-8"))[batch].items():
        types = dict(zip(_TYPES, row.get("types", _TYPES), strict=True))
        voices[name] = worded(row["says"], row.get("between"), types)
    return voices


VOICES = read_voices("wild")
