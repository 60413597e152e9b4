"""The same recurrence, by functions of `ops` and methods of tensors."""

from mindspore import nn, ops

WIDTH, WORDS, CLASSES = 16, 30, 4
RENAMED = (
    ("embedding_table", "weight"),
    ("encoder.", "rnn."),
    ("gru_cell.linear_r", "cell.reset"),
    ("gru_cell.linear_z", "cell.update"),
    ("gru_cell.linear_n", "cell.candidate"),
    ("attention_score", "score"),
    ("classifier", "head"),
)


class GRUCell(nn.Cell):
    def __init__(self):
        super().__init__()
        self.linear_r = nn.Dense(2 * WIDTH, WIDTH)
        self.linear_z = nn.Dense(2 * WIDTH, WIDTH)
        self.linear_n = nn.Dense(2 * WIDTH, WIDTH)
        self.sigmoid = nn.Sigmoid()
        self.tanh = nn.Tanh()

    def construct(self, x, h):
        inputs = ops.concat((x, h), -1)
        reset = self.sigmoid(self.linear_r(inputs))
        update = self.sigmoid(self.linear_z(inputs))
        new = self.tanh(self.linear_n(ops.concat((x, reset * h), -1)))
        return (1 - update) * new + update * h


class SequenceTagger(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.encoder = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.gru_cell = GRUCell()
        self.attention_score = nn.Dense(WIDTH, 1)
        self.classifier = nn.Dense(WIDTH, CLASSES)

    def construct(self, tokens):
        output, h_n = self.encoder(self.embedding(tokens))
        h = h_n[0]
        states = []
        for t in range(tokens.shape[1]):
            h = self.gru_cell(output[:, t], h)
            states.append(h)
        states = ops.stack(states, 1)
        weights = ops.softmax(self.attention_score(states), axis=1)
        pooled = ops.sum(weights * states, 1)
        return self.classifier(pooled)


def make():
    return SequenceTagger()


def loss(model, tokens, labels):
    logits = ops.log_softmax(model(tokens), -1)
    return ops.nll_loss(logits, labels)
