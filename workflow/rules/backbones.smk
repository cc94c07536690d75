"""Weights: a folder that ships, or a pinned revision in the Hugging Face cache -> a file with their digests."""


localrules:
    backbone,


rule backbone:
    output:
        "results/backbones/{backbone}.json",
    params:
        row=backbone_json,
    log:
        "results/backbones/{backbone}.log",
    conda:
        "../../envs/torch.yaml"
    priority: 1
    shell:
        "python -m tailprompt.backbones --name {wildcards.backbone:q} --row {params.row:q} --out {output:q}"
        " > {log:q} 2>&1"
