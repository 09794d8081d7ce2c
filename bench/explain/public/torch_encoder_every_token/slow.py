"""Caption images with a CNN encoder and a GRU decoder, greedy decoding."""
import time

import torch
import torch.nn as nn

torch.manual_seed(33)

VOCAB, DIM, SIZE = 3000, 128, 64
IMAGES, BATCH, MAX_WORDS, START = 240, 3, 20, 1


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layers, width = [], 3
        for out in (32, 64, 128):
            layers += [nn.Conv2d(width, out, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
            width = out
        self.net = nn.Sequential(*layers)

    def forward(self, images):
        return self.net(images).flatten(2).transpose(1, 2)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.query = nn.Linear(DIM, 128)
        self.rnn = nn.GRUCell(DIM + 128, DIM)
        self.out = nn.Linear(DIM, VOCAB)

    def forward(self, word, hidden, memory):
        weights = torch.softmax((memory @ self.query(hidden).unsqueeze(2)) / 128 ** 0.5, dim=1)
        context = (weights * memory).sum(dim=1)
        hidden = self.rnn(torch.cat([self.embed(word), context], dim=1), hidden)
        return self.out(hidden), hidden


class Captioner(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.decoder = Decoder()

    def forward(self, images, word, hidden):
        memory = self.encoder(images)
        return self.decoder(word, hidden, memory)


def caption(model, images):
    word = torch.full((len(images),), START)
    hidden = torch.zeros(len(images), DIM)
    words = []
    for _ in range(MAX_WORDS):
        logits, hidden = model(images, word, hidden)
        word = logits.argmax(dim=1)
        words.append(word)
    return torch.stack(words, dim=1)


model = Captioner().eval()
pictures = torch.rand(IMAGES, 3, SIZE, SIZE)
captions = []

start = time.time()
with torch.no_grad():
    for i in range(0, IMAGES, BATCH):
        captions.append(caption(model, pictures[i:i + BATCH]))
        done = i + BATCH
        if done % 24 == 0:
            print(f"{done}/{IMAGES} images, {done * MAX_WORDS / (time.time() - start):.0f} words/s")

captions = torch.cat(captions)
print("captions", tuple(captions.shape), "first:", captions[0, :8].tolist())
