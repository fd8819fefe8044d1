"""Calls that build parameters, gradients and models from plain tensors, and hand back what the learner's code made of them."""

import torch
from torch import nn


def adamw_step(module, params, grads, lr, **options):
    """The parameters after one call for each entry of `grads`, all with the same `state`."""
    own = [nn.Parameter(tensor.clone()) for tensor in params]
    state = {}
    for step in grads:
        module.adamw_step(own, list(step), state, lr, **options)
    return [parameter.detach() for parameter in own]


def clip_gradients(module, grads, max_norm):
    """The norm that came back, and the gradients as they stand after the call."""
    own = [None if tensor is None else tensor.clone() for tensor in grads]
    return module.clip_gradients(list(own), max_norm), own


def train(module, model, batches, learning_rate, **options):
    """The losses, and the model's weights by name after training."""
    built = Small(model)
    losses = module.train(built, batches, learning_rate, **options)
    return losses, {name: tensor.detach() for name, tensor in built.weights().items() if name in model}


class Small(nn.Module):
    """logits = head(wte(ids) * gain): a model that looks at one token at a time.

    Made from the tensors `wte` (V,C), `gain` (C), `bias` (V), `head` (V,C) and `spare`; without `head` the head is tied to
    `wte`, and `spare`, if it is there, is a weight that nothing uses. `left_over` is the gradient that every weight that
    is used carries before training, or None.
    """

    def __init__(self, model):
        super().__init__()
        V, C = model["wte"].shape
        like = {"dtype": model["wte"].dtype, "device": model["wte"].device}
        self.wte = nn.Embedding(V, C, **like)
        self.gain = nn.Parameter(torch.empty(C, **like))
        self.head = nn.Linear(C, V, **like)
        if "head" not in model:
            self.head.weight = self.wte.weight
        if "spare" in model:
            self.spare = nn.Parameter(torch.empty_like(model["spare"]))
        with torch.no_grad():
            for name, parameter in self.weights().items():
                parameter.copy_(model["wte" if name == "head" and "head" not in model else name])
        if model["left_over"] is not None:
            for name, parameter in self.weights().items():
                if name != "spare":
                    parameter.grad = torch.full_like(parameter, model["left_over"])

    def weights(self):
        found = {"wte": self.wte.weight, "gain": self.gain, "head": self.head.weight, "bias": self.head.bias}
        return found | ({"spare": self.spare} if hasattr(self, "spare") else {})

    def forward(self, ids):
        return self.head(self.wte(ids) * self.gain)
