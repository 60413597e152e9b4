#include "lab/op_script.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/file.h"
#include "base/python_process.h"
#include "base/text.h"
#include "compare/values/tensor_folder.h"
#include "diagnose/replay/op_call.h"
#include "diagnose/replay/repro_call.h"
#include "dump/reader.h"
#include "json/parser.h"
#include "json/writer.h"
#include "tensor/files/tensor_file.h"

namespace msprobe {
namespace {

constexpr int64_t kMostTimes = 1000;
constexpr int kLongestRun = 600;  // seconds

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

// Runs the script as a fresh Python does, and says what it printed.
constexpr char kRunner[] = R"py(
import contextlib, io, json, os, runpy, socket, sys
stream, text = socket.socket(fileno=os.dup(0)), io.StringIO()
path, sys.argv = sys.argv[1], sys.argv[1:2]
error = ""
with contextlib.redirect_stdout(text):
    try:
        runpy.run_path(path, run_name="__main__")
    except BaseException as why:
        error = f"{type(why).__name__}: {why}"
stream.sendall(json.dumps({"printed": text.getvalue(), "error": error}).encode() + b"\n")
)py";

std::string Quoted(std::string_view s) {
  std::string out;
  AppendPyStrRepr(out, s);
  return out;
}

void Put(std::string* text, std::string_view from, const std::string& to) {
  for (size_t at = text->find(from); at != std::string::npos; at = text->find(from, at + to.size()))
    text->replace(at, from.size(), to);
}

/// A finite end of the recorded range.
std::string EndOf(const JsonValue& leaf, const char* key, double guess) {
  const JsonValue* v = leaf.Find((std::string(key) + "_except_inf_nan").c_str());
  if (!v || !v->IsNumber()) v = leaf.Find(key);
  double value = v && v->IsNumber() ? v->Number() : v && v->IsBool() ? v->Bool() : guess;
  if (!std::isfinite(value)) value = guess;
  return PyRepr(value);
}

StatusOr<std::string> InputText(const OpScriptSettings& settings, const TensorFolder& folder, const std::string& key,
                                const JsonValue& leaf) {
  const JsonValue* name = leaf.Find("data_name");
  if (settings.real_data) {
    if (!name || !name->IsString())
      return BadInput("the dump holds no values of " + OneLine(key) + ": use random_data");
    MSP_ASSIGN_OR_RETURN(const std::string path, folder.Find(name->Text()));
    MSP_RETURN_IF_ERROR(TensorFile::Open(path, ParseDType(leaf.Find("dtype")->Text())).status());
    const std::unique_ptr<char, decltype(&std::free)> whole(realpath(path.c_str(), nullptr), &std::free);
    return "load(" + Quoted(whole ? whole.get() : path) + ")";
  }
  const std::string_view dtype = leaf.Find("dtype")->Text();
  if (!IsTorchName(dtype)) return BadInput(OneLine(key) + " has the dtype " + OneLine(dtype) + ", which torch has not");
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

StatusOr<std::string> ScriptText(const OpScriptSettings& settings, const DumpFile& dump, const std::string& file) {
  const auto forward = dump.FindOp(settings.call + ".forward"), backward = dump.FindOp(settings.call + ".backward");
  if (!forward) return BadInput(dump.path() + " has no call " + OneLine(settings.call) + ".forward");
  if (settings.backward && !backward) return BadInput(dump.path() + " has no " + OneLine(settings.call) + ".backward");
  JsonDoc doc, gradients_doc;
  MSP_RETURN_IF_ERROR(dump.ParseOp(*forward, &doc));
  MSP_ASSIGN_OR_RETURN(const OpCall call, CallOf(dump.ops()[*forward].name, doc));
  CallTensors gradients;
  if (settings.backward) {
    MSP_RETURN_IF_ERROR(dump.ParseOp(*backward, &gradients_doc));
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

/// The entries of the call alone, as `extract_api_path` wants them.
Status WriteExtract(const OpScriptSettings& settings, const DumpFile& dump) {
  JsonWriter json;
  json.BeginObject();
  for (const char* direction : {".forward", ".backward"}) {
    const auto op = dump.FindOp(settings.call + direction);
    if (!op) continue;
    JsonDoc doc;
    MSP_RETURN_IF_ERROR(dump.ParseOp(*op, &doc));
    json.Key(settings.call + direction), json.Value(doc);
  }
  json.EndObject();
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(settings.extracted));
  MSP_RETURN_IF_ERROR(file.Write(json.Take() + "\n"));
  return file.Commit();
}

/// Names of files are made of it, and text of the script.
bool IsPlainCall(const std::string& name) {
  return !name.empty() && name.size() <= 1000 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") ==
             std::string::npos;
}

StatusOr<std::string> RunScript(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(std::unique_ptr<PythonProcess> process, PythonProcess::Start("op_generate", kRunner, {path}));
  MSP_ASSIGN_OR_RETURN(const std::string line, process->ReadLine(kLongestRun));
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(line, "the answer of op_generate", &doc));
  if (const JsonValue* error = doc.Find("error"); error && !error->Text().empty())
    return BadInput("the script does not run, and is not kept: " + OneLine(error->Text()));
  return std::string(doc["printed"].Text());
}

template <typename T>
Status Choose(const JsonValue& config, const char* key, const std::string& path, std::string_view off,
              std::string_view on, T* out) {
  const JsonValue* v = config.Find(key);
  if (!v) return OkStatus();
  if (v->IsString() && (v->Text() == off || v->Text() == on)) {
    *out = v->Text() == on;
    return OkStatus();
  }
  return BadInput(path + ": \"" + key + "\" must be \"" + std::string(off) + "\" or \"" + std::string(on) + "\"");
}

Status ReadText(const JsonValue& config, const char* key, const std::string& path, std::string* out) {
  const JsonValue* v = config.Find(key);
  if (!v) return OkStatus();
  if (!v->IsString()) return BadInput(path + ": \"" + key + "\" must be a string");
  *out = v->Text();
  return OkStatus();
}

Status ReadWhole(const JsonValue& config, const char* key, const std::string& path, int64_t least, int64_t most,
                 int64_t* out) {
  const JsonValue* v = config.Find(key);
  if (!v) return OkStatus();
  if (!v->IsInt() || v->Int() < least || v->Int() > most)
    return BadInput(path + ": \"" + key + "\" must be a whole number from " + std::to_string(least) + " to " +
                    std::to_string(most));
  *out = v->Int();
  return OkStatus();
}

}  // namespace

StatusOr<OpScriptSettings> OpScriptSettings::Read(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(file.text(), path, &doc));
  OpScriptSettings out;
  MSP_RETURN_IF_ERROR(ReadText(doc, "dump_json_path", path, &out.dump));
  MSP_RETURN_IF_ERROR(ReadText(doc, "extract_api_path", path, &out.extracted));
  MSP_RETURN_IF_ERROR(ReadText(doc, "api_name", path, &out.call));
  MSP_RETURN_IF_ERROR(Choose(doc, "propagation", path, "forward", "backward", &out.backward));
  MSP_RETURN_IF_ERROR(Choose(doc, "data_mode", path, "random_data", "real_data", &out.real_data));
  MSP_RETURN_IF_ERROR(ReadWhole(doc, "random_seed", path, 0, (int64_t{1} << 32) - 1, &out.seed));
  MSP_RETURN_IF_ERROR(ReadWhole(doc, "iter_times", path, 1, kMostTimes, &out.times));
  for (const std::string_view direction : {".forward", ".backward"}) {
    if (EndsWith(out.call, direction)) out.call.resize(out.call.size() - direction.size());
  }
  if (!IsPlainCall(out.call))
    return BadInput(path + ": \"api_name\" must name a call of the dump, such as \"Functional.softmax.0\"");
  if (out.dump.empty()) return BadInput(path + ": \"dump_json_path\" must be the path of a dump.json");
  return out;
}

StatusOr<OpScript> WriteOpScript(const OpScriptSettings& settings) {
  MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(settings.dump));
  const std::string file = settings.call + (settings.backward ? ".backward.py" : ".forward.py");
  MSP_ASSIGN_OR_RETURN(const std::string text, ScriptText(settings, dump, file));
  MSP_RETURN_IF_ERROR(MakeOutputDir(settings.output));
  OpScript out;
  out.path = JoinPath(settings.output, file);
  MSP_ASSIGN_OR_RETURN(OutputFile script, OutputFile::Create(out.path));
  MSP_RETURN_IF_ERROR(script.Write(text));
  MSP_RETURN_IF_ERROR(script.Commit());
  StatusOr<std::string> printed = RunScript(out.path);
  if (!printed.ok()) {
    std::remove(out.path.c_str());
    return printed.status();
  }
  out.printed = *std::move(printed);
  if (!settings.extracted.empty()) MSP_RETURN_IF_ERROR(WriteExtract(settings, dump));
  return out;
}

}  // namespace msprobe
