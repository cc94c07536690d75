"""Jobs on texts: BERT as a classifier, and a T5 behind a soft prompt.

Weights are random, texts are made up.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from math import inf

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import BertConfig, BertForSequenceClassification, T5Config, T5ForConditionalGeneration

from benchmarks.job import Job, size
from tailprompt.components.heads import Linear, LinearPredictor, NoNorm, Verbalizer
from tailprompt.components.inputs import Formatted, Plain
from tailprompt.components.run import Run
from tailprompt.components.tuners import Full, SoftPrompt
from tailprompt.inputs.texts import Examples
from tailprompt.model.backbones import Backbone
from tailprompt.model.compose import Model, compose
from tailprompt.model.encoder_decoder import EncoderDecoder
from tailprompt.training.optimizers import adamw

BERT_BASE = {}  # the shape that BertConfig has by default
BERT_MINI = {  # as it ships
    "vocab_size": 15360,
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
SMALL_BERT = {
    "vocab_size": 400,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
T5_BASE = {  # T5 1.1
    "vocab_size": 32128,
    "d_model": 768,
    "d_ff": 2048,
    "d_kv": 64,
    "num_layers": 12,
    "num_heads": 12,
    "feed_forward_proj": "gated-gelu",
    "tie_word_embeddings": False,
}
SMALL_T5 = {"vocab_size": 400, "d_model": 32, "d_ff": 64, "d_kv": 8, "num_layers": 2, "num_heads": 4}
PROMPT = 100  # vectors (PPT section 4.1)
FIRST = 10  # token FIRST + c says that a text is of class c; those below are special
SENTINEL = 9  # stands for the answer in a T5's input


@dataclass(frozen=True)
class Texts:
    """Made-up texts. mean, most: of their lengths in tokens, the latter is max_length."""

    mean: float
    most: int
    classes: int
    batch: int = 32
    count: int = 1600


CMID = Texts(mean=25, most=64, classes=36)
R52 = Texts(mean=130, most=512, classes=52)
IFLYTEK = Texts(mean=290, most=512, classes=119)
PPT = Texts(mean=60, most=256, classes=4, batch=16, count=800)
SMALL = {"mean": 8.0, "most": 16, "batch": 4, "count": 16}


def bert(
    shape: dict, texts: Texts, *, small: bool, tuner: Full | None = None, passes: int = 6, lr: float = 5e-5
) -> Job:
    """BERT with a Tanh layer and a classifier on [CLS].

    tuner: of our model; by default all of it learns. passes: FLOPs a parameter of the encoder and token: 6,
    or 4 where it is frozen.
    """
    if small:
        shape, texts = shape | SMALL_BERT, replace(texts, **SMALL)
    config = BertConfig(**shape, num_labels=texts.classes)
    first = seeded(BertForSequenceClassification, config)
    theirs, examples = partial(deepcopy, first), drawn(texts, config.vocab_size)
    return Job(
        ours=lambda: classifier(theirs(), tuner or Full()),
        plain=lambda: Logits(theirs()),
        theirs=theirs,
        flops=passes * size(first.bert.encoder) * texts.mean,
        **shared(texts, examples, lr),
        collate=padded,
    )


def t5(shape: dict, texts: Texts, *, small: bool) -> Job:
    """A frozen T5 behind a soft prompt, whose decoder answers with one token (PPT section 2).

    Vectors of the prompt count as tokens.
    """
    if small:
        shape, texts = shape | SMALL_T5, replace(texts, **SMALL)
    first = seeded(T5ForConditionalGeneration, T5Config(**shape, decoder_start_token_id=0))
    theirs, examples = partial(deepcopy, first), drawn(texts, first.config.vocab_size)
    return Job(
        ours=lambda: prompted(theirs(), texts),
        theirs=theirs,
        flops=4 * size(first.encoder.block) * (texts.mean + PROMPT),
        **shared(texts, examples, lr=1e-3),
        collate=answered,
    )


def seeded(kind: type[nn.Module], config) -> nn.Module:
    """A model of transformers with random weights, always the same."""
    torch.manual_seed(0)
    return kind(config)


def shared(texts: Texts, examples: Examples, lr: float) -> dict:
    """What jobs on texts have in common. A bucket is an epoch, so all epochs have the same lengths."""
    steps = texts.count // texts.batch
    return {
        "examples": examples.to,
        "rows": rows_of(examples),
        "optimizer": partial(adamw, weight_decay=0.0, adam_eps=1e-8),
        "lr": lr,
        "clip": 1.0,
        "batch": texts.batch,
        "bucket": steps,
        "period": steps,
        "width": texts.most,
        "unit": "steps",
    }


def classifier(theirs: BertForSequenceClassification, tuner: Full) -> Model:
    """Our model with the parts and weights of transformers'."""
    config, pooler = theirs.config, theirs.bert.pooler
    theirs.bert.pooler = None
    backbone = Backbone(
        body=theirs.bert,
        transform=nn.Sequential(),
        decoder=None,
        tokenizer=None,
        width=config.hidden_size,
        positions=config.max_position_embeddings,
        initializer_range=config.initializer_range,
    )
    dropout = config.hidden_dropout_prob
    head = Linear(activation="tanh", dropout=dropout, norm=NoNorm(), predictor=LinearPredictor())
    run = Run(input=Plain(max_length=backbone.positions), tuner=tuner, head=head, select="last")
    model = compose(backbone, run, words=[[]] * config.num_labels)
    model.head.layers.dense.load_state_dict(pooler.dense.state_dict())
    model.head.predictor.load_state_dict(theirs.classifier.state_dict())
    return model


