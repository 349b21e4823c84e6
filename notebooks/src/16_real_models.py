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
# After this lesson you can
#
# 1. count the parameters of GPT-2, BERT, CamemBERT and a Marian translator from their published settings, and name what is different from our own model;
# 2. carry weights from a published model into ours and back, and prove that nothing was lost on the way;
# 3. write LoRA in 15 lines, and say why one of its two matrices starts at zero and the other at random;
# 4. choose between a frozen body, LoRA and full fine-tuning: by accuracy, by what is trained and stored, and by what can be undone.
#
# *You need:* lesson 06 for the counts, lesson 09 for fine-tuning. *It takes:* an hour and a half to read and do; a minute to run on two cores. Nothing is downloaded.

# %% [markdown]
# ## Set-up
#
# The models of others come from the package `transformers`, built here from its own configurations. Its hints and progress bars are switched off. With the budget `smoke` everything runs, but little is learned.

# %%
import math
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from torch import nn

import tinytx as tx
import tinytx_course as course
from tinytx_course import plots
from tinytx_course.labs import lesson_16 as lab
from tinytx_run.intervals import paired_interval
from tinytx_run.recipes import default_budget

_ = torch.manual_seed(0)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
smoke, folder = default_budget() == "smoke", Path(tempfile.mkdtemp())

# %% [markdown]
# Two questions from earlier lessons first.

# %%
course.recall("16")

# %% [markdown]
# ## Why: "it loaded without an error"
#
# You have built a transformer, block by block. Other people have trained larger ones for weeks, and published the numbers. If theirs is *the same machine*, their numbers must run in your code. The **tempting wrong way** to get them there: rename the tensors until every shape fits, load, and be glad that nothing complained. We will try it, and measure what it costs.
#
# ## Count before you load
#
# The first test needs no weights at all. A model is published with its settings, a file named `config.json`. `config_from_transformers` writes them as a `TransformerConfig` of ours, or says which setting has no counterpart. Then the closed form of lesson 06 must give the number of parameters. On the device `meta` tensors have shapes and no memory, so we can also build the whole of *their* model and count. **Predict 16.1.**

# %%
names = ("GPT-2 small", "BERT base", "CamemBERT base", "BART base", "Marian en-fr")
course.predict("16.1", "Which of these has the most parameters?", names)

# %%
from tinytx_course.labs.lesson_06 import PUBLISHED
from tinytx_run.hf.convert import config_from_transformers


def both(n_layers, n_heads, d_ff):
    sizes = {"layers": n_layers, "attention_heads": n_heads, "ffn_dim": d_ff}
    halves = "encoder", "decoder"
    return {f"{half}_{key}": size for half in halves for key, size in sizes.items()}


gpt2, bert, camembert = (PUBLISHED[name].settings for name in names[:3])
bart = {"vocab_size": 50_265, "d_model": 768, "max_position_embeddings": 1_024}
marian = {"vocab_size": 59_514, "d_model": 512, "max_position_embeddings": 512,
          "pad_token_id": 59_513, "decoder_start_token_id": 59_513,
          "activation_function": "swish", "scale_embedding": True}  # fmt: skip
