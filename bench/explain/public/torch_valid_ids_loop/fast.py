"""Named-entity tagger: keep only the first word piece of every word before the classifier."""
import torch
import torch.nn as nn

torch.manual_seed(11)

VOCAB, DIM, TAGS = 2000, 64, 9
BATCH, LENGTH = 16, 48
STEPS = 350


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        layer = nn.TransformerEncoderLayer(DIM, 4, 128, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.classifier = nn.Linear(DIM, TAGS)

    def forward(self, tokens, valid_ids):
        hidden = self.encoder(self.embed(tokens))
        order = torch.argsort(valid_ids, dim=1, descending=True, stable=True)
        packed = torch.gather(hidden, 1, order.unsqueeze(-1).expand_as(hidden))
        kept = torch.gather(valid_ids, 1, order).unsqueeze(-1)
        valid_output = packed * kept
        return self.classifier(valid_output)


def fake_batch():
    tokens = torch.randint(0, VOCAB, (BATCH, LENGTH))
    valid_ids = (torch.rand(BATCH, LENGTH) < 0.7).long()
    counts = valid_ids.sum(1, keepdim=True)
    labels = torch.randint(0, TAGS, (BATCH, LENGTH))
    labels[torch.arange(LENGTH)[None, :] >= counts] = -100
    return tokens, valid_ids, labels


model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
loss_fn = nn.CrossEntropyLoss(ignore_index=-100)

for step in range(1, STEPS + 1):
    tokens, valid_ids, labels = fake_batch()
    logits = model(tokens, valid_ids)
    loss = loss_fn(logits.view(-1, TAGS), labels.view(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step} loss {loss.item():.4f}")
