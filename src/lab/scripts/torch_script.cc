#include "lab/scripts/torch_script.h"

#include "base/message.h"
#include "base/text.h"
#include "diagnose/replay/op_call.h"
#include "diagnose/replay/repro_call.h"
#include "lab/scripts/script_text.h"

namespace msprobe {
namespace {

// The script is meant to be read and changed; @X@ are replaced.
constexpr std::string_view kScriptHead = R"py("""Calls @NAME@ of a dump: on a device, and in float64 on the CPU.
usage: python @FILE@ [DEVICE]      (torch is all it needs)"""
import math, sys
import torch
import torch.nn.functional as F

SEED, TIMES = @SEED@, @TIMES@
DEVICE = torch.device(sys.argv[1] if len(sys.argv) > 1 else "cuda" if torch.cuda.is_available() else "cpu")


def draw(dtype, shape, low, high):
    """Values within a range, both ends among them."""
    if not dtype.is_floating_point:
        return torch.randint(int(low), int(high) + 1, shape).to(dtype)
    low, high = (max(min(end, torch.finfo(dtype).max), torch.finfo(dtype).min) for end in (low, high))
    x = (torch.rand(shape, dtype=torch.float64) * (high - low) + low).to(dtype)
    if x.numel() > 1:
        x.view(-1)[0], x.view(-1)[-1] = low, high
    return x


def load(path):
    return torch.load(path, map_location="cpu", weights_only=True)


def torch_function(name):
    return next(getattr(m, name) for m in (torch, torch.linalg, torch.special, torch.fft) if hasattr(m, name))


def flat(v):
    return [v] if isinstance(v, torch.Tensor) else [t for x in v for t in flat(x)] if isinstance(v, (list, tuple)) else []


torch.manual_seed(SEED)
)py";

constexpr std::string_view kScriptTail = R"py(

def run(change):
    """Results, and gradients of the inputs."""
    leaves = {key: change(x).requires_grad_(bool(GIVEN) and x.is_floating_point()) for key, x in INPUTS.items()}
    outputs = flat(call(lambda key: leaves[key].view_as(leaves[key])))
    if not GIVEN:
        return outputs, []
    outs = [x for x in outputs if x.requires_grad][: len(GIVEN)]
    given = [change(x).to(out.dtype) for x, out in zip(GIVEN.values(), outs)]
    wanted = [x for x in leaves.values() if x.requires_grad]
    return outputs, [x for x in torch.autograd.grad(outs, wanted, given, allow_unused=True)]


def compare(name, ours, truth):
    if ours is None or truth is None:
        return
    ours, truth = ours.detach().cpu(), truth.detach()
    if not (ours.is_floating_point() and ours.numel()):
        print(f"{name}: {ours.dtype} {list(ours.shape)}, {int((ours != truth).sum())} elements differ")
        return
    apart, size = (ours.double() - truth).abs(), truth.abs()
    smallest = torch.finfo(ours.dtype).smallest_normal
    ulp = torch.exp2(torch.floor(torch.log2(size.clamp(min=smallest)))) * torch.finfo(ours.dtype).eps
    worst = int((apart / ulp).nan_to_num(nan=math.inf).argmax())
    cosine = torch.nn.functional.cosine_similarity(ours.double().view(1, -1), truth.reshape(1, -1)).item()
    print(
        f"{name}: {ours.dtype} {list(ours.shape)}, largest error {apart.max().item():.3g}, "
        f"of the largest value {apart.max().item() / max(size.max().item(), 1e-300):.3g}, of one element "
        f"{(apart / ulp).view(-1)[worst].item():.3g} ulp (element {worst}), cosine {cosine:.9f}"
    )


def main():
    truth = run(lambda x: x.double() if x.is_floating_point() else x.clone())
    for _ in range(TIMES):
        ours = run(lambda x: x.to(DEVICE).clone())
    for side, a, b in zip(("output", "gradient"), ours, truth):
        for i, (x, y) in enumerate(zip(a, b)):
            compare(f"{side} {i}", x, y)


main()
)py";

StatusOr<std::string> InputText(const OpScriptSettings& settings, const TensorFolder& folder, const std::string& key,
                                const JsonValue& leaf) {
  if (settings.real_data) {
    MSP_ASSIGN_OR_RETURN(const std::string path, FileOf(folder, key, leaf));
    return "load(" + Quoted(path) + ")";
  }
  const std::string_view dtype = leaf.Find("dtype")->Text();
  if (!IsTorchName(dtype))
    return BadInput(Msg("{} has the dtype {}, which torch has not", OneLine(key), OneLine(dtype)));
  std::string shape = "[";
  for (const JsonValue& size : leaf.Find("shape")->Items())
    shape += (shape.size() > 1 ? ", " : "") + std::to_string(size.IsInt() && size.Int() > 0 ? size.Int() : 0);
  return "draw(" + std::string(dtype) + ", " + shape + "], " + EndOf(leaf, "Min", -1) + ", " + EndOf(leaf, "Max", 1) +
         ")";
}

StatusOr<std::string> TensorsText(const OpScriptSettings& settings, const TensorFolder& folder,
                                  const CallTensors& tensors) {
  std::string out = "{";
  for (const auto& [key, leaf] : tensors) {
    MSP_ASSIGN_OR_RETURN(const std::string text, InputText(settings, folder, key, *leaf));
    out += (out.size() > 1 ? ",\n    " : "\n    ") + Quoted(key) + ": " + text;
  }
  return out + (out.size() > 1 ? ",\n}" : "}");
}

}  // namespace

StatusOr<std::string> TorchScript(const OpScriptSettings& settings, const DumpFile& dump, const std::string& file) {
  MSP_ASSIGN_OR_RETURN(const size_t forward, OpOf(settings, dump, ".forward"));
  JsonDoc doc, gradients_doc;
  MSP_RETURN_IF_ERROR(dump.ParseOp(forward, &doc));
  MSP_ASSIGN_OR_RETURN(const OpCall call, CallOf(dump.ops()[forward].name, doc));
  CallTensors gradients;
  if (settings.backward) {
    MSP_ASSIGN_OR_RETURN(const size_t backward, OpOf(settings, dump, ".backward"));
    MSP_RETURN_IF_ERROR(dump.ParseOp(backward, &gradients_doc));
    if (const JsonValue* v = gradients_doc.Find("input")) CollectTensors(*v, "gradient", &gradients);
  }
  const TensorFolder folder(dump.path());
  MSP_ASSIGN_OR_RETURN(const std::string inputs, TensorsText(settings, folder, call.tensors));
  MSP_ASSIGN_OR_RETURN(const std::string given, TensorsText(settings, folder, gradients));
  std::string head(kScriptHead);
  Put(&head, "@NAME@", settings.call), Put(&head, "@FILE@", file);
  Put(&head, "@SEED@", std::to_string(settings.seed)), Put(&head, "@TIMES@", std::to_string(settings.times));
  return head + "INPUTS = " + inputs + "\nGIVEN = " + given + "\n\n\ndef call(t):\n    return " + PythonText(call) +
         "\n" + std::string(kScriptTail);
}

}  // namespace msprobe
