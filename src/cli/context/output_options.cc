#include "cli/context/output_options.h"

#include <CLI/CLI.hpp>

namespace msprobe {

void AddOutputBound(CLI::App* command, std::string* ranks, uint64_t* limit) {
  command->add_option("--ranks", *ranks, "only these ranks, such as 0,3,8-15")->option_text("N,N-N");
  command->add_option("--out-limit,--out_limit", *limit, "bytes that may be written, such as 50GB; 0: no limit (10GiB)")
      ->transform(CLI::AsSizeValue(true))
      ->option_text("SIZE");
}

}  // namespace msprobe
