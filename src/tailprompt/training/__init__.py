"""Fitting a model, and what a run leaves."""
