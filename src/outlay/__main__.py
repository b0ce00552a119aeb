"""`python -m outlay` is the command `outlay`."""

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main())
