#include "lab/scripts/op_script.h"

#include <cstdio>
#include <memory>

#include "base/file.h"
#include "base/message.h"
#include "base/python_process.h"
#include "base/text.h"
#include "dump/reader.h"
#include "json/parser.h"
#include "json/writer.h"
#include "lab/scripts/mindspore_script.h"
#include "lab/scripts/torch_script.h"

namespace msprobe {
namespace {

constexpr int kLongestRun = 600;  // seconds

// Runs the script as a fresh Python does, and says what it printed.
constexpr char kRunner[] = R"py(
import contextlib, io, json, os, runpy, socket, sys
os.environ.setdefault("GLOG_v", "3")  # MindSpore's own log
stream, text = socket.socket(fileno=os.dup(0)), io.StringIO()
path, sys.argv = sys.argv[1], sys.argv[1:2]
error = ""
with contextlib.redirect_stdout(text):
    try:
        runpy.run_path(path, run_name="__main__")
    except ModuleNotFoundError as why:
        error = f"{sys.executable} has no {why.name}: set MSPROBE_PYTHON to the Python that has it"
    except BaseException as why:
        error = f"{type(why).__name__}: {why}"
stream.sendall(json.dumps({"printed": text.getvalue(), "error": error}).encode() + b"\n")
)py";

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

StatusOr<std::string> RunScript(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(std::unique_ptr<PythonProcess> process, PythonProcess::Start("op_generate", kRunner, {path}));
  MSP_ASSIGN_OR_RETURN(const std::string line, process->ReadLine(kLongestRun));
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(line, "the answer of op_generate", &doc));
  if (const JsonValue* error = doc.Find("error"); error && !error->Text().empty())
    return BadInput(Msg("the script does not run, and is not kept: {}", OneLine(error->Text())));
  return std::string(doc["printed"].Text());
}

}  // namespace

StatusOr<OpScript> WriteOpScript(const OpScriptSettings& settings) {
  MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(settings.dump));
  const std::string file = settings.call + (settings.backward ? ".backward.py" : ".forward.py");
  MSP_ASSIGN_OR_RETURN(const std::string text, dump.framework() == "mindspore" ? MindSporeScript(settings, dump, file)
                                                                               : TorchScript(settings, dump, file));
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
