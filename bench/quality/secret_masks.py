"""How many planted secrets are masked, and how many harmless values that look like them.

Each kind of `secret_kinds.toml` is drawn anew from a seed and planted where secrets stand in calls:
a parameter of a neutral name, the context, an error's message, a result, a list of words. It is
recalled if neither it nor its second half is anywhere in the masked call. A look-alike is planted
likewise, and has to come out as it went in.
"""

import json
import random
import re
import string
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from aftercall.models import FailedCall
from aftercall.redaction import Redactor
from bench.figures import write_section

_FILE = Path(__file__).with_name("secret_kinds.toml")
_PART = re.compile(r"\{(\w+?)(?::(\d+))?\}")
_LONG = 12
"""Length from which on half of a secret counts as the secret."""
_ALPHABETS = {
    "a": string.ascii_lowercase, "A": string.ascii_uppercase, "d": string.digits,
    "x": "0123456789abcdef", "X": "0123456789ABCDEF", "w": string.ascii_letters + string.digits,
    "l": string.ascii_lowercase + string.digits, "U": string.ascii_uppercase + string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "u": string.ascii_letters + string.digits + "-_",
    "w58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "bech": "023456789acdefghjklmnpqrstuvwxyz", "b32": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
}  # fmt: skip


@cache
def kinds() -> dict[str, Any]:
    """The table, by section."""
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


@cache
def _seed_words() -> list[str]:
    folder = Path(__import__("aftercall").__file__).parent
    return (folder / "bip39_words.txt").read_text().split()


def _luhn(digits: str) -> str:
    total = sum(sum(divmod(2 * int(c), 10)) if i % 2 == 0 else int(c)
                for i, c in enumerate(reversed(digits)))  # fmt: skip
    return digits + str(-total % 10)


def _special(name: str, count: int, rng: random.Random) -> str:  # noqa: PLR0911  # one a kind
    def digits(number: int) -> str:
        return "".join(rng.choices(string.digits, k=number))

    match name:
        case "uuid":
            return "-".join("".join(rng.choices("0123456789abcdef", k=n)) for n in (8, 4, 4, 4, 12))
        case "pw" | "pwurl":
            signs = "!#$%*+" if name == "pw" else "!*+"
            letters = rng.choices(string.ascii_letters, k=8) + rng.choices(signs, k=2)
            return rng.choice(string.ascii_letters) + "".join(letters) + digits(2)
        case "word":
            return rng.choice(
                ["amber", "falcon", "harvest", "meadow", "orchid", "pebble", "willow"]
            )
        case "seed":
            return " ".join(rng.choices(_seed_words(), k=count))
        case "card" | "card4":
            card = _luhn(rng.choice(["4", "51", "55"]).ljust(2, "2") + digits(13))
            return card if name == "card" else " ".join(card[i : i + 4] for i in range(0, 16, 4))
        case "imei":
            return _luhn("35" + digits(12))
        case "iban" | "iban4":
            body = digits(18)
            check = 98 - int(body + "131400") % 97
            iban = f"DE{check:02}{body}"
            return iban if name == "iban" else " ".join(iban[i : i + 4] for i in range(0, 22, 4))
        case "ssn":
            return f"{rng.randint(1, 665):03}-{rng.randint(1, 99):02}-{rng.randint(1, 9999):04}"
        case "dni":
            number = rng.randint(10_000_000, 99_999_999)
            return f"{number}{'TRWAGMYFPDXBNJZSQVHLCKE'[number % 23]}"
        case "nir":
            number = f"1{digits(2)}0{rng.randint(1, 9)}75{digits(6)}"
            return f"{number}{97 - int(number) % 97:02}"
    return "".join(rng.choices(_ALPHABETS[name], k=count))


def drawn(template: str, rng: random.Random) -> str:
    """A text of a template."""
    return _PART.sub(lambda m: _special(m[1], int(m[2] or 1), rng), template)


def planted(template: str, rng: random.Random) -> tuple[str, str]:
    """The text of a template, and the secret in it."""
    text = drawn(template, rng)
    secret = re.search(r"<<(.*?)>>", text, re.DOTALL)
    return text.replace("<<", "").replace(">>", ""), secret[1] if secret else text


def carriers(text: str) -> Iterator[dict[str, Any]]:
    """Calls that hold the text where calls hold texts."""
    base = {"agent": "a", "toolName": "t", "parameters": {"mode": "fast"}}
    error = {"message": "bad request"}
    yield base | {"parameters": {"note": text}, "error": error}
    yield base | {"context": f"I have to use {text} for it", "error": error}
    yield base | {"error": {"message": f"failed: {text}"}}
    yield base | {"error": error, "result": {"rows": [{"text": f"{text}\nnext line"}]}}
    yield base | {"parameters": {"steps": [text, "go on"]}, "error": error}


def named(name: str, value: str) -> Iterator[dict[str, Any]]:
    """Calls that hold a value under a name."""
    base = {"agent": "a", "toolName": "t", "error": {"message": "bad request"}}
    yield base | {"parameters": {name: value, "note": f"tried with {value} before"}}
    yield base | {"parameters": {"deep": [{name: value}]}}
    yield base | {"parameters": {"env": [{"name": name, "value": value}]}}
    yield base | {"parameters": {"q": 1}, "result": {name: value}}


@dataclass
class Score:
    """Of how many planted ones how many were masked, and the kinds that were not."""

    masked: int = 0
    planted: int = 0
    kinds: int = 0
    others: dict[str, int] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """Masked among planted, 0 to 1."""
        return self.masked / self.planted


