#include "dump/step_summary.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/file_limit.h"
#include "base/message.h"
#include "base/process_gone.h"
#include "json/parser.h"
#include "json/writer.h"

namespace msprobe {
namespace {

constexpr size_t kMostText = 250;  // bytes of a reason
constexpr size_t kMostKinds = 12;  // of skipped things
constexpr size_t kMostKindText = 60;

std::string Cut(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not inside a character
  return text.substr(0, end) + "...";
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

/// 0 when it is not known.
uint64_t StartOf(int64_t pid) { return StatOfProcess(pid).value_or(ProcessStat{}).start; }

void Count(JsonWriter* json, const char* key, uint64_t value) {
  json->Key(key);
  json->UInt(value);
}

uint64_t CountOf(const JsonValue& v, std::string_view key) {
  const JsonValue* member = v.Find(key);
  return member != nullptr && member->IsUInt() ? member->UInt() : 0;
}

std::string TextOf(const JsonValue& v, std::string_view key) {
  const JsonValue* member = v.Find(key);
  return member != nullptr && member->IsString() ? std::string(member->Text()) : std::string();
}

}  // namespace

std::string StepSummary::Json() const {
  std::string out;
  JsonWriter json(&out, kJsonIndented);
  json.BeginObject();
  json.Key("state");
  json.String(state);
  Count(&json, "ops", ops);
  Count(&json, "ops_not_written", ops_not_written);
  Count(&json, "bytes", bytes);
  Count(&json, "tensor_files", tensor_files);
  Count(&json, "tensor_bytes", tensor_bytes);
  Count(&json, "tensors_not_written", tensors_not_written);
  json.Key("stopped");
  json.BeginObject();
  if (!ops_stopped.empty()) json.Key("ops"), json.String(Cut(ops_stopped, kMostText));
  if (!tensors_stopped.empty()) json.Key("tensors"), json.String(Cut(tensors_stopped, kMostText));
  json.EndObject();
  json.Key("skipped");
  json.BeginObject();
  uint64_t others = 0;
  size_t kinds = 0;
  for (const auto& [kind, count] : skipped) {
    if (++kinds > kMostKinds) {
      others += count;
    } else {
      Count(&json, Cut(kind, kMostKindText).c_str(), count);
    }
  }
  if (others > 0) Count(&json, "others", others);
  json.EndObject();
  if (ranks > 0) Count(&json, "ranks", ranks);
  json.Key("writer");
  json.BeginObject();
  json.Key("host");
  json.String(Cut(host, kMostKindText));
  json.Key("pid");
  json.Int(pid);
  Count(&json, "start", process_start);
  json.EndObject();
  json.EndObject();
  if (out.size() <= kMostBytes) return out;
  StepSummary counts = *this;  // texts full of escapes
  counts.skipped.clear();
  counts.ops_stopped = counts.tensors_stopped = counts.host = {};
  return counts.Json();
}

StatusOr<StepSummary> StepSummary::Read(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(file.text().substr(0, 2 * kMostBytes), path, &doc));
  if (!doc.IsObject() || TextOf(doc, "state").empty()) {
    return BadInput(Msg("{} is not a summary of a step (it has no \"state\"): remove it", path));
  }
  StepSummary s;
  s.state = TextOf(doc, "state");
  s.ops = CountOf(doc, "ops");
  s.ops_not_written = CountOf(doc, "ops_not_written");
  s.bytes = CountOf(doc, "bytes");
  s.tensor_files = CountOf(doc, "tensor_files");
  s.tensor_bytes = CountOf(doc, "tensor_bytes");
  s.tensors_not_written = CountOf(doc, "tensors_not_written");
  s.ranks = CountOf(doc, "ranks");
  if (const JsonValue* stopped = doc.Find("stopped")) {
    s.ops_stopped = TextOf(*stopped, "ops");
    s.tensors_stopped = TextOf(*stopped, "tensors");
  }
  if (const JsonValue* skipped = doc.Find("skipped"); skipped != nullptr && skipped->IsObject()) {
    for (const auto& kind : skipped->Members()) {
      if (kind.value.IsUInt()) s.skipped[std::string(kind.name)] += kind.value.UInt();
    }
  }
  if (const JsonValue* writer = doc.Find("writer")) {
    s.host = TextOf(*writer, "host");
    s.pid = static_cast<int64_t>(CountOf(*writer, "pid"));
    s.process_start = CountOf(*writer, "start");
  }
  return s;
}

void SetWriter(StepSummary* summary) {
  summary->host = HostName();
  summary->pid = getpid();
  summary->process_start = StartOf(summary->pid);
}

Writer WriterOf(const StepSummary& summary) {
  if (summary.state != "recording" || summary.pid <= 0 || summary.pid > INT32_MAX) return Writer::kGone;
  if (summary.host != Cut(HostName(), kMostKindText)) return Writer::kElsewhere;
  if (ProcessGone(summary.pid)) return Writer::kGone;
  // The number may have been given to another process meanwhile.
  const uint64_t start = StartOf(summary.pid);
  return start != 0 && summary.process_start != 0 && start != summary.process_start ? Writer::kGone : Writer::kAlive;
}

StatusOr<std::unique_ptr<SummaryFile>> SummaryFile::Create(const std::string& path, const StepSummary& summary) {
  std::unique_ptr<SummaryFile> file(new SummaryFile);
  file->path_ = path;
  TempPath temp(path);
  file->fd_ = open(temp.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
  if (file->fd_ < 0) {
    return BadInput(Msg("{} cannot be written ({}): choose another dump_path", path, KnownText(std::strerror(errno))));
  }
  MSP_RETURN_IF_ERROR(file->Update(summary));
  MSP_RETURN_IF_ERROR(temp.Commit());
  return file;
}

SummaryFile::~SummaryFile() {
  if (fd_ >= 0) close(fd_);
}

Status SummaryFile::Update(const StepSummary& summary) {
  std::string text = summary.Json();
  // Always the same length: what was there before is gone, and the last text needs no more space than the first.
  text.resize(StepSummary::kMostBytes, ' ');
  text.push_back('\n');
  const FileLimitGuard guard;
  ssize_t n = 0;
  do {
    n = pwrite(fd_, text.data(), text.size(), 0);
  } while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(text.size())) return OkStatus();
  return InternalError(Msg("{} could not be written ({}): free some space or choose another dump_path", path_,
                           KnownText(n < 0 ? std::strerror(errno) : "no space left")));
}

}  // namespace msprobe
