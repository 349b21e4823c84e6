# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 07 · Your own GPT
#
# **Can I build it?**
#
# After this lesson you can
#
# 1. assemble a language model from functions of lessons 02 to 05, and name the shapes at each step;
# 2. load its parameters into another implementation, and take equal logits as the proof;
# 3. write the sampling loop, and say what temperature, top-k and top-p do to a distribution;
# 4. train the model, read its samples, and set its loss next to the entropy bound (*Further*).
#
# *You need:* lessons [02](02_attention_and_masks.ipynb) to [05](05_the_block.ipynb).
# *It takes:* an hour, nearly twice that with everything.

# %% [markdown]
# ## Set-up
# %%
import copy
import math

import torch
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots
from tinytx_course.labs.lesson_07 import loss_of, read_rows
from tinytx_run.recipes import default_budget

smoke = default_budget() == "smoke"  # with this budget the model learns little

# %%
course.recall("07")

# %%
plots.diagram("ids-to-logits")

# %% [markdown]
# ## Your own parts
#
# Seven are exercises of lessons 02 to 05 (*Further*). `course.use` loads yours if it passed its check, else ours.

# %%
(
    causal_mask, attention, multi_head_attention, layer_norm, feed_forward,
    block, sinusoidal_positions,
) = course.use(
    "causal_mask", "attention", "multi_head_attention", "layer_norm", "feed_forward",
    "block", "sinusoidal_positions",
)

# %% [markdown]
# ## Why: the smallest language model
#
# The smallest **language model** has two parts. The embedding gives a row for each id. The output layer turns this row into one score for each token, the **logits**. On paper: let the row of token $i$ be a 1 at place $i$ and 0 elsewhere. It picks row $i$ of the output layer, and this holds the logarithms of the counts after $i$. After _le_ came *chat* three times and *chien* once, so the softmax gives $\frac34$ and $\frac14$, at every _le_. That is a **bigram model**. All that a GPT adds lies between these two layers.
#
# ## Assemble
#
# Your functions take their weights as arguments; modules hold them. `nn.Linear` stores the transpose of the matrices in your exercises.


