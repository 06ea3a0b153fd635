"""GitHub's tools: real input schemas, gold calls that fit them, damaged and validated.

Nothing can be executed here, so a correction is right when it equals the gold call. Half of the
tools speak as MCP's Python SDK does (`jsonschema`), half as its TypeScript SDK does (ajv). The
latter refuse unknown names, as strict zod objects do, and their schemas say so; GitHub's own are
silent about them. Damages inside of objects and lists have kinds of their own, `nested ...`, and
name their place by a JSON Pointer. The schemas (MIT, github/github-mcp-server) are one of the data
sets of `bench/README.md`.
"""

import copy
import hashlib
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import relevance

from bench import data
from bench.quality.damage import damaged, damages_of
from bench.quality.sessions import GoldCall, Session
from bench.quality.trial import Damage, Json, Trial, Verdict
from retrieval.knowledge.values.scalars import same_value

FILE = "github_mcp.tools.jsonl.gz"
SESSIONS = 120
SERVER = "github"
NESTED_KINDS = ("nested missing required", "nested renamed key", "nested wrong type")

_NESTED = "nested "
_OPTIONAL = 0.3
"""Share of a tool's optional parameters that a call gives."""
_USUAL = 0.5
"""Share of the calls that are of the usual tools; the others are of any."""
_USUAL_TOOLS = (
    "add_issue_comment", "create_branch", "create_issue", "create_or_update_file",
    "create_pull_request", "get_commit", "get_file_contents", "issue_read", "issue_write",
    "list_commits", "list_issues", "list_pull_requests", "merge_pull_request", "projects_write",
    "pull_request_read", "push_files", "search_code", "search_issues", "set_issue_fields",
    "update_issue_assignees", "update_issue_labels",
)  # fmt: skip


def available() -> bool:
    """Whether the schemas are there."""
    return data.is_there(FILE)


@cache
def schemas() -> dict[str, Json]:
    """Input schemas by tool, as the servers list them."""
    return {
        tool: {**row["schema"], "additionalProperties": False} if _is_ajv(tool) else row["schema"]
        for tool, row in _listed().items()
    }


class GitHub:
    """120 sessions of 4 to 8 calls each, made from the schemas and checked against them."""

    def sessions(self) -> list[Session]:
        """The sessions, the same each time.

        Raises:
            jsonschema.ValidationError: a call that was made does not fit its schema.
        """
        return [_session(f"github-{number:03}") for number in range(SESSIONS)]

    def schema_of(self, call: GoldCall) -> Json | None:
        """The tool's input schema, as its server lists it."""
        return schemas()[call.tool]

    async def trials_of(
        self, call: GoldCall, others: Sequence[Json], rng: random.Random
    ) -> list[Trial]:
        """The damages that the schema refuses."""
        damages = _damages_of(call, others, rng)
        return [trial for each in damages if (trial := trial_of(call, each))]


def trial_of(call: GoldCall, damage: Damage) -> Trial | None:
    """The trial of a damaged call; None where it is still valid, or the damage does not apply."""
    sent = _damaged(call.parameters, damage)
    error = None if sent is None else error_of(call.tool, sent)
    if sent is None or error is None:
        return None
    return Trial(
        session=call.session, tool=call.tool, server=call.server, damaged=sent,
        gold=call.parameters, error=error, context=call.context, schema=schemas()[call.tool],
        damage=damage, judge=partial(judge, call),
    )  # fmt: skip


async def judge(call: GoldCall, parameters: Json) -> Verdict:
    """Whether the parameters are those of the gold call, or at least valid."""
    if same_value(parameters, call.parameters):
        return "right"
    return "fails" if error_of(call.tool, parameters) else "wrong success"


def error_of(tool: str, parameters: Json) -> Json | None:
    """What the tool's server says about the parameters; None where they are valid."""
    errors = sorted(_validator(tool).iter_errors(parameters), key=relevance, reverse=True)
    if not errors:
        return None
    if not _is_ajv(tool):
        said = "\n".join(error.message for error in errors)
        return {"type": "ToolError", "message": f"Input validation error: {said}"}
    errors.sort(key=lambda error: error.validator != "type")  # ajv looks at types first
    said = ", ".join(dict.fromkeys(line for error in errors for line in ajv_messages(error)))
    message = f"MCP error -32602: Invalid arguments for tool {tool}: {said}"
    return {"type": "McpError", "message": message, "code": "-32602"}


