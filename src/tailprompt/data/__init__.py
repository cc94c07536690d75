"""Raw files of data sets, and what they become: one table for each data set."""
