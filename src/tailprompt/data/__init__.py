"""Raw files, and a prepared data set as one table."""
