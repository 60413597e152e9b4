#include "config/shell_script.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "config/launch_command.h"
#include "config/shell_lexer.h"
#include "config/shell_values.h"

namespace msprobe {
namespace {

constexpr int kMaxSourced = 8, kMaxBlocks = 64;
constexpr size_t kMaxSteps = 1 << 20, kMaxCommands = 10'000, kMaxNotes = 50, kMostTurns = 1000;

class ShellRunner {
 public:
  ShellRunner(std::string_view text, const std::string& path) : values_(std::string(DirName(path))) {
    out_.job = SlurmJobOf(text);
    values_.SetArguments(std::vector<ShellField>());  // the script as it stands is given nothing
    values_.SetOfSlurm(out_.job, path);
    values_.RunWith([this](std::string_view command) { return Output(command); });
  }

  Status RunText(std::string_view text, const std::string& path, int depth) {  // NOLINT(misc-no-recursion)
    if (!read_.count(path)) {
      MSP_ASSIGN_OR_RETURN(read_[path], ShellTokens(text, path));
    }
    const int saved_depth = std::exchange(depth_, depth);
    const Status status = RunAt({&read_[path], 0, path}, {}, 0);
    depth_ = saved_depth;
    return status;
  }

  ShellReading Take() {
    const std::vector<Setting> exported = values_.Exported();
    out_.environment.insert(out_.environment.begin(), exported.begin(), exported.end());
    return std::move(out_);
  }

 private:
  using Kind = ShellToken::Kind;
  using Words = std::vector<const ShellToken*>;

  /// A place in the words of a script: where it is read, where the body of a function begins.
  struct Place {
    const std::vector<ShellToken>* tokens = nullptr;
    size_t at = 0;
    std::string file;
  };

  /// Reads on from a place, and comes back.
  Status RunAt(const Place& place, const std::set<std::string_view>& stop, int level) {  // NOLINT(misc-no-recursion)
    const Place back{std::exchange(tokens_, place.tokens), std::exchange(at_, place.at),
                     std::exchange(file_, place.file)};
    const Status status = Block(stop, true, level);
    tokens_ = back.tokens;
    at_ = back.at;
    file_ = back.file;
    return status;
  }

  void Note(const Message& what) {
    if (out_.notes.size() < kMaxNotes) out_.notes.push_back(what);
  }
  std::string At(int line) const { return fmt::format("{}:{}", file_, line); }

  bool AtEnd() const { return at_ >= tokens_->size(); }
  const ShellToken& Now() const { return (*tokens_)[at_]; }

  /// Up to the end of the simple command; the separator is taken, too.
  Words TakeCommand() {
    Words words;
    while (!AtEnd() && Now().kind == Kind::kWord) words.push_back(&(*tokens_)[at_++]);
    return words;
  }
  void SkipSeparators() {
    while (!AtEnd() && Now().kind != Kind::kWord) ++at_;
  }
  /// Skips redirections and pipes' operators behind a command, not what a pipe leads to.
  void EndCommand() {
    while (!AtEnd() && Now().kind == Kind::kOperator && (Contains(Now().text, ">") || Contains(Now().text, "<"))) {
      ++at_;
      if (!AtEnd() && Now().kind == Kind::kWord) ++at_;
      while (!AtEnd() && Now().kind == Kind::kWord) ++at_;
    }
    if (!AtEnd() && Now().kind != Kind::kWord) ++at_;
  }

  Status Block(const std::set<std::string_view>& stop, bool active, int level) {  // NOLINT(misc-no-recursion)
    if (level > kMaxBlocks) return BadInput(Msg("{} has blocks that are nested too deeply", file_));
    while (true) {
      SkipSeparators();
      if (++steps_ > kMaxSteps || !values_.within_bounds() || out_.commands.size() > kMaxCommands) {
        return BadInput(
            Msg("{} expands to more than a launch script does: give the arguments in a file of their own", file_));
      }
      if (AtEnd()) return OkStatus();
      const std::string_view word = Now().text;
      if (stop.count(word)) return OkStatus();
      if (word == "if") {
        MSP_RETURN_IF_ERROR(If(active, level));
      } else if (word == "for" || word == "while" || word == "until" || word == "select") {
        MSP_RETURN_IF_ERROR(Loop(active, level));
      } else if (word == "case") {
        MSP_RETURN_IF_ERROR(Case(active, level));
      } else if (word == "function" || IsFunction()) {
        MSP_RETURN_IF_ERROR(Function(level));
      } else if (word == "{" || word == "}" || word == "do" || word == "then" || word == "!") {
        ++at_;
      } else {
        const size_t first = at_;
        const Words words = TakeCommand();
        EndCommand();
        if (active) KeepWritten(first);
        const bool held = std::exchange(test_held_, false);
        if (active && DecidesNext(first)) continue;
        const bool other = held && (*tokens_)[at_ - 1].text == "||";
        if (active) MSP_RETURN_IF_ERROR(Command(words, level));
        if (other) TakeCommand(), EndCommand();
      }
    }
  }

