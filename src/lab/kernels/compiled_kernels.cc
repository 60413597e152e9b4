#include "lab/kernels/compiled_kernels.h"

#include <limits>
#include <memory>

#include "base/python_process.h"
#include "base/text.h"
#include "json/parser.h"

namespace msprobe {
namespace {

constexpr char kCommand[] = "check_kernels";

// The Python of the training has the package, which does the work.
constexpr char kProgram[] = R"py(
import json, os, sys
try:
    from msprobe.pytorch.compile_accuracy_checker.process import main
except ImportError as error:
    text = f"{sys.executable} does not have what it needs ({error}): set MSPROBE_PYTHON to the Python of the training"
    os.write(0, json.dumps({"error": text}).encode() + b"\n")
else:
    main()
)py";

std::string TextOf(const JsonValue& row, const char* key) {
  const JsonValue* v = row.Find(key);
  return v && v->IsString() ? std::string(v->Text()) : "";
}

/// What is no number is "inf".
double FigureOf(const JsonValue& row, const char* key) {
  const JsonValue* v = row.Find(key);
  return v && v->IsNumber() ? v->Number() : std::numeric_limits<double>::infinity();
}

std::vector<std::string> TextsOf(const JsonValue& row, const char* key) {
  std::vector<std::string> out;
  const JsonValue* v = row.Find(key);
  if (!v || !v->IsArray()) return out;
  for (const JsonValue& item : v->Items()) {
    if (item.IsString()) out.emplace_back(item.Text());
  }
  return out;
}

CompiledKernel KernelOf(const JsonValue& row) {
  CompiledKernel out;
  const JsonValue* graph = row.Find("graph");
  out.graph = graph && graph->IsInt() ? graph->Int() : 0;
  out.direction = TextOf(row, "direction"), out.kernel = TextOf(row, "kernel"), out.buffer = TextOf(row, "buffer");
  out.node = TextOf(row, "node"), out.verdict = TextOf(row, "verdict"), out.note = TextOf(row, "note");
  out.blamed = TextOf(row, "blamed"), out.repro = TextOf(row, "repro");
  out.nodes = TextsOf(row, "nodes"), out.lines = TextsOf(row, "lines");
  out.compiled = FigureOf(row, "compiled"), out.eager = FigureOf(row, "eager");
  return out;
}

}  // namespace

StatusOr<CompiledReport> CheckKernels(const CompiledSettings& settings) {
  MSP_ASSIGN_OR_RETURN(
      const std::unique_ptr<PythonProcess> process,
      PythonProcess::Start(kCommand, kProgram,
                           {settings.file, settings.function, settings.backward ? "1" : "0", settings.repro_dir}));
  MSP_ASSIGN_OR_RETURN(const std::string line, process->ReadLine());
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(line, "the answer of check_kernels", &doc));
  if (const JsonValue* error = doc.Find("error"); error && error->IsString()) return BadInput(OneLine(error->Text()));
  const JsonValue* rows = doc.Find("rows");
  if (!rows || !rows->IsArray()) return process->Ended();
  CompiledReport out;
  out.torch = TextOf(doc, "torch");
  for (const JsonValue& row : rows->Items()) out.kernels.push_back(KernelOf(row));
  return out;
}

}  // namespace msprobe
