// Layer mappings that come with the command, for models that several training frameworks implement.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace msprobe {

struct LayerTemplate {
  std::string_view name;  // "qwen2.5:mindspeed-llamafactory": model, framework of the target, of the golden run
  std::string_view yaml;
};

const std::vector<LayerTemplate>& LayerTemplates();

/// kUsage, with the names that there are, for any other.
StatusOr<const LayerTemplate*> FindLayerTemplate(std::string_view name);

}  // namespace msprobe
