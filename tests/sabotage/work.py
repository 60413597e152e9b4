"""Small models with random weights and one training step of each, in pieces that a planted bug can replace."""

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY = 48


class Work:
    """One training step. A planted bug changes an attribute of it, of the model, or replaces a method."""

    def __init__(self, model, batch, loss, lr=1e-2, clip=1.0):
        self.model = model
        self.batch = batch
        self.loss = loss  # (model, batch) -> loss
        self.clip = clip
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, foreach=False) if model else None
        self.autocast = None
        self.loss_scale = None
        self.micro_batches = None  # batches, instead of the one
        self.steps = 1  # recorded
        self.before = lambda: None  # runs ahead of the recorded step

    def compute_loss(self, batch):
        if self.autocast:
            with torch.autocast("cpu", self.autocast):
                return self.loss(self.model, batch)
        return self.loss(self.model, batch)

    def backward(self):
        batches = self.micro_batches or [self.batch]
        for batch in batches:
            loss = self.compute_loss(batch)
            if len(batches) > 1:
                loss = loss / len(batches)
            if self.loss_scale:
                loss = loss * self.loss_scale
            loss.backward()

    def reduce_gradients(self):
        """Of several processes."""

    def unscale(self):
        if self.loss_scale:
            with torch.no_grad():
                for parameter in self.model.parameters():
                    parameter.grad.div_(self.loss_scale)

    def step(self):
        self.backward()
        self.reduce_gradients()
        self.unscale()
        if self.clip:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip, foreach=False)
        self.optimizer.step()


def tokens_of(*shape, vocabulary=VOCABULARY):
    return torch.randint(3, vocabulary, shape)


# ---- transformers -------------------------------------------------------------------------------------------------------


def causal_loss(model, batch):
    return model(**batch).loss


def llama(**changes):
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
    shape.update(num_key_value_heads=2, vocab_size=VOCABULARY, max_position_embeddings=64, use_cache=False)
    shape["attn_implementation"] = "eager"
    model = LlamaForCausalLM(LlamaConfig(**{**shape, **changes}))
    tokens = tokens_of(2, 12)
    return Work(model, {"input_ids": tokens, "labels": tokens}, causal_loss)


def gpt2(dropout=0.0, **changes):
    from transformers import GPT2Config, GPT2LMHeadModel

    shape = {"vocab_size": VOCABULARY, "n_positions": 32, "n_embd": 32, "n_layer": 3, "n_head": 4, "use_cache": False}
    shape.update(resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout, attn_implementation="eager")
    model = GPT2LMHeadModel(GPT2Config(**{**shape, **changes}))
    tokens = tokens_of(2, 10)
    return Work(model, {"input_ids": tokens, "labels": tokens}, causal_loss)