def ajv_messages(error: ValidationError) -> Iterator[str]:
    """The error in the words of ajv 8 (`allErrors`, `errorsText`), where `data` is the call."""
    for below in error.context or ():
        yield from ajv_messages(below)
    place = "/".join(["data", *map(str, error.absolute_path)])
    rule = str(error.validator)
    wanted: Any = error.validator_value
    found: Any = error.instance
    if rule == "required":
        names = [name for name in wanted if name not in found]
        yield from (f"{place} must have required property '{name}'" for name in names)
    elif rule == "type":
        yield f"{place} must be {','.join([wanted] if isinstance(wanted, str) else wanted)}"
    else:
        yield f"{place} must {_AJV_WORDS[rule].format(wanted)}"


_AJV_WORDS = {
    "enum": "be equal to one of the allowed values", "minimum": "be >= {}", "maximum": "be <= {}",
    "minLength": "NOT have fewer than {} characters",
    "maxLength": "NOT have more than {} characters",
    "minItems": "NOT have fewer than {} items", "maxItems": "NOT have more than {} items",
    "oneOf": "match exactly one schema in oneOf", "anyOf": "match a schema in anyOf",
    "additionalProperties": "NOT have additional properties",
}  # fmt: skip


@cache
def _listed() -> dict[str, Json]:
    return {row["tool"]: row for row in data.rows(FILE)}


@cache
def _validator(tool: str) -> Draft202012Validator:
    return Draft202012Validator(schemas()[tool])


def _is_ajv(tool: str) -> bool:
    return hashlib.sha256(tool.encode()).digest()[0] % 2 == 0


def _damages_of(call: GoldCall, others: Sequence[Json], rng: random.Random) -> Iterator[Damage]:
    yield from damages_of(call.parameters, schemas()[call.tool], others, rng)
    yield from _nested_damages_of(call, rng)


def _nested_damages_of(call: GoldCall, rng: random.Random) -> Iterator[Damage]:
    """One damage of each nested kind that the schema refuses, where there is one."""
    places = list(_objects(call.parameters))[1:]
    rng.shuffle(places)
    left = set(NESTED_KINDS)
    for pointer, found in places:
        for each in damages_of(found, None, (), rng):
            damage = replace(
                each, kind=_NESTED + each.kind, parameter=f"{pointer}/{each.parameter}"
            )
            if damage.kind in left and trial_of(call, damage):
                left.remove(damage.kind)
                yield damage


def _objects(value: Any, pointer: str = "") -> Iterator[tuple[str, Json]]:
    """All objects inside of the value with their JSON Pointers, outer ones first."""
    if isinstance(value, dict):
        yield pointer, value
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list):
            yield from _objects(item, f"{pointer}/{key}")


def _damaged(parameters: Json, damage: Damage) -> Json | None:
    if not damage.kind.startswith(_NESTED):
        return damaged(parameters, damage)
    *above, name = damage.parameter.split("/")[1:]
    *outer, last = above
    sent = copy.deepcopy(parameters)
    holder = _at(sent, outer)
    key: Any = int(last) if isinstance(holder, list) else last
    plain = replace(damage, kind=damage.kind.removeprefix(_NESTED), parameter=name)
    changed = damaged(holder[key], plain)
    if changed is None:
        return None
    holder[key] = changed
    return sent


def _at(value: Any, tokens: Sequence[str]) -> Any:
    for token in tokens:
        value = value[int(token) if isinstance(value, list) else token]
    return value


# Gold calls


