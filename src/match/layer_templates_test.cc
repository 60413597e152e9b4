#include "match/layer_templates.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "match/mapping.h"

namespace msprobe {
namespace {

StatusOr<Mapping> Load(const std::string& name) {
  MappingSettings settings;
  settings.layer_template = name;
  return LoadMapping(settings);
}

/// What `rules` call the child `path` of a module of class `type`.
std::string Renamed(const Mapping& mapping, std::string_view type, std::string_view path) {
  for (const LayerRule& rule : mapping.layers) {
    if (rule.type != type) continue;
    for (const auto& [target, golden] : rule.children)
      if (target == path) return golden;
  }
  return "-";
}

TEST(LayerTemplates, EachIsAMappingUnderItsName) {
  ASSERT_EQ(LayerTemplates().size(), 4u);
  for (const LayerTemplate& t : LayerTemplates()) {
    const StatusOr<Mapping> mapping = Load(std::string(t.name));
    ASSERT_TRUE(mapping.ok()) << mapping.status().message();
    EXPECT_TRUE(mapping->layer);
    const bool mindspeed = Contains(t.name, ":mindspeed");
    EXPECT_EQ(Renamed(*mapping, "TopLayer", mindspeed ? "0.module" : "module"), mindspeed ? "module" : "0.module");
  }
}

TEST(LayerTemplates, TheTwoDirectionsAreInverse) {
  const Mapping there = *Load("qwen2.5:mindspeed-llamafactory"), back = *Load("qwen2.5:llamafactory-mindspeed");
  EXPECT_EQ(Renamed(there, "GPTModel", "decoder.layers"), "layers");
  EXPECT_EQ(Renamed(back, "Qwen2Model", "layers"), "decoder.layers");
  EXPECT_EQ(Renamed(there, "MLP", "linear_fc2"), "down_proj");
  EXPECT_EQ(Renamed(back, "Qwen2MLP", "down_proj"), "linear_fc2");
  const Mapping vision = *Load("qwen2.5-vl:mindspeed-llamafactory");
  EXPECT_EQ(Renamed(vision, "MultimodalProjector", "encoder.linear_fc2"), "mlp.2");
}

TEST(LayerTemplates, AnUnknownNameListsTheKnown) {
  const StatusOr<Mapping> mapping = Load("gpt");
  ASSERT_FALSE(mapping.ok());
  EXPECT_EQ(mapping.status().code(), Code::kUsage);
  EXPECT_TRUE(Contains(mapping.status().message(), "qwen2.5-vl:mindspeed-llamafactory"));
}

TEST(LayerTemplates, DoNotGoWithAnotherMapping) {
  MappingSettings settings;
  settings.layer_template = "qwen2.5:mindspeed-llamafactory";
  settings.layer = "map.yaml";
  EXPECT_EQ(LoadMapping(settings).status().code(), Code::kUsage);
}

}  // namespace
}  // namespace msprobe
