"""The command ``pinlane``, also as ``python -m pinlane``."""

import signal
import sys


def main():
    """Runs the command with the arguments of this process, and ends with its exit status."""
    from ._native import run_command

    # The command handles Ctrl-C itself; a closed pipe ends it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(run_command(["pinlane", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
