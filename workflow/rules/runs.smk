"""A point -> its trained tensors and predictions; all scores of a scale in one table."""


rule train:
    input:
        unpack(run_inputs),
    output:
        "results/{scale}/runs/{protocol}/{backbone}/{dataset}/{method}/{seed}/weights.safetensors",
        "results/{scale}/runs/{protocol}/{backbone}/{dataset}/{method}/{seed}/predictions.parquet",
        "results/{scale}/runs/{protocol}/{backbone}/{dataset}/{method}/{seed}/features.parquet",
        "results/{scale}/runs/{protocol}/{backbone}/{dataset}/{method}/{seed}/curve.csv",
        "results/{scale}/runs/{protocol}/{backbone}/{dataset}/{method}/{seed}/run.json",
    log:
        "results/{scale}/logs/train/{protocol}/{backbone}/{dataset}/{method}/{seed}.log",
    conda:
        "../../envs/torch.yaml"
    threads: config["threads"]
    resources:
        device=DEVICE,  # a resource and no setting, so that another device re-runs nothing
        slots=SLOTS,
        gpu=gpus,
        cards=cards_of,
        nodes=1,  # on a cluster, which could give each GPU on another node
        mem_mb=host_mb,
        runtime=lambda wildcards, attempt: 240 * attempt,
    params:
        start=lambda wildcards, input: folder_option("--start", input.start),
    shell:
        "python -m tailprompt.train --root results/{wildcards.scale}"
        " --point {wildcards.protocol:q}/{wildcards.backbone:q}/{wildcards.dataset:q}/{wildcards.method:q}/{wildcards.seed}"
        " --asked {input.asked:q} {params.start}"
        " --device {resources.device} --slots {resources.slots} --cards {resources.cards} --threads {threads} > {log:q} 2>&1"


rule runs:
    input:
        PREDICTIONS,


# For people: tables and figures compute the scores that they show.
rule scores:
    input:
        runs=PREDICTIONS,
        data=[report_of(dataset) for dataset in DATASETS],
        source=sources("tailprompt.score"),
    output:
        f"results/{SCALE}/scores.parquet",
    log:
        f"results/{SCALE}/logs/scores.log",
    conda:
        "../../envs/tables.yaml"
    shell:
        'python -m tailprompt.score --collect "$(dirname {output:q})" > {log:q} 2>&1'
