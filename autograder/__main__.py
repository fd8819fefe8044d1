"""`python -m autograder` is the `course` command."""

import sys

from autograder.cli import main

sys.exit(main())
