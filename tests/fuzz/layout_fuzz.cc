// Declared layouts of merged ranks: any text gives a layout or an error.
#include <string_view>

#include "json/writer.h"
#include "parallel/merge_layout.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto layout = msprobe::MergeLayout::Parse(text, "layout.yaml");
  if (!layout.ok()) return 0;
  for (const char* tensor : {"input.0", "output.0", "parameters.weight"})
    (void)layout->Of("Module.a.layers.0.mlp.Linear.forward.0", "Module.a.MLP.forward.0", tensor);
  msprobe::JsonWriter json;
  layout->Write(&json);
  return 0;
}
