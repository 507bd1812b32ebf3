"""`python -m grading`."""

import sys

from .cli import main

if __name__ == "__main__":  # the processes of a local cluster import this file too
    sys.exit(main())
