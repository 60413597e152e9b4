"""The planted bugs. Each is one small change of one side; its truth was written down with it.

`where` names the places where a developer has to look: the op that makes the first wrong number and the module that calls
it. Ops that only receive the wrong number are not right, with one exception: where the wrong op is not in the dump, as it is
not called at all (marked "consumer") or belongs to what a dump does not record (slices, views, casts, arange), the op that
takes its result first is as near as an answer can be.
"""

import types

import torch
import torch.nn.functional as F
from case import Case
from parallel import data_parallel, expert_parallel, pipeline, tensor_parallel
from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions
from work import bert, conv, gpt2, llama, mini_gpt, moe, next_token_loss, rnn, t5, vit


def method(instance, name):
    """Replaces a method of one instance; the new one gets the instance first."""

    def replace(function):
        setattr(instance, name, types.MethodType(function, instance))
        return function

    return replace


# ---- constants, weights and buffers --------------------------------------------------------------------------------------


def norm_eps(work):
    work.model.model.layers[1].input_layernorm.variance_epsilon = 1e-5  # for 1e-6


def layer_norm_eps(work):
    work.model.bert.encoder.layer[1].output.LayerNorm.eps = 1e-2  # for 1e-12


def transposed_weight(work):
    weight = work.model.model.layers[1].self_attn.o_proj.weight
    weight.data = weight.data.t().contiguous()


def attention_scale(work):
    work.model.model.layers[0].self_attn.scaling = 1.0


def rope_base(work):
    rotary = work.model.model.rotary_emb
    rotary.inv_freq = 1.0 / (500000.0 ** (torch.arange(0, 8, 2).float() / 8))  # for 10000


def stale_rope_cache(work):
    """The tables are kept from a call with shorter steps between positions, as before the context was extended."""
    rotary = work.model.model.rotary_emb
    with torch.no_grad():
        kept = rotary(torch.zeros(1), torch.arange(12)[None] / 2)
    rotary.forward = lambda x, position_ids: kept


def head_not_tied(work):
    """The head keeps its own initial weight."""
    work.model.lm_head.weight = torch.nn.Parameter(torch.randn_like(work.model.lm_head.weight) * 0.02)
    work.optimizer = torch.optim.AdamW(work.model.parameters(), lr=1e-2, foreach=False)


def head_copied(work):
    """The head starts with the values of the embedding, but in memory of its own: their gradients do not add up."""
    work.model.lm_head.weight = torch.nn.Parameter(work.model.lm_head.weight.detach().clone())
    work.optimizer = torch.optim.AdamW(work.model.parameters(), lr=1e-2, foreach=False)


def used_buffer(work):
    """The sum over experts begins with what the memory held before."""
    mlp = work.model.blocks[1].mlp
    used = torch.randn(64, 32) * 0.3

    @method(mlp, "buffer")
    def buffer(self, x):
        return used[: x.shape[0]].clone()


# ---- attention -----------------------------------------------------------------------------------------------------------


def mask_off_by_one(work):
    @method(work.model.blocks[1].attention, "mask")
    def mask(self, length):
        return torch.ones(length, length, dtype=torch.bool).triu(2)


def softmax_dim(work):
    @method(work.model.blocks[1].attention, "weights")
    def weights(self, q, k):
        scores = torch.matmul(q, k.transpose(-1, -2)) * q.shape[-1] ** -0.5
        return torch.softmax(scores.masked_fill(self.mask(q.shape[2]), float("-inf")), dim=-2)


