"""`python -m aftercall.cli` is `aftercall`."""

import sys

from aftercall.cli import main

sys.exit(main())
