"""The entry point of the command `heed`, and of `python -m heed`."""

import sys


def main() -> None:
    """Run the command; Ctrl-C during the imports, too, exits with 130."""
    try:
        from heed.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
