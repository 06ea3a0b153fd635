"""The outermost parts: host names, addresses, log lines."""

import io
import json
import logging

import pytest

from service.logs import configure_logging, log_event
from service.middleware import hosts_to_answer
from service.settings import LogSettings, is_loopback


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104  # the very case
        ("::", False),
        ("192.168.1.7", False),
        ("example.com", False),
    ],
)
def test_loopback_addresses_are_known(host: str, answer: bool) -> None:
    """They decide about the warning and about host names."""
    assert is_loopback(host) is answer


def test_the_hosts_that_are_answered_follow_the_address_and_the_setting() -> None:
    """Loopback names on a loopback address, any on another, unless the setting names some."""
    assert hosts_to_answer("127.0.0.1", ()) == {"localhost", "127.0.0.1", "::1"}
    assert hosts_to_answer("10.0.0.1", ()) == {"*"}
    assert hosts_to_answer("127.0.0.1", ("Box.Example",)) == {"box.example"}


def lines(settings: LogSettings) -> list[str]:
    """What an event and an exception look like."""
    stream = io.StringIO()
    root = logging.getLogger()
    before = root.handlers[:]
    loggers = [root, *(each for each in root.manager.loggerDict.values() if hasattr(each, "level"))]
    levels = [(each, each.level) for each in loggers]
    try:
        configure_logging(settings, stream)
        logger = logging.getLogger("service.test")
        log_event(logger, "request", status=202, accepted=3)
        log_event(logger, "quiet", level="debug")
        try:
            try:
                {}["a secret of the call"]
            except KeyError as cause:
                raise RuntimeError("another secret") from cause
        except RuntimeError as error:
            log_event(logger, "request failed", level="error", error=error)
        logging.getLogger("somewhere.else").info("a library speaks")
    finally:
        root.handlers[:] = before
        for each, level in levels:
            each.setLevel(level)
    return stream.getvalue().splitlines()


def test_json_lines_carry_fields_and_exceptions_without_their_texts() -> None:
    """One object a line."""
    events = [json.loads(line) for line in lines(LogSettings(format="json"))]
    assert [event["event"] for event in events] == ["request", "request failed", "a library speaks"]
    assert (events[0]["status"], events[0]["accepted"]) == (202, 3)
    assert events[0]["time"].endswith("+00:00")
    assert events[1]["exception"][0] == "builtins.RuntimeError"
    assert "builtins.KeyError" in events[1]["exception"]
    assert "secret" not in json.dumps(events)


def test_text_lines_are_for_people_and_hold_no_more() -> None:
    """The same events, the same silence about what was in the calls."""
    written = lines(LogSettings(format="text"))
    assert written[0].endswith("info    request status=202 accepted=3")
    assert "secret" not in "".join(written)


def test_the_level_decides_what_is_written() -> None:
    """Debug shows our own rooms, error only what went wrong."""
    assert "quiet" in "".join(lines(LogSettings(format="json", level="debug")))
    assert len(lines(LogSettings(format="json", level="error"))) == 1
