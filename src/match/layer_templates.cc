#include "match/layer_templates.h"

#include <algorithm>

#include "base/embed.h"
#include "base/message.h"
#include "base/text.h"

MSPROBE_EMBED(vl_ms_lf, MSPROBE_TEMPLATES_DIR "/qwen2.5-vl_mindspeed-llamafactory.yaml");
MSPROBE_EMBED(vl_lf_ms, MSPROBE_TEMPLATES_DIR "/qwen2.5-vl_llamafactory-mindspeed.yaml");
MSPROBE_EMBED(ms_lf, MSPROBE_TEMPLATES_DIR "/qwen2.5_mindspeed-llamafactory.yaml");
MSPROBE_EMBED(lf_ms, MSPROBE_TEMPLATES_DIR "/qwen2.5_llamafactory-mindspeed.yaml");

namespace msprobe {

const std::vector<LayerTemplate>& LayerTemplates() {
  static const std::vector<LayerTemplate> all{{"qwen2.5-vl:mindspeed-llamafactory", MSPROBE_EMBEDDED(vl_ms_lf)},
                                              {"qwen2.5-vl:llamafactory-mindspeed", MSPROBE_EMBEDDED(vl_lf_ms)},
                                              {"qwen2.5:mindspeed-llamafactory", MSPROBE_EMBEDDED(ms_lf)},
                                              {"qwen2.5:llamafactory-mindspeed", MSPROBE_EMBEDDED(lf_ms)}};
  return all;
}

StatusOr<const LayerTemplate*> FindLayerTemplate(std::string_view name) {
  std::string names;
  for (const LayerTemplate& t : LayerTemplates()) {
    if (t.name == name) return &t;
    names.append(names.empty() ? "" : ", ").append(t.name);
  }
  return UsageError(
      Msg("there is no layer mapping template \"{}\": --template takes {}, or list", OneLine(name), names));
}

}  // namespace msprobe
