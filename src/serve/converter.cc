#include "serve/converter.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/message.h"
#include "base/text.h"
#include "base/words/translate.h"
#include "json/parser.h"

namespace msprobe::serve {
namespace {

constexpr size_t kMaxLogLines = 400;
constexpr size_t kMaxLine = 4096;
constexpr size_t kMaxOutput = 1 << 20;
constexpr int kPollMs = 50;
constexpr int kPiecesAtOnce = 32;      // 64 KiB each; who writes without end does not keep others from asking
constexpr int kUnknownEnd = 255 << 8;  // as if it had ended with 255
constexpr std::string_view kProgress = "PROGRESS: ";
constexpr std::string_view kErrorLine = "[msprobe] error: ";
constexpr char kChineseMark = '\x1e';  // before the Chinese of the line above

struct Pipe {
  int read = -1, write = -1;
  ~Pipe() {
    CloseRead();
    CloseWrite();
  }
  bool Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return fcntl(read, F_SETFL, O_NONBLOCK) == 0;
  }
  void CloseRead() {
    if (read >= 0) close(std::exchange(read, -1));
  }
  void CloseWrite() {
    if (write >= 0) close(std::exchange(write, -1));
  }
  /// Appends a piece of what is there; false when that is nothing. The end of the stream closes the pipe.
  bool Read(std::string* to) {
    if (read < 0) return false;
    char piece[65536];
    const ssize_t got = ::read(read, piece, sizeof piece);
    if (got > 0) to->append(piece, static_cast<size_t>(got));
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) CloseRead();
    return got > 0;
  }
};

/// Takes the complete lines out of `pending`; at the end also the one that has none.
template <typename Take>
void TakeLines(std::string* pending, bool at_end, const Take& take) {
  if (at_end && !pending->empty() && pending->back() != '\n') *pending += '\n';
  size_t begin = 0;
  for (size_t end; (end = pending->find('\n', begin)) != std::string::npos; begin = end + 1) {
    take(std::string_view(*pending).substr(begin, end - begin));
  }
  pending->erase(0, begin);
  if (pending->size() > kMaxOutput) pending->clear();
}

/// Sockets of the server must not live on in the child. Between fork and exec only such plain calls are allowed.
void CloseOthers() {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, 3U, ~0U, 0U) == 0) return;
#endif
  for (int fd = 3; fd < 4096; ++fd) close(fd);
}

/// Without the handlers that libraries of the program may have for a fork: those of gRPC, which TensorBoard uses, start
/// threads in the child.
pid_t ForkAlone() { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0)); }

/// The environment with English words, each message followed by its Chinese.
std::vector<char*> EnglishEnvironment() {
  static char kEnglish[] = "LC_ALL=C.UTF-8", kBoth[] = "MSPROBE_BOTH_LANGUAGES=1";
  std::vector<char*> out;
  for (char** at = environ; *at != nullptr; ++at) {
    if (!std::string_view(*at).starts_with("LC_ALL=")) out.push_back(*at);
  }
  out.insert(out.end(), {kEnglish, kBoth, nullptr});
  return out;
}

Conversion::Line Both(const Message& message) { return {message.English(), InLanguage(message, Language::kChinese)}; }

[[noreturn]] void Become(const char* command, char* const* argv, char* const* environment, const char* directory,
                         const Pipe& out, const Pipe& err, pid_t server) {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);  // the server's handlers would swallow them
  setpgid(0, 0);  // Ctrl-C in the server's terminal is for the server, which ends its child itself
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nothing = open("/dev/null", O_RDONLY);
  const bool ready = getppid() == server && nothing >= 0 && dup2(nothing, 0) >= 0 && dup2(out.write, 1) >= 0 &&
                     dup2(err.write, 2) >= 0 && chdir(directory) == 0;
  if (ready) {
    CloseOthers();
    execve(command, argv, environment);
  }
  constexpr char kText[] = "[msprobe] error: the conversion cannot be started: is msprobe still installed?\n";
  (void)!write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(127);
}

}  // namespace

