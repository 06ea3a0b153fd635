"""What a release has written, each later version opens: a data folder, and an archive.

Before the first release the fixture follows the layouts; from its tag on it stays as it is, and a
version that changes a layout has to bring a store of this one along.
"""

import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from mongo.sqlite.store import LAYOUT
from service.archive import FORM, ArchiveReader, import_store, open_unpacked
from tests.service.release_fixture import ARCHIVE, DATA, EXPECTED, described
from workbench.in_process import in_process


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The data folder, as it was left."""
    with tarfile.open(DATA) as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path / "data"


async def test_a_folder_of_the_release_is_opened_and_answers_alike(folder: Path) -> None:
    """Repairs, rules, tools, promotions, marks and patterns are there."""
    async with in_process(folder, embedder="hashing") as service:
        assert await described(service) == json.loads(EXPECTED.read_text())
        assert (await service.status()).consistent


async def test_an_archive_of_the_release_is_imported_and_answers_alike(tmp_path: Path) -> None:
    """What the night makes is made again."""
    async with in_process(tmp_path, embedder="hashing") as service:
        with open_unpacked(str(ARCHIVE)) as stream:
            await import_store(service.context.store, ArchiveReader(stream))
        await service.context.memory.follow_changes()
        await service.context.indexer.catch_up()
        await service.run_night()
        service.context.memory.forget_all()
        assert await described(service) == json.loads(EXPECTED.read_text())


def test_the_fixture_is_of_the_layouts_of_today(folder: Path) -> None:
    """Else, before the release: `PYTHONPATH=notebooks python -m tests.service.release_fixture`."""
    for name in ("aftercall", "control", "generation-1"):
        with closing(sqlite3.connect(folder / f"{name}.sqlite3")) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (LAYOUT,)
    with open_unpacked(str(ARCHIVE)) as stream:
        assert ArchiveReader(stream).header.version == FORM
