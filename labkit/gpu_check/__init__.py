"""A check of the torch engine on one NVIDIA card, short enough for a borrowed machine.

It knows which cases are worth a minute each, and how to measure one with torch and NumPy alone: the lab's other needs,
pydantic among them, may be missing there. Each case runs in a process of its own through the lab's own engine and
synthesis; what it measures is written at once as an ordinary run document. `scripts/gpu_check` is its command.
"""
