// The layer mappings that come with the command.
#include <cstdio>

#include "base/text.h"
#include "cli/commands.h"
#include "match/layer_templates.h"

namespace msprobe {

Status PrintLayerTemplates(const std::string& name, bool json) {
  std::string out;
  if (!name.empty()) {
    MSP_ASSIGN_OR_RETURN(const LayerTemplate* found, FindLayerTemplate(name));
    out = found->yaml;
  } else {
    for (const LayerTemplate& t : LayerTemplates()) {
      if (json) {
        out += out.empty() ? "[" : ", ";
        AppendJsonString(out, t.name);
      } else {
        out.append(t.name).append("\n");
      }
    }
    if (json) out += "]\n";
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return OkStatus();
}

}  // namespace msprobe
