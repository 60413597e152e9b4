#include "dump/repair/verify.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <unordered_set>

#include "base/file.h"
#include "base/message.h"
#include "base/name_hash.h"
#include "base/temp_names.h"
#include "base/text.h"
#include "dump/flatten.h"
#include "dump/reader.h"
#include "dump/repair/certificate_check.h"
#include "dump/repair/op_check.h"
#include "dump/repair/tally.h"
#include "dump/repair/tensor_check.h"
#include "dump/step_summary.h"
#include "json/members.h"
#include "json/parser.h"

namespace msprobe {
namespace {

constexpr std::unique_ptr<OpCheck> (*kOpChecks[])() = {
#define MSPROBE_OP_CHECK(name) Make##name,
#include "dump/repair/op_checks.def"
#undef MSPROBE_OP_CHECK
};

class RankVerifier {
 public:
  explicit RankVerifier(RankCheck* check) : check_(check) {}

  Status Run() {
    MSP_RETURN_IF_ERROR(ListFiles());
    ReadSummary();
    const std::string path = JoinPath(check_->path, debug_ ? "debug.json" : "dump.json");
    auto dump = DumpFile::Open(path);
    if (!dump.ok()) return Unreadable(dump.status());
    check_->readable = true;
    dump_.emplace(*std::move(dump));
    check_->bytes += dump_->file().text().size();
    if (!dump_->truncated().empty()) AddFinding("truncated", dump_->truncated());
    MSP_RETURN_IF_ERROR(CheckOps());
    MSP_RETURN_IF_ERROR(CheckConstruct());
    MSP_RETURN_IF_ERROR(CheckStacks());
    CheckSummary();
    return OkStatus();
  }

 private:
  void AddFinding(const char* kind, Message text, uint64_t count = 1, bool note = false) {
    check_->findings.push_back({kind, count, std::move(text), note});
  }

  /// A file of the user that cannot be read is a finding; what is wrong with this machine ends the command.
  Status Unreadable(const Status& status) {
    if (status.code() != Code::kBadInput) return status;
    AddFinding("unreadable", status.text());
    return OkStatus();
  }

  Status ListFiles() {
    MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(check_->path));
    Tally temps;
    for (const std::string& name : names) {
      if (IsTempName(name)) temps.Add(name);
      if (name == "dump.json") debug_ = false;
      if (name == "stack.json") has_stacks_ = true;
      if (name == "construct.json") has_construct_ = true;
    }
    temps.Report("temporary_file", Msg("{} temporary files of a process that was killed", temps.count()), false,
                 &check_->findings);
    return OkStatus();
  }

  void ReadSummary() {
    check_->state = "unknown";
    const std::string path = JoinPath(check_->path, kSummaryName);
    if (!IsRegularFile(path)) return;
    auto summary = StepSummary::Read(path);
    if (!summary.ok()) {
      AddFinding("unreadable", summary.status().text());
      return;
    }
    summary_ = *std::move(summary);
    check_->state = summary_->state;
  }

  Status CheckOps() {
    TensorCheck tensors(check_->path, dump_->dump_data_dir());
    std::vector<std::unique_ptr<OpCheck>> checks;
    for (const auto make : kOpChecks) checks.push_back(make());
    Tally broken;
    JsonDoc doc;
    std::vector<Item> items;
    const auto& ops = dump_->ops();
    size_t released = 0;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (i % 4096 == 0) {
        if (InterruptRequested()) return Interrupted();
        dump_->file().Release(released, ops[i].offset);
        released = ops[i].offset;
      }
      for (const auto& check : checks) check->SeeOp(ops[i].name);
      if (!dump_->ParseOp(i, &doc).ok()) {
        broken.Add(ops[i].name);
        continue;
      }
      items.clear();
      FlattenOp(ops[i].name, doc, &items);
      check_->items += items.size();
      for (const Item& item : items) {
        for (const auto& check : checks) check->SeeItem(item);
        const JsonValue* leaf = item.leaf;
        if (const JsonValue* tensor = leaf->Find("tensor")) leaf = tensor;
        if (leaf->Find("shape") == nullptr) continue;
        ++check_->tensors;
        tensors.Check(*leaf);
      }
    }
    check_->ops = ops.size();
    broken.Report("broken_op", Msg("{} ops that cannot be parsed", broken.count()), false, &check_->findings);
    tensors.Report(&check_->findings);
    check_->tensor_files = tensors.good();
    check_->bytes += tensors.bytes();
    for (const auto& check : checks) check->Report(&check_->findings);
    return OkStatus();
  }

