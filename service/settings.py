"""Settings: one class per concern, plain data once made.

Making one of these reads no environment; `service.environment.read_settings` does, and only
entry points call it. A variable is `AFTERCALL_`, the section and the field:
`AFTERCALL_SERVER_PORT` is `settings.server.port`.
"""

import ipaddress
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import NoDecode

_MIB = 1024 * 1024


def is_loopback(host: str) -> bool:
    """Return whether an address to listen on is reachable from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _list_names(value: object) -> object:
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


def _json_object(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError('must be a JSON object, such as {"send_mail": ["subject"]}') from None


def _base_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of a port that is no number, or half an IPv6 address
        is_one = False
    # It is put into links as it is, so no character may end a link.
    plain = value.isascii() and value.isprintable() and not set(value) & set(" \"'<>()\\`")
    if not is_one or not plain or parts.query or parts.fragment or parts.username:
        raise ValueError(
            "must be an http or https address without query and user, such as "
            "https://aftercall.example.org"
        )
    return value.rstrip("/")


def _trace_url(value: str) -> str:
    host = urlsplit(value).netloc if value.startswith(("http://", "https://")) else ""
    if "{trace_id}" not in value or not host or not value.isascii() or not value.isprintable():
        raise ValueError(
            "must be an http or https address with {trace_id} in it, such as "
            "https://jaeger.example.org/trace/{trace_id}"
        )
    return value


BaseUrl = Annotated[str, AfterValidator(_base_url)]
"""An http or https address, without a slash at its end."""
TraceUrl = Annotated[str, AfterValidator(_trace_url)]
"""The same with a place for the id of a trace."""
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_list_names)]
"""Several names; comma-separated in the environment."""
Allowlists = Annotated[dict[str, list[str]], NoDecode, BeforeValidator(_json_object)]
"""Tool name to the parameters that are kept; JSON in the environment."""


class Section(BaseModel):
    """The base of the sections below, which are immutable.

    Unknown fields are ignored, because a variable of a newer version must not stop an older one;
    `service.environment.unknown_variables` warns of them.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")


class ServerSettings(Section):
    """Where the service listens, whom it answers and how it stops."""

    host: str = Field("127.0.0.1", min_length=1)
    """Address to listen on."""
    port: int = Field(8799, ge=0, le=65535)
    """Port to listen on; 0 picks one."""
    allowed_hosts: Names = ()
    """Host names that requests may carry, comma-separated, `*` for any. Left empty: loopback names
    on a loopback address, any name on another."""
    public_url: BaseUrl | None = None
    """Where people reach the service, for links to its dashboard; none unless set."""
    trace_url: TraceUrl | None = None
    """Address of your trace viewer, such as `https://jaeger.example.org/trace/{trace_id}`: sessions
    link to it. Unless set, they show the id of a trace."""
    allow_strangers: bool = False
    """Whether anyone may read and write where others can reach the service and there is no key;
    else it does not start there."""
    dashboard: bool = True
    """Whether `/dashboard` is there."""
    shutdown_s: float = Field(5.0, gt=0, le=600)
    """Seconds that running requests get at shutdown."""

    @property
    def is_local(self) -> bool:
        """Return whether only this machine can reach it."""
        return is_loopback(self.host)


class KeysSettings(Section):
    """The operator's first key, where a container has no other way to get one."""

    bootstrap: SecretStr | None = None
    """A key that may do everything in every workspace: `ac_`, 16 hexadecimal digits, `_` and at
    least 32 random letters and digits. It is stored nowhere."""
    bootstrap_file: Path | None = None
    """A file that holds it, such as a mounted secret."""


class DataSettings(Section):
    """Where everything durable lives."""

    dir: Path
    """Folder of the log store and the vectors, for one service process at a time; unless set, where
    the platform keeps a user's data."""


class MongoSettings(Section):
    """MongoDB as the log store, instead of the embedded one."""

    uri: SecretStr | None = None
    """Address of MongoDB, `mongodb://...` or `mongodb+srv://...`, with user and TLS options as the
    driver takes them. Unless set, the embedded store is used."""
    database: str = Field("aftercall", min_length=1, max_length=63)
    """Database of the log store."""
    pool_size: int = Field(32, ge=1, le=10_000)
    """Most connections of one process to one server."""
    connect_timeout_s: float = Field(5.0, gt=0, le=600)
    """Seconds until a server counts as away (503)."""
    timeout_s: float = Field(20.0, gt=0, le=3600)
    """Seconds that a server which was reached may take for one operation."""


