"""What the codes of errors mean: JSON-RPC, HTTP, POSIX, SQLSTATE and MySQL."""

import re

from aftercall.json_values import JsonValue
from aftercall.models import ErrorCategory

CODES: dict[str, ErrorCategory] = {
    # JSON-RPC 2.0 and MCP
    "-32602": "invalid_parameters", "-32600": "invalid_parameters", "-32601": "not_found",
    "-32001": "timeout", "-32000": "unavailable", "-32603": "execution",
    "-32700": "invalid_parameters",
    # HTTP (RFC 9110, RFC 6585)
    "400": "invalid_parameters", "422": "invalid_parameters", "401": "permission_denied",
    "403": "permission_denied", "404": "not_found", "410": "not_found", "408": "timeout",
    "504": "timeout", "409": "conflict", "412": "conflict", "429": "rate_limited",
    "413": "invalid_parameters", "414": "invalid_parameters", "415": "invalid_parameters",
    "423": "conflict", "524": "timeout", "500": "execution", "502": "unavailable",
    "503": "unavailable",
    # POSIX
    "ENOENT": "not_found", "EACCES": "permission_denied", "EPERM": "permission_denied",
    "EEXIST": "conflict", "ETIMEDOUT": "timeout", "ECONNREFUSED": "unavailable",
    "ECONNRESET": "unavailable", "EHOSTUNREACH": "unavailable", "ENOTFOUND": "unavailable",
    "EAGAIN": "unavailable", "EBUSY": "conflict", "EINVAL": "invalid_parameters",
}  # fmt: skip

# SQLSTATE (ISO/IEC 9075, PostgreSQL appendix A) by its first characters, the longest first; then
# MySQL's own numbers. A deadlock or a failed serialisation is mended by the same call again.
_SQL: tuple[tuple[tuple[str, ...], ErrorCategory], ...] = (
    (("42501",), "permission_denied"),
    (("42P01", "42703", "42883", "42S02", "42S22", "3D000", "3F000"), "not_found"),
    (("40001", "40P01", "1213", "1205", "57P0"), "unavailable"),
    (("57014",), "timeout"),
    (("08", "53", "1040", "2002", "2003", "2006", "2013"), "unavailable"),
    (("28", "1044", "1045", "1142"), "permission_denied"),
    (("23", "55", "1062", "1451", "1452"), "conflict"),
    (("22", "42", "1064"), "invalid_parameters"),
)
_SQL_FORM = re.compile(r"[0-9A-Z]{5}|1\d{3}|20\d\d", re.IGNORECASE)
_SQL_SIGN = re.compile(
    r"sql|psycopg|postgres|asyncpg|maria|sqlstate|database|relation|transaction|deadlock|constraint|"
    r"serializ|\btable\b|\bcolumn\b|\block\b|\brole\b",
    re.IGNORECASE,
)
_SQLSTATE_SAID = re.compile(
    r"\bSQL ?STATE\W{0,3}(?P<a>[0-9A-Z]{5})\b|\bERROR \d{4} \((?P<b>[0-9A-Z]{5})\)", re.IGNORECASE
)
_PLACES = ("status", "statusCode", "status_code", "httpStatus", "http_status", "code", "sqlstate")
_WRAPPERS = ("error", "response")


def category_of_code(code: str, words: str) -> ErrorCategory | None:
    """The category that a code stands for, when it is known.

    Args:
        code: as the caller gave it.
        words: the type and the message beside it. Five digits are a SQLSTATE only beside words of
            databases: chat and telephone services number their errors so too.
    """
    if known := CODES.get(code.upper()):
        return known
    if not _SQL_FORM.fullmatch(code) or not (_has_letters(code) or _SQL_SIGN.search(words)):
        return None
    return _of_sql(code.upper())


def stated_sqlstate(message: str) -> ErrorCategory | None:
    """The category of the SQLSTATE that a message names as one."""
    if "STATE" not in (upper := message.upper()) and "ERROR " not in upper:
        return None  # most messages: cheaper than the search
    said = _SQLSTATE_SAID.search(message)
    return _of_sql((said["a"] or said["b"]).upper()) if said else None


def code_within(details: JsonValue) -> str:
    """The known code or status that an error's details hold, or an empty text."""
    if not isinstance(details, dict):
        return ""
    holders = (details, *(details.get(key) for key in _WRAPPERS))
    said = (_known(each.get(key)) for each in holders if isinstance(each, dict) for key in _PLACES)
    return next(filter(None, said), "")


def _known(value: JsonValue) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return ""
    text = str(value)[:20]
    return text if text.upper() in CODES or (_SQL_FORM.fullmatch(text) and _of_sql(text)) else ""


def _has_letters(code: str) -> bool:
    return len(code) == 5 and not code.isdigit() and code[:2].isdigit()


def _of_sql(code: str) -> ErrorCategory | None:
    if len(code) == 4:
        return next((category for codes, category in _SQL if code in codes), None)
    return next((c for starts, c in _SQL for each in starts if _begins(code, each)), None)


def _begins(code: str, start: str) -> bool:
    # MySQL's four digits are whole numbers, never the beginning of a state.
    return code.startswith(start) and (len(start) != 4 or not start.isdigit())
