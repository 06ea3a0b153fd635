"""Which kind of error it is: from its type and code, then from its words.

Words are looked for in a message that was made plain: capitals within a word begin a new one, and
all that is no letter or digit is a space. So `ResourceNotFoundException`, `NOT_FOUND` and
`not-found` all hold `not found`. A phrase with a space at an end holds only at a word's end there.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from aftercall.json_values import JsonValue
from aftercall.models import ErrorCategory

_READ = 1_200
"""Characters that are searched: what follows is context, and holds the words of other errors."""

_TRACEBACK = "Traceback (most recent call last)"
_FRAMES = re.compile(
    r"^[ \t]+(?:at |File \"|\^+|\.\.\. \d+ more)[^\n]*$|^goroutine [^\n]*$", re.MULTILINE
)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NO_WORD = re.compile(r"[\W_]+")


def plain_words(message: str) -> str:
    """The message as lower-case words with single spaces between and around them."""
    if _TRACEBACK in message:
        # Python puts what went wrong last, after the lines that led to it.
        message = message.strip().rsplit("\n", 1)[-1]
    head = _FRAMES.sub("", message)[:_READ]
    return f" {_NO_WORD.sub(' ', _HUMP.sub(' ', head)).lower().strip()} "


@dataclass(frozen=True, slots=True)
class Words:
    """Phrases and, for words with others between them, a pattern that tell of a category."""

    category: ErrorCategory
    confidence: float
    phrases: Sequence[str]
    pattern: re.Pattern[str] | None = None

    def are_in(self, plain: str) -> bool:
        """Whether a message made plain holds one of them."""
        return any(phrase in plain for phrase in self.phrases) or (
            self.pattern is not None and self.pattern.search(plain) is not None
        )


def _phrases(text: str) -> tuple[str, ...]:
    """Phrases between semicolons or on lines of their own; `_` is a space at a phrase's end."""
    parts = (part.strip() for part in text.replace("\n", ";").split(";"))
    return tuple(part.replace("_", " ") for part in parts if part)


_PERSON = (
    r"(?:user|owner|customer|buyer|shopper|human|person|operator|reviewer|approver|supervisor"
    r"|manager)"
)
# Not "the user may not cancel", "the order of user 5 cannot be cancelled", "the user was denied".
_MEANWHILE = r"(?:(?!cannot |can |could |not |t |may |must |to |be |been |was |is |are )\w+ ){0,4}?"
_REFUSES = (
    r"(?:reject(?:s|ed)|declin(?:es|ed)|den(?:ies|ied)|cancell?(?:s|ed)|refuse[sd]|abort(?:s|ed)"
    r"|dismiss(?:es|ed)|skipp?(?:s|ed)|stopp?(?:s|ed)|"
    r"veto(?:es|ed)|disallow(?:s|ed)|withdr[ae]ws?|interrupt(?:s|ed)|turned down|has turned down"
    r"|pressed (?:stop|escape|cancel|back)|"
    r"(?:did|does|do) ?(?:not|n t) (?:approve|consent|confirm|allow|accept|want|agree)|chose not|"
    r"(?:said|answered|response) (?:no|stop|deny) )"
)