struct Converter::Child {
  pid_t pid = -1;
  Pipe out, err;
  int urged = 0;  // signals sent
};

Converter::Converter(std::string command, std::string directory, std::chrono::milliseconds patience)
    : command_(std::move(command)), directory_(std::move(directory)), patience_(patience) {}

Converter::~Converter() {
  {
    std::lock_guard lock(mutex_);
    if (last_.state == Conversion::State::kRunning) last_.state = Conversion::State::kCancelling;
    cancelled_ = Clock::now();
  }
  if (thread_.joinable()) thread_.join();
}

bool Converter::Busy() const {
  return last_.id != 0 && (last_.state == Conversion::State::kRunning || last_.state == Conversion::State::kCancelling);
}

std::optional<int64_t> Converter::Start(std::vector<std::string> options) {
  std::lock_guard lock(mutex_);
  if (Busy()) return std::nullopt;
  if (thread_.joinable()) thread_.join();  // it ended before it said so
  const int64_t id = last_.id + 1;
  last_ = Conversion();
  last_.id = id;
  last_.command = {"msprobe", "graph_visualize"};
  last_.command.insert(last_.command.end(), std::make_move_iterator(options.begin()),
                       std::make_move_iterator(options.end()));
  log_.clear();
  output_.clear();
  last_error_ = {};
  progress_error_ = {};
  began_ = Clock::now();
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& error) {
    last_error_ = Both(Msg("the conversion cannot be started ({}): end other programs, then try again", error.what()));
    Finish(1 << 8);
  }
  return id;
}

bool Converter::Cancel(int64_t id) {
  std::lock_guard lock(mutex_);
  if (last_.id != id || !Busy()) return false;
  if (last_.state == Conversion::State::kRunning) cancelled_ = Clock::now();
  last_.state = Conversion::State::kCancelling;
  return true;
}

std::optional<Conversion> Converter::Last() {
  std::lock_guard lock(mutex_);
  if (last_.id == 0) return std::nullopt;
  Conversion out = last_;
  if (Busy()) out.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  out.log.assign(log_.begin(), log_.end());
  return out;
}

// The child's life is bound to this thread's, and so to the server's: the kernel ends it when the server is killed.
void Converter::Run() {
  std::vector<std::string> words;
  {
    std::lock_guard lock(mutex_);
    words = last_.command;
  }
  words.emplace_back("--json");
  words.emplace_back("--is_print_progress_log");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::vector<char*> environment = EnglishEnvironment();
  Child child;
  const pid_t server = getpid();
  if (child.out.Open() && child.err.Open()) child.pid = ForkAlone();
  if (child.pid == 0)
    Become(command_.c_str(), argv.data(), environment.data(), directory_.c_str(), child.out, child.err, server);
  if (child.pid < 0) {
    std::lock_guard lock(mutex_);
    last_error_ = Both(Msg("the conversion cannot be started ({}): end other programs, then try again",
                           KnownText(std::strerror(errno))));
    return Finish(1 << 8);
  }
  child.out.CloseWrite();
  child.err.CloseWrite();
  Follow(&child);
}

void Converter::Follow(Child* child) {
  std::string output, errors;
  int status = 0;
  for (bool ended = false; !ended;) {
    std::array<pollfd, 2> ready{{{child->out.read, POLLIN, 0}, {child->err.read, POLLIN, 0}}};
    poll(ready.data(), ready.size(), kPollMs);  // closed ones are -1 and only waited for
    // What the child started may keep the pipes open; it is the child's own end that counts.
    const pid_t waited = waitpid(child->pid, &status, WNOHANG);
    ended = waited == child->pid;
    // A program that we are a guest of may take the ends of all its children: then what was printed has to tell.
    if (waited < 0 && errno == ECHILD) {
      ended = true;
      status = kUnknownEnd;
    }
    std::lock_guard lock(mutex_);
    for (int i = 0; i < kPiecesAtOnce && child->out.Read(&output); ++i) {
      TakeLines(&output, false, [this](std::string_view line) { TakeOutput(line); });
    }
    for (int i = 0; i < kPiecesAtOnce && child->err.Read(&errors); ++i) {
      TakeLines(&errors, false, [this](std::string_view line) { TakeError(line); });
    }
    if (ended) {
      TakeLines(&output, true, [this](std::string_view line) { TakeOutput(line); });
      TakeLines(&errors, true, [this](std::string_view line) { TakeError(line); });
      return Finish(status);
    }
    Urge(child);
  }
}

