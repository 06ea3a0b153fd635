"""Redaction: nothing secret gets out, nothing else is lost, and twice is like once."""

import string
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from aftercall.json_values import JsonValue
from aftercall.models import Execution, ExecutionError, FailedCall, ToolSpec
from aftercall.redaction import REDACTED, Redactor, is_redacted
from aftercall.secret_names import name_kind
from tests.growth import growth
from tests.sdk.strategies import executions, failed_calls, json_values, texts

SECRET_NAMES = [
    "password", "Password", "user_password", "dbPassword", "dbpassword", "passwd", "passphrase",
    "token", "accessToken", "access_token", "accesstoken", "page_access_token", "refreshToken",
    "start_session_token", "tokens_secret", "auth", "Authorization", "X-Auth-Token", "apiKey",
    "api-key", "API_KEY", "APIKey", "x-api-key", "apikeys", "openaiApiKey", "client_secret",
    "clientSecrets", "AWS_SECRET_ACCESS_KEY", "private key", "cookie", "Set-Cookie", "credentials",
    "csrfToken", "otp", "card_number", "cvv", "ssn", "jwt", "max_tokens_password", "bearer",
    "connectionString",
]  # fmt: skip
HARMLESS_NAMES = [
    "query", "key", "keys", "sort_key", "primaryKey", "tokens", "max_tokens", "maxTokens",
    "max_output_tokens", "maxtokens", "total_tokens_used", "prompt_tokens", "tokenizer",
    "next_page_token", "nextPageToken", "pageToken", "continuationToken", "stop_token",
    "token_count", "token_type", "author", "authors", "authority", "secretary", "passenger",
    "compass", "bypass", "signature", "credit_card_7815826", "", "_", "токенизация",
]  # fmt: skip

# Put together here, or scanners of repositories would take them for real ones.
SECRET_TEXTS = {
    name: "".join(parts)
    for name, parts in {
        "PEM": ("-----BEGIN RSA PRIV", "ATE KEY-----\nMIIEpAIB\n-----END RSA PRIV", "ATE KEY-----"),
        "PEM cut off": ("-----BEGIN PRIV", "ATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC"),
        "JWT": (
            "eyJhbGciOiJIUzI1NiJ9.",
            "eyJzdWIiOiIxMjM0NTY3ODkwIn0.",
            "dozjgNryP4J3jVmNHl0w5N_Xg",
        ),
        "OpenAI": ("sk-", "proj-abcdefghijklmnop1234567890"),
        "Stripe": ("sk_", "live_abcdefghijklmnop12345678"),
        "GitHub": ("ghp", "_abcdefghijklmnopqrstuvwxyz0123456789"),
        "GitHub fine": ("github", "_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz"),
        "GitLab": ("glpat", "-abcdefghijklmnopqrst"),
        "Slack": ("xoxb", "-123456789012-abcdefghijkl"),
        "AWS": ("AKIA", "IOSFODNN7EXAMPLE"),
        "Google": ("AIza", "SyA1234567890abcdefghijklmnopqrstuv"),
        "npm": ("npm", "_abcdefghijklmnopqrstuvwxyz0123456789"),
        "PyPI": ("pypi", "-AgEIcHlwaS5vcmcCJDU2abcdefghijklmnop"),
        "Hugging Face": ("hf", "_abcdefghijklmnopqrstuvwxyzABCDEFGH"),
        "card": ("4111 1111 1111 1111",),
        "card with dashes": ("5500-0000-0000-0004",),
        "card in one": ("4111111111111111",),
        "American Express": ("3782 822463 10005",),
    }.items()
}

