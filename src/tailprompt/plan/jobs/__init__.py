"""The inputs and parameters of each kind of job: for a data set, a recipe, a run, a table or figure."""
