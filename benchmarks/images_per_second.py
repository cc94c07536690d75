"""Training speed of prompts in a ViT: VPT-deep and both phases of LPT, ours beside plain loops, in one run.

The plain loops use timm in the obvious way: prompts are appended to the tokens before each block and dropped
after it, and phase 2 runs the whole network twice (as LPT's released code does). Weights are random and the
images of a step are already on the device, so that only arithmetic is timed. Turns alternate, and medians are
printed. `--pipeline` then times how images are made from stored ones.

    PYTHONPATH=src python benchmarks/images_per_second.py --device cuda --compile blocks body --pipeline

On a CPU something small: `--model vit_tiny_patch16_224 --size 32 --batch 8 --seconds 1`.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import timm
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tailprompt.components.heads import CosinePredictor, LinearPredictor, Predictor
from tailprompt.components.inputs import Pixels
from tailprompt.components.losses import AsymmetricGclAsReleased
from tailprompt.components.resolve import values
from tailprompt.components.run import Run
from tailprompt.components.tuners import Beside, GroupPrompts, Prompts
from tailprompt.inputs import images
from tailprompt.model.backbones import VisionBackbone
from tailprompt.model.compose import compose
from tailprompt.train import repeatable
from tailprompt.training.losses import asymmetric_gcl_as_released

COSINE = Predictor(dropout=0.1, predictor=CosinePredictor())
METHODS = {  # tuner and head
    "VPT-deep": (Prompts(beside=Beside()), Predictor(dropout=0.1, predictor=LinearPredictor())),
    "LPT phase 1": (Prompts(beside=Beside()), COSINE),
    "LPT phase 2": (GroupPrompts(beside=Beside()), COSINE),
}
MEAN = STD = (0.5, 0.5, 0.5)
SIDE = 256  # pixels of the images that --pipeline reads


class Plain(nn.Module):
    """The same parameters through whole timm blocks."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def class_token(self, pixels: Tensor, prompts: list[Tensor]) -> Tensor:
        vit = self.model.body.pretrained
        tokens = vit._pos_embed(vit.patch_embed(pixels))
        count = tokens.shape[1]
        for layer, more in zip(vit.blocks, prompts, strict=True):
            tokens = layer(torch.cat([tokens, more.expand(len(tokens), -1, -1)], 1))[:, :count]
        return vit.norm(tokens)[:, 0]

    def forward(self, batch: dict[str, Tensor]) -> Tensor | tuple[Tensor, Tensor]:
        body, head, pixels = self.model.body, self.model.head, batch["pixels"]
        shared = list(body.prompts)
        if body.groups is None:
            return head.logits(head.features(self.class_token(pixels, shared)))
        with torch.no_grad():
            query = self.class_token(pixels, shared)
        near, chosen = F.cosine_similarity(query[:, None], body.groups.keys, dim=-1).topk(body.groups.chosen)
        groups, first = body.groups.pool[chosen].mean(1), body.groups.shared_blocks
        for i in range(groups.shape[1]):
            own = shared[first + i].expand(len(pixels), -1, -1)
            shared[first + i] = torch.cat([own, groups[:, i]], 1)
        return head.logits(head.features(self.class_token(pixels, shared))), 1 - near.mean(-1)


def model_of(options: argparse.Namespace, method: str) -> nn.Module:
    """A method's model with random weights."""
    torch.manual_seed(0)
    vit = timm.create_model(options.model, num_classes=0, img_size=options.size)
    backbone = VisionBackbone(vit, vit.embed_dim, len(vit.blocks), options.size, MEAN, STD, tokens=1)
    tuner, head = METHODS[method]
    run = Run(input=Pixels(), tuner=tuner, head=head, select="last", start={"method": "phase 1"})
    return compose(backbone, run, words=[[]] * options.classes).to(options.device).train()


def compiled(model: nn.Module, how: str) -> nn.Module:
    """The model with its block compiled, or its body as a whole."""
    {"blocks": model.body.compile_blocks, "body": model.body.compile}[how]()
    return model


def stepper(model: nn.Module, options: argparse.Namespace, half: bool) -> Callable[[dict, Tensor], None]:
    """One optimiser step on a batch."""
    learned = [value for value in model.parameters() if value.requires_grad]
    rule = torch.optim.SGD(learned, lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True)
    counts = torch.logspace(2.7, 0.7, options.classes, device=options.device)
    told = values(AsymmetricGclAsReleased())
    loss = partial(asymmetric_gcl_as_released, counts=counts, scale=COSINE.predictor.logit_scale, **told)

    def step(batch: dict[str, Tensor], labels: Tensor) -> None:
        with torch.autocast(options.device.type, torch.bfloat16, enabled=half):
            outputs = model(batch)
        logits, match = outputs if isinstance(outputs, tuple) else (outputs, 0.0)
        (loss(logits.float(), labels) + match).mean().backward()
        rule.step()
        rule.zero_grad(set_to_none=True)

    return step


def systems(options: argparse.Namespace, method: str) -> dict[str, Callable]:
    """Name -> training step of each system, the plain float32 one first."""
    build = partial(model_of, options, method)
    made = {
        "plain, float32": stepper(Plain(build()), options, half=False),
        "plain, AMP": stepper(Plain(build()), options, half=True),
        "ours, float32": stepper(build(), options, half=False),
        "ours, AMP": stepper(build(), options, half=True),
    }
    for how in options.compile:
        name = f"ours, AMP, {how} compiled"
        made[name] = stepper(compiled(build(), how), options, half=True)
    return made


