"""Probe of 09_gqa: plays a sequence of calls on the learner's KVCache."""

from typing import Any


def play(module, n_layer: int, k, v, calls: list) -> tuple:
    """Append each layer's positions in order: `calls` lists (layer, number of positions); k and v are (L,B,Hkv,T,D).

    Gives whether a new cache starts empty, what each call returned, the lengths (of the new cache, then after
    each call), and what the returned tensors hold once all calls are made.
    """
    if not _starts_empty(module, n_layer, k):
        return False, (), (), (), ()
    cache = module.KVCache(n_layer)
    lengths, returned, copies, taken = [_length(cache)], [], [], [0] * n_layer
    for layer, T in calls:
        chunk = slice(taken[layer], taken[layer] + T)
        pair = _pair(cache.append(layer, k[layer][:, :, chunk], v[layer][:, :, chunk]))
        taken[layer] += T
        returned.append(pair)
        copies.append(tuple(_copy(part) for part in pair))
        lengths.append(_length(cache))
    return True, tuple(pair[0] for pair in copies), tuple(pair[1] for pair in copies), tuple(lengths), tuple(returned)


def _starts_empty(module, n_layer: int, like) -> bool:
    """Whether a new cache is empty while another one holds a position in every layer."""
    other = module.KVCache(n_layer)
    for layer in range(n_layer):
        other.append(layer, like.new_ones(1, 1, 1, 1), like.new_ones(1, 1, 1, 1))
    length = _length(module.KVCache(n_layer))
    return not isinstance(length, int) or length == 0


def _length(cache) -> Any:
    length = cache.length
    return "a method" if callable(length) else length


def _pair(returned: Any) -> tuple:
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        what = f"{len(returned)} items" if isinstance(returned, (tuple, list)) else type(returned).__name__
        raise TypeError(f"append returned {what}: expected the two tensors k_all, v_all")
    return tuple(returned)


def _copy(value: Any) -> Any:
    return value.clone() if hasattr(value, "clone") else value
