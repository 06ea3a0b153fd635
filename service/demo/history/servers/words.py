"""The server `words`: two translators, one of which is evolved; a summariser; a detector."""

from random import Random

from aftercall.json_values import JsonObject, JsonValue
from service.demo.history.dialects import PythonCall
from service.demo.history.drift import Drift, Weather
from service.demo.history.faults import ToolFault
from service.demo.history.schemas import choice, flag, schema, text, whole
from service.demo.history.slips import as_text, beyond, called, invented, left_out, renamed
from service.demo.history.subjects import subject
from service.demo.history.tools import Moment, SimTool, Wish

_LANGUAGES = ("de", "en", "es", "fr", "ja")
_NAMES = {
    "de": ("German", "de-DE"), "en": ("English",), "es": ("Spanish", "es-ES"), "fr": ("French",),
    "ja": ("Japanese", "jp"),
}  # fmt: skip
_FAST_PAIRS = {"de", "en", "es", "fr"}


def _translate(call: JsonObject, moment: Moment) -> JsonValue:
    if call["target"] == call.get("source"):
        raise ToolFault("hidden_rule", "source and target are the same language", type="ValueError")
    return {"characters": len(str(call["text"])), "model": f"m{1 + int(moment.dice.random() * 2)}"}


def _wish_translate(dice: Random) -> Wish:
    about, target = subject(dice), dice.choice(_LANGUAGES)
    parameters: JsonObject = {"text": f"The news about {about}", "target": target}
    if dice.random() < 0.3:
        parameters["formality"] = dice.choice(("formal", "informal"))
    return Wish(parameters, f"Translate the text about {about}")


def _translate_fast(call: JsonObject, moment: Moment) -> JsonValue:
    del moment
    if str(call["lang"]) not in _FAST_PAIRS:
        raise ToolFault(
            "hidden_rule", f"no model is loaded for {call['lang']!r}; loaded: de, en, es, fr",
            type="ModelError",
        )  # fmt: skip
    return {"characters": len(str(call["text"]))}


def _wish_fast(dice: Random) -> Wish:
    about = subject(dice)
    parameters: JsonObject = {
        "text": f"A line about {about}", "lang": dice.choice(sorted(_FAST_PAIRS)),
    }  # fmt: skip
    return Wish(parameters, f"Translate the text about {about}")


def _summarise(call: JsonObject, moment: Moment) -> JsonValue:
    words = len(str(call["text"]).split())
    if words < 9:
        raise ToolFault(
            "little_use", f"the text has {words} words; its summary is the text itself",
            type="low_utility", details={"evidence": "nothing could be left out"},
        )  # fmt: skip
    return {"sentences": int(str(call["sentences"])), "model": f"s{int(moment.dice.random() * 3)}"}


def _wish_summary(dice: Random) -> Wish:
    about = subject(dice)
    words = f"Note on {about}" if dice.random() < 0.14 else (
        f"Everything that was said about {about} in the meetings of the last month, in full"
    )  # fmt: skip
    parameters: JsonObject = {"text": words, "sentences": dice.choice((2, 3, 5))}
    return Wish(parameters, f"Summarise what was said about {about}")


def _detect(call: JsonObject, moment: Moment) -> JsonValue:
    del moment
    return {"language": "en", "certain": len(str(call["text"])) > 12}


def _wish_detect(dice: Random) -> Wish:
    about = subject(dice)
    return Wish({"text": f"Lorem {about}"}, f"Find out the language of the mail about {about}")


_TRANSLATE_SCHEMA = schema(
    "text", "target",
    text=text(), source=text(), target=choice(*_LANGUAGES),
    formality=choice("formal", "informal", default="formal"),
)  # fmt: skip
_TRANSLATE_SLIPS = (
    called("target", _NAMES, weight=3),
    renamed("target", "target_language", "to", "lang", weight=2),
    invented("preserve_formatting", True),  # noqa: FBT003  # a value, not an option
    called("formality", {"formal": ("polite",), "informal": ("casual",)}),
)

TOOLS = (
    SimTool(
        server="words",
        name="translate",
        namespace="translation",
        run=_translate,
        wish=_wish_translate,
        dialect=PythonCall(),
        input_schema=_TRANSLATE_SCHEMA,
        slips=_TRANSLATE_SLIPS,
        description="Translate a text into another language, with care.",
        tags=("translation",),
        latency_ms=800,
        until=21,
        popularity=1.6,
    ),
    SimTool(
        server="words",
        name="translate",
        tool_id="words.translate@1.1.0",
        namespace="translation",
        version="1.1.0",
        since=21,
        evolved_from="words.translate",
        reason="answers in half the time; names of products stay as they are",
        run=_translate,
        wish=_wish_translate,
        dialect=PythonCall(),
        input_schema=_TRANSLATE_SCHEMA,
        slips=_TRANSLATE_SLIPS,
        description="Translate a text into another language, with care; keeps names of products.",
        tags=("translation",),
        latency_ms=390,
        popularity=2.2,
    ),
    SimTool(
        server="words",
        name="translate_fast",
        namespace="translation",
        run=_translate_fast,
        wish=_wish_fast,
        dialect=PythonCall(),
        input_schema=schema(
            "text", "lang", text=text(), lang=text("two letters"), glossary=flag(default=False)
        ),
        slips=(
            renamed("lang", "target", "language", weight=2),
            called("lang", _NAMES, weight=2),
            invented("formality", "formal"),
        ),
        description="Translate a text in a moment.",
        tags=("translation", "fast"),
        latency_ms=140,
        drift=(
            Drift(
                10, 15, "unavailable",
                Weather(outages=0.24, timeouts=0.09, slowness=2.5,
                        words="503 Service Unavailable: model is being reloaded"),
            ),
        ),
        popularity=1.4,
    ),
    SimTool(
        server="words",
        name="summarise",
        namespace="summaries",
        run=_summarise,
        wish=_wish_summary,
        dialect=PythonCall(),
        input_schema=schema("text", text=text(), sentences=whole(1, 8, default=3)),
        slips=(
            beyond("sentences", 8, 10, 12, 20),
            as_text("sentences"),
            renamed("sentences", "max_sentences", "length", weight=2),
            invented("style", "bullets", "executive"),
        ),
        description="Say in a few sentences what a text says.",
        tags=("summary",),
        latency_ms=1400,
        popularity=1.4,
    ),
    SimTool(
        server="words",
        name="detect_language",
        namespace="languages",
        run=_detect,
        wish=_wish_detect,
        dialect=PythonCall(),
        input_schema=schema("text", text=text()),
        slips=(renamed("text", "content", "input"), left_out("text", 0.4)),
        description="Tell the language of a text.",
        latency_ms=35,
        popularity=0.5,
    ),
)  # fmt: skip
