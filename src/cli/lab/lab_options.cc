#include "cli/lab/lab_options.h"

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace msprobe {

void AddStandardsOption(CLI::App* command, StandardRelease* release) {
  const std::map<std::string, StandardRelease> releases = {{"26.2", StandardRelease::k26},
                                                           {"8.1", StandardRelease::k8}};
  command
      ->add_option("--standards", *release,
                   "release of mindstudio-probe whose standards count: 26.2 judges floating outputs against the other "
                   "device, 8.1 chooses a standard by the name of the function")
      ->transform(CLI::CheckedTransformer(releases, CLI::ignore_case));
}

}  // namespace msprobe
