"""A backbone, what is tuned in it, and the head on it."""
