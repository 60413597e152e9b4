#include "lab/output_handlers.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "base/yaml.h"

namespace msprobe {
namespace {

constexpr char kSection[] = "acc_check_handlers";

Status ReadSide(const YamlNode& section, const char* side, const std::string& path,
                std::map<std::string, OutputHandler, std::less<>>* out) {
  const YamlNode* map = section.Find(side);
  if (!map || map->IsNull()) return OkStatus();
  if (!map->IsMap())
    return BadInput(
        Msg("{} line {}: {} must have names of functions, each with \"file.py:function\"", path, map->line, side));
  for (const YamlMember& member : map->members) {
    const std::string& text = member.second.text;
    const size_t colon = text.rfind(':');
    if (!member.second.IsText() || colon == std::string::npos || colon == 0 || colon + 1 == text.size())
      return BadInput(
          Msg("{} line {}: \"{}\" must have \"file.py:function\"", path, member.second.line, OneLine(member.first)));
    OutputHandler& handler = (*out)[member.first];
    handler.file = text.substr(0, colon), handler.function = text.substr(colon + 1);
    if (handler.file.front() != '/') handler.file = JoinPath(std::string(DirName(path)), handler.file);
    if (!PathExists(handler.file))
      return BadInput(Msg("{} line {}: there is no file {}", path, member.second.line, OneLine(handler.file)));
  }
  return OkStatus();
}

}  // namespace

StatusOr<OutputHandlers> ReadOutputHandlers(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const YamlNode root, ReadYamlFile(path));
  const YamlNode* section = root.IsMap() ? root.Find(kSection) : nullptr;
  if (!section || !section->IsMap())
    return BadInput(Msg("{} has no {}: give it maps target and golden of functions", path, kSection));
  OutputHandlers out;
  MSP_RETURN_IF_ERROR(ReadSide(*section, "target", path, &out.target));
  MSP_RETURN_IF_ERROR(ReadSide(*section, "golden", path, &out.golden));
  return out;
}

}  // namespace msprobe
