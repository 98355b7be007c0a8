"""Did this change make the voice worse or the bench slower? Four tiers, a committed baseline, one exit code.

    spec.py        what a gate asks for; from YAML
    figures.py     tier 1 in numbers, from logits and hidden states
    anchor.py      the fingerprint by which a baseline knows the reference recipe again
    probe.py       child: a recipe speaks, teacher-forced or freely
    judge.py       child: scores of what it said
    order.py       what the two are told, and the files they leave
    probing.py     their parent; document.py: what it records in the store
    measuring.py   everything that is measured, in its order
    baseline.py    what was measured on a good day, as committed files; recording.py makes them
    comparing.py   from scores to verdicts; listening.py: which clips to hear
    gating.py      the gate itself

Tier 0 asks whether clips are speech, tier 1 what a recipe says about the reference's tokens, tier 2 what its acoustic
path makes of the reference's hidden states, tier 3 how it speaks by itself. The statistics are `labkit.compare`'s, the
pages `labkit.report`'s.
"""
