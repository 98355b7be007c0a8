"""Did this change make the voice worse or the bench slower? Four tiers, a committed baseline, one exit code.

spec.py       what a gate asks for; from YAML
figures.py    tier 1 in numbers, from logits and hidden states
anchor.py     the fingerprint by which a baseline knows the reference recipe again
probe.py      child: a recipe speaks, teacher-forced or freely
judge.py      child: scores of what it said
probing.py    their parent; document.py: what it records in the store
"""
