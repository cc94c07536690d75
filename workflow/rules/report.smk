"""Predictions -> the papers' tables, claims and figures."""

OVERVIEW = shown.overview(config, SHOWN, WHOLE)


# Seconds of one CPU each, which a cluster's queue and its GPUs are not for.
localrules:
    tabulate,
    choices,
    draw,
    overview,


rule tabulate:
    input:
        unpack(shown_inputs("tables", "tex", "md", "csv", "html", search=["yaml"])),
    output:
        "results/{scale}/tables/{paper}/{name}.tex",
        "results/{scale}/tables/{paper}/{name}.md",
        "results/{scale}/tables/{paper}/{name}.csv",
        report(
            "results/{scale}/tables/{paper}/{name}.html",
            caption="../report/table.rst",
            category="{paper}",
            subcategory="Tables",
            labels={"table": "{name}"},
        ),
    log:
        "results/{scale}/logs/tabulate/{paper}/{name}.log",
    conda:
        "../../envs/tables.yaml"
    params:
        spec=told_block("tables"),
    shell:
        "python -m tailprompt.tabulate --root results/{wildcards.scale:q} --spec {input.asked:q}"
        " --out results/{wildcards.scale:q}/tables/{wildcards.paper:q}/{wildcards.name:q} > {log:q} 2>&1"


# What a search chose, for a later command: no run of this one depends on it.
rule choices:
    input:
        table="results/{scale}/tables/{paper}/{name}.csv",
        source=sources("tailprompt.choices"),
    output:
        "results/{scale}/tables/{paper}/{name}.yaml",
    log:
        "results/{scale}/logs/choices/{paper}/{name}.log",
    conda:
        "../../envs/tables.yaml"
    shell:
        "python -m tailprompt.choices --table {input.table:q} --out {output:q} > {log:q} 2>&1"


rule draw:
    input:
        unpack(shown_inputs("figures", "pdf", "png", "html")),
    output:
        "results/{scale}/figures/{paper}/{name}.pdf",
        "results/{scale}/figures/{paper}/{name}.png",
        report(
            "results/{scale}/figures/{paper}/{name}.html",
            caption="../report/figure.rst",
            category="{paper}",
            subcategory="Figures",
            labels={"figure": "{name}"},
        ),
    log:
        "results/{scale}/logs/draw/{paper}/{name}.log",
    conda:
        "../../envs/tables.yaml"
    params:
        spec=told_block("figures"),
    shell:
        "python -m tailprompt.draw --root results/{wildcards.scale:q} --spec {input.asked:q}"
        " --out results/{wildcards.scale:q}/figures/{wildcards.paper:q}/{wildcards.name:q} > {log:q} 2>&1"


# The first page of the report, which workflow/report/workflow.rst takes in.
rule overview:
    input:
        unpack(lambda _: inputs_once("overview", OVERVIEW, ["html"], shown.page_of(OVERVIEW))),
    output:
        report(
            shown.page(SCALE),
            category="Overview",
            labels={"page": "overview"},
        ),
    log:
        f"results/{SCALE}/logs/overview.log",
    conda:
        "../../envs/tables.yaml"
    shell:
        'python -m tailprompt.overview --root "$(dirname {output:q})" --spec {input.asked:q} --out {output:q}'
        " > {log:q} 2>&1"


rule tables:
    input:
        shown.targets(SHOWN, SCALE, "tables", "tex", "md", "csv", "html"),


rule figures:
    input:
        shown.targets(SHOWN, SCALE, "figures", "pdf", "png", "html"),
