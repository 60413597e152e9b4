#include "report/rows/ops_json.h"

#include "compare/first_difference/first_difference.h"
#include "compare/pair/op_at.h"
#include "json/writer.h"

namespace msprobe {
namespace {

constexpr std::string_view kSame = "\n        \"is_same\": ";
constexpr std::string_view kStatNames[] = {"max", "min", "mean", "l2norm"};

constexpr JsonStyle kStyle{.indent = 4, .comma = ","};
constexpr JsonStyle kSuspectStyle{.indent = 2, .comma = ","};

/// A NaN that tables show as text is text here, too.
void WriteCell(JsonWriter* json, const Cell& cell) {
  switch (cell.kind) {
    case Cell::Kind::kBool: return json->Bool(cell.integer != 0);
    case Cell::Kind::kNumber: return json->Number(cell.number);
    case Cell::Kind::kInteger: return json->Int(cell.integer);
    case Cell::Kind::kUnsigned: return json->UInt(static_cast<uint64_t>(cell.integer));
    case Cell::Kind::kText:
    case Cell::Kind::kWord: return json->String(cell.text);
    default: break;
  }
  std::string text;
  cell.AppendText(&text);
  json->String(text);
}

class OpsFormat : public RowFormat {
 public:
  explicit OpsFormat(const RowSettings& options) : columns_(options) {
    std::string text;
    JsonWriter json(&text, kStyle, 4);
    for (const std::string& title : columns_.titles()) {
      text.clear();
      json.Key(title);
      keys_.push_back(text);
    }
  }

  void AppendOp(const OpDiff& op, int stack, OpBlock* block) const override {
    std::string* out = &block->bytes;
    *out += ',';
    JsonWriter json(out, kStyle, 1);
    json.Key(op.op);
    json.BeginObject();
    json.Member("is_same", IsSameByThresholds(op, columns_.options().mode));
    json.Key("op_items");
    json.BeginArray();
    RowCells row;
    for (size_t i = 0; i < op.rows_used; ++i) {
      columns_.Fill(op, i, i == 0 ? stack : -1, nullptr, &row);
      json.BeginObject();
      for (size_t k = 0; k < row.cells.size(); ++k) WriteMember(&json, keys_[k], row.cells[k]);
      json.EndObject();
    }
    json.EndArray();
    json.EndObject();
    block->row_ends.push_back(out->size());
  }

 private:
  void WriteMember(JsonWriter* json, const std::string& key, const Cell& cell) const {
    json->KeptKey(key);
    if (cell.kind != Cell::Kind::kShared) return WriteCell(json, cell);
    json->Value(columns_.options().stacks->Frames(static_cast<uint32_t>(cell.integer)));
  }

  const RowColumns columns_;
  std::vector<std::string> keys_;  // of the members of a row
};

/// {row: {..}} of one side of an op.
void WriteDataInfo(JsonWriter* json, const OpDiff& op, CompareMode mode, std::string_view state) {
  json->BeginObject();
  for (size_t i = 0; i < op.rows_used; ++i) {
    const ItemView& a = op.target[i];
    if (ItemStateText(a.state) != state) continue;
    json->Key(a.name);
    json->BeginObject();
    if (mode == CompareMode::kChecksum) json->Member("NPU MD5", a.checksum);
    std::string text;
    for (size_t k = 0; k < kStatCount && mode != CompareMode::kChecksum; ++k) {
      json->Key("NPU " + std::string(kStatNames[k]));
      WriteCell(json, StatCell(a.stats[k], &text));
    }
    json->Member("NPU P2POp peer", PeerOf(a));
    json->EndObject();
  }
  json->EndObject();
}

/// Readers of this file are used to frames that stand two levels below their key.
std::string FramesText(const std::vector<std::string>& frames) {
  if (frames.empty()) return "[]";
  JsonWriter list({.comma = ",\n          "});
  list.Value(frames);
  const std::string text = list.Take();
  return "[\n          " + text.substr(1, text.size() - 2) + "\n      ]";
}

Status WriteSuspect(JsonWriter* json, const Suspect& suspect, const Mapping& mapping) {
  MSP_ASSIGN_OR_RETURN(DumpPair pair, OpenDumpPair(suspect.files, mapping));
  UseStatistics(&pair);
  JsonDoc target, golden;
  OpDiff diff;
  MSP_RETURN_IF_ERROR(DiffOpAt(pair, suspect.op, &target, &golden, &diff));
  const std::string_view name = pair.target->ops()[suspect.op].name;
  json->BeginObject();
  json->Member("op_name", name);
  json->ObjectMember("data_info", [&] {
    json->Key("input"), WriteDataInfo(json, diff, pair.options.mode, "input");
    json->Key("output"), WriteDataInfo(json, diff, pair.options.mode, "output");
  });
  std::optional<uint32_t> stack;
  if (pair.stacks) stack = pair.stacks->StackOf(name);
  json->RawMember("stack_info", stack ? FramesText(pair.stacks->Frames(*stack)) : "null");
  json->EndObject();
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<OpsJson>> OpsJson::Create(RowSettings options, const std::string& path) {
  options.analysis = true;
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  return std::unique_ptr<OpsJson>(new OpsJson(std::move(file), std::make_unique<OpsFormat>(options)));
}

void OpsJson::AppendOp(const OpDiff& op, int stack, OpBlock* block) const { format_->AppendOp(op, stack, block); }

Status OpsJson::Take(OpBlock&& block) {
  // Each op starts with the comma behind the one before.
  std::string_view text = block.bytes;
  if (same_.empty() && !text.empty()) {
    MSP_RETURN_IF_ERROR(file_.Write("{"));
    text.remove_prefix(1);
  }
  size_t begin = 0;
  for (const uint64_t end : block.row_ends) {
    // A line break cannot be part of a name here.
    const size_t value = block.bytes.find(kSame, begin) + kSame.size();
    same_.push_back(block.bytes[value] == 't');
    begin = end;
  }
  return file_.Write(text);
}

Status OpsJson::Commit() {
  MSP_RETURN_IF_ERROR(file_.Write(same_.empty() ? "{}" : "\n}"));
  MSP_RETURN_IF_ERROR(file_.CommitResult());
  paths_ = {file_.path()};
  return OkStatus();
}

void UseStatistics(DumpPair* pair) {
  if (pair->options.mode != CompareMode::kTensor) return;
  pair->options.mode = CompareMode::kStatistics;
  pair->options.tensors = nullptr;
  pair->tensors.reset();
}

StatusOr<std::string> SuspectsJson(const std::vector<Suspect>& suspects, const Mapping& mapping) {
  JsonWriter json(kSuspectStyle);
  json.BeginObject();
  for (const Suspect& suspect : suspects) {
    json.Key("rank_" + std::to_string(std::max(suspect.files.rank, 0)));
    json.BeginArray();
    MSP_RETURN_IF_ERROR(WriteSuspect(&json, suspect, mapping));
    json.EndArray();
  }
  json.EndObject();
  return json.Take();
}

}  // namespace msprobe