def head_order(work):
    @method(work.model.blocks[1].attention, "split_heads")
    def split_heads(self, x):
        b, t, w = x.shape
        return x.contiguous().view(b, self.heads, t, w // self.heads)


def heads_not_moved_back(work):
    @method(work.model.blocks[1].attention, "merge_heads")
    def merge_heads(self, x):
        b, h, t, d = x.shape
        return x.reshape(b, t, h * d)


def padding_not_masked(work):
    attention = work.model.encoder.block[1].layer[0].SelfAttention
    right = attention.forward
    attention.forward = lambda hidden_states, mask=None, **others: right(hidden_states, mask=None, **others)


def position_off_by_one(work):
    @method(work.model.embed, "position_ids")
    def position_ids(self, tokens):
        return torch.arange(1, tokens.shape[1] + 1)


# ---- the way of the data -------------------------------------------------------------------------------------------------


def layer_skipped(work):
    encoder = work.model.bert.encoder

    @method(encoder, "forward")
    def forward(self, hidden_states, attention_mask=None, **others):
        for index, layer in enumerate(self.layer):
            if index != 1:
                hidden_states = layer(hidden_states, attention_mask)
        return BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=hidden_states)


def residual_dropped(work):
    @method(work.model.blocks[1], "forward")
    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return self.mlp(self.norm2(x))


def leaky_gpt():
    work = mini_gpt()
    for block in work.model.blocks:

        @method(block.mlp, "forward")
        def forward(self, x):
            x = self.up(x)
            return self.down(F.relu(x) + 0.1 * x)

    return work


def overwritten_input(work):
    """An activation in place destroys what the next operation still needs."""

    @method(work.model.blocks[1].mlp, "forward")
    def forward(self, x):
        x = self.up(x)
        return self.down(F.relu(x, inplace=True) + 0.1 * x)


def gelu_tanh(work):
    work.model.blocks[1].mlp.act.approximate = "tanh"


def dropout_in_eval(work):
    work.model.bert.encoder.layer[1].attention.output.dropout.train()


def bert_in_eval():
    work = bert(dropout=0.1)
    work.model.eval()
    return work


def gpt2_with_dropout():
    return gpt2(dropout=0.1)


def dropout_twice(work):
    module = work.model.transformer.h[1].mlp.dropout

    @method(module, "forward")
    def forward(self, x):
        return F.dropout(F.dropout(x, self.p, self.training), self.p, self.training)


def fp16_sum(work):
    """Products are right, their sum is kept in half precision."""

    @method(work.model.blocks[1].mlp.down, "forward")
    def forward(self, x):
        x, weight = x.half(), self.weight.half()
        total = torch.zeros(*x.shape[:-1], weight.shape[0], dtype=torch.float16)
        for part, columns in zip(x.split(16, dim=-1), weight.split(16, dim=-1)):
            total = total + torch.matmul(part, columns.t())
        return total.float() + self.bias


def cast_in_the_middle(work):
    @method(work.model.blocks[1].mlp, "forward")
    def forward(self, x):
        return self.down(self.act(self.up(x)).to(torch.bfloat16).to(torch.float32))


def patch_order(work):
    module = work.model.vit.embeddings.patch_embeddings
    projection = module.projection

    @method(module, "forward")
    def forward(self, pixel_values, *args, **kwargs):
        return projection(pixel_values).transpose(2, 3).flatten(2).transpose(1, 2)


def gates_not_normalised(work):
    @method(work.model.blocks[1].mlp, "route")
    def route(self, x):
        return self.router(x).softmax(dim=-1).topk(self.chosen, dim=-1)


def stale_state(work):
    """The recurrent cell begins with the last state of the batch before."""
    kept = torch.randn(3, 16) * 0.5
    work.model.first_state = lambda x: kept


def batch_norm_in_eval(work):
    work.model.layer1.bn2.eval()


def channels_swapped(work):
    @method(work.model, "normalise")
    def normalise(self, images):
        mean, std = torch.tensor([0.5, 0.4, 0.3]), torch.tensor([0.25, 0.3, 0.2])
        return (images - mean[:, None, None]) / std[:, None, None]


# ---- loss, backward and optimizer ----------------------------------------------------------------------------------------


def labels_shift(work):
    def loss(model, tokens):
        logits = model(tokens)
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, :-1].flatten())

    work.loss = loss


