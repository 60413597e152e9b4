#include "jobs/kernel_story.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/file.h"
#include "base/temp_directory.h"
#include "base/text.h"
#include "compare/pair/compare.h"
#include "json/writer.h"

namespace msprobe {
namespace {

/// One run of a kernel: its tensors, inputs first.
struct KernelOp {
  const KernelFinding *begin, *end;
};

std::vector<KernelOp> OpsOf(std::vector<KernelFinding>* findings) {
  const auto run = [](const KernelFinding& f) { return std::tie(f.place, f.graph, f.kernel); };
  std::stable_sort(findings->begin(), findings->end(), [&](const KernelFinding& a, const KernelFinding& b) {
    return std::tuple(run(a), a.output, a.slot) < std::tuple(run(b), b.output, b.slot);
  });
  std::vector<KernelOp> out;
  for (const KernelFinding& f : *findings) {
    if (out.empty() || run(*out.back().begin) != run(f)) out.push_back({&f, &f});
    out.back().end = &f + 1;
  }
  return out;
}

/// "matmul" of "Default_network-Cell_MatMul-op12.0": what the ruler knows the arithmetic of.
std::string ApiOf(std::string_view kernel) {
  kernel = kernel.substr(0, kernel.rfind('.'));
  if (const size_t number = kernel.rfind("-op"); number != std::string_view::npos) kernel = kernel.substr(0, number);
  if (const size_t scope = kernel.find_last_of("/_-."); scope != std::string_view::npos)
    kernel.remove_prefix(scope + 1);
  std::string out;
  for (const char c : kernel) out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out.empty() ? "kernel" : out;
}

/// Names of ops must differ, and the kernel's own may hold anything: the number finds it again.
std::string NameOf(const KernelOp& op, size_t number) {
  return "Functional." + ApiOf(op.begin->kernel) + "." + std::to_string(number) + ".forward";
}

Status WriteSide(const std::vector<KernelOp>& ops, bool golden, const std::string& path) {
  JsonWriter json({.ascii = false, .not_finite = JsonStyle::NotFinite::kPython});
  const auto tensors = [&](const KernelOp& op, std::string_view key, bool outputs) {
    json.Key(key);
    json.BeginArray();
    for (const KernelFinding* f = op.begin; f != op.end; ++f) {
      if (f->output == outputs) WriteFigures(golden ? f->golden : f->target, &json);
    }
    json.EndArray();
  };
  json.Object([&] {
    json.Member("task", "statistics");
    json.Member("level", "L1");
    json.Member("framework", "mindspore");
    json.ObjectMember("data", [&] {
      for (size_t i = 0; i < ops.size(); ++i) {
        json.ObjectMember(NameOf(ops[i], i), [&] {
          tensors(ops[i], "input_args", false);
          json.ObjectMember("input_kwargs", [] {});
          tensors(ops[i], "output", true);
        });
      }
    });
  });
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(json.Take()));
  return file.Commit();
}

/// The values were compared when the rows were written.
class KnownErrors : public TensorSource {
 public:
  explicit KnownErrors(const std::vector<KernelOp>& ops) {
    for (size_t i = 0; i < ops.size(); ++i) {
      size_t counts[2] = {0, 0};
      for (const KernelFinding* f = ops[i].begin; f != ops[i].end; ++f) {
        const size_t place = counts[f->output ? 1 : 0]++;
        by_item_[NameOf(ops[i], i) + (f->output ? ".output." : ".input.") + std::to_string(place)] = f;
      }
    }
  }
  void Diff(const ItemView& target, const ItemView* golden, TensorDiff* out, const ValidLengths&) const override {
    *out = TensorDiff();
    const auto known = by_item_.find(std::string(target.name));
    if (!golden || known == by_item_.end()) return;
    out->error = known->second->error;
    out->golden_error = known->second->golden_error;
  }

 private:
  std::unordered_map<std::string, const KernelFinding*> by_item_;
};

class NoFormat : public RowFormat {
 public:
  void AppendOp(const OpDiff&, int, OpBlock*) const override {}
};

/// In the words of the dump again.
void Rename(const std::vector<KernelOp>& ops, RankFindings* found) {
  Differences& d = found->differences;
  for (FirstDifference* one : {&d.first, &d.source, &d.dtype}) {
    if (one->kind == FirstDifference::Kind::kNone || one->op >= ops.size()) continue;
    one->name = one->golden_name = ops[one->op].begin->kernel;
  }
  for (InfectedGroup& group : found->infected) group.first = SharedName(ops[group.first_op].begin->kernel);
}

}  // namespace

void WriteFigures(const KernelFigures& figures, JsonWriter* json) {
  constexpr std::array<const char*, kStatCount> kKeys{"Max", "Min", "Mean", "Norm"};
  json->Object([&] {
    json->Member("type", "mindspore.Tensor");
    json->Member("dtype", figures.dtype);
    json->Member("shape", figures.shape);
    for (size_t k = 0; k < kStatCount; ++k) {
      json->Key(kKeys[k]);
      figures.stats[k] ? json->Number(*figures.stats[k]) : json->Null();
    }
    if (!figures.checksum.empty()) json->Member("md5", figures.checksum);
  });
}

StatusOr<RankFindings> JudgeKernels(std::vector<KernelFinding> findings, const FilePair& place,
                                    const std::string& directory) {
  RankFindings nothing;
  nothing.rank = place.rank;
  nothing.files = place;
  if (findings.empty()) return nothing;
  const std::vector<KernelOp> ops = OpsOf(&findings);
  MSP_ASSIGN_OR_RETURN(const TempDirectory temp, TempDirectory::Create(directory, "kernels"));
  FilePair files = place;
  files.target = JoinPath(temp.path(), "target.json");
  files.golden = JoinPath(temp.path(), "golden.json");
  MSP_RETURN_IF_ERROR(WriteSide(ops, false, files.target));
  MSP_RETURN_IF_ERROR(WriteSide(ops, true, files.golden));
  MSP_ASSIGN_OR_RETURN(DumpPair pair, OpenDumpPair(files, Mapping()));
  const KnownErrors errors(ops);
  const auto measured = [](const KernelFinding& f) { return f.error >= 0; };
  if (std::any_of(findings.begin(), findings.end(), measured)) {
    pair.options.mode = CompareMode::kTensor;
    pair.options.tensors = &errors;
  }
  MSP_ASSIGN_OR_RETURN(CompareOutcome outcome, ComparePair(
                                                   pair, NoFormat(), [](OpBlock&&) { return OkStatus(); }, nullptr));
  MSP_ASSIGN_OR_RETURN(RankFindings found, FindOnRank(pair, files, std::move(outcome.distances)));
  found.files = place;
  Rename(ops, &found);
  return found;
}

}  // namespace msprobe