def images_per_second(
    work: Callable[[], None], count: int, seconds: float, device: torch.device
) -> tuple[float, float]:
    """Images a second of a call that handles `count`, and its peak memory in GiB (0 on a CPU)."""
    synchronize(device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    begun, calls = time.perf_counter(), 0
    while not calls or time.perf_counter() - begun < seconds:
        work()
        calls += 1
        if not calls % 5:
            synchronize(device)  # else calls would pile up beyond the time
    synchronize(device)
    peak = torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else 0.0
    return calls * count / (time.perf_counter() - begun), peak


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def table(options: argparse.Namespace, method: str) -> pd.DataFrame:
    """The median speed of each system of a method over the turns, and its ratios to the two plain ones."""
    batch = {"pixels": torch.randn(options.batch, 3, options.size, options.size, device=options.device)}
    labels = torch.randint(options.classes, (options.batch,), device=options.device)
    works = {name: partial(step, batch, labels) for name, step in systems(options, method).items()}
    first = {name: timed(work, options.device) for name, work in works.items()}
    turns = {name: [] for name in works}
    for _ in range(options.turns):
        for name, work in works.items():
            turns[name].append(images_per_second(work, options.batch, options.seconds, options.device))
    speed = pd.Series({name: statistics.median(pair[0] for pair in pairs) for name, pairs in turns.items()})
    return pd.DataFrame(
        {
            "images/s": speed.round(1),
            "to plain float32": (speed / speed["plain, float32"]).round(2),
            "to plain AMP": (speed / speed["plain, AMP"]).round(2),
            "peak GiB": {name: round(max(pair[1] for pair in pairs), 2) for name, pairs in turns.items()},
            "first 3 steps, s": pd.Series(first).round(1),
        }
    )


def timed(work: Callable[[], None], device: torch.device) -> float:
    """Seconds of three calls, the first of which may compile."""
    begun = time.perf_counter()
    for _ in range(3):
        work()
    synchronize(device)
    return time.perf_counter() - begun


def pipeline(options: argparse.Namespace) -> pd.DataFrame:
    """Images a second from stored uint8 to augmented views on the device, alone and while VPT trains."""
    made = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npy"
        shape = (options.stored, SIDE, SIDE, 3)
        np.save(path, np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8))
        every = range(options.stored)
        rows = pd.DataFrame({"id": [str(i) for i in every], "label": 0, "image": every})
        stored = images.image_examples(
            path,
            rows,
            training=True,
            size=options.size,
            mean=MEAN,
            std=STD,
            augment="resized_crop",
            crop_scale=0.08,
            flip=True,
            mixup=0.0,
        )
        train = stepper(model_with(options), options, half=True)
        for place, room in (("on the device", None), ("in a mapped file", 0)):
            source = Batches(stored.to(options.device, room=room), options.batch)
            for name, use in (("views alone", lambda *_: None), ("views and training", train)):
                work = partial(source.feed, use)
                timed(work, options.device)
                made[f"{name}, {place}"] = images_per_second(
                    work, options.batch, options.seconds, options.device
                )[0]
    return pd.DataFrame({"images/s": pd.Series(made).round(1)})


def model_with(options: argparse.Namespace) -> nn.Module:
    """VPT-deep, compiled as the last value of --compile says."""
    model = model_of(options, "VPT-deep")
    return compiled(model, options.compile[-1]) if options.compile else model


class Batches:
    """Random batches of stored images; as in the loop, the next is requested while one is used."""

    def __init__(self, stored: images.Images, batch: int):
        self.stored, self.batch = stored, batch
        self.next = self.ask()

    def ask(self) -> Tensor:
        rows = torch.randint(len(self.stored), (self.batch,))
        self.stored.expect(rows)
        return rows

    def feed(self, use: Callable[[dict, Tensor], None]) -> None:
        rows, self.next = self.next, self.ask()
        use(*self.stored.batch(rows))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", type=torch.device, default="cpu")
    parser.add_argument("--model", default="vit_base_patch16_224", help="a ViT of timm")
    parser.add_argument("--size", type=int, default=224, help="pixels a side")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=5, help="of each turn of each system")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--compile", nargs="*", default=[], choices=["blocks", "body"])
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--pipeline", action="store_true", help="time the input too")
    parser.add_argument("--stored", type=int, default=4096, help="images that --pipeline makes and reads")
    parser.add_argument("--deterministic", action="store_true", help="as runs of the workflow are trained")
    options = parser.parse_args()
    if options.deterministic:
        repeatable(torch.get_num_threads())
    where = torch.cuda.get_device_name() if options.device.type == "cuda" else platform.machine()
    print(f"{options.model}, {options.size} px, batch {options.batch}, torch {torch.__version__}, {where}")
    for method in options.methods:
        print(f"\n{method}\n{table(options, method).to_string()}", flush=True)
    if options.pipeline:
        print(f"\ninput from uint8 of {SIDE} px\n{pipeline(options).to_string()}")


if __name__ == "__main__":
    main()
