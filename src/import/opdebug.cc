#include "import/opdebug.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "base/message.h"
#include "base/text.h"
#include "json/writer.h"

namespace msprobe {
namespace {

constexpr JsonStyle kIndented{.indent = 4, .comma = ","};

template <typename T>
T Word(std::string_view bytes, size_t at) {
  T out = 0;
  std::memcpy(&out, bytes.data() + at, sizeof(T));
  return out;
}

/// Addresses are written in hexadecimal.
constexpr std::array<std::string_view, 5> kAddresses = {"pc_start", "para_base", "kernel_code", "src_addr", "dst_addr"};

void WriteField(std::string_view name, uint64_t value, JsonWriter* json) {
  const bool address = std::find(kAddresses.begin(), kAddresses.end(), name) != kAddresses.end();
  address ? json->Member(name, fmt::format("0x{:x}", value)) : json->Member(name, value);
}

// ---- the form of a fixed size: what was found out of three units, each with its place, then with its status

constexpr size_t kOldSize = 2048;
struct Unit {
  std::string_view name;
  size_t place, status;  // where they begin
  bool kernel;           // its status begins with the kernel and the block
};
constexpr std::array<Unit, 3> kUnits{
    {{"DHA Atomic Add", 0, 512, false}, {"L2 Atomic Add", 128, 768, false}, {"AI Core", 256, 1024, true}}};

std::string OldForm(std::string_view bytes) {
  constexpr std::array<std::string_view, 6> kPlace = {"model_id",  "stream_id", "task_id",
                                                      "task_type", "pc_start",  "para_base"};
  JsonWriter json(kIndented);
  json.BeginObject();
  for (const Unit& unit : kUnits) {
    json.Key(unit.name);
    json.BeginObject();
    for (size_t i = 0; i < kPlace.size(); ++i) WriteField(kPlace[i], Word<uint64_t>(bytes, unit.place + 8 * i), &json);
    size_t at = unit.status;
    if (unit.kernel) {
      WriteField("kernel_code", Word<uint64_t>(bytes, at), &json);
      WriteField("block_idx", Word<uint64_t>(bytes, at + 8), &json);
      at += 16;
    }
    json.Member("status", Word<uint64_t>(bytes, at));
    json.EndObject();
  }
  json.EndObject();
  return json.Take();
}

// ---- the form with a magic number: one unit, which says how long its data is

constexpr uint32_t kMagic = 0x5a5a5a5a;
constexpr size_t kHeader = 24;

struct Accelerator {
  std::string_view name;
  std::span<const std::string_view> fields;
  bool core;  // of version 1 on its status has four words
};
constexpr std::array<std::string_view, 10> kCore = {"model_id",  "stream_id", "task_id",   "task_type", "context_id",
                                                    "thread_id", "pc_start",  "para_base", "core_id",   "block_id"};
constexpr std::array<std::string_view, 7> kCpu = {"model_id",   "stream_id", "task_id",  "task_type",
                                                  "context_id", "cpu_id",    "thread_id"};
constexpr std::array<std::string_view, 9> kDma = {"model_id",  "stream_id", "task_id",  "task_type", "context_id",
                                                  "thread_id", "src_addr",  "dst_addr", "channel_id"};
constexpr std::array<Accelerator, 4> kAccelerators{
    {{"AIC", kCore, true}, {"AIV", kCore, true}, {"AICPU", kCpu, false}, {"SDMA", kDma, false}}};

StatusOr<std::string> NewForm(std::string_view bytes, const std::string& path) {
  enum Header : size_t { kVersion = 4, kValid = 8, kType = 12, kReserved = 16, kLength = 20 };
  const auto version = Word<uint32_t>(bytes, kVersion), type = Word<uint32_t>(bytes, kType);
  const auto length = Word<uint32_t>(bytes, kLength);
  if (type >= kAccelerators.size()) {
    return BadInput(Msg("{} is of unit {}, which is not known", OneLine(path), type));
  }
  const Accelerator& unit = kAccelerators[type];
  const size_t status_words = unit.core && version >= 1 ? 4 : 1;
  const size_t needed = (unit.fields.size() + status_words) * sizeof(uint64_t);
  if (length < needed || needed > bytes.size() - kHeader) {
    return BadInput(Msg("{} ends before its record does: it is cut off", OneLine(path)));
  }
  JsonWriter json(kIndented);
  json.BeginObject();
  json.Member("magic", fmt::format("0x{:x}", kMagic));
  json.Member("version", version);
  json.ObjectMember("acc_list", [&] {
    json.Member("valid", Word<uint32_t>(bytes, kValid));
    json.Member("acc_type", unit.name);
    json.Member("rsv", Word<uint32_t>(bytes, kReserved));
    json.Member("data_len", length);
    json.ObjectMember("data", [&] {
      size_t at = kHeader;
      for (const std::string_view field : unit.fields) {
        WriteField(field, Word<uint64_t>(bytes, at), &json);
        at += sizeof(uint64_t);
      }
      json.Key("status");
      if (status_words == 1) {
        json.UInt(Word<uint64_t>(bytes, at));
        return;
      }
      json.BeginArray();
      for (size_t i = 0; i < status_words; ++i) json.UInt(Word<uint64_t>(bytes, at + i * sizeof(uint64_t)));
      json.EndArray();
    });
  });
  json.EndObject();
  return json.Take();
}

}  // namespace

bool IsOpdebugName(std::string_view file_name) { return StartsWith(file_name, "Opdebug."); }

StatusOr<std::string> OpdebugJson(std::string_view bytes, const std::string& path) {
  if (bytes.size() >= kHeader && Word<uint32_t>(bytes, 0) == kMagic) return NewForm(bytes, path);
  if (bytes.size() == kOldSize) return OldForm(bytes);
  return BadInput(
      Msg("{} is no record of an overflow: it has {} bytes and no magic number", OneLine(path), bytes.size()));
}

}  // namespace msprobe
