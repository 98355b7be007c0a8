"""Speaking: requests -> codes and hidden states -> audio, over any three stages.

`speak` makes whole utterances, a batch at a time; `stream` makes one utterance in chunks while it is being decoded.
Both run the same loop, so the same seed gives the same codes whether streamed, batched or alone. Knows the order of
work and its clocks; knows no engine: a stage is whatever answers the calls in `labkit.engines.base`.

Nothing is deleted from the audio: quiet samples belong to it.
"""

from labkit.synthesis.request import Prepared, Request, Stages, Timings, Utterance, prepare
from labkit.synthesis.streaming import Chunk, SpeechStream, stream
from labkit.synthesis.whole import speak

__all__ = [
    "Chunk",
    "Prepared",
    "Request",
    "SpeechStream",
    "Stages",
    "Timings",
    "Utterance",
    "prepare",
    "speak",
    "stream",
]
