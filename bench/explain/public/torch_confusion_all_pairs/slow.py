"""Single label text classification over a large set of dictionary senses."""
import time

import torch
import torch.nn.functional as F
from torch import nn

N_CLASSES = 560
VOCAB = 4000
SEQ_LEN = 40
BATCH_SIZE = 64


def make_split(n, prototypes, gen):
    y = torch.randint(0, N_CLASSES, (n,), generator=gen)
    noise = torch.randint(0, VOCAB, (n, SEQ_LEN), generator=gen)
    keep = torch.rand(n, SEQ_LEN, generator=gen) < 0.5
    return torch.where(keep, prototypes[y], noise), y


def batches(x, y, shuffle_gen=None):
    order = torch.randperm(len(x), generator=shuffle_gen) if shuffle_gen is not None else torch.arange(len(x))
    for idx in order.split(BATCH_SIZE):
        yield x[idx], y[idx]


class DefinitionClassifier(nn.Module):
    def __init__(self, emb=96, hidden=128):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, emb)
        self.conv = nn.Conv1d(emb, hidden, 3, padding=1)
        self.fc = nn.Linear(hidden, N_CLASSES)

    def forward(self, x):
        h = self.emb(x).transpose(1, 2)
        h = F.relu(self.conv(h)).amax(dim=2)
        return self.fc(h)


class ConfusionMatrix:
    """Running confusion matrix, rows are targets and columns predictions."""

    def __init__(self, n_classes):
        self.n_classes = n_classes
        self.x = torch.arange(0, n_classes)

    def on_epoch_begin(self):
        self.cm = None

    def on_batch_end(self, output, target):
        preds = output.argmax(-1).view(-1)
        targs = target.view(-1)
        cm = ((preds == self.x[:, None]) & (targs == self.x[:, None, None])).sum(dim=2, dtype=torch.float32)
        if self.cm is None:
            self.cm = cm
        else:
            self.cm += cm

    def on_epoch_end(self):
        return self.cm


def kappa(cm):
    n = cm.sum()
    po = cm.trace() / n
    pe = (cm.sum(0) * cm.sum(1)).sum() / n ** 2
    return ((po - pe) / (1 - pe)).item()


def macro_recall(cm):
    support = cm.sum(1)
    seen = support > 0
    return (cm.diag()[seen] / support[seen]).mean().item()


def validate(model, x, y, metric):
    model.eval()
    metric.on_epoch_begin()
    total = 0.0
    with torch.no_grad():
        for xb, yb in batches(x, y):
            out = model(xb)
            total += F.cross_entropy(out, yb, reduction="sum").item()
            metric.on_batch_end(out, yb)
    cm = metric.on_epoch_end()
    return total / len(x), kappa(cm), macro_recall(cm)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(3)
    gen = torch.Generator().manual_seed(42)
    prototypes = torch.randint(0, VOCAB, (N_CLASSES, SEQ_LEN), generator=gen)
    train_x, train_y = make_split(1920, prototypes, gen)
    valid_x, valid_y = make_split(2560, prototypes, gen)

    model = DefinitionClassifier()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    metric = ConfusionMatrix(N_CLASSES)
    for epoch in range(5):
        start = time.time()
        model.train()
        running = 0.0
        for step, (xb, yb) in enumerate(batches(train_x, train_y, gen)):
            loss = F.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item()
            if step % 10 == 9:
                print(f"epoch {epoch} step {step + 1} train loss {running / (step + 1):.4f}")
        val_loss, k, rec = validate(model, valid_x, valid_y, metric)
        print(f"epoch {epoch} valid loss {val_loss:.4f} kappa {k:.4f} recall {rec:.4f} ({time.time() - start:.1f}s)")


if __name__ == "__main__":
    main()