def token_count(work):
    """The sum is divided by the number of all tokens; the golden run divides by that of those with a label."""

    def loss(model, tokens):
        return next_token_loss(model, tokens, reduction="sum") / tokens.numel()

    work.loss = loss


def summed_loss():
    work = mini_gpt()
    work.loss = lambda model, tokens: next_token_loss(model, tokens, reduction="sum") / tokens[:, 1:].numel()
    return work


def detached_residual(work):
    @method(work.model.blocks[1], "forward")
    def forward(self, x):
        x = x.detach() + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def adam_beta(work):
    work.optimizer.param_groups[0]["betas"] = (0.9, 0.99)  # for 0.999


def weight_decay(work):
    work.optimizer.param_groups[0]["weight_decay"] = 0.1  # for 0.01


def clip_threshold(work):
    work.clip = 0.1  # for 1.0


def not_unscaled(work):
    work.unscale = lambda: None


def scaled_gpt():
    work = mini_gpt()
    work.loss_scale = 1024.0
    return work


# ---- several processes ---------------------------------------------------------------------------------------------------


def dropped_all_reduce(work, rank):
    @method(work.model.blocks[1].down, "reduce")
    def reduce(self, x):
        return x.contiguous().clone()


def dropped_backward_reduce(work, rank):
    @method(work.model.blocks[1].up, "enter")
    def enter(self, x):
        return x.view_as(x)


def wrong_shard(work, rank):
    """Rank 1 loads the part of rank 0."""
    if rank == 1:
        torch.manual_seed(99)
        weight = work.model.blocks[1].up.weight
        weight.data = (torch.randn(16, 16) * 0.2).to(weight.dtype)


def eps_on_one_rank(work, rank):
    if rank == 1:
        work.model.blocks[1].norm2.eps = 1e-1


def summed_gradients(work, rank):
    @method(work, "average")
    def average(self, grad, world):
        torch.distributed.all_reduce(grad)


def same_data(work, rank):
    """The sampler does not know its rank: rank 1 gets the share of rank 0, or here, any but its own."""
    if rank == 1:
        generator = torch.Generator().manual_seed(7)
        work.batch = torch.randint(3, 48, work.batch.shape, generator=generator)


def activation_of_stage(work, rank):
    if rank == 0:
        work.model.blocks[1].mlp.act.approximate = "tanh"


def stale_receive(work, rank):
    """The second micro batch is handed on before it has arrived: the buffer holds the first one."""
    if rank == 1:
        work.buffer = None

        @method(work, "receive")
        def receive(self, like):
            x = torch.empty_like(like)
            torch.distributed.recv(x, 1 - self.rank)
            self.buffer, kept = x.clone(), self.buffer
            return x if kept is None else kept


def tokens_rolled(work, rank):
    """Rank 1 sends its tokens in another order than they were counted."""
    if rank == 1:
        layer = work.model.layers[1]
        right = layer.dispatch

        @method(layer, "dispatch")
        def dispatch(self, x):
            return right(x.roll(1, dims=0))


def case(make, bug, about, *where, **options):
    return Case(bug.__name__, make, bug, where, about, **options)


MLP, ATTENTION = "blocks.1.mlp", "blocks.1.attention"
BERT = "bert.encoder.layer"
BOTH = {"world": 2}

