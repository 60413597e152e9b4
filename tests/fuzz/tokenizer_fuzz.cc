// Files of tokenizers: the first byte says of which kind.
#include <string>
#include <string_view>

#include "fuzz_file.h"
#include "jobs/configuration/tokenizer_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  if (size == 0) return 0;
  const char* names[] = {"tokenizer.json", "tokenizer.model", "vocab.txt"};
  const std::string_view text{reinterpret_cast<const char*>(data) + 1, size - 1};
  const auto source = ReadTokenizer(text, names[data[0] % 3]);
  if (!source.ok()) {
    fuzz::CheckRefusal(source.status());
    return 0;
  }
  fuzz::Check(source->Find("tokenizer.vocabulary") != nullptr, "a tokenizer has a vocabulary");
  return 0;
}