SECRET_IN_TEXT = {
    "assignment": "password={}", "assignment of part": "access_token={}&user=me",
    "shell": "AWS_SECRET_ACCESS_KEY={} aws s3 ls", "YAML": "secret: {}\nother: 1",
    "JSON": '{{"apiKey": "{}", "query": "x"}}', "JSON in JSON": '{{\\"password\\": \\"{}\\"}}',
    "Python": "{{'client_secret': '{}'}}", "URL": "https://me:{}@example.org/path",
    "URL without user": "redis://:{}@cache:6379/0", "bearer header": "Authorization: Bearer {}",
    "other header": "authorization: Token {}", "header in JSON": '{{"Authorization": "Basic {}"}}',
    "bearer alone": "used bearer {} for it", "cookie header": "Cookie: theme=dark; session={}",
}  # fmt: skip

MASKED_SHAPES = {
    "": "", "a": "1-8", "a" * 8: "1-8", "a" * 9: "9-16", "a" * 32: "17-32", "a" * 64: "33-64",
    "a" * 256: "65-256", "a" * 257: "257+",
}  # fmt: skip

planted = st.text(string.ascii_letters + string.digits, min_size=12, max_size=40).map(
    lambda text: f"S{text}9x"
)
redactors = st.sampled_from(
    [
        Redactor(),
        Redactor.create(extra_names=["patientId"]),
        Redactor.create(allowlists={"rag_query": ["query", "password"]}),
    ]
)


@st.composite
def secret_laden_texts(draw: st.DrawFn) -> str:
    """Text made of secrets, of their near misses and of masks, in any order."""
    fragments = st.one_of(
        st.sampled_from(list(SECRET_TEXTS.values())),
        st.builds(str.format, st.sampled_from(list(SECRET_IN_TEXT.values())), planted),
        st.sampled_from(
            [
                "token=", "password: ", "bearer ", '"', "'", "\\", "://", "@", ":", "eyJ", "sk-",
                "4111", "1111", "-", "Cookie: ", "[redacted:string:1-8]", "[hashed:integer:0a1b]",
                "[redacted:", "]", "-----BEGIN ", "PRIVATE KEY-----", " ", "\n", "Authorization:",
            ]
        ),
        texts,
    )  # fmt: skip
    return "".join(draw(st.lists(fragments, max_size=8)))


@given(redactors, executions | failed_calls)
def test_redacting_twice_is_like_once(redactor: Redactor, call: Execution | FailedCall) -> None:
    """The service may mask again what the SDK has masked."""
    once = redactor.call(call)
    assert redactor.call(once) == once


@given(secret_laden_texts())
@example("token: Bearer abcdefgh1234")
@example("://a:b@4111 1111 1111 1111")
def test_redacting_text_twice_is_like_once(text: str) -> None:
    """Whatever secrets, near misses and masks meet in a text."""
    once = Redactor().text(text)
    assert Redactor().text(once) == once


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_secret_names_are_known(name: str) -> None:
    """In any way of writing them."""
    assert name_kind(name) in ("secret", "likely")
    assert Redactor().value({name: "swordfish"}) == {name: "[redacted:string:9-16]"}


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_harmless_names_are_left_alone(name: str) -> None:
    """Names that only sound like secrets keep their values, for they are needed to learn from."""
    assert name_kind(name) != "secret"
    assert Redactor().value({name: "swordfish"}) == {name: "swordfish"}


@given(secret=st.sampled_from(list(SECRET_TEXTS.values())), before=texts, after=texts)
@settings(max_examples=400)
def test_secrets_are_known_by_their_form(secret: str, before: str, after: str) -> None:
    """A secret that stands by itself in a text is masked; the text around it stays."""
    masked = Redactor().text(f"{before} {secret} {after}")
    assert secret not in masked
    assert is_redacted(masked)
    assert Redactor().text(f"{before} ") in masked


@given(template=st.sampled_from(list(SECRET_IN_TEXT.values())), secret=planted)
@settings(max_examples=400)
def test_secrets_are_known_by_what_stands_before_them(template: str, secret: str) -> None:
    """Assignments, headers, URLs and embedded JSON give their secrets away."""
    masked = Redactor().text(template.format(secret))
    assert secret not in masked
    for word in ("query", "other", "example.org", "aws s3 ls", "cache:6379"):
        assert (word in masked) == (word in template)


