# ruff: noqa: E501 - one saying a line; seeded draws, no secrets
"""Refusals: calls whose parameters are right, and that fail for another reason.

What is transient wants the same call again, after the wait that the error states, if any. What is
forbidden, or was declined by a person, wants somebody who may. Neither wants other parameters, yet
many of the messages name some. They are in the words of the services, gateways, databases and
operating systems that say such things, written without looking at what reads them.
"""

import json
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from aftercall.models import FailedCall, SuggestResponse
from bench.quality.trial import Json

Expected = Literal["retry_unchanged", "escalate"]

_PER_MESSAGE = 2
"""Each message is said to so many calls, other ones each time."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A failed call with nothing wrong in its parameters.

    Args:
        wait_ms: the wait that the error states, in milliseconds; None where it states none.
        tempts: whether the message names a parameter of the call, or its value.
    """

    tool: str
    server: str
    parameters: Json
    schema: Json
    error: Json
    expected: Expected
    wait_ms: float | None
    tempts: bool

    def failed_call(self, *, with_schema: bool = True, agent: str = "tester") -> FailedCall:
        """The case as it is asked about."""
        fields: Json = {
            "agent": agent, "session_id": "test/refusals", "tool_name": self.tool,
            "server_name": self.server, "parameters": self.parameters, "error": self.error,
            "input_schema": self.schema if with_schema else None,
        }  # fmt: skip
        return FailedCall.model_validate(fields)


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said about a case."""

    case: Refusal
    response: SuggestResponse

    @property
    def changes_nothing(self) -> bool:
        """Whether no suggestion, not even the last one, changes a parameter."""
        return all(
            each.action != "change_parameters" and not each.changes
            for each in self.response.suggestions
        )

    @property
    def is_right(self) -> bool:
        """Whether the first suggestion is the expected action. To abstain is not."""
        return [each.action for each in self.response.suggestions[:1]] == [self.case.expected]

    @property
    def waits_as_told(self) -> bool:
        """Whether the first suggestion's wait is the stated one (to a hundredth of it)."""
        told, given = self.case.wait_ms, None
        if self.response.suggestions:
            given = self.response.suggestions[0].retry_after_ms
        return told is not None and given is not None and abs(given - told) <= 0.01 * told


@dataclass(frozen=True, slots=True)
class RefusalScores:
    """Shares in [0, 1]; higher is better. `tempted` is `no_change` where a message tempts."""

    cases: int
    no_change: float
    tempted: float
    right_action: float
    right_retry: float
    right_escalation: float
    right_wait: float

    def row(self) -> dict[str, float]:
        """For JSON."""
        return asdict(self)


async def answers_of(
    refusals: Sequence[Refusal],
    ask: Callable[[FailedCall], Awaitable[SuggestResponse]],
    *,
    with_schema: bool,
) -> list[Answer]:
    """Ask about each."""
    return [Answer(each, await ask(each.failed_call(with_schema=with_schema))) for each in refusals]


def score(answers: Sequence[Answer]) -> RefusalScores:
    """Score the answers."""
    retries = [each for each in answers if each.case.expected == "retry_unchanged"]
    escalations = [each for each in answers if each.case.expected == "escalate"]
    return RefusalScores(
        cases=len(answers),
        no_change=_share([each.changes_nothing for each in answers]),
        tempted=_share([each.changes_nothing for each in answers if each.case.tempts]),
        right_action=_share([each.is_right for each in answers]),
        right_retry=_share([each.is_right for each in retries]),
        right_escalation=_share([each.is_right for each in escalations]),
        right_wait=_share([e.waits_as_told for e in answers if e.case.wait_ms is not None]),
    )


def cases() -> list[Refusal]:
    """All of them; the same each time."""
    rng = random.Random("refusals")
    found = []
    for expected, sayings in (("retry_unchanged", _TRANSIENT), ("escalate", _FORBIDDEN)):
        for said in sayings:
            for tool, server, parameters in rng.sample(_CALLS, _PER_MESSAGE):
                found.append(_case(expected, said, tool, server, parameters, rng))  # type: ignore[arg-type] # the literals above
    return found


