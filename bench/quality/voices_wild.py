"""How yet other servers word what is wrong with a call, for the kinds of `kinds_wild`.

Each is written after the messages of a real API, library or log, without its code.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bench.quality.kinds_words import words_of
from bench.quality.voices import Voice, json_kind, rules
from bench.quality.voices_agents import kinds

_SAYS: Mapping[str, tuple[str, str, str, str]] = {
    "payments": ("{}", "Missing required param: {0}. (parameter_missing)",
                 "Received unknown parameter: {0} (parameter_unknown)", "Invalid {0}: must be {1}"),
    "msgspec": ("{}", "Object missing required field `{0}`", "Object contains unknown field `{0}`",
                "Expected `{1}`, got `{3}` - at `$.{0}`"),
    "pointers": ('{{"errors": [{}]}}', '{{"status": "422", "detail": "{0} can\'t be blank"}}',
                 '{{"detail": "not permitted", "source": {{"parameter": "{0}"}}}}',
                 '{{"detail": "is not a {1}", "source": {{"pointer": "/data/attributes/{0}"}}}}'),
    "go schema": ("validating root: {}", 'required: missing properties: ["{0}"]',
                  'unexpected additional properties ["{0}"]',
                  'validating /properties/{0}: type: {2} has type "{3}", want "{1}"'),
    "cloud": ("ValidationException: 1 validation error detected: {}", "Value null at '{0}' failed "
              "to satisfy constraint: Member must not be null", "Unrecognized member '{0}'",
              "Value at '{0}' failed to satisfy constraint: Member must be a {1}"),
    "tree": ("{{ readonly ... }}\n{}", '\u2514\u2500 ["{0}"]\n   \u2514\u2500 is missing',
             '\u2514\u2500 ["{0}"]\n   \u2514\u2500 is unexpected',
             '\u2514\u2500 ["{0}"]\n   \u2514\u2500 Expected {1}, actual {2}'),
    "french": ("Requ\u00eate invalide : {}", "le champ \u00ab {0} \u00bb est obligatoire",
               "param\u00e8tre inconnu \u00ab {0} \u00bb", "\u00ab {0} \u00bb n'est pas valide"),
    "log": ("level=error msg=\"bad arguments\" {}", "field={0} reason=missing",
            "field={0} reason=unknown", "field={0} reason=type want={1} got={3}"),
}  # fmt: skip
"""By voice: what is around, and what it says of what is missing, unknown and otherwise wrong."""
_TELL_ALL = {"pointers": ", ", "tree": "\n", "log": "\n"}
"""The others stop at the first."""


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


VOICES: Mapping[str, Voice] = {
    name: worded(says, _TELL_ALL.get(name)) for name, says in _SAYS.items()
}
