#include "diagnose/replay/repro.h"

#include <cmath>
#include <deque>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "compare/values/tensor_folder.h"
#include "diagnose/replay/repro_call.h"
#include "json/members.h"
#include "tensor/files/safetensors.h"
#include "tensor/files/tensor_file.h"

namespace msprobe {
namespace {

// At most 50 lines with what the placeholders bring; @X@ are replaced. The script is meant to be read and changed.
constexpr std::string_view kHead = R"py("""@TITLE@
@ABOUT@
Run it: python repro.py (torch is all it needs)."""
import json, math, os, struct
import torch
import torch.nn.functional as F

)py";

constexpr std::string_view kFromFile = R"py(def read(path):
    raw = bytearray(open(path, "rb").read())
    start, out = 8 + struct.unpack("<Q", raw[:8])[0], {}
    for key, e in json.loads(raw[8:start]).items():
        if key != "__metadata__":
            a, b = e["data_offsets"]
            part = torch.frombuffer(raw[start + a : start + b] or bytearray(1), dtype=torch.uint8)[: b - a]
            out[key] = part.clone().view(DTYPES[key]).reshape(e["shape"])
    return out
)py";

constexpr std::string_view kFromStatistics = R"py(def make(dtype, shape, hi, lo, mean, norm):
    n, g = math.prod(shape), torch.Generator().manual_seed(0)
    if not dtype.is_floating_point:
        return torch.randint(int(lo), int(hi) + 1, shape, generator=g).to(dtype)
    spread = math.sqrt(max(norm * norm / max(n, 1) - mean * mean, 0))
    x = (torch.randn(shape, generator=g, dtype=torch.float64) * spread + mean).clamp(lo, hi)
    if n > 1:
        x.view(-1)[0], x.view(-1)[-1] = hi, lo
    return x.to(dtype)
)py";

constexpr std::string_view kTools = R"py(def flat(v):
    return [v] if isinstance(v, torch.Tensor) else [t for x in v for t in flat(x)] if isinstance(v, (list, tuple)) else []
def wide(t):
    return t.double() if t.is_floating_point() else t
def apart(a, b):
    if a.shape != b.shape or a.numel() == 0:
        return f"shapes {list(a.shape)} and {list(b.shape)}"
    a, b = a.to(torch.complex128), b.to(torch.complex128)
    return f"largest {(a - b).abs().max().item():.3g}, relative {(a - b).norm().item() / max(b.norm().item(), 1e-300):.3g}"
)py";

constexpr std::string_view kTorchFunction = R"py(def torch_function(name):
    return next(getattr(m, name) for m in (torch, torch.linalg, torch.special, torch.fft) if hasattr(m, name))
)py";

constexpr std::string_view kGradients = R"py(def gradients(call, t, given):
    keys = {}
    outs = flat(call(lambda key: keys.setdefault(key, t(key).requires_grad_(t(key).is_floating_point())).view_as(t(key))))
    leaves = [x for x in keys.values() if x.requires_grad]
    outs = [o for o in outs if o.requires_grad][: len(given)]
    return torch.autograd.grad(outs, leaves, [t(key) for key in given], allow_unused=True)
)py";

constexpr std::string_view kMain = R"py(for side, run in SIDES.items():
    got = flat(run(lambda key: T[side + "." + key].clone()))
    true = flat(run(lambda key: wide(T[side + "." + key].clone())))
    for key in [k for k in T if k.startswith(side + ".output.")]:
        like = [i for i in range(len(got)) if got[i].shape == T[key].shape]
        i = min(like or [0], key=lambda j: (wide(got[j]) - wide(T[key])).abs().sum().item() if like else 0)
        print(f"{key}: dump against replay: {apart(T[key], got[i])}")
        print(f"{key}: dump against float64: {apart(T[key], true[i])}; replay against float64: {apart(got[i], true[i])}")
for key in [k[7:] for k in T if k.startswith("target.output.") and "golden." + k[7:] in T]:
    print(f"{key}: target against golden: {apart(T['target.' + key], T['golden.' + key])}")
)py";

constexpr std::string_view kStatisticsMain = R"py(for side, run in SIDES.items():
    got = flat(run(lambda key: T[side + "." + key].clone()))
    true = flat(run(lambda key: wide(T[side + "." + key].clone())))
    for i, (g, w) in enumerate(zip(got, true)):
        f = g.double()
        shown = ", ".join(f"{v.item():.6g}" for v in (f.max(), f.min(), f.mean(), f.norm())) if f.numel() else "empty"
        print(f"{side} output {i}: replay has Max, Min, Mean, Norm {shown}; against float64: {apart(g, w)}")
for key, values in OUTPUTS.items():
    print(f"{key}: the dump has Max, Min, Mean, Norm {values}")
)py";

std::string Comment(std::string_view s) {
  std::string out = OneLine(s);
  for (char& c : out) c = c == '"' || c == '\\' ? '\'' : c;
  return out;
}

/// One side of the comparison.
struct Side : OpSide {
  std::string name;  // "target"
  const DumpFile* dump = nullptr;
};

class Writer {
 public:
  Writer(const Origin& origin, const std::string& directory) : origin_(origin), directory_(directory) {}

  Status AddSide(const std::string& name, const DumpFile& dump, size_t op) {
    Side& side = sides_.emplace_back();
    side.name = name;
    side.dump = &dump;
    const Status loaded = LoadOpSide(dump, op, &side);
    if (loaded.ok() || loaded.code() != Code::kBadInput) return loaded;
    return BadInput(Msg("no script for {}: {}", Shown(dump.ops()[op].name), loaded.text()));
  }

  StatusOr<Repro> Write() {
    Repro out;
    MSP_RETURN_IF_ERROR(MakeOutputDir(directory_));
    from_file_ = HaveFiles();
    if (from_file_) {
      out.tensors = JoinPath(directory_, "repro.safetensors");
      MSP_RETURN_IF_ERROR(WriteTensors(out.tensors));
    }
    out.made_up = !from_file_;
    const std::string path = JoinPath(directory_, "repro.py");
    MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
    MSP_RETURN_IF_ERROR(file.Write(Script()));
    MSP_RETURN_IF_ERROR(file.Commit());
    out.script = path;
    return out;
  }

 private:
  bool HaveFiles() const {
    for (const Side& side : sides_) {
      for (const CallTensors* all : {&side.call.tensors, &side.gradients}) {
        for (const auto& [key, leaf] : *all) {
          const JsonValue* name = leaf->Find("data_name");
          if (!name || !name->IsString()) return false;
        }
      }
    }
    return true;
  }

  Status WriteTensors(const std::string& path) {
    std::deque<TensorFile> files;
    std::vector<NamedTensor> tensors;
    for (const Side& side : sides_) {
      const TensorFolder folder(side.dump->path());
      for (const CallTensors* all : {&side.call.tensors, &side.gradients, &side.outputs}) {
        for (const auto& [key, leaf] : *all) {
          const JsonValue* name = leaf->Find("data_name");
          if (!name || !name->IsString()) continue;  // of an output: it is not compared
          MSP_ASSIGN_OR_RETURN(const std::string file, folder.Find(name->Text()));
          MSP_ASSIGN_OR_RETURN(TensorFile opened, TensorFile::Open(file, ParseDType(leaf->Find("dtype")->Text())));
          files.push_back(std::move(opened));
          const FileTensor* tensor = files.back().tensor();
          if (!tensor) return BadInput(Msg("{} holds more than one tensor: no script can be written from it", file));
          tensors.push_back({side.name + "." + key, tensor->view()});
          dtypes_ += (dtypes_.empty() ? "" : ", ") + Repr(side.name + "." + key) + ": " + DTypeOf(*leaf);
        }
      }
    }
    return WriteSafetensors(path, tensors);
  }

  static std::string Repr(std::string_view s) {
    std::string out;
    AppendPyStrRepr(out, s);
    return out;
  }
  static std::string DTypeOf(const JsonValue& leaf) { return std::string(leaf.Find("dtype")->Text()); }

  static std::string ShapeOf(const JsonValue& leaf) {
    std::string out = "[";
    for (const JsonValue& v : leaf.Find("shape")->Items()) {
      out += out.size() > 1 ? ", " : "";
      AppendInt(out, v.IsInt() && v.Int() > 0 ? v.Int() : 0);
    }
    return out + "]";
  }

  /// Max, Min, Mean, Norm as numbers; what is not finite, or not known, as a plain guess.
  static std::string StatsOf(const JsonValue& leaf) {
    static constexpr std::pair<const char*, double> kStats[] = {{"Max", 1}, {"Min", -1}, {"Mean", 0}, {"Norm", -1}};
    std::string out;
    for (const auto& [key, guess] : kStats) {
      const JsonValue* v = leaf.Find(key);
      double value = v && v->IsNumber() ? v->Number() : v && v->IsBool() ? v->Bool() : guess;
      if (!std::isfinite(value)) value = guess;
      if (key == kStats[3].first && value < 0) {
        double n = 1;
        for (const JsonValue& s : leaf.Find("shape")->Items()) n *= s.IsInt() ? static_cast<double>(s.Int()) : 1;
        value = std::sqrt(n) / 2;
      }
      out += (out.empty() ? "" : ", ") + PyRepr(value);
    }
    return out;
  }

  std::string Data() const {
    if (from_file_) {
      return "DTYPES = {" + dtypes_ + "}\n" + std::string(kFromFile) +
             "T = read(os.path.join(os.path.dirname(os.path.abspath(__file__)), \"repro.safetensors\"))\n";
    }
    std::string inputs, outputs;
    for (const Side& side : sides_) {
      CallTensors tensors = side.call.tensors;
      tensors.insert(tensors.end(), side.gradients.begin(), side.gradients.end());
      for (const auto& [key, leaf] : tensors) {
        inputs += (inputs.empty() ? "" : ", ") + Repr(side.name + "." + key) + ": make(" + DTypeOf(*leaf) + ", " +
                  ShapeOf(*leaf) + ", " + StatsOf(*leaf) + ")";
      }
      for (const auto& [key, leaf] : side.outputs)
        outputs += (outputs.empty() ? "" : ", ") + Repr(side.name + "." + key) + ": [" + StatsOf(*leaf) + "]";
    }
    return std::string(kFromStatistics) + "T = {" + inputs + "}\nOUTPUTS = {" + outputs + "}\n";
  }

  std::string Calls() const {
    std::string out, names;
    for (const Side& side : sides_) {
      out += "def " + side.name + "(t): return ";
      if (side.gradients.empty()) {
        out += PythonText(side.call);
      } else {
        out += "gradients(lambda t: " + PythonText(side.call) + ", t, [";
        for (size_t i = 0; i < side.gradients.size(); ++i) out += (i ? ", " : "") + Repr(side.gradients[i].first);
        out += "])";
      }
      out += '\n';
      names += (names.empty() ? "" : ", ") + Repr(side.name) + ": " + side.name;
    }
    return out + "SIDES = {" + names + "}\n";
  }

  std::string Script() const {
    const FirstDifference& d = origin_.difference;
    std::string about = Comment((d.item.empty() ? "" : d.item.substr(1) + " ") + d.detail);
    if (!d.frame.empty()) about += "; called at " + Comment(d.frame);
    if (!from_file_)
      about +=
          "\nThe dump holds statistics only: inputs are drawn at random, with the dump's shapes, types and statistics.";
    for (const Message& note : sides_.front().call.notes) about += "; not in the dump: " + Comment(note);
    std::string head(kHead);
    Replace(&head, "@TITLE@", "Replays " + Comment(d.name) + ", where the two runs first differ.");
    Replace(&head, "@ABOUT@", about);
    const std::string calls = Calls();
    std::string out = head + Data() + std::string(kTools);
    if (Contains(calls, "torch_function(")) out += kTorchFunction;
    if (Contains(calls, "gradients(")) out += kGradients;
    return out + calls + std::string(from_file_ ? kMain : kStatisticsMain);
  }

  static void Replace(std::string* text, std::string_view from, const std::string& to) {
    text->replace(text->find(from), from.size(), to);
  }

  const Origin& origin_;
  const std::string& directory_;
  std::deque<Side> sides_;
  std::string dtypes_;
  bool from_file_ = false;
};

}  // namespace

StatusOr<Repro> WriteRepro(const Origin& origin, const Mapping& mapping, const std::string& directory) {
  FilePair files;
  files.target = origin.target_dump;
  files.golden = origin.golden_dump;
  files.rank = origin.rank;
  MSP_ASSIGN_OR_RETURN(const DumpPair pair, OpenDumpPair(files, mapping));
  const FirstDifference& d = origin.difference;
  Writer writer(origin, directory);
  const bool missing = d.kind == FirstDifference::Kind::kMissingOp;
  std::optional<size_t> golden = missing ? pair.golden->FindOp(d.name) : std::nullopt;
  if (!missing) {
    if (d.op >= pair.target->ops().size())
      return InternalError(Msg("the first difference names an op that is not there"));
    MSP_RETURN_IF_ERROR(writer.AddSide("target", *pair.target, d.op));
    if (const uint32_t g = pair.plan.golden_of[d.op]; g != kNoOp) golden = g;
  }
  if (golden) MSP_RETURN_IF_ERROR(writer.AddSide("golden", *pair.golden, *golden));
  return writer.Write();
}

}  // namespace msprobe