def _case(
    expected: Expected, said: "_Said", tool: str, server: str, parameters: Json, rng: random.Random
) -> Refusal:
    name = rng.choice([key for key, value in parameters.items() if isinstance(value, str)])
    blanks = {"<tool>": tool, "<name>": name, "<value>": parameters[name]}
    error: Json = {"type": said.type, "message": said.message, "details": said.details}
    if said.code is not None:
        error["code"] = said.code
    filled = json.dumps(error)
    for blank, words in blanks.items():
        filled = filled.replace(blank, json.dumps(words)[1:-1])
    return Refusal(
        tool=tool, server=server, parameters=parameters, schema=_schema(parameters),
        error=json.loads(filled), expected=expected, wait_ms=said.wait_ms,
        tempts="<name>" in said.message or "<value>" in said.message,
    )  # fmt: skip


def _schema(parameters: Json) -> Json:
    types = {str: "string", int: "integer", bool: "boolean", list: "array"}
    return {
        "type": "object",
        "properties": {name: {"type": types[type(value)]} for name, value in parameters.items()},
        "required": list(parameters),
    }


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / max(1, len(hits))


@dataclass(frozen=True, slots=True)
class _Said:
    """An error, with blanks for the tool's name and for one parameter's name and value."""

    message: str
    type: str = "Error"
    code: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    wait_ms: float | None = None


_CALLS: tuple[tuple[str, str, Json], ...] = (
    ("create_issue", "github", {"owner": "octo-org", "repo": "hello", "title": "Crash on start"}),
    ("get_file_contents", "github", {"owner": "octo-org", "repo": "hello", "path": "src/app.py", "ref": "main"}),
    ("merge_pull_request", "github", {"owner": "rivet-labs", "repo": "parser", "pullNumber": 212}),
    ("list_issues", "github", {"owner": "acme", "repo": "web", "state": "OPEN", "perPage": 50}),
    ("search_code", "github", {"query": "retry_after repo:acme/web", "perPage": 30}),
    ("delete_file", "github", {"owner": "acme", "repo": "web", "path": "old.txt", "message": "Remove", "branch": "dev"}),
    ("mv", "GorillaFileSystem", {"source": "report.txt", "destination": "archive"}),
    ("cat", "GorillaFileSystem", {"file_name": "notes.md"}),
    ("mkdir", "GorillaFileSystem", {"dir_name": "backups"}),
    ("post_tweet", "TwitterAPI", {"content": "We are live", "tags": ["#launch"], "mentions": []}),
    ("send_message", "MessageAPI", {"receiver_id": "USR003", "message": "See you at 10"}),
    ("create_ticket", "TicketAPI", {"title": "Printer", "description": "Out of toner", "priority": 2}),
    ("lockDoors", "VehicleControlAPI", {"unlock": False, "door": ["driver"], "area": "front"}),
    ("run_query", "postgres", {"sql": "SELECT id, total FROM orders WHERE total > 100", "database": "shop"}),
    ("chat_completion", "openai", {"model": "gpt-4o", "prompt": "Summarise the minutes", "max_tokens": 400}),
    ("post_message", "slack", {"channel": "#deploys", "text": "v2.4 is out"}),
    ("put_object", "s3", {"bucket": "invoices", "key": "2026/04/a17.pdf", "body": "JVBERi0x"}),
    ("fetch", "fetch", {"url": "https://example.org/feed.xml", "max_length": 5000}),
)  # fmt: skip

