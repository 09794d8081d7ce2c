"""Train a two-layer graph convolution network for node classification on a citation-like graph."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)

NODES, EDGES, FEATURES, HIDDEN, CLASSES = 3000, 8000, 64, 32, 7
EPOCHS = 150


class GraphConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, adj, x):
        return adj @ self.linear(x)


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = GraphConv(FEATURES, HIDDEN)
        self.conv2 = GraphConv(HIDDEN, CLASSES)

    def forward(self, adj, x):
        x = F.dropout(F.relu(self.conv1(adj, x)), 0.5, self.training)
        return self.conv2(adj, x)


def load_graph():
    source = torch.randint(0, NODES, (EDGES,))
    target = (source + torch.randint(1, 60, (EDGES,))) % NODES
    adj = torch.eye(NODES)
    adj[source, target] = 1.0
    adj[target, source] = 1.0
    scale = adj.sum(1).rsqrt()
    adj = scale[:, None] * adj * scale[None, :]
    labels = (torch.arange(NODES) * CLASSES) // NODES
    features = torch.randn(NODES, FEATURES)
    features[torch.arange(NODES), labels] += 1.0
    return adj, features, labels


adj, features, labels = load_graph()
train = torch.rand(NODES) < 0.3
model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

start = time.time()
for epoch in range(1, EPOCHS + 1):
    model.train()
    logits = model(adj, features)
    loss = F.cross_entropy(logits[train], labels[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 20 == 0:
        accuracy = (logits.argmax(1) == labels)[~train].float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy:.3f} {epoch / (time.time() - start):.1f} epochs/s")
