"""The version of the service, from its own package."""

from importlib.metadata import version

VERSION = version("aftercall-service")
