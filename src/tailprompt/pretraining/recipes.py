"""Checks of the recipes in `pretraining` that a schema cannot make: numbers that must suit each other."""

from __future__ import annotations

from tailprompt.errors import BadInput, known

SENTINELS = 100  # in a T5's vocabulary, each for one span of a row
MODELS = {  # task -> the model that it makes, whose keys `shape` may have
    "masked_language_model": "BertConfig",
    "span_corruption": "T5Config",
    "language_model": "T5Config",
    "classification": "VisionTransformer",
}
WHOLE = {  # keys of each model that are whole numbers from 1
    "BertConfig": "num_hidden_layers hidden_size num_attention_heads intermediate_size "
    "max_position_embeddings",
    "T5Config": "d_model d_kv num_heads d_ff num_layers num_decoder_layers",
    "VisionTransformer": "img_size patch_size embed_dim depth num_heads",
}
OTHER = {
    "BertConfig": "hidden_act hidden_dropout_prob attention_probs_dropout_prob type_vocab_size "
    "initializer_range layer_norm_eps",
    "T5Config": "feed_forward_proj tie_word_embeddings dropout_rate layer_norm_epsilon initializer_factor "
    "relative_attention_num_buckets relative_attention_max_distance",
    "VisionTransformer": "drop_path_rate mlp_ratio qkv_bias init_values proj_drop_rate attn_drop_rate",
}


def check(recipes: dict[str, dict]) -> None:
    """Raise BadInput, one sentence with its key, at the first recipe that cannot be trained."""
    for name, recipe in recipes.items():
        place = f"pretraining.{name}"
        check_shape(recipe["shape"], MODELS[recipe["task"]], f"{place}.shape")
        if "start" in recipe:
            check_start(recipes, name)
        if recipe["task"] == "classification":
            check_images(recipe, place)
        else:
            check_lengths(recipe, place)


def check_shape(shape: dict, model: str, place: str) -> None:
    """Raise BadInput unless the model has the keys of a shape, sizes whole, and heads share the width."""
    sizes, others = WHOLE[model].split(), OTHER[model].split()
    if unknown := sorted(shape.keys() - {*sizes, *others}):
        raise BadInput(f"{place} has {known(unknown)}, which no {model} has; known: {known(sizes + others)}")
    for key in sizes:
        if key in shape and not (type(shape[key]) is int and shape[key] > 0):
            raise BadInput(f"{place}.{key} is {shape[key]!r}; it must be a whole number from 1")
    width, heads = (
        ("hidden_size", "num_attention_heads") if model == "BertConfig" else ("embed_dim", "num_heads")
    )
    if shape.get(width, 0) % shape.get(heads, 1):
        raise BadInput(f"{place}: {width} {shape[width]} is no multiple of {heads} {shape[heads]}")


def check_start(recipes: dict[str, dict], name: str) -> None:
    """Raise BadInput unless the start of a recipe is another recipe for the same model that has no start."""
    start = recipes[name]["start"]
    if start == name or "start" in recipes[start]:
        raise BadInput(f"pretraining.{name}.start is {start}; name a recipe that has no start itself")
    if MODELS[recipes[start]["task"]] != MODELS[recipes[name]["task"]]:
        raise BadInput(
            f"pretraining.{name}.start is {start}, a {MODELS[recipes[start]['task']]}; "
            f"a {recipes[name]['task']} goes on from a {MODELS[recipes[name]['task']]}"
        )


def check_images(recipe: dict, place: str) -> None:
    """Raise BadInput unless views have whole patches and fit into the images, and Mixup has pairs."""
    shape, (low, high) = recipe["shape"], recipe["augment"]["scale"]
    size, patch = shape.get("img_size", 224), shape.get("patch_size", 16)
    if size % patch:
        raise BadInput(f"{place}.shape: img_size {size} is no multiple of patch_size {patch}")
    if size > recipe["pixels"]:
        raise BadInput(f"{place}: img_size {size} is more than pixels, {recipe['pixels']}")
    if recipe["batch"] % 2:
        raise BadInput(f"{place}.batch is {recipe['batch']}; Mixup takes an even number")
    if low > high:
        raise BadInput(f"{place}.augment.scale is [{low}, {high}]; the smaller share comes first")


def check_lengths(recipe: dict, place: str) -> None:
    """Raise BadInput unless the model has a position for each token, and some tokens are not hidden."""
    positions = recipe["shape"].get("max_position_embeddings", float("inf"))
    lengths = {"length": recipe["length"], "long.length": recipe.get("long", {}).get("length")}
    for key, length in lengths.items():
        if length is None:
            continue
        if length > positions:
            raise BadInput(f"{place}.{key} is {length}; the model has {positions} positions")
        if "rate" in recipe:
            check_hidden(recipe, length, f"{place}.rate is {recipe['rate']}, of {key} {length}")


def check_hidden(recipe: dict, length: int, place: str) -> None:
    """Raise BadInput unless some but not all tokens of a row are hidden, and each span has a sentinel.

    Tokens are counted as in `corruption`. BERT never hides the first and last token, and one more must stay.
    """
    hidden = max(1, round(recipe["rate"] * length))
    most = length - (3 if recipe["task"] == "masked_language_model" else 1)
    if hidden > most:
        raise BadInput(f"{place}: it hides {hidden} tokens, and {most} can be hidden at most; lower rate")
    spans = min(max(1, round(hidden / recipe["span"])), length - hidden) if "span" in recipe else 0
    if spans > SENTINELS:
        raise BadInput(
            f"{place} hides {spans} spans, and {SENTINELS} have a sentinel; raise span or lower rate"
        )
