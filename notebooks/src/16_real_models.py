# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 16 · Real models
#
# **Is it the same machine?**
#
# Others have published the weights of larger transformers. If theirs is the same machine, these weights give the same outputs in our code. We take their classes and settings, with random weights; *Further* opens real ones where they lie on your disk.
#
# After this lesson you can
#
# 1. count the parameters of published models from their settings;
# 2. show by outputs that weights carried into our model and back lost nothing, and find what a wrong conversion got wrong;
# 3. *Further:* write LoRA, and choose between it, a frozen body and full fine-tuning.
#
# *You need:* lesson 06 for the counts; lesson 09 for *Further*. *It takes:* an hour and a half to read and do; a minute to run on two cores. Nothing is downloaded.

# %% [markdown]
# ## Set-up

# %%
import math
import tempfile

import torch
import torch.nn.functional as F
import transformers
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx_run.recipes import default_budget

_ = torch.manual_seed(0)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
smoke, folder = default_budget() == "smoke", tempfile.mkdtemp()

# %%
course.recall("16")

# %% [markdown]
# ## Why: "it loaded without an error"
#
# The **tempting wrong way**: rename the tensors until every shape fits, load, and be glad that nothing complained.
#
# ## Count before you load
#
# A model is published with its settings, a file named `config.json`. `config_from_transformers` writes them as a `TransformerConfig` of ours, and the closed form of lesson 06 must give the number of parameters of *their* model, built on the device `meta`, where tensors have no memory.

# %% tags=["nbval-check-output"]
from tinytx_course.labs.lesson_06 import PUBLISHED
from tinytx_run.hf.convert import config_from_transformers

kinds = {  # the class, and its head of a language model
    "GPT-2 small": ("GPT2", "LMHeadModel", "lm"),
    "BERT base": ("Bert", "ForMaskedLM", "masked"),
    "CamemBERT base": ("Camembert", "ForMaskedLM", "masked"),
}
totals, ours_of = {}, {}
print(f"{'':<16}norm   positions   activation  closed form      counted")
for name, (family, kind, head) in kinds.items():
    given = PUBLISHED[name].settings
    given = given | {"pad_token_id": 1} if family == "Camembert" else given
    config = getattr(transformers, f"{family}Config")(**given)
    with torch.device("meta"):
        theirs = getattr(transformers, family + kind)(config)
    counted = sum(p.numel() for p in theirs.parameters())
    ours_of[name] = ours = config_from_transformers(config)
    totals[name] = tx.parameter_table(ours, head=head).total
    assert totals[name] == counted, name
    print(f"{name:<16}{ours.norm:<7}{ours.positions:<12}{ours.activation:<11}", end="")
    print(f"{totals[name]:>12,}{counted:>13,}")

# %% [markdown]
# **Finding:** the counts agree to the last parameter, three times: hardly a layer can be missing or too wide. Whether they compute the same, only outputs show.
#
# From here on *theirs* is a tiny GPT-2, all of its numbers random, and *ours* is converted from it.

# %%
from tinytx_run.hf.convert import from_transformers

sizes = {"vocab_size": 13, "n_embd": 10, "n_head": 5, "n_layer": 3, "n_inner": 7}
config = transformers.GPT2Config(**sizes, n_positions=11)
tiny = transformers.GPT2LMHeadModel(config).eval()


def randomise(model):
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model


ours = from_transformers(randomise(tiny))

# %% [markdown]
# ### Further: where the names and the axes differ
#
# Which of our tensors is which of theirs? Do not believe names: look for equal *contents*. Here are the matrices and norms of one block:

