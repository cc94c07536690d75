"""Learn a tokenizer from a corpus, in the form of BERT or of T5.

`python -m tailprompt.vocabulary --recipe JSON --corpus FILE --out FOLDER` writes tokenizer.json and
tokenizer_config.json, which `transformers.AutoTokenizer` loads.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tailprompt.data.corpus import is_held_out, is_sampled, kept, named_files
from tailprompt.errors import BadInput, named, stage
from tailprompt.files import asked_of, json_option, whole, write_json
from tailprompt.plan.digests import check_corpora, digest_of
from tailprompt.pretraining.folders import tokenizer_in
from tailprompt.pretraining.recipes import SENTINELS
from tailprompt.seals import check_sealed, seal


def wordpiece(paragraphs: Iterable[str], *, size: int, alphabet: int = 1000) -> tuple[Tokenizer, dict]:
    """BERT's lower-cased WordPiece and its config. A Chinese character is a word of its own."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, limit_alphabet=alphabet, special_tokens=special, show_progress=True
    )
    tokenizer.train_from_iterator(paragraphs, trainer)
    tokenizer.post_processor = processors.BertProcessing(
        ("[SEP]", tokenizer.token_to_id("[SEP]")), ("[CLS]", tokenizer.token_to_id("[CLS]"))
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return tokenizer, {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": True,
        **dict(zip(names, special, strict=True)),
    }


def unigram(paragraphs: Iterable[str], *, size: int) -> tuple[Tokenizer, dict]:
    """T5's unigram pieces and their config, with `▁` for a space and a hundred sentinels at the end."""
    special = ["<pad>", "</s>", "<unk>"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(" {2,}", " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=size - len(SENTINELS), special_tokens=special, unk_token="<unk>", show_progress=True
    )
    tokenizer.train_from_iterator(paragraphs, trainer)
    tokenizer.add_special_tokens(SENTINELS[::-1])  # the last id is <extra_id_0>, as in T5
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", tokenizer.token_to_id("</s>"))]
    )
    return tokenizer, {
        "tokenizer_class": "T5Tokenizer",
        "extra_ids": len(SENTINELS),
        "extra_special_tokens": SENTINELS,
        "pad_token": "<pad>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
    }


def train(recipe: dict, corpora: list[Path], folder: Path, *, asked: dict[str, str] | None = None) -> None:
    """Learn the recipe's vocabulary from the training documents of `corpora`, and write it to `folder`.

    asked: the digests that they should have, by name. Raises BadInput if they have others, or are too small
    for the vocabulary.
    """
    check_sealed(*corpora, digest=digest_of)
    settings = dict(recipe["vocabulary"])
    learn, share = named(KINDS, settings.pop("kind"), "kind of vocabulary"), settings.pop("share", 1.0)
    paragraphs = (
        paragraph
        for corpus in corpora
        for document in kept(corpus, recipe["scripts"])
        if is_sampled(document, share) and not is_held_out(document, recipe["held_out"])
        for paragraph in document
    )
    tokenizer, config = learn(paragraphs, **settings)
    if tokenizer.get_vocab_size() < settings["size"]:
        raise BadInput(
            f"{named_files(corpora)}: too small for {settings['size']} tokens, it gives "
            f"{tokenizer.get_vocab_size()}; lower vocabulary.size or name a larger corpus"
        )
    check_corpora(asked, corpora)
    with whole(folder / "tokenizer.json") as temporary:
        temporary.write_text(tokenizer.to_str(pretty=True), "utf-8")  # its own `save` raises no OSError
    write_json(folder / "tokenizer_config.json", {**config, "model_max_length": recipe["positions"]})
    for file in tokenizer_in(folder):
        seal(file)


def main() -> None:
    parser = argparse.ArgumentParser(prog="tailprompt vocabulary", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--recipe",
        required=True,
        metavar="JSON|FILE",
        help="vocabulary, scripts, held_out and positions of a recipe in config/pretraining.yaml",
    )
    parser.add_argument(
        "--corpus",
        required=True,
        nargs="+",
        type=Path,
        metavar="FILE",
        help="plain text with empty lines between documents",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="folder for the tokenizer")
    options = parser.parse_args()
    recipe = json_option(options.recipe, "--recipe", "vocabulary", "scripts", "held_out", "positions")
    train(recipe, options.corpus, options.out, asked=asked_of(options.recipe).get("corpus"))


KINDS = {"wordpiece": wordpiece, "unigram": unigram}

if __name__ == "__main__":
    stage(main)
