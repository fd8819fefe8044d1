"""Calls into parameter_counting.py with plain data: a ModelConfig travels as the dict of its thirteen fields."""

import dataclasses


def _call(module, name, c, *arguments, **options):
    """The learner's function on the learner's own ModelConfig; a field that the call changed is changed in `c` too."""
    config = module.ModelConfig(**c)
    value = getattr(module, name)(config, *arguments, **options)
    c.update({field: getattr(config, field) for field in c})
    return value


def attention_parameters(module, c):
    return _call(module, "attention_parameters", c)


def mlp_parameters(module, c):
    return _call(module, "mlp_parameters", c)


def norm_parameters(module, c):
    return _call(module, "norm_parameters", c)


def block_parameters(module, c):
    return _call(module, "block_parameters", c)


def embedding_parameters(module, c):
    return _call(module, "embedding_parameters", c)


def count_parameters(module, c):
    return _call(module, "count_parameters", c)


def mlp_share(module, c):
    return _call(module, "mlp_share", c)


def weight_bytes(module, c, bytes_per_parameter):
    return _call(module, "weight_bytes", c, bytes_per_parameter)


def kv_cache_bytes_per_token(module, c, **options):
    return _call(module, "kv_cache_bytes_per_token", c, **options)


def forward_flops_per_token(module, c, n_positions):
    return _call(module, "forward_flops_per_token", c, n_positions)


def read_config(module, config, names=()):
    """The fields of the ModelConfig as a dict; given `names`, in words how the config was refused."""
    if names:
        return _refused(module, config, names)
    found = module.read_config(config)
    if not dataclasses.is_dataclass(found) or isinstance(found, type):
        raise TypeError(f"read_config gives a {type(found).__name__}: expected a ModelConfig")
    return {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}


def _refused(module, config, names):
    """`names` are the fields of which the message must name one."""
    try:
        module.read_config(config)
    except ValueError as error:
        named = any(name in str(error) for name in names)
        return f"ValueError that {'names' if named else 'does not name'} {names[0]}"
    except Exception as error:
        return type(error).__name__
    return "no error"
