"""Torch modules to ONNX files: one graph per stage, each checked before anybody may use it."""
