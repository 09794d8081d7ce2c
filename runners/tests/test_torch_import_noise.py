"""Random masks as forwards spell them: what stands for them without dropout."""

import unittest

import torch

from bakeoff_import.float64 import WithoutDropout, float64_by_default, random_of

_MASKS = (
    lambda n: torch.rand(n) < 0.2,
    lambda n: torch.rand(n)[:, None] <= 0.7,
    lambda n: torch.tensor(0.2) > torch.rand(n),
    lambda n: torch.rand(n, 1).ge(0.35),
    lambda n: torch.gt(torch.rand(n), torch.tensor(0.1)),
    lambda n: ~(torch.rand(n) < 0.2),
    lambda n: torch.zeros(n).uniform_(0, 1) > 0.6,
    lambda n: (torch.rand(n) + 0.4).view(1, n).lt(0.9),
)
_NUMBERS = (
    lambda n: (torch.rand(n) < 0.2).float(),
    lambda n: torch.bernoulli(torch.full((n,), 0.3)),
    lambda n: torch.empty(n).bernoulli_(0.85),
    lambda n: torch.floor(torch.rand(n) + 0.9),
    lambda n: 1 - (torch.rand(n) >= 0.25).to(torch.float64),
    lambda n: torch.ones(n).masked_fill(torch.rand(n) < 0.4, 0.0),
    lambda n: torch.where(torch.rand(n) < 0.4, torch.ones(n), torch.zeros(n)),
    lambda n: torch.ones(n) * (torch.rand(n) > 0.7),
)


class Masks(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(4)

    def test_the_likelier_side_of_masks(self) -> None:
        for i, mask in enumerate(_MASKS):
            often = mask(20000).double().mean().item()
            with WithoutDropout():
                made = mask(6)
            with self.subTest(i):
                self.assertEqual(set(made.flatten().tolist()), {often > 0.5})
                self.assertAlmostEqual(made.bakeoff_random.true, often, delta=0.02)

    def test_the_mean_of_numbers(self) -> None:
        for i, numbers in enumerate(_NUMBERS):
            mean = numbers(20000).double().mean().item()
            with WithoutDropout(), float64_by_default():
                made = numbers(6)
            with self.subTest(i):
                self.assertEqual(len(set(made.flatten().tolist())), 1)
                self.assertAlmostEqual(made.flatten()[0].item(), mean, delta=0.02)

    def test_what_is_no_noise(self) -> None:
        x = torch.ones(3)
        for name in ("add", "lt", "floor", "mul", "view"):
            self.assertIsNone(random_of(name, (x, 0.5), {}))
        self.assertIsNone(random_of("uniform_", (x, -1, 1), {}))
