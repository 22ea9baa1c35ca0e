"""`Condition`: whether a server process accepts requests, for `/ready` and the supervisor."""

from dataclasses import dataclass


@dataclass(kw_only=True)
class Condition:
    """The state of a process, which changes twice.

    Attributes:
        is_ready: the models are loaded, and a first sentence was translated.
        is_draining: a signal has arrived; no more requests should come.
    """

    is_ready: bool = False
    is_draining: bool = False

    @property
    def takes_requests(self) -> bool:
        """Whether a load balancer should send requests here."""
        return self.is_ready and not self.is_draining
