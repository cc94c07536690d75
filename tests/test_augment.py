"""Views of images on the device: crops are windows, flips are mirrors, numbers are ImageNet's."""

import torch

from tailprompt.augment import MEAN, STD, center_crop, normalised, random_crop, random_flip


def images(batch=6, size=10):
    return torch.arange(batch * 3 * size * size, dtype=torch.int64).view(batch, 3, size, size)


def test_a_random_crop_is_a_window_of_its_own_image():
    whole = images()
    for seed in range(5):
        crops = random_crop(whole, 7, torch.Generator().manual_seed(seed))
        for image, crop in zip(whole, crops, strict=True):
            windows = [image[:, top : top + 7, left : left + 7] for top in range(4) for left in range(4)]
            assert any(torch.equal(crop, window) for window in windows)


def test_a_crop_of_the_whole_size_changes_nothing():
    assert torch.equal(random_crop(images(), 10, torch.Generator()), images())
    assert torch.equal(center_crop(images(), 10), images())


def test_a_flip_is_the_image_or_its_mirror_and_both_occur():
    flipped = random_flip(images(64), torch.Generator().manual_seed(0))
    same = [torch.equal(new, old) for new, old in zip(flipped, images(64), strict=True)]
    mirrored = [torch.equal(new, old.flip(-1)) for new, old in zip(flipped, images(64), strict=True)]
    assert all(one != other for one, other in zip(same, mirrored, strict=True))
    assert 16 < sum(same) < 48


def test_numbers_agree_with_torchvision():
    from torchvision.transforms.v2.functional import normalize

    pixels = torch.randint(0, 256, (2, 3, 4, 4), dtype=torch.uint8)
    torch.testing.assert_close(normalised(pixels), normalize(pixels.float() / 255, MEAN, STD))
