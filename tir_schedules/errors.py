"""The errors a user can cause or meet. Each is one line that says what was wrong and what would be right."""


class TirSchedulesError(Exception):
    """Base of all errors with a message meant for the user; `exit_code` is what the command line returns."""

    exit_code = 1


class CheckFailed(TirSchedulesError):
    """Something ran and was found wrong: a kernel, a comparison, a compilation of our own source."""

    exit_code = 1


class BadInput(TirSchedulesError):
    """The user asked for something that does not exist or cannot be."""

    exit_code = 2


class TooLarge(BadInput):
    """A shape beyond what a grid or an index can count; other tiles may do."""


class MissingTool(TirSchedulesError):
    """Something needed is not installed; the message names it and how to get it."""

    exit_code = 3


def one_line(text: object) -> str:
    """An error or another text without its line breaks."""
    return " ".join(str(text).split())
