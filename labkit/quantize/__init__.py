"""Precision transforms of exported graphs."""