# The first that matches decides: what is specific stands before what is general. The confidence
# of the general words about parameters is what they reached on families written after them.
RULES: tuple[Words, ...] = (
    Words("user_rejected", 0.95, _phrases("""
        user cancel; user reject; _not approved_; approval denied; approval rejected
        _keyboard interrupt_; action decline_; decision reject
    """), re.compile(
        rf" {_PERSON} {_MEANWHILE}{_REFUSES}| you (?:pressed (?:stop|escape|cancel)|rejected"
        rf"|declined|cancell?ed) |"
        rf" (?:rejected|declined|denied|cancell?ed|refused|aborted|interrupted|stopped|vetoed"
        rf"|disallowed|dismissed) (?:\w+ ){{0,2}}?by (?:the |a |an |its |your )?(?:{_PERSON})|"
        r" (?:confirmation|consent|approval) (?:\w+ )?(?:not (?:given|granted)|refused|declined"
        r"|denied|withheld) |"
        r" (?:approval|reviewer|prompt) (?:\w+ )?(?:step )?(?:declined|rejected|refused) |"
        r" did not (?:approve|consent) | (?:was|been) (?:manually )?cancell?ed by (?!the (?:server"
        r"|system)|(?:server|system|due) )"
    )),
    Words("rate_limited", 0.93, _phrases("""
        rate limit; ratelimit; rate exceeded; over query limit; request limit exceeded
        request limit reached; rejected execution; too many requests; too many attempts
        too many messages; too many calls; too frequent; too fast; too often; throttl
        throughput exceeded; resource exhausted; resources exhausted; resource has been exhausted
        quota exceeded; quota exhausted; exceeded quota; insufficient quota; requests quota
        slow down; being limited; submit limit; pull limit; reduce request rate
        reduce your request rate; retry after_; _retry later_; daily quota; daily limit
        daily credits; concurrency limit; over capacity limit; requests limitation
    """), re.compile(
        r" \d+ (?:calls?|requests?|queries|messages|searches|tokens) (?:per|a|in the last) "
        r"(?:second|minute|hour|day|month)|"
        r" (?:calls?|requests?|queries|messages|tokens) per (?:second|minute|hour|day|month)|"
        r" \d+ per (?:second|minute|hour) |"
        r" quota (?:\w+ ){0,9}?(?:exceeded|exhausted|used up|reached|gone)|exceed(?:ed|s|ing)? "
        r"(?:\w+ ){0,6}?(?:quota|rate|requests?|resource) |"
        r" (?:is |are )?over (?:\w+ ){0,3}?limit |"
        r" (?:are|were|is) used up |(?:limit|allowance|credits) (?:\w+ ){0,3}?(?:reached|used up"
        r"|exhausted|exceeded) (?:per|for|today|this) |"
        r" at a rate |too much (?:\w+ )?try again in "
    )),
    Words("timeout", 0.92, _phrases("""
        timeout; time out_; timed out; deadline exceeded; deadline has elapsed; deadline elapsed
        deadline expired; took too long; time limit exceeded; to time limit; the time limit
        taking too long; exceeded time; execution time exceeded; maximum execution time
        maximum statement execution time; in your time; too long to respond; idle for too long
    """), re.compile(
        r" (?:in time|(?:within|after|than|over|for|the) \d+(?: \d+)? ?(?:ms|millis\w*|s|secs?"
        r"|seconds?|min|minutes?|h|hours?)(?: limit)?) (?!before)|"
        r" \d+ (?:ms|s|seconds|minutes) has passed |gave up (?:waiting|after)|took (?:longer|more"
        r"|over) "
    )),
    Words("permission_denied", 0.92, _phrases("""
        permission denied; permissions denied; permission to; permission for this
        denied permission; access denied; denied access; access is denied; access was denied
        _denied to_; request denied; authorization denied; forbidden; unauthori; unauthenticated
        not authori; not authenticated; authorization failed; authorization required
        authorization error; authentication failed; authentication required; authentication error
        authentication credentials; requires authentication; must be authenticated
        must be logged in; is currently logged in; please log in; not logged in; login failed
        login required; log in failed; logon failed; bad credentials; invalid credentials
        invalid auth; invalid api; invalid token; invalid client; invalid grant; invalid signature
        invalid account; incorrect api key; wrong password; api key provided; api token is invalid
        api key is; api key to authenticate; an api key; bearer token; access token
        security token; oauth token; csrf; saml; expired token; token expired; token is expired
        token revoked; insufficient permission; insufficient privilege; insufficient scope
        insufficient access; insufficient authentication; insufficient rights; missing scope
        missing permission; required permission; permissions missing; no permission; noauth
        noperm; lacks role; lacks permission; operation not permitted; not permitted to
        is not permitted; not allowed to; is not allowed on; not accessible by; outside allowed
        outside the allowed; readonly database; read only database; read only transaction
        read only file system; only select queries; only select statements; admin rights
        administrator rights; grant consent; admin consent; no valid credential
        unable to locate credentials; credentials were not provided; not in channel; is private_
        belongs to another; by policy_; deny list; needs a password; password required
        relaying denied; username and password not accepted; bot was blocked
        you have been blocked; _eacces_; _eperm_; is not enabled for; not authed; required scope
        restricted to_; approval required; requires approval; signature mismatch
        signature does not match; signatures do not match; signature verification failed
        members only_
    """), re.compile(
        r" (?:does|do) ?(?:not|n t) have (?:\w+ ){0,3}?(?:permission|access|rights?|privileges?"
        r"|authorization|scope|packages write)|"
        r" (?:token|credentials?|api key|session|certificate|password) (?:\w+ ){0,4}?(?:expired"
        r"|revoked|invalid|withdrawn|incorrect|not valid|not accepted|was refused)|"
        r" (?:sandbox|seccomp|apparmor|selinux) (?:\w+ ){0,3}?(?:den(?:y|ies|ied)|blocked"
        r"|forbids) | (?:denied|blocked) by (?:the )?(?:sandbox|seccomp|apparmor|selinux) |"
        r" (?:policy|role|profile) (?:\w+ ){0,3}?(?:forbids|denies|keeps|does not allow"
        r"|does not permit)|"
        r" (?:api key|token|role|principal|guest|caller) (?:\w+ ){0,3}?(?:cannot|may not|lacks"
        r"|is not permitted)|"
        r" (?:your )?plan does not (?:include|allow)|only (?:\w+ ){1,5}?may |requires? "
        r"(?:\w+ ){0,3}?(?:approval for|privileges|permission|scope)"
    )),
    Words("unavailable", 0.9, _phrases("""
        deadlock detected; deadlock found; deadlock victim; was deadlocked
        could not serialize access; type server error; server had an error while processing
        connection refused; connection reset; connection aborted; connection closed
        connection error; connection failure; connection broken; connection lost; lost connection
        connect error; connect failed; connect call failed; connection attempts failed
        connect to host; trying to connect; econn; ehostunreach; enetunreach; enotfound; eai again
        getaddrinfo; _epipe_; broken pipe; socket hang up; fetch failed; unexpected eof
        remote end closed; without response; tls handshake; ssl error; certificate verify failed
        unable to connect; unable to contact; unable to reach; could not connect
        could not contact; could not reach; could not resolve host; couldn t connect
        couldn t reach; can t connect; cannot connect; cannot reach; failed to connect
        failed to establish; failed to open tcp; establishing a connection
        no connection could be made; not resolved; name resolution; name or service not known
        no such host; unknown host; no route to host; network error; network is down
        network path was not found; network related; unreachable; is offline
        appears to be offline; service unavailable; unavailable_; temporarily; _busy_
        server is busy; overload; over capacity; out of capacity; sufficient capacity
        insufficient instance capacity; is down_; are down_; maintenance; starting up; is loading
        _loading_; shutting down; is stopping; is scaling; are scaling; scaling up; scaling from
        gone away; disconnected; not connected; bad gateway; no healthy; no servers available
        no brokers available; no server is currently available; no live replica; not primary
        no leader; leader not available; cluster is down; clusterdown; clusterblock
        circuit breaker; database is locked; rpc server is; connection to the server
        our connection; not responding; does not answer; try again later
        try again in a few minutes; come back in; come back later; come back after
        service not available; process has exited; proxy error; has been closed_; no network
        try your request again later
    """), re.compile(
        r" no (?:\w+ ){0,2}?(?:workers?|runners?|brokers?|servers?|hosts?|replicas?|upstreams?"
        r"|backends?|agents?|nodes?|feed) (?:\w+ ){0,6}?(?:is online|are online|online|available"
        r"|polls|left|reachable|at the moment)|"
        r" (?:is|are|was|were) (?:currently |temporarily |just )?(?:not available|not reachable"
        r"|unreachable|drained|terminated|suspended|all gone)|"
        r" (?:service|backend|server|system|cluster|hub|device|queue|metastore|shop) "
        r"(?:\w+ ){0,3}?(?:down|closed|not there|unreachable|offline|suspended)"
    )),
    Words("invalid_parameters", 0.9, _phrases("""
        validation error; validation failed; failed validation; invalid param; invalid arg
        invalid option; invalid choice; invalid input; invalid type; invalid request; invalid url
        invalid literal; invalid enum; invalid package name; missing required; required parameter
        required argument; required field; required property; field required; unexpected keyword
        unexpected token; unrecogni; unknown parameter; unknown argument; unknown field
        unknown option; unknown flag; unknown variant; unknown operator; no such option
        no such filter; option not found; did you mean; t parse; parse error; syntax error
        must be one of; must be an_; must be between; is not of type; is not one of
        additional properties; cannot unmarshal; cannot deserialize; exactly once; not in index
        non unique elements; duplicate items
    """)),
    Words("execution", 0.9, _phrases("""
        internal server error; internal error; internal failure; local error; fatal error
        server encountered an internal; server error occurred; error on our side; on our side_
        null pointer; nil pointer; null reference; object reference not set; segmentation
        segfault; sigsegv; sigkill; core dumped; access violation; exc bad access; signal killed
        panic; goroutines are asleep; out of memory; _oom_; oom kill; oomkilled; memory error
        heap out of; java heap; heap limit; memory limit; maximum memory; maximum recursion
        recursion depth; call stack size; division by zero; divide by zero; zero division
        no space left; not enough space; disk full; disk image is malformed; i o error
        got error 28; crashed; _crash_; corrupt; checksum; bad zip file; not a zip file
        stream ended unexpectedly; moov atom; extraneous bytes; class cast; classcast
        not converge; failed to converge; diverged; singular matrix; stack trace; _nomethod_
        no method error; undefined method; unbound local; referenced before assignment
        name error name; reference error; cannot read propert; is not a function
        called option unwrap; called result unwrap; overflow; nondeterminism; was killed
        process died; worker died; worker process; exited with code; exited with error; signal 9
        rst stream; linker; ld returned; compilation failed; build error; building wheel
        crash loop; back off restarting; restarting failed container; exec format error
        stage failure; improperly configured; undefined error; improperlyconfigured; is undefined_
        is not defined; _fault_; failed tests; assert_; bug in; persist to disk; referenced memory
        could not be read; did not complete successfully; circuit breaking exception
    """), re.compile(
        r" (?:runtime|fatal) error (?:index out of range|all )|"
        r" (?:worker|task|thread|handler|process) (?:\w+ ){0,2}?"
        r"(?:threw|panicked|died|crashed|failed \d+ times)"
    )),
    Words("conflict", 0.88, _phrases("""
        already; duplicate; unique constraint; unique violation; is not unique; conflict
        foreign key; data integrity violation; integrity error; deadlock; serialize access
        concurrent; has been modified; have been modified; been modified or deleted; was modified
        modified since; updated or deleted by another; changed by another; another user has
        someone else has; somebody else; in another window; stale; version mismatch
        version must be incremented; does not match the current version; precondition
        condition not met; conditional request failed; conditional check; lost a race; in use_
        being used by; used by another; open in another; opened by another; checked out by
        resource busy; target is busy; is locked_; locked by; _423 locked_; ebusy; held by_
        could not get lock; not in a state; incorrect state; incorrect instance state
        invalid state; wrong state; is not ready; not mergeable; cannot be merged
        unable to resolve dependency tree; eresolve; insufficient funds; insufficient balance
        insufficient stock; insufficient inventory; insufficient credit; not enough
        balance is not; out of stock; sold out; fully booked; is archived; is closed_
        has been closed; was closed_; has finished; can no longer be; _lease_; cannot be modified
        cannot be cancelled; cannot be changed in its; not empty; file exists; eexist; enotempty
        eaddrinuse; is not modified; rebalanced; name is taken; is running_; in progress
        found 2 matches; busygroup; unique key
    """), re.compile(
        r" found \d+ matches |not available on \d| (?:is|was|were|has been|have been) (?:just )?"
        r"(?:used up|shipped|delivered|sold|archived|assigned to another|locked by)|must be "
        r"(?:cancelled|stopped|closed|opened|deleted|disabled|unlocked|paused) (?:first|before)|"
        r" (?:while|because|as) (?:\w+ ){0,4}?(?:is|are) (?:still )?(?:running|open|in use|locked"
        r"|active)|(?<!could) not (?:locked|unlocked|closed|open) "
    )),
    Words("not_found", 0.88, _phrases("""
        not found; notfound; no such; not exist; n t exist; doesnt exist; doesn t have a resource
        could not find; couldn t find; cannot find; can t find; cannot locate; could not locate
        unable to find; unable to locate; unable to resolve; could not resolve to; cannot be found
        could not be found; can t get_; no matching; no value present; no rows in result
        no results; no result for; zero results; nothing found; has no record; not hosted
        not installed; not registered; not present in; in the catalogue; is not in the catalog
        is missing from; no query results; no ref found; did not resolve; did not match any
        does not match any; unknown time zone; unknown timezone; unknown tool; unknown user
        unknown id; unknown host; unknown database; unknown table; unknown column; unknown channel
        unknown revision; unknown branch; unknown mailbox; unknown topic; unknown target
        unknown method; unknown resource; unknown location; unknown city; unimplemented; nxdomain
        _enoent_; _gone_; not recognized as an internal; cannot get_; invalid index; nonexistent
        non existent; is unknown_
    """), re.compile(
        r" there (?:is|are) no | no (?:\w+ ){0,2}?(?:named|called|found|matches|matching|with "
        r"(?:id|name|this|the|key|value|that)|for symbol|answers at) |"
        r" no (?:\w+ )?(?:object|record|file|table|column|function|collection|index|user|order"
        r"|container|image|route|contact|device) |"
        r" (?:missing|lost|has no) (?:file|record|entry) | has no (?:\w+ )?called | is (?:missing"
        r"|nowhere) (?!or|a|the|an)"
    )),
)  # fmt: skip