_TRANSIENT: tuple[_Said, ...] = (
    # HTTP and its proxies
    _Said("HTTP 429 Too Many Requests", code="429"),
    _Said("429 Client Error: Too Many Requests for url: https://api.example.com/v2/<tool>", "HTTPError"),
    _Said("Request failed with status code 429. Retry-After: 30", "AxiosError", "ERR_BAD_REQUEST", wait_ms=30_000),
    _Said("Too many requests, please slow down.", code="429", details={"headers": {"retry-after": "17"}}, wait_ms=17_000),
    _Said("503 Service Unavailable", "HTTPStatusError", "503"),
    _Said("Server error '503 Service Unavailable' for url 'https://api.example.com/<tool>?<name>=<value>'\nFor more information check: https://developer.mozilla.org/docs/Web/HTTP/Status/503", "HTTPStatusError"),
    _Said("503 Service Temporarily Unavailable (Retry-After: 120)", "HTTPError", "503", wait_ms=120_000),
    _Said("<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx/1.25.3</center>\r\n</body>\r\n</html>", "HTTPError"),
    _Said("<html><head><title>504 Gateway Time-out</title></head><body><center><h1>504 Gateway Time-out</h1></center></body></html>", "HTTPError", "504"),
    _Said("upstream connect error or disconnect/reset before headers. reset reason: connection failure", "UpstreamError", "503"),
    _Said("The service is down for scheduled maintenance. Please retry in 10 minutes.", "MaintenanceError", wait_ms=600_000),
    _Said("no healthy upstream", code="503"),
    # Networks
    _Said("read ECONNRESET", "Error", "ECONNRESET", {"errno": -104, "syscall": "read"}),
    _Said("connect ECONNREFUSED 127.0.0.1:8443", "Error", "ECONNREFUSED"),
    _Said("getaddrinfo EAI_AGAIN api.example.com", "Error", "EAI_AGAIN"),
    _Said("[Errno 104] Connection reset by peer", "ConnectionResetError"),
    _Said("('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))", "ConnectionError"),
    _Said("socket hang up", "FetchError", "ECONNRESET"),
    _Said("HTTPSConnectionPool(host='api.example.com', port=443): Max retries exceeded with url: /<tool>?<name>=<value> (Caused by NewConnectionError('Failed to establish a new connection: [Errno 111] Connection refused'))", "ConnectionError"),
    _Said("write tcp 10.0.0.4:51022->10.0.0.9:443: write: broken pipe", "net.OpError"),
    _Said("[Errno -3] Temporary failure in name resolution", "gaierror"),
    # Time
    _Said("Request timed out.", "APITimeoutError"),
    _Said("HTTPSConnectionPool(host='api.example.com', port=443): Read timed out. (read timeout=30)", "ReadTimeout"),
    _Said("context deadline exceeded (Client.Timeout exceeded while awaiting headers)", "url.Error"),
    _Said("Tool '<tool>' timed out after 30 seconds while processing <name>='<value>'", "ToolTimeoutError"),
    _Said("MCP error -32001: Request timed out", "McpError", "-32001"),
    _Said("ETIMEDOUT: operation timed out", "Error", "ETIMEDOUT"),
    _Said("504 Deadline Exceeded", "DeadlineExceeded"),
    # Limits of well-known services
    _Said("API rate limit exceeded for user ID 583231. If you reach out to GitHub Support for help, please include the request ID 0F3A:2B11.", "HttpError", "403", {"documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"}),
    _Said("You have exceeded a secondary rate limit. Please wait a few minutes before you try again.", "HttpError", "403"),
    _Said("You have exceeded a secondary rate limit.", "HttpError", "429", {"response": {"headers": {"Retry-After": "60"}}}, wait_ms=60_000),
    _Said("Rate limit reached for gpt-4o in organization org-x1 on tokens per min (TPM): Limit 30000, Used 29120, Requested 1210. Please try again in 660ms.", "RateLimitError", "rate_limit_exceeded", wait_ms=660),
    _Said("Rate limit reached for gpt-4o on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s.", "RateLimitError", "429", wait_ms=20_000),
    _Said("Rate limit reached on requests per day (RPD): Limit 200, Used 200. Please try again in 7m12s.", "RateLimitError", "rate_limit_exceeded", wait_ms=432_000),
    _Said("The server had an error while processing your request. Sorry about that!", "InternalServerError", "server_error"),
    _Said("Overloaded", "overloaded_error", "529"),
    _Said("The server responded with: {'ok': False, 'error': 'ratelimited'}", "SlackApiError", "ratelimited", {"headers": {"Retry-After": "30"}}, wait_ms=30_000),
    _Said("You are being rate limited.", "HTTPException", "429", {"retry_after": 0.65, "global": False}, wait_ms=650),
    _Said("Quota exceeded for quota metric 'Read requests' and limit 'Read requests per minute per user' of service 'sheets.googleapis.com'", "HttpError", "429"),
    _Said("Resource has been exhausted (e.g. check quota).", "ResourceExhausted", "RESOURCE_EXHAUSTED", {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}]}, wait_ms=37_000),
    _Said("An error occurred (ThrottlingException) when calling the <tool> operation (reached max retries: 4): Rate exceeded", "ClientError", "ThrottlingException"),
    _Said("An error occurred (SlowDown) when calling the PutObject operation: Please reduce your request rate.", "ClientError", "SlowDown"),
    _Said("TooManyRequests: The request is being throttled. Try again after 5 seconds.", "HttpResponseError", wait_ms=5_000),
    _Said("Rate limit exceeded: max 60 requests per minute for <name> '<value>'. Retry after 12 seconds", "RateLimitError", wait_ms=12_000),
    _Said("Limit of 100 calls per hour to <tool> reached; <name> was not processed. Wait 45 s and send it again.", "ToolError", wait_ms=45_000),
    _Said("{\"error\": {\"status\": 429, \"message\": \"Too many requests\", \"retryAfterMs\": 2500}}", "ToolError", wait_ms=2_500),
    # Remote procedure calls, databases, the machine itself
    _Said("14 UNAVAILABLE: No connection established", "Error", "14"),
    _Said("rpc error: code = Unavailable desc = transport is closing", "StatusError"),
    _Said("<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n\tdetails = \"failed to connect to all addresses\"\n>", "_InactiveRpcError"),
    _Said("4 DEADLINE_EXCEEDED: Deadline exceeded after 10.0s", "Error", "4"),
    _Said("database is locked", "OperationalError"),
    _Said("FATAL: sorry, too many clients already", "OperationalError", "53300"),
    _Said("FATAL: the database system is starting up", "OperationalError", "57P03"),
    _Said("server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally before or while processing the request.", "OperationalError"),
    _Said("Lock wait timeout exceeded; try restarting transaction", "OperationalError", "1205"),
    _Said("[Errno 11] Resource temporarily unavailable", "BlockingIOError", "EAGAIN"),
    _Said("The upstream server is busy and could not handle <name>=\"<value>\". This is temporary, please try again later.", "ToolError"),
    _Said("Deadlock found when trying to get lock; try restarting transaction", "OperationalError", "1213"),
    _Said("Concurrency limit for <name> reached (must be <= 5). Try again in 3s", "TooManyRequests", wait_ms=3_000),
    _Said("The shard of <name> '<value>' is being moved, expected one of: 'green', 'yellow'. Retry after 90 seconds.", "NotReadyError", "503", wait_ms=90_000),
    _Said("Validating <name>='<value>' took longer than 10000 ms", "TimeoutError"),
    _Said("circuit breaker is open for <tool>; next attempt allowed in 15000 ms", "CircuitOpenError", wait_ms=15_000),
)  # fmt: skip

