"""Names, values and options of other tools, for the kinds of `kinds_sixth`."""

from collections.abc import Mapping, Sequence
from typing import Any

Table = Mapping[str, Sequence[str]]

VENDORS: Table = {
    "file_name": ("target_file", "absolute_path", "file_path", "relative_workspace_path"), "path":
    ("file_path", "target_file", "uri"), "folder": ("dir_path", "cwd", "target_directory"),
    "dir_name": ("dir_path", "folder_path"), "source": ("file_path", "old_path", "original_path"),
    "destination": ("dest_name", "to_location"), "filename": ("file_name", "file_path"), "pattern":
    ("search_term", "regex_pattern", "needle"), "lines": ("num_lines", "head_limit"), "content":
    ("file_text", "code_edit", "new_str", "file_content"), "owner": ("repo_owner_login",
    "namespace", "project_owner"), "repo": ("repository_name", "repo_slug", "project_name"),
    "issue_number": ("issue_iid", "number", "issueIid"), "pullNumber": ("number",
    "merge_request_iid", "pull_request_id"), "branch": ("ref", "branch_name", "head_branch"), "sha":
    ("commit_sha", "commit_hash", "revision"), "body": ("comment_body", "markdown_body",
    "text_content"), "title": ("summary", "issue_title"), "message": ("commit_message",
    "message_text"), "query": ("jql", "keywords", "search_string"), "method": ("operation",
    "action", "op"), "labels": ("label_names", "tags"), "perPage": ("max_results",
    "results_per_page"), "page": ("page_index", "page_no"), "state": ("issue_state", "status"),
    "fields": ("select", "columns", "return_fields"), "files": ("file_changes", "documents"),
    "since": ("updated_after", "start_time"), "name": ("display_name", "title"), "value":
    ("field_value", "new_value"), "field_name": ("column_name", "property"), "receiver_id":
    ("to_user_id", "recipient", "channel"), "user_id": ("customer_id", "account_number",
    "member_id"), "ticket_id": ("ticket_number", "case_number", "issue_key"), "tweet_id":
    ("post_id", "status_id"), "comment_content": ("reply_text", "comment_text"), "city":
    ("city_or_town", "locality"), "distance": ("trip_distance", "range_miles"), "fuelAmount":
    ("gallons", "amount_in_gallons"), "ignitionMode": ("action", "engine_state"), "door": ("doors",
    "door_list"), "liter": ("liters", "volume_liters"), "numbers": ("number_list", "data_points"),
    "order_id": ("order_number", "purchase_id", "transaction_id"), "product_id": ("sku",
    "product_number"), "item_id": ("sku", "variant_id"), "item_ids": ("line_item_ids", "skus"),
    "new_item_ids": ("replacement_item_ids", "exchange_item_ids"), "payment_method_id":
    ("payment_source_id", "refund_to", "payment_token"), "zip": ("zip_code", "postal_code"),
    "reason": ("cancellation_reason", "cancel_reason"), "expression": ("formula", "equation"),
    "first_name": ("given_name", "fname"), "last_name": ("family_name", "surname"), "email":
    ("email_address", "e_mail"), "address1": ("street_address", "address_line_1"), "location":
    ("place_name", "geo_location"), "country": ("country_name", "nation"), "language": ("lang_code",
    "locale"), "date": ("on_date", "target_date"), "text": ("input_text", "sentence"), "start_date":
    ("date_from", "begin_date"), "time_period": ("timeframe", "date_range"), "library_name":
    ("package", "module_name"), "patient_id": ("mrn", "patient_number"),
}  # fmt: skip
"""By name: what the tools of others call the same."""

SIBLINGS: Table = {
    "pullNumber": ("issue_number", "pull_request_number"), "owner": ("organization", "item_owner"),
    "repo": ("item_repo",), "path": ("filename", "path_filter"), "branch": ("base", "from_branch"),
    "sha": ("ref",), "body": ("comment", "message"), "message": ("commit_title", "content"),
    "title": ("name", "commit_title"), "perPage": ("first",), "query": ("search", "filter"),
    "direction": ("order",), "order": ("direction",), "sort": ("orderBy",), "orderBy": ("sort",),
    "method": ("action",), "action": ("method",), "state": ("status",), "file_name": ("source",
    "name", "file_name1"), "source": ("file_name",), "folder": ("dir_name", "path"), "dir_name":
    ("folder",), "content": ("message", "comment_content", "body"), "comment_content": ("content",
    "message"), "receiver_id": ("user_id", "user_name"), "city": ("cityA", "location"), "pattern":
    ("name", "query"), "description": ("content", "resolution"), "item_ids": ("item_id",
    "new_item_ids"), "location": ("city", "region", "area"), "country": ("region", "location"),
    "start_date": ("date", "check_in_date"), "date": ("start_date", "time_period"), "text":
    ("message", "content"), "time_period": ("year", "duration"),
}  # fmt: skip
"""By name: what other tools of the same server have in its place."""

