"""Planted faults, from end to end, and pairs without one.

A case is a change of files of the run in question: (file, text, what stands there instead), and what is true of it: the
stage at which the runs part, and words of which the cause that the doctor names must have one. `keep`: what both runs save.
"""

from typing import NamedTuple


class Case(NamedTuple):
    name: str
    kind: str  # config, data, weights, forward, backward, optimizer, late; clean
    about: str
    edits: tuple  # of files of the run in question
    stage: tuple = ()  # stages that are right
    cause: tuple = ()  # words: one of them is in the cause, or in the evidence of its stage
    both: tuple = ()  # edits of both runs
    network: str = "llama"
    framework: str = "pytorch"  # of the run in question; the reference is PyTorch's


SCRIPT, TRAIN, NET = "run.sh", "pretrain_tiny.py", "network.py"
MS_TRAIN, MS_YAML, MS_OPTIMIZER = "run_mindformer.py", "finetune.yaml", "adamw_mindspore.py"
PLAIN = ((SCRIPT, "--optimizer-form torch", "--optimizer-form plain"),)
KEEP_INIT = ((SCRIPT, "--seed 42", "--seed 42 --save-init $HERE/init.pt"),)
KEEP_DATA = ((SCRIPT, "--seed 42", "--seed 42 --save-data $HERE/batches"),)
MS_KEEP_INIT = (
    (SCRIPT, "--seed 42", "--seed 42 --save-init $HERE/init.pt"),
    ("run.sh", '"$HERE/finetune.yaml"', '"$HERE/finetune.yaml" --save-init "$HERE/init.ckpt"'),
)

