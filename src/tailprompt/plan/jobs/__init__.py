"""What each kind of job takes and is told: of a data set, a recipe, a run, a table or figure."""
