"""Scores and predictions become tables, figures and claims; nothing here imports torch."""
