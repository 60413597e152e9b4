// Files of fingerprints: whatever they hold, the reader, the merging of ranks and the comparison stay within bounds.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weights/fingerprint/fingerprint_file.h"
#include "weights/fingerprint/print_report.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto print = ParseFingerprint(text, "fuzz");
  if (!print.ok()) return 0;
  (void)FingerprintText(*print);
  auto again = ParseFingerprint(text, "fuzz");
  WholeModel a = WholeOf("A", {*print}), b = WholeOf("B", {*print, *again});
  const PrintComparison comparison = ComparePrints(&a, &b, {});
  (void)PrintsJson(a, b, comparison);
  (void)PrintsText(a, b, comparison, true);
  return 0;
}
