#include "rollout/records/record_parts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/text.h"

namespace msprobe {
namespace {

struct RecordProgram {
  std::string_view name, parts;
};
constexpr std::array kPrograms{
#define MSP_ROLLOUT_PROGRAM(name, parts) RecordProgram{name, parts},
#include "rollout/records/record_programs.def"
};
/// What every program may write, and how the engine was told to draw.
constexpr std::array<std::string_view, 6> kCommon{"temperature", "top_p", "top_k", "min_p", "logits", "router_logits"};
constexpr std::array<std::string_view, 5> kSettings{"sampling_params", "sampling_settings", "meta_info", "metadata",
                                                    "generation_config"};
/// What files wrap around their records.
constexpr std::array<std::string_view, 6> kWrappers{"samples", "rollout_data", "requests", "records", "batch", "data"};

/// Keys of `record` by their parts.
std::vector<std::pair<std::string_view, std::string_view>> Found(const RecordProgram& program,
                                                                 const RecordValue& record) {
  std::vector<std::pair<std::string_view, std::string_view>> out;
  for (const std::string_view word : Split(program.parts, ' ')) {
    const size_t equals = word.find('=');
    const std::string_view part = word.substr(0, equals), key = word.substr(equals + 1);
    const auto same = [&](const auto& known) { return known.first == part; };
    const RecordValue* value = record.Find(key);
    if (!value || value->kind == RecordValue::Kind::kNone || std::any_of(out.begin(), out.end(), same)) continue;
    out.emplace_back(part, key);
  }
  return out;
}

bool Says(const std::vector<std::pair<std::string_view, std::string_view>>& found) {
  size_t texts = 0;
  for (const auto& [part, key] : found) {
    if (part == "tokens" || part == "response" || part == "train" || part == "rollout" || part == "own") return true;
    texts += part == "prompt_text" || part == "text";
  }
  return texts == 2;
}

/// Rows of a batch; nothing where the record is one request.
std::optional<int64_t> RowsOf(const RecordParts& parts) {
  for (const std::string_view part : {"tokens", "response", "prompt", "rollout", "train", "own", "text"}) {
    const auto found = parts.find(part);
    if (found == parts.end()) continue;
    const RecordValue& value = found->second;
    if (value.kind == RecordValue::Kind::kList && !value.items.empty()) return value.length();
    if (value.kind == RecordValue::Kind::kNumbers && value.shape.size() >= 2) return value.shape[0];
    return std::nullopt;
  }
  return std::nullopt;
}

/// The record without what wraps it, and with what stands beside it.
RecordValue Unwrapped(const RecordValue& record, std::string_view wrapper) {
  RecordValue out = *record.Find(wrapper);
  if (out.kind != RecordValue::Kind::kDict) return out;
  for (const auto& [name, value] : record.members) {
    if (name == "non_tensor_batch") {
      out.members.insert(out.members.end(), value.members.begin(), value.members.end());
    } else if (name != wrapper) {
      out.members.push_back({name, value});
    }
  }
  return out;
}

void AddRows(const RecordParts& parts, ProgramRecords* out) {
  const auto rows = RowsOf(parts);
  if (!rows) {
    out->rows.push_back(parts);
    return;
  }
  for (int64_t row = 0; row < *rows; ++row) {
    RecordParts one;
    for (const auto& [part, value] : parts) {
      const bool each = value.length() == *rows;
      one.emplace(part, each ? value.At(row) : value);
    }
    out->rows.push_back(std::move(one));
  }
}

}  // namespace

ProgramRecords PartsOf(const RecordValue& record) {
  ProgramRecords out;
  if (record.kind == RecordValue::Kind::kList) {
    for (const RecordValue& item : record.items) {
      if (item.kind != RecordValue::Kind::kDict) continue;
      ProgramRecords inner = PartsOf(item);
      if (out.program.empty()) out.program = inner.program;
      std::move(inner.rows.begin(), inner.rows.end(), std::back_inserter(out.rows));
    }
    return out;
  }
  if (record.kind != RecordValue::Kind::kDict) return out;
  const RecordProgram* best = nullptr;
  std::vector<std::pair<std::string_view, std::string_view>> keys;
  for (const RecordProgram& program : kPrograms) {
    auto found = Found(program, record);
    if (!Says(found) || (best && found.size() <= keys.size())) continue;
    best = &program;
    keys = std::move(found);
  }
  if (!best) {
    for (const std::string_view wrapper : kWrappers) {
      if (record.Find(wrapper)) return PartsOf(Unwrapped(record, wrapper));
    }
    return out;
  }
  RecordParts parts;
  for (const auto& [part, key] : keys) parts.emplace(part, *record.Find(key));
  std::vector<const RecordValue*> places{&record};
  for (const std::string_view settings : kSettings) {
    if (const RecordValue* inner = record.Find(settings)) places.push_back(inner);
  }
  for (const RecordValue* place : places) {
    for (const std::string_view key : kCommon) {
      const RecordValue* value = place->Find(key);
      if (value && value->kind != RecordValue::Kind::kNone) parts.emplace(key, *value);
    }
  }
  out.program = std::string(best->name);
  AddRows(parts, &out);
  return out;
}

}  // namespace msprobe
