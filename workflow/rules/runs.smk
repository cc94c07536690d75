"""A point -> its trained tensors and predictions; all scores of a scale in one table."""


localrules:
    score,
    scores,


rule train:
    input:
        unpack(run_inputs),
    output:
        "results/{scale}/runs/{point}/weights.safetensors",
        "results/{scale}/runs/{point}/predictions.parquet",
        "results/{scale}/runs/{point}/features.parquet",
        "results/{scale}/runs/{point}/curve.csv",
        "results/{scale}/runs/{point}/run.json",
    log:
        "results/{scale}/logs/train/{point}.log",
    conda:
        "../../envs/torch.yaml"
    threads: threads_of(config["threads"])
    resources:
        device=DEVICE,  # a resource and no setting, so that another device re-runs nothing
        slots=SLOTS,
        gpu=gpus,
        cards=of(runs.cards, "point"),
        alone=alone,
        nodes=1,  # on a cluster, which could give each GPU on another node
        mem_mb=lambda wildcards, attempt: runs.host_mb(config, wildcards.point) * attempt,
        runtime=lambda wildcards, attempt: 240 * attempt,
    shell:
        "python -m tailprompt.train --root results/{wildcards.scale:q}"
        " --point {wildcards.point:q}"
        " --asked {input.asked:q}"
        " --device {resources.device} --slots {resources.slots} --cards {resources.cards} --alone {resources.alone} --threads {threads} > {log:q} 2>&1"


rule runs:
    input:
        all_predictions,
        damaged,


# For people: tables and figures compute the scores that they show.
rule score:
    input:
        unpack(scores_inputs),
    output:
        f"results/{SCALE}/scores.parquet",
    log:
        f"results/{SCALE}/logs/scores.log",
    conda:
        "../../envs/tables.yaml"
    shell:
        'python -m tailprompt.score --collect "$(dirname {output:q})" --asked {input.asked:q} > {log:q} 2>&1'


rule scores:
    input:
        lambda _: rules.score.output if scored() else [],
