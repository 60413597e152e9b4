"""Small models of many kinds with random weights, and how a step of each is trained. One place for every test here.

A builder takes (rank, world) and returns a Training. Builders that train on several processes are in WORLD.
"""

import dataclasses
from collections import namedtuple
from typing import Any, Callable, NamedTuple, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

STEPS = 2  # of each training


class Training(NamedTuple):
    model: Any  # what start() is given: a module or a list of them
    optimizers: list
    losses: Callable  # (capture) -> the losses of one step; see `plain`


def plain(model, loss_of, optimizer=None, clip: Optional[float] = 1.0):
    """One forward, one backward, clipping and the optimizer, all recorded."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-2)

    def losses(capture):
        with capture():
            loss = loss_of()
            loss.backward()
            if clip:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
        return [loss]

    return Training(model, [optimizer], losses)


def tokens_of(vocabulary, *shape):
    return torch.randint(5, vocabulary, shape)


# ---- transformers -------------------------------------------------------------------------------------------------------

TEXT = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 64,
    "max_position_embeddings": 64,
    "use_cache": False,
    "attn_implementation": "eager",
}


def llama(rank, world):
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(LlamaConfig(**TEXT, attention_dropout=0.1))
    tokens = tokens_of(64, 2, 12)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    return plain(model, lambda: model(input_ids=tokens, labels=tokens).loss, optimizer)


def mixtral(rank, world):
    from transformers import MixtralConfig, MixtralForCausalLM

    model = MixtralForCausalLM(
        MixtralConfig(**TEXT, num_local_experts=4, num_experts_per_tok=2, output_router_logits=True)
    ).to(torch.bfloat16)
    tokens = tokens_of(64, 2, 12)
    return plain(model, lambda: model(input_ids=tokens, labels=tokens).loss)


def qwen2_vl(rank, world):
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration

    text = {key: value for key, value in TEXT.items() if key != "attn_implementation"}
    text["rope_parameters"] = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}
    vision = {
        "depth": 2,
        "embed_dim": 32,
        "hidden_size": 32,
        "num_heads": 4,
        "mlp_ratio": 2,
        "patch_size": 4,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    }
    config = Qwen2VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=60,
        video_token_id=61,
        vision_start_token_id=62,
        vision_end_token_id=63,
        attn_implementation="eager",
    )
    model = Qwen2VLForConditionalGeneration(config)
    image = torch.tensor([[62, 60, 60, 60, 60, 63]])
    tokens = torch.cat([tokens_of(60, 1, 3), image, tokens_of(60, 1, 4)], dim=1)
    inputs = {
        "input_ids": tokens,
        "labels": tokens,
        "attention_mask": torch.ones_like(tokens),
        "pixel_values": torch.randn(16, 3 * 2 * 4 * 4),
        "image_grid_thw": torch.tensor([[1, 4, 4]]),
        "mm_token_type_ids": (tokens == 60).int(),
    }
    return plain(model, lambda: model(**inputs).loss)


def t5(rank, world):
    from transformers import T5Config, T5ForConditionalGeneration

    model = T5ForConditionalGeneration(
        T5Config(
            vocab_size=64,
            d_model=32,
            d_kv=8,
            d_ff=64,
            num_layers=2,
            num_heads=4,
            decoder_start_token_id=0,
            use_cache=False,
            dropout_rate=0.1,
        )
    )
    source, target = tokens_of(64, 2, 8), tokens_of(64, 2, 6)
    optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-2)
    return plain(model, lambda: model(input_ids=source, labels=target).loss, optimizer)


def bert(rank, world):
    from transformers import BertConfig, BertForSequenceClassification

    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=64,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=32,
            num_labels=3,
        )
    )
    tokens, labels = tokens_of(64, 4, 10), torch.tensor([0, 2, 1, 0])
    mask = torch.ones_like(tokens)
    mask[:, 8:] = 0
    return plain(model, lambda: model(input_ids=tokens, attention_mask=mask, labels=labels).loss)


def vit(rank, world):
    from transformers import ViTConfig, ViTForImageClassification

    model = ViTForImageClassification(
        ViTConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            image_size=16,
            patch_size=4,
            num_labels=4,
        )
    )
    images, labels = torch.randn(2, 3, 16, 16), torch.tensor([1, 3])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    return plain(model, lambda: model(pixel_values=images, labels=labels).loss, optimizer)


def gpt2(rank, world):
    """Gradients of two micro batches are summed up, in mixed precision; each micro batch is recorded by itself."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4, use_cache=False))
    batches = [tokens_of(64, 2, 8) for _ in range(2)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    def losses(capture):
        found = []
        for tokens in batches:
            with capture():
                with torch.autocast("cpu", torch.bfloat16):
                    loss = model(input_ids=tokens, labels=tokens).loss / len(batches)
                loss.backward()
            found.append(loss)
        optimizer.step()
        return found

    return Training(model, [optimizer], losses)


def whisper(rank, world):
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    model = WhisperForConditionalGeneration(
        WhisperConfig(
            vocab_size=64,
            num_mel_bins=8,
            d_model=32,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=64,
            decoder_ffn_dim=64,
            max_source_positions=12,
            max_target_positions=16,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
            use_cache=False,
        )
    )
    features, labels = torch.randn(2, 8, 24), tokens_of(64, 2, 6)
    return plain(model, lambda: model(input_features=features, labels=labels).loss)


def clip(rank, world):
    from transformers import CLIPConfig, CLIPModel

    text = {
        "vocab_size": 64,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 16,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    vision = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "image_size": 16,
        "patch_size": 8,
    }
    model = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=16))
    tokens, images = tokens_of(64, 3, 8), torch.randn(3, 3, 16, 16)
    tokens[:, -1] = 1
    return plain(model, lambda: model(input_ids=tokens, pixel_values=images, return_loss=True).loss)


