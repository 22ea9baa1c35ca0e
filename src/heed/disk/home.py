"""The folder of a user's data: installed models, and what clients of a server store."""

import os
from pathlib import Path

from heed.errors import ConfigError


def home() -> Path:
    """The folder of installed models: `$HEED_HOME`, or `heed` in the XDG data folder.

    Raises:
        ConfigError: none of the variables is set, and the user has no home folder.
    """
    if chosen := os.environ.get("HEED_HOME"):
        return Path(chosen)
    if data := os.environ.get("XDG_DATA_HOME"):
        return Path(data) / "heed"
    try:
        return Path.home() / ".local" / "share" / "heed"
    except RuntimeError:
        raise ConfigError(
            "This user has no home folder, so there is no folder of installed models. Set "
            "HEED_HOME, or name a model folder: -m run/"
        ) from None
