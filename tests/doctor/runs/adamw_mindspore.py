"""AdamW with its terms in view."""

import mindspore as ms
from mindspore import Parameter, nn, ops


class AdamW(nn.Optimizer):
    def __init__(self, parameters, lr, betas, eps, weight_decay):
        super().__init__(lr, parameters)
        self.betas, self.eps, self.decay = betas, eps, weight_decay
        self.count = 0
        self.m = [Parameter(ops.zeros_like(p), name=f"m.{p.name}") for p in self._parameters]
        self.v = [Parameter(ops.zeros_like(p), name=f"v.{p.name}") for p in self._parameters]

    def construct(self, gradients):
        beta1, beta2 = self.betas
        self.count += 1
        rate = self.rate
        for p, g, m, v in zip(self._parameters, gradients, self.m, self.v):
            m.set_data(ops.add(m * beta1, g * (1 - beta1)))
            v.set_data(ops.add(v * beta2, g * g * (1 - beta2)))
            m_hat = m / (1 - beta1**self.count)
            v_hat = v / (1 - beta2**self.count)
            decay = self.decay if p.ndim > 1 else 0.0
            kept = p * (1 - rate * decay)
            p.set_data(ops.sub(kept, rate * m_hat / (ops.sqrt(v_hat) + self.eps)))
        return True


def set_rate(optimizer, rate):
    optimizer.rate = float(rate)


def clip(gradients, most):
    """The gradients, and their norm before they were clipped."""
    norm = float(ops.sqrt(sum((g.astype(ms.float32) ** 2).sum() for g in gradients)).asnumpy())
    factor = min(1.0, most / (norm + 1e-6))
    return [g * factor for g in gradients], norm