def hidden(call: dict[str, Any], secret: str, redactor: Redactor) -> bool:
    """Whether a masked call tells nothing of the secret."""
    masked = redactor.call(FailedCall.model_validate(call))
    told = json.dumps(masked.model_dump(mode="json"), ensure_ascii=False)
    secret = json.dumps(secret, ensure_ascii=False)[1:-1]
    halves = [secret, secret[len(secret) // 2 :]] if len(secret) >= _LONG else [secret]
    return not any(half in told for half in halves)


def same(call: dict[str, Any], redactor: Redactor) -> bool:
    """Whether masking leaves a call as it is."""
    before = FailedCall.model_validate(call)
    return redactor.call(before) == before


def recall(section: str, draws: int = 3, seed: int = 7) -> Score:
    """Of the secrets of a section."""
    score, redactor, rng = Score(), Redactor(), random.Random(seed)
    table, names = kinds()[section], kinds().get(f"{section}_names", {})
    for kind, template in [*table.items(), *((f"name {n}", n) for n in names)]:
        score.kinds += 1
        for _ in range(draws):
            if kind.startswith("name "):
                secret = drawn(names[template], rng)
                calls = named(template, secret)
            else:
                text, secret = planted(template, rng)
                calls = carriers(text)
            for call in calls:
                score.planted += 1
                if hidden(call, secret, redactor):
                    score.masked += 1
                else:
                    score.others[kind] = score.others.get(kind, 0) + 1
    return score


def false_masks(section: str, draws: int = 2, seed: int = 7) -> Score:
    """Of the look-alikes of a section."""
    score, redactor, rng = Score(), Redactor(), random.Random(seed)
    texts = [each for group in kinds()[f"{section}s"].values() for each in group]
    names = kinds()[f"{section}_names"]
    for kind in [*texts, *(f"name {n}" for n in names)]:
        score.kinds += 1
        for _ in range(draws):
            name = kind.removeprefix("name ")
            calls = (
                named(name, drawn(names[name], rng)) if kind != name else carriers(drawn(kind, rng))
            )
            for call in calls:
                score.planted += 1
                if not same(call, redactor):
                    score.masked += 1
                    score.others[kind] = score.others.get(kind, 0) + 1
    return score


SECTIONS = {
    "developed": "the kinds that the rules were written for",
    "unseen": "kinds that were listed afterwards, without a look at the rules",
    "later": "60 kinds that nothing above has, the half that the rules were mended by",
    "kept": "the other half of them",
    "fifth": "kinds of the fifth round, listed before their rules",
}


FIRST = (
    "When the second list was measured for the first time, 96 kinds and 137 look-alikes, recall",
    "was 0.8978 and the rate of false masks 0.0060; then the rules were mended for what",
    "it had missed (schemes after `Authorization`, `define('NAME', '...')`, YAML). Of 60 kinds",
    "more recall at first sight was 0.8413 and 0.7392 in the two halves; mended by the first half",
    "alone, it was 0.8413 in the second, without a false mask in 324: 0.98 of kinds that nobody",
    "foresaw is not met. Mended once more, all of them are known, as the table says.",
    "",
    "The fifth list, at first sight: 0.1958 of 29 kinds, and 0.1010 false masks; behind escapes",
    "0.5691 of all kinds, in base64 none, in nested layers 0.1366.",
    "",
    "Masking a call of 870 characters without secrets (1,000 of tau_airline) takes 0.08 ms",
    "of a core; 0.06 ms of it were there before escapes were read.",
    "",
    "What one agent alone sent comes out to another by none of 13 doors in 32 scenarios",
    "(`tests/service/test_private_values.py`): eight kinds of values, four kinds of errors; nor,",
    "in calls, marks, corrections and tools that are drawn, to a key without `read` by any of 36.",
)
"""What is not measured anew each time."""


def _row(name: str, found: Score, false: Score) -> str:
    return (
        f"| {name} | {found.kinds} | {found.planted:,} | {found.share:.4f} "
        f"| {false.kinds} | {false.share:.4f} |"
    )


def measure(folder: Path) -> None:
    """Write the section of `security.md`."""
    started = time.perf_counter()
    rows, notes = [], []
    for section, what in SECTIONS.items():
        if section in kinds():
            likes = "look_alike" if section == "developed" else f"{section}_look_alike"
            found, false = recall(section), false_masks(likes)
            rows.append(_row(what, found, false))
            missed = (
                ", ".join(f"{kind} ({n})" for kind, n in sorted(found.others.items())) or "none"
            )
            kept = (
                ", ".join(f"`{kind}` ({n})" for kind, n in sorted(false.others.items())) or "none"
            )
            notes.append(f"- {what}: not masked: {missed}; masked though harmless: {kept}")
    from bench.quality import secret_escapes  # noqa: PLC0415  # it takes the kinds from here

    behind = secret_escapes.table()
    text = "\n".join(
        (
            "Secrets drawn from a seed, planted as a parameter, in the context, an error, a result",
            "and a list; look-alikes likewise.\n",
            "| | kinds | planted | recall | look-alikes | false masks |",
            "|---|---|---|---|---|---|",
            *rows, "", *notes, "", *behind, "", *FIRST, "",
        )
    )  # fmt: skip
    print(text, f"{time.perf_counter() - started:.0f} s")
    write_section(folder / "security.md", "Secrets", "python -m bench.quality --only secrets", text)
