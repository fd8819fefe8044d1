"""Calls of 04_masking that need more than plain arguments."""

import torch


def causal_mask(module, n_query, **options):
    """The mask, and the kind of device it is on. On "meta", where tensors hold no numbers, only the place is looked at."""
    if options.get("device") != "meta":
        mask = module.causal_mask(n_query, **options)
        return mask, _place(mask)
    try:
        place = _place(module.causal_mask(n_query, **options))
    except Exception:
        place = "meta"  # code that looks at the numbers it makes cannot run there, and is not wrong for that
    del options["device"]
    return module.causal_mask(n_query, **options), place


def _place(mask):
    return mask.device.type if isinstance(mask, torch.Tensor) else "none"


def mask_scores(module, scores, mask):
    """The pattern that the masked scores lead to: that alone is compared, so any fill that is low enough is right."""
    masked = module.mask_scores(scores, mask)
    return torch.softmax(masked, dim=-1) if isinstance(masked, torch.Tensor) else masked
