// Variables of a shell script, and what words become with them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "config/shell_lexer.h"
#include "config/shell_patterns.h"

namespace msprobe {

class ShellValues {
 public:
  explicit ShellValues(std::string script_directory) : directory_(std::move(script_directory)) {}

  /// The fields that a word becomes: none of an empty array, several of a full one and of an unquoted variable with
  /// spaces.
  std::vector<ShellField> Expand(std::string_view word, const std::string& file, int line);
  /// The one text that it becomes within quotes.
  std::string Text(std::string_view word);

  /// NAME=value, NAME+=value, NAME=( ... ); false if the word is something else.
  bool Assign(std::string_view word, const std::string& file, int line);
  /// What Slurm tells a job of its size.
  void SetOfSlurm(const SlurmJob& job, const std::string& file);
  void Set(const std::string& name, std::vector<ShellField> value) { values_[name] = std::move(value); }
  const std::vector<ShellField>* Find(const std::string& name) const;
  /// $1, $2, ..., $@ and $#: those of the script are not known (nullopt), those of a function are what it is called
  /// with.
  void SetArguments(std::optional<std::vector<ShellField>> arguments);
  std::optional<std::vector<ShellField>> Arguments() const;
  void Export(const std::string& name) { exported_.insert(name); }
  std::vector<Setting> Exported() const;
  /// What $(command) prints; nullopt: only a run knows it.
  void RunWith(std::function<std::optional<std::string>(std::string_view command)> run) { run_ = std::move(run); }
  /// The value of a sum; the text between $(( and )) where it is not known.
  std::string Arithmetic(std::string_view text);
  const std::string& directory() const { return directory_; }
  /// False once expansions have given more than any script's.
  bool within_bounds() const { return bytes_ < kMostBytes; }

 private:
  static constexpr size_t kMostBytes = 24 << 20;
  struct Part;

  void ExpandInto(std::string_view word, bool quoted, Part* part, int depth);
  size_t Dollar(std::string_view word, size_t at, bool quoted, Part* part, int depth);
  void Braces(std::string_view inner, std::string_view whole, bool quoted, Part* part, int depth);
  void All(const std::vector<ShellField>& fields, Part* part);
  void AddSplit(const std::string& text, bool quoted, Part* part);
  void Variable(const std::string& name, std::string_view whole, bool quoted, Part* part);

  std::map<std::string, std::vector<ShellField>> values_;
  std::set<std::string> exported_;
  std::function<std::optional<std::string>(std::string_view)> run_;
  std::string directory_;
  size_t bytes_ = 0;
};

}  // namespace msprobe
