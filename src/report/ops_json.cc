#include "report/ops_json.h"

#include <cmath>

#include "base/text.h"
#include "compare/first_difference.h"
#include "compare/op_at.h"

namespace msprobe {
namespace {

constexpr std::string_view kSame = "\n        \"is_same\": ";
constexpr std::string_view kStatNames[] = {"max", "min", "mean", "l2norm"};
constexpr std::string_view kRelativeNames[] = {"Max", "Min", "Mean", "Norm"};

std::string_view StateText(ItemState state) {
  switch (state) {
    case ItemState::kInput:
    case ItemState::kKwarg: return "input";
    case ItemState::kOutput: return "output";
    case ItemState::kParameter: return "parameters";
    case ItemState::kParameterGrad: return "parameters_grad";
    case ItemState::kDebug: return "debug";
  }
  return "";
}

std::string_view PeerOf(const ItemView& item) {
  return item.p2p_op == "None" ? std::string_view("None") : std::string_view(item.p2p_peer);
}

void AppendStat(const StatValue& v, std::string* out) {
  if (v.kind == StatValue::Kind::kBool) {
    *out += v.flag ? "true" : "false";
    return;
  }
  if (v.kind == StatValue::Kind::kDouble && !std::isnan(v.d)) return AppendJsonNumber(*out, v.d);
  std::string text;
  v.AppendText(&text);
  if (v.kind == StatValue::Kind::kInt || v.kind == StatValue::Kind::kUInt) {
    *out += text;
  } else {
    AppendJsonString(*out, text == "nan" || text == "NaN" ? std::string_view("Nan") : std::string_view(text));
  }
}

void AppendFrames(const std::vector<std::string>& frames, std::string_view indent, std::string* out) {
  *out += '[';
  for (size_t i = 0; i < frames.size(); ++i) {
    *out += i ? ",\n" : "\n";
    *out += indent;
    *out += "    ";
    AppendJsonString(*out, frames[i]);
  }
  if (!frames.empty()) {
    *out += '\n';
    *out += indent;
  }
  *out += ']';
}

class OpsFormat : public RowFormat {
 public:
  explicit OpsFormat(const TableSpec& spec) : mode_(spec.mode), stacks_(spec.stacks) {}

  void AppendOp(const OpDiff& op, int stack, RowBlock* block) const override {
    std::string* out = &block->bytes;
    *out += ",\n    ";
    AppendJsonString(*out, op.op);
    *out += ": {";
    *out += kSame;
    *out += IsSameByThresholds(op, mode_) ? "true" : "false";
    *out += ",\n        \"op_items\": [";
    for (size_t i = 0; i < op.rows_used; ++i) {
      *out += i ? ",\n            {" : "\n            {";
      AppendRow(op, i, i == 0 ? stack : -1, out);
      *out += "\n            }";
    }
    *out += op.rows_used ? "\n        ]\n    }" : "]\n    }";
    block->row_ends.push_back(out->size());
  }

 private:
  /// Writes the members of one row.
  class Members {
   public:
    explicit Members(std::string* out) : out_(out) {}
    std::string* Key(std::string_view key) {
      *out_ += first_ ? "\n                " : ",\n                ";
      first_ = false;
      AppendJsonString(*out_, key);
      *out_ += ": ";
      return out_;
    }
    void Text(std::string_view key, std::string_view value) { AppendJsonString(*Key(key), value); }
    void Pair(std::string_view key, std::string_view a, std::string_view b) {
      Text("NPU " + std::string(key), a);
      Text("Bench " + std::string(key), b);
    }

   private:
    std::string* out_;
    bool first_ = true;
  };

  void AppendRow(const OpDiff& op, size_t i, int stack, std::string* out) const {
    const ItemView& a = op.target[i];
    const DiffRow& row = op.rows[i];
    const ItemView* b = row.golden == kNoItem ? nullptr : &op.golden[static_cast<size_t>(row.golden)];
    const auto theirs = [&](std::string_view v) { return b ? v : std::string_view("N/A"); };
    Members m(out);
    m.Pair("Name", a.name, theirs(b ? b->name : std::string_view()));
    m.Pair("Dtype", a.dtype, theirs(b ? b->dtype : std::string_view()));
    m.Pair("Tensor Shape", a.shape, theirs(b ? b->shape : std::string_view()));
    m.Pair("Requires_grad", a.GradText(), theirs(b ? b->GradText() : std::string_view()));
    if (mode_ == CompareMode::kChecksum) {
      m.Text("NPU MD5", a.checksum);
      m.Text("BENCH MD5", theirs(b ? b->checksum : std::string_view()));
    } else {
      AppendStats(a, b, row, &m);
    }
    *m.Key("Requires_grad Consistent") += row.grad_consistent ? "true" : "false";
    const std::string_view equal = !b ? "N/A" : a.checksum == b->checksum ? "pass" : "Different";
    m.Text("Result", mode_ == CompareMode::kChecksum ? equal : "");
    if (mode_ == CompareMode::kChecksum) {
      *m.Key("Err_message") += "NaN";
    } else {
      m.Text("Err_message", "");
    }
    if (stack >= 0) {
      AppendFrames(stacks_->Frames(static_cast<uint32_t>(stack)), "                ", m.Key("NPU_Stack_Info"));
    } else if (stacks_) {
      m.Text("NPU_Stack_Info", "N/A");
    }
    m.Text("state", StateText(a.state));
    m.Text("api_origin_name", op.op);
    m.Pair("P2POp op", a.p2p_op, theirs(b ? b->p2p_op : std::string_view()));
    m.Pair("P2POp peer", PeerOf(a), theirs(b ? PeerOf(*b) : std::string_view()));
  }

