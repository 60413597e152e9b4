#include "dump/repair/recover.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <unordered_set>

#include "base/file.h"
#include "base/message.h"
#include "base/temp_names.h"
#include "base/text.h"
#include "dump/reader.h"
#include "json/writer.h"

namespace msprobe {
namespace {

constexpr int kQuietSeconds = 120;  // a writer on another host that wrote nothing for so long is taken for dead

struct KnownFile {
  const char* name;
  SalvageKind kind;
};
constexpr KnownFile kFiles[] = {{"dump.json", SalvageKind::kDump},
                                {"debug.json", SalvageKind::kDump},
                                {"stack.json", SalvageKind::kFlat},
                                {"construct.json", SalvageKind::kFlat}};

bool IsForward(std::string_view name) { return EndsWith(name, ".forward") || Contains(name, ".forward."); }

StatusOr<std::string> KeepOriginal(const std::string& path) {
  for (int number = 1; number < 1000; ++number) {
    const std::string kept = path + ".damaged" + (number == 1 ? "" : std::to_string(number));
    if (link(path.c_str(), kept.c_str()) == 0) return std::string(BaseName(kept));
    if (errno == EEXIST) continue;
    // No hard links here: the original is renamed, and for a moment nothing has its name.
    if (PathExists(kept)) continue;
    if (rename(path.c_str(), kept.c_str()) == 0) return std::string(BaseName(kept));
    return InternalError(
        Msg("{} cannot be made ({}): recover into another directory by -o", kept, KnownText(std::strerror(errno))));
  }
  return InternalError(Msg("{}.damaged and its numbered names are taken: remove what is not needed any more", path));
}

Status Finish(const MappedFile& file, SalvageKind kind, const std::string& target, FileRecovery* recovery) {
  MSP_ASSIGN_OR_RETURN(OutputFile out, OutputFile::Create(target));
  Salvage again;
  MSP_RETURN_IF_ERROR(SalvageFile(file, kind, &again, [&](std::string_view piece) { return out.Write(piece); }));
  if (target == file.path()) {
    MSP_ASSIGN_OR_RETURN(recovery->kept_as, KeepOriginal(target));
  }
  recovery->state = FileRecovery::State::kFinished;
  return out.Commit();
}

Status CopyFile(const std::string& from, const std::string& to) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(from));
  MSP_ASSIGN_OR_RETURN(OutputFile out, OutputFile::Create(to));
  constexpr size_t kPiece = size_t{4} << 20;
  for (size_t at = 0; at < file.text().size(); at += kPiece) {
    MSP_RETURN_IF_ERROR(out.Write(file.text().substr(at, kPiece)));
    file.Release(0, at);
  }
  return out.Commit();
}

/// Empty, or why the step must not be touched.
Message WhyAlive(const RankRecovery& rank, bool force) {
  if (!rank.summary) return {};
  switch (WriterOf(*rank.summary)) {
    case Writer::kGone: return {};
    case Writer::kAlive:
      return Msg("process {} is still recording it: wait for its end, or recover a copy by -o", rank.summary->pid);
    case Writer::kElsewhere: break;
  }
  struct stat st {};
  const bool quiet =
      stat(JoinPath(rank.path, kSummaryName).c_str(), &st) != 0 || std::time(nullptr) - st.st_mtime > kQuietSeconds;
  if (force || quiet) return {};
  return Msg(
      "it was written a moment ago on host {}: when that process has ended, recover with --force, or a copy by -o",
      rank.summary->host);
}

Status RecoverFile(const std::string& source, const std::string& target, SalvageKind kind, FileRecovery* recovery) {
  const auto file = MappedFile::Open(source);
  const Status read = file.ok() ? SalvageFile(*file, kind, &recovery->found) : file.status();
  if (!read.ok()) {
    if (read.code() != Code::kBadInput) return read;
    recovery->state = FileRecovery::State::kUnreadable;
    recovery->error = read.text();
    return OkStatus();
  }
  if (!recovery->found.whole) return Finish(*file, kind, target, recovery);
  return source == target ? OkStatus() : CopyFile(source, target);
}

