"""Semantic search service: encode batches of queries, score them against a document bank."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)

VOCAB = 5000
DIM = 256
DOCS = 30000
QUERY_LEN = 24
BATCH = 4
BATCHES = 80
TOP_K = 5


class Encoder(nn.Module):
    """Bag-of-tokens encoder with a small transformer layer on top."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.layer = nn.TransformerEncoderLayer(DIM, 4, 2 * DIM, batch_first=True, dropout=0.0)
        self.proj = nn.Linear(DIM, DIM)

    def forward(self, tokens):
        return self.proj(self.layer(self.embed(tokens)).mean(1))


class DocumentIndex:
    def __init__(self, vectors):
        self.vectors = vectors
        print(f"index with {len(vectors)} documents of dim {vectors.shape[1]}")

    def score(self, queries):
        """cosine of every query with every document, (Q, N)"""
        return F.cosine_similarity(queries[:, None, :], self.vectors[None, :, :], dim=-1)

    def search(self, queries, k):
        scores = self.score(queries)
        return scores.topk(k, dim=1)


@torch.no_grad()
def build_bank(encoder):
    vectors = []
    tokens = torch.randint(0, VOCAB, (2000, QUERY_LEN))
    for chunk in tokens.split(500):
        vectors.append(encoder(chunk))
    seeds = torch.cat(vectors)
    pick = torch.randint(0, len(seeds), (DOCS,))
    scale = 0.5 + torch.rand(DOCS, 1)
    return scale * (seeds[pick] + 0.05 * torch.randn(DOCS, DIM))


def main():
    encoder = Encoder().eval()
    index = DocumentIndex(build_bank(encoder))
    hits, total, checksum = torch.zeros(DOCS), 0.0, 0
    start = time.time()
    for step in range(1, BATCHES + 1):
        tokens = torch.randint(0, VOCAB, (BATCH, QUERY_LEN))
        with torch.no_grad():
            queries = encoder(tokens)
            values, ids = index.search(queries, TOP_K)
        hits.index_add_(0, ids.flatten(), torch.ones(ids.numel()))
        total += values[:, 0].mean().item()
        checksum += int(ids[:, 0].sum())
        if step % 10 == 0:
            took = time.time() - start
            print(f"batch {step}: mean top-1 {total / step:.5f}  "
                  f"{1000 * took / step:.1f} ms per batch")
    print(f"distinct documents returned: {int((hits > 0).sum())}, checksum {checksum}")


if __name__ == "__main__":
    main()
