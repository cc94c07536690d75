"""Which runs, data and backbones are what is asked, and stand. There are no rules here."""

RESULTS = Path("results", SCALE)
# hundreds of runs begin from one
start_digest = cache(lambda point: asked.digest_asked(config, point, weights(point.backbone)))
rows_to_be = cache(lambda dataset: standing.rows_to_be(config, dataset))
HERE = standing.Present(weights, rows_to_be)
WRITTEN = "incomplete locks log metadata".split()  # folders in .snakemake
named_here = workflow.modifier.modify_rulename  # who takes these rules as a module may rename them
TRAIN = named_here("train")
# rules that make what training takes
TRAINED_ON = {*map(named_here, "decode annotate prepare collect vocabulary pack pretrain backbone".split())}


@cache
def is_here(point):
    """Whether a run is here as it is asked. Unlike `stands` it writes nothing."""
    return present.run_is_here(config, point, HERE)


prepared = cache(partial(unmade.is_prepared, config, Path(".")))


@cache
def scored():
    """The runs in the table of all scores: without training those that are here with their data."""
    if TRAINS:
        return [point for point in POINTS if not idle(point)]
    return [point for point in POINTS if is_here(point) and prepared(point.dataset)]


SHOWN = unmade.shown_here(config, WHOLE, is_here)
if not TRAINS and workflow.is_main_process:
    refused_as(SystemExit)(check_runs)(RESULTS, [point for point in POINTS if not is_here(point)])
    print(present.said(WHOLE, SHOWN, RESULTS, scored=len(scored()), runs=len(POINTS)), file=sys.stderr)
if workflow.is_main_process and (left := leftover.leftover(config)):
    print(leftover.in_a_line(left), file=sys.stderr)


claimed = cache(held.claim)  # kept open, and so held, to the end


@cache
@refused_as(SystemExit)
def starts_jobs():
    """Whether this process starts jobs itself: it is no dry run and none of the jobs. No other does so here."""
    starts = workflow.is_main_process and workflow.executor_plugin is not None and not workflow.dryrun
    if starts:
        writable.check_writable(Path(".snakemake", name, "of Snakemake") for name in WRITTEN)
    if starts and workflow.execution_settings.lock:
        claimed(RESULTS)
    return starts


@cache
def resolve():
    """Find out which commits the rows call main, before the first job that trains is told of one."""
    if TRAINS and starts_jobs():
        config.update(revisions.resolved(config, [*BACKBONES, *(points.parse(name)[0] for name in DATASETS)]))


@cache
@refused_as(SystemExit)  # an input function's own error would pass for nothing to be done
def run_asked(point):
    """The file that says what a run is asked, and the folder of the run that is that, or None.

    A run that no table takes can be requested by its path.
    """
    resolve()
    settings = SETTINGS.get(point) or check_settings(config, [point])[point]
    wanted = asked.asked(config, point, settings, weights(point.backbone), digest_of=start_digest)
    here, folder, rows = made_here(point), None, rows_to_be(point.dataset)
    if rows is not None and agreement.stands(wanted, point, RESULTS, rows):
        found = either.run_folder(RESULTS, point, lambda: wanted, rows)
        folder = found if start_stands(point, found) else None
    if starts_jobs():
        untrained.clear(here)  # of a Snakemake that was killed
    # of what may stand nothing is to be replaced: the job puts it back if its data and its start turn out the same
    first = start_of(config, point)
    began = not first or stands(first)
    replaced = [] if folder is None and held.may_stand(here, wanted, began=began) else standing.of_run(here)
    return ask(point.path, wanted, replaced, settled=folder == here), folder


def folder_of(point):
    """The folder of a run that is what is asked, or else where it is trained."""
    return run_asked(point)[1] or made_here(point)


def made_here(point):
    """The folder of a run that is trained here."""
    return RESULTS / "runs" / point.path


