"""Which runs are what is asked, and stand. There are no rules here."""


def run_inputs(wildcards):
    """The inputs of training. A newer input does not retrain a run that already is what is asked."""
    point = points.Point.at(wildcards.point)
    files = runs.to_train(config, point)
    return unless(stands(point), files | {"start": kept(files["start"])})


@cache
def stands(point):
    """Whether a run is what is asked. A run that no table takes can be requested by its path."""
    settings = SETTINGS.get(point) or check_settings(config, [point])[point]
    return runs.stands(config, point, settings, weights(point.backbone), write=workflow.is_main_process)


def predictions(point):
    """The predictions of a run, where they are if the run is what is asked."""
    return runs.predictions(SCALE, point, settled=stands(point))


def all_predictions(_):
    """The predictions of all runs of the scale."""
    return kept([predictions(point) for point in POINTS])


def kept(files):
    """Files of runs. A run that stands is no job, whatever Snakemake remembers of it, unless jobs are forced."""
    forced = workflow.dag_settings.forceall or workflow.dag_settings.forcerun
    return [before_update(file) if file in STANDING and not forced else file for file in files]


def forget_finished():
    """Give up what is kept of finished runs, for a command that forces jobs."""
    for point in POINTS:
        held.forget(Path("results", SCALE, "runs", point.path))


with refused_as(SystemExit):  # an input function's own error would pass for nothing to be done
    STANDING = {file for point in POINTS if stands(point) for file in runs.taken(SCALE, point)}
    for point in runs.requested(config, sys.argv):
        stands(point)  # what it is asked must be written before Snakemake looks what is there
