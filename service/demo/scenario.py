"""What the scripted agents do: their calls, with the mistake and with what they meant.

Only the calls are written down. Errors come from the tools, corrections from `/suggest`, results
from the retried calls.
"""

from dataclasses import dataclass, field

from aftercall.json_values import JsonObject


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call of an agent.

    Args:
        tool: the tool as the gateway offers it.
        sends: what the agent sends at first.
        means: what it had in mind; the same as `sends` for a call without a mistake. After a
            failure that nothing mends, an agent that knows better sends this itself.
        mistake: the kind of mistake; None for a call without one.
        knows_better: whether the agent can find the right call by itself after the error.
    """

    tool: str
    sends: JsonObject
    means: JsonObject
    mistake: str | None = None
    knows_better: bool = True


@dataclass(frozen=True, slots=True)
class Session:
    """One session of one agent."""

    agent: str
    name: str
    purpose: str
    calls: list[PlannedCall] = field(default_factory=list)


def sessions(repository: str) -> list[Session]:
    """The sessions in their order; `repository` is the folder of the demo's git repository."""
    return [_ada_first(repository), _ada_second(repository), _ben(repository), _cyd(repository)]


def _fine(tool: str, **parameters: object) -> PlannedCall:
    return PlannedCall(tool, dict(parameters), dict(parameters))  # type: ignore[arg-type]  # plain JSON


def _ada_first(repo: str) -> Session:
    now, convert = "time_get_current_time", "time_convert_time"
    berlin, tokyo = "Europe/Berlin", "Asia/Tokyo"
    return Session(
        "ada", "ada-1", "prepare the release notes for the Tokyo team",
        [
            _fine(now, timezone=berlin),
            PlannedCall(now, {"tz": berlin}, {"timezone": berlin}, "wrong parameter name"),
            PlannedCall(now, {"timezone": "Tokyo"}, {"timezone": tokyo}, "wrong time zone"),
            PlannedCall(
                convert,
                {"source_timezone": berlin, "time": "9:30 am", "target_timezone": tokyo},
                {"source_timezone": berlin, "time": "09:30", "target_timezone": tokyo},
                "wrong form",
            ),
            PlannedCall(
                convert,
                {"source_timezone": berlin, "time": "24:00", "target_timezone": tokyo},
                {"source_timezone": berlin, "time": "00:00", "target_timezone": tokyo},
                "value out of range",
            ),
            PlannedCall(
                "git_git_log",
                {"repo_path": repo, "max_count": "five"},
                {"repo_path": repo, "max_count": 5},
                "wrong type",
            ),
            PlannedCall(
                "git_git_show",
                {"repo_path": repo, "revision": "master"},
                {"repo_path": repo, "revision": "main"},
                "wrong revision name",
            ),
            PlannedCall(
                "git_git_branch",
                {"repo_path": repo},
                {"repo_path": repo, "branch_type": "local"},
                "missing parameter",
            ),
            _fine("git_git_show", repo_path=repo, revision="feature/login"),
        ],
    )  # fmt: skip


def _ada_second(repo: str) -> Session:
    return Session(
        "ada", "ada-2", "check what changed since yesterday",
        [
            _fine("git_git_status", repo_path=repo),
            PlannedCall(
                "git_git_show",
                {"repo_path": repo, "revision": "master"},
                {"repo_path": repo, "revision": "main"},
                "wrong revision name",
            ),
            PlannedCall(
                "git_git_branch",
                {"repo_path": repo},
                {"repo_path": repo, "branch_type": "local"},
                "missing parameter",
            ),
            _fine("git_git_show", repo_path=repo, revision="feature/login"),
        ],
    )  # fmt: skip


def _ben(repo: str) -> Session:
    convert, berlin, tokyo = "time_convert_time", "Europe/Berlin", "Asia/Tokyo"
    return Session(
        "ben", "ben-1", "review the login feature",
        [
            PlannedCall(
                "git_git_show",
                {"repo_path": repo, "revision": "master"},
                {"repo_path": repo, "revision": "main"},
                "wrong revision name",
            ),
            PlannedCall(
                "git_git_branch",
                {"repo_path": repo},
                {"repo_path": repo, "branch_type": "local"},
                "missing parameter",
            ),
            PlannedCall(
                "git_git_show",
                {"repo_path": repo, "revision": "feature/logn"},
                {"repo_path": repo, "revision": "feature/login"},
                "wrong revision name",
            ),
            PlannedCall(
                convert,
                {"source_tz": berlin, "time": "12:00", "target_tz": tokyo},
                {"source_timezone": berlin, "time": "12:00", "target_timezone": tokyo},
                "wrong parameter name",
            ),
            PlannedCall(
                "git_git_add",
                {"repo_path": repo, "files": "notes.txt"},
                {"repo_path": repo, "files": ["notes.txt"]},
                "wrong type",
            ),
        ],
    )  # fmt: skip


def _cyd(repo: str) -> Session:
    now, berlin = "time_get_current_time", "Europe/Berlin"
    return Session(
        "cyd", "cyd-1", "write the changelog",
        [
            PlannedCall(
                "git_git_log",
                {"repo": repo, "max_count": "ten"},
                {"repo_path": repo, "max_count": 10},
                "wrong parameter name and type",
            ),
            PlannedCall(
                now, {"timezone": "europe/berlin"}, {"timezone": berlin}, "wrong time zone"
            ),
            PlannedCall(
                "git_git_branch",
                {"repo_path": repo, "branch_type": "locals"},
                {"repo_path": repo, "branch_type": "local"},
                "value not allowed",
            ),
            PlannedCall(
                "time_convert_time",
                {"source_timezone": berlin, "time": "around noon", "target_timezone": "UTC"},
                {"source_timezone": berlin, "time": "12:15", "target_timezone": "UTC"},
                "unreadable value",
                knows_better=False,
            ),
            _fine("git_git_show", repo_path=repo, revision="main"),
        ],
    )  # fmt: skip
