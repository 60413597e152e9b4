#include "report/structure_compare.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/message.h"
#include "base/parallel.h"
#include "base/text.h"
#include "json/writer.h"
#include "sheet/table.h"

namespace msprobe {
namespace {

constexpr size_t kRowsPerBlock = 256, kBlocksAlive = 8;
constexpr size_t kChangesShown = 5;  // of each kind, on the terminal

/// What stands against each other in a row, or in the rows of one call.
struct CallPair {
  uint32_t target = kNoCall, golden = kNoCall;
};

/// Calls of the target in their order; those of the golden run alone stand behind the one that they followed there.
BigArray<CallPair> OrderRows(const StructureDiff& diff, size_t golden_calls) {
  BigArray<uint32_t> target_of(golden_calls, kNoCall);
  for (uint32_t t = 0; t < diff.golden_call.size(); ++t) {
    if (diff.golden_call[t] != kNoCall) target_of[diff.golden_call[t]] = t;
  }
  // By the number of target rows in front of it.
  struct Lone {
    uint32_t before = 0, golden = 0;
  };
  BigArray<Lone> lone;
  uint32_t before = 0, next = 0;
  for (uint32_t g = 0; g < golden_calls && next < diff.golden_only.size(); ++g) {
    if (target_of[g] != kNoCall) before = target_of[g] + 1;
    if (diff.golden_only[next] == g) lone.push_back({before, diff.golden_only[next++]});
  }
  std::sort(lone.begin(), lone.end(), [](const Lone& a, const Lone& b) {
    return a.before != b.before ? a.before < b.before : a.golden < b.golden;
  });
  BigArray<CallPair> out;
  out.reserve(diff.golden_call.size() + lone.size());
  size_t at = 0;
  for (uint32_t t = 0; t <= diff.golden_call.size(); ++t) {
    while (at < lone.size() && lone[at].before == t) out.push_back({kNoCall, lone[at++].golden});
    if (t < diff.golden_call.size()) out.push_back({t, diff.golden_call[t]});
  }
  return out;
}

/// The items of one side's call.
struct Side {
  JsonDoc doc;
  std::vector<Item> scratch;
  std::vector<ItemView> items;
  size_t used = 0;

  Status Read(const DumpFile& dump, const StructureCall* call) {
    used = 0;
    if (!call || call->op == UINT32_MAX) return OkStatus();
    MSP_RETURN_IF_ERROR(dump.ParseOp(call->op, &doc));
    DescribeOp(call->name, doc, CompareMode::kStatistics, &scratch, &items, &used);
    return OkStatus();
  }
};

struct Block {
  RowBlock rows;
  CompareCounts counts;
};

class RowMaker {
 public:
  RowMaker(const DumpPair& pair, const Structure& target, const Structure& golden, const StructureDiff& diff,
           bool cross)
      : pair_(pair), target_(target), golden_(golden), diff_(diff), cross_(cross) {}

  /// Rows are only counted where `table` is null.
  Status Append(const CallPair& calls, const ResultTable* table, Side* target_side, Side* golden_side,
                Block* block) const {
    const StructureCall* a = calls.target == kNoCall ? nullptr : &target_.calls()[calls.target];
    const StructureCall* b = calls.golden == kNoCall ? nullptr : &golden_.calls()[calls.golden];
    MSP_RETURN_IF_ERROR(target_side->Read(*pair_.target, a));
    MSP_RETURN_IF_ERROR(golden_side->Read(*pair_.golden, b));
    block->counts.ops += a != nullptr;
    block->counts.matched_ops += a && b;
    const StructureKind kind = a ? diff_.call_kind[calls.target] : StructureKind::kGoldenOnly;
    const Row row{a, b, kind, table};
    if (target_side->used == 0 && golden_side->used == 0) {
      Add(row, nullptr, nullptr, true, block);
      return OkStatus();
    }
    std::unordered_map<std::string_view, size_t> places;
    for (size_t i = 0; i < golden_side->used; ++i) places.emplace(golden_side->items[i].suffix, i);
    std::vector<bool> taken(golden_side->used, false);
    bool first = true;
    for (size_t i = 0; i < target_side->used; ++i, first = false) {
      const auto it = places.find(target_side->items[i].suffix);
      const bool found = it != places.end() && !taken[it->second];
      if (found) taken[it->second] = true;
      Add(row, &target_side->items[i], found ? &golden_side->items[it->second] : nullptr, first, block);
    }
    for (size_t i = 0; i < golden_side->used; ++i) {
      if (taken[i]) continue;
      Add(row, nullptr, &golden_side->items[i], first, block);
      first = false;
    }
    return OkStatus();
  }

