"""Sessions and names of callers over HTTP, where the protocol has none."""

from aftercall.adapters.mcp_sessions import SILENT_S, HttpSessions, meta_of_headers


def test_a_client_has_one_session_until_it_is_silent() -> None:
    """Another client, another key or another address has another one."""
    now = [0.0]
    sessions = HttpSessions(lambda: now[0])
    first = sessions.session_of("10.0.0.1", "Bearer a", "cursor", "1")
    others = [
        sessions.session_of("10.0.0.1", "Bearer a", "zed", "1"),
        sessions.session_of("10.0.0.1", "Bearer b", "cursor", "1"),
        sessions.session_of("10.0.0.2", "Bearer a", "cursor", "1"),
    ]
    now[0] = SILENT_S
    again = sessions.session_of("10.0.0.1", "Bearer a", "cursor", "1")
    now[0] = 2 * SILENT_S + 1
    later = sessions.session_of("10.0.0.1", "Bearer a", "cursor", "1")
    assert again == first != later
    assert len({first, later, *others}) == 5


def test_headers_say_who_calls_and_what_for() -> None:
    """As `_meta` does; what is empty says nothing, and what is too long is cut."""
    said = meta_of_headers({"aftercall-context": "triage", "aftercall-agent": " ", "x": "y"})
    assert said == {"aftercall/context": "triage"}
    assert len(str(meta_of_headers({"aftercall-agent": "a" * 9_999})["aftercall/agent"])) < 1_000
