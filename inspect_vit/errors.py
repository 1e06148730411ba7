"""Errors that a caller can cause, raised once, at the boundary where the value came in."""


class InspectionError(ValueError):
    """A mistake in what the caller gave. The message names the value met, the value wanted and what to do."""


class ConfigError(InspectionError):
    """A configuration, option or device that cannot work."""


class ImageError(InspectionError):
    """A picture that cannot be read or inspected."""

    code = "image_undecodable"


class UnsupportedImageError(ImageError):
    """Bytes that are not a picture in a format we read."""

    code = "image_unsupported"


class ImageTooLargeError(ImageError):
    """A picture with more pixels or bytes than the limit."""

    code = "image_too_large"


class OutOfMemoryError(InspectionError):
    """A board for which the device has too little free memory, even in the smallest tiles."""


class CheckpointError(InspectionError):
    """A checkpoint file that is missing, damaged or made for another model."""


class RegistrationError(InspectionError):
    """A board that cannot be aligned with its golden reference."""

    def __init__(self, message: str, *, match: float = 0.0) -> None:
        """match: share of the board's structure that matches in the best map found, 0..1."""
        super().__init__(message)
        self.match = match


class WrongPoseError(RegistrationError):
    """A board that lies upside down, turned or mirrored: another pose fits better."""
