"""tailprompt: from public data to the tables, figures and claims of four prompt-tuning papers.

`snakemake --cores 2 --configfile config/demo.yaml` makes everything of a scale, in results/<scale>. Without
--configfile the scale is config/paper.yaml. Single targets: tables, figures, runs, scores, fetch.
"""

import atexit
import gc
import sys

from snakemake.logging import logger
from snakemake.utils import min_version

min_version("9.25")
HOME = str(workflow.current_basedir)  # not that of a workflow that takes this one as a module
sys.path.insert(0, f"{HOME}/src")
# A plan is millions of objects that stay. To look for garbage among them took a tenth of its time, and as much at exit.
gc.disable()
atexit.register(gc.freeze)


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/standing.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/backbones.smk"
include: "workflow/rules/runs.smk"
include: "workflow/rules/report.smk"


PLANNED = []  # the jobs of this command
FAILED = {}  # job -> its log, and why it failed
BEGUN = {}  # file of data -> when it was last changed before the first job
logger.addFilter(lambda record: note_failed(FAILED, record))


localrules:
    all,
    tables,
    figures,
    fetch,
    runs,


onstart:
    gc.freeze()  # what was planned is no garbage
    gc.enable()
    PLANNED.extend(jobs := [*workflow.dag.needrun_jobs()])
    check_asked(jobs)
    check_times(jobs)
    BEGUN.update(own_times())
    check_writable(jobs)
    if not workflow.touch:
        forget_forced(jobs)  # else what a killed driver's jobs finished is not trained again
    if GPUS and SLOTS > 1:
        refused_as(SystemExit)(share)()


onsuccess:
    unshare()
    clear_untrained(PLANNED)
    check_unchanged()


onerror:
    unshare()
    clear_untrained(PLANNED)
    # at the very end, below what Snakemake says itself
    atexit.register(lambda: print(last_words(FAILED.values()), file=sys.stderr))


rule all:
    default_target: True
    input:
        rules.runs.input,
        rules.tables.input,
        rules.figures.input,
        rules.overview.output,


wildcard_constraints:
    scale=SCALE,
    backbone="[^/]+",
    dataset="[^/]+",
    point=r"[^/]+/[^/]+/[^/]+/[^/]+/(?:0|[1-9]\d{0,9})",
    paper="[^/]+",
