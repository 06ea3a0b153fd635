"""Errors that real tools give, in groups that say nearly the same thing."""

GROUPS: tuple[tuple[str, ...], ...] = (
    (
        "Invalid parameter: topK must be <= 10",
        "Invalid parameter: topK must be less than or equal to 10, got 50",
        "parameter topK: 50 is greater than the maximum of 10",
    ),
    (
        "Invalid timezone: No time zone found with key Europe/Zurch",
        "No time zone found with key America/New York",
        "unknown time zone key 'Asia/Tokio'",
    ),
    (
        "fatal: ambiguous argument 'HEAD~99': unknown revision or path not in the working tree.",
        "fatal: bad revision 'mian': unknown revision",
        "Ref 'origin/mian' did not resolve to an object: unknown revision",
    ),
    (
        "'repo_path' is a required property",
        "Field required: repo_path",
        "Missing required property: repo_path",
    ),
    (
        "rag_query() got an unexpected keyword argument 'top_k'. Did you mean 'topK'?",
        "Unexpected keyword argument: top_k",
        "Additional properties are not allowed ('top_k' was unexpected)",
    ),
    (
        "HTTP 429 Too Many Requests: rate limit exceeded, retry after 30 seconds",
        "Rate limit exceeded. Please retry after 12 seconds.",
        "RateLimitError: too many requests, retry later",
    ),
    (
        "Connection timed out after 30000 ms while connecting to db.internal:5432",
        "asyncpg: connection to db.internal timed out",
        "ConnectTimeout: timed out while connecting to the database",
    ),
    (
        "Error: user not found: mia_li_9999",
        "Error: user not found",
        "NotFoundError: no user mia_li_0000 was found",
    ),
    (
        "Error: payment amount does not add up, total price is 486, but paid 450",
        "Error: payment amount does not add up, total price is 1322, but paid 1000",
        "payment does not add up to the total price",
    ),
    (
        "PermissionError: [Errno 13] Permission denied: '/etc/shadow'",
        "Permission denied: '/home/ada/.ssh/id_rsa'",
        "EACCES: permission denied, open '/var/log/auth.log'",
    ),
    (
        "'ten' is not of type 'integer'",
        "Input should be a valid integer, unable to parse string as an integer",
        "max_count: value is not a valid integer",
    ),
    (
        "'urgent' is not one of ['low', 'medium', 'high']",
        "severity must be one of: low, medium, high",
        "Invalid enum value. Expected 'low' | 'medium' | 'high', received 'urgent'",
    ),
)