# ---- convolutions -------------------------------------------------------------------------------------------------------


class Residual(nn.Module):
    def __init__(self, channels, stride=1):
        super().__init__()
        wide = channels * stride
        self.conv1 = nn.Conv2d(channels, wide, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(wide)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(wide, wide, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(wide)
        self.short = nn.Sequential(nn.Conv2d(channels, wide, 1, stride=stride), nn.BatchNorm2d(wide))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += self.short(x)
        return self.relu(y)


def conv(rank, world):
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        Residual(8),
        Residual(8, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(16, 10),
    )
    images, labels = torch.randn(4, 3, 12, 12), torch.randint(0, 10, (4,))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, nesterov=True)
    return plain(model, lambda: F.cross_entropy(model(images), labels, label_smoothing=0.1), optimizer)


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.enter = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.GroupNorm(2, width), nn.SiLU())
        self.down = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.time = nn.Linear(4, 2 * width)
        self.middle = nn.ModuleList(nn.Conv2d(2 * width, 2 * width, 3, padding=1) for _ in range(2))
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.leave = nn.Conv2d(2 * width, 1, 1)

    def forward(self, x, t):
        skip = self.enter(x)
        h = self.down(skip) + self.time(torch.cat([torch.sin(t), torch.cos(t)], dim=-1))[:, :, None, None]
        for layer in self.middle:
            h = h + F.silu(layer(h))
        return self.leave(torch.cat([self.up(h), skip], dim=1))


def unet(rank, world):
    model = UNet()
    clean, noise, t = torch.randn(2, 1, 8, 8), torch.randn(2, 1, 8, 8), torch.rand(2, 2)
    return plain(model, lambda: F.mse_loss(model(clean * 0.8 + noise * 0.6, t), noise))


# ---- recurrent ----------------------------------------------------------------------------------------------------------


class Recurrent(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.embed = nn.Embedding(32, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True, bidirectional=True, dropout=0.1)
        self.gru = nn.GRU(2 * width, width, batch_first=True)
        self.cell = nn.GRUCell(width, width)
        self.head = nn.Linear(width, 32)

    def forward(self, tokens):
        y, (h, c) = self.lstm(self.embed(tokens))
        y, last = self.gru(y)
        state = last[0] + h[0] * torch.tanh(c[0])
        for step in range(2):
            state = self.cell(y[:, step], state)
        return self.head(y + state.unsqueeze(1))


def rnn(rank, world):
    model = Recurrent()
    tokens = tokens_of(32, 3, 7)
    return plain(model, lambda: F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()), clip=0.5)


# ---- two optimizers -----------------------------------------------------------------------------------------------------


