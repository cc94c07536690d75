"""Weights: a folder that ships, or a pinned revision in the Hugging Face cache -> a file with their digests."""


localrules:
    backbone,


rule backbone:
    output:
        "results/{scale}/backbones/{backbone}.json",
    log:
        "results/{scale}/logs/backbones/{backbone}.log",
    priority: 1
    conda:
        "../../envs/torch.yaml"
    params:
        row=backbone_json,
    shell:
        "python -m tailprompt.backbones --name {wildcards.backbone:q} --row {params.row:q} --out {output:q}"
        " > {log:q} 2>&1"
