"""``python -m downclock`` is the command line."""

import sys

from downclock.cli import main

sys.exit(main())
