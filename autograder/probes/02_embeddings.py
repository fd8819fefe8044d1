"""Calls of 02_embeddings that need more than plain arguments."""

import torch


def cosine_similarity(module, a, b):
    """The similarities, and whether the gradient that they pass back is finite, where a vector is zero too."""
    similarity = module.cosine_similarity(a, b)
    leaves = [tensor.detach().clone().requires_grad_() for tensor in (a, b)]
    again = module.cosine_similarity(*leaves)
    if not isinstance(again, torch.Tensor) or not again.requires_grad:
        return similarity, True
    gradients = torch.autograd.grad(again.sum(), leaves, allow_unused=True)
    return similarity, all(bool(torch.isfinite(gradient).all()) for gradient in gradients if gradient is not None)