  static void AppendStats(const ItemView& a, const ItemView* b, const DiffRow& row, Members* m) {
    std::string text;
    const auto take = [&] {
      std::string out;
      out.swap(text);
      return out;
    };
    for (size_t k = 0; k < kStatCount; ++k) {
      row.diff[k].AppendDiff(&text);
      m->Text(k == kNorm ? "L2norm diff" : std::string(kRelativeNames[k]) + " diff", take());
    }
    for (size_t k = 0; k < kStatCount; ++k) {
      row.diff[k].AppendRel(&text);
      m->Text(std::string(kRelativeNames[k]) + "RelativeErr", take());
    }
    for (size_t k = 0; k < kStatCount; ++k) AppendStat(a.stats[k], m->Key("NPU " + std::string(kStatNames[k])));
    for (size_t k = 0; k < kStatCount; ++k) {
      std::string* out = m->Key("Bench " + std::string(kStatNames[k]));
      if (b) {
        AppendStat(b->stats[k], out);
      } else {
        *out += "\"N/A\"";
      }
    }
  }

  const CompareMode mode_;
  const StackFile* stacks_;
};

/// "input": {row: {..}}, of one side of an op.
std::string DataInfo(const OpDiff& op, CompareMode mode, std::string_view state) {
  std::string out;
  for (size_t i = 0; i < op.rows_used; ++i) {
    const ItemView& a = op.target[i];
    if (StateText(a.state) != state) continue;
    out += out.empty() ? "\n          " : ",\n          ";
    AppendJsonString(out, a.name);
    out += ": {";
    if (mode == CompareMode::kChecksum) {
      out += "\n            \"NPU MD5\": ";
      AppendJsonString(out, a.checksum);
      out += ',';
    }
    for (size_t k = 0; k < kStatCount && mode != CompareMode::kChecksum; ++k) {
      out += "\n            \"NPU " + std::string(kStatNames[k]) + "\": ";
      AppendStat(a.stats[k], &out);
      out += ',';
    }
    out += "\n            \"NPU P2POp peer\": ";
    AppendJsonString(out, PeerOf(a));
    out += "\n          }";
  }
  return out.empty() ? "{}" : "{" + out + "\n        }";
}

StatusOr<std::string> SuspectJson(const Suspect& suspect, const Mapping& mapping) {
  MSP_ASSIGN_OR_RETURN(DumpPair pair, OpenDumpPair(suspect.files, mapping));
  UseStatistics(&pair);
  JsonDoc target, golden;
  OpDiff diff;
  MSP_RETURN_IF_ERROR(DiffOpAt(pair, suspect.op, &target, &golden, &diff));
  std::string out = "    {\n      \"op_name\": ";
  AppendJsonString(out, pair.target->ops()[suspect.op].name);
  out += ",\n      \"data_info\": {\n        \"input\": " + DataInfo(diff, pair.options.mode, "input");
  out += ",\n        \"output\": " + DataInfo(diff, pair.options.mode, "output") + "\n      },\n      \"stack_info\": ";
  std::optional<uint32_t> stack;
  if (pair.stacks) stack = pair.stacks->StackOf(pair.target->ops()[suspect.op].name);
  if (stack) {
    AppendFrames(pair.stacks->Frames(*stack), "      ", &out);
  } else {
    out += "null";
  }
  return out + "\n    }";
}

}  // namespace

StatusOr<std::unique_ptr<OpsJson>> OpsJson::Create(const TableSpec& spec) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(spec.path));
  return std::unique_ptr<OpsJson>(new OpsJson(std::move(file), std::make_unique<OpsFormat>(spec)));
}

Status OpsJson::Take(RowBlock&& block) {
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
  std::string out = "{";
  for (size_t i = 0; i < suspects.size(); ++i) {
    MSP_ASSIGN_OR_RETURN(const std::string one, SuspectJson(suspects[i], mapping));
    out += i ? ",\n  " : "\n  ";
    AppendJsonString(out, "rank_" + std::to_string(std::max(suspects[i].files.rank, 0)));
    out += ": [\n" + one + "\n  ]";
  }
  return out + "\n}";
}

}  // namespace msprobe