  Status CheckConstruct() {
    if (!has_construct_) return OkStatus();
    const auto file = MappedFile::Open(JoinPath(check_->path, "construct.json"));
    if (!file.ok()) return Unreadable(file.status());
    check_->bytes += file->text().size();
    std::vector<bool> listed(dump_->ops().size());
    uint64_t entries = 0;
    Tally extra;
    Message truncated;
    const auto take = [&](std::string_view key, std::string_view, size_t) -> Status {
      ++entries;
      if (const auto op = dump_->FindOp(key)) {
        listed[*op] = true;
      } else {
        only_construct_.insert(HashName64(key));
        extra.Add(key);
      }
      return OkStatus();
    };
    const Status read = ForEachMember(*file, "a construct.json", &truncated, take);
    if (!read.ok()) return Unreadable(read);
    if (!truncated.empty()) AddFinding("truncated", truncated);
    if (entries == 0 || dump_->task() == "structure") return OkStatus();  // level L1 lists none
    extra.Report("construct_without_op",
                 Msg("{} entries of construct.json are not in dump.json (filtered, or not finished)", extra.count()),
                 true, &check_->findings);
    Tally unlisted, unlisted_backward;
    for (size_t i = 0; i < listed.size(); ++i) {
      const std::string_view name = dump_->ops()[i].name;
      if (listed[i] || Contains(name, ".parameters_grad")) continue;
      (Contains(name, ".backward") ? unlisted_backward : unlisted).Add(name);
    }
    unlisted.Report("op_without_parent", Msg("{} ops are not in construct.json", unlisted.count()), false,
                    &check_->findings);
    unlisted_backward.Report("op_without_parent",
                             Msg("{} backward ops are not in construct.json", unlisted_backward.count()), true,
                             &check_->findings);
    return OkStatus();
  }

  Status CheckStacks() {
    if (!has_stacks_) return OkStatus();
    const auto file = MappedFile::Open(JoinPath(check_->path, "stack.json"));
    if (!file.ok()) return Unreadable(file.status());
    check_->bytes += file->text().size();
    std::vector<bool> used(dump_->ops().size());
    Tally unknown;
    const auto name_op = [&](std::string_view name) {
      if (const auto op = dump_->FindOp(name)) {
        used[*op] = true;
      } else if (!only_construct_.contains(HashName64(name))) {
        unknown.Add(name);
      }
    };
    Message truncated;
    JsonDoc doc;
    const auto take = [&](std::string_view key, std::string_view text, size_t at) -> Status {
      MSP_RETURN_IF_ERROR(ParseJson(text, file->path(), &doc, at));
      const bool grouped = doc.IsArray() && doc.size() == 2 && doc[0].IsArray() && doc[1].IsArray();
      if (!grouped) {
        name_op(key);
        return OkStatus();
      }
      for (const JsonValue& name : doc[0].Items()) {
        if (name.IsString()) name_op(name.Text());
      }
      return OkStatus();
    };
    const Status read = ForEachMember(*file, "a stack.json", &truncated, take);
    if (!read.ok()) return Unreadable(read);
    if (!truncated.empty()) AddFinding("truncated", truncated);
    if (dump_->task() == "structure" && !has_construct_) return OkStatus();
    const bool ended_early = check_->state != "complete" && check_->state != "unknown";
    unknown.Report("stack_of_unknown_op",
                   ended_early
                       ? Msg("{} calls had begun when writing ended and are only in stack.json", unknown.count())
                       : Msg("{} names in stack.json are neither in dump.json nor in construct.json", unknown.count()),
                   ended_early || dump_->task() == "structure", &check_->findings);
    Tally without;
    for (size_t i = 0; i < used.size(); ++i) {
      const std::string_view name = dump_->ops()[i].name;
      const bool forward = EndsWith(name, ".forward") || Contains(name, ".forward.");
      if (!used[i] && forward) without.Add(name);
    }
    without.Report("op_without_stack", Msg("{} forward ops are not in stack.json", without.count()), false,
                   &check_->findings);
    return OkStatus();
  }

