#include "match/modules/layer_place.h"

#include <gtest/gtest.h>

#include "dump/test_files.h"

namespace msprobe {
namespace {

TEST(LayerPlaceTest, TheNumberBehindAKnownNameCounts) {
  const LayerPlace place = PlaceOfModule("Module.model.layers.12.mlp.down_proj.Linear.forward.0");
  EXPECT_EQ(place.stack, "Module.model.layers");
  EXPECT_EQ(place.layer, 12);
  EXPECT_EQ(place.part, "mlp.down_proj");
  EXPECT_EQ(PlaceOfModule("Module.0.module.decoder.layers.3.TransformerLayer.backward.1").layer, 3);
  EXPECT_EQ(PlaceOfModule("Module.layers.3.mlp.experts.7.up.Linear.forward.0").layer, 3);
  EXPECT_EQ(PlaceOfModule("Cell.network.blocks.1.norm.LayerNorm.parameters_grad.weight").part, "norm");
}

TEST(LayerPlaceTest, OtherNumbersCountWhereNoneOfThemIs) {
  EXPECT_EQ(PlaceOfModule("Module.model.seq.2.Linear.forward.0").layer, 2);
  EXPECT_EQ(PlaceOfModule("Module.model.seq.2.Linear.forward.0").stack, "Module.model.seq");
  EXPECT_EQ(PlaceOfModule("Module.model.embed.Embedding.forward.7").layer, -1);
  EXPECT_EQ(PlaceOfModule("Functional.linear.3.forward").layer, -1);
  EXPECT_EQ(PlaceOfModule("Module.model.layers.123456.Linear.forward.0").layer, -1);
  EXPECT_EQ(PlaceOfModule("Module.").layer, -1);
  EXPECT_EQ(PlaceOfModule("Module").layer, -1);
}

TEST(LayerPlaceTest, AnApiStandsWhereItsModuleStands) {
  const TempDir dir;
  const std::string path =
      dir.Write("construct.json", R"({"Functional.linear.0.forward": "Module.m.h.4.fc.Linear.forward.0",
                               "Torch.a.0.forward": "Torch.b.0.forward", "Torch.b.0.forward": "Torch.a.0.forward"})");
  StatusOr<ParentIndex> parents = ParentIndex::Open(path);
  ASSERT_TRUE(parents.ok());
  const LayerPlaces places(std::make_shared<const ParentIndex>(std::move(*parents)));
  EXPECT_EQ(places.Of("Functional.linear.0.forward").layer, 4);
  EXPECT_EQ(places.Of("Functional.linear.0.forward").part, "fc");
  EXPECT_EQ(places.Of("Torch.a.0.forward").layer, -1) << "a loop";
  EXPECT_EQ(places.Of("Torch.unknown.0.forward").layer, -1);
}

}  // namespace
}  // namespace msprobe
