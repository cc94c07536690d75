"""Raw files (downloaded or in the user's folder) -> a Parquet file and a report for each data set.

Images are decoded first, once for all cuts of a data set.
"""


localrules:
    prepare,


# Source files are no input: a changed comment must not decode a large data set again, which takes hours.
rule decode:
    input:
        unpack(inputs_of("images", "dataset")),
    output:
        images="results/{scale}/images/{dataset}.npy",
        listing="results/{scale}/images/{dataset}.parquet",
    log:
        "results/{scale}/logs/decode/{dataset}.log",
    priority: 3
    conda:
        "../../envs/torch.yaml"
    threads: threads_of(8)
    resources:
        mem_mb=lambda wildcards, attempt: 8000 * attempt,
        runtime=lambda wildcards, attempt: 240 * attempt,
    params:
        row=told(data.row_to_decode, "dataset"),
        folder=config.get("data_dir") or "null",
        raw=of(data.raw_folder, "dataset"),
        note=noted("images", "dataset"),
    shell:
        "python -m tailprompt.decode --dataset {input.asked:q} --data-dir {params.folder:q}"
        " --raw {params.raw:q} --out {output.images:q} --threads {threads} > {log:q} 2>&1"
        " && note {input.asked:q} {params.note:q}"


# Pseudo-labels are made from the model's probabilities in `prepare`, so other thresholds annotate nothing again.
rule annotate:
    input:
        unpack(inputs_of("annotated", "dataset")),
    output:
        "results/{scale}/annotated/{dataset}.parquet",
    log:
        "results/{scale}/logs/annotate/{dataset}.log",
    priority: 3
    conda:
        "../../envs/torch.yaml"
    resources:
        device=DEVICE,
        slots=SLOTS,
        gpu=gpus,
        mem_mb=lambda wildcards, attempt: 16000 * attempt,
        runtime=lambda wildcards, attempt: 240 * attempt,
    params:
        row=told(data.row_to_annotate, "dataset"),
        raw=of(data.raw_folder, "dataset"),
        note=noted("annotated", "dataset"),
    shell:
        "python -m tailprompt.annotate --dataset {input.asked:q} --data-dir null --raw {params.raw:q}"
        " --out {output:q} --device {resources.device} --slots {resources.slots} > {log:q} 2>&1"
        " && note {input.asked:q} {params.note:q}"


rule prepare:
    input:
        unpack(inputs_of("data", "dataset")),
    output:
        table="results/{scale}/data/{dataset}.parquet",
        report="results/{scale}/data/{dataset}.json",
    log:
        "results/{scale}/logs/prepare/{dataset}.log",
    priority: 2  # a fault in any data set shows before hours are spent on training
    conda:
        "../../envs/tables.yaml"
    params:
        row=lambda wildcards: told_in(
            f"data/{wildcards.dataset}", told(data.row_to_prepare, "dataset", shown=WHOLE)(wildcards)
        ),
        folder=config.get("data_dir") or "null",
        raw=of(data.raw_folder, "dataset"),
        listing=lambda wildcards, input: option("--listing", input.listing),
        learned=lambda wildcards, input: option("--learned", input.learned),
        parts=lambda wildcards, input: options("--parts", input.parts),
        note=noted("data", "dataset"),
        kept=noted("reports", "dataset"),
    shell:
        "python -m tailprompt.prepare --dataset results/{wildcards.scale:q}/told/data/{wildcards.dataset:q}.json"
        " --data-dir {params.folder:q} --raw {params.raw:q} {params.listing} {params.learned} {params.parts}"
        " --asked {input.asked:q} --out {output.table:q} > {log:q} 2>&1"
        # with --nolock another Snakemake may have removed the report again, and makes it anew
        " && (note {output.report:q} {params.kept:q} || [ ! -e {output.report:q} ])"
        " && note {input.asked:q} {params.note:q}"


rule fetch:
    input:
        expand("results/{scale}/data/{dataset}.parquet", scale=SCALE, dataset=DATASETS),
        expand("results/{scale}/backbones/{backbone}.json", scale=SCALE, backbone=BACKBONES),