  void CheckSummary() {
    if (!summary_) return;
    const StepSummary& s = *summary_;
    if (s.state == "recording") {
      const bool gone = WriterOf(s) == Writer::kGone;
      AddFinding(
          "unfinished",
          gone ? Msg("the run ended inside this step, {} ops were reported flushed: run 'msprobe recover'", s.ops)
               : Msg("the step is still being recorded (process {} on {}), {} ops are flushed", s.pid, s.host, s.ops));
    }
    if (s.state == "recovered")
      AddFinding("unfinished", Msg("the run ended inside this step; its files were recovered"));
    if (s.ops > check_->ops) {
      AddFinding("ops_missing",
                 Msg("{} of {} ops that were reported written are not there", s.ops - check_->ops, s.ops),
                 s.ops - check_->ops);
    }
    if (s.state == "complete" && s.ops < check_->ops) {
      AddFinding("ops_unexpected",
                 Msg("dump.json holds {} ops, and {} were written: the files are not of one run", check_->ops, s.ops));
    }
    const auto lost = [&](const char* kind, uint64_t count, const std::string& why, const Message& without,
                          const Message& because) {
      if (count > 0 || !why.empty()) AddFinding(kind, why.empty() ? without : because, std::max<uint64_t>(count, 1));
    };
    lost("ops_not_written", s.ops_not_written, s.ops_stopped, Msg("{} ops were not written", s.ops_not_written),
         Msg("{} ops were not written because {}", s.ops_not_written, s.ops_stopped));
    lost("tensors_not_written", s.tensors_not_written, s.tensors_stopped,
         Msg("{} tensors were not written", s.tensors_not_written),
         Msg("{} tensors were not written because {}", s.tensors_not_written, s.tensors_stopped));
    for (const auto& [kind, count] : s.skipped)
      AddFinding("skipped", Message(fmt::format("{} ({})", kind, count)), count, true);
  }

  RankCheck* check_;
  bool debug_ = true;  // no dump.json
  bool has_stacks_ = false, has_construct_ = false;
  std::optional<StepSummary> summary_;
  std::optional<DumpFile> dump_;
  std::unordered_set<size_t> only_construct_;  // hashes of names
};

/// Steps that some rank has and another has not.
void CompareRanks(const DumpPath& dump, std::vector<VerifyFinding>* out) {
  std::map<std::string, size_t> steps_of;
  for (const StepDir& step : dump.steps) {
    for (const RankDir& rank : step.ranks) ++steps_of[rank.name];
  }
  for (const StepDir& step : dump.steps) {
    std::string missing;
    for (const auto& entry : steps_of) {
      const std::string& rank = entry.first;
      const bool has =
          std::any_of(step.ranks.begin(), step.ranks.end(), [&](const RankDir& r) { return r.name == rank; });
      if (!has) missing += (missing.empty() ? "" : ", ") + rank;
    }
    if (!missing.empty()) out->push_back({"ranks_differ", 1, Message(step.name + " has no " + missing), false});
  }
}

}  // namespace

bool DumpCheck::readable() const {
  return std::all_of(ranks.begin(), ranks.end(), [](const RankCheck& r) { return r.readable; });
}

uint64_t DumpCheck::count() const {
  uint64_t n = 0;
  const auto add = [&](const std::vector<VerifyFinding>& all) {
    for (const VerifyFinding& f : all) n += f.note ? 0 : 1;
  };
  add(findings);
  for (const RankCheck& rank : ranks) add(rank.findings);
  return n;
}

StatusOr<DumpCheck> VerifyDump(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const DumpPath dump, ResolveDumpPath(path));
  if (dump.kind == PathKind::kFile) {
    return BadInput(Msg("{} is a file: give the directory it is in, a dump is judged with all its files", path));
  }
  DumpCheck check;
  for (const StepDir& step : dump.steps) {
    for (const RankDir& dir : step.ranks) {
      RankCheck& rank = check.ranks.emplace_back();
      rank.path = dir.path;
      rank.step = step.step;
      rank.rank = dir.name;
      MSP_RETURN_IF_ERROR(RankVerifier(&rank).Run());
    }
  }
  CompareRanks(dump, &check.findings);
  CheckCertificate(path, &check.findings);
  return check;
}

}  // namespace msprobe
