"""Training a model, and the files that a run writes."""
