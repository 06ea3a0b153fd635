"""Find a model in the cache, or export it there in a process of its own."""

import asyncio
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

from embeddings.export import OPTIONAL_PACKAGES
from embeddings.model_files import (
    BUNDLED_NAME,
    BUNDLED_PACKAGE,
    BUNDLED_WEIGHTS_SHA256,
    WEIGHTS_FILE,
    check_weights,
    exported_folder,
    sha256,
)
from embeddings.protocol import EmbeddingError

Progress = Callable[[str], None]
"""Told in one sentence what takes long."""

EXPORT_TIMEOUT_SECONDS = 600.0
"""Ten seconds are usual; this bounds a hang."""

_INSTALL = "pip install 'aftercall-service[model]'"


async def bundled_model(cache_dir: Path, on_progress: Progress | None = None) -> Path:
    """The exported folder of the bundled all-MiniLM-L6-v2.

    Once it is in the cache, neither torch nor the package with the weights is needed.

    Raises:
        EmbeddingError: when it is neither cached nor installed, or damaged.
    """
    target = exported_folder(cache_dir, BUNDLED_NAME, BUNDLED_WEIGHTS_SHA256)
    if not target.exists():
        source = bundled_source()
        await asyncio.to_thread(check_weights, source, BUNDLED_WEIGHTS_SHA256)
        await _export(source, target, BUNDLED_NAME, on_progress)
    return target


async def local_model(folder: Path, cache_dir: Path, on_progress: Progress | None = None) -> Path:
    """The exported folder of a sentence-transformers folder on this machine.

    Raises:
        EmbeddingError: when it is no such folder, or of a kind that is not exported.
    """
    name, weights_sha256 = await asyncio.to_thread(_identify, folder)
    target = exported_folder(cache_dir, name, weights_sha256)
    if not target.exists():
        await _export(folder, target, name, on_progress)
    return target


def _identify(folder: Path) -> tuple[str, str]:
    return folder.resolve().name, sha256(folder / WEIGHTS_FILE)


def bundled_source() -> Path:
    """The sentence-transformers folder of the bundled model, in the package that carries it.

    Raises:
        EmbeddingError: when that package is not installed.
    """
    spec = importlib.util.find_spec(BUNDLED_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingError(
            f"the model {BUNDLED_NAME} is neither in the cache nor installed: {_INSTALL}"
        )
    return Path(spec.submodule_search_locations[0]) / "model"


async def _export(source: Path, target: Path, name: str, on_progress: Progress | None) -> None:
    missing = [
        package for package in OPTIONAL_PACKAGES if importlib.util.find_spec(package) is None
    ]
    if missing:
        raise EmbeddingError(f"exporting {name} needs {', '.join(missing)}: {_INSTALL}")
    if on_progress is not None:
        on_progress(f"exporting the model {name} once (about 10 s)")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "embeddings.export", str(source), str(target), "--name", name),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, output = await asyncio.wait_for(process.communicate(), EXPORT_TIMEOUT_SECONDS)
    except TimeoutError as error:
        raise EmbeddingError(
            f"exporting {name} took over {EXPORT_TIMEOUT_SECONDS:.0f} s; "
            f"see what it does: {sys.executable} -m embeddings.export {source} {target}"
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        # torch warns at length before anything fails; the reason comes last
        reason = output.decode(errors="replace").strip().splitlines()[-1:]
        raise EmbeddingError(f"exporting {name} failed: {' '.join(reason)}")
