"""The weights of a Transformer in CTranslate2's own specification."""

import keras
import numpy as np

from keras_transformer.layers import positional_encoding

# Of Keras, to the names of CTranslate2.
ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "silu": "SWISH",
    "swish": "SWISH",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
}


def activation_of(model):
    """Gives the activation of a `Transformer`, as Keras writes it down."""
    layer = model.decoder.layers[0]
    return keras.activations.serialize(layer.feed_forward.activation)


def specification(translator, max_positions):
    """Fills the specification of a whole model.

    Args:
        translator: `Translator`, in float32.
        max_positions: int, rows of the table of positions.

    Returns:
        `ctranslate2.specs.TransformerSpec`.
    """
    from ctranslate2.specs import common_spec, transformer_spec

    model = translator.transformer
    first = model.decoder.layers[0]
    attention = first.self_attention
    options = {
        "num_layers": len(model.decoder.layers),
        "num_heads": attention.num_heads,
        "head_dim": attention.d_k,
        "pre_norm": first.feed_forward_norm.norm_first,
        "activation": getattr(
            common_spec.Activation, ACTIVATIONS[activation_of(model)]
        ),
    }
    spec = transformer_spec.TransformerSpec(
        transformer_spec.TransformerEncoderSpec(**options),
        # The mean of all heads, as in `align`.
        transformer_spec.TransformerDecoderSpec(**options, alignment_heads=0),
    )
    spec.config.layer_norm_epsilon = first.feed_forward_norm.epsilon
    _name_pieces(spec, translator)
    table = keras.ops.convert_to_numpy(
        positional_encoding(np.arange(max_positions), model.d_model)
    )
    for stack in (spec.encoder, spec.decoder):
        stack.position_encodings.encodings = table
    _fill_stack(spec.encoder, model.encoder)
    _fill_stack(spec.decoder, model.decoder)
    source, target = model.source_embedding, model.target_embedding
    spec.encoder.embeddings[0].weight = _array(source.embeddings)
    spec.decoder.embeddings.weight = _array(target.embeddings)
    _fill_projection(spec.decoder.projection, model)
    return spec


def _name_pieces(spec, translator):
    """Registers the vocabularies and how sentences are framed."""
    model, target = translator.transformer, translator.target_tokenizer
    spec.register_source_vocabulary(
        _pieces(translator.source_tokenizer, model.source_vocab_size)
    )
    spec.register_target_vocabulary(_pieces(target, model.target_vocab_size))
    spec.config.add_source_bos = False
    spec.config.add_source_eos = True
    for name, number in (
        ("unk_token", target.unk_id),
        ("bos_token", target.bos_id),
        ("decoder_start_token", target.bos_id),
        ("eos_token", target.eos_id),
    ):
        setattr(spec.config, name, target.pieces([number])[0])


def _pieces(tokenizer, vocab_size):
    """Names all ids of a model, whose vocabulary may be larger."""
    known = tokenizer.vocab_size
    return [
        *tokenizer.pieces(range(known)),
        *(f"<unused_{i}>" for i in range(known, vocab_size)),
    ]


def _fill_stack(spec, stack):
    for layer_spec, layer in zip(spec.layer, stack.layers, strict=True):
        _fill_self_attention(layer_spec.self_attention, layer)
        if hasattr(layer, "cross_attention"):
            _fill_cross_attention(layer_spec.attention, layer)
        _fill_dense(layer_spec.ffn.linear_0, layer.feed_forward.inner)
        _fill_dense(layer_spec.ffn.linear_1, layer.feed_forward.outer)
        _fill_norm(layer_spec.ffn.layer_norm, layer.feed_forward_norm.norm)
    if stack.final_norm is not None:
        _fill_norm(spec.layer_norm, stack.final_norm)


def _fill_self_attention(spec, layer):
    attention = layer.self_attention
    _fill_dense(
        spec.linear[0],
        attention.query_projection,
        attention.key_projection,
        attention.value_projection,
    )
    _fill_dense(spec.linear[1], attention.output_projection)
    _fill_norm(spec.layer_norm, layer.self_attention_norm.norm)


def _fill_cross_attention(spec, layer):
    attention = layer.cross_attention
    _fill_dense(spec.linear[0], attention.query_projection)
    _fill_dense(
        spec.linear[1], attention.key_projection, attention.value_projection
    )
    _fill_dense(spec.linear[2], attention.output_projection)
    _fill_norm(spec.layer_norm, layer.cross_attention_norm.norm)


def _fill_projection(spec, model):
    """Fills in what turns states into logits, tied or not."""
    layer = model.output_projection
    if layer is None:
        weight = _array(model.target_embedding.embeddings)
        bias = model.target_embedding.bias
    else:
        weight, bias = _array(layer.kernel).T, layer.bias
    spec.weight = weight
    if bias is not None:
        spec.bias = _array(bias)


def _fill_dense(spec, *layers):
    """Fills one linear map with those of layers that read the same."""
    spec.weight = np.concatenate([_array(each.kernel).T for each in layers])
    if layers[0].use_bias:
        spec.bias = np.concatenate([_array(each.bias) for each in layers])


def _fill_norm(spec, layer):
    spec.gamma, spec.beta = _array(layer.gamma), _array(layer.beta)


def _array(weight):
    return np.ascontiguousarray(keras.ops.convert_to_numpy(weight))