@given(secret=planted, name=st.sampled_from(SECRET_NAMES), call=executions | failed_calls)
def test_a_secret_parameter_does_not_leak_from_anywhere(
    secret: str, name: str, call: Execution | FailedCall
) -> None:
    """A tool that repeats the secret in its error, and a caller in the context, leak nothing."""
    assume(secret not in call.model_dump_json())
    fields = call.model_dump() | {
        "parameters": {**call.parameters, name: {"deep": [secret]}, "note": f"uses {secret}"},
        "context": f"trying {secret} now",
        "inputSchema": {"properties": {name: {"type": "string", "default": secret}}},
    }
    if call.error is None:
        fields["result"] = {"echo": [f"you sent {secret}"]}
    else:
        fields["error"] = {
            "message": f"'{secret}' is not valid", "code": secret, "stack": f"call({secret})",
            "details": {"input": secret},
        }  # fmt: skip
    masked = Redactor().call(type(call).model_validate(fields))
    assert secret not in masked.model_dump_json()
    assert masked.tool_name == call.tool_name
    assert masked.input_schema["properties"][name]["type"] == "string"


@given(secret=planted, template=st.sampled_from(list(SECRET_IN_TEXT.values())))
def test_a_secret_in_any_text_of_a_call_does_not_leak(secret: str, template: str) -> None:
    """Parameters, keys, results, context, error and a session id that is a secret itself."""
    text = template.format(secret)
    call = FailedCall.model_validate(
        {
            "agent": "a", "toolName": "t", "context": text, "result": [text], "sessionId": text,
            "parameters": {"text": text, text: 1, "list": [{"inner": text}]},
            "error": {"message": text, "stack": text, "code": text, "details": {"said": text}},
        }
    )  # fmt: skip
    masked = Redactor().call(call)
    assert secret not in masked.model_dump_json()
    assert REDACTED.fullmatch(masked.session_id or "")


@given(json_values)
def test_everything_below_a_secret_name_is_masked(value: JsonValue) -> None:
    """No string and no number below it survives, only the shape does."""

    def leaves(inner: JsonValue) -> list[JsonValue]:
        if isinstance(inner, dict):
            return [leaf for item in inner.values() for leaf in leaves(item)]
        if isinstance(inner, list):
            return [leaf for item in inner for leaf in leaves(item)]
        return [inner]

    for leaf in leaves(Redactor().value({"secret": value})):
        assert leaf in (None, True, False, "") or REDACTED.fullmatch(str(leaf))


@pytest.mark.parametrize(("text", "length_class"), MASKED_SHAPES.items())
def test_masks_tell_type_and_length_class(text: str, length_class: str) -> None:
    """So that shapes can be learned from what is masked."""
    expected = f"[redacted:string:{length_class}]" if text else ""
    assert Redactor().value({"password": text}) == {"password": expected}
    assert Redactor().value({"pin_code": 1234}) == {"pin_code": "[redacted:number:1-8]"}


@pytest.mark.parametrize(
    "text",
    [
        "topK must be <= 10", "password: must be at least 8 characters", "password: Field required",
        "Unexpected token: '}' at position 3", "Unexpected token } in JSON",
        "basic authentication required", "max_tokens=4096 and next_page_token=abcdef",
        "the token expired", "order 1234567890123 shipped at 1771597800000",
        "see https://example.org/a:b?c=d@e", "task-abcdefghijklmnopqrstuvwxyz",
        "commit 53aa51172d142c89d9012cce15ae4d6cc0ca6895", "0000 0000 0000 0000",
        "rows 4111 1111 1111 1112 and 12 15 18 22 30 31 45 50 60", "took 4111111111111111.5 ms",
        "id 0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d",
        "id bdb8170b-cc71-4861-937a-a6d90c5f6b12",  # no account's number stands in the middle
    ],
)  # fmt: skip
def test_plain_messages_stay_as_they_are(text: str) -> None:
    """Validators' sentences, counts, cursors, hashes and ids are what is learned from."""
    assert Redactor().text(text) == text


