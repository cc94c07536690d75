"""Raw files, downloaded or in the user's folder -> one Parquet and its report a data set."""


localrules:
    prepare,


rule prepare:
    input:
        verbalizer=verbalizer_of,
        files=user_files,
        source=sources("tailprompt.prepare"),
    output:
        table="results/{scale}/data/{dataset}.parquet",
        report="results/{scale}/data/{dataset}.json",
    log:
        "results/{scale}/logs/prepare/{dataset}.log",
    priority: 2  # a fault in any data set shows before hours go into training on another
    conda:
        "../../envs/tables.yaml"
    params:
        row=dataset_json,
        folder=config.get("data_dir") or "null",
        raw=raw_folder,
    shell:
        "python -m tailprompt.prepare --dataset {params.row:q} --data-dir {params.folder:q}"
        " --raw {params.raw:q} --out {output.table:q} > {log:q} 2>&1"


rule fetch:
    input:
        expand("results/{scale}/data/{dataset}.parquet", scale=SCALE, dataset=DATASETS),
        expand("results/{scale}/backbones/{backbone}.json", scale=SCALE, backbone=BACKBONES),
