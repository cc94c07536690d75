"""Kinds of tables: (root, spec) -> every number, a sheet for LaTeX and HTML, and a sheet for Markdown."""
