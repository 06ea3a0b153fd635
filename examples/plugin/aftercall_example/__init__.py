"""Plug-ins that are data: the paths of three TOML files."""

from importlib.resources import files

_FOLDER = files("aftercall_example")
LOG_FORM = _FOLDER / "log_form.toml"
HOOK_CLIENT = _FOLDER / "hook_client.toml"
SECRET_FORM = _FOLDER / "secret_form.toml"
