"""What runs a stage: one file per engine behind the protocols of `base`."""