RATE_LIMITED = next(words for words in RULES if words.category == "rate_limited")

OF_PARAMETERS = Words("invalid_parameters", 0.6, _phrases("""
        validation error; validation failed; failed validation; validation exception; invalid
        malformed; unprocessable; bad request; bad value; bad argument; bad parameter; not valid
        a valid; valid value; math domain; conversion failed when; key error; isn t valid
        required; is missing; missing param; missing field; missing arg; missing value
        parameter missing; not provided; not supplied; not specified; must be; must not; must have
        must lie; must contain; must match; must only; must start; must end; must hold
        must specify; must provide; must include; must define; _must_; should be; should have
        should match; should not; should start; should contain; has to; have to_; needs to be
        needs a_; needs an_; needs at; needs five; may only; can only; can be a_; may not hold
        may not contain; expected_; expecting; unknown parameter; unknown argument; unknown field
        unknown option; unknown flag; unknown operator; unknown command; unknown query
        unknown key; unknown property; unknown unit; unknown variant; unknown connector
        unknown type; unknown value; unrecogni; not recogni; unsupported; not supported
        unpermitted; unterminated; unbalanced; unclosed; out of range; outofrange; outside the
        is outside; cannot start with; out of bounds; beyond the end; exceeds; too long; too short
        too large; too small; too big; too high; too low; too many arg; too few; at least; at most
        no more than; less than; greater than; fewer than; larger than; longer than; shorter than
        multiple of; divisible by; non empty; not be empty; not be null; be blank_; t be blank
        is empty_; was empty; not null; null value; does not match; do not match; does not fit
        not agree; does not conform; mismatch; were given; wrong number; wrong type; wrong input
        _wrong_; incorrect; illegal; argument error; argument type; type error; value error
        format exception; number format; parse error; parsing; could not be parsed
        can t be parsed; t parse; failed to parse; failed to convert; could not be converted
        cannot be converted; cannot unmarshal; cannot initialize; cannot represent; not convert
        deserializ; syntax; did you mean; a similar argument; choose from; valid modes
        valid options; supported values; in the form_; in the format; additional properties
        not allowed_; not a number; is not a_; is not an_; is not of type; not one of
        is not known; not in index; has non unique; was expected; under any of the given
        dependency of; between instances of; cannot be interpreted; is not iterable
        has no attribute; be multiplied; be broadcast; no enum constant; for input string
        media type; missing an http; no scheme supplied; maximum context length; alternate between
        is before; lies before; is after_; does not add up; do not add up; in list index
        has more than one; missing condition; identical; no such option; no such filter
        option not found; must set; not a property; not a regular; is a directory; not a directory
        not a file; omitting directory; nothing to do; is text where; not decodable; wrongtype
        not contiguous
    """), re.compile(
    r" (?:between|range) \d+ (?:and|to|\d)| or fewer | requires? (?:an?|at|the|exactly|five|four"
    r"|three|two) |"
    r" (?:parameter|argument|field|option|value|input|slot|property|key)s? (?:\w+ ){0,4}?"
    r"(?:missing|empty|unknown|unset|not filled|not set|not given|required|invalid)|"
    r" (?:must|has|have|can|may) (?:\w+ )?(?:have|hold|only|use|be)? ?(?:only )?(?:letters|digits"
    r"|blanks?|decimals)| given as \w+ where "
))  # fmt: skip

