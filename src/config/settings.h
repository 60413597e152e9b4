// What a file says about a run: settings by name, each with the place that it comes from.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/message.h"
#include "config/stack/stacks.h"
#include "config/value.h"

namespace msprobe {

struct Setting {
  std::string key;  // of nested files the path with dots; of arguments the name with "_" for "-"
  ConfigValue value;
  std::string file;
  int line = 0;              // 0: not known
  std::string written = {};  // of an argument its name as it is written, with "-"; "" if that is `key`

  /// file:line, or the file alone.
  std::string Origin() const;
};

/// The settings of one file or one command, in order: of those with one key the last counts.
struct ConfigSource {
  ConfigDialect dialect = ConfigDialect::kUnknown;
  std::string path;
  std::vector<Setting> settings;
  bool partial = false;  // what else it sets is not known, so that nothing follows from what it does not set

  const Setting* Find(std::string_view key) const;
};

/// All that is known about one run.
struct Configuration {
  std::vector<ConfigSource> sources;  // later ones override earlier ones
  std::vector<Setting> environment;   // variables that scripts export, or a pack holds
  std::vector<Setting> launcher;      // options of torchrun, msrun, ...: nproc_per_node, nnodes, worker_num, ...
  std::vector<std::pair<std::string, std::string>> packages;  // name, version
  std::vector<std::string> programs;                          // that train: names of files and modules
  std::vector<std::string> given;   // all files of this run, where a command names one of them
  std::vector<std::string> named;   // files that a command names, which are read before it
  std::vector<std::string> unread;  // files of settings that others name and that are not here
  bool may_set_more = false;        // one of those is the run's own, so that nothing follows from what is not set
  std::vector<Message> notes;       // what could not be read for certain, for people

  /// A file that is not here; `own`: it may set anything of the run.
  void Miss(const std::string& name, bool own = true) {
    unread.push_back(name);
    may_set_more = may_set_more || own;
  }
};

/// Leaves of a map with dotted keys; a list of plain values is one leaf, of others each element is a level.
void Flatten(const ConfigValue& value, const std::string& file, int line, std::vector<Setting>* out);

/// The opposite: dotted keys as a map of maps.
ConfigValue Nested(const std::vector<Setting>& settings);

/// By the keys that only one of them has.
ConfigDialect GuessDialect(const std::vector<Setting>& settings);

/// `${a.b}` of a value stands for the setting a.b of the same source (hydra, OmegaConf); circles and unknown names
/// stay.
void ResolveReferences(std::vector<Setting>* settings);

}  // namespace msprobe
