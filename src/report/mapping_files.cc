#include "report/mapping_files.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "compare/pair/op_at.h"
#include "match/layer_match.h"
#include "match/match_dumps.h"
#include "sheet/cell.h"

namespace msprobe {
namespace {

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/// Names of ops are plain; what YAML might read otherwise is quoted as JSON, which is YAML.
void AppendScalar(std::string_view text, std::string* out) {
  const bool plain = Contains(text, ".") && !(text[0] >= '0' && text[0] <= '9') && text[0] != '.' &&
                     std::all_of(text.begin(), text.end(), IsPlain);
  if (plain || text == kNotAvailableCell) {
    *out += text;
  } else {
    AppendJsonString(*out, text, false);
  }
}

void AppendLine(std::string_view target, std::string_view golden, std::string* out) {
  AppendScalar(target, out);
  *out += ": ";
  AppendScalar(golden, out);
  *out += '\n';
}

Status WriteLines(const DumpPair& pair, OutputFile* apis, OutputFile* items) {
  JsonDoc target, golden;
  OpDiff diff;
  std::string text;
  for (size_t i = 0; i < pair.target->ops().size(); ++i) {
    if (InterruptRequested()) return Interrupted();
    if (pair.plan.Skips(i)) continue;
    const uint32_t partner = pair.plan.golden_of[i];
    text.clear();
    AppendLine(pair.target->ops()[i].name,
               partner == kNoOp ? kNotAvailableCell : std::string_view(pair.golden->ops()[partner].name), &text);
    MSP_RETURN_IF_ERROR(apis->Write(text));
    text.clear();
    MSP_RETURN_IF_ERROR(DiffOpAt(pair, i, &target, &golden, &diff));
    for (size_t row = 0; row < diff.rows_used; ++row) {
      const int other = diff.rows[row].golden;
      AppendLine(diff.target[row].name,
                 other == kNoItem ? kNotAvailableCell : std::string_view(diff.golden[static_cast<size_t>(other)].name),
                 &text);
    }
    MSP_RETURN_IF_ERROR(items->Write(text));
  }
  return OkStatus();
}

StatusOr<std::string> TreeName(const DumpFile& dump) {
  MSP_ASSIGN_OR_RETURN(const Framework framework, FrameworkOf(dump));
  return std::string(framework == Framework::kPyTorch ? "pytorch_tree" : "mindspore_tree");
}

Status WriteTree(const DumpFile& dump, const std::string& path, std::vector<std::string>* paths) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(WriteLayerTree(dump, [&file](std::string_view text) { return file.Write(text); }));
  MSP_RETURN_IF_ERROR(file.CommitResult());
  paths->push_back(file.path());
  return OkStatus();
}

}  // namespace

Status WriteMappings(DumpPair* pair, const std::string& folder, const std::string& end, bool plain,
                     std::vector<std::string>* paths) {
  MSP_ASSIGN_OR_RETURN(OutputFile apis, OutputFile::Create(JoinPath(folder, "api_mapping" + end)));
  MSP_ASSIGN_OR_RETURN(OutputFile items, OutputFile::Create(JoinPath(folder, "data_mapping" + end)));
  DiffOptions& options = pair->options;
  const TensorSource* tensors = std::exchange(options.tensors, nullptr);  // names only: no file is read
  const auto* contexts = std::exchange(options.contexts, nullptr);
  const Status status = WriteLines(*pair, &apis, &items);
  options.tensors = tensors;
  options.contexts = contexts;
  MSP_RETURN_IF_ERROR(status);
  for (OutputFile* file : {&apis, &items}) {
    MSP_RETURN_IF_ERROR(file->CommitResult());
    paths->push_back(file->path());
  }
  MSP_ASSIGN_OR_RETURN(const std::string target, TreeName(*pair->target));
  MSP_ASSIGN_OR_RETURN(const std::string golden, TreeName(*pair->golden));
  const bool one_name = target == golden;
  if (!one_name || !plain) MSP_RETURN_IF_ERROR(WriteTree(*pair->target, JoinPath(folder, target + end), paths));
  return WriteTree(*pair->golden, JoinPath(folder, golden + (one_name && !plain ? "_golden" : "") + end), paths);
}

}  // namespace msprobe