_EMPTY_WORDS = frozenset(
    ("a", "an", "the", "this", "that", "it", "we", "i", "you", "your", "our", "to", "of", "for",
     "in", "on", "at", "with", "by", "and", "or", "is", "was", "were", "be", "been", "has",
     "have", "had", "do", "did", "does", "not", "no", "t", "n", "s", "sorry", "please", "try",
     "again", "couldn", "wasn", "could", "can", "cannot", "unable", "went", "wrong", "something",
     "anything", "occurred", "error", "errors", "err", "fail", "fails", "failed", "failure",
     "failing", "unsuccessful", "success", "exception", "exceptions", "fault", "problem",
     "issue", "unknown", "unexpected", "unhandled", "unspecified", "generic", "undefined",
     "null", "none", "nil", "nan", "false", "true", "object", "tool", "tools", "call", "run",
     "runs", "request", "operation", "action", "task", "job", "command", "process", "step",
     "execution", "executing", "calling", "complete", "completed", "finished", "ended",
     "proceed", "result", "status", "state", "code", "exit", "return", "returned", "message",
     "msg", "log", "logs", "see", "check", "details", "contact", "support", "administrator",
     "time", "moment", "now", "reference", "ref", "id", "runtime", "system", "value", "type",
     "java", "lang", "std", "com", "oops", "whoops", "work", "as", "such", "response", "data",
     "build")
)  # fmt: skip
_CODE_WORD = re.compile(r"(?=[^a-z]*\d)[a-z]{0,2}[\da-f]+|\d+")


