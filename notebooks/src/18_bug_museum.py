# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 18 · Bug museum
#
# **What went wrong here?**
#
# After this lesson you can
#
# 1. compare a loss with three numbers: ln V, the exact bound, and the bound of a reader without the source;
# 2. test a model for a leak in six lines; *Further:* order tests for its batch and for word order;
# 3. choose the cheapest test that separates the faults you suspect, and name the fault;
# 4. say why a falling curve proves little; *Further:* which faults make the loss *better*.
#
# *You need:* lessons 02, 03, 05, 08, 09 and 11. *It takes:* an hour to read and play; a minute to run on two cores.

# %% [markdown]
# ## Set-up
#
# All models here are tiny: one layer of width 48, a few hundred words. What was measured over five seeds comes from `python -m experiments museum`.

# %%
import textwrap

import torch

import tinytx_course as course
from tinytx_course import museum, plots

stored = museum.stored_results()

# %%
course.recall("18")

# %% [markdown]
# ## Why: a falling curve proves little
#
# Training runs, no error is raised, the loss falls. The tempting conclusion is that the program is right. We took a small program that trains a language model, and broke it eight times, one line each. **Predict 18.1.**

# %%
broken = [
    name for name, fault in museum.FAULTS.items() if fault.task == "language model"
]
course.predict(
    "18.1",
    f"How many of the {len(broken)} broken programs end with a *lower* held-out loss?",
    ["none", "one or two", "three or more"],
)

# %%
def end_losses(name):
    return torch.tensor([one["held_out_loss"] for one in stored[name]])  # by seed