  /// `[ A = B ] && command`: where the test is known not to lead there the command is passed over.
  bool DecidesNext(size_t first) {
    const std::string_view word = (*tokens_)[first].text, sign = at_ > 0 ? (*tokens_)[at_ - 1].text : "";
    if ((word != "[" && word != "[[" && word != "test") || (sign != "&&" && sign != "||")) return false;
    const auto holds = Condition(first, at_ - 1);
    const bool passes = holds && *holds != (sign == "&&");
    test_held_ = holds.value_or(false) && sign == "&&";
    if (passes && !AtEnd() && Now().text != "{") TakeCommand(), EndCommand();
    return true;
  }

  /// `cat > NAME <<END`, `cat <<END > NAME`, `tee NAME <<END`: what a file that the training reads holds.
  void KeepWritten(size_t first) {
    const std::string_view program = (*tokens_)[first].text;
    if (AtEnd() || Now().kind != Kind::kDocument || (program != "cat" && program != "tee")) return;
    std::string name;
    for (size_t i = first; i < at_; ++i) {
      const ShellToken& token = (*tokens_)[i];
      const bool word_next = i + 1 < at_ && (*tokens_)[i + 1].kind == Kind::kWord;
      const bool names = token.kind == Kind::kOperator ? token.text == ">" : i == first && token.text == "tee";
      if (names && word_next) name = values_.Text((*tokens_)[i + 1].text);
    }
    if (name.empty() || (written_ += Now().text.size()) > kMaxShellBytes) return;
    std::erase_if(out_.written, [&](const WrittenFile& file) { return file.name == name; });
    out_.written.push_back({name, Now().quoted ? std::string(Now().text) : Quoted(Now().text)});
  }

  bool IsFunction() const {
    return at_ + 2 < tokens_->size() && (*tokens_)[at_ + 1].text == "(" && (*tokens_)[at_ + 2].text == ")" &&
           (*tokens_)[at_ + 1].kind == Kind::kOperator;
  }

  Status Function(int level) {  // NOLINT(misc-no-recursion): kMaxBlocks
    if (Now().text == "function") ++at_;
    if (AtEnd()) return OkStatus();
    const std::string name(Now().text);
    ++at_;
    while (!AtEnd() && Now().text != "{") ++at_;
    ++at_;
    functions_[name] = {tokens_, at_, file_};
    return SkipTo({"}"}, level);
  }

  /// A block that is not run, and its end.
  Status SkipTo(const std::set<std::string_view>& stop, int level) {  // NOLINT(misc-no-recursion): kMaxBlocks
    int braces = 0;
    while (!AtEnd()) {
      if (Now().kind == Kind::kWord && Now().text == "{") ++braces;
      if (Now().kind == Kind::kWord && stop.count(Now().text) && braces-- == 0) break;
      ++at_;
    }
    if (!AtEnd()) ++at_;
    return level > kMaxBlocks ? BadInput(Msg("{} has blocks that are nested too deeply", file_)) : OkStatus();
  }

  Status If(bool active, int level) {  // NOLINT(misc-no-recursion): kMaxBlocks
    bool taken = false;
    while (!AtEnd() && Now().text != "fi") {
      const bool is_else = Now().text == "else";
      const int line = Now().line;
      ++at_;
      bool run = active && !taken;
      if (!is_else) {
        const size_t begin = at_;
        while (!AtEnd() && Now().text != "then" && Now().text != "fi") ++at_;
        if (run) {
          const std::optional<bool> holds = Condition(begin, at_);
          if (!holds)
            Note(Msg("{}: what this condition depends on is not in the script; read as if it held", At(line)));
          run = holds.value_or(true);
        }
      }
      taken = taken || run;
      if (!AtEnd() && Now().text == "then") ++at_;
      MSP_RETURN_IF_ERROR(Block({"elif", "else", "fi"}, run, level + 1));
    }
    if (!AtEnd()) ++at_;
    return OkStatus();
  }