def start_stands(point, folder):
    """Whether a run has no start, or one that is what is asked; or came in a bundle, in which its start did not."""
    first = start_of(config, point)
    return not first or either.came_alone(folder) or stands(first)


def stands(point):
    """Whether a run is what is asked."""
    return run_asked(point)[1] is not None


def ask(name, wanted, made, *, settled):
    """The file that says what is asked of a job. The main process alone writes it."""
    if not workflow.is_main_process:
        return f"{RESULTS}/asked/{name}.json"
    if not settled:
        refused_as(SystemExit)(writable.check_links)(made)
    apart = not starts_jobs() or f"{RESULTS}/asked/{name}.json" in in_use()
    file = str(standing.ask(RESULTS, name, wanted, made, settled=settled, apart=apart))
    # Snakemake lists a folder once, for one job, and would miss what is written there for the next
    workflow.iocache.exists_local[file] = True
    return file


def check_asked(jobs):
    """Raise WorkflowError if a job would read what is only planned, which another plan may replace meanwhile."""
    planned = Path(RESULTS) / "planned"
    read = [file for job in jobs for file in map(Path, job.input) if file.is_relative_to(planned)]
    if read:
        asked = Path(RESULTS) / "asked" / min(read).relative_to(planned)
        raise WorkflowError(
            f"{asked} belongs to a Snakemake that works here, or was killed; wait for its end, or run snakemake "
            "--unlock if there is none"
        )


def own_times():
    """When each file of data that no job makes was last changed, as far as it is here."""
    files = {Path(file) for dataset in DATASETS for file in data.user_files(config, dataset)}
    own = [file for file in sorted(files) if RESULTS not in file.parents and file.is_file()]
    return {str(file): file.stat().st_mtime_ns for file in own}


@refused_as(SystemExit)
def check_unchanged():
    """Exit with a sentence if what this command read before its jobs is otherwise now: choices, files of data."""
    if changed := [file for file, was in GIVEN.items() if read_given(file) != was]:
        raise BadInput(
            f"{known(changed)} has other choices now than when this command began; run the same command "
            "again, which makes what depends on them"
        )
    now = own_times()
    if changed := [file for file, was in BEGUN.items() if now.get(file) != was]:
        raise BadInput(
            f"{known(changed)} has changed since this command began; run the same command again, which makes "
            "anew what depends on it"
        )


@cache
@refused_as(SystemExit)
def outdated():
    """The files of choices whose search no longer stands, nor is made by this command."""
    targets = workflow.dag_settings.targets
    if not targets or {*map(named_here, ("all", "tables"))} & {*targets}:
        targets = {*targets, *shown.targets(SHOWN, SCALE, "tables")}
    made_now = {Path(target).resolve() for target in targets}
    files = [file for file in GIVEN if Path(file).resolve() not in made_now]
    return searches.outdated(config, WHOLE, SHOWN, files, HERE)


@refused_as(SystemExit)
def check_followed(runs):
    """Exit with a sentence if one of these runs follows choices of a search that no longer stands."""
    for file in outdated() if GIVEN and workflow.is_main_process else ():
        if any(searches.follows(config, points.Point.at(run), GIVEN[file]) for run in runs):
            raise BadInput(searches.refusal(file))


@refused_as(SystemExit)
def check_times(jobs):
    """Exit with a sentence if a file that a job reads is of the future."""
    future.check_times({Path(file) for job in jobs for file in job.input}, RESULTS)


@refused_as(SystemExit)
def check_writable(jobs):
    """Exit with a sentence if a file cannot be written that a job writes, with its log and its notes."""
    noted = [job.params.get(name) for job in jobs for name in ("note", "kept")]
    files = [*filter(None, noted), *(file for job in jobs for file in (*job.output, *job.log))]
    writable.check_writable(map(Path, files))


