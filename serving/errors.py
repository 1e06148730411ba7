"""What can go wrong while serving. `service.py` is the one place that turns these into HTTP answers."""

from __future__ import annotations

from inspect_vit.errors import ConfigError


class ServingError(Exception):
    """A request that cannot be answered as asked. The hint says what the caller can do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class FieldError(ServingError):
    """A field, header or query parameter with a wrong value; the message begins with its name."""


class MultipartError(ServingError):
    """A body that claims to be multipart and cannot be read as such."""


class NotMultipartError(ServingError):
    """A body of another content type than multipart/form-data."""


class StalledError(ServingError):
    """A body that stopped coming before it was whole."""


class BodyTooLargeError(ServingError):
    """A body over the limit, by its Content-Length or by the bytes counted."""


class NotFoundError(ServingError):
    """No such inspection, or no such picture of it."""


class NoRouteError(NotFoundError):
    """Nothing is at the path that was asked for, which the message repeats."""


class VersionGoneError(ServingError):
    """What only a certain model version could compute, and its files are not there any more."""


class IdempotencyConflictError(ServingError):
    """An Idempotency-Key that was used for another request."""


class RevisionConflictError(ServingError):
    """A change for a revision of a recipe that is no longer the newest."""


class ReviewConflictError(ServingError):
    """A review that was made from a revision which is no longer the newest."""


class OvertakenError(ServingError):
    """What an inspection was about to be stored as no longer holds: something else was stored first. Nothing
    was stored of it; decide again."""


class ModelMismatchError(ServingError):
    """A recipe that is pinned to a model version which the store does not have."""


class GateRefusedError(ServingError):
    """A promotion that the gate does not allow, or that would go round it."""


class ModelRefusedError(ServingError):
    """A model version that cannot be what was asked of it: corrupt, retired, or in use."""


class JobStateError(ServingError):
    """A job that is in a state in which this cannot be done to it."""


class ThresholdRefusedError(ServingError):
    """A threshold that the reviewed boards do not support; nothing was changed."""


class BusyError(ServingError):
    """The queue is full."""

    def __init__(self, message: str, *, retry_after_s: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class UnauthorizedError(ServingError):
    """No key or session, or one that does not work."""


class ForbiddenError(ServingError):
    """A role that may not do this, or a browser that was sent here by another site."""


class TooManyLoginsError(ServingError):
    """An address from which too many logins failed."""

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message, hint=f"wait {retry_after_s} s, then log in with a key that works")
        self.retry_after_s = retry_after_s


class ClientGoneError(ServingError):
    """The client hung up before its turn came; nothing was inspected or stored."""


class StorageFullError(ServingError):
    """No room on the disk: the inspection was not stored, so it is not answered."""


class StoreUnavailableError(ServingError):
    """The home folder or its database is not there or cannot be written now: nothing was stored."""


class StoreError(ConfigError):
    """A store that cannot be opened: its folder, its database or its schema."""
