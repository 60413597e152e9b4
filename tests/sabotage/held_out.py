"""Planted bugs that the rules were never tuned against. Truth as in bugs.py."""

import torch
import torch.nn.functional as F
from bugs import case, method
from parallel import data_parallel, pipeline, tensor_parallel
from work import bert, conv, llama, mini_gpt, moe, rnn, t5, tokens_of, vit


def norm_subtracts_mean(work):
    """A LayerNorm where the model has an RMSNorm."""
    module = work.model.encoder.block[1].layer[1].layer_norm

    @method(module, "forward")
    def forward(self, x):
        return self.weight * F.layer_norm(x, x.shape[-1:], eps=self.variance_epsilon)


def key_heads_in_turn(work):
    """Shared heads are repeated 0 1 0 1 for 0 0 1 1."""
    from transformers.models.llama import modeling_llama

    right = modeling_llama.repeat_kv
    calls = []

    def repeat_kv(states, times):
        calls.append(1)
        return states.repeat(1, times, 1, 1) if len(calls) == 3 else right(states, times)

    modeling_llama.repeat_kv = repeat_kv


def rotation_sign(work):
    from transformers.models.llama import modeling_llama

    def rotate_half(x):
        half = x.shape[-1] // 2
        return torch.cat((x[..., half:], -x[..., :half]), dim=-1)

    modeling_llama.rotate_half = rotate_half


def padding_in_loss(work):
    """Labels of padding count; they are token 0 instead of -100."""

    def loss(model, tokens):
        labels = tokens[:, 1:].clone()
        labels[1, 6:] = 0
        return F.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), labels.flatten(), ignore_index=-100)

    work.loss = loss


def padded_gpt():
    work = mini_gpt()

    def loss(model, tokens):
        labels = tokens[:, 1:].clone()
        labels[1, 6:] = -100
        return F.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), labels.flatten(), ignore_index=-100)

    work.loss = loss
    return work


def bias_forgotten(work):
    module = work.model.bert.encoder.layer[1].intermediate.dense
    module.bias.data.fill_(0.0)


def bert_with_bias():
    work = bert()
    for module in work.model.modules():
        if isinstance(module, torch.nn.Linear):
            torch.nn.init.normal_(module.bias, std=0.1)
    return work


def padding_mode(work):
    work.model.layer2.conv1.padding_mode = "circular"
    work.model.layer2.conv1._reversed_padding_repeated_twice = (1, 1, 1, 1)


def forget_gate(work):
    """Input and forget gate of the weights are exchanged, as between two libraries' orders."""
    for weight in (work.model.lstm.weight_ih_l0, work.model.lstm.weight_hh_l0):
        first, second, *others = weight.data.chunk(4)
        weight.data = torch.cat([second, first, *others])


def micro_batches_not_averaged(work):
    right = work.compute_loss
    work.compute_loss = lambda batch: right(batch) * len(work.micro_batches)


def two_micro_batches():
    work = mini_gpt()
    work.batch = tokens_of(4, 10)
    work.micro_batches = work.batch.chunk(2)
    return work


def adam_eps(work):
    work.optimizer.param_groups[0]["eps"] = 1e-3  # for 1e-8


def learning_rate(work):
    work.optimizer.param_groups[0]["lr"] = 2e-2  # for 1e-2


def scores_transposed(work):
    @method(work.model.blocks[2].attention, "weights")
    def weights(self, q, k):
        scores = torch.matmul(k, q.transpose(-1, -2)) * q.shape[-1] ** -0.5
        return torch.softmax(scores.masked_fill(self.mask(q.shape[2]), float("-inf")), dim=-1)


def worst_experts(work):
    @method(work.model.blocks[0].mlp, "route")
    def route(self, x):
        weights, which = self.router(x).softmax(dim=-1).topk(self.chosen, dim=-1, largest=False)
        return weights / weights.sum(dim=-1, keepdim=True), which


def class_token_last(work):
    """The class token stands behind the patches."""
    embeddings = work.model.vit.embeddings

    @method(embeddings, "forward")
    def forward(self, pixel_values, *args, **kwargs):
        patches = self.patch_embeddings(pixel_values)
        x = torch.cat((patches, self.cls_token.expand(patches.shape[0], -1, -1)), dim=1)
        return self.dropout(x + self.position_embeddings)


def gradient_in_half(work):
    """The gradient of a block goes through half precision, scaled so badly that small ones vanish."""

    @method(work.model.blocks[1].mlp, "forward")
    def forward(self, x):
        x = self.down(self.act(self.up(x)))
        x.register_hook(lambda grad: (grad * 1e-4).half().float() * 1e4)
        return x


