"""Settings: read in one place, described without exception."""

import os
from pathlib import Path

import pytest

from aftercall.errors import ConfigurationError
from aftercall.files import default_data_folder
from service.environment import list_settings, read_settings, unknown_variables
from tests.service.running_service import ROOT, finished


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("AFTERCALL_"):
            monkeypatch.delenv(name)


def test_every_setting_has_a_description() -> None:
    """A setting that nobody explains cannot be set."""
    rows = list(list_settings(read_settings()))
    assert len(rows) > 10
    assert [row.name for row in rows if len(row.description) < 15] == []
    assert [row.name for row in rows if not row.description.endswith((".", "`"))] == []


def test_the_command_lists_every_setting_with_its_value(tmp_path: Path) -> None:
    """As it is in force: the environment's where it is set, the default elsewhere."""
    status, out, _ = finished("settings", environ={"AFTERCALL_DATA_DIR": str(tmp_path)})
    assert status == 0
    for row in list_settings(read_settings()):
        assert f"{row.name}\n  {row.variable}=" in out
        assert row.description in out
    assert f"AFTERCALL_DATA_DIR={tmp_path}" in out
    assert "AFTERCALL_EMBEDDING_MODEL=hashing  (default all-MiniLM-L6-v2)" in out


def test_secrets_are_masked_in_the_list() -> None:
    """Addresses with passwords and keys are shown as set, never as they are."""
    environ = {
        "AFTERCALL_MONGO_URI": "mongodb://ann:opensesame@db.example:27017/?tls=true",
        "AFTERCALL_QDRANT_URL": "https://bob:opensesame@qdrant.example:6333",
        "AFTERCALL_QDRANT_API_KEY": "opensesame",
    }
    status, out, err = finished("settings", environ=environ)
    assert status == 0
    assert "AFTERCALL_MONGO_URI=***" in out
    assert "AFTERCALL_QDRANT_API_KEY=***" in out
    assert "AFTERCALL_QDRANT_URL=https://***@qdrant.example:6333" in out
    assert "opensesame" not in out + err


def settings_table() -> list[str]:
    """The rows of the table for documents, the same on every machine."""
    status, out, _ = finished("settings", "--markdown", environ={"AFTERCALL_SERVER_PORT": "1"})
    assert status == 0
    return out.splitlines()


def test_the_page_of_settings_is_the_table() -> None:
    """`aftercall settings --markdown` makes it."""
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert page.splitlines()[-len(settings_table()) :] == settings_table()


def test_the_readme_is_short() -> None:
    """What a newcomer reads in three minutes: start, use, upgrade and removal."""
    assert (ROOT / "README.md").stat().st_size <= 12_000


def test_variables_override_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A variable is the prefix, the section and the field."""
    monkeypatch.setenv("AFTERCALL_SERVER_PORT", "9000")
    monkeypatch.setenv("AFTERCALL_SERVER_ALLOWED_HOSTS", "a.example, b.example")
    monkeypatch.setenv("AFTERCALL_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("AFTERCALL_EMBEDDING_MODEL", "hashing")
    monkeypatch.setenv("AFTERCALL_PRIVACY_ALLOWLISTS", '{"mail": ["subject"]}')
    monkeypatch.setenv("AFTERCALL_LOG_LEVEL", "")
    settings = read_settings()
    assert settings.server.port == 9000
    assert settings.server.allowed_hosts == ("a.example", "b.example")
    assert settings.data.dir == tmp_path
    assert settings.embedding.model == "hashing"
    assert settings.privacy.allowlists == {"mail": ["subject"]}
    assert settings.log.level == "info"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("AFTERCALL_SERVER_PORT", "eighty", ""),
        ("AFTERCALL_SERVER_PORT", "70000", ""),
        ("AFTERCALL_LOG_FORMAT", "yaml", ""),
        ("AFTERCALL_PRIVACY_ALLOWLISTS", "subject", ""),
        ("AFTERCALL_PRIVACY_ALLOWLISTS", '["subject"]', ""),
        ("AFTERCALL_SERVER", "{bad", "_PORT"),
        ("AFTERCALL_QDRANT_WRITE_CONSISTENCY", "2", ".* AFTERCALL_QDRANT_REPLICAS makes 1"),
        ("AFTERCALL_RETENTION_DAYS", "0.99", ".* 0, to keep every"),
    ],
)
def test_an_impossible_value_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    """In one line, with what would do; it does not repeat the value, which may be a secret."""
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=f"{name}{said}") as caught:
        read_settings()
    assert "\n" not in str(caught.value)


def test_unknown_variables_are_named_with_the_nearest_known_one() -> None:
    """A misspelt variable does nothing; that is said."""
    environ = {
        "AFTERCALL_SERVER_PROT": "1", "AFTERCALL_COMPLETELY_ELSE": "1",
        "AFTERCALL_SERVER_HOST": "::1", "AFTERCALL_URL": "http://localhost:8799",
        "AFTERCALL_TEST_QDRANT_URL": "http://localhost:6333", "PATH": "/bin",
    }  # fmt: skip
    warnings = list(unknown_variables(environ))
    assert len(warnings) == 2
    assert "AFTERCALL_COMPLETELY_ELSE" in warnings[0]
    assert "did you mean AFTERCALL_SERVER_PORT?" in warnings[1]


def test_folders_follow_the_platform(tmp_path: Path) -> None:
    """XDG where it is set and absolute, the platform's own place elsewhere."""
    home = Path.home()
    assert default_data_folder({"XDG_DATA_HOME": str(tmp_path)}, "linux") == tmp_path / "aftercall"
    assert (
        default_data_folder({"XDG_DATA_HOME": "relative"}, "linux")
        == home / ".local/share/aftercall"
    )
    assert default_data_folder({}, "darwin") == home / "Library/Application Support/aftercall"


@pytest.mark.parametrize(
    "environ", [{}, {"AFTERCALL_MONGO_URI": "mongodb://db"}, {"AFTERCALL_QDRANT_URL": "http://q"}]
)
def test_a_service_that_nobody_could_learn_for_is_refused(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    """Workers need both servers; nothing is opened or made."""
    status, out, err = finished(
        "serve", "--port", "0", "--data-dir", str(tmp_path / "data"),
        environ=environ | {"AFTERCALL_INDEXING_HERE": "false"},
    )  # fmt: skip
    assert (status, out) == (1, "")
    assert err.startswith("aftercall: AFTERCALL_INDEXING_HERE is false")
    assert not (tmp_path / "data").exists()
