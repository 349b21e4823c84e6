"""GPT on one page: it learns a text, and writes.    python gpt_one_page.py [FILE [STEPS [TEMPERATURE]]]"""

import gzip
import json
import sys
from pathlib import Path

import torch
from torch import nn

NOVELS = Path(__file__).resolve().parents[1] / "tinytx_run" / "novels" / "novels.jsonl.gz"


class Block(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.attn_norm = nn.LayerNorm(d_model, bias=False)
        self.qkv_proj = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)
        self.ff_norm = nn.LayerNorm(d_model, bias=False)
        self.up_proj = nn.Linear(d_model, 4 * d_model, bias=False)
        self.down_proj = nn.Linear(4 * d_model, d_model, bias=False)

    def attention(self, x):
        parts = self.qkv_proj(x).chunk(3, dim=-1)  # three of (B, T, D)
        q, k, v = (part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for part in parts)  # (B, H, T, K)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5  # (B, H, T, T)
        future = torch.ones_like(scores).triu(1) > 0
        weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))  # (B, T, D)

    def forward(self, x):
        x = x + self.attention(self.attn_norm(x))
        return x + self.down_proj(self.up_proj(self.ff_norm(x)).relu())


class GPT(nn.Module):
    def __init__(self, vocab_size, d_model=128, n_heads=4, n_layers=3, max_len=64):
        super().__init__()
        self.token_embed = nn.Embedding(vocab_size, d_model)
        self.pos_embed = nn.Embedding(max_len, d_model)
        self.blocks = nn.Sequential(*(Block(d_model, n_heads) for _ in range(n_layers)))
        self.final_norm = nn.LayerNorm(d_model, bias=False)
        self.head = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, ids):  # (B, T) -> logits (B, T, V)
        x = self.token_embed(ids) + self.pos_embed.weight[: ids.shape[1]]  # (B, T, D)
        return self.head(self.final_norm(self.blocks(x)))

    @torch.no_grad()
    def generate(self, ids, n_new, temperature=1.0):
        for _ in range(n_new):
            logits = self(torch.tensor([ids[-self.pos_embed.num_embeddings :]]))[0, -1]  # (V,)
            probs = (logits / temperature).softmax(dim=-1)
            ids = [*ids, torch.multinomial(probs, 1).item()]
        return ids


if __name__ == "__main__":
    given = sys.argv[1:] or ([NOVELS] if NOVELS.exists() else sys.exit(__doc__))
    name, n_steps, temperature = [*given, *[2000, 1.0][len(given) - 1 :]]
    n_steps, temperature = int(n_steps), float(temperature)
    file = gzip.open(name, "rt", encoding="utf-8") if name == NOVELS else open(name, encoding="utf-8")
    text = "\n".join(json.loads(line)["text"] for line in file) if name == NOVELS else file.read()
    len(text) > 64 or sys.exit(f"FILE must hold at least 65 characters, got {len(text)}")
    chars = sorted(set(text))
    rows = torch.tensor([chars.index(char) for char in text]).unfold(0, 65, 1)  # every 65 in a row
    torch.manual_seed(0)
    model = GPT(len(chars))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(1, n_steps + 1):
        batch = rows[torch.randint(len(rows), (32,))]  # (B, T + 1)
        loss = nn.functional.cross_entropy(model(batch[:, :-1]).transpose(1, 2), batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step & (step - 1) == 0 or step == n_steps:  # at each doubling
            sample = "".join(chars[i] for i in model.generate([rows[0, 0].item()], 80, temperature))
            print(f"step {step}, loss {loss.item():.2f} nats a character: {sample!r}", flush=True)
