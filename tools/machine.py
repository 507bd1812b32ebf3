"""Which machine a measurement was made on; shared by tools/timings.py and tools/bench.py. It must not import NumPy."""

import platform
import subprocess
import sys
from pathlib import Path


def processor():
    """The name that the processor gives itself."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        names = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        if names:
            return names[0]
    if sys.platform == "darwin":
        return subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=True
        ).stdout.strip()
    return platform.processor() or platform.machine()
