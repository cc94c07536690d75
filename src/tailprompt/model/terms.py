"""TF-IDF of texts: a body without a checkpoint, whose terms are those of the training texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import CountVectorizer

IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana and Chinese characters
WORD = rf"(?u)[{IDEOGRAPHS}]|[^\W{IDEOGRAPHS}]{{2,}}"  # as scikit-learn's, but such a character is a word


class Terms(nn.Module):
    """Texts -> sparse vectors `[batch, terms]`: words in a row, and characters of words, each of length 1.

    known: the terms of both kinds, as JSON in bytes. idf: of each term. Both are empty before `fit` or
    loading; `sized` names them, since their size is that of what was fitted.
    """

    reads = "text"
    sized = exact = ("known", "idf")

    def __init__(self, *, word_terms: int, character_terms: int, texts_of_term: int, terms: int):
        super().__init__()
        self.pretrained = nn.Module()  # nothing comes from a checkpoint
        self.known = nn.Parameter(torch.empty(0, dtype=torch.uint8), requires_grad=False)
        self.idf = nn.Parameter(torch.empty(0), requires_grad=False)
        self.kinds = [
            {"ngram_range": (1, word_terms), "token_pattern": WORD},
            {"ngram_range": (2, character_terms), "analyzer": "char_wb"},
        ]
        self.limits = {"min_df": texts_of_term, "max_features": terms}
        self.counters: list[CountVectorizer] = []

    def fit(self, texts: Sequence[str]) -> csr_matrix:
        """Learn the terms of the training texts and how rare each is; returns their vectors."""
        made = [counter(**kind, **self.limits) for kind in self.kinds]
        counts = [each.fit_transform(texts) for each in made]
        names = [each.get_feature_names_out().tolist() for each in made]
        frequent = np.concatenate([each.getnnz(axis=0) for each in counts])
        idf = np.log((1 + len(texts)) / (1 + frequent)) + 1  # scikit-learn's, smoothed
        self.known.data = torch.from_numpy(np.frombuffer(json.dumps(names).encode(), np.uint8).copy())
        self.idf.data = torch.from_numpy(idf.astype(np.float32)).to(self.idf.device)
        self.counters = made
        return self.weighted(counts)

    def vectors(self, texts: Sequence[str]) -> csr_matrix:
        """The vectors of texts, from the terms that were fitted."""
        if not self.counters:
            names = json.loads(bytes(self.known.cpu().numpy()))
            self.counters = [
                counter(**kind, vocabulary=own) for kind, own in zip(self.kinds, names, strict=True)
            ]
        return self.weighted([each.transform(texts) for each in self.counters])

    def weighted(self, counts: list[csr_matrix]) -> csr_matrix:
        """(1 + log tf) idf of both kinds of terms side by side, each kind scaled to length 1."""
        from scipy.sparse import hstack
        from sklearn.preprocessing import normalize

        bounds = np.cumsum([each.shape[1] for each in counts])[:-1]
        parts = []
        for each, idf in zip(counts, np.split(self.idf.cpu().numpy(), bounds), strict=True):
            each.data = 1 + np.log(each.data)
            parts.append(normalize(each.multiply(idf).tocsr()))
        return hstack(parts, format="csr")


def sparse(rows: csr_matrix, device: torch.device) -> Float[Tensor, "rows terms"]:
    """Sparse rows of scipy as a sparse tensor."""
    there = rows.tocoo()
    places = torch.from_numpy(np.stack([there.row, there.col]).astype(np.int64))
    values = torch.from_numpy(there.data.astype(np.float32))
    return torch.sparse_coo_tensor(places, values, there.shape, check_invariants=False).to(device)


def counter(**told) -> CountVectorizer:
    """What counts terms; scikit-learn takes a second to import, which other runs need not wait for."""
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(**told, dtype=np.float32)
