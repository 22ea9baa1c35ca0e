"""`python -m heed` is `heed`.

Not here: anything else. Read on in `cli/main.py`.
"""

from heed.cli.main import main

if __name__ == "__main__":
    main()
