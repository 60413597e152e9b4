#include "compare/custom_metrics.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "compare/custom_metrics_program.h"
#include "compare/tensor_diff.h"
#include "tensor/layout.h"

extern char** environ;

namespace msprobe {
namespace {

constexpr size_t kLongestLine = 1 << 20;
constexpr size_t kMostFiles = 100;

bool IsMetricName(std::string_view name) {
  if (!StartsWith(name, "alg_") || !EndsWith(name, ".py") || name.size() == 7) return false;
  name = name.substr(4, name.size() - 7);
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

StatusOr<std::vector<std::string>> MetricFiles(const std::string& path) {
  std::vector<std::string> files;
  if (IsRegularFile(path)) {
    if (!EndsWith(path, ".py")) return UsageError("--custom_metric: " + path + " is no Python file (.py)");
    files.push_back(path);
    return files;
  }
  if (!IsDirectory(path)) return UsageError("--custom_metric: " + path + " does not exist: name a file or a directory");
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  for (const std::string& name : names) {
    if (IsMetricName(name) && IsRegularFile(JoinPath(path, name))) files.push_back(JoinPath(path, name));
  }
  if (files.empty() || files.size() > kMostFiles) {
    return UsageError("--custom_metric: " + path + " holds " + std::to_string(files.size()) +
                      " files alg_*.py (lower case, digits, _); there must be 1 to " + std::to_string(kMostFiles));
  }
  return files;
}

std::string PythonCommand() {
  if (const char* given = std::getenv("MSPROBE_PYTHON"); given && *given) return given;
  char exe[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", exe, sizeof exe);
  if (length > 0) {
    const std::string beside = JoinPath(DirName(std::string_view(exe, static_cast<size_t>(length))), "python3");
    if (access(beside.c_str(), X_OK) == 0) return beside;
  }
  return "python3";
}

void AppendHead(std::string* out, const TensorView& t, int64_t count) {
  *out += "{\"dtype\": \"";
  *out += DTypeName(t.dtype);
  *out += "\", \"shape\": [";
  for (int i = 0; i < t.ndim; ++i) {
    if (i) *out += ", ";
    AppendInt(*out, t.shape[i]);
  }
  *out += "], \"bytes\": ";
  AppendInt(*out, count * static_cast<int64_t>(ElementSize(t.dtype)));
  *out += '}';
}

void SetCell(const JsonValue& v, StatValue* out) {
  const JsonValue* odd = v.IsObject() ? Find(v, "float") : nullptr;
  if (!odd || !odd->IsString()) return out->Set(v);
  *out = StatValue();
  out->kind = StatValue::Kind::kDouble;
  out->d = std::strtod(std::string(Text(*odd)).c_str(), nullptr);
}

}  // namespace

StatusOr<std::unique_ptr<CustomMetrics>> CustomMetrics::Start(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> files, MetricFiles(path));
  std::unique_ptr<CustomMetrics> out(new CustomMetrics);
  MSP_RETURN_IF_ERROR(out->Spawn(files));
  MSP_RETURN_IF_ERROR(out->ReadColumns());
  return out;
}

CustomMetrics::~CustomMetrics() {
  if (socket_ >= 0) close(socket_);  // the process reads the end and leaves
  if (pid_ < 0) return;
  int state = 0;
  // A function that hangs does not keep the command.
  for (int i = 0; i < 100; ++i) {
    if (waitpid(pid_, &state, WNOHANG) != 0) return;
    usleep(20000);
  }
  kill(pid_, SIGKILL);
  while (waitpid(pid_, &state, 0) < 0 && errno == EINTR) continue;
}

Status CustomMetrics::Spawn(const std::vector<std::string>& files) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return InternalError(std::string("cannot make a socket for --custom_metric: ") + std::strerror(errno));
  }
  socket_ = pair[0];
  const std::string python = PythonCommand();
  std::vector<std::string> words = {python, "-c", std::string(CustomMetricsProgram())};
  words.insert(words.end(), files.begin(), files.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pair[1], 0);
  posix_spawn_file_actions_adddup2(&actions, 2, 1);
  const int error = posix_spawnp(&pid_, python.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pair[1]);
  if (error == 0) return OkStatus();
  pid_ = -1;
  return UsageError("--custom_metric: " + python + " does not start (" + std::strerror(error) +
                    "): set MSPROBE_PYTHON to the Python that runs the metrics");
}