def says_nothing(plain: str) -> bool:
    """Whether a message made plain tells only that something failed, and not what."""
    return all(word in _EMPTY_WORDS or _CODE_WORD.fullmatch(word) for word in plain.split())


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
    r"sql|psycopg|postgres|asyncpg|maria|sqlstate|database|relation|transaction|deadlock"
    r"|constraint|"
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


UNREAD = 0.5
"""Confidence of `unknown` where no grammar knows the words: a classifier may."""
SURE_OF_NOTHING = 0.9
"""The same where there are no words that could be known."""
_FAULT_NAMED = 0.85
"""The same of words about parameters beside a fault that a grammar found."""
_STATUS_WITHIN = 400

_TYPED: dict[str, ErrorCategory] = {
    "wrong_tool_boundary": "wrong_tool_boundary",
    "low_utility": "low_utility",
    "contract_violation": "contract_violation",
    "user_rejected": "user_rejected",
}
"""What a tool says of itself in `error.type`; never overruled (seeds 000 and 003)."""

_TYPE_WORDS: list[tuple[str, ErrorCategory]] = [
        (r"timeout|timedout|deadlineexceeded", "timeout"),
        (r"rate_?limit|toomanyrequests|throttl|quotaexceeded", "rate_limited"),
        (r"permission|forbidden|unauthorized|unauthenticated|accessdenied|autherror", "permission_"
         "denied"),
        (r"notfound|nosuch|filenotfound|doesnotexist|zoneinfonotfound", "not_found"),
        (r"conflict|alreadyexists|fileexists|integrityerror|duplicate", "conflict"),
        (r"overload|\bserver_error\b|connection|unavailable|brokenpipe|networkerror|gaierror"
         r"|econnrefused", "unavailable"),
        (r"validation|invalid_?(?:param|arg|request|input)|badrequest|jsonschema|zoderror",
         "invalid_parameters"),
]  # fmt: skip
_TYPES = [(re.compile(words, re.IGNORECASE), category) for words, category in _TYPE_WORDS]