def run_inputs(wildcards):
    """The inputs of training. A newer input does not retrain a run that already is what is asked.

    Unless it is forced: Snakemake forgets that where a job before it runs and the inputs are ancient.
    """
    point = points.Point.at(wildcards.point)
    check_followed([point.path])
    file, folder = run_asked(point)
    check_trains(point, folder)
    files = runs.to_train(config, point) | {"asked": file}
    settled = folder == made_here(point) and not is_forced(point)
    if not settled and workflow.is_main_process:
        refused_as(SystemExit)(check_runs)(RESULTS, [] if is_forced(point) else [point])
        refused_as(SystemExit)(left_open.check)(config, point, HERE)
    return unless(settled, files | {"start": kept(files["start"])})


@refused_as(SystemExit)
def check_trains(point, folder):
    """Exit with a sentence if a command would train a run under `train: false`, as by its path."""
    if workflow.is_main_process and not TRAINS and (forces(point) or folder != made_here(point)):
        raise BadInput(f"train: false, and {made_here(point)} would be trained; leave train out to train it")


def inputs_of(kind, of):
    """wildcards -> the inputs of a job that makes data or a backbone, which the wildcard `of` names.

    Newer inputs make nothing again of what is as it is asked. What another job made does.
    """

    def files(wildcards):
        asked, settled = kind_asked(kind, getattr(wildcards, of))
        taken = standing.KINDS[kind].takes(config, getattr(wildcards, of))
        others = {name: taken.pop(name) for name in ("listing", "parts") if name in taken}
        as_they_are = not (workflow.dag_settings.forceall or workflow.dag_settings.forcerun)
        return unless(settled, taken | {"asked": asked}, as_they_are) | others

    return files


@cache
@refused_as(SystemExit)
def kind_asked(kind, name):
    """The file that says what is asked of a job that makes data or a backbone, and whether it made that."""
    resolve()
    if kind == "data":
        rows_to_be(name)  # which reads the file that is written below
    wanted = (
        standing.to_prepare(config, name, WHOLE) if kind == "data" else standing.wanted(config, kind, name)
    )
    made = standing.outputs(config, kind, name)
    settled = standing.same(made, wanted, Path(standing.note(config, kind, name)))
    recipe = config["backbones"][name].get("recipe") if kind == "backbones" else None
    if recipe:  # what is said of a checkpoint is said of the one that stands
        settled = settled and kind_asked("checkpoint", recipe)[1]
    return ask(f"{kind}/{name}", wanted, made, settled=settled), settled


@refused_as(SystemExit)
def scores_inputs(_):
    """The inputs of the table of all scores. Snakemake would delete the old one before a job without any run."""
    if not (runs := sorted(point.path for point in scored())):
        raise BadInput(
            f"{RESULTS}/scores.parquet: no run that is asked is here with its data, so there is none to score"
        )
    of = {
        "runs": runs,
        "data": sorted({point.dataset for point in scored()}),
        "files": sources("tailprompt.score"),
    }
    return inputs_once("scores", {"runs": runs}, ["parquet"], of)


def shown_inputs(what, *endings, **of_kind):
    """wildcards -> the inputs of a table or figure, as `inputs_once` has them.

    of_kind: endings of what other jobs make of it, by its kind. A damaged one is made anew with it; one that is
    not there is nothing that this job makes.
    """

    @refused_as(SystemExit)
    def files(wildcards):
        spec = shown.block(SHOWN, what, wildcards.paper, wildcards.name, WHOLE)
        key = (what, wildcards.paper, wildcards.name)
        name = "/".join(key)
        others = of_kind.get(spec["kind"], ())
        there = [ending for ending in others if Path(f"{RESULTS}/{name}.{ending}").is_file()]
        return inputs_once(name, spec, (*endings, *there), shown.made_of(key, spec))

    return files