  /// [ A op B ] and [[ A op B ]]; nullopt if it is anything else, or a side is not known.
  std::optional<bool> Condition(size_t begin, size_t end) {
    std::vector<std::string> words;
    for (size_t i = begin; i < end; ++i) {
      const ShellToken& token = (*tokens_)[i];
      if (token.kind == Kind::kEndOfLine || token.text == ";") continue;
      if (token.kind == Kind::kOperator) return std::nullopt;
      if (token.text == "[" || token.text == "[[" || token.text == "]" || token.text == "]]" || token.text == "test") {
        continue;
      }
      words.push_back(values_.Text(token.text));
    }
    return ConditionHolds(std::move(words));
  }

  Status Loop(bool active, int level) {  // NOLINT(misc-no-recursion): kMaxBlocks
    const int line = Now().line;
    const bool counted = Now().text == "for";
    ++at_;
    const size_t begin = at_;
    while (!AtEnd() && Now().text != "do") ++at_;
    std::vector<ShellField> turns;
    const bool listed = active && counted && at_ >= begin + 3 && (*tokens_)[begin + 1].text == "in";
    for (size_t i = begin + 2; listed && i < at_ && (*tokens_)[i].kind == Kind::kWord; ++i) {
      for (ShellField& field : values_.Expand((*tokens_)[i].text, file_, line)) turns.push_back(std::move(field));
    }
    if (!AtEnd()) ++at_;
    const size_t body = at_, commands = out_.commands.size();
    const std::string name = listed ? std::string((*tokens_)[begin].text) : std::string();
    const bool open = std::ranges::any_of(turns, [](const ShellField& field) { return IsOpen(field.text); });
    const bool known = !turns.empty() && !open && turns.size() <= kMostTurns;
    if (!turns.empty()) values_.Set(name, {turns.front()});
    MSP_RETURN_IF_ERROR(Block({"done"}, active, level + 1));
    // Turns that start programs are runs beside each other, or one after the other.
    const bool one = !known || out_.commands.size() != commands;
    if (active && one) Note(Msg("{}: a loop is read as one turn", At(line)));
    for (size_t i = 1; !one && i < turns.size(); ++i) {
      values_.Set(name, {turns[i]});
      at_ = body;
      MSP_RETURN_IF_ERROR(Block({"done"}, true, level + 1));
    }
    if (!AtEnd()) ++at_;
    return OkStatus();
  }

  Status Case(bool active, int level) {  // NOLINT(misc-no-recursion): kMaxBlocks
    ++at_;
    const int line = AtEnd() ? 0 : Now().line;
    const std::string value = AtEnd() ? std::string() : values_.Text(Now().text);
    const bool known = !IsOpen(value);
    if (active && !known)
      Note(Msg("{}: what this choice depends on is not in the script; no branch of it is read", At(line)));
    while (!AtEnd() && Now().text != "in") ++at_;
    if (!AtEnd()) ++at_;
    bool taken = false;
    while (!AtEnd() && Now().text != "esac") {
      bool matches = false;
      while (!AtEnd() && Now().text != ")" && Now().text != "esac") {
        if (Now().kind == Kind::kWord) {
          const std::string pattern = values_.Text(Now().text);
          matches = matches || TestHolds(value, "==", pattern).value_or(false);
        }
        ++at_;
      }
      if (AtEnd() || Now().text == "esac") break;
      ++at_;
      const bool run = active && known && matches && !taken;
      taken = taken || run;
      MSP_RETURN_IF_ERROR(CaseBody(run, level));
    }
    if (!AtEnd()) ++at_;
    return OkStatus();
  }

  Status CaseBody(bool run, int level) {
    while (!AtEnd() && Now().text != ";;" && Now().text != "esac") {
      if (Now().kind != Kind::kWord) {
        ++at_;
        continue;
      }
      const Words words = TakeCommand();
      const bool last = !AtEnd() && Now().text == ";;";
      if (!last) EndCommand();
      if (run) MSP_RETURN_IF_ERROR(Command(words, level));
    }
    if (!AtEnd() && Now().text == ";;") ++at_;
    SkipSeparators();
    return OkStatus();
  }