_STATED_STATUS = re.compile(
    r"(?:^|\bHTTP(?:/[\d.]+)?[ :]|\bstatus(?:[ _]?code)?[\"']?\]?[ :=]{1,3}"
    r"|\bcode[\"']?[ :=]{1,3}\"?|\bhttp status |"
    r"\berror:? |: )\(?(?P<code>-32[0-9]{3}|[45][0-9]{2})\b(?![.,\d]| \d\.\d)",
    re.IGNORECASE,
)
"""A JSON-RPC code or an HTTP status where messages and bodies state one."""
_CLEAR_STATUS = frozenset(
    {"-32601", "-32001", "401", "403", "404", "408", "409", "410", "412", "423", "429", "502",
    "503", "504",
     "524"}
)  # fmt: skip
"""Codes that say more than the words beside them; 400 and 500 stand for all there is."""

# What a validator of arguments says, in its own words; surer than any code around it.
_VALIDATED = re.compile(
    r"validation errors? for|is a required property|missing \d+ required (?:positional|keyword)|"
    r"unexpected keyword argument|additional properties are not allowed|is not of type|"
    r"must NOT have additional properties|must have required property|invalid_type|"
    r"unrecognized_keys|input validation error|invalid (?:params|arguments) for tool",
    re.IGNORECASE,
)
# The same words about what the tool gave back: nothing is wrong with the call.
_GIVEN_BACK = (
    r"(?:outputs?|response|responses|result|results|answer|payload|structured content|deliverable"
    r"|delivered|"
    r"return(?:ed)? (?:value|type|payload|object|data)|structured output|completion"
    r"|generated object)"
)
_HELD_AGAINST = (
    r"(?:validat|schema|conform|contract|promise|declared|coerce|grammar|not json|not among"
    r"|mismatch|pars(?:e|ing) )"
)
_RESULT_CHECK = re.compile(
    rf" {_GIVEN_BACK} (?:\w+ ){{0,5}}?{_HELD_AGAINST}|"
    rf" (?:validat\w+|conform\w*|pars(?:e|ing)|against|promised|parser) (?:\w+ ){{0,2}}?"
    rf"(?:the )?{_GIVEN_BACK} |"
    r" contract (?:violat|breach|broken)|post ?condition |output (?:parser|schema|type) |"
    r" (?:return|response|output) (?:\w+ )?(?:type|schema|declared)|response (?:body|status"
    r"|headers?|content) |"
    r" validation errors? for \w+ (?:response|result|output|reply) "
    r"|cannot return null for non nullable"
)


