// The layer mappings that come with the command.
#include <cstdio>

#include "cli/commands.h"
#include "json/writer.h"
#include "match/layer_templates.h"

namespace msprobe {

Status PrintLayerTemplates(const std::string& name, bool json) {
  std::string out;
  if (!name.empty()) {
    MSP_ASSIGN_OR_RETURN(const LayerTemplate* found, FindLayerTemplate(name));
    out = found->yaml;
  } else if (json) {
    JsonWriter list(&out);
    list.Array(LayerTemplates(), [&](const LayerTemplate& t) { list.String(t.name); });
    out += "\n";
  } else {
    for (const LayerTemplate& t : LayerTemplates()) out.append(t.name).append("\n");
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return OkStatus();
}

}  // namespace msprobe
