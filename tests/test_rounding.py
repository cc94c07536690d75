"""The tolerance that tests allow: what rounding does passes, and little more."""

import pytest
import torch
from rounding import apart, assert_near

LENGTHS = [16, 256]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("length", LENGTHS)
def test_sums_one_by_one_in_another_order_are_near(dtype, length):
    values = torch.rand(20, length).to(dtype)
    one, other = torch.zeros(2, 20, dtype=dtype)
    for forth, back in zip(values.T, values.flip(1).T, strict=True):
        one, other = one + forth, other + back
    assert_near(one, other, rounded=length)
    if dtype == torch.float32:
        assert_near(one, values.double().sum(1), rounded=length)


@pytest.mark.parametrize("length", LENGTHS)
def test_an_error_of_twice_the_tolerance_is_told(length):
    values = torch.rand(20, dtype=torch.float64) + 1
    wrong = values + 2 * apart(torch.float64, length) * (values + values.max())
    assert_near(values, values, rounded=length)
    with pytest.raises(AssertionError):
        assert_near(wrong, values, rounded=length)


def test_the_coarser_precision_counts():
    values = torch.rand(20, dtype=torch.float64)
    assert_near(values.half(), values, rounded=1)
    with pytest.raises(AssertionError):
        assert_near(values.half().double(), values, rounded=1)