  Status Command(const Words& words, int level) {  // NOLINT(misc-no-recursion): kMaxBlocks, kMaxSourced
    size_t at = 0;
    if (at < words.size() && (words[at]->text == "export" || words[at]->text == "declare" ||
                              words[at]->text == "local" || words[at]->text == "readonly")) {
      return Declare(words);
    }
    std::vector<size_t> assigned;
    while (at < words.size() && values_.Assign(words[at]->text, file_, words[at]->line)) assigned.push_back(at++);
    if (at == words.size()) return OkStatus();
    for (const size_t i : assigned) {
      const std::string name(words[i]->text.substr(0, words[i]->text.find('=')));
      if (const auto* value = values_.Find(name); value && !value->empty()) {
        out_.environment.push_back({name, ConfigValue::Of(value->front().text), file_, words[i]->line});
      }
    }
    std::vector<ShellField> fields;
    for (; at < words.size(); ++at) {
      for (ShellField& field : values_.Expand(words[at]->text, file_, words[at]->line)) {
        fields.push_back(std::move(field));
      }
    }
    if (fields.empty()) return OkStatus();
    const std::string& name = fields[0].text;
    if ((name == "source" || name == ".") && fields.size() > 1) return Source(fields[1]);
    if (name == "read" && !AtEnd() && Now().kind == Kind::kDocument) return ReadDocument(fields.back());
    if (name == "eval") return Evaluate(std::move(fields));
    for (size_t i = 2; i < fields.size(); ++i) {
      if (IsShellText(fields, i)) return RunInner(fields, i);
    }
    if (output_ && (name == "echo" || name == "printf" || name == "cat")) return Print(fields);
    if (name == "set" && fields.size() > 1 && fields[1].text == "--") {
      values_.SetArguments(std::vector<ShellField>(fields.begin() + 2, fields.end()));
      return OkStatus();
    }
    if (name == "shift") {
      std::optional<std::vector<ShellField>> given = values_.Arguments();
      if (given && !given->empty()) given->erase(given->begin());
      values_.SetArguments(std::move(given));
      return OkStatus();
    }
    if (const auto found = functions_.find(name); found != functions_.end()) return Call(found->second, fields, level);
    out_.commands.push_back(std::move(fields));
    return OkStatus();
  }

  /// A function of the script, with what it is given.
  Status Call(const Place& body, const std::vector<ShellField>& fields, int level) {  // NOLINT(misc-no-recursion)
    if (level > kMaxBlocks) return BadInput(Msg("{} calls functions that call each other without an end", file_));
    std::optional<std::vector<ShellField>> saved = values_.Arguments();
    values_.SetArguments(std::vector<ShellField>(fields.begin() + 1, fields.end()));
    const Status status = RunAt(Place(body), {"}"}, level + 8);
    values_.SetArguments(std::move(saved));
    return status;
  }

  /// What $(command) prints: functions of the script, echo, printf, cat of a here-document and expr; nullopt for what
  /// only a run knows.
  std::optional<std::string> Output(std::string_view command) {  // NOLINT(misc-no-recursion): kMaxSubstituted
    constexpr int kMaxSubstituted = 8;
    const auto read = ShellTokens(command, file_);
    if (!read.ok() || read->empty() || substituted_ >= kMaxSubstituted) return std::nullopt;
    const std::string_view name = read->front().text;
    if (name == "expr") return Sum(*read);
    const bool document = std::ranges::any_of(*read, [](const ShellToken& t) { return t.kind == Kind::kDocument; });
    const bool prints = name == "echo" || name == "printf" || (name == "cat" && document);
    if (!prints && !functions_.count(name)) return std::nullopt;
    const bool piped = std::ranges::any_of(*read, [](const ShellToken& t) { return t.text == "|"; });
    if (piped) return std::nullopt;
    std::string printed;
    std::string* const saved = std::exchange(output_, &printed);
    ++substituted_;
    const Status status = RunAt({&*read, 0, file_}, {}, 0);
    --substituted_;
    output_ = saved;
    if (!status.ok()) return std::nullopt;
    while (EndsWith(printed, "\n")) printed.pop_back();
    return printed;
  }

  /// expr 64 / 4
  std::optional<std::string> Sum(const std::vector<ShellToken>& words) {
    std::string text;
    for (size_t i = 1; i < words.size(); ++i) text += values_.Text(words[i].text) + " ";
    const std::string sum = IsOpen(text) ? text : values_.Arithmetic(text);
    return IsOpen(sum) ? std::nullopt : std::optional(sum);
  }

  Status Print(const std::vector<ShellField>& fields) {
    if (fields[0].text == "cat") {
      if (!AtEnd() && Now().kind == Kind::kDocument) *output_ += DocumentText() + "\n";
      return OkStatus();
    }
    const bool formats = fields[0].text == "printf" && fields.size() > 2;
    for (size_t i = formats ? 2 : 1; i < fields.size(); ++i) {
      if (i == 1 && StartsWith(fields[i].text, "-") && fields[i].text.size() == 2 && fields[0].text == "echo") continue;
      *output_ += fields[i].text + " ";
    }
    *output_ += "\n";
    return OkStatus();
  }

