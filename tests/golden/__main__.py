"""`python -m tests.golden [STORY ...]`: say what differs; `--write` freezes the answers."""

import asyncio
import sys

from tests.golden.stories import differences, freeze, frozen, names, play


def main(arguments: list[str]) -> int:
    """The exit code: 1 where something differs from what is frozen."""
    is_same = True
    for story in [each for each in arguments if each in names()] or names():
        answers = asyncio.run(play(story))
        if "--write" in arguments:
            freeze(story, answers)
        for line in differences(frozen(story), answers):
            is_same = False
            print(f"{story}{line}")  # noqa: T201  # that is what it is for
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
