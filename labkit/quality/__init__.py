"""Speech quality: validity checks, and metrics behind one contract, scored clip by clip.

    from labkit.quality import Clip, judge
    rows = judge([Clip("three one four", 0, audio, text="three one four")])

Nothing here is a human opinion: each number names its metric. Importing this package loads NumPy only.
"""

from labkit.quality.base import Clip, Metric, Score, all_metrics
from labkit.quality.panel import catalogue, judge
from labkit.quality.validity import Validity, check

__all__ = ["Clip", "Metric", "Score", "Validity", "all_metrics", "catalogue", "check", "judge"]
