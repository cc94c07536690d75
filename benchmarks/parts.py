"""What is compared: each part is a job and the systems that train it. Another comparison is another row."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.bare import bare
from benchmarks.images import LPT_1, LPT_2, PROBE, VIT_BASE, VPT, vit
from benchmarks.job import Job
from benchmarks.ours import ours
from benchmarks.plain import plain
from benchmarks.texts import BERT_BASE, BERT_MINI, CMID, IFLYTEK, PPT, R52, T5_BASE, bert, t5
from benchmarks.trainer import trainer

System = Callable[..., str | None]  # (job, device, watch) -> what is to be told beside the numbers
Part = tuple[Callable[..., Job], dict[str, System]]

OURS = {
    "ours, eager": partial(ours, capture=False),
    "ours, captured": ours,
}
BARE = {"bare step, captured": bare}
COMPILED = {"ours, captured, blocks compiled": partial(ours, compiled=True)}
TRAINER = {"Trainer": trainer}
AUTHORS = {"authors' protocol": partial(plain, half=False)}
AMP = {"plain loop, AMP": partial(plain, half=True)}
FULL = {**OURS, **BARE, **TRAINER, **AUTHORS}
PROMPTS = {**OURS, **COMPILED, **BARE, **AMP, **AUTHORS}
BASELINES = (*TRAINER, "peft in Trainer", *AMP)  # what others are divided by; a part has one of them


def peft(adapter: str) -> dict[str, System]:
    """An adapter of peft in Trainer."""
    return {"peft in Trainer": partial(trainer, adapter=adapter)}


PARTS: dict[str, Part] = {
    "bert-base CMID": (partial(bert, BERT_BASE, CMID), FULL),
    "bert-base R52": (partial(bert, BERT_BASE, R52), FULL),
    "bert-base IFLYTEK": (partial(bert, BERT_BASE, IFLYTEK), FULL),
    "bert-mini CMID": (partial(bert, BERT_MINI, CMID), FULL),
    "bert-mini R52": (partial(bert, BERT_MINI, R52), FULL),
    "t5-base prompt": (partial(t5, T5_BASE, PPT), {**OURS, **BARE, **peft("prompt")}),
    "bert-base R52 prefix": (partial(bert, BERT_BASE, R52, passes=4, lr=1e-3), peft("prefix")),
    "bert-base R52 LoRA": (partial(bert, BERT_BASE, R52, passes=4, lr=1e-3), peft("lora")),
    "VPT-deep": (partial(vit, VIT_BASE, VPT), PROMPTS),
    "LPT phase 1": (partial(vit, VIT_BASE, LPT_1), PROMPTS),
    "LPT phase 2": (partial(vit, VIT_BASE, LPT_2), PROMPTS),
    "linear probe": (partial(vit, VIT_BASE, PROBE, repeats=True), {**OURS, **AMP}),
    "VPT-deep with views": (partial(vit, VIT_BASE, VPT, views=True), OURS),
    "VPT-deep with views from a file": (partial(vit, VIT_BASE, VPT, views=True, room=0), OURS),
}