# %% tags=["nbval-check-output"]
print(f"{'ours':<21}{'shape':<10}{'theirs':<20}{'shape':<10}how")
named = ours.body.blocks[0].named_parameters()
for name, weight in [(name, w) for name, w in named if name.endswith("weight")]:
    for other, given in tiny.transformer.h[0].named_parameters():
        parts = given.chunk(3, dim=-1) if "c_attn" in other else [given]
        for number, part in enumerate(parts):
            turned = part.dim() == 2 and torch.equal(part.T, weight)
            if torch.equal(part, weight) or turned:
                how = [f"third {number + 1} of 3"] * (len(parts) > 1)
                how = ", ".join(how + ["transposed"] * turned)
                shapes = [str(tuple(tensor.shape)) for tensor in (weight, given)]
                line = f"{name:<21}{shapes[0]:<10}{other:<20}{shapes[1]:<10}{how}"
                print(line.rstrip())

# %% [markdown]
# Names differ, and the matrices are transposed, three of them in one: the next section.
#
# ## By hand: three matrices out of one
#
# GPT-2 holds its matrices as (in, out), where `nn.Linear` holds (out, in). And queries, keys and values come out of **one** matrix, `c_attn`. With width 2 and the numbers 1 to 12 it has two rows (in), (1, ..., 6) and (7, ..., 12). The first two columns (out) are the queries, the next two the keys. So our `k_proj.weight` is [[3, 9], [4, 10]]; not transposed it would be [[3, 4], [9, 10]], and `reshape(3, 2, 2)` would take the queries for [[1, 2], [3, 4]].
#
# Now the tiny GPT-2 is converted four ways. **Predict 16.1.**

# %%
outcomes = ("the same logits", "other logits, and no error", "loading raises an error")
course.predict("16.1", "`c_attn` is cut by `reshape(3, D, D)`. What happens?", outcomes)

# %%
def converted(cut=None, transpose_out=False):
    model = from_transformers(tiny)
    for block, given in zip(model.body.blocks, tiny.transformer.h, strict=True):
        attn, out = block.attn, block.attn.out_proj.weight
        layers = attn.q_proj, attn.k_proj, attn.v_proj
        thirds = () if cut is None else cut(given.attn.c_attn.weight.data)
        for layer, third in zip(layers[: len(thirds)], thirds, strict=True):
            layer.weight.data.copy_(third)  # complains where a shape differs
        out.data = out.data.T.contiguous() if transpose_out else out.data
    return model


ways = {
    "as it should be": {"cut": lambda w: [part.T for part in w.chunk(3, dim=1)]},
    "thirds not transposed": {"cut": lambda w: w.chunk(3, dim=1)},
    "cut by reshape": {"cut": lambda w: w.reshape(3, 10, 10)},
    "out_proj transposed": {"transpose_out": True},
}
token_ids, moved = torch.randint(13, (2, 7)), {}
for name, how in ways.items():
    try:
        difference = converted(**how)(token_ids) - tiny(token_ids).logits
        moved[name] = difference.abs().max().item()
    except RuntimeError:
        moved[name] = math.inf
    print(f"{name:<24}difference {moved[name]:.5f}")
n_wrong = sum(1e-5 < largest < math.inf for largest in moved.values())
course.resolve(
    "16.1", moved["cut by reshape"], f"{n_wrong} wrong models run.",
    thresholds=(1e-5, 1e9),
)

# %% [markdown]
# **Finding:** a conversion is right when *outputs* are equal, and the numbers had better be random everywhere. New norms are all alike, so no test can see that two of them were exchanged.
#
# ### Further: can equal outputs be fooled?
#
# A new model has biases of zero and norms of one. Here the two norms of each block are exchanged, in a model as it is initialised and in one where *every* number is random:

# %% tags=["nbval-check-output"]
fresh = transformers.GPT2LMHeadModel(config).eval()
for name, theirs in {"as initialised": fresh, "all random": randomise(tiny)}.items():
    wrong = from_transformers(theirs)
    for block in wrong.body.blocks:
        block.attn_norm, block.ff_norm = block.ff_norm, block.attn_norm
    with torch.no_grad():
        difference = (wrong(token_ids) - theirs(token_ids).logits).abs().max()
    print(f"{name:<16}norms exchanged: {'seen' if difference > 1e-3 else 'not seen'}")