@dataclass(frozen=True, slots=True)
class CategoryReading:
    """A category, and how sure it is (0 to 1, higher is surer)."""

    category: ErrorCategory
    confidence: float


def categorise(
    error_type: str, code: str, message: str, *, has_faults: bool, blames_value: bool
) -> CategoryReading:
    """Read the kind of an error from its type, its code and its words, in this order.

    Args:
        error_type: the type the caller gave.
        code: the code the caller gave: JSON-RPC, HTTP, POSIX or the tool's own; or empty.
        message: what the tool said, bounded in length.
        has_faults: whether a grammar found a fault of a parameter in the message.
        blames_value: whether it says of a parameter that was sent how it should be. Such words are
            surer than any other: `timeout must be an integer` is no time-out.
    """
    if typed := _TYPED.get(error_type):
        return CategoryReading(typed, 1.0)
    plain = plain_words(message)
    if not blames_value and _RESULT_CHECK.search(plain):
        return CategoryReading("contract_violation", 0.9)
    if code == "-32602" or _VALIDATED.search(message):
        return CategoryReading("invalid_parameters", 0.97)
    beside = f"{error_type} {message[:_STATUS_WITHIN]}" if code else ""
    if by_code := category_of_code(code, beside):
        return _unless_too_fast(CategoryReading(by_code, 0.95), plain)
    named = f"{error_type} {code}"
    by_type = next((each for words, each in _TYPES if words.search(named)), None)
    if by_type:
        return CategoryReading(by_type, 0.95)
    return _by_words(message, plain, has_faults=has_faults, blames_value=blames_value)


def _by_words(message: str, plain: str, *, has_faults: bool, blames_value: bool) -> CategoryReading:
    if blames_value:
        return CategoryReading("invalid_parameters", 0.9)
    if says_nothing(plain):
        return CategoryReading("unknown", SURE_OF_NOTHING)
    stated = _STATED_STATUS.search(message[:_STATUS_WITHIN])
    by_status = CODES.get(stated["code"]) if stated else None
    if stated and by_status and stated["code"] in _CLEAR_STATUS:
        return _unless_too_fast(CategoryReading(by_status, 0.92), plain)
    if by_state := stated_sqlstate(message[:_STATUS_WITHIN]):
        return CategoryReading(by_state, 0.92)
    for words in RULES:
        if words.are_in(plain):
            return CategoryReading(words.category, words.confidence)
    if OF_PARAMETERS.are_in(plain):
        sure = _FAULT_NAMED if has_faults else OF_PARAMETERS.confidence
        return CategoryReading("invalid_parameters", sure)
    if by_status:
        return CategoryReading(by_status, 0.85)
    return CategoryReading(*(("invalid_parameters", 0.7) if has_faults else ("unknown", UNREAD)))


def _unless_too_fast(reading: CategoryReading, plain: str) -> CategoryReading:
    """GitHub and Google tell with 403, too, that a caller is too fast."""
    if reading.category == "permission_denied" and RATE_LIMITED.are_in(plain):
        return CategoryReading("rate_limited", RATE_LIMITED.confidence)
    return reading
