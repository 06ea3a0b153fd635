"""A service that closes while its keys are read anew says nothing of it in its log."""

import asyncio
import logging
from pathlib import Path

import pytest

from service import keys as keyring
from service.context import open_context
from tests.service.running_service import hashing_settings


async def test_closing_while_the_keys_are_read_is_quiet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Twenty times, with the keys read all the time."""
    monkeypatch.setattr(keyring, "REFRESH_S", 0.0)
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            async with open_context(hashing_settings(tmp_path)):
                await asyncio.sleep(0.01)
    assert "reading the keys anew" not in caplog.text