class QdrantSettings(Section):
    """A Qdrant server as the vector index, instead of the embedded one."""

    url: str | None = None
    """Address of Qdrant, such as `http://qdrant:6333`; `https` for TLS. Unless set, the embedded
    index is used. `local:DIR` is the client's own slow store, for trials."""
    api_key: SecretStr | None = None
    """Key of the Qdrant server."""
    grpc_port: int = Field(6334, ge=1, le=65535)
    """Port of the server for gRPC."""
    prefix: str = Field("aftercall", pattern=r"^[A-Za-z0-9_-]{1,64}$")
    """Prefix of the names of the collections."""
    shards: int = Field(1, ge=1, le=1024)
    """Shards of a new collection."""
    replicas: int = Field(1, ge=1, le=64)
    """Copies of each of its shards."""
    write_consistency: int = Field(1, ge=1, le=64)
    """Copies that must have taken a write before it counts; at most as many as there are."""
    timeout_s: float = Field(20.0, gt=0, le=3600)
    """Seconds that one operation may take."""

    @field_validator("write_consistency")
    @classmethod
    def _can_be_reached(cls, value: int, info: ValidationInfo) -> int:
        replicas = info.data.get("replicas", value)  # absent when it is itself refused
        if value > replicas:
            raise ValueError(
                f"{value} copies are to take each write, and AFTERCALL_QDRANT_REPLICAS makes "
                f"{replicas}: no write would ever count; raise that, or lower this"
            )
        return value


class IndexingSettings(Section):
    """Who learns from what was recorded."""

    here: bool = True
    """Whether `aftercall serve` learns too; false leaves it to `aftercall worker`."""
    lease_s: float = Field(15.0, ge=1, le=600)
    """Seconds without a sign of life after which another process goes on with a workspace."""
    process: bool = True
    """Whether much is learned in a process of its own, where there are two processors: answers keep
    their speed, and some 100 to 300 MiB more are used until the load is over."""


class RetentionSettings(Section):
    """How long what was recorded is kept."""

    days: float = Field(90.0, ge=0, le=36500)
    """Days until an execution that was learned from is deleted, at least 1; 0 for never. What was
    learned stays."""

    @field_validator("days")
    @classmethod
    def _outlasts_a_night(cls, value: float) -> float:
        if 0 < value < 1:
            raise ValueError(
                "must be 0, to keep every execution, or at least 1: the nightly run counts a day "
                "before it goes"
            )
        return value


class SamplingSettings(Section):
    """Which successes are left out where there are very many; failures never are."""

    successes_per_minute: float = Field(0.0, ge=0, le=1e9)
    """Successes of one tool in a minute that are all kept; 0 keeps every one."""
    kept_share: float = Field(0.1, gt=0, le=1)
    """Share that is kept of the successes beyond that; each stands for the others."""


class NightlySettings(Section):
    """When `aftercall serve` runs the nightly ingest itself."""

    every_h: float = Field(24.0, ge=0, le=8760)
    """Hours from one nightly run to the next, done next to the service; 0 for none, where a
    scheduler runs `aftercall nightly`."""


class GateSettings(Section):
    """When a repair may be followed without asking."""

    quorum: int | None = Field(None, ge=1, le=10)
    """Principals (keys) whose own repairs a change to another value wants before it may be
    followed. Unless set, 1 while there are no keys, as all callers are the owner's, and 2 from the
    first key on."""


class EmbeddingSettings(Section):
    """How texts become vectors."""

    model: str = Field("all-MiniLM-L6-v2", min_length=1)
    """Model name or path; `hashing` needs no model. To change it on existing data, run `aftercall
    rebuild`."""
    cache_size: int = Field(10_000, ge=0, le=10_000_000)
    """Questions whose vectors are kept in memory."""
    threads: int = Field(2, ge=1, le=256)
    """Threads of one inference."""


class BoundarySettings(Section):
    """When a tool is reported to be asked for several jobs."""

    min_failures: int = Field(5, ge=1, le=64)
    """Boundary failures before a tool is warned of."""
    min_share: float = Field(0.2, gt=0, lt=1)
    """Share of a tool's boundary failures that a second axis must have for that."""
    min_confidence: float = Field(0.91, ge=0, le=1)
    """Probability of that share from which on it counts."""
    half_life_days: float = Field(7.0, gt=0, le=365)
    """Days in which a boundary failure's weight halves."""
    correction_weight: float = Field(3.0, ge=1, le=100)
    """Boundary failures that a user's correction of that kind counts as."""