  Status Declare(const Words& words) {
    const bool exports = words[0]->text == "export";
    for (size_t i = 1; i < words.size(); ++i) {
      std::string_view name = words[i]->text.substr(0, words[i]->text.find('='));
      if (EndsWith(name, "+")) name.remove_suffix(1);
      if (StartsWith(name, "-")) continue;
      values_.Assign(words[i]->text, file_, words[i]->line);
      if (exports) values_.Export(std::string(name));
    }
    return OkStatus();
  }

  /// `read -r -d '' NAME <<END`: the lines are the value of the variable.
  Status ReadDocument(const ShellField& name) {
    values_.Set(name.text, {{DocumentText(), file_, Now().line}});
    return OkStatus();
  }
  std::string DocumentText() {
    std::string text(Now().text);
    for (size_t at; (at = text.find("\\\n")) != std::string::npos;) text.replace(at, 2, " ");
    return values_.Text(text);
  }

  /// The lines of a here-document, in which quotes are nothing special.
  std::string Quoted(std::string_view text) {
    std::string out(text);
    for (size_t at = 0; (at = out.find('"', at)) != std::string::npos; at += 2) out.insert(at, 1, '\\');
    return values_.Text("\"" + out + "\"");
  }

  /// The arguments as a line of their own.
  Status Evaluate(std::vector<ShellField> fields) {
    std::string line;
    for (size_t i = 1; i < fields.size(); ++i) line += fields[i].text + " ";
    std::vector<ShellField> out;
    MSP_ASSIGN_OR_RETURN(const std::vector<ShellToken> tokens, ShellTokens(line, file_, fields[0].line));
    for (const ShellToken& token : tokens) {
      if (token.kind != Kind::kWord) break;
      for (ShellField& field : values_.Expand(token.text, file_, fields[0].line)) out.push_back(std::move(field));
    }
    if (!out.empty()) out_.commands.push_back(std::move(out));
    return OkStatus();
  }

  /// bash -c 'text': its commands behind the words that start the shell.
  Status RunInner(const std::vector<ShellField>& fields, size_t at) {  // NOLINT(misc-no-recursion): kMaxSourced
    if (depth_ >= kMaxSourced) return BadInput(Msg("{}: scripts source each other without an end", file_));
    const auto entry = read_.try_emplace("-c" + fields[at].text).first;
    MSP_ASSIGN_OR_RETURN(entry->second, ShellTokens(std::string_view(entry->first).substr(2), file_, fields[at].line));
    const size_t first = out_.commands.size();
    ++depth_;
    const Status status = RunAt({&entry->second, 0, file_}, {}, 0);
    --depth_;
    for (size_t i = first; i < out_.commands.size(); ++i) {
      std::vector<ShellField>& words = out_.commands[i];
      words.insert(words.begin(), fields.begin(), fields.begin() + static_cast<int64_t>(at) - 2);
    }
    return status;
  }

  Status Source(const ShellField& what) {  // NOLINT(misc-no-recursion): kMaxSourced
    if (depth_ >= kMaxSourced) return BadInput(Msg("{}: scripts source each other without an end", file_));
    std::string path = what.text;
    if (!StartsWith(path, "/") && !PathExists(path)) path = JoinPath(values_.directory(), what.text);
    if (IsOpen(what.text) || !IsRegularFile(path)) {
      Note(Msg("{}: the sourced file {} is not here; what it sets is not known", At(what.line), OneLine(what.text)));
      return OkStatus();
    }
    if (!sourced_.count(path)) {
      MSP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
      sourced_.emplace(path, std::move(file));
    }
    return RunText(sourced_.at(path).text(), path, depth_ + 1);
  }

  ShellValues values_;
  ShellReading out_;
  const std::vector<ShellToken>* tokens_ = nullptr;
  size_t at_ = 0;
  std::string file_;
  std::map<std::string, MappedFile> sourced_;
  std::map<std::string, std::vector<ShellToken>> read_;  // words of the files, by path, and of texts of shells
  std::map<std::string, Place, std::less<>> functions_;  // where their bodies begin
  std::string* output_ = nullptr;                        // of a command whose output is taken
  size_t written_ = 0;                                   // bytes of here-documents that are kept
  bool test_held_ = false;                               // of `test && A || B`: B is passed over
  int depth_ = 0, substituted_ = 0;
  size_t steps_ = 0;
};

}  // namespace

StatusOr<ShellReading> ReadShell(std::string_view text, const std::string& path) {
  if (!IsUtf8(text)) return BadInput(Msg("{} is not UTF-8 text: save it as UTF-8", path));
  ShellRunner runner(text, path);
  MSP_RETURN_IF_ERROR(runner.RunText(text, path, 0));
  return runner.Take();
}

}  // namespace msprobe
