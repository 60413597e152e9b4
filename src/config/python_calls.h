// Calls of a training program that say what it trains with: those that python_calls.def names, classes of settings and
// recipes.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/python_lines.h"
#include "config/settings.h"

namespace msprobe {

struct KnownCall;

class PythonCallReader {
 public:
  using Values = std::function<ConfigValue(std::string_view)>;
  PythonCallReader(std::string path, Values value) : path_(std::move(path)), value_(std::move(value)) {}

  /// All lines, before any is read: what the file imports, and how it deals its data out.
  void Look(const std::vector<PythonLine>& lines);
  /// Calls wherever they stand.
  void Read(const PythonLine& line);
  std::vector<ConfigSource> Take();

 private:
  void LookAtImport(std::string_view line);
  void ReadCall(std::string_view name, const PythonLine& line, size_t begin, size_t open);
  void AddCall(const KnownCall& call, std::string_view full_name, const PythonLine& line, size_t open);
  /// The arguments up to the bracket that closes them.
  void AddArguments(const KnownCall& call, std::string_view arguments, int line, ConfigSource* source);
  void AddOptimizerGroups(std::string_view section, std::string_view parameters, int line, ConfigSource* source);
  void AddOptimizerDefaults(const KnownCall& call, std::string_view full_name, ConfigSource* source) const;
  /// False: it reads what is only looked at.
  bool AddLoaderDefaults(std::string_view left, std::string_view arguments, ConfigSource* source) const;
  void JoinSchedules();
  /// The package that a class comes from: "torch", "keras"; "" if nothing says it.
  std::string_view PackageOf(std::string_view full_name) const;

  std::string path_;
  Values value_;
  std::vector<ConfigSource> calls_;
  std::map<std::string, std::string, std::less<>> imported_;  // names, and packages that they come from
  std::set<std::string, std::less<>> packages_;
  bool shuffles_ = false;    // by itself
  bool deals_out_ = false;   // a loader is that of one process
  bool open_decay_ = false;  // parameters of the call that is read may decay by numbers of their own
};

}  // namespace msprobe
