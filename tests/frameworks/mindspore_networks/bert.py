"""The same encoder with the names of MindSpore's model zoo, by functions of `ops`."""

import math

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

WIDTH, HEADS, LAYERS, INNER, WORDS, CLASSES = 32, 4, 2, 64, 40, 3
RENAMED = (
    ("bert_embedding.", "embeddings."),
    ("word_embedding.embedding_table", "word_embeddings.weight"),
    ("position_embedding.embedding_table", "position_embeddings.weight"),
    ("segment_embedding.embedding_table", "token_type_embeddings.weight"),
    ("layernorm.gamma", "LayerNorm.weight"),
    ("layernorm.beta", "LayerNorm.bias"),
    ("bert_encoder.layers", "encoder.layer"),
    ("attention.self_attention.", "attention.self."),
    ("query_layer", "query"),
    ("key_layer", "key"),
    ("value_layer", "value"),
    ("attention.projection", "attention.output.dense"),
    ("attention.layernorm", "attention.output.LayerNorm"),
    ("attention.LayerNorm", "attention.output.LayerNorm"),
    ("feed_forward.mapping", "intermediate.dense"),
    ("feed_forward.projection", "output.dense"),
    ("feed_forward.LayerNorm", "output.LayerNorm"),
    ("pooler_dense", "pooler.dense"),
    ("dense_1", "classifier"),
)


class EmbeddingPostprocessor(nn.Cell):
    def __init__(self):
        super().__init__()
        self.word_embedding = nn.Embedding(WORDS, WIDTH)
        self.segment_embedding = nn.Embedding(2, WIDTH)
        self.position_embedding = nn.Embedding(16, WIDTH)
        self.layernorm = nn.LayerNorm((WIDTH,), epsilon=1e-12)

    def construct(self, ids, types):
        positions = ops.arange(ids.shape[1]).reshape(1, -1)
        out = self.word_embedding(ids)
        out = out + self.segment_embedding(types)
        out = out + self.position_embedding(positions)
        return self.layernorm(out)


class BertSelfAttention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.size = WIDTH // HEADS
        self.query_layer = nn.Dense(WIDTH, WIDTH)
        self.key_layer = nn.Dense(WIDTH, WIDTH)
        self.value_layer = nn.Dense(WIDTH, WIDTH)

    def split(self, x):
        return ops.permute(ops.reshape(x, (x.shape[0], x.shape[1], HEADS, self.size)), (0, 2, 1, 3))

    def construct(self, x, mask):
        query = self.split(self.query_layer(x))
        key = self.split(self.key_layer(x))
        value = self.split(self.value_layer(x))
        score = ops.matmul(query, ops.swapaxes(key, -1, -2))
        score = score / math.sqrt(self.size)
        score = score + mask
        probs = ops.softmax(score, axis=-1)
        context = ops.matmul(probs, value)
        return ops.reshape(ops.permute(context, (0, 2, 1, 3)), x.shape)


class BertAttention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.self_attention = BertSelfAttention()
        self.projection = nn.Dense(WIDTH, WIDTH)
        self.layernorm = nn.LayerNorm((WIDTH,), epsilon=1e-12)

    def construct(self, x, mask):
        out = self.projection(self.self_attention(x, mask))
        return self.layernorm(out + x)


class BertFeedForward(nn.Cell):
    def __init__(self):
        super().__init__()
        self.mapping = nn.Dense(WIDTH, INNER)
        self.activation = nn.GELU(approximate=False)
        self.projection = nn.Dense(INNER, WIDTH)
        self.layernorm = nn.LayerNorm((WIDTH,), epsilon=1e-12)

    def construct(self, x):
        hidden = self.activation(self.mapping(x))
        out = self.projection(hidden)
        return self.layernorm(out + x)


class BertEncoderCell(nn.Cell):
    def __init__(self):
        super().__init__()
        self.attention = BertAttention()
        self.feed_forward = BertFeedForward()

    def construct(self, x, mask):
        return self.feed_forward(self.attention(x, mask))


class BertTransformer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.CellList([BertEncoderCell() for _ in range(LAYERS)])

    def construct(self, x, mask):
        for layer in self.layers:
            x = layer(x, mask)
        return x


class BertModel(nn.Cell):
    def __init__(self):
        super().__init__()
        self.bert_embedding = EmbeddingPostprocessor()
        self.bert_encoder = BertTransformer()
        self.pooler_dense = nn.Dense(WIDTH, WIDTH)
        self.tanh = ops.Tanh()

    def construct(self, ids, types, mask):
        mask = ops.expand_dims(ops.expand_dims(mask, 1), 1).astype(ms.float32)
        mask = (1.0 - mask) * Tensor(np.array(-10000.0), ms.float32)
        out = self.bert_encoder(self.bert_embedding(ids, types), mask)
        return self.tanh(self.pooler_dense(out[:, 0]))


class BertCLSModel(nn.Cell):
    def __init__(self):
        super().__init__()
        self.bert = BertModel()
        self.dense_1 = nn.Dense(WIDTH, CLASSES)

    def construct(self, ids, types, mask):
        return self.dense_1(self.bert(ids, types, mask))


def make():
    return BertCLSModel()


def loss(model, ids, types, mask, labels):
    return ops.cross_entropy(model(ids, types, mask), labels)
