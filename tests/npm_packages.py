"""Packages from npm that tests run: installed beside their `package-lock.json`, once."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import NO_NPM


def installed_packages(folder: Path) -> Path:
    """Return the folder of the installed packages; skips where there is no npm.

    NPM in the environment, as CI has it, must be there: then a test fails instead.
    """
    npm = shutil.which(os.environ.get("NPM") or "npm")
    lock, done = folder / "package-lock.json", folder / "node_modules" / ".lock-of-tests"
    with (folder / "package.json").open() as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        if npm is not None and not (done.exists() and done.read_bytes() == lock.read_bytes()):
            words = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
            if subprocess.run(words, cwd=folder, stdout=sys.stderr, check=False).returncode == 0:
                done.write_bytes(lock.read_bytes())
    if not done.exists() or npm is None:
        (pytest.fail if "NPM" in os.environ else pytest.skip)(NO_NPM)
    return folder / "node_modules"