def gan(rank, world):
    generator = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.LeakyReLU(0.2), nn.Linear(16, 8), nn.Tanh())
    critic = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Dropout(0.1), nn.Linear(16, 1))
    real = torch.randn(6, 8)
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-2, betas=(0.5, 0.9))
    c_optimizer = torch.optim.RMSprop(critic.parameters(), lr=1e-2)

    def losses(capture):
        with capture():
            fake = generator(torch.randn(6, 4))
            ones, zeros = torch.ones(6, 1), torch.zeros(6, 1)
            judged = F.binary_cross_entropy_with_logits(critic(real), ones)
            judged = judged + F.binary_cross_entropy_with_logits(critic(fake.detach()), zeros)
            judged.backward()
            c_optimizer.step()
            fooled = F.binary_cross_entropy_with_logits(critic(fake), ones)
            fooled.backward()
            g_optimizer.step()
        return [judged, fooled]

    return Training([generator, critic], [g_optimizer, c_optimizer], losses)


# ---- containers and recomputation ---------------------------------------------------------------------------------------

Pair = namedtuple("Pair", "first second")


@dataclasses.dataclass
class Result:
    hidden: torch.Tensor
    parts: tuple
    label: str = "result"
    nothing: None = None


class Branches(nn.Module):
    """Returns a dict that holds a named tuple, a list, None and a number."""

    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.drop = nn.Dropout(0.2)

    def forward(self, x, scale=1.0, extras=None):
        y = self.drop(F.gelu(self.up(x)))
        shift = extras["shift"] if extras else 0.0
        return {"pair": Pair(self.down(y) * scale + shift, y.mean()), "all": [x, y[:, :2]], "none": None, "count": 3}


class Wraps(nn.Module):
    """Returns a dataclass; takes a named tuple."""

    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)

    def forward(self, pair, *, mode="plain"):
        hidden = torch.tanh(self.inner(pair.first))
        return Result(hidden, (hidden.sum(-1), [pair.second, {"max": hidden.max(dim=-1)}]))


class Chain(nn.Module):
    """Tuples in, tuples out; its second output is not used."""

    def __init__(self, width):
        super().__init__()
        self.left = nn.Linear(width, width)
        self.right = nn.Linear(width, width)

    def forward(self, x, y):
        return self.left(x) * y, self.right(y)


class Nested(nn.Module):
    def __init__(self, width=8, recompute=True):
        super().__init__()
        self.recompute = recompute
        self.embed = nn.Embedding(20, width)
        self.plain = Branches(width)
        self.wraps = Wraps(width)
        self.chain = Chain(width)
        self.replayed = Branches(width)
        self.reentrant = Branches(width)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 20)

    def forward(self, tokens):
        x = self.embed(tokens)
        out = self.plain(x, scale=0.5, extras={"shift": torch.ones(())})
        wrapped = self.wraps(out["pair"], mode="other")
        x, _ = self.chain(x + wrapped.hidden, wrapped.hidden)
        x = x + out["pair"].first
        if self.recompute:
            x = x + checkpoint(lambda t: self.replayed(t)["pair"].first, x, use_reentrant=False)
            x = x + checkpoint(lambda t: self.reentrant(t)["pair"].first, x, use_reentrant=True)
        return {"logits": self.head(self.norm(x)), "extra": out["pair"].second}


def nested(rank, world, recompute=False):
    model = Nested(recompute=recompute)
    tokens = torch.randint(0, 20, (6,))

    def loss():
        out = model(tokens)
        return F.cross_entropy(out["logits"], tokens) + 0.1 * out["extra"] ** 2

    return plain(model, loss)


def recomputed(rank, world):
    return nested(rank, world, recompute=True)


# ---- several processes --------------------------------------------------------------------------------------------------


