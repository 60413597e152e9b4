"""Fused ops of an NPU, as MindSpeed calls them in place of several eager ones: a stand-in for torch_npu that computes the same.

`install()` before msprobe is imported, so that capture finds the functions; `use()` makes the classes of megatron-core call them.
"""

import math
import sys
import types

import torch


def npu_rms_norm(x, weight, epsilon=1e-6):
    inverse = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + epsilon)
    return (x.float() * inverse).to(x.dtype) * weight, inverse


def npu_rotary_mul(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def npu_swiglu(x, dim=-1):
    gate, up = x.chunk(2, dim)
    return torch.nn.functional.silu(gate) * up


def npu_fusion_attention(query, key, value, head_num, input_layout, atten_mask=None, scale=1.0):
    """Layout SBH: [sequence, batch, heads x size]; of grouped queries the key has fewer heads."""
    assert input_layout == "SBH"
    sequence, batch, width = query.shape
    size = width // head_num

    def heads(t):
        t = t.view(sequence, batch, -1, size).permute(1, 2, 0, 3)
        return t.repeat_interleave(head_num // t.shape[1], 1)

    scores = heads(query) @ heads(key).transpose(2, 3) * scale
    scores = scores.float().masked_fill(atten_mask, -10000.0).softmax(-1).to(query.dtype)
    return ((scores @ heads(value)).permute(2, 0, 1, 3).reshape(sequence, batch, width),)


def install():
    module = types.ModuleType("torch_npu")
    for function in (npu_rms_norm, npu_rotary_mul, npu_swiglu, npu_fusion_attention):
        setattr(module, function.__name__, function)
    sys.modules["torch_npu"] = module


def use(model):
    """In a GPTModel of megatron-core: norms, rotation, attention and activation by one op each."""
    import torch_npu
    from megatron.core.transformer import attention

    def rotated(t, freqs, config, *_, **__):
        return torch_npu.npu_rotary_mul(t, freqs.cos().to(t.dtype), freqs.sin().to(t.dtype))

    attention.apply_rotary_pos_emb = rotated
    for module in model.modules():
        kind = type(module).__name__
        if kind == "RMSNorm":
            module.forward = lambda x, m=module: torch_npu.npu_rms_norm(x, m.weight, epsilon=m.eps)[0]
        elif kind == "DotProductAttention":
            module.forward = lambda *given, m=module, **_: attended(m, *given[:4])
        elif kind == "MLP":
            module.forward = lambda x, m=module, **_: activated(m, x)


def attended(module, query, key, value, mask):
    import torch_npu

    flat = [t.reshape(*t.shape[:2], -1) for t in (query, key, value)]
    scale = module.softmax_scale or 1 / math.sqrt(query.shape[-1])
    return torch_npu.npu_fusion_attention(*flat, query.shape[2], "SBH", atten_mask=mask, scale=scale)[0]


def activated(module, x):
    import torch_npu

    both, _ = module.linear_fc1(x)
    if module.activation_func is torch.nn.functional.silu:
        return module.linear_fc2(torch_npu.npu_swiglu(both, dim=-1))
    gate, up = both.chunk(2, -1)
    return module.linear_fc2(module.activation_func(gate) * up)
