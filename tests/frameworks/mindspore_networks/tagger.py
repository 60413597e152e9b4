"""The same tagger with the recurrent layers of `nn`."""

from mindspore import nn, ops

WIDTH, WORDS, TAGS = 12, 30, 6
RENAMED = (
    ("embedding.embedding_table", "embed.weight"),
    ("encoder.", "lstm."),
    ("init_state", "bridge"),
    ("decoder_cell", "decoder"),
    ("layer_norm", "norm"),
    ("hidden2tag", "tags"),
    ("gamma", "weight"),
    ("beta", "bias"),
)


class LSTMTagger(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.encoder = nn.LSTM(WIDTH, WIDTH, num_layers=1, batch_first=True, bidirectional=True)
        self.init_state = nn.Dense(2 * WIDTH, WIDTH, activation="tanh")
        self.decoder_cell = nn.LSTMCell(2 * WIDTH, WIDTH)
        self.layer_norm = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.hidden2tag = nn.Dense(WIDTH, TAGS)

    def construct(self, tokens):
        output, (h_n, c_n) = self.encoder(self.embedding(tokens))
        h = self.init_state(ops.concat((h_n[0], h_n[1]), axis=-1))
        c = c_n[0] + c_n[1]
        logits = []
        for t in range(tokens.shape[1]):
            h, c = self.decoder_cell(output[:, t], (h, c))
            logits.append(self.hidden2tag(self.layer_norm(h)))
        return ops.stack(logits, axis=1)


def make():
    return LSTMTagger()


def loss(model, tokens, labels):
    logits = model(tokens)
    return ops.cross_entropy(logits.reshape(-1, TAGS), labels.reshape(-1), ignore_index=0)