/// Ctrl-C first; who does not end of it is told twice, and then ended.
void Converter::Urge(Child* child) {
  if (last_.state != Conversion::State::kCancelling) return;
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGKILL};
  if (child->urged >= 3 || Clock::now() < cancelled_ + child->urged * patience_) return;
  const int signal = kSignals[child->urged++];
  kill(signal == SIGKILL ? -child->pid : child->pid, signal);
}

void Converter::TakeOutput(std::string_view line) {
  if (line.starts_with(kProgress)) {
    TakeProgress(line.substr(kProgress.size()));
  } else if (output_.size() + line.size() < kMaxOutput) {
    output_.append(line).append("\n");
  }
}

void Converter::TakeError(std::string_view line) {
  if (line.empty()) return;
  line = line.substr(0, kMaxLine);
  if (line[0] == kChineseMark) {
    const std::string chinese = OneLine(line.substr(1));
    if (log_.empty()) return;
    log_.back().chinese = chinese;
    if (chinese.starts_with(kErrorLine)) last_error_.chinese = chinese.substr(kErrorLine.size());
    return;
  }
  const std::string english = OneLine(line);
  if (line.starts_with(kErrorLine)) {
    const std::string error = english.substr(kErrorLine.size());
    last_error_ = Both(KnownText(error));
    log_.push_back({english, std::string(kErrorLine) + last_error_.chinese});
  } else {
    log_.push_back({english, english});
  }
  if (log_.size() > kMaxLogLines) log_.pop_front();
}

void Converter::TakeProgress(std::string_view json) {
  JsonDoc doc;
  if (!ParseJson(json, "progress", &doc).ok() || !doc.IsObject()) return;
  if (const JsonValue* percent = doc.Find("current_progress"); percent && percent->IsInt32()) {
    last_.percent = std::clamp(percent->Int32(), last_.percent, 100);
  }
  const JsonValue* errors = doc.Find("error_msg");
  if (errors && errors->IsArray() && !errors->empty() && (*errors)[0].IsString()) {
    progress_error_ = Both(KnownText(OneLine((*errors)[0].Text())));
  }
}

// Under the lock.
void Converter::Finish(int wait_status) {
  using State = Conversion::State;
  last_.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  const bool cancelling = last_.state == State::kCancelling;
  JsonDoc doc;
  const JsonValue* file = nullptr;
  if (ParseJson(output_, "summary", &doc).ok()) file = doc.Find("file");
  const bool exited = WIFEXITED(wait_status);
  // A part of the ranks may be missing from a graph that is written.
  if ((exited && WEXITSTATUS(wait_status) == 0) || (file && file->IsString())) {
    last_.state = State::kDone;
    last_.percent = 100;
    last_.error = last_error_;
    last_.text = std::move(output_);
    if (file && file->IsString()) {
      std::string_view path = file->Text();
      if (path.starts_with("./")) path.remove_prefix(2);
      if (path.ends_with(".vis.db")) last_.file = path;
    }
    return;
  }
  last_.state = cancelling ? State::kCancelled : State::kFailed;
  if (cancelling) return;
  const auto ended = [&] {
    return exited ? Msg("the conversion ended with code {}: see its log", WEXITSTATUS(wait_status))
                  : Msg("the conversion was ended by signal {} ({}): the machine may be out of memory",
                        WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
  };
  last_.error = !last_error_.english.empty()       ? last_error_
                : !progress_error_.english.empty() ? progress_error_
                                                   : Both(ended());
}

}  // namespace msprobe::serve