class CopyToRanks(torch.autograd.Function):
    """The same input on every rank: gradients are summed up over the ranks."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous().clone()
        torch.distributed.all_reduce(grad)
        return grad


class ReduceFromRanks(torch.autograd.Function):
    """Partial results of the ranks are summed up."""

    @staticmethod
    def forward(ctx, x):
        x = x.contiguous().clone()
        torch.distributed.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class ColumnParallel(nn.Module):
    def __init__(self, weight, rank, world):
        super().__init__()
        self.weight = nn.Parameter(weight.chunk(world, dim=0)[rank].clone())

    def forward(self, x):
        return F.linear(CopyToRanks.apply(x), self.weight)


class RowParallel(nn.Module):
    def __init__(self, weight, rank, world):
        super().__init__()
        self.weight = nn.Parameter(weight.chunk(world, dim=1)[rank].clone())
        self.bias = nn.Parameter(torch.zeros(weight.shape[0]))

    def forward(self, x):
        return ReduceFromRanks.apply(F.linear(x, self.weight)) + self.bias


class TensorParallelBlock(nn.Module):
    """MLP and attention as Megatron cuts them: columns first, rows second."""

    def __init__(self, rank, world, width=16, heads=4):
        super().__init__()
        self.heads = heads // world
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.ModuleList(ColumnParallel(torch.randn(width, width) * 0.2, rank, world) for _ in range(3))
        self.out = RowParallel(torch.randn(width, width) * 0.2, rank, world)
        self.up = ColumnParallel(torch.randn(2 * width, width) * 0.2, rank, world)
        self.down = RowParallel(torch.randn(width, 2 * width) * 0.2, rank, world)

    def forward(self, x):
        y = self.norm1(x)
        q, k, v = (part(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def tp2(rank, world):
    model = nn.Sequential(
        nn.Embedding(32, 16), *(TensorParallelBlock(rank, world) for _ in range(2)), nn.Linear(16, 32)
    )
    tokens = tokens_of(32, 2, 6)

    def loss():
        result = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        gathered = [torch.empty_like(result) for _ in range(world)]
        torch.distributed.all_gather(gathered, result.detach())
        work = torch.distributed.all_reduce(gathered[0], async_op=True)
        work.wait()
        return result

    return plain(model, loss, clip=None)


def dtensor(rank, world):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
    mesh = init_device_mesh("cpu", (world,))
    model = parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    x = torch.randn(4, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, foreach=False)
    return plain(model, lambda: model(x).pow(2).mean(), optimizer, clip=None)


def ddp2(rank, world):
    inner = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5))
    model = nn.parallel.DistributedDataParallel(inner, bucket_cap_mb=0.001)
    images, labels = torch.randn(world, 3, 1, 6, 6)[rank], torch.randint(0, 5, (world, 3))[rank]
    return plain(model, lambda: F.cross_entropy(model(images), labels))


def sharded_net():
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8), nn.LayerNorm(8))


def fsdp1(rank, world):
    from torch.distributed.fsdp import FullyShardedDataParallel

    model = FullyShardedDataParallel(sharded_net(), device_id=torch.device("cpu"), use_orig_params=True)
    x = torch.randn(world, 4, 8)[rank]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, foreach=False)
    return plain(model, lambda: model(x).pow(2).mean(), optimizer, clip=None)


def fsdp2(rank, world):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model, mesh = sharded_net(), init_device_mesh("cpu", (world,))
    fully_shard(model[2], mesh=mesh)
    fully_shard(model, mesh=mesh)
    x = torch.randn(world, 4, 8)[rank]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, foreach=False)
    return plain(model, lambda: model(x).pow(2).mean(), optimizer, clip=None)


def pipeline(rank, world):
    """Two stages, two micro batches, both forwards first; what is sent last goes by batch_isend_irecv."""
    import torch.distributed as dist

    stage = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))
    batches, other = torch.randn(2, 4, 8), 1 - rank
    optimizer = torch.optim.SGD(stage.parameters(), lr=1e-2, foreach=False)

    def received():
        buffer = torch.zeros(4, 8)
        dist.recv(buffer, other)
        return buffer

    def forward(x):
        y = stage(x)
        if rank == 0:
            dist.send(y.detach(), other)
        return y

    def backward(x, y):
        if rank == 0:
            y.backward(received())
        else:
            y.backward()
            dist.send(x.grad, other)

    def losses(capture):
        with capture():
            inputs = [x if rank == 0 else received().requires_grad_() for x in batches]
            outputs = [forward(x) for x in inputs]
            if rank == 1:
                outputs = [y.pow(2).mean() for y in outputs]
            for x, y in zip(inputs, outputs):
                backward(x, y)
            optimizer.step()
            norms = [torch.stack([p.grad.norm() for p in stage.parameters()]), torch.zeros(4)]
            calls = [(dist.isend, norms[0]), (dist.irecv, norms[1])]
            for work in dist.batch_isend_irecv([dist.P2POp(call, tensor, other) for call, tensor in calls]):
                work.wait()
        return [y.detach().sum() for y in outputs]

    return Training(stage, [optimizer], losses)


MODELS = {
    builder.__name__: builder
    for builder in (
        *(llama, qwen2_vl, mixtral, t5, bert, vit, gpt2, whisper, clip),
        *(conv, unet, rnn, gan, nested, recomputed, tp2, dtensor, ddp2, fsdp1, fsdp2, pipeline),
    )
}
WORLD = {"tp2": 2, "dtensor": 2, "ddp2": 2, "fsdp1": 2, "fsdp2": 2, "pipeline": 2}