@refused_as(SystemExit)
def inputs_once(name, spec, endings, of):
    """The inputs of a job that makes files of one name, which are settled if those stand (`plan.unmade`).

    of: what they are made of (`plan.made_of`).
    """
    check_followed(of["runs"])
    wanted = unmade.asked(spec, of)
    files = [RESULTS / f"{name}.{ending}" for ending in endings]
    stand = unmade.stands(files, wanted, RESULTS, folder_of=folder_of)
    inputs = {
        "asked": ask(name, wanted, files, settled=stand),
        "runs": kept([predictions(points.Point.at(run)) for run in of["runs"]]),
        "data": [report_of(dataset) for dataset in of["data"]],
        "files": of["files"],
    }
    return settled(inputs) if stand else inputs


def noted(kind, of):
    """wildcards -> where a job leaves a copy of what it was asked."""
    return lambda wildcards: standing.note(config, kind, getattr(wildcards, of))


@cache  # a run is in several tables
def predictions(point):
    """The predictions of a run, where they are if the run is what is asked; None for what shall not be trained."""
    if not TRAINS and not is_here(point):
        return None
    folder = made_here(point) if is_forced(point) else folder_of(point)  # a bundle may have brought it
    return f"{folder}/predictions.parquet"


def all_predictions(_):
    """The predictions of all runs of the scale, but for starts that are not here and that no run needs."""
    return kept(filter(None, [predictions(point) for point in POINTS if not idle(point)]))


def damaged(_):
    """The damaged files of data and backbones, which runs that stand do not take, and the next run would meet.

    All of them if a rule is forced that makes what training takes.
    """
    forced = workflow.dag_settings.forcerun & TRAINED_ON
    found = standing.made_for_runs if forced else standing.damaged
    return [*map(str, found(config, DATASETS, BACKBONES))] if TRAINS else []


@cache
def followers():
    """Start -> the runs of the scale that begin from it."""
    return starts.followers(config, POINTS)


def alone(wildcards):
    """1 for a run whose weights nothing takes: no run begins from it, and no command names its files; else 0."""
    point = points.Point.at(wildcards.point)
    named = workflow.is_main_process and point in requested()
    return int(not (point in followers() or named or is_forced(point)))


@cache
def requested():
    """The runs whose files this command asks for by their paths, and their starts."""
    return {*runs.requested(config, workflow.dag_settings.targets)}


def clear_untrained(jobs):
    """Remove what stood in for runs that a bundle brought, and that turned out to stand."""
    for job in jobs:
        if job.rule.name == TRAIN:
            untrained.clear(made_here(points.Point.at(job.wildcards.point)))


def idle(point):
    """Whether no run needs a run, as all that begin from it came in a bundle without it, and stand."""
    return starts.idle(point, TAKEN, followers(), came_alone)


def came_alone(point):
    """Whether a run stands that a bundle brought without its start."""
    return bool(folder := run_asked(point)[1]) and either.came_alone(folder)


def kept(files):
    """Files of runs. A run that stands is no job, whatever Snakemake remembers of it, unless it is forced."""
    return [before_update(file) if file in standing_files() else file for file in files]


def forget_forced(jobs):
    """Give up what is kept of the finished runs that jobs will train because they are forced."""
    for job in jobs:
        if job.rule.name == TRAIN and is_forced(points.Point.at(job.wildcards.point)):
            held.forget(RESULTS / "runs" / job.wildcards.point)


def is_forced(point):
    """Whether a run is trained though it may stand: training, or a file of the run or of a start of it, is forced."""
    any_forced = workflow.dag_settings.forcerun
    return TRAINS and (forces(point) or bool(any_forced) and forces(*starts_of(config, point)))


def forces(*points):
    """Whether this command forces training, or a file of one of these runs."""
    dag = workflow.dag_settings
    return dag.forceall or TRAIN in dag.forcerun or not {*points}.isdisjoint(runs.named(config, dag.forcerun))


@cache
def standing_files():
    """The files that other jobs take of runs that stand and are not forced."""
    standing = {point: run_asked(point)[1] for point in {*POINTS, *requested()} if not is_forced(point)}
    return {file for folder in standing.values() if folder for file in runs.taken(folder)}
