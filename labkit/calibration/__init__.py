"""What the stages really see: recordings of the reference recipe speaking a calibration list.

Static quantization chooses its ranges from them, and sensitivity compares on them. `calibration_set` describes a set
without any work (its `content_hash` belongs into the inputs of an artifact made with it); `feeds` records what is
missing and streams it from disk, one sentence at a time. `judging_set` is the same for sentences of evaluation lists.
Knows no quantizer and no graph.
"""

from labkit.calibration.recordings import CalibrationSet, Recording, calibration_set, judging_set
from labkit.calibration.texts import MAX_SENTENCES, MIN_SENTENCES, calibration_texts, default_corpus

__all__ = [
    "MAX_SENTENCES",
    "MIN_SENTENCES",
    "CalibrationSet",
    "Recording",
    "calibration_set",
    "calibration_texts",
    "default_corpus",
    "judging_set",
]