 private:
  struct Row {
    const StructureCall *target, *golden;
    StructureKind kind;
    const ResultTable* table;
  };

  /// The class of a module, or what a function is called.
  static std::string_view TypeOf(const StructureCall* call) {
    if (!call) return kNotAvailableCell;
    const std::string_view base = ParseOpName(call->name).base;
    return call->function.empty() ? base.substr(base.rfind('.') + 1) : base;
  }

  void Add(const Row& row, const ItemView* a, const ItemView* b, bool first, Block* block) const {
    std::vector<std::string> findings;
    Verdict verdict = Verdict::kPass;
    const auto find = [&](Verdict how, std::string_view text) {
      verdict = std::max(verdict, how);
      findings.push_back(std::string(VerdictText(how)) + ": " + std::string(text));
    };
    if (!row.golden) {
      find(Verdict::kError, "only in NPU.");
    } else if (!row.target) {
      find(Verdict::kError, "only in Bench.");
    } else if (row.kind == StructureKind::kRenamed) {
      find(Verdict::kWarning, "the name differs.");
    } else if (row.kind == StructureKind::kMoved) {
      find(Verdict::kWarning, "at another place.");
    } else if (row.kind == StructureKind::kClass) {
      find(Verdict::kWarning, "the class differs.");
    }
    if (row.target && row.golden && (a || b)) CompareItems(a, b, find);
    std::string message;
    JsonWriter(&message).Value(findings);
    const auto name = [](const StructureCall* call, const ItemView* item) {
      return item ? std::string_view(item->name) : call ? call->name : kNotAvailableCell;
    };
    const bool items = a || b;
    const auto cell = [](const ItemView* item, auto&& get) { return item ? get(*item) : kNotAvailableCell; };
    const auto dtype = [](const ItemView& i) { return i.dtype; };
    const auto shape = [](const ItemView& i) { return std::string_view(i.shape); };
    const auto grad = [](const ItemView& i) { return i.GradText(); };
    Cell result = Cell::Word(VerdictText(verdict));
    if (verdict != Verdict::kPass) result.color = verdict == Verdict::kError ? Cell::Color::kRed : Cell::Color::kYellow;
    std::vector<Cell> cells{Cell::Text(items && !a ? kNotAvailableCell : name(row.target, a)),
                            Cell::Text(items && !b ? kNotAvailableCell : name(row.golden, b)),
                            Cell::Text(TypeOf(row.target)),
                            Cell::Text(TypeOf(row.golden)),
                            Cell::Text(cell(a, dtype)),
                            Cell::Text(cell(b, dtype)),
                            Cell::Text(cell(a, shape)),
                            Cell::Text(cell(b, shape)),
                            Cell::Text(cell(a, grad)),
                            Cell::Text(cell(b, grad)),
                            Cell::Word(StructureKindText(row.kind)),
                            result,
                            Cell::Text(message)};
    std::string stack;
    if (pair_.stacks) {
      const auto id = first && row.target ? pair_.stacks->StackOf(row.target->name) : std::nullopt;
      stack = id ? StackCell(pair_.stacks->Frames(*id)) : std::string(kNotAvailableCell);
      cells.push_back(Cell::Text(stack));
    }
    if (row.table) row.table->AppendRow(cells, Cell::Color::kNone, &block->rows);
    CompareCounts& n = block->counts;
    ++n.rows;
    ++(verdict == Verdict::kError ? n.error : verdict == Verdict::kWarning ? n.warning : n.pass);
  }

  template <typename Find>
  void CompareItems(const ItemView* a, const ItemView* b, const Find& find) const {
    if (!a || !b) return find(Verdict::kError, a ? "the item is only in NPU." : "the item is only in Bench.");
    if (!(cross_ ? SameDType(a->dtype, b->dtype) : a->dtype == b->dtype)) find(Verdict::kError, "the dtype differs.");
    if (a->shape != b->shape) find(Verdict::kError, "the shape differs.");
    if (!cross_ && a->requires_grad != b->requires_grad) find(Verdict::kError, "requires_grad differs.");
  }

