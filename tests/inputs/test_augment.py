"""Views of images on the device agree with torchvision's, made one by one."""

import pytest
import torch
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as one_by_one

from tailprompt.inputs.augment import (
    KERNELS,
    MEAN,
    RATIO,
    STD,
    center_crop,
    five_crops,
    mixup,
    normalised,
    random_crop,
    random_flip,
    random_windows,
    resized,
    scaled,
)


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
    assert torch.equal(random_crop(images(), 10, torch.Generator().manual_seed(0)), images())
    assert torch.equal(center_crop(images(), 10), images())


def test_a_flip_is_the_image_or_its_mirror_and_both_occur():
    flipped = random_flip(images(64), torch.Generator().manual_seed(0))
    same = [torch.equal(new, old) for new, old in zip(flipped, images(64), strict=True)]
    mirrored = [torch.equal(new, old.flip(-1)) for new, old in zip(flipped, images(64), strict=True)]
    assert all(one != other for one, other in zip(same, mirrored, strict=True))
    assert 16 < sum(same) < 48


def test_numbers_agree_with_torchvision():
    pixels = torch.randint(0, 256, (2, 3, 4, 4), dtype=torch.uint8)
    torch.testing.assert_close(normalised(pixels), one_by_one.normalize(pixels.float() / 255, MEAN, STD))


def test_a_crop_beyond_the_image_is_a_window_of_its_reflection():
    whole = images(8)
    bordered = torch.nn.functional.pad(whole.float(), [2] * 4, mode="reflect")
    for image, crop in zip(bordered, random_crop(whole, 10, border=2), strict=True):
        windows = [image[:, top : top + 10, left : left + 10] for top in range(5) for left in range(5)]
        assert any(torch.equal(crop.float(), window) for window in windows)


@pytest.mark.parametrize("side, size", [(12, 8), (13, 8), (15, 8), (8, 8)])
def test_five_crops_are_torchvisions(side, size):
    whole = images(3, side)
    theirs = torch.stack(list(one_by_one.five_crop(whole, [size, size])), dim=1)
    assert torch.equal(five_crops(whole, size), theirs)


@pytest.mark.parametrize("side, size", [(32, 224), (64, 48), (33, 8), (16, 16)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_scaling_whole_images_is_torchvisions_resize(side, size, kernel):
    whole = torch.rand(2, 3, side, side) * 255
    mode = InterpolationMode(kernel)
    theirs = one_by_one.resize(whole, [size, size], mode, antialias=True).clamp(0, 255)
    torch.testing.assert_close(resized(whole, size, kernel=kernel), theirs, atol=1e-3, rtol=0)
    windows = torch.tensor([[0, 0, side, side]] * 2)
    torch.testing.assert_close(scaled(whole, windows, size, kernel=kernel), theirs, atol=1e-3, rtol=0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_scaled_windows_are_torchvisions_one_by_one(kernel):
    whole = torch.rand(16, 3, 40, 30) * 255
    windows = random_windows(whole, (0.08, 1.0))
    together = scaled(whole, windows, 24, kernel=kernel)
    for image, window, ours in zip(whole, windows.tolist(), together, strict=True):
        mode = InterpolationMode(kernel)
        theirs = one_by_one.resized_crop(image, *window, [24, 24], mode, antialias=True).clamp(0, 255)
        torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=0)


def test_random_windows_lie_inside_with_the_area_and_shape_asked_for():
    whole = images(500, 64)
    top, left, height, width = random_windows(whole, (0.2, 0.6)).T
    assert (
        (top >= 0).all() and (left >= 0).all() and (top + height <= 64).all() and (left + width <= 64).all()
    )
    area, shape = height * width / 64**2, width / height
    assert 0.19 < area.min() < 0.25 and 0.55 < area.max() < 0.61
    assert RATIO[0] * 0.96 < shape.min() and shape.max() < RATIO[1] * 1.04 and shape.std() > 0.1
    assert torch.equal(random_windows(whole, (1.0, 1.0)), torch.tensor([[0, 0, 64, 64]]).expand(500, 4))


def test_a_mixed_image_is_the_share_of_one_and_the_rest_of_another():
    whole, labels = torch.rand(5, 3, 4, 4), torch.arange(5)
    mixed, (first, second, share) = mixup(whole, labels, 0.4)
    assert torch.equal(first, labels) and torch.equal(second.sort().values, labels)
    torch.testing.assert_close(mixed, share * whole + (1 - share) * whole[second])
