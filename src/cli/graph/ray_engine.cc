#include "cli/graph/ray_engine.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/message.h"
#include "cli/graph/ray_program.h"
#include "json/parser.h"
#include "json/writer.h"

namespace msprobe {
namespace {

constexpr char kOption[] = "--engine ray";

std::string PartPath(const std::string& directory, size_t pair) {
  return JoinPath(directory, fmt::format("part_{}.vis.db", pair));
}

std::string TextOf(const JsonValue& answer, std::string_view key) {
  const JsonValue* v = answer.Find(key);
  return v && v->IsString() ? std::string(v->Text()) : std::string();
}

}  // namespace

GraphParts RayEngine::Parts() {
  GraphParts out;
  out.begin = [this](size_t pairs) { return Begin(pairs); };
  out.file = [this](size_t pair) { return File(pair); };
  return out;
}

Status RayEngine::Begin(size_t pairs) {
  pairs_ = pairs;
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return InternalError(Msg("{}: this command is not found: {}", kOption, KnownText(error.message())));
  MSP_ASSIGN_OR_RETURN(TempDirectory directory, TempDirectory::Create((here / output_).string(), "parts"));
  directory_.emplace(std::move(directory));
  MSP_ASSIGN_OR_RETURN(process_, PythonProcess::Start(kOption, RayProgram(), {}));
  std::vector<std::string> command = {self.string()};
  command.insert(command.end(), command_.begin(), command_.end());
  JsonWriter request;
  request.BeginObject();
  request.Member("command", command);
  request.Member("directory", directory_->path());
  request.Member("cwd", here.string());
  request.Member("pairs", pairs);
  request.EndObject();
  const std::string line = request.Take() + "\n";
  return process_->Send(line.data(), line.size());
}

Status RayEngine::ReadAnswer() {
  MSP_ASSIGN_OR_RETURN(const std::string line, process_->ReadLine());
  JsonDoc answer;
  MSP_RETURN_IF_ERROR(ParseJson(line, kOption, &answer));
  if (const std::string error = TextOf(answer, "error"); !error.empty()) {
    return UsageError(Msg("{}: {}", kOption, error));
  }
  if (const std::string warning = TextOf(answer, "warning"); !warning.empty()) {
    std::fputs((warning + "\n").c_str(), stderr);
  }
  const JsonValue *pair = answer.Find("pair"), *code = answer.Find("code");
  if (!pair || !pair->IsUInt() || pair->UInt() >= pairs_ || !code || !code->IsInt32()) return process_->Ended();
  const std::string why = TextOf(answer, "why");
  Status& status = answers_.emplace(pair->UInt(), OkStatus()).first->second;
  if (code->Int32() == 3) {
    status = BadInput(why);
  } else if (code->Int32() != 0) {
    status = InternalError(why.empty() ? Msg("a task ended with exit code {}", code->Int32()) : Message(why));
  }
  return OkStatus();
}

StatusOr<std::string> RayEngine::File(size_t pair) {
  while (answers_.find(pair) == answers_.end()) {
    if (Status status = ReadAnswer(); !status.ok()) {
      // Not the fault of one pair: the caller would go on with the next.
      return status.code() == Code::kBadInput ? InternalError(status.text()) : status;
    }
  }
  const Status& status = answers_.at(pair);
  if (!status.ok()) return status;
  return PartPath(directory_->path(), pair);
}

}  // namespace msprobe