  const DumpPair& pair_;
  const Structure &target_, &golden_;
  const StructureDiff& diff_;
  const bool cross_;
};

StatusOr<Block> MakeBlock(const RowMaker& maker, const ResultTable* table, const BigArray<CallPair>& rows,
                          size_t block) {
  Block out;
  Side target, golden;
  const size_t end = std::min(rows.size(), (block + 1) * kRowsPerBlock);
  for (size_t i = block * kRowsPerBlock; i < end; ++i) {
    MSP_RETURN_IF_ERROR(maker.Append(rows[i], table, &target, &golden, &out));
  }
  return out;
}

/// Rows of a workbook must be counted before.
StatusOr<std::unique_ptr<ResultTable>> OpenTable(const RowMaker& maker, const BigArray<CallPair>& rows,
                                                 const TableSpec& spec, bool has_items) {
  if (!IsWorkbook(spec.path)) return CreateCsvTable(spec);
  uint64_t count = rows.size();
  if (has_items) {
    count = 0;
    MSP_RETURN_IF_ERROR(ParallelOrdered<Block>((rows.size() + kRowsPerBlock - 1) / kRowsPerBlock, kBlocksAlive,
                                               [&](size_t i) { return MakeBlock(maker, nullptr, rows, i); },
                                               [&](size_t, Block&& block) -> Status {
                                                 count += block.counts.rows;
                                                 return OkStatus();
                                               }));
  }
  return CreateXlsxTable(spec, count);
}

std::string ListPath(const std::string& table) {
  const size_t dot = table.rfind('.');
  return table.substr(0, dot) + "_structure.json";
}

}  // namespace

StatusOr<StructureResult> CompareStructures(const DumpPair& pair, const Structure& target, const Structure& golden,
                                            const std::vector<LayerRule>& rules, const std::string& path,
                                            const Progress& progress) {
  MSP_ASSIGN_OR_RETURN(const Framework target_framework, FrameworkOf(*pair.target));
  MSP_ASSIGN_OR_RETURN(const Framework golden_framework, FrameworkOf(*pair.golden));
  TableSpec spec;
  spec.path = path;
  spec.columns = {"NPU Name",    "Bench Name",       "NPU Type",           "Bench Type",        "NPU Dtype",
                  "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape", "NPU Requires_grad", "Bench Requires_grad",
                  "Difference",  "Result",           "Err_message"};
  if (pair.stacks) spec.columns.emplace_back("NPU_Stack_Info");
  StructureResult out;
  StructureDiff& diff = out.summary.diff;
  diff = DiffStructures(target, golden, rules);
  const RowMaker maker(pair, target, golden, diff, target_framework != golden_framework);
  const BigArray<CallPair> rows = OrderRows(diff, golden.calls().size());
  const bool has_items = !pair.target->ops().empty() || !pair.golden->ops().empty();
  MSP_ASSIGN_OR_RETURN(const std::unique_ptr<ResultTable> table, OpenTable(maker, rows, spec, has_items));
  const size_t blocks = (rows.size() + kRowsPerBlock - 1) / kRowsPerBlock;
  MSP_RETURN_IF_ERROR(ParallelOrdered<Block>(
      blocks, kBlocksAlive, [&](size_t i) { return MakeBlock(maker, table.get(), rows, i); },
      [&](size_t i, Block&& block) -> Status {
        if (InterruptRequested()) return Interrupted();
        out.counts.rows += block.counts.rows;
        out.counts.pass += block.counts.pass;
        out.counts.warning += block.counts.warning;
        out.counts.error += block.counts.error;
        out.counts.ops += block.counts.ops;
        out.counts.matched_ops += block.counts.matched_ops;
        if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(blocks));
        return table->Take(std::move(block.rows));
      }));
  MSP_ASSIGN_OR_RETURN(OutputFile list, OutputFile::Create(ListPath(path)));
  MSP_RETURN_IF_ERROR(WriteStructureDiff(diff, [&](std::string_view text) { return list.Write(text); }));
  MSP_RETURN_IF_ERROR(list.Write("\n"));
  MSP_RETURN_IF_ERROR(table->Commit());
  MSP_RETURN_IF_ERROR(list.CommitResult());
  out.paths = table->paths();
  out.summary.list_path = list.path();
  out.golden_only_calls = diff.golden_only.size();
  return out;
}

