#include "import/ir_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/message.h"
#include "base/text.h"
#include "import/execution_order.h"

namespace msprobe {
namespace {

constexpr size_t kMostNodes = 5'000'000, kMostLines = 10'000;
constexpr std::string_view kFile = "In file ";

/// "%12(equiv_8_CNode_53) = Load(...": a node begins.
bool BeginsNode(std::string_view line) {
  if (!StartsWith(line, "%")) return false;
  const size_t bracket = line.find('(');
  return bracket != std::string_view::npos && IsDigits(line.substr(1, bracket - 1)) && Contains(line, " = ");
}

std::string_view WithoutEnd(std::string_view line) {
  return EndsWith(line, "/") ? line.substr(0, line.size() - 1) : line;
}

}  // namespace

StatusOr<IrFile> IrFile::Open(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(path));
  MSP_ASSIGN_OR_RETURN(IrFile file, Parse(map.text(), path));
  file.map_ = std::move(map);
  return file;
}

StatusOr<IrFile> IrFile::Parse(std::string_view text, const std::string& path) {
  constexpr std::string_view kScope = "# Fullname with scope: (", kComment = "# ";
  IrFile out;
  IrNode* node = nullptr;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = Trimmed(text.substr(at, end - at));
    at = end + 1;
    if (BeginsNode(line) || StartsWith(line, "}") || StartsWith(line, "Return(") || StartsWith(line, "return")) {
      node = nullptr;
    } else if (StartsWith(line, kScope) && EndsWith(line, ")")) {
      if (out.nodes_.size() == kMostNodes) return BadInput(Msg("{} has more nodes than any graph", path));
      const std::string_view scope = line.substr(kScope.size(), line.size() - kScope.size() - 1);
      const auto [it, fresh] = out.nodes_.try_emplace(KernelFileName(scope));
      node = fresh ? &it->second : nullptr;  // the first of two nodes with one name
      if (fresh) it->second.scope = scope;
    } else if (node && StartsWith(line, kComment) && node->lines.size() < kMostLines) {
      node->lines.push_back(line.substr(kComment.size()));
    }
  }
  if (!out.nodes_.empty()) return out;
  return BadInput(
      Msg("{} is no graph of MindSpore: it names no node with its scope; give a file ms_output_trace_code_graph_N.ir "
          "of rank_N/graphs",
          path));
}

const IrNode* IrFile::Find(std::string_view kernel) const {
  const auto it = nodes_.find(std::string(kernel));
  return it == nodes_.end() ? nullptr : &it->second;
}

std::map<std::string, IrFile> ReadGraphCode(const std::vector<const KernelDirectory*>& directories,
                                            std::vector<Message>* warnings) {
  std::map<std::string, IrFile> out;
  for (const KernelDirectory* d : directories) {
    const std::string_view graph = DirName(d->path), rank = DirName(DirName(graph));
    const std::string path = fmt::format("{}/graphs/ms_output_trace_code_graph_{}.ir", rank, BaseName(graph));
    if (out.contains(d->graph) || !IsRegularFile(path)) continue;
    StatusOr<IrFile> file = IrFile::Open(path);
    if (file.ok()) {
      out.emplace(d->graph, std::move(*file));
    } else {
      warnings->push_back(Msg("no lines of source: {}", file.status().text()));
    }
  }
  return out;
}

std::string CodeStack(const IrNode& node) {
  std::string out;
  for (const std::string_view line : node.lines) {
    if (!out.empty()) out += '\n';
    out += WithoutEnd(line);
  }
  return out;
}

std::string SourceLine(const IrNode& node) {
  constexpr std::string_view kFramework = "/site-packages/", kNote = "/<~~";
  std::string_view found;
  bool framework = true;
  for (const std::string_view line : node.lines) {
    if (!StartsWith(line, kFile)) continue;
    const bool theirs = Contains(line.substr(0, line.find(", ")), kFramework);
    if (!found.empty() && theirs && !framework) continue;
    found = line.substr(kFile.size());
    framework = theirs;
  }
  const size_t comma = found.find(", ");
  if (comma == std::string_view::npos) return std::string(WithoutEnd(found));
  std::string_view place = found.substr(0, comma), code = found.substr(comma);
  place = place.substr(0, place.find('~', place.rfind(':') == std::string_view::npos ? 0 : place.rfind(':')));
  const size_t slash = code.find('/');
  code = slash == std::string_view::npos ? std::string_view() : code.substr(slash + 1);
  code = WithoutEnd(code.substr(0, code.rfind(kNote)));
  return std::string(place) + " " + std::string(Trimmed(code));
}

}  // namespace msprobe
