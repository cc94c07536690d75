"""The model: a backbone, a tuner and a head."""