healthy_loss = end_losses("healthy language model")
lower = [name for name in broken if (end_losses(name) < healthy_loss).all()]
answer = ["none", "one or two", "three or more"][min(2, (len(lower) + 1) // 2)]
finding = f"{len(lower)} of {len(broken)} end lower, in all {len(healthy_loss)} seeds."
course.resolve("18.1", answer, finding)

# %% [markdown]
# **Finding:** a low loss is no proof of health: some faults let the model *cheat*. The dashed line is the **entropy bound**, the exact mean of -log P over the held-out words. What ends clearly below it has seen what it should predict, or predicts something else.

# %% tags=["folded"]
example = stored["healthy language model"][0]["evidence"]
lines = [
    plots.Curve("", one["steps"], one["held_out"], color="#bbbbbb")
    for one in (stored[name][0]["evidence"] for name in sorted(broken))
]
lines.append(plots.Curve("healthy", example["steps"], example["held_out"]))
fig, ax = plots.curves(
    lines,
    xlabel="training step",
    ylabel="held-out loss (nats per word)",
    y_range=(-0.2, 7),
    references={"entropy bound": example["bound"]},
    title="A healthy program, and eight with one line wrong (grey)",
)
plots.show(fig, name="18_nine_programs")

# %% [markdown]
# ## Further: the program
#
# One program serves three tasks: a language model, a classifier, a translator. Here are its loss and its loop; `museum/program.py` has all of it. *Which line could be wrong and still run?*

# %%
import inspect

from tinytx_course.museum import program

for part in (program.LanguageModel.loss, program.train):
    print(inspect.getsource(part))

# %% [markdown]
# ## By hand: a test in six lines
#
# A **sanity check** asks what is known of a sound model. A sound language model does not see the word that it predicts. So we change the words from position 5 on and look at what is predicted *before* them. Nothing may move:

# %%
sound = museum.healthy("language model")
row = max(sound.held_out[:20], key=len)
before = sound.log_probs([row])[0]  # (T, V)
changed = [*row[:5], *(4 for _ in row[5:])]  # another word from position 5 on
after = sound.log_probs([changed])[0]
moved = (before - after).abs().amax(dim=-1)  # (T,)
print(
    f"largest move: before {moved[:5].max():.6f}, from there on {moved[5:].max():.2f}"
)
assert moved[:5].max() < 1e-4 < moved[5:].max()

# %% [markdown]
# ## The rules
#
# A colleague brings a patient: the training loss (blue) and the held-out loss (orange) against the exact bound, a map of self-attention, three samples, a few numbers. That is free. Then you order tests. Each of the fifteen has a price, paid once, and gives *one number*; only a large deviation is a finding. A diagnosis names the fault; a wrong one costs 3 and is answered with evidence against it. Here are the tests, and the names of the faults (*Further* says what they mean):

# %% tags=["nbval-check-output"]
print(museum.price_list())
print(textwrap.fill("faults: " + ", ".join(museum.FAULTS), 88))

# %% [markdown]
# ### Further: what the names mean

# %% tags=["nbval-check-output"]
for name, fault in museum.FAULTS.items():
    print(textwrap.fill(f"{name}: {fault.meaning}", 88, subsequent_indent="    "))

# %% [markdown]
# ### Further: patient 0, solved together
#
# The colleague says: "*It learns, but it stops far too early.*"

# %%
import math

patient = museum.patient(0)
shown = museum.collect(patient)
fig = museum.draw(shown, "patient 0")
plots.show(fig, name="18_patient_0")
print(museum.as_text(shown))
vocab_size = patient.log_probs(patient.held_out[:1]).shape[-1]
print(f"ln V is ln {vocab_size} = {math.log(vocab_size):.2f}")
assert abs(shown["table"]["first loss (nats)"] - math.log(vocab_size)) < 0.2

# %% [markdown]
# The first loss is close to ln V, so the first logits are not too large. The loss falls, then stays far above the bound, in training too: this is not overfitting. Does each part of the model get a gradient? Before the right answer comes a wrong one on purpose:

# %%
gradients = museum.order(patient, "gradients")
print(gradients)
assert museum.TESTS["gradients"].finds(gradients.number)
course.diagnose(0, "no_scale")
course.diagnose(0, "gradient_cut")

# %% [markdown]
# Some part gets *no gradient at all*: one call, `.detach()`, and the block below the output layer remains as it was drawn. The output layer still learns, and the embedding with it, as they share their weights: so the loss falls.
#
# ## Room 1: three patients
#
# Each has one line wrong. The dashed line is the exact bound, for the translator that of a reader who does *not* see the source: a sound translator ends below it. Lower row: the mean self-attention map of one text (in a translator, of its decoder), white for 0, darkest for 1.
#
# - Patient 10, is a review favourable? "*Most answers are right, but the training loss gets stuck, whatever I do.*"
# - Patient 8, which word comes next? "*Loss zero. We are done.*"
# - Patient 7, English to French: "*Beautiful French! Only our translators are not happy.*"
#
# The last two lines of the next cell are your workbench: choose a patient, order a test. (Patient 0 is free.)

# %%
room = {number: museum.shown(number) for number in (10, 8, 7)}
fig = museum.room(room)
plots.show(fig, name="18_room_1")
for number, evidence in room.items():
    print(f"patient {number}\n{museum.as_text(evidence)}\n")
for task in ("classifier", "language model", "translator"):
    ends = end_losses(f"healthy {task}")
    print(f"{len(ends)} healthy {task}s end at {ends.min():.2f} to {ends.max():.2f}")
patient = museum.patient(0)  # <- yours
museum.order(patient, "first_loss")

# %% [markdown]
# [exercise: three_patients]

# %%
course.diagnose(10, ...)
course.diagnose(8, ...)
course.diagnose(7, ...)

# %% [markdown]
# <details><summary>Diagnoses</summary>
#
# - Patient 10: `softmax_twice`. A softmax, then a loss that applies it again: never below $\ln(1 + e^{-1}) = 0.313$ (lesson 09, *Further*). `overfit` (3).
# - Patient 8: `targets_not_shifted`. Loss near zero without a leak; `copying` (1) shows it: the model predicts the word that it has just read.
# - Patient 7: `wrong_source`. `swap_sources` (1): with the source of another row, its loss hardly rises.
#
# </details>
#
# ## Further: room 2, six more
#
# - Patient 1, classifier: "*At last one that knows all the answers. May I publish?*"
# - Patient 5, classifier: "*It works for us. A user says that the answer to her review changes from day to day.*"
# - Patient 9, language model: "*Below the bound, on text that it has never seen. Is the bound wrong?*"
# - Patient 11, language model: "*Our best one. The same size, the same data, and better than the other team's.*"
# - Patient 12, translator: "*It overfits: the held-out loss is above the training loss.*"
# - Patient 14, translator: "*As good as the other team's. Is it healthy?*"

# %%
room = {number: museum.shown(number) for number in (1, 5, 9, 11, 12, 14)}
fig = museum.room({number: room[number] for number in (1, 5, 9)})
plots.show(fig, "18_room_2a")
fig = museum.room({number: room[number] for number in (11, 12, 14)})
plots.show(fig, "18_room_2b")
for number, evidence in room.items():
    print(f"patient {number}\n{museum.as_text(evidence)}\n")
patient = museum.patient(0)  # <- yours
museum.order(patient, "leak")

# %% [markdown]
# [exercise: six_patients]

# %%
course.diagnose(1, ...)
course.diagnose(5, ...)
course.diagnose(9, ...)
course.diagnose(11, ...)
course.diagnose(12, ...)
course.diagnose(14, ...)

# %% [markdown]
# <details><summary>Diagnoses</summary>
#
# - Patient 1: `evaluation_data_in_training`. The held-out loss is below the exact bound. `fresh_text` (2) shows that text drawn anew is harder, by several standard errors.
# - Patient 5: `padding_read`. `singles` (1): the answer to a row depends on the rows next to it, through the padding. Where it ends is no sign: some healthy classifiers end higher.
# - Patient 9: `norm_on_wrong_axis`. `leak` (1) is positive, `attention_ahead` (1) is not: the future comes in through the mean and the variance.
# - Patient 11: `mask_after_softmax`. `attention_sums` (1): the weights that are left do not sum to 1; how much is missing depends on the words that follow. Its other four seeds end close to healthy models.
# - Patient 12: `dropout_in_evaluation`. `twice` (1): two evaluations differ. It ends within the healthy range; dropout acts in both losses now, so held-out text loses the advantage it has in a sound run.
# - Patient 14: `positions_missing`. `permute` (1): with the source words in reverse order nothing moves but rounding errors. In four of five seeds it even ends lower than the healthy one.
#
# </details>
#
# Five patients wait for you without a hint: 2, 4, 6 and 13 are language models, 3 is a translator. `museum.draw(museum.shown(2), "patient 2")` shows one.

# %%
course.diagnose(2, ...)
course.diagnose(3, ...)
course.diagnose(4, ...)
course.diagnose(6, ...)
course.diagnose(13, ...)

# %% [markdown]
# <details><summary>Diagnoses</summary>
#
# - Patient 2: `mask_transposed`. The map has weight above the diagonal; `attention_ahead` (1) says how much.
# - Patient 3: `no_zero_grad`. `gradient_growth` (2): each step adds its gradient to all those before.
# - Patient 4: `tied_weights_too_large`. The first loss is far above ln V: `first_loss` (1).
# - Patient 6: `no_scale`. `attention_at_start` (1): before training, attention is sharp already.
# - Patient 13: `weight_decay_on_everything`. `weights` (1): the scales of the norms are nearly gone (weight decay: Loshchilov and Hutter, [arXiv:1711.05101](https://arxiv.org/abs/1711.05101)).
#
# </details>
#
# ## Further: which test separates which faults?
#
# Every patient and three healthy models were trained with five seeds, and every test was put to each. A test *finds* something if its number passes a fixed threshold. **Predict 18.2.**

# %%
course.predict(
    "18.2",
    "Which test finds something in the largest number of faults, in all seeds?",
    ["leak", "first_loss", "overfit", "singles"],
)

# %%
table = museum.separation()
faulty = table[table["named"] != ""]
n_seeds = int(table["seeds"].min())
counts = (faulty[list(museum.TESTS)] == n_seeds).sum()
asked = ["leak", "first_loss", "overfit", "singles"]
best = max(asked, key=lambda test: counts[test])
finding = "Faults found: " + ", ".join(f"{test} {counts[test]}" for test in asked) + "."
course.resolve("18.2", best, finding)

# %% [markdown]
# The last three rows are healthy models: what is found there is a false alarm.

# %% tags=["folded"]
tests = list(museum.TESTS)
grid = torch.tensor(table[tests].values)
fig, ax = plots.heatmap(
    torch.nan_to_num(grid),
    allowed=~torch.isnan(grid),
    low=0,
    high=n_seeds,
    numbers=".0f",
    row_labels=table.index,
    col_labels=tests,
    title=f"Seeds, of {n_seeds}, in which the test finds something",
)
fig.legends.clear()  # no mask is meant
plots.show(fig, name="18_separation")

# %% tags=["nbval-check-output"]
for name, row in faulty.iterrows():
    assert row[row["named"]] == n_seeds, name
pairs = [(a, b) for i, a in enumerate(faulty.index) for b in faulty.index[:i]]
alike = [pair for pair in pairs if not museum.told_apart(*pair)]
task_of = faulty["task"]
assert all(task_of[a] != task_of[b] for a, b in alike)
false_alarms = int(table[table["named"] == ""][tests].sum().sum())
print(f"{len(faulty)} faults, each found by its named test in all {n_seeds} seeds;")
print(f"{false_alarms} false alarms among the healthy models that set the thresholds;")
apart = len(pairs) - len(alike)
print(f"{apart} of {len(pairs)} pairs told apart by some test, not:", alike)
gains = {n: end_losses(f"healthy {task_of[n]}") - end_losses(n) for n in task_of.index}
print("lower than healthy in all seeds:", *(n for n in gains if (gains[n] > 0).all()))
assert counts.max() < len(faulty) and (gains["positions_missing"] > 0).sum() == 4
assert table.loc["targets_not_shifted", "leak"] == 0
assert table.loc["norm_on_wrong_axis", "attention_ahead"] == 0

# %% [markdown]
# No test finds all faults. A pair is told apart if some test finds one fault in all seeds and the other in none; pairs that no test tells apart belong to different tasks. Lower need not mean a leak: the loss of `softmax_twice` is another function, between 0.31 and 1.31.
#
# ## Play: break a model while it learns
#
# The explorer trains a language model of the whole world (another bound). Pause it after a few hundred steps. The page holds two runs, A and B. Give B a fault of its list, predict its loss at the step that A has reached, and start it.

# %%
course.widgets.playground()

# %% [markdown]
# ## What this does not show
#
# - One line was wrong at a time. Two faults can hide each other.
# - The thresholds were chosen on these models. Another size needs its own healthy model.
# - An exact bound exists for our generated language only. On real text, compare with a model that counts neighbours (lesson 07).
#
# ## Take-home
#
# | loss | compare it with | a difference says |
# |---|---|---|
# | first | ln V, the loss of a uniform guess | far above: the first logits are too large |
# | last, held out | the exact bound | clearly below: it has seen what it should predict, or predicts something else |
# | last | a simple baseline | above: something keeps it from learning, or training was too short |
# | last, of a translator | the bound of a reader without the source | above: it may not read the source |
#
# ## Further: the checklist
#
# Symptom, test, fault: one page, also in `notebooks/bug_checklist.html`, ready for a printer.

# %%
museum.checklist()

# %% [markdown]
# ## Questions

# %%
course.quiz("bug_museum")

# %% [markdown]
# ## Summary
#
# 1. Change a future word: a test for a leak in six lines.
# 2. A test is worth its price if your suspects answer it differently. Look at what is free first.
# 3. *Further:* leaks, targets that are not shifted and evaluation data in training make the loss better. A number that is too good is a symptom.
#
# *Where this comes from:* Karpathy, "A Recipe for Training Neural Networks", 2019.
#
# *What comes next:* your own model. Keep the table of the take-home next to it.
