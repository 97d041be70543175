"""What the two stacks share: N identical layers (paper, section 3.1)."""

import keras

from keras_transformer.layers.arguments import check_positive


def stacked_layers(layer_class, num_layers, dtype_policy, layer_arguments):
    """Makes the layers of a stack.

    Args:
        layer_class: `EncoderLayer` or `DecoderLayer`.
        num_layers: int, `N`.
        dtype_policy: the Keras dtype policy of the stack.
        layer_arguments: dict of the arguments of each layer.

    Returns:
        A list of `N` layers.

    Raises:
        ValueError: if `num_layers` is not a positive int.
    """
    check_positive(num_layers=num_layers)
    return [
        layer_class(dtype=dtype_policy, name=f"layer_{i}", **layer_arguments)
        for i in range(num_layers)
    ]


def closing_norm(layer):
    """Makes the norm after a stack of pre-norm layers.

    Their residual stream is never normalised, so the stack must be.

    Args:
        layer: a layer of the stack.

    Returns:
        A `LayerNormalization`, or None where each layer ends in a norm.
    """
    add_norm = layer.feed_forward_norm
    if not add_norm.norm_first:
        return None
    return keras.layers.LayerNormalization(
        epsilon=add_norm.epsilon, dtype=layer.dtype_policy, name="final_norm"
    )


def layer_config(layer):
    """Gives the arguments that make another layer like this one.

    Args:
        layer: an `EncoderLayer` or `DecoderLayer`.

    Returns:
        A dict of what both take, without `name`, `dtype` and the like.
    """
    return {
        "d_model": layer.self_attention.d_model,
        "num_heads": layer.self_attention.num_heads,
        "d_ff": layer.feed_forward.d_ff,
        "d_k": layer.self_attention.d_k,
        "d_v": layer.self_attention.d_v,
        "dropout": layer.self_attention_norm.dropout,
        "attention_dropout": layer.self_attention.dropout,
        "feed_forward_dropout": layer.feed_forward.dropout,
        "activation": keras.activations.serialize(
            layer.feed_forward.activation
        ),
        "norm_first": layer.self_attention_norm.norm_first,
        "epsilon": layer.self_attention_norm.epsilon,
    }
