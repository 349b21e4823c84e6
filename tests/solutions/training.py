"""Solutions for training_step and freeze."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("training_step")


@right
def step_plain(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item(), model.weight


@right
def step_transposed(model, optimizer, inputs, targets, max_norm):
    model.zero_grad()
    loss = F.cross_entropy(model(inputs).transpose(1, 2), targets)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss, model.weight.detach()


@right
def step_clip_by_hand(model, optimizer, inputs, targets, max_norm):
    for p in model.parameters():
        p.grad = None
    log_probs = model(inputs).log_softmax(dim=-1)
    loss = -log_probs.gather(-1, targets[..., None]).mean()
    loss.backward()
    total = sum(p.grad.square().sum() for p in model.parameters()).sqrt()
    if total > max_norm:
        for p in model.parameters():
            p.grad *= max_norm / total
    optimizer.step()
    return loss.detach(), model.weight.data


@right
def step_autograd(model, optimizer, inputs, targets, max_norm):
    loss = nn.CrossEntropyLoss()(model(inputs).reshape(-1, model.num_embeddings), targets.reshape(-1))
    (gradient,) = torch.autograd.grad(loss, [model.weight])
    model.weight.grad = gradient * min(1.0, max_norm / (gradient.norm().item() + 1e-6))
    optimizer.step()
    return loss.item(), model.weight


@right
def step_loops(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    logits, losses = model(inputs), []
    for b in range(inputs.shape[0]):
        for t in range(inputs.shape[1]):
            losses.append(-logits[b, t].log_softmax(0)[targets[b, t]])
    loss = sum(losses) / len(losses)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item(), next(model.parameters())


def _loss(model, inputs, targets):
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


@wrong("clip-missing")
def step_clip_last(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    loss = _loss(model, inputs, targets)
    loss.backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    return loss.item(), model.weight


@wrong("clip-missing")
def step_clip_first(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    loss = _loss(model, inputs, targets)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    loss.backward()
    optimizer.step()
    return loss.item(), model.weight


@wrong("zero-grad-forgotten+clip-missing")
def step_neither(model, optimizer, inputs, targets, max_norm):
    loss = _loss(model, inputs, targets)
    loss.backward()
    optimizer.step()
    return loss.item(), model.weight


@wrong("step-missing")
def step_zero_after_backward(model, optimizer, inputs, targets, max_norm):
    loss = _loss(model, inputs, targets)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.zero_grad()
    optimizer.step()
    return loss.item(), model.weight


@wrong("step-missing")
def step_before_backward(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    loss = _loss(model, inputs, targets)
    optimizer.step()
    loss.backward()
    return loss.item(), model.weight


@wrong("stale-gradient-used")
def step_first(model, optimizer, inputs, targets, max_norm):
    loss = _loss(model, inputs, targets)
    optimizer.step()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    return loss.item(), model.weight


@wrong("loss-after-step")
def step_loss_again(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    _loss(model, inputs, targets).backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return _loss(model, inputs, targets).item(), model.weight


@wrong("clip-by-value")
def step_clip_value(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    loss = _loss(model, inputs, targets)
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item(), model.weight


@wrong("always-scaled")
def step_normalised(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    loss = _loss(model, inputs, targets)
    loss.backward()
    for p in model.parameters():
        p.grad = max_norm * p.grad / p.grad.norm()
    optimizer.step()
    return loss.item(), model.weight


@wrong("sum-for-mean")
def step_sum(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), reduction="sum")
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item(), model.weight


@wrong("gradient-ascent")
def step_uphill(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    log_likelihood = model(inputs).log_softmax(-1).gather(-1, targets[..., None]).mean()
    log_likelihood.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return -log_likelihood.item(), model.weight


@wrong("two-steps")
def step_twice(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    loss = _loss(model, inputs, targets)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    for _ in range(2):
        optimizer.step()
    return loss.item(), model.weight


@wrong("optimizer-ignored")
def step_by_hand(model, optimizer, inputs, targets, max_norm):
    model.zero_grad()
    loss = _loss(model, inputs, targets)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    with torch.no_grad():
        for p in model.parameters():
            p -= p.grad
    return loss.item(), model.weight


@wrong("softmax-twice")
def step_softmax(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    probs = F.softmax(model(inputs), dim=-1)
    loss = F.cross_entropy(probs.view(-1, probs.size(-1)), targets.view(-1))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item(), model.weight


@wrong("inputs-for-targets")
def step_copying(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    loss = _loss(model, inputs, inputs)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item(), model.weight


@wrong("view-for-transpose")
def step_view(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    logits = model(inputs)
    loss = F.cross_entropy(logits.view(logits.size(0), logits.size(2), logits.size(1)), targets)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item(), model.weight


@wrong("perplexity-returned")
def step_perplexity(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    loss = _loss(model, inputs, targets)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.exp().item(), model.weight


@wrong("error")
def step_item_first(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    loss = torch.tensor(_loss(model, inputs, targets).item())
    loss.backward()
    optimizer.step()
    return loss.item(), model.weight


wrong("zero-grad-forgotten", step_zero_after_backward, {"optimizer.zero_grad()": ""})
wrong("clip-missing", step_clip_value, {"nn.utils.clip_grad_value_(model.parameters(), max_norm)": ""})
wrong("step-missing", step_clip_last, {"optimizer.step()": ""})
wrong(
    "last-position-only",
    step_copying,
    {"_loss(model, inputs, inputs)": "F.cross_entropy(model(inputs)[:, -1], targets[:, -1])"},
)
wrong("wrong-type", step_perplexity, {"loss.exp().item(), model.weight": "loss.item()"})


right, wrong = of("freeze")


@right
def freeze_two_lines(model):
    model.body.requires_grad_(False)
    model.head.requires_grad_(True)
    return model


@right
def freeze_all_then_thaw(model):
    for p in model.parameters():
        p.requires_grad = False
    for p in model.head.parameters():
        p.requires_grad = True
    return model


@right
def freeze_by_name(model):
    for name, p in model.named_parameters():
        p.requires_grad = name.split(".")[0] == "head"
    return model


@right
def freeze_by_identity(model):
    of_head = {id(p) for p in model.head.parameters()}
    for p in model.parameters():
        p.requires_grad_(id(p) in of_head)
    return model


@right
def freeze_children(model):
    for name, child in model.named_children():
        child.requires_grad_(name == "head")
    return model


@wrong("nothing-frozen")
def freeze_eval(model):
    model.body.eval()
    return model


@wrong("nothing-frozen")
def freeze_no_grad(model):
    with torch.no_grad():
        for p in model.body.parameters():
            p.copy_(p.clone())
    return model


@wrong("reversed")
def freeze_exchanged(model):
    model.body.requires_grad_(True)
    model.head.requires_grad_(False)
    return model


@wrong("head-not-thawed")
def freeze_body_only(model):
    for p in model.body.parameters():
        p.requires_grad = False
    return model


@wrong("only-embeddings")
def freeze_embeddings(model):
    model.requires_grad_(True)
    model.body.token_embed.requires_grad_(False)
    return model


@wrong("biases-trained")
def freeze_weights_only(model):
    for name, p in model.named_parameters():
        if name.startswith("body") and not name.endswith("bias"):
            p.requires_grad = False
        else:
            p.requires_grad = True
    return model


@wrong("norms-trained")
def freeze_but_norms(model):
    for name, p in model.named_parameters():
        p.requires_grad_(name.startswith("head.") or "norm" in name)
    return model


@wrong("only-matrices")
def freeze_matrices(model):
    for p in model.body.parameters():
        p.requires_grad = p.dim() < 2
    for p in model.head.parameters():
        p.requires_grad = True
    return model


@wrong("wrong-type")
def freeze_head_parameters(model):
    model.body.requires_grad_(False)
    return list(model.head.parameters())


wrong("nothing-frozen", freeze_eval, {"model.body.eval()": "model.body.requires_grad = False"})
wrong("nothing-frozen", freeze_body_only, {"p.requires_grad": "p.detach().requires_grad"})
wrong("everything-frozen", freeze_eval, {"model.body.eval()": "model.requires_grad_(False)"})
wrong("reversed", freeze_body_only, {"model.body.parameters": "model.head.parameters"})
wrong("everything-trained", freeze_body_only, {"model.body.parameters": "model.parameters", "False": "True"})
wrong("head-in-the-name", freeze_by_name, {'name.split(".")[0] == "head"': '"head" in name'})
wrong(
    "only-direct-parameters",
    freeze_all_then_thaw,
    {"model.parameters()": "model.body.parameters(recurse=False)"},
)
wrong("only-first", freeze_eval, {"model.body.eval()": "next(model.body.parameters()).requires_grad = False"})
wrong("head-weight-only", freeze_by_name, {'name.split(".")[0] == "head"': 'name == "head.weight"'})
wrong("toggled", freeze_matrices, {"p.dim() < 2": "not p.requires_grad"})
wrong("nothing-returned", freeze_two_lines, {"return model": ""})
