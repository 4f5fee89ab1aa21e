"""``python -m evr1_core``: the same as the command ``evr1``."""

import sys

from evr1_core.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