# %%
class Norm(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        return layer_norm(x, self.weight, torch.zeros_like(self.weight), 1e-5)


class FeedForward(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.up_proj = nn.Linear(d_model, 4 * d_model, bias=False)
        self.down_proj = nn.Linear(4 * d_model, d_model, bias=False)

    def forward(self, x):
        w_up, w_down = self.up_proj.weight.T, self.down_proj.weight.T  # (D, F), (F, D)
        no_up, no_down = x.new_zeros(w_up.shape[1]), x.new_zeros(w_down.shape[1])
        return feed_forward(x, w_up, no_up, w_down, no_down)


# %% [markdown]
# Attention makes its mask; the block is pre-norm.


# %%
class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            self.add_module(name, nn.Linear(d_model, d_model, bias=False))

    def forward(self, x):
        weights = (projection.weight.T for projection in self.children())  # (D, D) each
        return multi_head_attention(x, *weights, self.n_heads, causal_mask(x.shape[1]))


class Block(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.attn_norm, self.attn = Norm(d_model), SelfAttention(d_model, n_heads)
        self.ff_norm, self.ff = Norm(d_model), FeedForward(d_model)

    def forward(self, x):
        return block(x, self.attn, self.ff, self.attn_norm, self.ff_norm, True)


# %% [markdown]
# The picture above as code is yours to write. The embeddings will be drawn with a standard deviation of $1/\sqrt{D}$: multiplied by $\sqrt{D}$, they are about as large as the positions.
#
# [exercise: tiny_gpt]


# %%
def tiny_gpt(token_ids, token_embed, positions, blocks, final_norm, w_out):
    ...


# %%
course.check("tiny_gpt", tiny_gpt)

# %% [markdown]
# ### The whole model

# %%
(logits_of,) = course.use("tiny_gpt")


class GPT(nn.Module):
    def __init__(self, vocab_size, d_model=96, n_heads=4, n_layers=2, max_len=128):
        super().__init__()
        self.max_len = max_len
        self.token_embed = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.token_embed.weight, std=d_model**-0.5)
        positions = sinusoidal_positions(max_len, d_model).float()  # (max_len, D)
        self.register_buffer("positions", positions, persistent=False)
        self.blocks = nn.Sequential(*(Block(d_model, n_heads) for _ in range(n_layers)))
        self.final_norm = Norm(d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, token_ids):  # (B, T) -> (B, T, V)
        return logits_of(
            token_ids, self.token_embed.weight, self.positions, self.blocks,
            self.final_norm, self.head.weight.T,
        )


# %% [markdown]
# It reads the French reviews of `"world"`, or a text file of yours.

# %% tags=["nbval-check-output"]
corpus, tokenizer, rows, held_out = read_rows("world")  # <- or "my_text.txt"
_ = torch.manual_seed(1)
model = GPT(tokenizer.vocab_size)
print(f"{len(rows):,} texts, {tokenizer.vocab_size:,} tokens in the vocabulary")

# %% [markdown]
# ## Is it right? Compare
#
# A model without its mask has the right shapes too. So compare with another implementation. A **state dict** maps each parameter's name to its numbers. If `tx.LanguageModel` takes all of ours and gives the same logits, no mask, scale or norm is wrong, unless both share the mistake.

# %% tags=["nbval-check-output"]
V = tokenizer.vocab_size
config = tx.TransformerConfig(
    vocab_size=V, d_model=96, n_heads=4, n_layers=2, d_ff=384, max_len=128,
    activation="relu", bias=False,
)
random_ids, other = torch.randint(V, (3, 17)), copy.deepcopy(model)
twin = tx.LanguageModel(config).eval()
for name, weight in other.named_parameters():
    if "norm" in name:  # one that forgets its weights is right while they are 1
        nn.init.uniform_(weight, 0.5, 1.5)
weights = other.state_dict()
twin.head.load_state_dict({"weight": weights.pop("head.weight")})
twin.body.load_state_dict(weights)
torch.testing.assert_close(other(random_ids), twin(random_ids), rtol=1e-4, atol=1e-4)
print(f"equal logits from {tx.count_parameters(model):,} equal parameters")

# %% [markdown]
# ## The sampling loop
#
# A language model repeats three steps: *read* what there is, *draw* the next token by the last position, *append* it.

# %%
@torch.no_grad()
def write(model, tokenizer, start="", temperature=1.0, seed=0):
    rng = torch.Generator().manual_seed(seed)  # torch's own numbers stay as they are
    ids = [tokenizer.bos_id, *tokenizer.encode(start)]
    while len(ids) < 60 and ids[-1] != tokenizer.eos_id:
        logits = model(torch.tensor([ids[-model.max_len :]]))[0, -1]  # (V,): read
        probs = (logits / temperature).softmax(dim=-1)
        drawn = torch.multinomial(probs, num_samples=1, generator=rng)
        ids.append(drawn.item())  # append
    return tokenizer.decode(ids)


# %% [markdown]
# The **temperature** divides the logits: below 1 it favours the probable tokens more. **Top-k** keeps the $k$ most probable tokens, **top-p** the fewest that reach $p$ together; what is kept is made to sum to 1.
#
# ### Further: which token next?
#
# A temperature $\tau$ raises probabilities to the power $1/\tau$. On paper, for $\tau = \frac12$: 0.4, 0.3, 0.2 and 0.1 have the squares 0.16, 0.09, 0.04 and 0.01, divided by their sum 0.3. Top-p keeps the token that crosses $p$, too. (Top-p: Holtzman et al., [arXiv:1904.09751](https://arxiv.org/abs/1904.09751), section 3.1; top-k: Fan et al., [arXiv:1805.04833](https://arxiv.org/abs/1805.04833), section 5.4.)

# %% tags=["nbval-check-output"]
start = torch.tensor([0.4, 0.3, 0.2, 0.1])
cold = (start.log() / 0.5).softmax(dim=-1)
torch.testing.assert_close(cold, torch.tensor([0.16, 0.09, 0.04, 0.01]) / 0.3)
two = start * (start >= start.topk(2).values[-1])  # top-k, k = 2
before = start.cumsum(dim=0) - start  # 0, 0.4, 0.7, 0.9
three = start * (before < 0.8)  # top-p, p = 0.8: 0.7 is not enough, the third stays
for name, kept in {"temperature 0.5": cold, "top-k 2": two, "top-p 0.8": three}.items():
    print(f"{name:<16}", *(f"{p:.3f}" for p in kept / kept.sum()))

# %% [markdown]
# ## A short training
#
# The targets are the inputs shifted by one. The loss, `loss_of`, is the mean of $-\ln p$ of the token that came, in **nats**. [Lesson 08](08_pretraining.ipynb) takes loss and loop apart.

# %%
def learn(model, rows, n_steps, watch=None, lr=6e-3):
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0)
    for step in range(1, n_steps + 1):
        # up for 30 steps, down in the second half
        rate = min(1, step / 30, 2 * (n_steps + 1 - step) / n_steps)
        optimizer.param_groups[0]["lr"] = lr * rate
        loss = loss_of(model, [rows[i] for i in torch.randint(len(rows), (24,))])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if watch and (step & (step - 1) == 0 or step == n_steps):  # 1, 2, 4, 8 ...
            watch(step)


# %% [markdown]
# At steps 1, 2, 4, 8 … the model writes, and we measure its loss on 100 reviews that it never trains on. **Predict 07.1.**

# %%
course.predict(
    "07.1",
    "A uniform guess has a loss of ln V. When is the held-out loss below half of that?",
    ["by step 16", "by step 128", "later or not at all"],
)

# %%
samples, held_out_loss = {}, {}
n_steps = 16 if smoke else 350


def watch(step):
    samples[step] = write(model, tokenizer, "Le roman")
    with torch.no_grad():
        held_out_loss[step] = loss_of(model, held_out).item()


learn(model, rows, n_steps, watch)
for step, text in list(samples.items())[::3]:
    print(f"{step:>4}  {text[:48]}")
half = math.log(V) / 2
first = min((n for n, nats in held_out_loss.items() if nats < half), default=math.inf)
found = f"Half of ln V is {half:.2f}. First measured below at step {first}."
print(f"after {n_steps} steps {held_out_loss[n_steps]:.2f} nats, ln V {2 * half:.2f}")
course.resolve("07.1", first, found, thresholds=(17, 129))

# %% [markdown]
# A model trained for longer: type a French beginning. *Would say* sends each level to the output layer.

# %%
course.widgets.live_model("Le roman est")

# %% [markdown]
# ### Further: how far from the bound?
#
# The text comes from a known grammar, so the probability of each text is known, and with it the **entropy bound**: no model can expect a lower loss on new text. Here it is estimated on 100 reviews.

# %%
from tinytx_run.evaluate import exact_nats

n_tokens = sum(len(row) - 1 for row in held_out)
references = {"ln V, a uniform guess": math.log(V)}
steps, losses = list(held_out_loss), list(held_out_loss.values())
if corpus.name == "world":
    bound = exact_nats(corpus, corpus.valid.texts[:100]).sum() / n_tokens
    references["entropy bound"] = bound
    assert smoke or bound < losses[-1] < (bound + math.log(V)) / 2
fig, ax = plots.curves(
    [plots.Curve("your GPT", steps, losses)], references=references, x_log=True,
    xlabel="step (logarithmic)", ylabel="held-out loss (nats per token)",
    y_range=(0, 8.5), title="Held-out loss of your GPT",
)
plots.show(fig, name="07_learning")
for name, nats in {f"after {steps[-1]} steps": losses[-1], **references}.items():
    print(f"{name:<24}{nats:.2f} nats per token")

# %% [markdown]
# **It comes most of the way from the uniform guess to the bound.** That is the easy part: so does counting pairs of tokens, the *2-gram* of the next section.
#
# ## Further: leave one part out
#
# We take one part away and train a new model for as many steps, from five seeds (stored). A sublayer is replaced by a module that adds nothing, the positions by zeros. **Predict 07.2.**

# %%
course.predict(
    "07.2",
    "Without which part is the held-out loss highest after 350 steps?",
    ["attention", "feed-forward network", "positions"],
)

# %%
from tinytx_course.results import read_results

parts = ("no part", "attention", "feed-forward network", "positions")
stored = read_results("ablation")
print(stored.source_line())
found = {part: [] for part in ("2-gram", *parts)}
for one in stored.data.values():
    found[one["left out"]].append(one["loss"])
for part, nats in found.items():
    print(f"{part:<21}{sum(nats) / len(nats):.2f} ({min(nats):.2f} to {max(nats):.2f})")
assert {one["n_steps"] for one in stored.data.values()} == {0, 350}
assert all(len(found[part]) == 5 for part in parts)
assert all(abs(nats - found["2-gram"][0]) < 0.05 for nats in found["attention"])
rest = (*found["feed-forward network"], *found["positions"])
assert max(rest) < min(found["no part"]) + 0.1 < min(found["attention"])
course.resolve("07.2", "attention", f"It is so with each of the {len(nats)} seeds.")

# %% [markdown]
# A 2-gram model counts pairs of tokens, smoothed, in the same text. **Without attention the model comes down to about what counting pairs gives**, a little below (more so after twice the steps: it still has positions, which pairs have not). After these steps, at one learning rate for all, it loses less than a tenth of a nat without the feed-forward network or the positions in this simple language, with every seed. After twice the steps (two other seeds)?

# %%
twice = {part: [] for part in ("2-gram", *parts)}
for one in read_results("doubt-ablation").data.values():
    twice[one["left out"]].append(one["loss"])
for part, nats in twice.items():
    print(f"{part:<21}", *(f"{loss:.2f}" for loss in nats))
assert max(twice["positions"]) < min(twice["no part"])
pairs = zip(twice["feed-forward network"], twice["no part"], strict=True)
assert all(abs(less - whole) < 0.01 for less, whole in pairs)

# %% [markdown]
# Then it does a little better without positions (the causal mask still tells what came before), and about as well without the feed-forward network: what 350 steps show of these two is how fast it learns.
#
# The function that was measured:

# %%
class Nothing(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)


def without(part, seed, n_steps):
    torch.manual_seed(seed)
    changed = GPT(tokenizer.vocab_size)
    for layer in changed.blocks:
        if part == "attention":
            layer.attn = Nothing()
        if part == "feed-forward network":
            layer.ff = Nothing()
    if part == "positions":
        changed.positions = torch.zeros_like(changed.positions)
    learn(changed, rows, n_steps)
    with torch.no_grad():
        return loss_of(changed, held_out).item()

# %% [markdown]
# ## Questions

# %%
course.quiz("your_own_gpt")

# %% [markdown]
# ## Further: three more exercises
#
# [exercise: tie_embeddings]


# %%
def tie_embeddings(model):
    ...


# %%
course.check("tie_embeddings", tie_embeddings)

# %% [markdown]
# [exercise: generate]


# %%
def generate(model, token_ids, n_new, max_len, draw):
    ...


# %%
course.check("generate", generate)

# %% [markdown]
# [exercise: next_token_probs]


# %%
def next_token_probs(logits, temperature, top_k, top_p):
    ...


# %%
course.check("next_token_probs", next_token_probs)

# %% [markdown]
# ## Take-home: GPT on one page
#
# | step | what happens |
# |---|---|
# | embed | each id becomes a row of the embedding, times $\sqrt D$, plus its position: (B, T, D) |
# | each block | `x + attn(norm(x))`, then `x + ff(norm(x))` |
# | output | the final norm, then one score for each token: (B, T, V) |
# | train | targets are the inputs shifted by one |
# | write | read, draw, append |
#
# The file `gpt_one_page.py` next to the notebooks holds all of it without `tinytx`, and trains on novels or on a file of yours.
#
# ## What this does not show
#
# The model is tiny, its language simple, and the samples are of one seed.
#
# ## Summary
#
# 1. Equal logits with another implementation are strong evidence, shapes little.
# 2. Temperature, top-k and top-p change the distribution that is drawn from.
#
# *Where this comes from:* Vaswani et al., [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), section 3.4, for the scaled embedding; Radford et al., *Language Models are Unsupervised Multitask Learners* (2019), section 2.3, for pre-norm with a final norm.
#
# *What comes next:* [lesson 08](08_pretraining.ipynb) asks what predicting the next token teaches.