PYTORCH = (
    Case(
        "norm_eps",
        "config",
        "epsilon of the norms",
        ((SCRIPT, "--norm-epsilon 1e-5", "--norm-epsilon 1e-3"),),
        ("config",),
        ("structure.norm_eps",),
    ),
    Case(
        "beta2",
        "config",
        "beta2 not set to 0.95",
        ((SCRIPT, "--adam-beta2 0.95", "--adam-beta2 0.999"),),
        ("config",),
        ("optimizer.beta2",),
    ),
    Case(
        "weight_decay",
        "config",
        "no weight decay",
        ((SCRIPT, "--weight-decay 0.1", "--weight-decay 0.0"),),
        ("config",),
        ("optimizer.weight_decay",),
    ),
    Case(
        "warmup",
        "config",
        "learning rate warms up",
        ((SCRIPT, "--lr-warmup-iters 0", "--lr-warmup-iters 5"),),
        ("config",),
        ("optimizer.warmup",),
    ),
    Case(
        "clip_grad",
        "config",
        "gradients clipped at another norm",
        ((SCRIPT, "--clip-grad 1.0", "--clip-grad 0.25"),),
        ("config",),
        ("optimizer.clip_grad",),
    ),
    Case(
        "rope_base",
        "config",
        "base of the rotary embedding",
        ((SCRIPT, "--rotary-base 10000", "--rotary-base 500000"),),
        ("config",),
        ("structure.rope_base",),
    ),
    Case(
        "data_order",
        "data",
        "samples in another order",
        (("toy_text.py", "default_rng([seed, epoch])", "default_rng([seed + 1, epoch])"),),
        ("data",),
        ("input ", "batch of step 1"),
    ),
    Case(
        "labels_shifted",
        "data",
        "labels shifted by one too many",
        (
            (
                TRAIN,
                "tokens, labels = batch(step, args.vocab_size, args.seed)",
                "tokens, labels = batch(step, args.vocab_size, args.seed)\n        labels = np.roll(labels, -1, axis=1)",
            ),
        ),
        ("data",),
        ("input ", "batch of step 1"),
    ),
    Case(
        "one_more",
        "data",
        "ids that are one too large",
        (
            (
                TRAIN,
                "tokens, labels = batch(step, args.vocab_size, args.seed)",
                "tokens, labels = batch(step, args.vocab_size, args.seed)\n        tokens = (tokens + 1) % args.vocab_size",
            ),
        ),
        ("data",),
        ("batch of step 1",),
        KEEP_DATA,
    ),
    Case(
        "second_epoch",
        "data",
        "the second epoch has the order of the first",
        (("toy_text.py", "default_rng([seed, epoch])", "default_rng([seed, 0])"),),
        ("data", "training"),
        ("input ", "batch of step 13"),
    ),
    Case(
        "layer_not_loaded",
        "weights",
        "a layer keeps its own initialisation",
        (
            (
                TRAIN,
                "tensor.copy_(torch.from_numpy(weight_of(network, name, tensor.shape)))",
                "if 'layers.1.mlp' not in name:\n                tensor.copy_(torch.from_numpy(weight_of(network, name, tensor.shape)))",
            ),
        ),
        ("weights",),
        ("layers.1.mlp",),
        KEEP_INIT,
    ),
    Case(
        "transposed",
        "weights",
        "a square weight loaded without transposing it",
        (
            (
                TRAIN,
                "    return model.train()",
                "    with torch.no_grad():\n"
                "        o = model.model.layers[0].self_attn.o_proj.weight\n"
                "        o.copy_(o.T.clone())\n"
                "    return model.train()",
            ),
        ),
        ("weights",),
        ("layers.0.self_attn.o_proj",),
        KEEP_INIT,
    ),
    Case(
        "embedding_scaled",
        "weights",
        "the embedding is 1.25 times as large",
        (
            (
                TRAIN,
                "    return model.train()",
                "    with torch.no_grad():\n        model.model.embed_tokens.weight.mul_(1.25)\n    return model.train()",
            ),
        ),
        ("weights",),
        ("embed_tokens",),
    ),
    Case(
        "no_scale",
        "forward",
        "attention scores without their scale",
        ((NET, "torch.matmul(q, k.transpose(2, 3)) * self.head_dim**-0.5", "torch.matmul(q, k.transpose(2, 3))"),),
        ("step1_loss",),
        ("__mul__", "matmul", "softmax", "__add__"),
    ),
    Case(
        "no_residual",
        "forward",
        "a residual that is not added",
        (
            (
                NET,
                "hidden = residual + self.mlp(self.post_attention_layernorm(hidden))",
                "hidden = self.mlp(self.post_attention_layernorm(hidden))",
            ),
        ),
        ("step1_loss",),
        ("__add__",),
    ),
    Case(
        "expert_activation",
        "forward",
        "GELU in the experts instead of SiLU",
        ((NET, "F.silu", "F.gelu"),),
        ("step1_loss",),
        ("gelu", "silu"),
        network="moe",
    ),
    Case(
        "swapped_halves",
        "forward",
        "the wrong half of the rotary pair is negated",
        (
            (
                NET,
                "torch.cat((-x[..., half:], x[..., :half]), dim=-1)",
                "torch.cat((x[..., half:], -x[..., :half]), dim=-1)",
            ),
        ),
        ("step1_loss",),
        ("__neg__", "neg", "cat", "__mul__", "rotate"),
    ),
    Case(
        "detached_key",
        "backward",
        "the key is cut off from the graph",
        ((NET, "k = self.k_proj(hidden)", "k = self.k_proj(hidden).detach()"),),
        ("local_norm",),
        ("k_proj", "detach", "matmul", "backward", "__mul__"),
    ),
    Case(
        "gradient_hook",
        "backward",
        "the gradient of one weight is halved",
        (
            (
                TRAIN,
                "    return model.train()",
                "    model.model.layers[1].mlp.up_proj.weight.register_hook(lambda g: g * 0.5)\n    return model.train()",
            ),
        ),
        ("local_norm",),
        ("layers.1.mlp.up_proj", "up_proj"),
    ),
    Case(
        "wrong_backward",
        "backward",
        "a function whose backward forgets a factor",
        (
            (NET, "self.act_fn(self.gate_proj(x))", "SiLU.apply(self.gate_proj(x))"),
            (
                NET,
                "class LlamaMLP(nn.Module):",
                "class SiLU(torch.autograd.Function):\n"
                "    @staticmethod\n"
                "    def forward(ctx, x):\n"
                "        ctx.save_for_backward(x)\n"
                "        return F.silu(x)\n"
                "\n"
                "    @staticmethod\n"
                "    def backward(ctx, g):\n"
                "        return g * torch.sigmoid(ctx.saved_tensors[0])\n"
                "\n"
                "\n"
                "class LlamaMLP(nn.Module):",
            ),
        ),
        ("local_norm",),
        ("gate_proj", "backward", "SiLU", "mlp"),
    ),
    Case(
        "no_bias_correction",
        "optimizer",
        "moments without their correction",
        (("adamw.py", 'state["m"] / (1 - beta1 ** state["step"])', 'state["m"] / 1.0'),),
        ("optimizer",),
        ("adamw", "addcdiv", "__truediv__", "div", "update", "Optimizer"),
        PLAIN,
    ),
    Case(
        "eps_inside",
        "optimizer",
        "epsilon inside the root, a large one",
        (("adamw.py", 'v_hat.sqrt() + group["eps"]', "(v_hat + 1e-4).sqrt()"),),
        ("optimizer",),
        ("adamw", "sqrt", "__add__", "addcdiv", "Optimizer"),
        PLAIN,
    ),
    Case(
        "decays_all",
        "optimizer",
        "one-dimensional weights decay, too",
        ((TRAIN, '{"params": others, "weight_decay": 0.0}', '{"params": others, "weight_decay": args.weight_decay}'),),
        ("optimizer",),
        ("norm", "optimizer", "adamw", "mul", "Optimizer"),
    ),
    Case(
        "late_rate",
        "late",
        "the learning rate drops at step 15",
        ((TRAIN, "    return args.lr\n", "    return args.lr if step < 14 else 0.3 * args.lr\n"),),
        ("training",),
        ("learning rate of step 15",),
    ),
    Case(
        "late_frozen",
        "late",
        "a layer stops learning at step 12",
        (
            (
                TRAIN,
                "        optimizer.step()\n",
                "        if step >= 11:\n"
                "            for p in model.model.layers[0].mlp.parameters():\n"
                "                p.grad.zero_()\n"
                "        optimizer.step()\n",
            ),
        ),
        ("training",),
        ("layers.0.mlp", "weight ", "mlp"),
    ),
)

