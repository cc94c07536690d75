"""Backbones: a folder that ships, a pinned revision in the Hugging Face cache, or made here from raw data.

Rule `backbones` makes the recipes of `pretraining` whose corpora the scale names: raw data -> vocabulary -> packed
arrays -> checkpoint -> model card.
"""

SHARDED = "|".join(recipes.sharded(config))  # for a wildcard


localrules:
    backbone,
    backbones,
    card,


rule backbone:
    input:
        unpack(inputs_of("backbones", "backbone")),
    output:
        "results/{scale}/backbones/{backbone}.json",
    log:
        "results/{scale}/logs/backbones/{backbone}.log",
    priority: 1
    conda:
        "../../envs/torch.yaml"
    params:
        row=told(rows.backbone_row, "backbone"),
        note=noted("backbones", "backbone"),
    shell:
        "python -m tailprompt.backbones --name {wildcards.backbone:q} --row {input.asked:q} --out {output:q}"
        " > {log:q} 2>&1"
        " && note {input.asked:q} {params.note:q}"


rule backbones:
    input:
        expand("results/{scale}/pretraining/{recipe}/README.md", scale=SCALE, recipe=recipes.to_make(config)),


rule collect:
    input:
        unpack(inputs_of("collected", "corpus")),
    output:
        text="results/{scale}/corpora/{corpus}.txt.gz",
        counts="results/{scale}/corpora/{corpus}.json",
    log:
        "results/{scale}/logs/collect/{corpus}.log",
    conda:
        "../../envs/torch.yaml"
    params:
        row=told(recipes.article_row, "corpus"),
        note=noted("collected", "corpus"),
    shell:
        "python -m tailprompt.collect --row {input.asked:q} --repository {input.repository:q} --out {output.text:q}"
        " > {log:q} 2>&1"
        " && note {input.asked:q} {params.note:q}"


rule vocabulary:
    input:
        unpack(inputs_of("vocabulary", "recipe")),
    output:
        tokenizer="results/{scale}/pretraining/{recipe}/vocabulary/tokenizer.json",
        config="results/{scale}/pretraining/{recipe}/vocabulary/tokenizer_config.json",
    log:
        "results/{scale}/logs/vocabulary/{recipe}.log",
    conda:
        "../../envs/torch.yaml"
    params:
        recipe=told(recipes.part, "recipe", keys=recipes.LEARNED),
        note=noted("vocabulary", "recipe"),
    shell:
        "python -m tailprompt.vocabulary --recipe {input.asked:q} --corpus {input.corpus:q}"
        ' --out "$(dirname {output.tokenizer:q})" > {log:q} 2>&1'
        " && note {input.asked:q} {params.note:q}"


rule pack:
    input:
        unpack(inputs_of("packed", "recipe")),
    output:
        directory("results/{scale}/pretraining/{recipe}/packed"),
    log:
        "results/{scale}/logs/pack/{recipe}.log",
    conda:
        "../../envs/torch.yaml"
    params:
        recipe=told(recipes.part, "recipe", keys=recipes.PACKED),
        tokenizer=lambda wildcards, input: folder_option("--tokenizer", input.tokenizer),
        note=noted("packed", "recipe"),
    shell:
        "python -m tailprompt.pack --recipe {input.asked:q} --data {input.data:q} {params.tokenizer}"
        " --out {output:q} > {log:q} 2>&1"
        " && note {input.asked:q} {params.note:q}"


rule pretrain:
    input:
        unpack(inputs_of("checkpoint", "recipe")),
    output:
        model="results/{scale}/pretraining/{recipe}/model.safetensors",
        config="results/{scale}/pretraining/{recipe}/config.json",
        curve="results/{scale}/pretraining/{recipe}/curve.csv",
        about="results/{scale}/pretraining/{recipe}/pretraining.json",
    log:
        "results/{scale}/logs/pretrain/{recipe}.log",
    benchmark:
        "results/{scale}/benchmarks/pretrain/{recipe}.tsv"
    wildcard_constraints:
        recipe=rf"(?!(?:{SHARDED})[/.])[^/]+",
    conda:
        "../../envs/torch.yaml"
    threads: threads_of(config["threads"])
    resources:
        device=DEVICE,
        slots=SLOTS,
        gpu=gpus,
        mem_mb=lambda wildcards, attempt: 16000 * attempt,
        runtime=lambda wildcards, attempt: 240 * attempt,
    params:
        recipe=told(recipes.part, "recipe"),
        tokenizer=lambda wildcards, input: folder_option("--tokenizer", input.tokenizer),
        start=lambda wildcards, input: folder_option("--start", input.start),
        note=noted("checkpoint", "recipe"),
    shell:
        "python -m tailprompt.pretrain --name {wildcards.recipe:q} --recipe {input.asked:q}"
        ' --packed {input.packed:q} {params.tokenizer} {params.start} --out "$(dirname {output.model:q})"'
        " --device {resources.device} --slots {resources.slots} --threads {threads} > {log:q} 2>&1"
        " && note {input.asked:q} {params.note:q}"


use rule pretrain as pretrain_shards with:
    output:
        model="results/{scale}/pretraining/{recipe}/model.safetensors.index.json",
        config="results/{scale}/pretraining/{recipe}/config.json",
        curve="results/{scale}/pretraining/{recipe}/curve.csv",
        about="results/{scale}/pretraining/{recipe}/pretraining.json",
    wildcard_constraints:
        recipe=SHARDED or "(?!)",


rule card:
    input:
        about="results/{scale}/pretraining/{recipe}/pretraining.json",
        source=sources("tailprompt.card"),
    output:
        "results/{scale}/pretraining/{recipe}/README.md",
    log:
        "results/{scale}/logs/card/{recipe}.log",
    conda:
        "../../envs/tables.yaml"
    params:
        texts=told(recipes.card_texts, "recipe"),
    shell:
        "python -m tailprompt.card --about {input.about:q} --texts {params.texts:q} --out {output:q}"
        " > {log:q} 2>&1"
