#include "monitor/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "monitor/append_file.h"

namespace msprobe {
namespace {

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
    table[i] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t Masked(std::string_view bytes) {
  const uint32_t crc = Crc32C(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

template <typename T>
void AppendNumber(std::string* out, T v) {
  out->append(reinterpret_cast<const char*>(&v), sizeof v);
}

void AppendVarint(std::string* out, uint64_t v) {
  for (; v >= 0x80; v >>= 7) *out += static_cast<char>(v | 0x80);
  *out += static_cast<char>(v);
}

void AppendBytes(std::string* out, char key, std::string_view bytes) {
  *out += key;
  AppendVarint(out, bytes.size());
  *out += bytes;
}

// Fields 1 and 2 of an Event: when, and of which step.
std::string NewEvent(int64_t step) {
  std::string event = "\x09";
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  AppendNumber(&event, std::chrono::duration<double>(now).count());
  event += '\x10';
  AppendVarint(&event, static_cast<uint64_t>(step));
  return event;
}

}  // namespace

uint32_t Crc32C(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = kTable[(crc ^ static_cast<uint8_t>(c)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

EventFile::EventFile(EventFile&& o) noexcept
    : fd_(std::exchange(o.fd_, -1)), path_(std::move(o.path_)), pending_(std::move(o.pending_)) {}

EventFile::~EventFile() {
  if (fd_ >= 0) close(fd_);
}

StatusOr<EventFile> EventFile::Create(const std::string& directory) {
  MSP_RETURN_IF_ERROR(MakeOutputDir(directory));
  char host[256] = "host";
  (void)gethostname(host, sizeof host - 1);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  EventFile file;
  file.path_ =
      JoinPath(directory, fmt::format("events.out.tfevents.{}.{}.{}",
                                      std::chrono::duration_cast<std::chrono::seconds>(now).count(), host, getpid()));
  MSP_ASSIGN_OR_RETURN(file.fd_, OpenAppend(file.path_));
  std::string version = NewEvent(0);
  AppendBytes(&version, '\x1a', "brain.Event:2");
  file.AddRecord(version);
  return file;
}

void EventFile::AddRecord(std::string_view event) {
  std::string length;
  AppendNumber(&length, static_cast<uint64_t>(event.size()));
  pending_ += length;
  AppendNumber(&pending_, Masked(length));
  pending_ += event;
  AppendNumber(&pending_, Masked(event));
}

void EventFile::AddScalar(std::string_view tag, int64_t step, double value) {
  std::string one;  // Summary.Value: tag = 1, simple_value = 2
  AppendBytes(&one, '\x0a', tag);
  one += '\x15';
  AppendNumber(&one, static_cast<float>(value));
  std::string summary;
  AppendBytes(&summary, '\x0a', one);
  std::string event = NewEvent(step);
  AppendBytes(&event, '\x2a', summary);
  AddRecord(event);
}

Status EventFile::Flush() {
  if (pending_.empty()) return OkStatus();
  Status status = AppendWhole(fd_, path_, pending_);
  pending_.clear();
  return status;
}

}  // namespace msprobe