/// What the finished files say about each other.
Status Count(RankRecovery* rank, const std::string& dir) {
  const std::string path = JoinPath(dir, "dump.json");
  if (!IsRegularFile(path)) return OkStatus();
  const auto dump = DumpFile::Open(path);
  if (!dump.ok()) return dump.status().code() == Code::kBadInput ? OkStatus() : dump.status();
  rank->ops = dump->ops().size();
  if (rank->summary && rank->summary->ops > rank->ops) rank->ops_missing = rank->summary->ops - rank->ops;
  if (const auto stacks = StackFile::Open(JoinPath(dir, "stack.json")); stacks.ok()) {
    for (const OpSpan& op : dump->ops()) rank->without_stack += IsForward(op.name) && !stacks->StackOf(op.name);
  }
  const auto construct = ConstructFile::Open(JoinPath(dir, "construct.json"));
  if (!construct.ok() || dump->level() == "L1") return OkStatus();
  std::unordered_set<std::string_view> known;
  for (const ConstructEntry& entry : construct->entries) known.insert(entry.name);
  for (const OpSpan& op : dump->ops()) {
    rank->without_parent += !known.contains(op.name) && !Contains(op.name, ".parameters_grad");
  }
  return OkStatus();
}

Status WriteSummary(const RankRecovery& rank, const std::string& dir) {
  if (!rank.summary || rank.summary->state != "recording") return OkStatus();
  StepSummary summary = *rank.summary;
  summary.state = "recovered";
  summary.ops = rank.ops;
  MSP_ASSIGN_OR_RETURN(OutputFile out, OutputFile::Create(JoinPath(dir, kSummaryName)));
  MSP_RETURN_IF_ERROR(out.Write(summary.Json()));
  return out.Commit();
}

Status RecoverRank(const RecoverSettings& settings, RankRecovery* rank) {
  const bool in_place = settings.output.empty();
  if (const std::string summary = JoinPath(rank->path, kSummaryName); IsRegularFile(summary)) {
    auto read = StepSummary::Read(summary);
    if (read.ok()) rank->summary = *std::move(read);
  }
  if (in_place) rank->refused = WhyAlive(*rank, settings.force);
  if (!rank->refused.empty()) return OkStatus();
  if (!in_place) MSP_RETURN_IF_ERROR(MakeOutputDir(rank->output));
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(rank->path));
  rank->temporary_files = static_cast<uint64_t>(std::count_if(names.begin(), names.end(), IsTempName));
  for (const KnownFile& known : kFiles) {
    const std::string source = JoinPath(rank->path, known.name);
    if (!IsRegularFile(source)) continue;
    FileRecovery& file = rank->files.emplace_back();
    file.name = known.name;
    MSP_RETURN_IF_ERROR(RecoverFile(source, JoinPath(rank->output, known.name), known.kind, &file));
  }
  MSP_RETURN_IF_ERROR(Count(rank, rank->output));
  return WriteSummary(*rank, rank->output);
}

}  // namespace

bool RankRecovery::changed() const {
  return std::any_of(files.begin(), files.end(),
                     [](const FileRecovery& f) { return f.state == FileRecovery::State::kFinished; });
}

bool RankRecovery::complete() const {
  return refused.empty() && !files.empty() && ops_missing == 0 &&
         std::none_of(files.begin(), files.end(),
                      [](const FileRecovery& f) { return f.state == FileRecovery::State::kUnreadable; });
}

StatusOr<std::vector<RankRecovery>> RecoverDump(const RecoverSettings& settings) {
  MSP_ASSIGN_OR_RETURN(const DumpPath dump, ResolveDumpPath(settings.path));
  if (dump.kind == PathKind::kFile) {
    return BadInput(
        Msg("{} is a file: give the directory it is in, its companions are finished with it", settings.path));
  }
  if (!settings.output.empty() && PathExists(settings.output)) {
    MSP_ASSIGN_OR_RETURN(const std::vector<std::string> there, ListDirectory(settings.output));
    if (!there.empty()) return BadInput(Msg("{} is not empty: give a new directory by -o", settings.output));
  }
  std::vector<RankRecovery> ranks;
  for (const StepDir& step : dump.steps) {
    for (const RankDir& dir : step.ranks) {
      RankRecovery& rank = ranks.emplace_back();
      rank.path = rank.output = dir.path;
      rank.step = step.step;
      rank.rank = dir.name;
      if (!settings.output.empty()) {
        rank.output = settings.output;
        if (dump.kind == PathKind::kDump) rank.output = JoinPath(rank.output, step.name);
        if (dump.kind != PathKind::kRank) rank.output = JoinPath(rank.output, dir.name);
      }
      MSP_RETURN_IF_ERROR(RecoverRank(settings, &rank));
    }
  }
  return ranks;
}

