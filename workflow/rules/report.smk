"""Scores -> the papers' tables, claims and figures."""


rule tabulate:
    input:
        runs=runs_of("tables"),
        data=data_of("tables"),
        reported=reported,
        source=code_of("tables", "tabulate", "tables"),
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
        spec=spec_of("tables"),
    shell:
        "python -m tailprompt.tabulate --root results/{wildcards.scale} --spec {params.spec:q}"
        " --out results/{wildcards.scale}/tables/{wildcards.paper}/{wildcards.name} > {log:q} 2>&1"


rule draw:
    input:
        runs=runs_of("figures"),
        data=data_of("figures"),
        reported=shown_beside,
        source=code_of("figures", "draw", "figures"),
    output:
        "results/{scale}/figures/{paper}/{name}.pdf",
        report(
            "results/{scale}/figures/{paper}/{name}.png",
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
        spec=spec_of("figures"),
    shell:
        "python -m tailprompt.draw --root results/{wildcards.scale} --spec {params.spec:q}"
        " --out results/{wildcards.scale}/figures/{wildcards.paper}/{wildcards.name} > {log:q} 2>&1"


rule tables:
    input:
        targets("tables", "tex", "md", "csv", "html"),


rule figures:
    input:
        targets("figures", "pdf", "png"),
