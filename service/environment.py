"""The environment: read into settings, checked for misspelt names, listed for the reader."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError

from aftercall.errors import ConfigurationError
from aftercall.explain import explain_fault, nearest_name
from aftercall.files import default_data_folder
from aftercall.models.base import field_descriptions
from service.settings import Settings

PREFIX = "AFTERCALL_"
QUORUM_VARIABLE = "AFTERCALL_QUORUM"
OTHER_VARIABLES = frozenset(
    {
        "AFTERCALL_URL",
        "AFTERCALL_API_KEY",
        "AFTERCALL_TEST_MONGO_URI",
        "AFTERCALL_TEST_QDRANT_URL",
        "AFTERCALL_TEST_QDRANT_KEY",
        "AFTERCALL_TEST_QDRANT_GRPC_PORT",
    }
)
"""Read by the SDK and by the tests, not by the service."""
_MASK = "***"
_DATA_DIR = "~/.local/share/aftercall"
_USER_IN_URL = re.compile(r"(?<=://)[^/@]*(?=@)")


class _EnvironmentSettings(BaseSettings, Settings):
    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        # One split: AFTERCALL_DATA_DIR is section `data`, field `dir`; the rest may hold "_".
        env_nested_delimiter="_",
        env_nested_max_split=1,
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003  # the library's signature
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # The constructor's values are the defaults of this machine, so they come last.
        return env_settings, init_settings


class SettingLine(NamedTuple):
    """One setting, as `aftercall settings` lists it."""

    name: str
    variable: str
    value: str
    default: str
    description: str


def read_settings() -> Settings:
    """Return the settings of this process: environment first, then the defaults of this machine."""
    try:
        found = _EnvironmentSettings(
            data={"dir": default_data_folder(os.environ)},
            gate={"quorum": os.environ.get(QUORUM_VARIABLE) or None},
        )
    except ValidationError as error:
        raise ConfigurationError(explain_settings(error)) from None
    except SettingsError as error:
        raise ConfigurationError(
            f"{error}; set single fields, such as {PREFIX}SERVER_PORT, not a whole section"
        ) from None
    return Settings.model_validate(found.model_dump())


def explain_settings(error: ValidationError, options: Mapping[str, str] | None = None) -> str:
    """Return what is wrong with which variable, in one line; values are not repeated.

    `options` has the option of the command line that gave a field, such as `server_port`.
    """
    problems = []
    for fault in error.errors(include_input=False, include_url=False):
        field = "_".join(map(str, fault["loc"][:2]))
        name = (options or {}).get(field, f"{PREFIX}{field.upper()}")
        problems.append(f"{name}: {explain_fault(fault)}")
    return "; ".join(problems)


def unknown_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """Return a warning for each `AFTERCALL_` variable that nothing reads, with the nearest name."""
    known = {variable for _, _, variable in _list_fields()}
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known | OTHER_VARIABLES:
            near = nearest_name(name, known)
            hint = f"; did you mean {near}?" if near else "; see `aftercall settings`"
            yield f"the environment variable {name} is not a setting{hint}"


def list_settings(settings: Settings) -> Iterator[SettingLine]:
    """Yield every setting in order, with its value here and its default. Secrets are masked."""
    for section, field, variable in _list_fields():
        model = type(getattr(settings, section))
        info = model.model_fields[field]
        name = f"{section}.{field}"
        default = "" if info.is_required() else info.get_default(call_default_factory=True)
        yield SettingLine(
            name=name,
            variable=variable,
            value=_show_value(getattr(getattr(settings, section), field)),
            default=_DATA_DIR if name == "data.dir" else _show_value(default),
            description=" ".join(field_descriptions(model).get(field, "").split()),
        )


def environment_of(settings: Settings) -> dict[str, str]:
    """Return the variables from which a process of our own reads the same settings.

    Secrets are in clear.
    """
    texts = {
        variable: _as_text(getattr(getattr(settings, section), field))
        for section, field, variable in _list_fields()
    }
    return {variable: text for variable, text in texts.items() if text}


def _list_fields() -> Iterator[tuple[str, str, str]]:
    for section, info in Settings.model_fields.items():
        model = info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            for field in model.model_fields:
                whole = f"{PREFIX}{section}_{field}".upper()
                yield section, field, QUORUM_VARIABLE if section == "gate" else whole


def _as_text(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, dict):
        return json.dumps(value) if value else ""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "" if value is None else str(value)


def _show_value(value: object) -> str:
    return _MASK if isinstance(value, SecretStr) else _USER_IN_URL.sub(_MASK, _as_text(value))


def check_serving(settings: Settings) -> None:
    """Refuse what would leave a service useless without anyone noticing."""
    if not settings.indexing.here and None in (settings.mongo.uri, settings.qdrant.url):
        raise ConfigurationError(
            "AFTERCALL_INDEXING_HERE is false, so that nothing would be learned: a worker needs "
            "stores that processes can share. Unset it, or set AFTERCALL_MONGO_URI and "
            "AFTERCALL_QDRANT_URL"
        )