@dataclass(frozen=True, slots=True)
class _Scene:
    """What a session is about: draws the values of its calls."""

    rng: random.Random
    owner: str
    repo: str
    numbers: tuple[int, ...]

    def parameters(self, tool: str) -> Json:
        """Parameters that fit the tool's schema: all required ones, some of the others."""
        schema = schemas()[tool]
        found: Json = self._object(schema)
        Draft202012Validator(schema).validate(found)
        return found

    def _value(self, name: str, schema: Json) -> Any:
        """A value for a parameter of this name that its schema allows."""
        if kept := schema.get("oneOf") or schema.get("anyOf"):
            branches = [each for each in kept if each.get("type") != "null"]
            return self._value(name, self.rng.choice(branches))
        if "enum" in schema:
            return self.rng.choice(schema["enum"])
        kind = schema.get("type", "string")
        kind = self.rng.choice(kind) if isinstance(kind, list) else kind
        if kind == "object":
            return self._object(schema) or {"environment": "staging"}
        if kind == "array":
            items = [self._value(name, schema["items"]) for _ in range(self.rng.randint(1, 3))]
            distinct = {json.dumps(item, sort_keys=True): item for item in items}
            return list(distinct.values())
        if kind == "boolean":
            return self.rng.random() < 0.5
        return self._number(name) if kind in ("number", "integer") else self._text(name)

    def _object(self, schema: Json) -> Json:
        required = schema.get("required", ())
        return {
            name: self._value(name, part)
            for name, part in schema.get("properties", {}).items()
            if name in required or self.rng.random() < _OPTIONAL
        }

    def _number(self, name: str) -> int:
        if name in ("perPage", "per_page"):
            return self.rng.choice((10, 20, 25, 30, 50, 100))
        if name in ("page", "milestone", "duration", "iteration_duration"):
            return self.rng.randint(1, 14)
        if name in ("line", "startLine", "start_line", "end_line", "tail_lines"):
            return self.rng.randint(5, 400)
        if name.lower().endswith(("id", "_value")):
            return self.rng.randint(10_000, 99_999_999)
        return self.rng.choice(self.numbers)

    def _text(self, name: str) -> str:
        if name in ("owner", "org", "organization", "item_owner", "related_owner"):
            return self.owner
        if name in ("repo", "item_repo", "related_repo"):
            return self.repo
        made = _MADE.get(name)
        if made is not None:
            return made(self.rng)
        return self.rng.choice(_TEXTS.get(name, _ANY_TEXTS))

    def context(self, tool: str, parameters: Json) -> str:
        """The call as its user would ask for it, with the values that a user cares about."""
        words = _listed()[tool]["annotations"]["title"]
        told = [
            form.format(", ".join(map(str, value)) if isinstance(value, list) else value)
            for name, form in _TOLD.items()
            if isinstance(value := parameters.get(name), str | int | list)
            and not (isinstance(value, list) and any(isinstance(item, dict) for item in value))
        ]
        for pointer, item in list(_objects(parameters))[1:]:
            given = [
                f"{name.replace('_', ' ')} {value}"
                for name, value in item.items()
                if not isinstance(value, bool | dict | list)
            ]
            told.append(f"with {' and '.join(given)} in the {pointer.split('/')[1]}")
        place = f"in {self.owner}/{self.repo}" if "repo" in parameters else ""
        return " ".join(filter(None, [words, place, *told]))


def _session(name: str) -> Session:
    rng = random.Random(name)
    owner = rng.choice(sorted(_REPOSITORIES))
    numbers = tuple(rng.randint(2, 1900) for _ in range(4))
    scene = _Scene(rng, owner, rng.choice(_REPOSITORIES[owner]), numbers)
    usual = [tool for tool in _USUAL_TOOLS if tool in schemas()]
    calls = []
    for sequence in range(rng.randint(4, 8)):
        tool = rng.choice(usual if rng.random() < _USUAL else sorted(schemas()))
        parameters = scene.parameters(tool)
        context = scene.context(tool, parameters) if rng.random() < 0.5 else ""
        calls.append(GoldCall(name, sequence, tool, SERVER, parameters, context))
    return Session(name, tuple(calls))


_TOLD = {
    "title": "titled '{}'", "name": "named '{}'", "query": "for '{}'", "path": "at {}",
    "branch": "on branch {}", "head": "from branch {}", "base": "into {}", "ref": "at ref {}",
    "tag": "for tag {}", "sha": "at commit {}", "issue_number": "for issue #{}",
    "pullNumber": "for pull request #{}", "discussionNumber": "for discussion #{}",
    "alertNumber": "for alert {}", "sub_issue_id": "with the sub-issue {}", "body": "saying '{}'",
    "message": "with the message '{}'", "content": "with the content '{}'",
    "state": "with state {}",
    "method": "to {}", "merge_method": "by {}", "labels": "labelled {}", "assignees": "for {}",
    "reviewers": "from {}", "username": "for {}", "issue_type": "as a {}", "since": "since {}",
    "team_slug": "of the team {}", "gist_id": "of gist {}", "filename": "in {}",
    "perPage": "showing {} each", "page": "page {}", "sort": "sorted by {}",
    "workflow_id": "with {}", "project_number": "in project {}",
}  # fmt: skip
"""How a user says a parameter's value. What is not here (flags, cursors, ids) stays unsaid."""

_REPOSITORIES = {
    "octo-org": ("hello", "docs-site", "billing-api"), "rivet-labs": ("parser", "rivet-cli"),
    "acme": ("web", "mobile-app", "infra"), "Northwind": ("Orders", "data-pipeline"),
    "mkarlsson": ("dotfiles", "chess-engine"), "OpenHarbor": ("harbor-ui", "Gateway"),
}  # fmt: skip
PLACES = (*_REPOSITORIES, *(repo for repos in _REPOSITORIES.values() for repo in repos))
"""The owners and repositories that there are."""
_PEOPLE = ("octocat", "mkarlsson", "jdoe", "AnaSilva", "li-wei", "sam-the-dev", "PriyaN")
_BRANCHES = ("main", "develop", "feature/login", "fix/null-pointer", "release/2.4", "docs-update")
_FIELDS = ("Status", "Priority", "Sprint", "Estimate", "Team")
_BODIES = (
    "The page stays blank after signing in.", "Looks good, one question about the error handling.",
    "Steps to reproduce: open the settings and press save.", "Thanks, fixed in the last commit.",
    "This adds retries with backoff to the client.", "Please rebase on main.",
)  # fmt: skip
_MESSAGES = (
    "Fix the crash on an empty list", "Update dependencies", "Add the login form",
    "Remove dead code", "Bump version to 2.4.1", "Correct the README",
)  # fmt: skip
_TITLES = (
    "Crash on start with an empty config", "Add dark mode", "Timeout while uploading large files",
    "Document the release process", "Search ignores accents", "Flaky test in CI",
)  # fmt: skip
_ANY_TEXTS = ("alpha", "nightly", "backend", "customer-report", "weekly")

