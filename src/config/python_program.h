// What a Python file says of a training: a module of settings (mmengine, nanoGPT) or a program with its options and
// calls. It is read, never run.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "config/settings.h"

namespace msprobe {

/// What an option of argparse sets where it stands without a value.
struct PythonOption {
  std::string name;  // of the setting
  ConfigValue bare = ConfigValue::Of(true);
};

struct PythonProgram {
  std::vector<Setting> settings;                             // top-level names, fields, options with their defaults
  std::vector<ConfigSource> calls;                           // arguments of calls that python_calls.def names
  std::vector<std::string> bases;                            // `_base_` of mmengine: files that this one begins with
  std::vector<Setting> environment;                          // os.environ["NAME"] = value
  std::map<std::string, PythonOption, std::less<>> options;  // by the names that a command writes, without dashes
};

/// Files of settings that a program reads; each gives a map, null of one that is not here.
struct PythonFiles {
  std::function<ConfigValue(const std::string& name)> load = {};  // yaml.safe_load(open(name))
  std::function<ConfigValue(const std::string& folder, const std::string& name)> compose = {};  // @hydra.main
};

/// `given`: what the command that starts it sets. Names that an option, a field or a top-level setting has take their
/// value from there.
StatusOr<PythonProgram> ReadPythonProgram(std::string_view text, const std::string& path,
                                          const std::vector<Setting>& given, const PythonFiles& files = {});

/// Arguments of a command under the names that the program has for them: "b" is batch_size, a bare --no-shuffle is
/// shuffle = False.
void NameByOptions(const PythonProgram& program, std::vector<Setting>* arguments);

}  // namespace msprobe
