"""What a backbone reads: rows of a data set as token ids or as views of images."""