void MappingSuggestion::Add(const SuggestedMapping& one) {
  for (const LayerRule& rule : one.rules) {
    auto known =
        std::find_if(sum_.rules.begin(), sum_.rules.end(), [&](const LayerRule& r) { return r.type == rule.type; });
    if (known == sum_.rules.end()) known = sum_.rules.insert(known, LayerRule{rule.type, {}});
    for (const auto& child : rule.children) {
      const auto same = std::find_if(known->children.begin(), known->children.end(),
                                     [&](const auto& c) { return c.first == child.first; });
      if (same == known->children.end()) {
        known->children.push_back(child);
      } else if (same->second != child.second) {
        sum_.left_out.push_back(rule.type + ": {" + child.first + ": " + child.second +
                                "}, for another rank or step has " + same->second);
      }
    }
  }
  sum_.left_out.insert(sum_.left_out.end(), one.left_out.begin(), one.left_out.end());
  for (const std::string& line : one.joined) {
    if (std::ranges::find(sum_.joined, line) == sum_.joined.end()) sum_.joined.push_back(line);
  }
  sum_.modules += one.modules;
  sum_.calls += one.calls;
  sum_.matched_with += one.matched_with;
  sum_.matched_without += one.matched_without;
}

Status MappingSuggestion::Write(const std::string& path, std::string_view target, std::string_view golden) const {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(SuggestedMappingYaml(sum_, target, golden)));
  return file.Commit();
}

namespace {

Message Counted(StructureKind kind, uint64_t n) {
  if (kind == StructureKind::kTargetOnly) return Msg("{} target only", n);
  if (kind == StructureKind::kGoldenOnly) return Msg("{} golden only", n);
  return Message(fmt::format("{} {}", n, StructureKindText(kind)));
}

Message ChangeText(const StructureChange& change) {
  std::string names = OneLine(change.target);
  if (!change.golden.empty()) names += (change.target.empty() ? "" : " -> ") + OneLine(change.golden);
  if (change.kind == StructureKind::kClass) {
    names += ": " + OneLine(change.target_class) + " -> " + OneLine(change.golden_class);
  }
  if (!change.detail.empty()) names += ", " + OneLine(change.detail);
  if (change.kind == StructureKind::kTargetOnly) return Msg("    target only: {}\n", names);
  if (change.kind == StructureKind::kGoldenOnly) return Msg("    golden only: {}\n", names);
  return Message(fmt::format("    {}: {}\n", StructureKindText(change.kind), names));
}

}  // namespace

Message StructureText(const StructureSummary& summary) {
  std::vector<Message> counts;
  for (size_t k = 1; k < kStructureKinds; ++k) {
    const uint64_t n = summary.diff.counts[k];
    if (n > 0) counts.push_back(Counted(static_cast<StructureKind>(k), n));
  }
  if (counts.empty()) return Msg("structure: no difference\n");
  const Message all = Joined(counts, Msg(", "));
  Message out = summary.list_path.empty() ? Msg("structure: {}\n", all)
                                          : Msg("structure: {} ({})\n", all, OneLine(summary.list_path));
  for (size_t k = 1; k < kStructureKinds; ++k) {
    size_t shown = 0;
    for (size_t i = 0; i < summary.diff.changes.size(); ++i) {
      if (static_cast<size_t>(summary.diff.changes.KindAt(i)) != k) continue;
      if (shown++ == kChangesShown) {
        out += Message("    ...\n");
        break;
      }
      out += ChangeText(summary.diff.changes[i]);
    }
  }
  return out;
}

void WriteStructure(JsonWriter* json, const StructureSummary& summary) {
  json->BeginObject();
  for (size_t k = 1; k < kStructureKinds; ++k) {
    std::string key(StructureKindText(static_cast<StructureKind>(k)));
    std::replace(key.begin(), key.end(), ' ', '_');
    json->Member(key, summary.diff.counts[k]);
  }
  json->Member("list", summary.list_path);
  json->EndObject();
}

}  // namespace msprobe