def bias_on_every_rank(work, rank):
    @method(work.model.blocks[1].out, "forward")
    def forward(self, x):
        return self.reduce(F.linear(x, self.weight) + self.bias)


def one_gradient_not_reduced(work, rank):
    frozen = work.model.blocks[1].mlp.down.weight
    right = work.average

    def average(grad, world):
        if grad is not frozen.grad:
            right(grad, world)

    work.average = average


def labels_of_other_micro_batch(work, rank):
    """The last stage takes the labels in the wrong order."""
    if rank == 1:
        work.batch = torch.cat(work.batch.chunk(2)[::-1])


def replica_differs(work, rank):
    """The weights of rank 1 were not broadcast."""
    if rank == 1:
        with torch.no_grad():
            work.model.blocks[2].mlp.up.weight.mul_(1.01)


BERT = "bert.encoder.layer.1"
BOTH = {"world": 2}
HELD_OUT = [
    case(
        *(t5, norm_subtracts_mean, "a LayerNorm for an RMSNorm"),
        *("encoder.block.1.layer.1.layer_norm", "encoder.block.1.layer.1.layer_norm/*"),
    ),
    case(
        *(llama, key_heads_in_turn, "shared heads are repeated in another order"),
        *("model.layers.1.self_attn", "model.layers.1.self_attn/matmul#2"),
        task="tensor",
    ),
    case(
        *(llama, rotation_sign, "rotary embedding turns the other way"),
        *("model.layers.0.self_attn", "model.layers.0.self_attn/__mul__#6"),
    ),
    case(*(padded_gpt, padding_in_loss, "padding counts in the loss"), "/cross_entropy"),
    case(
        *(bert_with_bias, bias_forgotten, "one bias was not loaded"),
        *(f"{BERT}.intermediate.dense", f"{BERT}.intermediate.dense/linear"),
    ),
    case(
        *(conv, padding_mode, "padding of a convolution goes round"),
        *("layer2.conv1", "layer2.conv1/conv2d", "layer2.conv1/pad"),
    ),
    case(*(rnn, forget_gate, "gates of an LSTM are exchanged in the weights"), *("lstm", "lstm/lstm")),
    case(
        *(two_micro_batches, micro_batches_not_averaged, "losses of micro batches are summed up"),
        *("/__mul__#3", "/__truediv__#0"),
    ),
    case(
        *(mini_gpt, adam_eps, "eps of AdamW"),
        *("optimizer/add_#0",),
    ),
    case(*(mini_gpt, learning_rate, "learning rate"), *("optimizer/addcdiv_#0", "optimizer/mul_#41")),
    case(
        *(mini_gpt, scores_transposed, "queries and keys are exchanged"),
        *("blocks.2.attention", "blocks.2.attention/matmul#4"),
        task="tensor",
    ),
    case(
        *(moe, worst_experts, "the least wanted experts are chosen"),
        *("blocks.0.mlp", "blocks.0.mlp/topk"),
    ),
    case(
        *(vit, class_token_last, "the class token stands last"),
        *("vit.embeddings", "vit.embeddings/cat", "vit.embeddings/__add__"),
        task="tensor",
    ),
    case(
        *(mini_gpt, gradient_in_half, "a gradient goes through half precision, badly scaled"),
        *("backward:blocks.1.mlp", "backward:blocks.1.mlp.down", "backward:blocks.1.mlp.down/linear"),
        *("any/__mul__#3", "any/__mul__#4"),  # of the hook; forgotten at first
    ),
    case(
        *(tensor_parallel, bias_on_every_rank, "TP: the bias is added on every rank"),
        *("blocks.1.out", "blocks.1.out/__add__", "blocks.1.out/all_reduce"),
        **BOTH,
    ),
    case(
        *(data_parallel, one_gradient_not_reduced, "DP: one gradient is not averaged"),
        *("/all_reduce#24", "/div_#24", "clip_grad/vector_norm#24"),
        **BOTH,
    ),
    case(
        *(pipeline, labels_of_other_micro_batch, "PP: labels of the other micro batch"),
        "/cross_entropy#0",
        ranks=(1,),
        **BOTH,
    ),
    case(
        *(data_parallel, replica_differs, "DP: one weight of rank 1 was not broadcast"),
        *("blocks.2.mlp.up", "blocks.2.mlp.up/linear"),
        ranks=(1,),
        **BOTH,
    ),
]
