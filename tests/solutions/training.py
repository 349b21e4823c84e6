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


wrong("wrong-type", step_perplexity, {"loss.exp().item(), model.weight": "loss.item()"})


@wrong("softmax-over-positions")
def training_step_softmax_over_positions(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    lp = model(inputs).log_softmax(1)
    loss = -lp.gather(-1, targets[..., None]).mean()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return (loss.item(), model.weight)


@wrong("sum-for-mean")
def training_step_sum_for_mean(model, optimizer, inputs, targets, max_norm):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs).transpose(1, 2), targets, reduction="none").sum(1).mean()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return (loss.item(), model.weight)


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


@wrong("wrong-type")
def freeze_head_parameters(model):
    model.body.requires_grad_(False)
    return list(model.head.parameters())


wrong("nothing-returned", freeze_two_lines, {"return model": ""})
