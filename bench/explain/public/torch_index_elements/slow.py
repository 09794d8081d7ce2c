"""Masked-token model on random sequences; reports token accuracy while training."""
import torch
import torch.nn as nn

torch.manual_seed(6)

VOCAB, DIM, PAD = 60, 24, 0
BATCH, LENGTH = 32, 128
STEPS = 400


def make_batch():
    first = torch.randint(1, VOCAB, (BATCH, 1))
    stride = torch.randint(1, 4, (BATCH, 1))
    tokens = (first + stride * torch.arange(LENGTH)) % (VOCAB - 1) + 1
    lengths = torch.randint(LENGTH // 2, LENGTH + 1, (BATCH, 1))
    tokens[torch.arange(LENGTH)[None, :] >= lengths] = PAD
    return tokens


def token_accuracy(predictions, labels):
    correct, total = 0, 0
    for row in range(labels.size(0)):
        for col in range(labels.size(1)):
            if labels[row][col] == PAD:
                continue
            total += 1
            if predictions[row][col] == labels[row][col]:
                correct += 1
    return correct / max(total, 1)


class NextToken(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM, padding_idx=PAD)
        self.rnn = nn.GRU(DIM, DIM, batch_first=True)
        self.out = nn.Linear(DIM, VOCAB)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


model = NextToken()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.CrossEntropyLoss(ignore_index=PAD)

history = []
for step in range(1, STEPS + 1):
    tokens = make_batch()
    inputs, labels = tokens[:, :-1], tokens[:, 1:]
    logits = model(inputs)
    loss = loss_fn(logits.reshape(-1, VOCAB), labels.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(token_accuracy(logits.argmax(-1), labels))
    if step % 50 == 0:
        print(f"step {step} loss {loss.item():.3f} accuracy {sum(history[-50:]) / 50:.3f}")
