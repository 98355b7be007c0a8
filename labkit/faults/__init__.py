"""Does the gate find what is known to be wrong, and only that? Known faults are made, judged, and tabled.

    conditions.py  what is done to a voice on purpose, and what must change nothing
    damage.py      clips made worse by a known amount
    speaking.py    a condition speaks the reference's tokens: tier 1, and clips
    judging.py     the panel's scores of those clips
    timing.py      fresh processes that replay, one slowed down or grown on purpose (`timed.py` is the process)
    work.py        all of the above in worker processes, each part kept, so that it resumes
    findings.py    from scores to verdicts: ours, and those of other rules
    drawing.py     gates drawn again and again from real ones: how often each rule cries wolf
    speeds.py      the same with timed processes: how often each rule finds a slow-down
    tables.py      the tables of docs/quality.md; words.py: what was run for them, and what was drawn

The verdicts are `labkit.compare`'s and the mechanics of the tiers `labkit.gate`'s: nothing is judged otherwise here
than in a gate.
"""
