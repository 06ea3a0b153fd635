"""Permission: what the caller lacks, as far as the tool says, and who can grant it. Pure."""

import re

from aftercall.models import ExecutionError
from retrieval.advice.quoting import quoted

_READ = 1_000
_TAIL = " Another try, or other parameters, will not help."
# Names of scopes, roles and actions: `repo`, `channels:read`, `s3:GetObject`, `roles/editor`.
_NAMES = r"[\"'`]?(?P<what>[\w][\w.:/*-]{1,60}(?:[\"'`]?, [\"'`]?[\w][\w.:/*-]{1,60}){0,3})[\"'`]?"
_LACKS = [
    (re.compile(form, re.IGNORECASE), noun)
    for form, noun in [
        (rf"(?:missing|lacks?|requires?|needs?|insufficient|without)[^\n.;:]{{0,30}}"
         rf"\b(?:scopes?)\b[\s:=]{{1,3}}(?:one of )?(?:\[)?{_NAMES}", "scope"),
        (rf"(?:missing|lacks?|requires?|needs?|without)[^\n.;:]{{0,30}}\broles?\b[\s:=]{{1,3}}"
         rf"(?:one of )?{_NAMES}", "role"),
        (rf"(?:missing|lacks?|requires?|needs?|without)[^\n.;:]{{0,30}}\b(?:permissions?|privileges?)\b"
         rf"[\s:=]{{1,3}}(?:one of )?{_NAMES}", "permission"),
        (r"(?:requires?|needs?|missing|lacks?) (?:the |an? )?[\"'`](?P<what>[\w.:/*-]{1,60})[\"'`] "
         r"(?:oauth )?(?:scope|role|permission|privilege)", "permission"),
        (r"(?:requires?|needs?|missing|lacks?) (?:the |an? )?(?P<what>\w[\w.:/*-]{1,60}) "
         r"(?:scope|role|permission|privilege|access)", "permission"),
        (r"not authori[sz]ed to perform:? [\"'`]?(?P<what>[\w.:/*-]{2,60})", "permission"),
    ]
]  # fmt: skip
_NO_NAMES = re.compile(
    r"an?|the|to|for|is|are|or|and|of|on|not|in|required|denied|error|this|that|missing|your|any|"
    r"was|were|has|have",
    re.IGNORECASE,
)
_DETAILS = ("needed", "requiredScope", "requiredScopes", "required_scope", "required_scopes",
            "requiredRole", "required_role", "requiredPermission", "required_permission",
            "missingScope", "missing_scope", "missingPermissions",
            "missing_permissions")  # fmt: skip

# What kind of wall it is, and who can open it; the first that matches.
_WALLS = [
    (re.compile(form, re.IGNORECASE), lesson)
    for form, lesson in [
        (r"(?:token|session|credentials?|api[ _-]?key|jwt|login)\b[^\n.;:]{0,40}\b(?:expired|"
         r"revoked|invalid(?:ated)?|no longer valid)|"
         r"(?:expired|revoked|invalid|bad|incorrect|wrong)\b[^\n.;:]{0,20}\b"
         r"(?:token|credentials?|api[ _-]?key|jwt|password)|"
         r"token_(?:expired|revoked)|invalid_auth|not_authed",
         "The credentials are expired or not valid; whoever manages them for this tool has to "
         "renew them, or the user has to log in again."),
        (r"outside (?:of )?(?:the )?(?:allowed|permitted|workspace|sandbox|root)|path traversal|"
         r"not (?:in|within|under) (?:the |an? )?(?:allowed|permitted)",
         "The call reaches outside of what the tool's operator allows; whoever runs the server has "
         "to allow it."),
        (r"not accessible by (?:integration|personal access token)|(?:integration|app|bot) (?:is )?"
         r"(?:not installed|lacks|does not have|not in (?:the )?channel)|not_in_channel",
         "The integration has no access to this; whoever owns the resource has to grant it to the "
         "integration."),
        (r"read[- ]?only (?:mode|database|transaction|file ?system|user)|only select (?:queries|"
         r"statements)|readonly",
         "Only reading is allowed here; whoever runs the server decides on writing."),
        (r"operation not permitted|EPERM|EACCES|permission denied: ?['\"/]|"
         r"\[Errno 13\]",
         "The operating system refuses it to the tool; whoever runs the server has to grant the "
         "rights."),
        (r"require[sd]? authentication|authentication (?:is )?required|must be (?:logged|signed) "
         r"in|not logged in|not authenticated|unauthenticated",
         "The tool does not know who is calling; the user has to log in, or whoever runs the tool "
         "has to give it credentials."),
    ]
]  # fmt: skip
_OTHER = "The caller lacks a permission; ask whoever grants access to this tool."


def permission_lesson(error: ExecutionError) -> str:
    """To whom to turn, and what to ask for; words of the tool are quoted as data."""
    message = " ".join(error.message[:_READ].split())
    if found := _lacking(error, message):
        noun, what = found
        wall = (
            f"The caller lacks the {noun} {quoted(what)}; ask whoever grants access to this tool."
        )
        return wall + _TAIL
    wall = next((lesson for form, lesson in _WALLS if form.search(message)), _OTHER)
    return wall + _TAIL


def _lacking(error: ExecutionError, message: str) -> tuple[str, str] | None:
    for name in _DETAILS:
        value = error.details.get(name)
        values = value[:4] if isinstance(value, list) else [value]
        texts = [each for each in values if isinstance(each, str) and each]
        if texts:
            noun = next((n for n in ("scope", "role") if n in name.lower()), "permission")
            return noun, ", ".join(texts)
    for form, noun in _LACKS:
        for found in form.finditer(message):
            if not _NO_NAMES.fullmatch(found["what"]):
                return noun, found["what"].rstrip(".:,")
    return None
