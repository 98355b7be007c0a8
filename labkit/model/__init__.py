"""ChatTTS in plain, exportable torch: the three networks that speak, the DVAE, sampling and checkpoints.

Nothing is imported here: `config`, `sampling` and `speaker` must stay usable in a process without torch.
"""
