"""From what a user types to what a voice reads: normalization, checks, prompts, segments, corpora, tokens.

Knows languages and characters. Does not know networks, audio or engines.
"""
