"""Answer prompts with a small GRU language model loaded from a half-precision checkpoint."""
import time

import torch
from torch import nn

torch.manual_seed(0)
VOCAB, DIM, LAYERS, PROMPTS, PROMPT_LEN, NEW_TOKENS = 4000, 384, 2, 16, 32, 50
DTYPE = torch.float16


class GRULM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.rnn = nn.GRU(DIM, DIM, LAYERS, batch_first=True)
        self.norm = nn.LayerNorm(DIM)
        self.out = nn.Linear(DIM, VOCAB)

    def forward(self, ids, state=None):
        h, state = self.rnn(self.embed(ids), state)
        return self.out(self.norm(h[:, -1])), state


def load_model(dtype):
    model = GRULM()
    checkpoint = {k: v.half() for k, v in model.state_dict().items()}
    model = model.to(dtype)
    model.load_state_dict(checkpoint)
    return model.eval()


@torch.inference_mode()
def generate(model, ids, new_tokens):
    logits, state = model(ids)
    tokens = []
    for _ in range(new_tokens):
        probs = torch.softmax(logits.float() / 0.8, -1)
        nxt = torch.multinomial(probs, 1)
        tokens.append(nxt)
        logits, state = model(nxt, state)
    return torch.cat(tokens, 1)


def main():
    model = load_model(DTYPE)
    rounds = 14
    start = time.time()
    for r in range(rounds):
        prompts = torch.randint(VOCAB, (PROMPTS, PROMPT_LEN))
        answers = generate(model, prompts, NEW_TOKENS)
        ms = (time.time() - start) / ((r + 1) * NEW_TOKENS) * 1e3
        print(f"round {r + 1}/{rounds} mean token {answers.float().mean():.0f} "
              f"{ms:.1f} ms/token", flush=True)
    print(f"total {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