class PrivacySettings(Section):
    """What is masked before it is written, and again before it is returned."""

    secret_names: Names = ()
    """Further names whose values are masked, in parameters and in texts, comma-separated."""
    allowlists: Allowlists = Field(default_factory=dict)
    """JSON object of tool name to the parameters that are kept; of that tool's other parameters
    only type and a keyed hash are stored, and nothing where the name is a secret's."""
    hash_key_file: Path | None = None
    """File with the key of these hashes, made at first use; default: `hash.key` in the data folder.
    Processes that share servers need the same one."""


class LimitSettings(Section):
    """How much one caller, and all callers together, may ask of the service."""

    body_bytes: int = Field(8 * _MIB, ge=1024, le=1024 * _MIB)
    """Largest request body, in bytes."""
    buffered_bytes: int = Field(64 * _MIB, ge=1024)
    """Bytes of request bodies held at a time; beyond that, callers have to wait."""
    unpacked_bytes: int = Field(32 * _MIB, ge=1024, le=1024 * _MIB)
    """Largest body after unpacking, where packed ones are taken (`/v1/traces`)."""
    body_timeout_s: float = Field(30.0, gt=0, le=3600)
    """Seconds within which a request body must arrive."""
    head_timeout_s: float = Field(10.0, gt=0, le=3600)
    """Seconds within which the head of a request must arrive, also on a new connection."""
    connections: int = Field(1000, ge=10, le=1_000_000)
    """Connections that are open at a time; further ones are answered 503. Fewer, where the process
    may not open as many files."""
    loop: int = Field(5, ge=0, le=1000)
    """Failures of a session with one error after which `POST /check` blocks such a call; 0 never
    does."""


class MetricsSettings(Section):
    """The page of `/metrics`."""

    tools: int = Field(200, ge=0, le=100_000)
    """Tools with a label of their own in the metrics; all further ones are `other`."""


class TracingSettings(Section):
    """The service's own spans, out (extra `otel`)."""

    url: BaseUrl | None = None
    """Where the service sends spans of its own work, by OTLP over HTTP, such as
    `http://collector:4318/v1/traces`; none unless set. OpenTelemetry's own variables count too,
    such as `OTEL_TRACES_SAMPLER`."""


class AlertSettings(Section):
    """Where alerts go: a new failure, a tool that began to fail, a contract that drifted."""

    url: BaseUrl | None = None
    """Where alerts are posted as JSON, once for each event and at most hourly for each tool; none
    unless set."""


class LogSettings(Section):
    """What the service logs of its work, on stderr."""

    format: Literal["auto", "text", "json"] = "auto"
    """`text`, `json` lines, or `auto`: text on a terminal, else json."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe level that is written."""


class Settings(BaseModel):
    """All settings of the service, a section per concern."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    server: ServerSettings = Field(default_factory=ServerSettings)
    keys: KeysSettings = Field(default_factory=KeysSettings)
    data: DataSettings
    embedding: EmbeddingSettings = Field(default_factory=EmbeddingSettings)
    mongo: MongoSettings = Field(default_factory=MongoSettings)
    qdrant: QdrantSettings = Field(default_factory=QdrantSettings)
    indexing: IndexingSettings = Field(default_factory=IndexingSettings)
    nightly: NightlySettings = Field(default_factory=NightlySettings)
    retention: RetentionSettings = Field(default_factory=RetentionSettings)
    gate: GateSettings = Field(default_factory=GateSettings)
    sampling: SamplingSettings = Field(default_factory=SamplingSettings)
    boundaries: BoundarySettings = Field(default_factory=BoundarySettings)
    privacy: PrivacySettings = Field(default_factory=PrivacySettings)
    limits: LimitSettings = Field(default_factory=LimitSettings)
    metrics: MetricsSettings = Field(default_factory=MetricsSettings)
    tracing: TracingSettings = Field(default_factory=TracingSettings)
    alerts: AlertSettings = Field(default_factory=AlertSettings)
    log: LogSettings = Field(default_factory=LogSettings)

    def with_values(self, **sections: Mapping[str, object]) -> Self:
        """Return a copy with some fields of some sections replaced.

        None leaves a field as it is.
        """
        values: dict[str, Any] = self.model_dump()
        for section, fields in sections.items():
            values[section] |= {name: value for name, value in fields.items() if value is not None}
        return type(self).model_validate(values)
