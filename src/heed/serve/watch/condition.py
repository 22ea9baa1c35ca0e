"""`Condition`: whether a server process takes requests, for `/ready` and for the supervisor."""

from dataclasses import dataclass


@dataclass(kw_only=True)
class Condition:
    """Changes twice in the life of a process.

    Attributes:
        is_ready: the models are loaded, and a first sentence was translated.
        is_draining: a signal has come; the answers in work are the last ones.
    """

    is_ready: bool = False
    is_draining: bool = False

    @property
    def takes_requests(self) -> bool:
        """Whether a load balancer should send requests here."""
        return self.is_ready and not self.is_draining
