"""Which kind of error it is: the grammar, the classifier, and both as they are used.

`python -m bench.quality.classifier` fits the head on the train split, chooses temperature and
threshold there by cross-validation over families, and prints F1 on the test split, also of a head
that was fitted without the families that share a system with one of the test split; `--write` also
writes `reading/classifier_head.json`; `--train` prints the cross-validation only and leaves the
test split alone.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.metrics import f1_score
from sklearn.model_selection import GroupKFold

import retrieval.knowledge.reading.classifier
from aftercall.models import ErrorCategory, ExecutionError
from bench.quality.fitting import (
    LabelledMessage,
    LabelledText,
    Split,
    fit_head,
    json_of,
    labelled_messages,
    training_digest,
)
from embeddings.embedders import open_embedder
from embeddings.protocol import Embedder
from retrieval.knowledge.reading.classifier import HEAD, CategoryHead, embedded_words, shipped_head
from retrieval.knowledge.reading.reader import ErrorReading, read_error

FOLDS = 8
THRESHOLDS = np.arange(0.0, 0.81, 0.02)
SAME_SYSTEM = frozenset(
    [
        "snowflake-bigquery", "gcp-cloud", "terraform-ansible", "docker-podman", "browser-driving",
        "reservations", "dns-tls", "filesystems-os", "compilers-interpreters", "model-endpoints",
        "iot-smart-home", "git-cli", "spreadsheets-office", "agent-frameworks", "blockchain",
        "more-languages", "deliverable-checks",
    ]
)  # fmt: skip
"""Later families about systems that the test split has families of, too."""

Names = NDArray[np.str_]
Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Sample:
    """A labelled message with what the head is fitted on."""

    labelled: LabelledMessage
    vector: Vectors
    text: str
    reading: ErrorReading


@dataclass(frozen=True)
class Fit:
    """A head, with the macro F1 that cross-validation gave it, alone and as it is used."""

    head: CategoryHead
    macro_f1: float
    as_used: float
    as_used_later: float
    """On the families written after the grammar, on which it is no better than on any."""


def fit(samples: Sequence[Sample], embedder: str, digest: str) -> Fit:
    """Fit on samples of the train split.

    Temperature and threshold come from probabilities of families that the head of a fold had not
    seen.
    """
    labels = np.array([each.labelled.category for each in samples])
    families = [each.labelled.source for each in samples]
    categories = np.unique(labels)
    logits = np.full((len(labels), len(categories)), -50.0)
    for train, held_out in GroupKFold(FOLDS).split(labels, labels, families):
        head = _head([samples[i] for i in train], embedder, digest)
        columns = np.searchsorted(categories, np.array(head.categories))
        for i in held_out:
            each = samples[i]
            found = head.category_probabilities(each.vector, each.text, each.reading.category)
            logits[i, columns] = np.log(found + 1e-12)
    truth = np.searchsorted(categories, labels)
    temperature = float(
        minimize_scalar(
            lambda t: -np.log(_softmax(logits / t)[np.arange(len(truth)), truth] + 1e-12).mean(),
            bounds=(0.1, 5.0), method="bounded",
        ).x
    )  # fmt: skip
    held_out_probabilities = _softmax(logits / temperature)
    guesses = [_guess(held_out_probabilities, categories, each) for each in THRESHOLDS]
    used = [
        np.array([
            str(guess) if _is_asked(each.reading, str(guess)) else each.reading.category
            for guess, each in zip(found, samples, strict=True)
        ])
        for found in guesses
    ]  # fmt: skip
    later = np.array([each.labelled.is_later for each in samples])
    chosen = int(np.argmax([_macro(labels[later], each[later]) for each in used]))
    head = replace(
        _head(samples, embedder, digest),
        temperature=temperature,
        threshold=float(THRESHOLDS[chosen]),
    )
    return Fit(
        head,
        macro_f1=_macro(labels, guesses[chosen]),
        as_used=_macro(labels, used[chosen]),
        as_used_later=_macro(labels[later], used[chosen][later]),
    )


def _head(samples: Sequence[Sample], embedder: str, digest: str) -> CategoryHead:
    """The head of the samples, with a temperature of 1 and no threshold.

    The grammar was written on the first families, so its readings are evidence in later ones only.
    """
    examples = [
        LabelledText(
            each.vector,
            each.text,
            each.labelled.category,
            each.reading.category if each.labelled.is_later else "unknown",
        )
        for each in samples
    ]
    return fit_head(examples, embedder, digest)


def _is_asked(reading: ErrorReading, guess: str) -> bool:
    """Whether the classifier decides: see `Suggester._classified`."""
    return reading.is_unsure and guess != "unknown"


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return cast("NDArray[np.float64]", powers / powers.sum(axis=1, keepdims=True))


def _guess(probabilities: NDArray[np.float64], categories: Names, threshold: float) -> Names:
    best = categories[probabilities.argmax(axis=1)]
    return np.where(probabilities.max(axis=1) >= threshold, best, "unknown")


def _macro(labels: Names, guess: Names) -> float:
    return float(f1_score(labels, guess, average="macro", labels=np.unique(labels)))


def readings(
    samples: Sequence[Sample], head: CategoryHead, strict: CategoryHead | None = None
) -> dict[str, list[ErrorCategory]]:
    """By method, the category of each message: grammar alone, classifier alone, as used.

    With a `strict` head, also as used with that one instead.
    """
    found: dict[str, list[ErrorCategory]] = {
        "grammar": [each.reading.category for each in samples],
        "classifier": [_classified(each, head) for each in samples],
        "as used": [_used(each, head) for each in samples],
    }
    if strict:
        found["strict"] = [_used(each, strict) for each in samples]
    return found


def _classified(each: Sample, head: CategoryHead) -> ErrorCategory:
    return head.classify_error(each.vector, each.text, each.reading.category).category


def _used(each: Sample, head: CategoryHead) -> ErrorCategory:
    classified = _classified(each, head)
    return classified if _is_asked(each.reading, classified) else each.reading.category


def print_table(messages: Sequence[LabelledMessage], found: dict[str, list[ErrorCategory]]) -> None:
    """F1 by category and method, the macro average last."""
    labels = [each.category for each in messages]
    print(f"{'category':20} {'n':>4}  " + "  ".join(f"{name:>10}" for name in found))
    for category in sorted(set(labels)):
        row = [
            f1_score(labels, guess, labels=[category], average="macro") for guess in found.values()
        ]
        count = labels.count(category)
        print(f"{category:20} {count:>4}  " + "  ".join(f"{score:>10.3f}" for score in row))
    macro = [_macro(np.array(labels), np.array(guess)) for guess in found.values()]
    print(f"{'macro F1':20} {len(labels):>4}  " + "  ".join(f"{each:>10.3f}" for each in macro))


async def figures(embedder: Embedder) -> dict[str, float]:
    """Macro F1 of the shipped head on the test split, by method; `macroF1` is as it is used."""
    test = await samples_of(embedder, "test")
    labels = np.array([each.labelled.category for each in test])
    by_method = {
        name: _macro(labels, np.array(found))
        for name, found in readings(test, shipped_head()).items()
    }
    return {
        "messages": len(test),
        "macroF1": by_method["as used"],
        "macroF1 of the grammar alone": by_method["grammar"],
        "macroF1 of the classifier alone": by_method["classifier"],
    }


async def samples_of(embedder: Embedder, split: Split) -> list[Sample]:
    """The messages of a split, embedded and read."""
    messages = [each for each in labelled_messages() if each.split == split]
    texts = [embedded_words(each.message) for each in messages]
    vectors = np.asarray(await embedder.embed(texts, "query"), dtype=np.float32)
    return [
        Sample(each, vector, text, read_error(ExecutionError(message=each.message), {}))
        for each, vector, text in zip(messages, vectors, texts, strict=True)
    ]


async def run(*, write: bool, test_too: bool) -> None:
    """Fit, measure and, where asked, write the head."""
    embedder = await open_embedder()
    digest = training_digest(labelled_messages())
    try:
        train = await samples_of(embedder, "train")
        test = await samples_of(embedder, "test") if test_too else []
    finally:
        await embedder.close()
    fitted = fit(train, embedder.name, digest)
    _print_fit("all families", len(train), fitted)
    head = CategoryHead.of_json(json_of(fitted.head))  # as it is shipped, rounded
    if write:
        folder = Path(retrieval.knowledge.reading.classifier.__file__).parent
        (folder / HEAD).write_text(json_of(head) + "\n", encoding="utf-8")
    if test_too:
        others = [each for each in train if each.labelled.source not in SAME_SYSTEM]
        strict = fit(others, embedder.name, digest)
        _print_fit("strict", len(others), strict)
        print_table([each.labelled for each in test], readings(test, head, strict.head))


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, measure and, where asked, write the head."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {HEAD}")
    parser.add_argument("--train", action="store_true", help="leave the test split alone")
    options = parser.parse_args(arguments)
    asyncio.run(run(write=options.write, test_too=not options.train))


def _print_fit(name: str, count: int, fitted: Fit) -> None:
    print(
        f"{name}: {count} messages; macro F1 by cross-validation over families: "
        f"classifier {fitted.macro_f1:.3f}, as used {fitted.as_used:.3f}, "
        f"as used on later families {fitted.as_used_later:.3f}; "
        f"temperature {fitted.head.temperature:.2f}, threshold {fitted.head.threshold:.2f}"
    )


if __name__ == "__main__":
    main()
