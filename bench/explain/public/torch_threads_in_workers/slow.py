"""Ensemble of small regressors, one process per member."""
import time

import torch
import torch.multiprocessing as mp
import torch.nn as nn

MEMBERS = 4
STEPS = 100
BATCH = 512


def make_data(seed, rows=20_000):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 32, generator=gen)
    y = torch.sin(x[:, :4]).sum(1, keepdim=True) + 0.1 * torch.randn(rows, 1, generator=gen)
    return x, y


def train_member(rank, results):
    torch.manual_seed(rank)
    x, y = make_data(0)
    model = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start = time.time()
    for step in range(1, STEPS + 1):
        pick = torch.randint(0, len(x), (BATCH,))
        loss = nn.functional.mse_loss(model(x[pick]), y[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 20 == 0:
            print(f"member 0 step {step} loss {loss.item():.4f} {time.time() - start:.1f}s", flush=True)
    results.put((rank, loss.item(), time.time() - start))


def main():
    context = mp.get_context("fork")
    results = context.SimpleQueue()
    members = [context.Process(target=train_member, args=(r, results)) for r in range(MEMBERS)]
    for m in members:
        m.start()
    for m in members:
        m.join()
    while not results.empty():
        rank, loss, seconds = results.get()
        print(f"member {rank}: loss {loss:.4f} in {seconds:.1f}s")


if __name__ == "__main__":
    main()
