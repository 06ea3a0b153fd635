"""How large a profile gets: little for real tools, and bounded for calls made to fill it."""

import random
from typing import Any

from mongo.records import encode_json
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.tool.profile import ToolProfile
from tests.retrieval.profiles import at

KIB = 1024
TEXTS = ["", "2025-03-04", "03/04/2025", "2025-03-04T10:00:00Z", "14:30", "2:30 pm",
         "a1b2c3d4-0000-4000-8000-000000000001", "https://x.y/z?q=1", "a@b.co", "Europe/Berlin",
         "/srv/a b.md", "report v2.pdf", "42", "-1,000.5", "#launch", "@ada", '{"a":1}', "JFK",
         "mia_li_3668", "pageSize", "Berlin", "New York", "hello there", "aB c", "a-b", '"' * 49,
         *('"' * 48 + end for end in "abc")]  # fmt: skip
VALUES: list[Any] = [*TEXTS, True, None, {}, -1.2345678901234567e300, 1.2345678901234567e300, [1]]


def test_calls_made_to_fill_a_profile_do_not_get_far() -> None:
    """Long names and values that JSON escapes twice, of all forms, from many agents, everywhere."""
    dice = random.Random(3)  # noqa: S311  # a repeatable history, no secret
    names = [f"{number:02}" + "\x01" * 15 for number in range(80)]
    profile, second = ToolProfile(), 0
    for agent in range(10):
        for value in VALUES:
            second += 1
            nested = {f"{number:02}": [value] if number < 14 else value for number in range(40)}
            call = dict.fromkeys(names, value) | {names[0]: nested}
            profile.observe_success(call, f"s{agent}", f"agent {agent}", at(second))
    for number in range(90):
        value = dice.choice([*VALUES, dice.uniform(-1e300, 1e300), f"{number}x"])
        nested = {f"{key:02}": [value] if key < 14 else value for key in range(40)}
        call = dict.fromkeys(names, value) | {names[0]: nested}
        faults = [Fault("out_of_range", (name,)) for name in names] if number % 2 else []
        profile.observe_failure(call, faults, at(second + number), blame_parameters=True)
    assert len(encode_json(profile)) <= 256 * KIB