namespace {

Message EntriesOf(const FileRecovery& f, const Message& entries, const Message& stacks) {
  return f.name == "stack.json" ? stacks : entries;
}

Message FileText(const RankRecovery& rank, const FileRecovery& f) {
  const auto n = f.found.entries;
  if (f.state == FileRecovery::State::kUnreadable) return Msg("nothing to recover, {}", f.error);
  if (f.state == FileRecovery::State::kWhole) {
    return EntriesOf(f, Msg("whole, {} entries", n), Msg("whole, {} stacks", n));
  }
  Message found = EntriesOf(f, Msg("{} entries recovered", n), Msg("{} stacks recovered", n));
  if (f.found.broken > 0) found = Msg("{}, {}", found, Msg("{} unreadable left out", f.found.broken));
  if (f.found.bytes_lost > 0)
    found = Msg("{}, {}", found, Msg("{} bytes behind the last one lost", f.found.bytes_lost));
  std::vector<Message> out = {f.found.trouble, found};
  if (!f.kept_as.empty()) out.push_back(Msg("the original is {}", f.kept_as));
  if (rank.output != rank.path) out.push_back(Msg("the original is untouched"));
  return Joined(out, Msg("; "));
}

void Missing(Message* out, uint64_t count, const Message& what) {
  if (count > 0) *out += Msg("  missing: {}\n", what);
}

}  // namespace

Message RecoveryText(const std::vector<RankRecovery>& ranks) {
  Message out;
  for (const RankRecovery& rank : ranks) {
    out += Message(rank.path + (rank.output == rank.path ? "" : " -> " + rank.output) + "\n");
    if (!rank.refused.empty()) {
      out += Msg("  left alone: {}\n", rank.refused);
      continue;
    }
    for (const FileRecovery& f : rank.files) out += Msg("  {}: {}\n", f.name, FileText(rank, f));
    if (rank.summary && rank.summary->state == "recording") {
      out += Msg("  the run ended in this step after {} ops were reported flushed; {} are there\n", rank.summary->ops,
                 rank.ops);
    }
    Missing(&out, rank.ops_missing, Msg("{} ops that were reported flushed", rank.ops_missing));
    Missing(&out, rank.without_stack, Msg("{} call stacks of recorded ops", rank.without_stack));
    Missing(&out, rank.without_parent, Msg("{} parents of recorded ops", rank.without_parent));
    if (rank.temporary_files > 0) {
      out += Msg("  {} temporary files of the killed process may be removed\n", rank.temporary_files);
    }
  }
  return out;
}

std::string RecoveryJson(const std::vector<RankRecovery>& ranks) {
  std::string out;
  JsonWriter json(&out, kJsonIndented);
  const auto count = [&](const char* key, uint64_t value) { json.Key(key), json.UInt(value); };
  const auto text = [&](const char* key, std::string_view value) {
    if (!value.empty()) json.Key(key), json.String(value);
  };
  json.BeginObject();
  json.Key("ranks");
  json.BeginArray();
  for (const RankRecovery& rank : ranks) {
    json.BeginObject();
    text("path", rank.path);
    text("output", rank.output);
    json.Key("step"), json.Int(rank.step);
    text("rank", rank.rank);
    text("refused", rank.refused);
    json.Key("changed"), json.Bool(rank.changed());
    count("ops", rank.ops);
    if (rank.summary) count("ops_reported_flushed", rank.summary->ops);
    count("ops_missing", rank.ops_missing);
    count("without_stack", rank.without_stack);
    count("without_parent", rank.without_parent);
    count("temporary_files", rank.temporary_files);
    json.Key("files");
    json.BeginArray();
    for (const FileRecovery& f : rank.files) {
      json.BeginObject();
      text("name", f.name);
      constexpr const char* kStates[] = {"whole", "finished", "unreadable"};
      text("state", kStates[static_cast<int>(f.state)]);
      count("entries", f.found.entries);
      count("broken", f.found.broken);
      count("bytes_lost", f.found.bytes_lost);
      text("trouble", f.found.trouble);
      text("kept_as", f.kept_as);
      text("error", f.error);
      json.EndObject();
    }
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return out;
}

}  // namespace msprobe
