"""The few named errors of the lab.

Every message names the value, the place and the remedy. `exit_code` is what the command line returns:
2 when the user can mend it by asking for something else, 1 when something failed that should have worked. (The gate's
own codes are in `labkit.cli.gating`: there 1 is a regression, so whatever keeps it from a verdict is 2.)
"""

from __future__ import annotations


class LabError(Exception):
    """Base of everything the lab raises on purpose."""

    exit_code = 1


class UserError(LabError):
    """The request itself is wrong: an unknown name, an impossible value, an unreadable file."""

    exit_code = 2


class SpecError(UserError):
    """A recipe, run or sweep description that cannot be carried out."""


class TextError(UserError):
    """Text that no voice can speak: empty, only punctuation, too long."""


class SpeakerError(UserError):
    """A speaker that is unknown, or a string of another kind."""


class CheckpointError(UserError):
    """A voice folder with missing, truncated, extra, misshapen or unsafe files."""


class CalibrationError(UserError):
    """A list of texts that a recipe must not or cannot be calibrated on."""


class UnavailableError(LabError):
    """An engine, metric or tool that this machine cannot run; carries the remedy."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason} {remedy}")
        self.reason = reason
        self.remedy = remedy


class ArtifactError(LabError):
    """An exported, quantized or compiled file that is stale, damaged or could not be made."""


class NoVerdictError(LabError):
    """A gate that could not be carried out; its exit code must not be that of a regression."""

    exit_code = 2


class ParityError(ArtifactError):
    """An exported stage whose output differs from the torch reference by more than its tolerance."""


class InvalidAudioError(LabError):
    """A run that spoke, but whose output is empty, non-finite or never ended."""


class StoreError(LabError):
    """A results folder that cannot be written, or a document that cannot be read."""


class ResultsFolderError(UserError, StoreError):
    """A results folder that cannot be written, found before any work: another one can be named."""