BUGS = [
    case(
        *(llama, norm_eps, "eps of an RMSNorm: 1e-5 for 1e-6"),
        *("model.layers.1.input_layernorm", "model.layers.1.input_layernorm/__add__"),
    ),
    case(*(bert, layer_norm_eps, "eps of a LayerNorm: 1e-2 for 1e-12"), "any/layer_norm#4", level="L1"),
    case(
        *(llama, transposed_weight, "a square weight is loaded transposed"),
        *("model.layers.1.self_attn.o_proj", "model.layers.1.self_attn.o_proj/linear"),
        task="tensor",
    ),
    case(
        *(llama, attention_scale, "scores are not divided by the root of the head size"),
        *("model.layers.0.self_attn", "model.layers.0.self_attn/__mul__#9"),
    ),
    case(
        *(llama, rope_base, "rotary frequencies of another base"),
        *("model.rotary_emb", "model.rotary_emb/*"),
    ),
    case(
        *(llama, stale_rope_cache, "rotary tables of an earlier call"),
        *("model.rotary_emb", "model.rotary_emb/*"),
    ),
    case(*(gpt2, head_not_tied, "the head has a weight of its own"), *("lm_head", "lm_head/linear")),
    case(
        *(gpt2, head_copied, "the head has a copy of the embedding: gradients do not add up"),
        *("backward:transformer.wte", "backward:lm_head", "backward:transformer.wte/*", "backward:lm_head/*"),
    ),
    case(
        *(moe, used_buffer, "experts are added to memory that was not cleared"),
        *(MLP, f"{MLP}/index_add#4"),
    ),
    case(
        *(mini_gpt, mask_off_by_one, "the causal mask lets the next token through"),
        *(ATTENTION, f"{ATTENTION}/masked_fill"),
        summary="md5",
    ),
    case(*(mini_gpt, softmax_dim, "softmax over the wrong dimension"), "any/softmax#1", level="L1"),
    case(
        *(mini_gpt, head_order, "heads are split in the wrong order"),
        *(ATTENTION, f"{ATTENTION}/matmul#2"),
    ),
    case(
        *(mini_gpt, heads_not_moved_back, "heads are merged without the transpose"),
        *(ATTENTION, f"{ATTENTION}.out", f"{ATTENTION}.out/linear"),
        task="tensor",
    ),
    case(
        *(t5, padding_not_masked, "one layer ignores the padding mask"),
        "encoder.block.1.layer.0.SelfAttention",
        "encoder.block.1.layer.0.SelfAttention/__add__",
        "encoder.block.1.layer.0.SelfAttention/softmax",  # consumer
    ),
    case(
        *(mini_gpt, position_off_by_one, "positions begin at 1"),
        *("embed", "embed.positions", "embed.positions/embedding"),
    ),
    case(
        *(bert, layer_skipped, "one layer is not called"),
        *("bert.encoder", f"{BERT}.1"),
        *(f"{BERT}.2", f"{BERT}.2.attention", f"{BERT}.2.attention.self", f"{BERT}.2.attention.self.query"),  # consumer
        level="L0",
    ),
    case(*(mini_gpt, residual_dropped, "a residual is not added"), *("blocks.1", "blocks.1/__add__")),
    case(
        *(leaky_gpt, overwritten_input, "an activation in place destroys an input that is still needed"),
        *(MLP, f"{MLP}/relu", f"{MLP}/relu_", f"{MLP}/__mul__", f"{MLP}/__rmul__"),
    ),
    case(*(mini_gpt, gelu_tanh, "tanh form of GELU for the exact one"), *(f"{MLP}.act", f"{MLP}.act/gelu")),
    case(
        *(bert_in_eval, dropout_in_eval, "one dropout is active in evaluation"),
        *(f"{BERT}.1.attention.output.dropout", f"{BERT}.1.attention.output.dropout/dropout"),
    ),
    case(
        *(gpt2_with_dropout, dropout_twice, "dropout is applied twice"),
        *("transformer.h.1.mlp.dropout", "transformer.h.1.mlp.dropout/dropout"),
    ),
    case(
        *(mini_gpt, fp16_sum, "one matrix product is summed up in half precision"),
        *(f"{MLP}.down", f"{MLP}.down/*"),
        task="tensor",
    ),
    case(
        *(mini_gpt, cast_in_the_middle, "a tensor takes a way through bfloat16"),
        *(MLP, f"{MLP}.down", f"{MLP}.down/linear"),
    ),
    case(
        *(vit, patch_order, "patches by column for patches by row"),
        "vit.embeddings.patch_embeddings",
        task="tensor",
    ),
    case(
        *(moe, gates_not_normalised, "weights of the chosen experts are not normalised"),
        *(MLP, f"{MLP}/__truediv__", f"{MLP}/sum"),
        f"{MLP}/__mul__",  # consumer
    ),
    case(
        *(rnn, stale_state, "the first state is the last one of the batch before"),
        *("cell#0", "cell/gru_cell#0"),
    ),
    case(*(conv, batch_norm_in_eval, "one BatchNorm is in evaluation"), *("layer1.bn2", "layer1.bn2/batch_norm")),
    case(
        *(conv, channels_swapped, "images are divided by deviations of swapped channels"),
        "/__truediv__#0",
    ),
    case(
        *(mini_gpt, labels_shift, "labels are not shifted"),
        "/cross_entropy",
    ),
    case(*(summed_loss, token_count, "loss is divided by the wrong number of tokens"), "/__truediv__#0"),
    case(
        *(mini_gpt, detached_residual, "detach() cuts a residual out of backward"),
        *("blocks.1/__add__#3", "backward:blocks.1/__add__#3", "backward:blocks.1"),
    ),
    case(*(mini_gpt, adam_beta, "second beta of AdamW"), *("optimizer/mul_#42", "optimizer/addcmul_#0")),
    case(*(mini_gpt, weight_decay, "weight decay of AdamW"), "optimizer/mul_#41"),
    case(*(mini_gpt, clip_threshold, "threshold of gradient clipping"), "clip_grad/__mul__"),
    case(
        *(scaled_gpt, not_unscaled, "gradients are clipped before the loss scale is taken out"),
        "/div_#0",
        "clip_grad/vector_norm#0",  # consumer
    ),
    case(
        *(tensor_parallel, dropped_all_reduce, "TP: one output is not summed up"),
        *("blocks.1.down", "blocks.1.down/all_reduce", "blocks.1.down/clone"),
        "blocks.1.down/__add__",  # consumer
        **BOTH,
    ),
    case(
        *(tensor_parallel, dropped_backward_reduce, "TP: one gradient is not summed up"),
        *("backward:blocks.1.up", "blocks.1.up/all_reduce"),
        **BOTH,
    ),
    case(
        *(tensor_parallel, wrong_shard, "TP: rank 1 loads another shard"),
        *("blocks.1.up", "blocks.1.up/linear"),
        ranks=(1,),
        **BOTH,
    ),
    case(
        *(tensor_parallel, eps_on_one_rank, "TP: eps of a norm on rank 1"),
        *("blocks.1.norm2", "blocks.1.norm2/layer_norm"),
        ranks=(1,),
        **BOTH,
    ),
    case(
        *(data_parallel, summed_gradients, "DP: gradients are summed up but not averaged"),
        "/div_#0",
        "clip_grad/vector_norm#0",  # consumer
        **BOTH,
    ),
    case(
        *(data_parallel, same_data, "DP: rank 1 reads other data"),
        *("embed", "embed.tokens", "embed.tokens/embedding"),
        ranks=(1,),
        **BOTH,
    ),
    case(
        *(pipeline, activation_of_stage, "PP: an activation of the first stage"),
        *(f"{MLP}.act", f"{MLP}.act/gelu"),
        ranks=(0,),
        **BOTH,
    ),
    case(
        *(pipeline, stale_receive, "PP: the second micro batch is read before it has come"),
        *("/recv#1", "blocks.0#1", "blocks.0.norm1#1", "blocks.0.norm1/layer_norm#5"),
        ranks=(1,),
        **BOTH,
    ),
    case(
        *(expert_parallel, tokens_rolled, "EP: rank 1 sends its tokens in another order"),
        *("layers.1", "layers.1/roll", "layers.1/all_to_all_single#2"),
        ranks=(1,),
        task="tensor",
        **BOTH,
    ),
]