PAIRS: Mapping[tuple[str, str], Sequence[tuple[str, str]]] = {
    ("start_date", "end_date"): (("from", "to"), ("since", "until")), ("since", "until"):
    (("start", "end"), ("after", "before"), ("from", "to")), ("check_in_date", "check_out_date"):
    (("checkin", "checkout"), ("arrival", "departure")), ("source", "destination"): (("src", "dst"),
    ("old_path", "new_path"), ("from", "to")), ("file_name1", "file_name2"): (("file1", "file2"),
    ("left", "right"), ("old", "new")), ("cityA", "cityB"): (("origin", "destination"),
    ("from_city", "to_city")), ("owner", "repo"): (("org", "repository"), ("user", "project"),
    ("workspace", "repo_slug")), ("base", "head"): (("target_branch", "source_branch"),
    ("to", "from")), ("first_name", "last_name"): (("given_name", "family_name"),
    ("first", "last")), ("address1", "address2"): (("street", "unit"), ("line1", "line2")),
    ("item_ids", "new_item_ids"): (("old_item_ids", "replacement_item_ids"), ("old", "new")),
    ("file_name", "pattern"): (("path", "query"), ("file", "regex")), ("content", "file_name"):
    (("text", "path"),), ("title", "body"): (("summary", "description"), ("subject", "text")),
    ("perPage", "page"): (("page_size", "page_number"),), ("ticket_id", "resolution"):
    (("id", "solution"),), ("receiver_id", "message"): (("to", "text"), ("channel", "body")),
    ("city", "country"): (("town", "nation"),), ("title", "author"): (("book", "writer"),),
}  # fmt: skip
SAID_TOGETHER = (
    ("owner", "repo", 1, "/"), ("first_name", "last_name", 0, " "), ("city", "state", 0, ", "),
    ("address1", "address2", 0, ", "), ("start_date", "end_date", 0, " to "), ("since", "until", 0,
    ".."), ("city", "country", 0, ", "), ("location", "country", 0, ", "), ("state", "zip", 0, " "),
    ("file_name1", "file_name2", 0, " "), ("cityA", "cityB", 0, " to "), ("base", "head", 1, "..."),
    ("receiver_id", "message", 0, ": "), ("source", "destination", 0, " "),
)  # fmt: skip
"""Two names, under which of them both values are, and what is between."""

BRITISH = (("organiz", "organis"), ("color", "colour"), ("behavior", "behaviour"), ("optimiz",
           "optimis"), ("analyz", "analys"), ("center", "centre"), ("license", "licence"),
           ("favorite", "favourite"), ("civiliz", "civilis"), ("liter$", "litre"))  # fmt: skip
UNITS: Table = {
    "gallons?": ("{} gal", "{}gal"), "liters?": ("{} L", "{}l"), "miles": ("{} mi", "{}mi"),
    "kilometers": ("{} km", "{}km"), "meters": ("{} m", "{}m"), "minutes": ("{} min", "{}min"),
    "seconds": ("{} s", "{}s"), "hours": ("{} h", "{} hrs"), "years": ("{} yrs", "{}y"), "days":
    ("{} d", "{}d"), "celsius": ("{}\xb0C", "{} C"), "pixels": ("{}px", "{} px"), "hz": ("{} Hz",),
    "percentage": ("{}%", "{} %"), "usd": ("${}",),
}  # fmt: skip
"""By how a schema says a unit: a number with its sign."""
LISTED: Table = {
    "open": ("opened", "is:open"), "closed": ("is:closed",), "asc": ("oldest first", "ASCENDING"),
    "desc": ("newest first", "DESCENDING"), "start": ("turn_on", "IGNITION_ON"), "engage":
    ("lock",), "fuel": ("fuel_level", "fuelLevel"), "climate": ("hvac",), "blocked_by":
    ("is blocked by",), "+1": ("thumbsup", "\U0001f44d"), "-1": ("thumbsdown", "\U0001f44e"),
    "create": ("insert", "POST"), "update": ("PATCH",), "delete": ("DESTROY", "del"), "add":
    ("attach",), "get_files": ("list_files",), "get_labels": ("list_labels",), "get": ("fetch",
    "retrieve"), "get_sub_issues": ("list_sub_issues",), "get_parent": ("parent_issue",), "user":
    ("USER_ACCOUNT",), "updated_at": ("last_updated",), "merge": ("merge_commit",), "at_risk":
    ("yellow",), "on_track": ("green",), "pull_request": ("merge_request",), "no longer needed":
    ("not needed anymore", "NO_LONGER_NEEDED"), "ordered by mistake": ("accidental order",
    "ORDERED_BY_MISTAKE"),
}  # fmt: skip
"""By listed value in lower case."""
CODES = {
    "United States": "US USA", "Germany": "DE DEU", "China": "CN CHN", "Brazil": "BR", "India":
    "IN IND", "Japan": "JP JPN", "Mexico": "MX", "France": "FR", "Canada": "CA CAN", "Australia":
    "AU", "Italy": "IT", "Spain": "ES", "United Kingdom": "GB UK", "Russia": "RU", "English":
    "en en-US eng", "French": "fr fr-FR", "Portuguese": "pt pt-BR", "Spanish": "es", "German": "de",
}  # fmt: skip

EXTRAS: Mapping[str, Any] = {
    "include_metadata": True, "response_format": "concise", "return_json": True, "raw": False,
    "max_tokens": 4096, "temperature": 0, "cache": True, "detail_level": "full", "output_format":
    "json", "include_details": True,
}  # fmt: skip
"""Options without a wish in them: whatever the tool does, it does the same without."""
OF_HARNESSES: Mapping[str, Any] = {
    "task_progress": "- [x] look it up\n- [ ] answer", "toolAction": "Running the tool", "ctx": {},
    "waitForPreviousTools": True, "instructions": "As the user asked.", "_comment":
    "from the user's message", "//": "see above", "self": None, "run_manager": None,
    "security_risk": "low", "requestHeartbeat": False,
}  # fmt: skip
FILTERS: Mapping[str, Any] = {
    "created_after": "2026-01-01", "status_filter": "pending", "exclude_archived": True,
    "only_mine": True, "start_line": 10, "min_amount": 100, "partial": True, "notify_customer":
    False, "only_first_match": True, "on_account": "the second one",
}  # fmt: skip
"""Wishes that change what is meant."""
