"""The beginning of the page of metrics, shown in OpenAPI."""

_LINES = """tool_calls_total{status="error",tool="git/git_log"} 2.0
tool_calls_total{status="ok",tool="git/git_log"} 18.0
"""

TEXT = f"""# HELP tool_calls_total Tool calls that have ended, by tool and status (ok, error).
# TYPE tool_calls_total counter
{_LINES}"""

OPEN_METRICS = f"""# HELP tool_calls Tool calls that have ended, by tool and status (ok, error).
# TYPE tool_calls counter
{_LINES}# EOF
"""
