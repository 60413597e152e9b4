"""Results of the training itself in place of a call on a device: a part of the process of acc_check."""

from _calls import Pass, parts_of, read_tensor
from _replay import Refused, load, natural, tensors_in, unit_of, widen

torch = None  # set by the process


class Nodes(Pass):
    """A pass in float64 that also keeps what leaves the last nodes of the graph, which is what a recording of a function has."""

    def __init__(self, call):
        self.found = []
        super().__init__(call, widen, True, wide=True)

    def _backward(self, call, leaves, change):
        handles, known = [], []
        for tensor in tensors_in(self.result):
            node = tensor.grad_fn
            if node is not None and all(node is not other for other in known):
                known.append(node)
                seen = []
                self.found.append(seen)
                handles.append(node.register_hook(lambda inner, outer, seen=seen: seen.extend(inner)))
        try:
            return super()._backward(call, leaves, change)
        finally:
            for handle in handles:
                handle.remove()

    def places(self):
        """{number of what leaves the nodes: (key of the input whose gradient it is, whether it is transposed)}."""
        found = {}
        for number, gradient in enumerate(g for seen in self.found for g in seen):
            for key, whole in self.grads.items():
                if gradient is None or whole is None or key in (k for k, _ in found.values()):
                    continue
                if gradient.shape == whole.shape and torch.equal(gradient, whole):
                    found[number] = (key, False)
                    break
                if whole.dim() == 2 and gradient.shape == whole.t().shape and torch.equal(gradient, whole.t()):
                    found[number] = (key, True)
                    break
        return found


class RecordedPass:
    """What Pass has: results and gradients. `truth` loses the gradients that the recording does not have."""

    def __init__(self, call, recorded, truth, backward):
        if call.draws:
            raise Refused("it draws random numbers, which a recording does not have")
        outputs = list(load(recorded["forward"], read_tensor)[0].values())
        self.result, self.note = self._results(outputs, truth), ""
        self.grads = self._gradients(call, recorded["backward"]) if backward else {}
        truth.grads = {key: gradient for key, gradient in truth.grads.items() if key in self.grads}
        if backward and not self.grads:
            self.note = "the recording has the gradients of a node inside of the function, not those of its inputs"
        first = next((t for t in outputs if t.is_floating_point()), None)
        unit = unit_of((*call.tensors.values(), *call.gradients.values()))
        rounds = first is not None and torch.finfo(first.dtype).eps / 2 > unit > 0
        self.cast = torch.finfo(first.dtype).eps / 2 if rounds else 0.0  # autocast has rounded the inputs

    @staticmethod
    def _results(outputs, truth):
        parts, rest = [], list(outputs)
        for part in parts_of(truth.result):
            if not isinstance(part, torch.Tensor):
                parts.append(part)
            elif rest and rest[0].shape == part.shape:
                parts.append(rest.pop(0))
            else:
                raise Refused("the recording has other results than the function in float64")
        if rest:
            raise Refused("the recording has more results than the function in float64")
        return parts

    @staticmethod
    def _gradients(call, entries):
        values = load(entries, read_tensor)[0]
        places = Nodes(call).places()
        found = {}
        for key, value in values.items():
            number = natural(key)[-1][1]
            leaf, turned = places.get(number, ("", False))
            value = value.t() if turned else value
            if leaf and value.shape == call.tensors[leaf].shape:
                found[leaf] = value
        return found
