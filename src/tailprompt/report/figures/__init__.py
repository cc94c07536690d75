"""Kinds of figures: (root, spec) -> matplotlib Figure."""