Status CustomMetrics::ReadColumns() {
  MSP_ASSIGN_OR_RETURN(const std::string line, ReadLine());
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(line, "the answer of --custom_metric", &doc));
  if (const JsonValue* error = Find(doc, "error"); error && error->IsString()) {
    return UsageError("--custom_metric: " + OneLine(Text(*error)));
  }
  const JsonValue* columns = Find(doc, "columns");
  if (!columns || !columns->IsArray()) return Ended();
  for (const JsonValue& column : columns->GetArray()) columns_.emplace_back(Text(column));
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (IsTensorModeColumn(columns_[i]) || std::count(columns_.begin(), columns_.end(), columns_[i]) > 1) {
      return UsageError("--custom_metric: the column \"" + OneLine(columns_[i]) +
                        "\" exists already: give it another column_name()");
    }
  }
  return OkStatus();
}

Status CustomMetrics::Ended() const {
  if (InterruptRequested()) return Interrupted();
  return BadInput("the process of --custom_metric ended: see what it wrote above, or compare without it");
}

Status CustomMetrics::Send(const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(socket_, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR && !InterruptRequested()) continue;
    if (sent <= 0) return Ended();
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return OkStatus();
}

Status CustomMetrics::SendTensor(const TensorView& tensor) {
  Layout layout;
  if (!MakeLayout(tensor, Order::kLogical, &layout)) return BadInput("a tensor of unknown layout");
  Status status = OkStatus();
  LayoutWalker(layout).Walk(0, layout.count, [&](const void* data, size_t n) {
    if (status.ok()) status = Send(data, n * layout.element);
  });
  return status;
}

StatusOr<std::string> CustomMetrics::ReadLine() {
  for (;;) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    if (buffer_.size() > kLongestLine) return Ended();
    if (InterruptRequested()) return Interrupted();
    pollfd ready{socket_, POLLIN, 0};
    if (poll(&ready, 1, 200) <= 0) continue;  // looks for Ctrl-C now and then
    char piece[4096];
    const ssize_t got = recv(socket_, piece, sizeof piece, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Ended();
    buffer_.append(piece, static_cast<size_t>(got));
  }
}

Status CustomMetrics::Measure(const TensorView& target, const TensorView& golden, std::vector<StatValue>* cells,
                              std::string* error) {
  Layout a, b;
  if (!MakeLayout(target, Order::kLogical, &a) || !MakeLayout(golden, Order::kLogical, &b)) {
    return BadInput("a tensor of unknown layout");
  }
  std::string head = "{\"n\": ";
  AppendHead(&head, target, a.count);
  head += ", \"b\": ";
  AppendHead(&head, golden, b.count);
  head += "}\n";
  std::lock_guard lock(mutex_);
  MSP_RETURN_IF_ERROR(Send(head.data(), head.size()));
  MSP_RETURN_IF_ERROR(SendTensor(target));
  MSP_RETURN_IF_ERROR(SendTensor(golden));
  MSP_ASSIGN_OR_RETURN(const std::string line, ReadLine());
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(line, "the answer of --custom_metric", &doc));
  const JsonValue *values = Find(doc, "cells"), *errors = Find(doc, "errors");
  if (!values || !values->IsArray() || values->Size() != columns_.size() || !errors || !errors->IsArray()) {
    return Ended();
  }
  cells->clear();
  for (const JsonValue& v : values->GetArray()) SetCell(v, &cells->emplace_back());
  for (const JsonValue& e : errors->GetArray()) {
    if (e.IsString() && error->empty()) *error = OneLine(Text(e));
  }
  return OkStatus();
}

}  // namespace msprobe
