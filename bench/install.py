"""What installing takes: `make demo` on a fresh clone, the service with its model, the gateway.

    python -m bench.install [--json FILE]

Clones the last commit into a temporary folder, runs `make demo` there with nothing but pip's own
cache, and says how long that took and how large `.venv` is. Then the service with its model and
`sdk[gateway]` are each installed into a virtual environment of their own: what they add to an
empty one is said. Asked are 75 s and 700 MB, 450 MB and 140 MB.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
MB = 1_000_000


def megabytes(folder: Path) -> float:
    """The room on the disk that the files of a folder take, each once."""
    found = {}
    for path in folder.rglob("*"):
        stat = path.lstat()
        found[stat.st_dev, stat.st_ino] = stat.st_blocks * 512
    return sum(found.values()) / MB


def run(*command: str | Path, cwd: Path) -> None:
    """Run a command; what it prints is shown only if it fails."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command, check=False, cwd=cwd, env=clean, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-4000:]}")


def demo(clone: Path) -> dict[str, float]:
    """Seconds of `make demo`, and megabytes of its `.venv`."""
    started = time.perf_counter()
    run("make", "demo", f"PYTHON={sys.executable}", cwd=clone)
    return {"seconds": time.perf_counter() - started, "megabytes": megabytes(clone / ".venv")}


def package(clone: Path, folder: Path, *names: str) -> float:
    """Megabytes that installing adds to an empty virtual environment."""
    run(sys.executable, "-m", "venv", folder, cwd=clone)
    before = megabytes(folder)
    pip = (folder / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check")
    run(*pip, "-c", "constraints.txt", *names, cwd=clone)
    return megabytes(folder) - before


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aftercall-install-") as name:
        folder = Path(name)
        clone = folder / "clone"
        run("git", "clone", "--quiet", ROOT, clone, cwd=folder)
        figures = {
            "demo": demo(clone),
            "serviceMB": package(clone, folder / "service", "./sdk", "."),
            "gatewayMB": package(clone, folder / "gateway", "./sdk[gateway]"),
        }
    print(f"make demo, fresh clone   {figures['demo']['seconds']:5.0f} s   <= 75")
    print(f"  .venv                  {figures['demo']['megabytes']:5.0f} MB  <= 700")
    print(f"service with its model   {figures['serviceMB']:5.0f} MB  <= 450")
    print(f"sdk[gateway]             {figures['gatewayMB']:5.0f} MB  <= 140")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