# %% [markdown]
# ## Into ours and back
#
# Now with random numbers everywhere and padding on the right: `from_transformers` builds our model, `to_transformers` builds theirs from ours. The logits at real tokens may differ by rounding only.

# %% tags=["nbval-check-output"]
from tinytx_run.hf.convert import to_transformers

pad = {"pad_token_id": 1, "eos_token_id": 2}
sizes = {"vocab_size": 13, "hidden_size": 10, "num_hidden_layers": 3,
         "num_attention_heads": 5, "intermediate_size": 7,
         "max_position_embeddings": 13}
bert = transformers.BertConfig(**sizes)
camembert = transformers.CamembertConfig(**sizes, **pad, type_vocab_size=1)
token_ids = torch.randint(2, 13, (2, 9))
token_ids[1, 6:] = 1  # padding
real = token_ids != 1
for theirs in (
    tiny,
    transformers.BertForMaskedLM(bert),
    transformers.CamembertForMaskedLM(camembert),
):
    ours = from_transformers(randomise(theirs.eval()))
    with torch.no_grad():
        wanted = theirs(token_ids, attention_mask=real.long()).logits[real]
        back = to_transformers(ours)(token_ids, attention_mask=real.long()).logits[real]
        got = ours(token_ids, real)[real]
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(back, wanted, atol=1e-5, rtol=1e-5)
    print(f"{type(theirs).__name__:<22} -> {type(ours).__name__:<20} -> back: equal")

# %% [markdown]
# **Finding:** it is the same machine: two of our model classes compute what three published architectures compute, on tiny models. At full size only the counts were compared.
#
# ### Ours as one of theirs
#
# A causal model of ours, trained for a few seconds, is saved in *their* form: its sinusoids become a table of learned positions, as GPT-2 has no others. `AutoModelForCausalLM`, which knows nothing of this course, opens the folder and must give the same logits. Converted back, their model shows its attention in our explorer: to which tokens does the last one attend?

# %%
from tinytx_run.hf.convert import save_transformers

trained = tx.pretrain(
    "world", model_changes={"positions": "sinusoidal"},
    training_changes={"n_steps": 20 if smoke else 80},
    options=tx.RunOptions(progress=False, report=lambda line: None),
)
model, tokenizer = trained.model.cpu(), trained.tokenizer
save_transformers(model, folder, tokenizer)
loaded = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
sentence = "Le roman est beau."
row = torch.tensor([tokenizer.encode(sentence)])
with torch.no_grad():
    torch.testing.assert_close(loaded(row).logits, model(row), atol=1e-4, rtol=1e-4)
print("equal logits: trained here, opened by transformers")
pieces = tokenizer.pieces(sentence)
back = from_transformers(loaded)
course.widgets.attention(back, pieces, token_ids=row[0], query=len(pieces) - 1)

# %% [markdown]
# ## Further: adapting a model that is too large
#
# Lesson 09 has two ways to teach a pretrained body a task. *Frozen*: a new head on fixed vectors. *Full*: everything is trained. For each trained parameter AdamW stores two running means next to the gradient, so in float32 a parameter takes 16 bytes instead of 4. And every task needs a copy of the whole model.
#
# **LoRA** (low-rank adaptation, Hu et al., [arXiv:2106.09685](https://arxiv.org/abs/2106.09685), section 4 and table 4) is a third way. A weight matrix $W$ stays frozen. Next to it two small matrices are trained, $A$ with $R$ rows and $B$ with $R$ columns:
#
# $$h = W x + \frac{\alpha}{R}\, B A x$$
#
# The product $BA$ is as large as $W$, but its **rank** is at most $R$: everything that it adds passes through $R$ numbers.

# %%
from tinytx_course import plots

plots.diagram("low-rank-update")

# %% [markdown]
# By hand with $R = 1$ and $\alpha = 2$:

# %% tags=["nbval-check-output"]
W = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
A, B, alpha = torch.tensor([[1.0, -1.0]]), torch.tensor([[3.0], [0.5]]), 2.0
x = torch.tensor([5.0, 3.0])
answer = A @ x  # (R,)
h = W @ x + alpha / len(A) * B @ answer
print(f"A x = {answer.tolist()}, h = {h.tolist()}; B A = {(B @ A).tolist()}")
assert torch.linalg.matrix_rank(B @ A) == 1
torch.testing.assert_close(h, (W + alpha / len(A) * B @ A) @ x)

# %% [markdown]
# $W + \frac{\alpha}{R} BA$ is *one* matrix again: after training the update can be **merged** into $W$, and the model is as fast as before.
#
# ### LoRA by hand

# %% tags=["nbval-check-output"]
class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base.requires_grad_(False)  # W and its bias get no gradient
        self.a = nn.Parameter(torch.empty(rank, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))  # as nn.Linear starts
        self.scale = alpha / rank

    def forward(self, x):  # (B, T, D_in)
        low = x @ self.a.T  # (B, T, R)
        return self.base(x) + self.scale * low @ self.b.T  # (B, T, D_out)


from tinytx import lora

base, x = nn.Linear(5, 7), torch.randn(2, 3, 5)
layer, package = LoRALinear(base, 2, 8.0), lora.LoRALinear(base, 2, 8.0)
assert torch.equal(layer(x), base(x))  # B is zero
package.load_state_dict(layer.state_dict())
for module in (layer, package):
    nn.init.ones_(module.b)
torch.testing.assert_close(layer(x), package(x))
print("trained:", [name for name, p in layer.named_parameters() if p.requires_grad])

# %% [markdown]
# ### Why one zero and one random?
#
# $B = 0$ makes the first output exact, whatever $A$ is. Why not two zeros, or two random matrices? We try four starts on a small problem: a frozen random layer, and targets from the same layer plus an update of rank 2. **Predict 16.2.**

# %%
starts = ("A random, B zero", "A zero, B random", "both random", "both zero")
course.predict("16.2", "Which start learns nothing at all?", starts)