_FORBIDDEN: tuple[_Said, ...] = (
    # HTTP
    _Said("HTTP 401 Unauthorized", code="401"),
    _Said("401 Client Error: Unauthorized for url: https://api.example.com/<tool>?<name>=<value>", "HTTPError"),
    _Said("Request failed with status code 403", "AxiosError", "ERR_BAD_REQUEST", {"status": 403}),
    _Said("403 Forbidden", "HTTPStatusError", "403"),
    _Said("{\"error\":\"invalid_token\",\"error_description\":\"The access token expired\"}", "OAuthError", "401"),
    _Said("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>", "ClientError"),
    _Said("407 Proxy Authentication Required", "ProxyError", "407"),
    # Well-known services
    _Said("Bad credentials", "HttpError", "401", {"documentation_url": "https://docs.github.com/rest"}),
    _Said("Resource not accessible by personal access token", "HttpError", "403"),
    _Said("Resource not accessible by integration", "HttpError", "403"),
    _Said("Must have admin rights to Repository.", "HttpError", "403"),
    _Said("Your token has not been granted the required scopes to execute this query. The 'id' field requires one of the following scopes: ['read:org'], but your token has only been granted the: ['repo'] scopes.", "GraphqlError", "INSUFFICIENT_SCOPES"),
    _Said("Resource protected by organization SAML enforcement. You must grant your Personal Access token access to this organization.", "HttpError", "403"),
    _Said("The server responded with: {'ok': False, 'error': 'missing_scope', 'needed': 'chat:write', 'provided': 'identify'}", "SlackApiError", "missing_scope"),
    _Said("The server responded with: {'ok': False, 'error': 'not_authed'}", "SlackApiError", "not_authed"),
    _Said("Incorrect API key provided. You can find your API key in your account settings.", "AuthenticationError", "invalid_api_key"),
    _Said("You exceeded your current quota, please check your plan and billing details.", "RateLimitError", "insufficient_quota"),
    _Said("An error occurred (AccessDeniedException) when calling the <tool> operation: User: arn:aws:iam::123456789012:user/bot is not authorized to perform this action because no identity-based policy allows it", "ClientError", "AccessDeniedException"),
    _Said("The caller does not have permission", "HttpError", "403", {"status": "PERMISSION_DENIED"}),
    _Said("Request had insufficient authentication scopes.", "HttpError", "403", {"status": "PERMISSION_DENIED", "reason": "ACCESS_TOKEN_SCOPE_INSUFFICIENT"}),
    _Said("Missing Access", "Forbidden", "50001"),
    _Said("The user does not have write access to <name> '<value>'", "ForbiddenError"),
    _Said("You do not have permission to use <name>=\"<value>\" with <tool>. Ask an administrator for access.", "ToolError"),
    _Said("Access to '<value>' is restricted to members of the operations team", "AccessControlError"),
    _Said("Insufficient privileges to complete the operation.", "Authorization_RequestDenied", "403"),
    _Said("Service account lacks role 'editor' required for <tool> on <value>", "IamError"),
    _Said("Authentication required: please log in again to continue", "SessionError"),
    _Said("Your session has expired. Sign in to use <tool>.", "AuthError"),
    # Systems
    _Said("EACCES: permission denied, open '/srv/data/<value>'", "Error", "EACCES", {"errno": -13, "syscall": "open"}),
    _Said("[Errno 13] Permission denied: '/srv/data/<value>'", "PermissionError"),
    _Said("EPERM: operation not permitted, unlink '/etc/hosts'", "Error", "EPERM"),
    _Said("[Errno 30] Read-only file system: '/mnt/<value>'", "OSError"),
    _Said("Access is denied. (os error 5)", "IoError"),
    _Said("permission denied for table orders", "InsufficientPrivilege", "42501"),
    _Said("ERROR: must be owner of relation invoices", "InsufficientPrivilege", "42501"),
    _Said("ERROR 1142 (42000): SELECT command denied to user 'bot'@'10.0.0.7' for table 'orders'", "OperationalError", "1142"),
    _Said("FATAL: password authentication failed for user \"bot\"", "OperationalError", "28P01"),
    _Said("not authorized on shop to execute command { <tool>: \"<value>\" }", "OperationFailure", "13"),
    _Said("7 PERMISSION_DENIED: Permission denied on resource project shop-prod", "Error", "7"),
    _Said("rpc error: code = Unauthenticated desc = invalid or missing bearer token", "StatusError"),
    _Said("16 UNAUTHENTICATED: Request is missing required authentication credential.", "Error", "16"),
    _Said("pods is forbidden: User \"system:serviceaccount:ci:bot\" cannot list resource \"pods\" in API group \"\" in the namespace \"prod\"", "ApiException", "403"),
    _Said("sandbox: deny file-write-create for process 4121 (<tool>)", "SandboxViolation"),
    _Said("Your role 'viewer' cannot use <name>='<value>'; required role: 'editor'", "Forbidden"),
    _Said("Token scope must be one of ['write', 'admin'], got 'read'", "ApiError", "403"),
    _Said("Missing required header 'Authorization'", "HTTPError", "401"),
    _Said("The request signature we calculated does not match the signature you provided. Check your key and signing method.", "ClientError", "SignatureDoesNotMatch"),
    # People
    _Said("User rejected the tool call", "UserRejected"),
    _Said("The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file).", "ToolError"),
    _Said("Tool call was declined by the user: <name>='<value>' looks wrong to me", "ElicitationDeclined"),
    _Said("Permission to use <tool> has been denied by the user.", "PermissionError"),
    _Said("The user rejected this call and said: <name> should not be '<value>', ask me first", "UserRejected"),
    _Said("Operation cancelled by user", "CancelledError"),
    _Said("Human review: DENIED. Reason: do not touch <value> before the release.", "ApprovalError"),
    _Said("Approval required: <tool> needs the consent of an administrator before it may run", "ApprovalRequiredError"),
    _Said("<tool> is blocked by your organization's policy for <name> '<value>'", "PolicyViolation"),
)  # fmt: skip