MINDSPORE = (
    Case(
        "ms_beta2",
        "config",
        "beta2 not set to 0.95",
        ((MS_YAML, "betas: [0.9, 0.95]", "betas: [0.9, 0.999]"),),
        ("config",),
        ("optimizer.beta2",),
        framework="mindspore",
    ),
    Case(
        "ms_norm_eps",
        "config",
        "epsilon of the norms",
        ((MS_YAML, "rms_norm_eps: 1.0e-5", "rms_norm_eps: 1.0e-3"),),
        ("config",),
        ("structure.norm_eps",),
        framework="mindspore",
    ),
    Case(
        "ms_data_order",
        "data",
        "samples in another order",
        (("toy_text.py", "default_rng([seed, epoch])", "default_rng([seed + 1, epoch])"),),
        ("data",),
        ("input ", "batch of step 1"),
        framework="mindspore",
    ),
    Case(
        "ms_layer_not_loaded",
        "weights",
        "a layer keeps its own initialisation",
        (
            (
                MS_TRAIN,
                "parameter.set_data(ms.Tensor(weight_of(network, name, parameter.shape)))",
                "if 'layers.1.feed_forward' not in name:\n            parameter.set_data(ms.Tensor(weight_of(network, name, parameter.shape)))",
            ),
        ),
        ("weights",),
        ("layers.1.",),
        MS_KEEP_INIT,
        framework="mindspore",
    ),
    Case(
        "ms_no_scale",
        "forward",
        "attention scores without their scale",
        ((NET, "score = self.mul(score, self.inv_norm_factor)", "score = score"),),
        ("step1_loss",),
        ("__mul__", "matmul", "Mul", "MatMul", "softmax"),
        framework="mindspore",
    ),
    Case(
        "ms_activation",
        "forward",
        "GELU instead of SiLU",
        ((NET, "gate = ops.silu(self.w1(x))", "gate = ops.gelu(self.w1(x))"),),
        ("step1_loss",),
        ("gelu", "silu"),
        framework="mindspore",
    ),
    Case(
        "ms_stopped_key",
        "backward",
        "the gradient of the key stops",
        ((NET, "ops.transpose(self.wk(x)", "ops.transpose(ops.stop_gradient(self.wk(x))"),),
        ("local_norm",),
        ("wk", "k_proj", "attention", "backward"),
        framework="mindspore",
    ),
    Case(
        "ms_decays_all",
        "optimizer",
        "one-dimensional weights decay, too",
        ((MS_OPTIMIZER, "self.decay if p.ndim > 1 else 0.0", "self.decay"),),
        ("optimizer",),
        ("norm", "weight"),
        framework="mindspore",
    ),
    Case(
        "ms_no_bias_correction",
        "optimizer",
        "moments without their correction",
        ((MS_OPTIMIZER, "m_hat = m / (1 - beta1**self.count)", "m_hat = m"),),
        ("optimizer",),
        ("weight", "update", "adamw"),
        framework="mindspore",
    ),
    Case(
        "ms_late_rate",
        "late",
        "the learning rate drops at step 15",
        ((MS_TRAIN, "if step < warmup else rate", "if step < warmup else rate if step < 14 else 0.3 * rate"),),
        ("training",),
        ("learning rate of step 15",),
        framework="mindspore",
    ),
)

CLEAN = (
    Case("same", "clean", "the same run twice", ()),
    Case("threads", "clean", "two threads instead of one", ((SCRIPT, "--threads 1", "--threads 2"),)),
    Case(
        "loop",
        "clean",
        "the optimizer weight by weight",
        ((SCRIPT, "--optimizer-form torch", "--optimizer-form loop"),),
    ),
    Case("fused", "clean", "the fused optimizer", ((SCRIPT, "--optimizer-form torch", "--optimizer-form fused"),)),
    Case(
        "own_optimizer",
        "clean",
        "AdamW written by hand",
        ((SCRIPT, "--optimizer-form torch", "--optimizer-form plain"),),
    ),
    Case(
        "accumulation",
        "clean",
        "four micro batches instead of one",
        ((SCRIPT, "--micro-batch-size 4", "--micro-batch-size 1"),),
    ),
    Case("moe_same", "clean", "a mixture of experts twice", (), network="moe"),
    Case(
        "sdpa",
        "clean",
        "attention by one function",
        (
            (
                NET,
                "        scores = torch.matmul(q, k.transpose(2, 3)) * self.head_dim**-0.5\n"
                "        scores = scores + mask\n"
                "        weights = F.softmax(scores, dim=-1)\n"
                "        out = torch.matmul(weights, v)\n",
                "        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)\n",
            ),
        ),
    ),
    Case("ms_same", "clean", "the same network with MindSpore", (), framework="mindspore"),
    Case("ms_moe", "clean", "a mixture of experts with MindSpore", (), framework="mindspore", network="moe"),
)
CASES = (*PYTORCH, *MINDSPORE, *CLEAN)