def bert(dropout=0.0, **changes):
    from transformers import BertConfig, BertForSequenceClassification

    shape = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
    shape.update(intermediate_size=64, max_position_embeddings=32, num_labels=3, attn_implementation="eager")
    shape.update(hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    model = BertForSequenceClassification(BertConfig(**{**shape, **changes}))
    tokens = tokens_of(4, 10)
    mask = torch.ones_like(tokens)
    mask[1, 7:] = 0
    mask[3, 5:] = 0
    batch = {"input_ids": tokens, "attention_mask": mask, "labels": torch.tensor([0, 2, 1, 0])}
    return Work(model, batch, causal_loss)


def t5(**changes):
    from transformers import T5Config, T5ForConditionalGeneration

    shape = {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    shape.update(decoder_start_token_id=0, use_cache=False, dropout_rate=0.0, attn_implementation="eager")
    model = T5ForConditionalGeneration(T5Config(**{**shape, **changes}))
    source, target = tokens_of(3, 9), tokens_of(3, 6)
    mask = torch.ones_like(source)
    mask[0, 6:] = 0
    mask[2, 4:] = 0
    return Work(model, {"input_ids": source, "attention_mask": mask, "labels": target}, causal_loss)


def vit(**changes):
    from transformers import ViTConfig, ViTForImageClassification

    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    shape.update(image_size=16, patch_size=4, num_labels=4, attn_implementation="eager")
    model = ViTForImageClassification(ViTConfig(**{**shape, **changes}))
    batch = {"pixel_values": torch.randn(2, 3, 16, 16), "labels": torch.tensor([1, 3])}
    return Work(model, batch, causal_loss)


# ---- a transformer whose every part can be replaced ----------------------------------------------------------------------


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def mask(self, length):
        return torch.ones(length, length, dtype=torch.bool).triu(1)

    def split_heads(self, x):
        b, t, w = x.shape
        return x.view(b, t, self.heads, w // self.heads).transpose(1, 2)

    def merge_heads(self, x):
        b, h, t, d = x.shape
        return x.transpose(1, 2).reshape(b, t, h * d)

    def weights(self, q, k):
        scores = torch.matmul(q, k.transpose(-1, -2)) * q.shape[-1] ** -0.5
        return torch.softmax(scores.masked_fill(self.mask(q.shape[2]), float("-inf")), dim=-1)

    def forward(self, x):
        q, k, v = (self.split_heads(part) for part in self.qkv(x).chunk(3, dim=-1))
        return self.out(self.merge_heads(torch.matmul(self.weights(q, k), v)))


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.act = nn.GELU()
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.down(self.act(self.up(x)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = FeedForward(width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Embed(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(length, width)

    def position_ids(self, tokens):
        return torch.arange(tokens.shape[1])

    def forward(self, tokens):
        return self.tokens(tokens) + self.positions(self.position_ids(tokens))


class MiniGpt(nn.Module):
    def __init__(self, width=32, heads=4, layers=3, length=32):
        super().__init__()
        self.embed = Embed(width, length)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def next_token_loss(model, tokens, shift=1, reduction="mean"):
    logits = model(tokens)
    return F.cross_entropy(logits[:, :-shift].flatten(0, 1), tokens[:, shift:].flatten(), reduction=reduction)


def mini_gpt():
    return Work(MiniGpt(), tokens_of(2, 12), next_token_loss)


# ---- convolutions, recurrence, experts -----------------------------------------------------------------------------------


class Residual(nn.Module):
    def __init__(self, channels, stride=1):
        super().__init__()
        wide = channels * stride
        self.conv1 = nn.Conv2d(channels, wide, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(wide)
        self.conv2 = nn.Conv2d(wide, wide, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(wide)
        self.short = nn.Conv2d(channels, wide, 1, stride=stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.short(x))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Conv2d(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.layer1, self.layer2 = Residual(8), Residual(8, 2)
        self.head = nn.Linear(16, 10)

    def normalise(self, images):
        mean, std = images.new_tensor([0.5, 0.4, 0.3]), images.new_tensor([0.2, 0.3, 0.25])
        return (images - mean[:, None, None]) / std[:, None, None]

    def forward(self, images):
        x = F.relu(self.bn(self.enter(self.normalise(images))))
        return self.head(self.layer2(self.layer1(x)).mean(dim=(2, 3)))


def classify(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


def conv():
    return Work(ConvNet(), (torch.rand(4, 3, 12, 12), torch.randint(0, 10, (4,))), classify)


class Recurrent(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.cell = nn.GRUCell(width, width)
        self.head = nn.Linear(width, VOCABULARY)

    def first_state(self, x):
        return x.new_zeros(x.shape[0], x.shape[2])

    def forward(self, tokens):
        y, _ = self.lstm(self.embed(tokens))
        state, states = self.first_state(y), []
        for t in range(y.shape[1]):
            state = self.cell(y[:, t], state)
            states.append(state)
        return self.head(torch.stack(states, dim=1))


def rnn():
    return Work(Recurrent(), tokens_of(3, 7), next_token_loss)


class Experts(nn.Module):
    def __init__(self, width, count=4, chosen=2):
        super().__init__()
        self.router = nn.Linear(width, count, bias=False)
        self.experts = nn.ModuleList(FeedForward(width) for _ in range(count))
        self.chosen = chosen

    def route(self, x):
        weights, which = self.router(x).softmax(dim=-1).topk(self.chosen, dim=-1)
        return weights / weights.sum(dim=-1, keepdim=True), which

    def buffer(self, x):
        return torch.zeros_like(x)

    def forward(self, x):
        flat = x.flatten(0, 1)
        weights, which = self.route(flat)
        out = self.buffer(flat)
        for index, expert in enumerate(self.experts):
            rows, slot = torch.where(which == index)
            out = out.index_add(0, rows, expert(flat[rows]) * weights[rows, slot, None])
        return out.view_as(x)


def moe():
    work = mini_gpt()
    for block in work.model.blocks:
        block.mlp = Experts(32)
    work.optimizer = torch.optim.AdamW(work.model.parameters(), lr=1e-2, foreach=False)
    return work
