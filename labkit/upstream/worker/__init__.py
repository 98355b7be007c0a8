"""The program that runs inside upstream's environment: `python -m worker`, started from the folder above.

It knows upstream's package, torch and NumPy, and nothing of labkit, which is not installed there. It
answers one JSON line for each JSON line it reads (see `__main__`).
"""