# %%
generator = torch.Generator().manual_seed(1)
inputs = torch.randn(64, 20, generator=generator)  # (N, D)
base = nn.Linear(20, 20, bias=False)
left, right = torch.randn(2, 20, 2, generator=generator)
targets = (base(inputs) + inputs @ (right @ left.T) / 5).detach()
print(f"{'':<20}moved before training   loss before   after 300 steps")
losses = {}
for start in starts:
    layer, how = LoRALinear(base, rank=2, alpha=2.0), start.split(",")
    for weight, kind in ((layer.a, how[0]), (layer.b, how[-1])):
        nn.init.normal_(weight, std=0.2 * ("random" in kind), generator=generator)
    moved = "no" if torch.equal(layer(inputs), base(inputs)) else "yes"
    optimizer = torch.optim.AdamW([layer.a, layer.b], lr=0.02, weight_decay=0.0)
    of = losses[start] = []
    for _ in range(300):
        loss = F.mse_loss(layer(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        of.append(loss.item())
    print(f"{start:<20}{moved:<24}{of[0]:<14.3f}{of[-1]:.3f}")
(stuck,) = (start for start, of in losses.items() if of[0] == of[-1])
course.resolve("16.2", stuck, "Each gradient is multiplied by the other matrix.")

# %% [markdown]
# The gradient of $B$ is a product with $A$, and that of $A$ a product with $B$: from two zeros nothing ever moves. *Both random* changes the model before it has seen a label. The paper makes $A$ random.
#
# ### How many parameters?
#
# For one matrix, $A$ and $B$ together have $R\,(D_{in} + D_{out})$ numbers instead of $D_{in} \cdot D_{out}$. As in the paper, we adapt the queries and values of every layer: $2 L$ matrices of $D \times D$, so $2 L \cdot R \cdot 2D$. **Predict 16.3.**

# %%
question = "What share of its parameters does LoRA train in GPT-2 small, with rank 4?"
options = ["about 10 %", "about 1 %", "about 0.1 %", "about 0.01 %"]
course.predict("16.3", question, options)

# %%
with torch.device("meta"):
    large = tx.LanguageModel(ours_of["GPT-2 small"])
    lora.add_lora(large, rank=4)
n_lora = sum(p.numel() for p in large.parameters() if p.requires_grad)
assert n_lora == 2 * 12 * 4 * 2 * 768  # 2 L · R · 2 D
n_all = totals["GPT-2 small"]
for name, n in {"full": n_all, "LoRA": n_lora}.items():
    gigabytes = (4 * n_all + 12 * n) / 1e9
    print(f"{name}: {n:>11,} trained; weights, gradients and AdamW {gigabytes:.2f} GB")
finding = f"It is {n_lora / n_all:.2%}, {4 * n_lora / 1e6:.1f} MB a task."
course.resolve("16.3", "about 0.1 %", finding)

# %% [markdown]
# The activations for the backward pass are not in these figures: LoRA still runs the whole model forward, and most of it backward.
#
# ### Frozen, LoRA or full
#
# The body is the pretrained model that ships with the course, the task that of lesson 09. `python -m experiments lora` has measured three ways with six seeds, each with other labels, and as controls a frozen body and LoRA on *random* weights. Each way searched the same seven learning rates on labelled validation reviews, more than it trains on with few labels; nothing was tuned on the 2,000 test reviews. Of 20, 80 and 320 labels there are 30, 15 and 6 passes, so a table over their numbers is also one over passes and rates.

# %%
from tinytx_course.results import read_results
from tinytx_run.intervals import paired_interval

stored = list(read_results("lora").data.values())
bound = next(one["accuracy"] for one in stored if one["measure"] == "bound")
rows = [one for one in stored if one["measure"] == "accuracy"]
n_labels = sorted({one["n_labels"] for one in rows})
assert dict(rows[0]["origin"]["plan"]["passes"]) == {20: 30, 80: 15, 320: 6}


def measured(n, start, field="accuracy", of=rows):
    chosen = [one for one in of if (one["n_labels"], one["start"]) == (n, start)]
    return [one[field] for one in sorted(chosen, key=lambda one: one["seed"])]


# %% tags=["folded"]
ways = frozen, adapted, full = "pretrained frozen", "pretrained lora", "pretrained full"
lines = []
for start in (*ways, "random frozen", "random lora"):
    of = [paired_interval(measured(n, start)) for n in n_labels]
    mean, low, high = zip(*((one.mean, one.low, one.high) for one in of), strict=True)
    dashed = start not in ways
    lines.append(plots.Curve(start, n_labels, mean, low=low, high=high, dashed=dashed))
fig, ax = plots.curves(
    lines, xlabel="labelled reviews", ylabel="accuracy on the test reviews", x_log=True,
    references={"best reachable": bound}, title="Three ways to adapt one model",
)
ax.set_xticks(n_labels, [f"{n:,}" for n in n_labels])
ax.minorticks_off()
plots.show(fig, "16_three_ways")

# %% [markdown]
# Bands are 95 % intervals over the seeds. The seeds share labels and order, so differences are taken in pairs, and as there are nine, the intervals are widened by Bonferroni's correction (lesson 14):

# %%
def difference(one, other, n, n_comparisons, field="accuracy", of=rows):
    both = (measured(n, start, field, of) for start in (one, other))
    return paired_interval([a - b for a, b in zip(*both, strict=True)], n_comparisons)


pairs = ((adapted, full), (adapted, frozen), (adapted, "random lora"))
gains = {(*pair, n): difference(*pair, n, 9) for pair in pairs for n in n_labels}
for (one, other, n), gain in gains.items():
    print(f"{one} minus {other:<18}{n:>4} labels {gain.mean:+.3f}", end="  ")
    print(f"[{gain.low:+.3f}, {gain.high:+.3f}]")
assert [n for n in n_labels if gains[adapted, frozen, n].low > 0] == n_labels[1:]
for n in n_labels:
    assert gains[adapted, frozen, n].mean > 0 > gains[adapted, full, n].mean
    assert gains[adapted, "random lora", n].low > 0
    assert not gains[adapted, full, n].excludes_zero

# %% [markdown]
# **Finding:** with 80 labels and more LoRA is ahead of the frozen body; with 20 that is open. It is too close to full fine-tuning to call. On a random body LoRA stays far behind after these passes. All this was measured on one easy task, one small body and one rank.
#
# ### Merge, or remove
#
# One adapter, trained on a few labels. `merge_lora` adds the update to the weights: the same answers from an ordinary model. `remove_lora` takes it away: the old body, to the last bit. So one body can serve many tasks, each with a small file of its own.

# %% tags=["nbval-check-output"]
import copy

from tinytx_course.engine import shipped_model
from tinytx_course.labs import lesson_16 as lab
from tinytx_run.corpora import label_subset

corpus, shipped = tx.load_corpus("world"), shipped_model()
model = lab.adapted(shipped.model.body, "lora", seed=0)
few = label_subset(corpus.train, 20, seed=0)
how = {"lr": 1e-2, "n_epochs": 2 if smoke else 15, "seed": 0}
lab.fine_tune(model, shipped.tokenizer, few, **how)
ids = torch.tensor([shipped.tokenizer.encode(corpus.test.texts[0])])
with torch.no_grad():
    adapted_logits = model(ids)
    merged = copy.deepcopy(model)
    lora.merge_lora(merged.body)
    torch.testing.assert_close(merged(ids), adapted_logits, atol=1e-5, rtol=1e-5)
    lora.remove_lora(model.body)
    assert torch.equal(model.body(ids), shipped.model.body.eval()(ids))
print("merged: the same logits; removed: the old body, exactly")

# %% [markdown]
# ### What it costs, and what it forgets
#
# *Forgotten* puts the old head of the language model back and measures by how much the next-token loss has risen. Training that spoils what was learned before is called **catastrophic forgetting** (what LoRA learns and forgets: Biderman et al., [arXiv:2405.09673](https://arxiv.org/abs/2405.09673)).

# %%
print(f"{'':<20}{'trained':>10}   forgotten (nats a token), by labels")
for start in ways:
    n_trained = measured(n_labels[0], start, "n_trained")[0]
    means = (paired_interval(measured(n, start, "forgotten")).mean for n in n_labels)
    rises = (f"{n:>7}: {mean:5.2f}" for n, mean in zip(n_labels, means, strict=True))
    print(f"{start:<20}{n_trained:>10,}{''.join(rises)}")

# %% [markdown]
# All was measured again with twice the passes and six other seeds. LoRA minus full, in nats forgotten:

# %%
twice = read_results("doubt-lora").data.values()
twice = [one for one in twice if one["measure"] == "accuracy"]
signs = []
for what, of in {"as above": rows, "twice the passes": twice}.items():
    for n in n_labels:
        gap = difference(adapted, full, n, 3, "forgotten", of)
        signs.append((gap.low > 0) - (gap.high < 0))
        print(f"{what:<18}{n:>3} labels {gap.mean:+.2f}", end=" ")
        print(f"[{gap.low:+.2f}, {gap.high:+.2f}]")
assert signs == [0, -1, -1, -1, 1, -1]
again = [difference(adapted, frozen, n, 9, of=twice) for n in n_labels]
means = (f"{one.mean:+.3f}" for one in again)
print("accuracy, LoRA minus frozen, twice the passes:", *means)
assert min(one.mean for one in again) > 0.02 and again[1].low > 0 < again[2].low
for start in ("random lora", "random frozen"):
    ends = (measured(320, start, of=of) for of in (rows, twice))
    means = [paired_interval(end).mean for end in ends]
    print(f"{start}, 320 labels: {means[0]:.3f} {means[1]:.3f}")
    assert means[0] + 0.05 < means[1]

# %% [markdown]
# The rates differ between the two, and LoRA may forget more by itself:

# %%
once, rates = ({(one["start"], one["n_labels"]): one["lr"] for one in of}
               for of in (rows, twice))
assert (rates[full, 80], rates[adapted, 20]) == (0.0003, 0.003)
assert (once[full, 80], once[adapted, 20]) == (0.001, 0.01)
assert once[adapted, 80] == rates[adapted, 80]
more = {}
for way, n in ((adapted, 80), (adapted, 20), (full, 20)):
    of_both = (measured(n, way, "forgotten", of) for of in (rows, twice))
    ends = [paired_interval(nats).mean for nats in of_both]
    print(f"forgotten by {way}, {n} labels: {ends[0]:.2f} {ends[1]:.2f}")
    more[way, n] = ends[1] - ends[0]
    assert n == 20 or ends[1] > 2 * ends[0]
assert once[full, 20] == rates[full, 20] and more[full, 20] > -more[adapted, 20] > 0

# %% [markdown]
# **Finding:** what was measured is a way *with its rate*, chosen for accuracy alone. With 80 labels the sign turned: full's rate fell, and LoRA, at an unchanged rate, forgot twice as much. With 20 it turned mostly because full, at an unchanged rate, forgot more; LoRA, at a lower rate, forgot less. With 320 both times, at other rates than full. In accuracy LoRA is ahead of the frozen body again with 80 labels and more; on a random body both end higher. Few trained parameters need not be a small change: the update has low rank, but nothing limits its size.
#
# ## Further: published weights, where they lie
#
# The same calls are meant for real weights. The next cell looks in the folder `models` of your data (`TINYTX_DATA` names it), then in the cache of Hugging Face; only with `HF_HUB_OFFLINE=0` in the environment may it use the network. Each model that it finds is counted, and does what it was trained for: continue a text, fill a blank, or translate.

# %%
from tinytx_run.hf.tokenizer import published_tokenizer

PROMPTS = {"gpt2": "Hello, I'm a", "Helsinki-NLP/opus-mt-en-fr": "The book is good.",
           "bert-base-uncased": "Paris is the ___ of France.",
           "camembert-base": "Le camembert est ___."}
for name, prompt in PROMPTS.items():
    source = lab.published_source(name)
    if source is None:
        print(f"{name}: not on this machine")
        continue
    theirs, words = from_transformers(source), published_tokenizer(source)
    print(f"{name}: {tx.count_parameters(theirs):,} parameters;", end=" ")
    print(*words.pieces("Le roman est magnifique ."))
    print("  ", prompt, "->", lab.answer(theirs, words, prompt))

# %% [markdown]
# ## Questions

# %%
course.quiz("real_models")

# %% [markdown]
# ## Exercises
#
# [exercise: split_by_head]


# %%
def split_by_head(weight, n_heads):
    ...


# %%
course.check("split_by_head", split_by_head)

# %% [markdown]
# ## Further: one more exercise
#
# [exercise: lora_start]


# %%
def lora_start(layer, rank):
    ...


# %%
course.check("lora_start", lora_start)

# %% [markdown]
# ## Take-home
#
# | check | what slips through without it |
# |---|---|
# | count the parameters from the settings | a layer that is missing |
# | every number random | two norms that are exchanged |
# | outputs equal, at real tokens | a matrix turned, or cut in another order |
# | there and back | a setting that one of the two lacks |
#
# ## What this does not show
#
# Where it says *not on this machine*, no published weights were loaded: tests on tiny models stand in.
#
# ## Summary
#
# 1. GPT-2, BERT and CamemBERT are models of this course with other settings.
# 2. Equal *outputs*, with every number random, test every weight that these texts use and that can move an output. Equal shapes do not.
# 3. *Further:* LoRA trains a small product $BA$ next to a frozen $W$. With 80 labels and more it is here ahead of a frozen body, and too close to full fine-tuning to call.
#
# *Where this comes from:* CamemBERT: Martin et al., [arXiv:1911.03894](https://arxiv.org/abs/1911.03894).
#
# *What comes next:* [lesson 17](17_looking_inside.ipynb) opens a trained model and asks what it has learned.
