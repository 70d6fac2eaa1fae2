"""Exceptions. Each is also what a Python user expects: a MemoryError, a ValueError, …"""


class Error(RuntimeError):
    """Base of the errors that Pinlane defines.

    Arguments of a wrong type or value also raise plain TypeErrors and ValueErrors, and files plain OSErrors.
    """


class NoDeviceError(Error):
    """No such device, or no driver for it."""


class OutOfMemoryError(Error, MemoryError):
    """Not enough device memory, or not enough memory to pin."""


class PinnedLimitError(Error, MemoryError):
    """More pinned memory than the limit allows. ``set_pinned_limit`` changes it."""


class DeviceLostError(Error):
    """The device is lost. Restart the process."""


class InvalidInputError(Error, ValueError):
    """An argument or a setting is invalid."""


class NotSupportedError(Error, NotImplementedError):
    """The driver or the device does not support it."""


class InvalidDataError(Error, ValueError):
    """A file, a tensor or a sample is corrupt, or not what was expected."""


class CompileError(Error):
    """CUDA C could not be compiled. The message has the compiler's log."""
