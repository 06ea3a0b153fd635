"""`python -m aftercall.cli` is `aftercall`."""

import sys

from aftercall.cli.frame import main

sys.exit(main())
