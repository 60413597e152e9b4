#include "match/layer_templates.h"

#include <algorithm>

#include "base/text.h"

// The assembler copies the files into the program as they are.
#define MSPROBE_TEMPLATE(symbol, file)            \
  asm(".section .rodata\n"                        \
      "msprobe_" symbol                           \
      "_begin:\n"                                 \
      ".incbin \"" MSPROBE_TEMPLATES_DIR "/" file \
      "\"\n"                                      \
      "msprobe_" symbol                           \
      "_end:\n"                                   \
      ".byte 0\n"                                 \
      ".previous\n")
MSPROBE_TEMPLATE("vl_ms_lf", "qwen2.5-vl_mindspeed-llamafactory.yaml");
MSPROBE_TEMPLATE("vl_lf_ms", "qwen2.5-vl_llamafactory-mindspeed.yaml");
MSPROBE_TEMPLATE("ms_lf", "qwen2.5_mindspeed-llamafactory.yaml");
MSPROBE_TEMPLATE("lf_ms", "qwen2.5_llamafactory-mindspeed.yaml");

#define MSPROBE_BYTES(symbol)                                                         \
  __attribute__((visibility("hidden"))) extern const char msprobe_##symbol##_begin[]; \
  __attribute__((visibility("hidden"))) extern const char msprobe_##symbol##_end[]
extern "C" {
MSPROBE_BYTES(vl_ms_lf);
MSPROBE_BYTES(vl_lf_ms);
MSPROBE_BYTES(ms_lf);
MSPROBE_BYTES(lf_ms);
}

namespace msprobe {
namespace {

std::string_view Bytes(const char* begin, const char* end) { return {begin, static_cast<size_t>(end - begin)}; }

}  // namespace

const std::vector<LayerTemplate>& LayerTemplates() {
  static const std::vector<LayerTemplate> all{
      {"qwen2.5-vl:mindspeed-llamafactory", Bytes(msprobe_vl_ms_lf_begin, msprobe_vl_ms_lf_end)},
      {"qwen2.5-vl:llamafactory-mindspeed", Bytes(msprobe_vl_lf_ms_begin, msprobe_vl_lf_ms_end)},
      {"qwen2.5:mindspeed-llamafactory", Bytes(msprobe_ms_lf_begin, msprobe_ms_lf_end)},
      {"qwen2.5:llamafactory-mindspeed", Bytes(msprobe_lf_ms_begin, msprobe_lf_ms_end)}};
  return all;
}

StatusOr<const LayerTemplate*> FindLayerTemplate(std::string_view name) {
  std::string names;
  for (const LayerTemplate& t : LayerTemplates()) {
    if (t.name == name) return &t;
    names.append(names.empty() ? "" : ", ").append(t.name);
  }
  return UsageError("there is no layer mapping template \"" + OneLine(name) + "\": --template takes " + names +
                    ", or list");
}

}  // namespace msprobe
