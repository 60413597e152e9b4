#include "lab/scripts/mindspore_script.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/message.h"
#include "base/text.h"
#include "compare/values/stat_value.h"
#include "lab/programs/check_programs.h"
#include "lab/scripts/script_text.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

// The script is meant to be read and changed; @X@ are replaced.
constexpr std::string_view kHead = R"py("""Calls @NAME@ of a dump: on a device, and in float64 on the CPU.
usage: python @FILE@ [DEVICE_TARGET]      (mindspore is all it needs)"""
import math, os, subprocess, sys, tempfile
import numpy as np
import mindspore
from mindspore import mint, ops

SEED, TIMES = @SEED@, @TIMES@
FLOATS = {"Float64": -52, "Float32": -23, "Float16": -10, "BFloat16": -7}  # exponents of the ulp of 1
SMALLEST = {"Float64": 2.0**-1022, "Float32": 2.0**-126, "Float16": 2.0**-14, "BFloat16": 2.0**-126}
LARGEST = {"Float64": 1.797e308, "Float32": 3.4028e38, "Float16": 65504.0, "BFloat16": 3.3895e38}
RANDOM = np.random.default_rng(SEED)


def draw(dtype, shape, low, high):
    """Values within a range, both ends among them."""
    if dtype not in FLOATS:
        return RANDOM.integers(int(low), int(high) + 1, shape).astype(dtype.lower().rstrip("_"))
    low, high = (max(min(end, LARGEST[dtype]), -LARGEST[dtype]) for end in (low, high))
    x = RANDOM.random(shape) * (high - low) + low
    if x.size > 1:
        x.reshape(-1)[0], x.reshape(-1)[-1] = low, high
    return rounded(x, dtype)


def rounded(x, dtype):
    """Values of a dtype, which numpy may not have."""
    if dtype != "BFloat16":
        return np.asarray(x, dtype=dtype.lower())
    bits = np.asarray(x, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def load(path):
    return np.load(path, allow_pickle=False)


)py";

constexpr std::string_view kTail = R"py(

def flat(v):
    return [part for x in v for part in flat(x)] if isinstance(v, (list, tuple)) else [v]


def tensor(value, wide):
    array, dtype = value
    if dtype not in FLOATS:
        return mindspore.Tensor(array)
    if wide or dtype != "BFloat16":
        return mindspore.Tensor(array.astype("float64" if wide else dtype.lower()))
    return mindspore.Tensor(array.astype(np.float32)).astype(mindspore.bfloat16)


def array(x):
    """Of a result; numbers, too."""
    if not isinstance(x, mindspore.Tensor):
        return np.asarray(x)
    return (x.astype(mindspore.float32) if x.dtype == mindspore.bfloat16 else x).asnumpy()


def run(wide):
    """Results, and gradients of the inputs."""
    tensors = {key: tensor(value, wide) for key, value in INPUTS.items()}
    places = [key for key, (_, dtype) in INPUTS.items() if dtype in FLOATS]

    def dtype(name):
        name = "Float64" if wide and name in FLOATS else name
        return getattr(mindspore, "bool_" if name.startswith("Bool") else name.lower())

    def forward(*leaves):
        at = {**tensors, **dict(zip(places, leaves))}
        return flat(call(FUNCTION, at.__getitem__, dtype))

    leaves = [tensors[key] for key in places]
    if not GIVEN:
        return forward(*leaves), []

    def floats(*leaves):
        kept = tuple(x for x in forward(*leaves) if isinstance(x, mindspore.Tensor) and x.is_floating_point())
        return kept if len(kept) > 1 else kept[0]

    outputs, pullback = mindspore.vjp(floats, *leaves)
    given = [tensor(value, wide).astype(out.dtype) for value, out in zip(GIVEN.values(), flat(outputs))]
    given += [ops.zeros_like(out) for out in flat(outputs)[len(given) :]]
    again = [tensor(INPUTS[key], wide) for key in places]  # the call may have overwritten the others
    return forward(*again), flat(pullback(tuple(given) if len(given) > 1 else given[0]))


def by_numpy(function, *first):
    """Results of numpy in float64; None where it has not the function, or not with these arguments."""
    try:
        values = {key: x.astype(np.float64) if dtype in FLOATS else x for key, (x, dtype) in INPUTS.items()}
        with np.errstate(all="ignore"):
            return [np.asarray(x) for x in flat(call(lambda *a, **k: function(*first, *a, **k), values.__getitem__, None))]
    except (TypeError, ValueError, IndexError, AttributeError):
        return None


def truth():
    """In float64: numpy's, else MindSpore's on its CPU, in a process of its own where this one has another device."""
    if mindspore.get_context("device_target") == "CPU":
        outputs, gradients = ([array(x) for x in side] for side in run(True))
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "truth.npz")
            subprocess.run([sys.executable, os.path.abspath(__file__), "CPU", path], check=True)
            with np.load(path) as found:
                outputs, gradients = ([found[k] for k in found if k[0] == side] for side in "og")
    results = by_numpy(REFERENCE)
    own = by_numpy(REFERENCE_GRADIENT, *[x.astype(np.float64) for x, _ in GIVEN.values()])
    if own is not None and [x.shape for x in own] == [x.shape for x in gradients]:
        gradients = own
    return outputs if results is None else results, gradients


def compare(name, ours, truth):
    dtype, ours, truth = str(getattr(ours, "dtype", type(ours).__name__)), array(ours), np.asarray(truth)
    if not (dtype in FLOATS and ours.size):
        print(f"{name}: {dtype} {list(ours.shape)}, {int((ours != truth).sum())} elements differ")
        return
    ours, size = ours.astype(np.float64), np.abs(truth)
    with np.errstate(all="ignore"):
        apart = np.where(ours == truth, 0.0, np.abs(ours - truth))
        ulp = np.exp2(np.floor(np.log2(np.maximum(size, SMALLEST[dtype]))) + FLOATS[dtype])
        ulps = np.nan_to_num(apart / ulp, nan=math.inf).reshape(-1)
        worst = int(ulps.argmax())
        norms = np.linalg.norm(ours.reshape(-1)) * np.linalg.norm(truth.reshape(-1))
        cosine = float(ours.reshape(-1) @ truth.reshape(-1)) / max(norms, 1e-300) if apart.any() else 1.0
    print(
        f"{name}: {dtype} {list(ours.shape)}, largest error {apart.max():.3g}, "
        f"of the largest value {apart.max() / max(size.max(), 1e-300):.3g}, of one element "
        f"{ulps[worst]:.3g} ulp (element {worst}), cosine {cosine:.9f}"
    )


def main():
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    if len(sys.argv) > 1:
        getattr(mindspore, "set_device", lambda target: mindspore.set_context(device_target=target))(sys.argv[1])
    if len(sys.argv) > 2:  # for truth() on another device
        np.savez(sys.argv[2], **{f"{k}{i:04}": array(x) for k, side in zip("og", run(True)) for i, x in enumerate(side)})
        return
    for _ in range(TIMES):
        ours = run(False)
    for side, a, b in zip(("output", "gradient"), ours, truth()):
        for i, (x, y) in enumerate(zip(a, b)):
            compare(f"{side} {i}", x, y)


main()
)py";

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kPlaces{{
    {"Mint", "mint."},
    {"MintFunctional", "mint.nn.functional."},
    {"Functional", "ops."},
    {"Tensor", "mindspore.Tensor."},
}};
constexpr std::array<std::string_view, 14> kDTypes{"Float64", "Float32", "Float16", "BFloat16", "Int8",
                                                   "Int16",   "Int32",   "Int64",   "UInt8",    "UInt16",
                                                   "UInt32",  "UInt64",  "Bool",    "Bool_"};
// Parts of names of functions that write files, or settings of the process.
constexpr std::array<std::string_view, 12> kNotCalled{"dump",     "save",    "load",  "print", "file", "kernel",
                                                      "register", "storage", "flush", "shard", "set_", "ustom"};
constexpr std::string_view kOperators =
    " add radd iadd sub rsub isub mul rmul imul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul "
    "neg abs eq ne lt le gt ge getitem invert and or xor ";

bool IsDType(std::string_view s) { return std::find(kDTypes.begin(), kDTypes.end(), s) != kDTypes.end(); }

bool IsIdentifier(std::string_view s) {
  return !s.empty() && !(s[0] >= '0' && s[0] <= '9') &&
         s.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
             std::string_view::npos;
}

/// Whether a script may call a function of this name: a public one, or an operator of Python.
bool IsCalled(std::string_view name) {
  if (!IsIdentifier(name)) return false;
  if (StartsWith(name, "__") && EndsWith(name, "__") && name.size() > 4)
    return kOperators.find(" " + std::string(name.substr(2, name.size() - 4)) + " ") != std::string_view::npos;
  return name[0] != '_' && std::none_of(kNotCalled.begin(), kNotCalled.end(), [&](std::string_view part) {
           return name.find(part) != std::string_view::npos;
         });
}

bool IsTensor(const JsonValue& leaf) {
  const JsonValue *dtype = leaf.Find("dtype"), *shape = leaf.Find("shape");
  return dtype && dtype->IsString() && shape && shape->IsArray();
}

/// Reads what a call is given; makes text of arguments, and of the tensors that it met.
class Arguments {
 public:
  Arguments(const OpScriptSettings& settings, const DumpFile& dump) : settings_(settings), folder_(dump.path()) {}

  /// An expression of t(key), which gives a tensor, and of dtype(name).
  StatusOr<std::string> TextOf(const JsonValue& v, const std::string& key) {
    if (v.IsNull()) return std::string("None");
    if (v.IsArray()) {
      std::string out = "(";
      int i = 0;
      for (const JsonValue& item : v.Items()) {
        MSP_ASSIGN_OR_RETURN(const std::string text, TextOf(item, key + "." + std::to_string(i++)));
        out += text + ", ";
      }
      if (i > 1) out.resize(out.size() - 2);  // one alone keeps its comma
      return out + ")";
    }
    if (!v.IsObject()) return Number(v);
    if (IsTensor(v)) {
      MSP_RETURN_IF_ERROR(AddTensor(key, v));
      return "t(" + Quoted(key) + ")";
    }
    const JsonValue *type = v.Find("type"), *value = v.Find("value");
    const std::string_view kind = type && type->IsString() ? type->Text() : "";
    if (kind == "NoneType") return std::string("None");
    if (kind == "str" && value && value->IsString()) return Quoted(value->Text());
    if ((kind == "int" || kind == "float" || kind == "bool") && value) return Number(*value);
    if (kind == "slice" && value && value->IsArray()) {
      std::string out;
      for (const JsonValue& end : value->Items()) {
        MSP_ASSIGN_OR_RETURN(const std::string text, TextOf(end, key));
        out += (out.empty() ? "" : ", ") + text;
      }
      return "slice(" + out + ")";
    }
    if (kind == "mindspore.dtype" && value && value->IsString() && IsDType(value->Text())) {
      converts_ = true;
      return "dtype(" + Quoted(value->Text()) + ")";
    }
    return BadInput(Msg("an argument of type {} cannot be rebuilt", OneLine(kind.empty() ? "dict" : kind)));
  }

  /// A dict of all tensors since the last time.
  std::string TakeTensors() {
    std::string out = "{";
    for (const std::string& entry : tensors_) out += (out.size() > 1 ? ",\n    " : "\n    ") + entry;
    out += tensors_.empty() ? "}" : ",\n}";
    tensors_.clear();
    return out;
  }

  Status AddTensor(const std::string& key, const JsonValue& leaf) {
    const std::string_view dtype = leaf.Find("dtype")->Text();
    if (!IsDType(dtype))
      return BadInput(Msg("{} has the dtype {}, which a script cannot have", OneLine(key), OneLine(dtype)));
    std::string text;
    if (settings_.real_data) {
      MSP_ASSIGN_OR_RETURN(const std::string path, FileOf(folder_, key, leaf));
      text = "load(" + Quoted(path) + ")";
    } else {
      std::string shape;
      for (const JsonValue& size : leaf.Find("shape")->Items())
        shape += (shape.empty() ? "" : ", ") + std::to_string(size.IsInt() && size.Int() > 0 ? size.Int() : 0);
      text = "draw(" + Quoted(dtype) + ", [" + shape + "], " + EndOf(leaf, "Min", StartsWith(dtype, "Bool") ? 0 : -1) +
             ", " + EndOf(leaf, "Max", 1) + ")";
    }
    tensors_.push_back(Quoted(key) + ": (" + text + ", " + Quoted(dtype) + ")");
    return OkStatus();
  }

  bool converts() const { return converts_; }

 private:
  static StatusOr<std::string> Number(const JsonValue& v) {
    if (v.IsBool()) return std::string(v.Bool() ? "True" : "False");
    if (v.IsString()) return Quoted(v.Text());
    if (!v.IsNumber()) return BadInput(Msg("an argument has no value"));
    if (v.IsDouble() && v.Number() != v.Number()) return std::string("math.nan");
    if (v.IsDouble() && v.Number() - v.Number() != 0) return std::string(v.Number() > 0 ? "math.inf" : "-math.inf");
    std::string out;
    AppendPyValue(&out, v);
    return out;
  }

  const OpScriptSettings& settings_;
  const TensorFolder folder_;
  std::vector<std::string> tensors_;
  bool converts_ = false;
};

StatusOr<std::string> CallText(const JsonValue& op, Arguments* arguments) {
  std::string out = "function(";
  const auto add = [&](const std::string& text) { out += (EndsWith(out, "(") ? "" : ", ") + text; };
  if (const JsonValue* args = op.Find("input_args"); args && args->IsArray()) {
    int i = 0;
    for (const JsonValue& v : args->Items()) {
      MSP_ASSIGN_OR_RETURN(const std::string text, arguments->TextOf(v, "input." + std::to_string(i++)));
      add(text);
    }
  }
  const JsonValue* kwargs = op.Find("input_kwargs");
  if (!kwargs || !kwargs->IsObject()) return out + ")";
  for (const auto& m : kwargs->Members()) {
    const std::string name(m.name);
    if (!IsIdentifier(name)) return BadInput(Msg("an argument has no name that Python allows"));
    MSP_ASSIGN_OR_RETURN(const std::string text, arguments->TextOf(m.value, "input." + name));
    add(name + "=" + text);
  }
  return out + ")";
}

Status AddGradients(const JsonValue& backward, Arguments* arguments) {
  const JsonValue* given = backward.Find("input");
  if (!given || !given->IsArray() || given->Items().empty())
    return BadInput(Msg("the dump has no gradient that comes in"));
  int i = 0;
  for (const JsonValue& v : given->Items()) {
    if (!v.IsObject() || !IsTensor(v)) return BadInput(Msg("the dump has not all gradients that come in"));
    MSP_RETURN_IF_ERROR(arguments->AddTensor("gradient." + std::to_string(i++), v));
  }
  return OkStatus();
}

/// The functions of numpy, and which of them is that of the call; a conversion has none.
std::string ReferenceText(std::string_view function, bool converts) {
  const size_t from = std::min(function.find_first_not_of('_'), function.size());
  const std::string base(function.substr(from, function.find_last_not_of('_') + 1 - from));
  const std::string_view numpy = NumpyTruthProgram();
  const bool known = numpy.find("\"" + base + "\"") != std::string_view::npos ||
                     numpy.find(" " + base + " ") != std::string_view::npos ||
                     numpy.find("\"" + base + " ") != std::string_view::npos ||
                     numpy.find(" " + base + "\"") != std::string_view::npos;
  if (converts || !known) return "REFERENCE = REFERENCE_GRADIENT = None\n";
  const size_t body = numpy.find("\n\n", numpy.find("import numpy"));
  return "# ---- functions of numpy" + std::string(numpy.substr(body)) +
         "\nREFERENCE, REFERENCE_GRADIENT = NUMPY.get(" + Quoted(base) + "), GRADIENTS.get(" + Quoted(base) + ")\n";
}

}  // namespace

StatusOr<std::string> MindSporeScript(const OpScriptSettings& settings, const DumpFile& dump, const std::string& file) {
  MSP_ASSIGN_OR_RETURN(const size_t forward, OpOf(settings, dump, ".forward"));
  JsonDoc doc, gradients_doc;
  MSP_RETURN_IF_ERROR(dump.ParseOp(forward, &doc));
  const std::string_view base = ParseOpName(dump.ops()[forward].name).base;
  const std::string_view kind = base.substr(0, base.find('.'));
  const std::string_view function = base.substr(std::min(base.size(), base.rfind('.') + 1));
  const auto place = std::find_if(kPlaces.begin(), kPlaces.end(), [&](const auto& p) { return p.first == kind; });
  if (place == kPlaces.end()) return BadInput(Msg("plain MindSpore has no functions of kind {}", OneLine(kind)));
  if (!IsCalled(function)) return BadInput(Msg("{} is no function that a script may call", OneLine(function)));
  Arguments arguments(settings, dump);
  MSP_ASSIGN_OR_RETURN(const std::string call, CallText(doc, &arguments));
  const std::string inputs = arguments.TakeTensors();
  if (settings.backward) {
    MSP_ASSIGN_OR_RETURN(const size_t backward, OpOf(settings, dump, ".backward"));
    MSP_RETURN_IF_ERROR(dump.ParseOp(backward, &gradients_doc));
    MSP_RETURN_IF_ERROR(AddGradients(gradients_doc, &arguments));
  }
  std::string head(kHead);
  Put(&head, "@NAME@", settings.call), Put(&head, "@FILE@", file);
  Put(&head, "@SEED@", std::to_string(settings.seed)), Put(&head, "@TIMES@", std::to_string(settings.times));
  return head + "INPUTS = " + inputs + "\nGIVEN = " + arguments.TakeTensors() +
         "\nFUNCTION = " + std::string(place->second) + std::string(function) +
         "\n\n\ndef call(function, t, dtype):\n    return " + call + "\n\n\n" +
         ReferenceText(function, arguments.converts()) + std::string(kTail);
}

}  // namespace msprobe
