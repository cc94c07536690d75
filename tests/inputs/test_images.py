"""Decoded images as examples: the same batches from the device and from the file, read ahead or not."""

import numpy as np
import pandas as pd
import pytest
import torch
from batches import batch_of

from tailprompt.errors import BadInput
from tailprompt.inputs import images

GREY = {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
STORED, SIDE, NUMBER = 40, 12, 20


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("images") / "made.npy"
    np.save(path, np.random.default_rng(0).integers(0, 256, (STORED, SIDE, SIDE, 3), np.uint8))
    return path


def table():
    rows = np.random.default_rng(1).permutation(STORED)[:NUMBER]
    return pd.DataFrame({"id": [f"i{row}" for row in rows], "label": rows % 3, "image": rows})


def read(file, *, training=True, size=16, **settings):
    told = {"crop_scale": 0.08, **settings}
    return images.image_examples(file, table(), training=training, size=size, **GREY, **told)


def drawn(examples, indices, *, seed=0):
    torch.manual_seed(seed)
    return batch_of(examples, indices)


def test_images_are_examples(file):
    examples = read(file)
    assert len(examples) == NUMBER == len(examples.names) and examples.names[0] == f"i{table().image[0]}"
    assert torch.equal(examples.lengths, torch.ones(NUMBER, dtype=torch.long)) and examples.truncated == 0
    assert examples.device.type == "cpu" and examples.labels.tolist() == list(table().label)


def test_evaluation_shows_the_stored_pixels_where_no_size_changes(file):
    pixels = batch_of(read(file, training=False, size=SIDE), torch.tensor([3, 1]))[0]["pixels"]
    stored = torch.from_numpy(np.load(file)[table().image[[3, 1]]]).permute(0, 3, 1, 2)
    torch.testing.assert_close(pixels, stored / 127.5 - 1, atol=1e-6, rtol=0)


@pytest.mark.parametrize("settings", [{}, {"test_zoom": 1.143}, {"test_zoom": 1.143, "views": 5}])
def test_a_view_of_evaluation_does_not_depend_on_its_batch(file, settings):
    examples = read(file, training=False, **settings).to("cpu")
    together, labels = batch_of(examples, torch.arange(NUMBER))
    for index in range(NUMBER):
        alone, label = batch_of(examples, torch.tensor([index]))
        torch.testing.assert_close(alone["pixels"][0], together["pixels"][index])
        assert label == labels[index]


@pytest.mark.parametrize("augment", images.AUGMENTATIONS)
@pytest.mark.parametrize("mixup", [0.0, 0.8])
def test_mapped_resident_and_read_ahead_are_the_same_to_the_bit(file, augment, mixup):
    examples = read(file, augment=augment, flip=True, mixup=mixup)
    mapped, resident, ahead = (examples.to("cpu", room=room) for room in (0, 10**9, 0))
    assert mapped.resident is None and resident.resident is not None
    for indices in torch.randperm(NUMBER).split(6):
        ahead.expect(indices)
        first, *others = (drawn(each, indices) for each in (mapped, resident, ahead))
        assert not ahead.asked
        for inputs, labels in others:
            assert torch.equal(inputs["pixels"], first[0]["pixels"])
            assert all(torch.equal(a, b) for a, b in zip(labels, first[1], strict=True))


def test_hints_that_nobody_takes_up_are_dropped(file):
    examples = read(file).to("cpu", room=0)
    for start in range(10):
        examples.expect(torch.arange(start, start + 2))
    assert len(examples.asked) == images.AHEAD


@pytest.mark.parametrize("augment", ["pad_crop", "resized_crop"])
def test_the_state_of_the_generator_decides_a_batch(file, augment):
    examples, indices = read(file, augment=augment), torch.arange(8)
    one, same, other = (drawn(examples, indices, seed=seed)[0]["pixels"] for seed in (1, 1, 2))
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_mixup_gives_both_labels_and_the_share_in_training_only(file):
    indices = torch.arange(6)
    plain = read(file, augment="none")
    whole, labels = batch_of(plain, indices)
    inputs, (first, second, share) = batch_of(read(file, augment="none", mixup=1.0), indices)
    assert torch.equal(first, labels) and sorted(second.tolist()) == sorted(labels.tolist())
    assert share.shape == () and 0 <= share <= 1
    mixed = [share * a + (1 - share) * b for a in whole["pixels"] for b in whole["pixels"]]
    assert all(any(torch.allclose(image, one, atol=1e-6) for one in mixed) for image in inputs["pixels"])
    assert torch.is_tensor(batch_of(read(file, training=False, mixup=1.0), indices)[1])


def test_settings_and_files_of_no_use_are_one_sentence(file, tmp_path):
    np.save(tmp_path / "flat.npy", np.zeros((3, 4), np.uint8))
    (tmp_path / "junk.npy").write_bytes(b"junk, not an array")
    (tmp_path / "half.npy").write_bytes(file.read_bytes()[:-100])
    for cause, sentence in [
        (lambda: read(file, augment="cutout"), "unknown augment 'cutout'; known: none, pad_crop, resized_"),
        (
            lambda: read(file, training=False, views=5),
            "views is 1, or 5 with test_zoom above 1, not 5 with 1",
        ),
        (lambda: read(tmp_path / "flat.npy"), r"flat\.npy: holds uint8 \(3, 4\), not uint8 \(images, side"),
        (lambda: read(tmp_path / "none.npy"), r"none\.npy cannot be read"),
        (lambda: read(tmp_path / "junk.npy"), r"junk\.npy cannot be read \(ValueError: the magic string"),
        (lambda: read(tmp_path / "half.npy"), r"half\.npy cannot be read \(ValueError: mmap length"),
        (
            lambda: images.image_examples(file, table().assign(image=STORED), training=True, size=8, **GREY),
            "has 40 images, but row 40 is asked for",
        ),
    ]:
        with pytest.raises(BadInput, match=sentence):
            cause()
