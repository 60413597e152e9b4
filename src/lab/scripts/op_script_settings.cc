#include "lab/scripts/op_script_settings.h"

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "json/parser.h"

namespace msprobe {
namespace {

constexpr int64_t kMostTimes = 1000;

/// Names of files are made of it, and text of the script.
bool IsPlainCall(const std::string& name) {
  return !name.empty() && name.size() <= 1000 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") ==
             std::string::npos;
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
  return BadInput(Msg("{}: \"{}\" must be \"{}\" or \"{}\"", path, key, off, on));
}

Status ReadText(const JsonValue& config, const char* key, const std::string& path, std::string* out) {
  const JsonValue* v = config.Find(key);
  if (!v) return OkStatus();
  if (!v->IsString()) return BadInput(Msg("{}: \"{}\" must be a string", path, key));
  *out = v->Text();
  return OkStatus();
}

Status ReadWhole(const JsonValue& config, const char* key, const std::string& path, int64_t least, int64_t most,
                 int64_t* out) {
  const JsonValue* v = config.Find(key);
  if (!v) return OkStatus();
  if (!v->IsInt() || v->Int() < least || v->Int() > most)
    return BadInput(Msg("{}: \"{}\" must be a whole number from {} to {}", path, key, least, most));
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
    return BadInput(Msg("{}: \"api_name\" must name a call of the dump, such as \"Functional.softmax.0\"", path));
  if (out.dump.empty()) return BadInput(Msg("{}: \"dump_json_path\" must be the path of a dump.json", path));
  return out;
}

StatusOr<size_t> OpOf(const OpScriptSettings& settings, const DumpFile& dump, const char* direction) {
  const std::string name = settings.call + direction;
  const auto op = dump.FindOp(name);
  if (!op) return BadInput(Msg("{} has no call {}", dump.path(), OneLine(name)));
  return *op;
}

}  // namespace msprobe