@pytest.mark.parametrize(
    "place",
    ["CreateShipment.recipient.country", "CreateShipment.Parcels[1].WeightGrams",
     "RegisterWebhook.retry_policy.MaxAttempts"],
)  # fmt: skip
def test_a_path_of_names_behind_a_key_is_no_secret(place: str) -> None:
    """Go's validator prints the place of a wrong value so, and nothing can be repaired without."""
    said = f"Key: '{place}' Error:Field validation for 'X' failed on the 'required' tag"
    assert Redactor().text(said) == said


@pytest.mark.parametrize(
    "secret",
    ["api.v1.Xk29dLq8ZpQ", "XkQwPzLmNbVcRtYu.HgFdSaQwErTy", "aBcDeFgHiJkLmNoP.qRsTuVwX",
     "a1b2c3d4.e5f6g7h8", "CreateShipment.4eC39HqLyjWDarjtT1zdp7dc"],
)  # fmt: skip
def test_a_random_text_with_dots_behind_a_key_stays_masked(secret: str) -> None:
    """Digits, or letters that make no words, are of no name."""
    assert secret not in Redactor().text(f"Key: '{secret}' Error:refused")
    assert secret not in Redactor().text(f"api_key: '{secret}'")


def test_a_card_is_found_among_its_other_numbers() -> None:
    """Expiry dates and check digits behind it do not hide it, nor does a full stop."""
    for text in (
        "4111111111111111 12/27 123",
        "card: 4111 1111 1111 1111 123",
        "4111111111111111.",
    ):
        assert "1111" not in Redactor().text(text)


def test_with_an_allowlist_the_rest_is_kept_as_type_and_hash() -> None:
    """Equal values have equal hashes, other tools are untouched, and no echo gives a value away."""
    redactor = Redactor.create(allowlists={"mail": ["subject"]})
    call = FailedCall.model_validate(
        {
            "agent": "a", "toolName": "mail",
            "parameters": {"subject": "hello", "to": "ann@example.org", "copies": 2, "cc": None},
            "error": {"message": "no mailbox ann@example.org"},
        }
    )  # fmt: skip
    masked = redactor.call(call)
    assert list(masked.parameters) == ["subject", "to", "copies", "cc"]
    assert masked.parameters["subject"] == "hello"
    assert str(masked.parameters["to"]).startswith("[hashed:string:")
    assert str(masked.parameters["copies"]).startswith("[hashed:integer:")
    assert str(masked.parameters["cc"]).startswith("[hashed:null:")
    assert masked.error.message == "no mailbox [redacted:string:9-16]"
    again = redactor.parameters("mail", {"to": "ann@example.org"})
    assert again["to"] == masked.parameters["to"]
    assert redactor.parameters("other", {"to": "x"}) == {"to": "x"}


def test_what_an_allowlist_keeps_is_still_searched_for_secrets() -> None:
    """Kept means kept from hashing, not from masking."""
    redactor = Redactor.create(allowlists={"t": ["password", "text"]})
    parameters = redactor.parameters("t", {"password": "swordfish", "text": "token=abcd1234"})
    assert parameters == {
        "password": "[redacted:string:9-16]",
        "text": "token=[redacted:string:1-8]",
    }


@pytest.mark.parametrize("name", ["patientId", "patient_id", "PATIENT-ID"])
def test_further_names_are_masked_in_any_writing(name: str) -> None:
    """`extra_names` come from settings, parameters from anywhere."""
    assert Redactor.create(extra_names=["patientId"]).value({name: "p-1"}) == {
        name: "[redacted:string:1-8]"
    }


def test_sessions_stay_apart_when_their_ids_are_secrets() -> None:
    """Two sessions with bearer tokens as ids are two sessions still; a plain id stays."""

    def session(text: str) -> str | None:
        call = FailedCall.model_validate(
            {"agent": "a", "toolName": "t", "parameters": {}, "sessionId": text}
            | {"error": {"message": "m"}}
        )
        return Redactor().call(call).session_id

    assert session("s-1") == "s-1"
    one, two = session("token=abcd1234"), session("token=abcd5678")
    assert one != two
    assert is_redacted(one)


