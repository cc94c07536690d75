"""Heads that are fitted to the features of the training examples, without steps of an optimizer.

They have what other heads have (`heads`), and `fit`. `sized` names the parameters whose size is known only
once they are fitted or loaded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from tailprompt.errors import BadInput

Hidden = Float[Tensor, "*batch width"]
Logits = Float[Tensor, "*batch classes"]
ABSENT = -1e4  # logit of a class without training examples: its probability is 0, and float16 can hold it
BLOCK = 512  # rows that are compared with all neighbours at once


class FittedLinear(nn.Module):
    """A vector and a bias for each class. Features may be sparse."""

    drawn, scale = False, 1.0
    sized = ("weight",)

    def __init__(self, width: int, classes: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(classes, width))
        self.bias_ = nn.Parameter(torch.full((classes,), ABSENT))

    def features(self, hidden: Hidden) -> Hidden:
        return hidden

    def logits(self, features: Hidden) -> Logits:
        return features @ self.weight.T + self.bias_

    def class_vectors(self) -> Float[Tensor, "classes width"]:
        return self.weight

    def bias(self) -> Float[Tensor, " classes"]:
        return self.bias_

    @torch.no_grad()
    def take(self, classes: Int[np.ndarray, " there"], weight: np.ndarray, bias: np.ndarray) -> None:
        """Take the vectors and biases of the classes that have training examples."""
        device, there = self.bias_.device, torch.from_numpy(classes)
        full = torch.zeros(len(self.bias_), weight.shape[1])
        full[there] = torch.from_numpy(weight).float()
        biases = torch.full((len(self.bias_),), ABSENT)
        biases[there] = torch.from_numpy(bias).float()
        self.weight.data, self.bias_.data = full.to(device), biases.to(device)


class LogisticRegression(FittedLinear):
    """The optimum of scikit-learn's logistic regression."""

    def __init__(self, width: int, classes: int, *, class_weight: str):
        super().__init__(width, classes)
        self.class_weight = None if class_weight == "none" else class_weight

    def fit(self, vectors, labels: Int[np.ndarray, " examples"], C: float) -> None:
        """Fit to vectors `[examples, width]`, dense or sparse. Raises BadInput for a single class."""
        from sklearn.linear_model import LogisticRegression as Regression

        if len(np.unique(labels)) < 2:
            raise BadInput("head: logistic_regression needs training rows of two classes at least; add some")
        told = {"class_weight": self.class_weight, "max_iter": 1000, "random_state": 0}
        made = Regression(C=C, **told).fit(vectors, labels)
        weight, bias = made.coef_, made.intercept_
        if len(weight) == 1:  # two classes have one vector there, whose sigmoid is this softmax
            weight, bias = np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
        self.take(made.classes_, weight, bias)


class ClassMeans(FittedLinear):
    """The nearest class mean: -|x - m|^2 / 2 without the term of x alone (Mensink et al. 2013, Eq. 2)."""

    def fit(self, vectors: np.ndarray, labels: Int[np.ndarray, " examples"], _: None) -> None:
        """Fit to vectors `[examples, width]`."""
        classes = np.unique(labels)
        means = np.stack([vectors[labels == label].mean(axis=0, dtype=float) for label in classes])
        self.take(classes, means, -(means**2).sum(1) / 2)


class Neighbours(nn.Module):
    """The shares of the votes of the nearest training examples by cosine, as log-probabilities.

    bank: their vectors, of length 1. voters: their labels. number: of those that vote.
    """

    drawn, scale = False, 1.0
    sized = ("bank", "voters")

    def __init__(self, width: int, classes: int):
        super().__init__()
        self.classes = classes
        self.bank = nn.Parameter(torch.empty(0, width), requires_grad=False)
        self.voters = nn.Parameter(torch.empty(0, dtype=torch.long), requires_grad=False)
        self.number = nn.Parameter(torch.ones(1, dtype=torch.long), requires_grad=False)

    def features(self, hidden: Hidden) -> Hidden:
        return hidden

    def logits(self, features: Hidden) -> Logits:
        rows = F.normalize(features, dim=-1).flatten(0, -2).split(BLOCK)
        return torch.cat([self.votes(each) for each in rows]).unflatten(0, features.shape[:-1])

    def votes(self, rows: Float[Tensor, "batch width"]) -> Float[Tensor, "batch classes"]:
        """The logarithm of each class's share of the votes, with one vote spread over all classes."""
        number = min(int(self.number), len(self.bank))
        near = (rows @ self.bank.T).topk(number).indices
        votes = F.one_hot(self.voters[near], self.classes).sum(1)
        return ((votes + 1 / self.classes) / (number + 1)).log()

    def class_vectors(self) -> Float[Tensor, "classes width"]:
        """The mean of the vectors of each class; 0 for a class without any."""
        sums = self.bank.new_zeros(self.classes, self.bank.shape[1]).index_add(0, self.voters, self.bank)
        counts = torch.bincount(self.voters, minlength=self.classes)
        return sums / counts.clamp(min=1)[:, None]

    def bias(self) -> Float[Tensor, " classes"]:
        return self.bank.new_zeros(self.classes)

    @torch.no_grad()
    def fit(self, vectors: np.ndarray, labels: Int[np.ndarray, " examples"], number: int) -> None:
        """Keep the training examples; `number` of them vote."""
        device = self.bank.device
        self.bank.data = F.normalize(torch.from_numpy(vectors).float(), dim=-1).to(device)
        self.voters.data = torch.from_numpy(labels).long().to(device)
        self.number.data = torch.tensor([number], device=device)


def logistic_regression(backbone, told, words: Sequence) -> LogisticRegression:
    """told: `components.heads.LogisticRegression`. words: one entry a class."""
    return LogisticRegression(backbone.width, len(words), class_weight=told.class_weight)


def neighbours(backbone, told, words: Sequence) -> Neighbours:
    """told: `components.heads.Neighbours`. words: one entry a class."""
    return Neighbours(backbone.width, len(words))


def class_means(backbone, told, words: Sequence) -> ClassMeans:
    """told: `components.heads.ClassMeans`. words: one entry a class."""
    return ClassMeans(backbone.width, len(words))


FITTED = {"logistic_regression": logistic_regression, "neighbours": neighbours, "class_means": class_means}