settings = [
    ("GPT2", "LMHeadModel", gpt2, "lm"),
    ("Bert", "ForMaskedLM", bert, "masked"),
    ("Camembert", "ForMaskedLM", {**camembert, "pad_token_id": 1}, "masked"),
    ("Bart", "ForConditionalGeneration", bart | both(6, 12, 3_072), "translation"),
    ("Marian", "MTModel", marian | both(6, 8, 2_048), "translation"),
]
totals, ours_of = {}, {}
print(f"{'':<16}norm   positions   activation  closed form      counted")
for name, (family, kind, given, head) in zip(names, settings, strict=True):
    config = getattr(transformers, f"{family}Config")(**given)
    with torch.device("meta"):
        theirs = getattr(transformers, family + kind)(config)
    counted = sum(p.numel() for p in theirs.parameters() if p.requires_grad)
    ours_of[name] = ours = config_from_transformers(config)
    totals[name] = tx.parameter_table(ours, head=head).total
    assert totals[name] == counted, name
    print(f"{name:<16}{ours.norm:<7}{ours.positions:<12}{ours.activation:<11}", end="")
    print(f"{totals[name]:>12,}{counted:>13,}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Equal to the last number, five times. The settings are those of `gpt2` (Radford et al. 2019, table 2), `bert-base-uncased`, `camembert-base`, `facebook/bart-base` and `Helsinki-NLP/opus-mt-en-fr`, as their `config.json` states them. No new kind of layer was needed. But "the same machine" does not mean "the same settings": the order of norm and residual, the positions and the activation differ. So do vocabulary, tokenizer and training text, which the table does not show.

# %%
largest = max(totals, key=totals.get)
of_tokens = ours_of[largest].vocab_size * ours_of[largest].d_model
course.resolve(
    "16.1", largest,
    f"It has {totals[largest]:,} parameters, {of_tokens:,} of them token embeddings.",
)  # fmt: skip

# %% [markdown]
# ## Where the names and the axes differ
#
# If the numbers are the same, weights can move. Which of our tensors is which of theirs? Do not believe names: look for equal *contents*. Here is a tiny GPT-2 with random weights, and ours, converted from it. Its sizes differ, so hardly any axes can be mistaken for each other; only square matrices fit either way round. One block, tensor by tensor:

# %%
from tinytx_run.hf.convert import from_transformers

sizes = {"vocab_size": 13, "n_embd": 10, "n_head": 5, "n_layer": 3, "n_inner": 7}
config = transformers.GPT2Config(**sizes, n_positions=11)
tiny = transformers.GPT2LMHeadModel(config).eval()


def randomise(model):
    for parameter in model.parameters():
        if parameter.requires_grad:  # Marian's sinusoids are fixed
            nn.init.normal_(parameter, std=0.4)
    return model


ours = from_transformers(randomise(tiny))
print(f"{'ours':<21}{'shape':<10}{'theirs':<20}{'shape':<10}how")
for name, weight in ours.body.blocks[0].named_parameters():
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
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# Two things are more than names. GPT-2 holds its matrices as (in, out), in a layer that `transformers` calls `Conv1D`; `nn.Linear` holds (out, in). And queries, keys and values come out of **one** matrix, `c_attn`, with one product in place of three. BERT, CamemBERT and Marian need only names (Marian also another order of its sinusoids).
#
# ### By hand: three matrices out of one
#
# On paper first, with width 2. The matrix has two rows (in) and six columns (out): the first two columns are the queries, the next two the keys. Which four numbers are the keys, and how are they arranged in our `k_proj.weight`?

# %%
c_attn = torch.tensor([[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]])  # (D, 3 D)
q, k, v = (part.T for part in c_attn.chunk(3, dim=1))  # each (D, D), out by in
print("k_proj.weight  ", k.tolist())
print("not transposed ", k.T.tolist(), "fits in shape")
print("by reshape     ", c_attn.reshape(3, 2, 2)[1].tolist(), "fits in shape, too")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# A square matrix fits either way round, so no shape complains. The tempting way of the beginning would take any of the three. What happens when such a model runs? The next cell converts the tiny GPT-2 four ways and compares its logits with theirs. **Predict 16.2.**

# %%
outcomes = ("loading raises an error", "other logits, and no error", "the same logits")
course.predict("16.2", "`c_attn` is cut by `reshape`. What happens?", outcomes)

# %%
token_ids = torch.randint(13, (2, 7))


def copied(theirs, cut=None, transpose_out=False, exchange_norms=False):
    model = from_transformers(theirs)
    for block, given in zip(model.body.blocks, theirs.transformer.h, strict=True):
        attn, out = block.attn, block.attn.out_proj.weight
        if cut is not None:
            thirds = cut(given.attn.c_attn.weight.data)
            layers = attn.q_proj, attn.k_proj, attn.v_proj
            for layer, third in zip(layers, thirds, strict=True):
                layer.weight.data.copy_(third)  # complains where a shape differs
        if transpose_out:
            out.data = out.data.T.contiguous()
        if exchange_norms:
            block.attn_norm, block.ff_norm = block.ff_norm, block.attn_norm
    return model


ways = {
    "as it should be": {"cut": lambda w: [part.T for part in w.chunk(3, dim=1)]},
    "thirds not transposed": {"cut": lambda w: w.chunk(3, dim=1)},
    "cut by reshape": {"cut": lambda w: w.reshape(3, 10, 10)},
    "out_proj transposed": {"transpose_out": True},
}
with torch.no_grad():
    due = tiny(token_ids).logits
    logits = {name: copied(tiny, **way)(token_ids) for name, way in ways.items()}
moved = {name: (got - due).abs().max() for name, got in logits.items()}
for name, difference in moved.items():
    print(f"{name:<24}{'equal to 1e-5' if difference < 1e-5 else outcomes[1]}")
assert moved["as it should be"] < 1e-5 and min(list(moved.values())[1:]) > 1e-2
course.resolve("16.2", outcomes[1], "Three wrong models were loaded, and each runs.")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# So a conversion is done when *outputs* are compared, and not before. Even that can be fooled. A new model has biases of zero and norms of one. Test with those, and a whole class of errors is invisible. Here two norms of each block are exchanged, in a model as it is initialised and in one where *every* number is random:

# %%
fresh = transformers.GPT2LMHeadModel(config).eval()
for name, theirs in {"as initialised": fresh, "all random": randomise(tiny)}.items():
    with torch.no_grad():
        wrong = (
            copied(theirs, exchange_norms=True)(token_ids) - theirs(token_ids).logits
        ).abs()
    print(f"{name:<16}norms exchanged: {'seen' if wrong.max() > 1e-3 else 'not seen'}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Into ours and back
#
# Now four of them, the right way (BART, an encoder-decoder like Marian, was only counted above): random numbers everywhere, padding on the right, sizes that differ. `from_transformers` builds our model, `to_transformers` builds theirs from ours. The outputs at real tokens may differ by rounding only; in float32 that is about the sixth digit.

# %%
from tinytx_run.hf.convert import to_transformers

pad = {"pad_token_id": 1, "eos_token_id": 2}
sizes = {"vocab_size": 13, "hidden_size": 10, "num_hidden_layers": 3,
         "num_attention_heads": 5, "intermediate_size": 7,
         "max_position_embeddings": 13}  # fmt: skip
pair_sizes = {"vocab_size": 13, "d_model": 10, "max_position_embeddings": 11,
              "decoder_start_token_id": 1, **both(3, 5, 7), **pad}  # fmt: skip
theirs_of = {
    "GPT-2": tiny,
    "BERT": transformers.BertForMaskedLM(transformers.BertConfig(**sizes)),
    "CamemBERT": transformers.CamembertForMaskedLM(
        transformers.CamembertConfig(**sizes, **pad, type_vocab_size=1)),
    "Marian": transformers.MarianMTModel(
        transformers.MarianConfig(**pair_sizes, scale_embedding=True)),
}  # fmt: skip
token_ids, written = torch.randint(2, 13, (2, 9)), torch.randint(2, 13, (2, 5))
token_ids[1, 6:] = 1  # padding
real = token_ids != 1


@torch.no_grad()
def logits_of(model):
    if isinstance(model, transformers.MarianMTModel):
        return model(token_ids, real.long(), decoder_input_ids=written).logits
    if isinstance(model, tx.Translator):
        return model(token_ids, written, real)
    if isinstance(model, transformers.PreTrainedModel):
        return model(token_ids, attention_mask=real.long()).logits[real]
    return model(token_ids, real)[real]


for name, theirs in theirs_of.items():
    ours = from_transformers(randomise(theirs.eval()))
    due, got, back = map(logits_of, (theirs, ours, to_transformers(ours)))
    torch.testing.assert_close(got, due, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(back, due, atol=1e-5, rtol=1e-5)
    kinds = f"-> {type(ours).__name__:<20}-> {type(theirs).__name__:<22}"
    print(f"{name:<10}{kinds}equal to 1e-5")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# It is the same machine: three models of this course are four published ones.
#
# ### Published weights, where they lie
#
# The same calls read the real weights. They are large and belong to others, so this course does not ship them, and this page downloads nothing. The next cell looks in the folder `models` of your data (the environment variable `TINYTX_DATA` names it), then in the cache of Hugging Face. Only with `HF_HUB_OFFLINE=0` in the environment may it use the network.

# %%
MARIAN = "Helsinki-NLP/opus-mt-en-fr"
published = ("gpt2", "bert-base-uncased", "camembert-base", MARIAN)
found = {name: source for name in published if (source := lab.published_source(name))}
absent = [name for name in published if name not in found]
print("found:", ", ".join(found) or "none")
print("absent:", ", ".join(absent) or "none")

# %% [markdown]
# For each that is found, the cell below counts it, splits a sentence with *its* tokenizer next to ours, and asks it to do what it was trained for: continue, fill a blank, translate. Where nothing is found, there is nothing to show, and it says so.

# %%
from tinytx_course.engine import shipped_model
from tinytx_run.hf.tokenizer import published_tokenizer

shipped = shipped_model()
print("ours:", *shipped.tokenizer.pieces("Le roman est magnifique ."))
PROMPTS = {"gpt2": "Hello, I'm a", MARIAN: "The book is good.",
           "bert-base-uncased": "Paris is the ___ of France.",
           "camembert-base": "Le camembert est ___."}  # fmt: skip
for name, source in found.items():
    theirs, words = from_transformers(source), published_tokenizer(source)
    print(f"{name}: {tx.count_parameters(theirs):,} parameters;", end=" ")
    print(*words.pieces("Le roman est magnifique ."))
    print("  ", PROMPTS[name], "->", lab.answer(theirs, words, PROMPTS[name]))
if not found:
    print("no published weights here: nothing else to show")

# %% [markdown]
# From the command line a name or a folder does as well: `tinytx generate gpt2 --prompt "Bonjour les"`, `tinytx finetune camembert-base --corpus cls-books --out runs/camembert`.
#
# ### Ours as one of theirs
#
# The way back is worth as much: a model of ours, saved in *their* form, can be read by every tool that knows `transformers`. Here is a causal model with sinusoidal positions, trained on our world for a few seconds. What ours has and GPT-2 lacks is rewritten: the sinusoids become a table of learned positions, the scale of the embeddings goes into the embeddings. Then `AutoModelForCausalLM`, which knows nothing of this course, opens the folder and writes. Will it write the same?

# %%
from dataclasses import replace

from tinytx.generate import Sampling, continue_rows
from tinytx_run.hf.convert import save_transformers

corpus = tx.load_corpus("world")
small = {"d_model": 64, "n_heads": 4, "positions": "sinusoidal"}
part = replace(corpus, train=corpus.train.take(range(6_000)), draw=None,
               valid=corpus.valid.take(range(100)))  # fmt: skip
trained = tx.pretrain(
    part, model_changes={**small, "activation": "gelu-tanh"},
    training_changes={"n_steps": 20 if smoke else 150},
    options=tx.RunOptions(progress=False, report=lambda line: None),
)  # fmt: skip
tokenizer = trained.tokenizer
save_transformers(trained.model.cpu(), folder / "world-gpt2", tokenizer)
loaded = transformers.AutoModelForCausalLM.from_pretrained(folder / "world-gpt2").eval()
prompt = [tokenizer.bos_id, *tokenizer.encode("Le roman")]
written = loaded.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=20,
                          attention_mask=torch.ones(1, len(prompt)).long())  # fmt: skip
written = written[0, len(prompt) :].tolist()
end = tokenizer.eos_id
sampling = Sampling(top_k=1, max_new_tokens=20)
(mine,) = continue_rows(trained.model, [prompt], sampling, eos_id=end)
assert written == mine
print(type(loaded).__name__, "writes: Le roman", tokenizer.decode(written))

# %% [markdown]
# The same tokens, one by one. And the way back once more, from the folder into our own class. Then everything of this course works on it, such as the explorer of lesson 02. (Where `gpt2` was found above, it is shown instead.) What will its heads look at in this sentence: neighbours, the same word, the beginning? Click on heads and rows.

# %%
source = found.get("gpt2", str(folder / "world-gpt2"))
again = from_transformers(source)
reader = published_tokenizer(source) if "gpt2" in found else tokenizer
sentence = " ".join(corpus.test.texts[0].split(" ")[:14])
pieces = [piece.replace("▁", "·") for piece in reader.pieces(sentence)[:40]]
shown = reader.encode(sentence)[:40]
course.widgets.attention(again, pieces, token_ids=shown, layer=0, query=len(pieces) - 1)

# %% [markdown]
# Not every model of ours has a counterpart. The one that ships with this course counts distances by ALiBi (lesson 03), which GPT-2 does not know. A conversion that cannot be exact should refuse:

# %%
try:
    to_transformers(shipped.model)
except ValueError as problem:
    print(problem)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Adapting a model that is too large
#
# Lesson 09 knew two ways to teach a pretrained body a task. *Frozen*: a new head on fixed vectors. *Full*: everything is trained. Full fine-tuning of a large model is expensive. For each trained parameter AdamW stores two running means next to the gradient, so in float32 a parameter takes 16 bytes instead of 4. And every task needs a copy of the whole model.
#
# **LoRA** (low-rank adaptation, Hu et al. 2021) is a third way. A weight matrix $W$ stays frozen. Next to it two small matrices are trained, $A$ with $R$ rows and $B$ with $R$ columns:
#
# $$h = W x + \frac{\alpha}{R}\, B A x$$
#
# The product $BA$ is as large as $W$, but its **rank** is at most $R$: everything that it adds passes through $R$ numbers.

# %%
plots.diagram("low-rank-update")

# %% [markdown]
# ### By hand: a matrix of rank one
#
# With $R = 1$, $A$ is one row and $B$ one column. $A$ asks one question of $x$, and $B$ says what to do with the answer. With $\alpha = 2$ on paper: $Ax$ is one number. What is $h$?

# %%
W = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
A, B, alpha = torch.tensor([[1.0, -1.0]]), torch.tensor([[3.0], [0.5]]), 2.0
x = torch.tensor([5.0, 3.0])
answer = A @ x  # (R,)
h = W @ x + alpha / len(A) * B @ answer
print(f"A x = {answer.tolist()}, h = {h.tolist()}; B A = {(B @ A).tolist()}")
assert torch.linalg.matrix_rank(B @ A) == 1
torch.testing.assert_close(h, (W + alpha / len(A) * B @ A) @ x)
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The last line is the trick that makes LoRA free in use: $W + \frac{\alpha}{R} BA$ is *one* matrix again. After training the update can be **merged** into $W$, and the model is as fast as before.
#
# ## LoRA in 15 lines
#
# As a layer: it holds the old one, frozen, and the two new matrices. At first it must compute what the old layer computed. The package's `LoRALinear` must agree.

# %%
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
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### Why one zero and one random?
#
# $B = 0$ makes the first output exact, whatever $A$ is. Would the other way round do as well, or both at random, or both at zero? Think of the gradients first. Then four starts, on a small problem: a frozen random layer, and targets from the same layer plus an update of rank 2. **Predict 16.3.**

# %%
starts = ("A random, B zero", "A zero, B random", "both random", "both zero")
course.predict("16.3", "Which start learns nothing at all?", starts)

# %%
generator = torch.Generator().manual_seed(1)
inputs = torch.randn(64, 20, generator=generator)  # (N, D)
base = nn.Linear(20, 20, bias=False)
left, right = (torch.randn(20, 2, generator=generator) for _ in range(2))
targets = (base(inputs) + inputs @ (left @ right.T).T / 5).detach()
print(f"{'':<20}moved before training   loss before   after 300 steps")
final = {}
for start in starts:
    layer = LoRALinear(base, rank=2, alpha=2.0)
    kinds = start.split(",")
    for weight, kind in ((layer.a, kinds[0]), (layer.b, kinds[-1])):
        std = 0.2 if "random" in kind else 0.0
        nn.init.normal_(weight, std=std, generator=generator)
    shift = (layer(inputs) - base(inputs)).abs().max().item()
    optimizer = torch.optim.AdamW([layer.a, layer.b], lr=0.02, weight_decay=0.0)
    losses = []
    for _ in range(300):
        loss = F.mse_loss(layer(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    final[start] = losses[-1] / losses[0]
    moved = "yes" if shift else "no"
    print(f"{start:<20}{moved:<24}{losses[0]:<14.3f}{losses[-1]:.3f}")
stuck = [start for start in starts if final[start] == 1]
assert stuck == ["both zero"] and max(final[start] for start in starts[:3]) < 0.5
course.resolve("16.3", stuck[0], "Each gradient is multiplied by the other matrix.")

# %% [markdown]
# The gradient of $B$ is a product with $A$, and that of $A$ a product with $B$: from two zeros nothing ever moves. Three starts learn. *Both random* changes the model before it has seen a label; the first two do not. That *A* is the random one is a convention of the paper.
#
# ### How many parameters?
#
# For one matrix, $A$ and $B$ together have $R\,(D_{in} + D_{out})$ numbers instead of $D_{in} \cdot D_{out}$. As in the paper, we adapt the queries and values of every layer: $2 L$ matrices of $D \times D$, so $2 L \cdot R \cdot 2D$. The paper adapts GPT-3 (96 layers of width 12,288) with 4.7 million numbers at rank 1, and 37.7 million at rank 8. What share of GPT-2 is trained at rank 4? **Predict 16.4.**

# %%
course.predict(
    "16.4", "What share of its parameters does LoRA train in GPT-2 small, with rank 4?",
    ["about 10 %", "about 1 %", "about 0.1 %", "about 0.01 %"],
)  # fmt: skip

# %%
def lora_numbers(n_layers, d_model, rank):
    return 2 * n_layers * rank * 2 * d_model


of_gpt3 = [lora_numbers(96, 12_288, rank) / 1e6 for rank in (1, 8)]  # in millions
assert np.round(of_gpt3, 1).tolist() == [4.7, 37.7]
with torch.device("meta"):
    large = tx.LanguageModel(ours_of["GPT-2 small"])
    lora.add_lora(large, rank=4)
trained_numbers = sum(p.numel() for p in large.parameters() if p.requires_grad)
assert trained_numbers == lora_numbers(12, 768, 4)
all_numbers = totals["GPT-2 small"]
share = trained_numbers / all_numbers
for name, n in {"full": all_numbers, "LoRA": trained_numbers}.items():
    gigabytes = (4 * all_numbers + 12 * n) / 1e9
    print(f"{name}: {n:>11,} trained; weights, gradients and AdamW {gigabytes:.2f} GB")
megabytes = f"{4 * trained_numbers / 1e6:.1f} MB a task"
course.resolve("16.4", "about 0.1 %", f"It is {share:.2%}, {megabytes}.")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# The activations for the backward pass are not in these figures: LoRA still runs the whole model forward, and most of it backward.
#
# ## Frozen, LoRA or full
#
# Now we measure on our own pretrained model, the one that ships with the course, and the task of lesson 09: does a review praise its book? Three ways, the same labels in the same order, and one control: LoRA on a body of *random* weights. `lab.adapted` copies the body, freezes what the way freezes, calls `add_lora` on queries and values, and puts a new head on top; `lab.fine_tune` is the loop of lesson 09. The learning rates and numbers of passes are those of the stored experiment below, which chose the rates on held-out reviews.

# %%
from tinytx_course.results import read_results
from tinytx_run.corpora import label_subset
from tinytx_run.evaluate import count_correct
from tinytx_run.finetune import class_objective

stored = read_results("lora")
cells = list(stored.data.values())
bound = next(one["accuracy"] for one in cells if one["measure"] == "bound")
rows = [one for one in cells if one["measure"] == "accuracy"]
rates = {(one["n_labels"], one["start"]): one["lr"] for one in rows}
passes = dict(stored.get("laptop/bound")["origin"]["plan"]["passes"])
ways = ("pretrained frozen", "pretrained lora", "pretrained full")
seeds, counts = (range(1), (6,)) if smoke else (range(2), (20, 80))
tested = label_subset(corpus.test, 60 if smoke else 300, seed=0)
live = {}
for n in counts:
    for name in (*ways, "random lora"):
        lr, (body, way) = rates.get((n, name), 1e-2), name.split()
        for seed in seeds:
            start = shipped.model.body
            if body == "random":
                start = lab.random_body(start.config, seed)
            model = lab.adapted(start, way, seed=seed)
            few = label_subset(corpus.train, n, seed)
            how = {"lr": lr, "n_epochs": 1 if smoke else passes[n], "seed": seed}
            lab.fine_tune(model, shipped.tokenizer, few, **how)
            scored, _ = class_objective(shipped.tokenizer, tested, model.config)
            accuracy = count_correct(model, scored) / len(tested)
            live.setdefault((n, name), []).append(accuracy)
print(f"{len(tested)} test reviews; best reachable on the whole split {bound:.3f}")
for (n, name), values in live.items():
    print(f"{n:>3} labels  {name:<20}" + "".join(f"{value:8.3f}" for value in values))

# %% [markdown]
# Two seeds and 300 test reviews: a demonstration, no verdict. For that, `python -m experiments lora` has measured six seeds, each with other labels. Every way searched the same seven learning rates with the same two tuning seeds on 300 reviews of the validation split; the accuracies below are on the 2,000 test reviews, which chose nothing. **Predict 16.5.**

# %%
n_labels = sorted({one["n_labels"] for one in rows})
course.predict("16.5", f"Which has the highest mean with {n_labels[0]} labels?", ways)

# %%
def measured(n, start, field="accuracy"):
    chosen = [one for one in rows if (one["n_labels"], one["start"]) == (n, start)]
    return np.array([one[field] for one in sorted(chosen, key=lambda one: one["seed"])])


controls = ("random frozen", "random lora")
lines = []
for start in (*ways, *controls):
    of = [paired_interval(measured(n, start)) for n in n_labels]
    mean, low, high = zip(*((one.mean, one.low, one.high) for one in of), strict=True)
    dashed = start in controls
    lines.append(plots.Curve(start, n_labels, mean, low=low, high=high, dashed=dashed))
fig, ax = plots.curves(
    lines, xlabel="labelled reviews", ylabel="accuracy on the test reviews", x_log=True,
    references={"best reachable": bound}, title="Three ways to adapt one model",
)  # fmt: skip
ax.set_xticks(n_labels, [f"{n:,}" for n in n_labels])
ax.minorticks_off()
plots.show(fig, "16_three_ways")
few_means = {start: measured(n_labels[0], start).mean() for start in ways}
means = ", ".join(f"{start} {mean:.3f}" for start, mean in few_means.items())
course.resolve("16.5", max(few_means, key=few_means.get), f"Means: {means}.")

# %% [markdown]
# Lines are means over the seeds, bands their 95 % intervals. The dashed controls show what two of the ways do on a body of random weights. Are the differences real? The seeds share labels and order, so they are compared in pairs:

# %%
frozen, adapted, full = ways
verdicts = {}
pairs = ((adapted, full), (adapted, frozen), (full, frozen), (adapted, "random lora"))
for one, other in pairs:
    for n in n_labels:
        gain = paired_interval(measured(n, one) - measured(n, other))
        word = "more" if gain.mean > 0 else "less"
        word = word if gain.excludes_zero else "too close to call"
        verdicts[one, other, n] = gain
        print(f"{one} minus {other:<18}{n:>4} labels {gain.mean:+.3f}", end="  ")
        print(f"[{gain.low:+.3f}, {gain.high:+.3f}]  {word}")
behind = [n for n in n_labels if verdicts[adapted, frozen, n].low > 0]
open_ = [n for n in n_labels if not verdicts[adapted, full, n].excludes_zero]
print(f"\nLoRA is ahead of frozen with {behind} labels; LoRA and full are", end=" ")
print(f"too close to call with {open_}")
assert all(verdicts[adapted, "random lora", n].low > 0 for n in n_labels)

# %% [markdown]
# The lines before the summary are the control: on a random body, LoRA with the same labels stays far behind. It learns there too, but most of what it reaches comes from pretraining.
#
# ### What it costs, and what it forgets
#
# Now the other columns. *Stored for AdamW* is counted from the optimizer after a step. *Forgotten* puts the old head of the language model back and measures by how much the next-token loss has risen, as in lesson 09. LoRA trains less than one hundredth of the numbers. Will it forget less, too? **Predict 16.6.**

# %%
options = ("less than a tenth", "a tenth to a half", "more than a half")
question = f"{n_labels[0]} labels: what share of full's rise is the rise after LoRA?"
course.predict("16.6", question, options)

# %%
print(f"{'':<20}{'trained':>10}{'for AdamW':>12}   forgotten (nats a token), by labels")
rise = {}
for start in ways:
    n_trained, n_bytes = (measured(n_labels[0], start, field)[0]
                          for field in ("n_trained", "optimizer_bytes"))  # fmt: skip
    assert n_bytes == 8 * n_trained
    rise[start] = [measured(n, start, "forgotten").mean() for n in n_labels]
    columns = zip(n_labels, rise[start], strict=True)
    rises = "".join(f"{n:>7}: {nats:5.2f}" for n, nats in columns)
    print(f"{start:<20}{n_trained:>10,}{n_bytes:>12,}{rises}")
ratio = rise[adapted][0] / rise[full][0]
answer = options[int(ratio > 0.1) + int(ratio > 0.5)]
ratios = [a / b for a, b in zip(rise[adapted], rise[full], strict=True)]
shares = zip(n_labels, ratios, strict=True)
ratios = ", ".join(f"{n} labels {share:.2f}" for n, share in shares)
course.resolve("16.6", answer, f"LoRA's rise as a share of full's: {ratios}.")

# %% [markdown]
# Few parameters are not always a small change: compare the two lower rows at each number of labels. The update of LoRA has low rank, but nothing limits its size, and the rates chosen for it are not those of full fine-tuning. (They were chosen for accuracy on held-out reviews alone. Others may forget less, and we did not search for that.) What LoRA does give is a way back: the old weights are still there.
#
# ### Merge, or remove
#
# The next cell trains one adapter on a few labels. `merge_lora` adds the update to the weights: the same answers from an ordinary model. `remove_lora` takes it away: the old body, to the last bit. So one body can serve many tasks, each with a small file of its own.

# %%
import copy

model = lab.adapted(shipped.model.body, "lora", seed=0)
few = label_subset(corpus.train, 20, seed=0)
how = {"lr": 1e-2, "n_epochs": 2 if smoke else 15, "seed": 0}
lab.fine_tune(model, shipped.tokenizer, few, **how)
ids = torch.tensor([shipped.tokenizer.encode(corpus.test.texts[0])])
with torch.no_grad():
    due = model(ids)
    merged = copy.deepcopy(model)
    lora.merge_lora(merged.body)
    torch.testing.assert_close(merged(ids), due, atol=1e-5, rtol=1e-5)
    adapter = {name: p for name, p in model.named_parameters() if p.requires_grad}
    lora.remove_lora(model.body)
    assert torch.equal(model.body(ids), shipped.model.body.eval()(ids))
kilobytes = sum(p.nbytes for p in adapter.values()) / 1024
body_kilobytes = sum(p.nbytes for p in shipped.model.parameters()) / 1024
print("merged: the same logits; removed: the old body, exactly")
print(f"{len(adapter)} tensors of the task, {kilobytes:.0f} kB;", end=" ")
print(f"the model {body_kilobytes:,.0f} kB")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ### Is the update of full fine-tuning of low rank?
#
# LoRA bets that the change a task needs has low rank. We can look: fine-tune *all* weights, subtract the old ones, and take the singular values of the difference. The figure shows what share of its squared size is in the first $k$ of them. The control is a matrix of random numbers of the same shape. With $R = 4$, LoRA has all of it in the first four, by construction.

# %%
tuned = lab.adapted(shipped.model.body, "full", seed=0)
few = label_subset(corpus.train, 6 if smoke else 80, seed=0)
lr = rates.get((80, "pretrained full"), 1e-3)
how = {"lr": lr, "n_epochs": 1 if smoke else 8, "seed": 0}
lab.fine_tune(tuned, shipped.tokenizer, few, **how)


def cumulative(matrix):
    squares = torch.linalg.svdvals(matrix).square()
    return (squares.cumsum(0) / squares.sum()).numpy()


lines, width = [], shipped.model.config.d_model
for name in ("q_proj", "v_proj"):
    changed, old = (getattr(body.blocks[1].attn, name).weight.detach()
                    for body in (tuned.body, shipped.model.body))  # fmt: skip
    shares = cumulative(changed - old)
    lines.append(plots.Curve(f"change of {name}", range(1, width + 1), shares))
noise = torch.randn(width, width, generator=torch.Generator().manual_seed(0))
shares = cumulative(noise)
lines.append(plots.Curve("random numbers", range(1, width + 1), shares, dashed=True))
fig, ax = plots.curves(
    lines, xlabel="singular values, the largest first",
    ylabel="share of the squared size", x_log=True, y_range=(0, 1.02),
    title="What full fine-tuning adds to a matrix",
)  # fmt: skip
plots.show(fig, "16_update_spectrum")
in_four = [float(line.y[3]) for line in lines]
for line, share in zip(lines, in_four, strict=True):
    print(f"{line.label:<18}first 4 of {width}: {share:.0%} of the squared size")
assert smoke or min(in_four[:2]) > 2 * in_four[2]

# %% [markdown]
# The change is far from random: a few directions hold much more of it than they would by chance. But not all of it. Whether the rest matters for the task is what the comparison of LoRA with full measured.
#
# ## What this does not show
#
# - Where no published weights lie on your machine, none were loaded: the conversions were shown on random weights and on a model of our own.
# - Our task is easy, and its best ways come close to the bound. On a hard task, with much to learn that pretraining did not teach, low rank may cost more (Biderman et al. 2024).
# - One pretrained body, one rank, one choice of matrices, a fixed number of passes. Only labels, order and new weights vary between seeds.
# - Rates were chosen with two tuning seeds, from seven that lie far apart. So each way may be a little better than shown.
# - The model is so small that LoRA saves nothing that matters here. The figures for GPT-2 are computed, not measured.

# %% [markdown]
# ## Take-home
#
# LoRA on one screen: a layer, a loop that puts it in place, and the merge.

# %%
class Adapted(nn.Module):
    def __init__(self, base, rank=4, alpha=8.0):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / rank)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + self.scale * x @ self.a.T @ self.b.T

    def merged(self):
        self.base.weight.data += self.scale * self.b.data @ self.a.data
        return self.base


model = tx.LanguageModel(tx.PRESETS["tiny"]).requires_grad_(False).eval()
before = model(torch.tensor([[5, 8, 2]]))
for block in model.body.blocks:
    block.attn.q_proj = Adapted(block.attn.q_proj)
    block.attn.v_proj = Adapted(block.attn.v_proj)
assert torch.equal(model(torch.tensor([[5, 8, 2]])), before)
trained = [p for p in model.parameters() if p.requires_grad]  # what the optimizer gets
print(f"{sum(p.numel() for p in trained):,} trained of {tx.count_parameters(model):,}")
# NBVAL_CHECK_OUTPUT

# %% [markdown]
# ## Questions
#
# Pick an answer and read what it says; the wrong answers are common mistakes.

# %%
course.quiz("real_models")

# %% [markdown]
# ## Exercises
#
# One matrix cut into three, then the two halves of LoRA: what it starts from, and what it computes. Below each cell to fill in is its check, which says where your answer differs and, if it knows the mistake, what it is. While there are only dots, it says "not attempted yet".
#
# [exercise: split_c_attn]


# %%
def split_c_attn(weight):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("split_c_attn", split_c_attn)

# %% [markdown]
# [exercise: lora_start]


# %%
def lora_start(layer, rank):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("lora_start", lora_start)

# %% [markdown]
# [exercise: lora_forward]


# %%
def lora_forward(x, weight, a, b, alpha):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


# %%
course.check("lora_forward", lora_forward)

# %% [markdown]
# ### Try it yourself
#
# In your own copy (`make lab`), say what you expect, then run.
#
# **1.** You convert weights and compare *losses* over a text: 4.3123 against 4.3187. "Close enough, that is rounding." Is it?
#
# <details><summary>Answer</summary>
#
# No. Rounding in float32 shows in the sixth digit. A difference in the fourth means that something small is different: a norm's epsilon, a GELU of another kind, positions shifted by one at the end of long texts. Compare the hidden states layer by layer, then the logits, on a short text.
#
# </details>
#
# **2.** Adapt the feed-forward layers instead: `lora.add_lora(body, rank=4, names=("up_proj", "down_proj"))`. How many numbers are trained now, with $F = 4D$?
#
# <details><summary>Answer</summary>
#
# Two matrices a layer, each with $R\,(D + 4D)$ numbers: $2L \cdot 5RD$ instead of $2L \cdot 2RD$, two and a half times as many. Whether it helps is a question to measure, at equal numbers: with the rank that makes the two counts equal.
#
# </details>
#
# **3.** A friend trains LoRA with the learning rate of full fine-tuning and reports that LoRA learns too little. What do you ask?
#
# <details><summary>Answer</summary>
#
# Which rates were searched for LoRA? In the stored search its best rate is not that of full fine-tuning. A way that was tuned less hard than its rival loses for that reason alone.
#
# </details>
#
# ## Summary
#
# 1. GPT-2, BERT, CamemBERT, BART and Marian are the three models of this course with other settings. The closed form counts each of them to the last parameter; norms, positions and activations differ.
# 2. A conversion is right when *outputs* are equal, with every number random. Shapes prove nothing: GPT-2's matrices are transposed, and its queries, keys and values lie in one.
# 3. LoRA freezes $W$ and trains $BA$ of rank $R$, scaled by $\alpha / R$. $B$ starts at zero, so nothing changes at first; $A$ at random, or nothing would ever be learned.
# 4. Compare the three ways at your number of labels, each tuned as hard. LoRA trains and stores a small part, can be merged without cost and removed without trace. Most of what it reaches comes from pretraining: on a random body it learns, too, but stays far behind.
#
# *Where this comes from:* LoRA: Hu et al., [arXiv:2106.09685](https://arxiv.org/abs/2106.09685), section 4 and table 4; with another scale: Kalajdzievski, [arXiv:2312.03732](https://arxiv.org/abs/2312.03732); what it learns and forgets next to full fine-tuning: Biderman et al., [arXiv:2405.09673](https://arxiv.org/abs/2405.09673). GPT-2: Radford et al., *Language Models are Unsupervised Multitask Learners*, 2019. BERT: Devlin et al., [arXiv:1810.04805](https://arxiv.org/abs/1810.04805). CamemBERT: Martin et al., [arXiv:1911.03894](https://arxiv.org/abs/1911.03894). BART: Lewis et al., [arXiv:1910.13461](https://arxiv.org/abs/1910.13461). Marian: Junczys-Dowmunt et al., [arXiv:1804.00344](https://arxiv.org/abs/1804.00344).
#
# *What comes next:* [lesson 17](17_looking_inside.ipynb) opens a trained model and asks what it has learned.