_TEXTS: dict[str, Sequence[str]] = {
    "title": _TITLES, "commit_title": _TITLES, "body": _BODIES, "description": _BODIES,
    "custom_instructions": _BODIES, "rationale": _BODIES, "message": _MESSAGES,
    "commit_message": _MESSAGES, "branch": _BRANCHES, "head": _BRANCHES, "from_branch": _BRANCHES,
    "base": ("main", "develop"), "base_ref": ("main", "develop"), "ref": _BRANCHES,
    "assignees": _PEOPLE, "reviewers": _PEOPLE, "login": _PEOPLE, "user": _PEOPLE,
    "username": _PEOPLE, "author": _PEOPLE, "actor": _PEOPLE,
    "labels": ("bug", "enhancement", "documentation", "good first issue", "security"),
    "name": ("bug", "triage", "needs-review", "Roadmap"), "new_name": ("defect", "needs-triage"),
    "path": ("README.md", "src/app.py", "docs/guide.md", "package.json", "src/utils/dates.ts"),
    "path_filter": ("src/", "docs/"), "filename": ("notes.md", "snippet.py", "config.yaml"),
    "content": ("# Hello\n", "print('hello')\n", "name: ci\non: push\n", "Some notes\n"),
    "query": (
        "is:open label:bug", "parse_date language:python", "stars:>500 topic:cli", "memory leak",
        "author:octocat fix",
    ),
    "tag": ("v1.0.0", "v1.2.3", "v2.4.0-rc.1"), "color": ("d73a4a", "0e8a16", "fbca04"),
    "field_name": _FIELDS, "field_names": _FIELDS, "fields": _FIELDS, "visible_fields": _FIELDS,
    "visible_field_names": _FIELDS, "value": ("P1", "In progress", "2026-03-01"),
    "text_value": ("waiting for design", "P1"), "field_option_name": ("High", "Done"),
    "issue_type": ("Bug", "Task", "Feature"), "type": ("Bug", "Task"), "method": ("get_project",),
    "team_slug": ("platform", "web-frontend"), "workflow_id": ("ci.yml", "release.yml"),
    "cwes": ("CWE-79", "CWE-89", "CWE-502"), "cveId": ("CVE-2024-3094", "CVE-2021-44228"),
    "ghsaId": ("GHSA-jfh8-c2jp-5v3q", "GHSA-7rjr-3q55-vv33"), "affects": ("lodash@4.17.20",),
    "sort": ("created", "updated"), "category": ("DIC_kwDOA1b2c3", "DIC_kwDOQ9x8y7"),
    "tool_name": ("CodeQL", "Semgrep"), "status": ("completed", "queued"),
    "filter": ("is:open", "assignee:@me"), "view_id": ("PVTV_1aB", "PVTV_2cD"),
}  # fmt: skip


def _digits(rng: random.Random) -> str:
    return str(rng.randint(10_000_000, 9_999_999_999))


def _hash(rng: random.Random) -> str:
    return f"{rng.getrandbits(160):040x}"


def _node(rng: random.Random) -> str:
    return f"PRRT_kwDO{rng.getrandbits(60):012X}"


def _moment(rng: random.Random) -> str:
    return f"{_day(rng)}T{rng.randint(0, 23):02}:00:00Z"


def _day(rng: random.Random) -> str:
    return f"2026-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def _cursor(rng: random.Random) -> str:
    return f"Y3Vyc29yOnYyOp{rng.getrandbits(40):X}=="


_MADE: dict[str, Callable[[random.Random], str]] = {
    name: made
    for made, names in (
        (_digits, ("resource_id", "notificationID", "field_id", "single_select_option_id")),
        (_hash, ("sha", "commitID", "expectedHeadSha", "tree_sha", "gist_id")),
        (_node, ("threadID", "threadId", "commentNodeID", "node_id", "status_update_id")),
        (_moment, ("since", "until", "before", "lastReadAt")),
        (_day, ("start_date", "target_date", "date_value", "published", "updated", "modified")),
        (_cursor, ("after",)),
    )
    for name in names
}
