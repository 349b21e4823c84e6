"""Solutions for freeze."""

from __future__ import annotations

import copy

from tests.solutions.collection import of

# mypy: ignore-errors


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


parameters = {"model.head.requires_grad_(True)\n    return model": "return list(model.head.parameters())"}
wrong("wrong-type", freeze_two_lines, parameters)
wrong("nothing-returned", freeze_two_lines, {"return model": ""})
wrong("copy-returned", lambda model: freeze_two_lines(copy.deepcopy(model)))
