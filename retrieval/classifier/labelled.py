"""The labelled messages that the head is fitted and tested on.

Written for this project in the forms that real tools use, one family (`source`) per system. Whole
families are in the test split: of the first ones, those of which SHA-256 of the name, its first 8
digits as a number modulo 100, is below 30. The test split was frozen with them: families added
since are of the train split only, and no message like one of the test split was added (a check
by signature and by shared words, at most 0.7 of them).

`conflict` means that the present state of the thing refuses a well-formed request, `execution`
that the tool broke while it ran, `unknown` that the message tells neither.
"""

import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from aftercall.models import ErrorCategory

Split = Literal["train", "test"]
_TEST_SHARE = 30
_FIRST = frozenset(
    [
        "agent-approval",
        "ajv",
        "aws",
        "azure",
        "browser-automation",
        "ci-and-build",
        "commerce",
        "data-warehouses",
        "desktop-os",
        "docker",
        "dotnet",
        "elasticsearch",
        "etl-quality",
        "fastapi-django-flask",
        "files-and-documents",
        "finance-and-math",
        "gcp",
        "git",
        "github",
        "gitlab",
        "go",
        "graphql",
        "grpc",
        "http-servers",
        "human-in-the-loop",
        "java-spring",
        "jsonschema",
        "kafka",
        "kubernetes",
        "llm-apis",
        "mail-and-directory",
        "mcp-protocol",
        "media-tools",
        "messaging-apis",
        "mobile-and-voice",
        "mongodb",
        "mysql",
        "networks-and-dns",
        "node",
        "office-apis",
        "openapi-validators",
        "other-languages",
        "output-contracts",
        "package-managers",
        "posix-shell",
        "postgresql",
        "problem-json",
        "pydantic",
        "python-http-clients",
        "python-runtime",
        "redis",
        "ruby-php",
        "rust",
        "science-and-hpc",
        "smart-home-and-vehicles",
        "sqlite",
        "stripe",
        "structured-output",
        "terraform",
        "ticketing-and-social",
        "travel-booking",
        "uninformative",
        "vector-and-search",
        "wallets-and-consent",
        "weather-and-maps",
        "workflow-and-rpa",
        "zod-joi-yup",
    ]
)


@dataclass(frozen=True, slots=True)
class LabelledMessage:
    """A message, its category, the family of systems that writes it, and its split."""

    message: str
    category: ErrorCategory
    source: str
    split: Split

    @property
    def is_later(self) -> bool:
        """Written after the grammar, which therefore is no better on it than on any message."""
        return self.source not in _FIRST


def labelled_messages() -> list[LabelledMessage]:
    """All labelled messages, in the order of the file."""
    text = files(__package__).joinpath("labelled.jsonl").read_text(encoding="utf-8")
    return [LabelledMessage(**json.loads(line)) for line in text.split("\n") if line]


def split_of(source: str) -> Split:
    """The split of a family."""
    number = int(hashlib.sha256(source.encode()).hexdigest()[:8], 16)
    return "test" if source in _FIRST and number % 100 < _TEST_SHARE else "train"


def training_digest(messages: list[LabelledMessage]) -> str:
    """SHA-256 of the messages of the train split and their categories, in order."""
    train = [(each.message, each.category) for each in messages if each.split == "train"]
    return hashlib.sha256(json.dumps(train, ensure_ascii=False).encode()).hexdigest()