@pytest.mark.parametrize(
    "unit",
    ["eyJ-", "eyJAAAAAAAAAAAA.", "token ", "token=", "password=\\", "-----BEGIN ", "://a:b", "1 ",
     "bearer ", "a-", "cookie: ", "token=bearer ", "\\", "[redacted:string:1-8]token=abcd "],
)  # fmt: skip
def test_long_hostile_texts_are_done_in_linear_time(unit: str) -> None:
    """Eight times as much of what patterns stumble over takes nowhere near 64 times as long."""
    redactor = Redactor()
    work = growth(lambda size: redactor.text("token" + unit * (size // len(unit))), 8_000, times=8)
    assert work < 32


def test_masked_values_are_recognised_at_any_depth() -> None:
    """What holds a mask is never proposed."""
    deep: JsonValue = {"a": [{"b": "[redacted:number:1-8]"}]}
    for value in ("[redacted:string:1-8]", "a [hashed:integer:00ff] b", deep):
        assert is_redacted(value)
    for plain in ("redacted", "[redacted]", 1, None, True, {"redacted": ["x"]}):
        assert not is_redacted(plain)  # type: ignore[arg-type]  # JSON all the same


SECRET = SECRET_TEXTS["GitHub"]

TOOL = ToolSpec(
    name="login",
    description=f"Example: login with {SECRET}, password=hunter2hunter2",
    input_schema={
        "type": "object",
        "required": ["password", "default"],
        "properties": {
            "password": {"type": "string", "default": "hunter2hunter2", "minLength": 3},
            "default": {"type": "string", "description": f"such as {SECRET}"},
            "query": {"type": "string", "default": "cats", "examples": ["dogs", SECRET]},
            "login": {"$ref": "#/$defs/Login", "default": {"user": "me", "token": "abc-123-def"}},
            "credentials": {
                "type": "object",
                "properties": {"account": {"type": "string", "examples": ["acc-998877"]}},
            },
        },
        "$defs": {"Login": {"type": "object", "enum": [SECRET, "none"]}},
    },
    implementation={
        "code": f"HEADERS = {{'Authorization': 'Bearer {SECRET}'}}",
        "env": {"API_KEY": "0123456789abcdef", "REGION": "eu"},
    },
)


def test_tools_are_registered_without_secrets() -> None:
    """In the description by form; in the implementation and in a schema's values by name too."""
    masked = Redactor().tool(TOOL)
    properties: Any = (masked.input_schema or {})["properties"]
    for secret in (SECRET, "hunter2", "abc-123-def", "acc-998877", "0123456789abcdef"):
        assert secret not in masked.model_dump_json()
    assert masked.implementation["env"]["REGION"] == "eu"
    assert properties["query"]["default"] == "cats"
    assert properties["login"]["default"]["user"] == "me"


def test_a_schema_keeps_its_keys_and_what_it_demands() -> None:
    """A property named `password` stays a property, and what was valid stays valid."""
    masked = Redactor().tool(TOOL).input_schema or {}

    def keys(value: JsonValue) -> object:
        if isinstance(value, dict):
            return {name: keys(item) for name, item in value.items()}
        return [keys(item) for item in value] if isinstance(value, list) else None

    assert keys(masked) == keys(TOOL.input_schema)
    assert masked["required"] == ["password", "default"]
    password = masked["properties"]["password"]
    assert (password["type"], password["minLength"]) == ("string", 3)


def test_a_schema_looks_the_same_in_a_tool_and_in_a_call() -> None:
    """Or the knowledge of a call would not be found under the registered schema's hash."""
    call = FailedCall(
        agent="a", tool_name="login", parameters={}, error=ExecutionError(message="no"),
        input_schema=TOOL.input_schema,
    )  # fmt: skip
    assert Redactor().call(call).input_schema == Redactor().tool(TOOL).input_schema
