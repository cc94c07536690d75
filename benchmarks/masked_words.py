"""How well masked language models predict the same hidden words of held-out text, for any vocabulary.

The loss a token cannot be compared between vocabularies. Here the same 15 % of the words (a Chinese character
is a word) in held-out paragraphs are hidden for every model. The loss of a word is the sum over its pieces.

    PYTHONPATH=src python benchmarks/masked_words.py --corpus corpus.txt.xz FOLDER OTHER
"""

from __future__ import annotations

import argparse
import random
import re

import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForMaskedLM, AutoTokenizer

from tailprompt.data.corpus import documents, is_held_out

WORDS = re.compile(r"[\u4e00-\u9fff]|[a-z]+|[0-9]+|[^\sa-z0-9\u4e00-\u9fff]")
LETTERS = re.compile(r"[\u4e00-\u9fffa-z]")
Row = tuple[list[str], set[int], str]


def hidden_rows(corpus: str, count: int, share: float) -> list[Row]:
    """(words, places of the hidden ones, language) of a paragraph of each of `count` held-out documents."""
    draw = random.Random(0)
    held = [document for document in documents(corpus) if is_held_out(document, share)]
    draw.shuffle(held)
    rows = []
    for document in held:
        words = WORDS.findall(draw.choice(document).lower())
        if len(words) < 12:
            continue
        words = words[:60]
        chinese = sum("\u4e00" <= word <= "\u9fff" for word in words) > len(words) / 3
        places = [place for place, word in enumerate(words) if LETTERS.match(word)]
        hidden = set(draw.sample(places, max(1, round(0.15 * len(places)))))
        rows.append((words, hidden, "Chinese" if chinese else "English"))
    return rows[:count]


@torch.no_grad()
def losses(folder: str, rows: list[Row]) -> dict[str, float]:
    """Nats per hidden word, by language and over all."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder)
    model = model.float().eval()
    sums: dict[str, list[float]] = {}
    for words, hidden, language in rows:
        pieces = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
        ids, answers = [tokenizer.cls_token_id], [-100]
        for place, piece in enumerate(pieces):
            ids += [tokenizer.mask_token_id] * len(piece) if place in hidden else piece
            answers += piece if place in hidden else [-100] * len(piece)
        ids, answers = [*ids, tokenizer.sep_token_id], [*answers, -100]
        logits = model(input_ids=torch.tensor([ids])).logits[0]
        loss = float(cross_entropy(logits, torch.tensor(answers), reduction="sum"))
        for key in (language, "all"):
            total = sums.setdefault(key, [0.0, 0])
            total[0] += loss
            total[1] += len(hidden)
    return {key: loss / count for key, (loss, count) in sums.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--held-out", type=float, default=0.01, help="the recipe's share of documents")
    parser.add_argument("--rows", type=int, default=1200)
    parser.add_argument("folders", nargs="+")
    options = parser.parse_args()
    rows = hidden_rows(options.corpus, options.rows, options.held_out)
    print(f"{len(rows)} paragraphs, {sum(len(hidden) for _, hidden, _ in rows)} hidden words; nats a word")
    for folder in options.folders:
        found = losses(folder, rows)
        print(folder, "  ".join(f"{key} {value:.3f}" for key, value in sorted(found.items())), flush=True)


if __name__ == "__main__":
    main()
