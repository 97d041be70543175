"""The Transformer in NumPy, float64, written from the paper.

Independent of the package in structure: one sentence, one position and one
head at a time, in plain loops. What is hidden is not masked but left out.
"""

import numpy as np

from tests.support.small_models import to_numpy


class NumpyTransformer:
    """Computes the logits of a `Transformer`, whose weights it reads."""

    def __init__(self, model):
        self.model = model
        self.config = model.get_config()

    def logits(self, source_ids, target_ids):
        """Gives float64 `(B, T, V)` for int arrays `(B, S)` and `(B, T)`."""
        return np.array(
            [
                self._sentence(source, target)
                for source, target in zip(source_ids, target_ids, strict=True)
            ]
        )

    def _sentence(self, source, target):
        pad_id = self.config["pad_id"]
        real = [i for i, token in enumerate(source) if token != pad_id]
        memory = self.encode(source, real)
        states = self.decode(target, [memory[i] for i in real])
        return [self.project(state) for state in states]

    def embed(self, ids, embedding):
        """Section 3.4 and 3.5: times sqrt(d_model), plus positions."""
        d_model = self.config["d_model"]
        table = read(embedding.embeddings)
        return [
            table[token] * np.sqrt(d_model) + position_vector(place, d_model)
            for place, token in enumerate(ids)
        ]

    def encode(self, ids, real):
        """Section 3.1: a position reads the real positions."""
        model = self.model
        states = self.embed(ids, self._source_embedding())
        for layer in model.encoder.layers:
            states = self.add_norm(
                layer.self_attention_norm,
                states,
                lambda vectors, layer=layer: [
                    self.attend(
                        layer.self_attention, v, [vectors[i] for i in real]
                    )
                    for v in vectors
                ],
            )
            states = self.think(layer, states)
        return self.close(model.encoder, states)

    def decode(self, ids, memory):
        """Section 3.1: a position reads its prefix, then the memory."""
        model = self.model
        states = self.embed(ids, model.target_embedding)
        for layer in model.decoder.layers:
            states = self.add_norm(
                layer.self_attention_norm,
                states,
                lambda vectors, layer=layer: [
                    self.attend(layer.self_attention, v, vectors[: i + 1])
                    for i, v in enumerate(vectors)
                ],
            )
            states = self.add_norm(
                layer.cross_attention_norm,
                states,
                lambda vectors, layer=layer: [
                    self.attend(layer.cross_attention, v, memory)
                    for v in vectors
                ],
            )
            states = self.think(layer, states)
        return self.close(model.decoder, states)

    def attend(self, attention, query, values, keys=None):
        """Section 3.2.2, for one query vector and what it may see."""
        keys = values if keys is None else keys
        share = self.config["d_model"] // self.config["num_heads"]
        d_k = self.config["d_k"] or share
        d_v = self.config["d_v"] or share
        queries = dense(query, attention.query_projection)
        keys = [dense(key, attention.key_projection) for key in keys]
        values = [dense(value, attention.value_projection) for value in values]
        heads = []
        for head in range(self.config["num_heads"]):
            of_key = slice(head * d_k, (head + 1) * d_k)
            of_value = slice(head * d_v, (head + 1) * d_v)
            scores = [
                np.dot(queries[of_key], key[of_key]) / np.sqrt(d_k)
                for key in keys
            ]
            output = np.zeros(d_v)
            for weight, value in zip(softmax(scores), values, strict=True):
                output += weight * value[of_value]
            heads.append(output)
        return dense(np.concatenate(heads), attention.output_projection)

    def think(self, layer, states):
        """Section 3.3: max(0, x W_1 + b_1) W_2 + b_2."""
        network = layer.feed_forward
        return self.add_norm(
            layer.feed_forward_norm,
            states,
            lambda vectors: [
                dense(np.maximum(dense(v, network.inner), 0), network.outer)
                for v in vectors
            ],
        )

    def add_norm(self, wrapper, states, sublayer):
        """Section 3.1: LayerNorm(x + Sublayer(x)), or with the norm first."""
        if self.config["norm_first"]:
            outputs = sublayer([self.norm(wrapper.norm, x) for x in states])
            return [x + y for x, y in zip(states, outputs, strict=True)]
        outputs = sublayer(states)
        return [
            self.norm(wrapper.norm, x + y)
            for x, y in zip(states, outputs, strict=True)
        ]

    def close(self, stack, states):
        """The norm after a stack of layers whose norm is first."""
        if not self.config["norm_first"]:
            return states
        return [self.norm(stack.final_norm, state) for state in states]

    def norm(self, layer, vector):
        """Layer normalisation of one vector."""
        centred = vector - vector.mean()
        deviation = np.sqrt((centred**2).mean() + self.config["epsilon"])
        return centred / deviation * read(layer.gamma) + read(layer.beta)

    def project(self, state):
        """Section 3.4: by the target embedding, or by its own matrix."""
        if self.config["tying"] == "none":
            return dense(state, self.model.output_projection)
        embedding = self.model.target_embedding
        logits = np.array([state @ row for row in read(embedding.embeddings)])
        if self.config["output_bias"]:
            logits = logits + read(embedding.bias)
        return logits

    def _source_embedding(self):
        if self.config["tying"] == "all":
            return self.model.target_embedding
        return self.model.source_embedding


def read(variable):
    return to_numpy(variable).astype("float64")


def dense(vector, layer):
    outputs = vector @ read(layer.kernel)
    return outputs if layer.bias is None else outputs + read(layer.bias)


def softmax(scores):
    """Of a list; nothing for an empty one."""
    powers = [np.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


def position_vector(position, d_model):
    """Section 3.5, one column at a time."""
    vector = np.zeros(d_model)
    for column in range(d_model):
        pair = column // 2
        angle = position / 10000 ** (2 * pair / d_model)
        vector[column] = np.cos(angle) if column % 2 else np.sin(angle)
    return vector
