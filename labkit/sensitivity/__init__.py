"""Which part of a voice minds being rounded: one part at a time, measured on what the voice really said.

`sensitivity` rounds the weights of one block, of one kind of operator, or of the heads, runs the stage on recorded
generations (teacher-forced: the codes are fed, never drawn, so no sampling noise) and compares with float32.
Activations stay float32, so this is about weights alone. It changes no file and makes no artifact. `ladder` damages
the whole GPT step by step, for the card of a voice.
"""

from labkit.sensitivity.chart import sensitivity_bars
from labkit.sensitivity.ladder import Rung, ladder
from labkit.sensitivity.measuring import MIN_TEXTS, sensitivity
from labkit.sensitivity.tables import FIGURE_NAMES, MAIN_FIGURE, at_bits, by_part, ladder_table

__all__ = [
    "FIGURE_NAMES",
    "MAIN_FIGURE",
    "MIN_TEXTS",
    "Rung",
    "at_bits",
    "by_part",
    "ladder",
    "ladder_table",
    "sensitivity",
    "sensitivity_bars",
]
