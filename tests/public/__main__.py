"""`python -m tests.public`: say how the public surface differs; `--write` freezes it as it is."""

import sys

from tests.public.surface import SURFACES, freeze, frozen


def main(arguments: list[str]) -> int:
    """Return the exit code: 1 where something differs from what is frozen."""
    is_same = True
    for name, read in SURFACES.items():
        found = read()
        if "--write" in arguments:
            freeze(name, found)
        before = frozen(name)
        for mark, lines in (("-", before - found), ("+", found - before)):
            for line in sorted(lines):
                is_same = False
                print(f"{name} {mark} {line}")  # noqa: T201  # that is what it is for
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