def prompted(theirs: T5ForConditionalGeneration, texts: Texts) -> Model:
    """Our model with the parts of transformers', and a prompt of its own."""
    body = EncoderDecoder(theirs, SENTINEL)
    backbone = Backbone(
        body=body,
        transform=nn.Sequential(),
        decoder=body.lm_head,
        tokenizer=None,
        width=theirs.config.d_model,
        positions=inf,
        initializer_range=theirs.config.initializer_factor,
    )
    run = Run(
        input=Formatted(template="{text} {mask}", language="en", max_length=texts.most),
        tuner=SoftPrompt(length=PROMPT),
        head=Verbalizer(decoding="open"),
        select="last",
    )
    torch.manual_seed(0)
    return compose(backbone, run, words=[[FIRST + c] for c in range(texts.classes)])


class Logits(nn.Module):
    """The logits of transformers' classifier for the inputs that our examples give."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        inputs = {key: batch[key] for key in ("input_ids", "attention_mask", "token_type_ids")}
        return self.model(**inputs).logits


def drawn(texts: Texts, vocabulary: int) -> Examples:
    """Texts of random tokens, of which a fifth tell the class."""
    draw = np.random.default_rng(0)
    labels, long = draw.integers(texts.classes, size=texts.count), lengths(texts, draw)
    tokens = draw.integers(FIRST + texts.classes, vocabulary, size=long.sum())
    telling = draw.random(len(tokens)) < 0.2
    tokens[telling] = FIRST + labels.repeat(long)[telling]
    ends = torch.from_numpy(long.cumsum())
    return Examples(
        tokens=torch.from_numpy(tokens),
        segments=torch.zeros(len(tokens), dtype=torch.long),
        starts=torch.cat([ends.new_zeros(1), ends]),
        lengths=torch.from_numpy(long),
        position=torch.zeros(texts.count, dtype=torch.long),
        labels=torch.from_numpy(labels),
        names=[str(number) for number in range(texts.count)],
        pad=0,
        most=int(long.max()),
        truncated=0,
    )


def lengths(texts: Texts, draw: np.random.Generator) -> np.ndarray:
    """Lengths that are spread as those of texts are, with the mean that is asked for after cutting."""
    shape = draw.gamma(3.0, texts.mean / 3, texts.count)
    scale = 1.0
    for _ in range(20):
        found = (scale * shape).round().clip(min(6, texts.most), texts.most)
        scale *= texts.mean / found.mean()
    return found.astype(int)


def rows_of(examples: Examples) -> list[dict]:
    """The examples as Trainer takes them."""
    ids = examples.tokens.split(examples.lengths.tolist())
    return [{"input_ids": i, "labels": label} for i, label in zip(ids, examples.labels.tolist(), strict=True)]


def padded(rows: list[dict]) -> dict[str, Tensor]:
    """A batch for transformers, padded to the next multiple of 8 as tensor cores prefer."""
    ids = pad_sequence([row["input_ids"] for row in rows], batch_first=True)
    ids = nn.functional.pad(ids, (0, -ids.shape[1] % 8))
    labels = torch.tensor([row["labels"] for row in rows])
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels}


def answered(rows: list[dict]) -> dict[str, Tensor]:
    """A batch for a T5, whose decoder sees the start and the sentinel, and then answers."""
    batch = padded(rows)
    answers = FIRST + batch["labels"]
    return batch | {
        "decoder_input_ids": torch.tensor([[0, SENTINEL]] * len(rows)),
        "labels": torch.stack([torch.full_like(answers, -100), answers], dim=1),
    }
