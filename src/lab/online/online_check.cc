#include "lab/online/online_check.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/embed.h"
#include "base/file.h"
#include "base/message.h"
#include "base/python_process.h"
#include "base/python_program.h"
#include "base/text.h"
#include "json/parser.h"
#include "json/writer.h"
#include "lab/check_pool.h"
#include "lab/online/online_programs.h"

MSPROBE_EMBED(online_receiver, MSPROBE_PROGRAM_FILE);

namespace msprobe {
namespace {

constexpr char kName[] = "acc_check --online", kAnswer[] = "the answer of acc_check --online";
constexpr int kMostRestarts = 100;
constexpr size_t kMostNamed = 100, kMostWorst = 20;

std::string ReceiverProgram() {
  return JoinPrograms({{"_online_wire", OnlineWireProgram()},
                       {"_online_calls", OnlineCallsProgram()},
                       {"_online_journal", OnlineJournalProgram()},
                       {"_online_tls", OnlineTlsProgram()}},
                      MSPROBE_EMBEDDED(online_receiver));
}

bool ReadPort(std::string_view text, int* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size() && *out >= 0 && *out <= 65535;
}

Status ReadText(const JsonValue& section, const char* key, const std::string& path, std::string* out) {
  const JsonValue* v = section.Find(key);
  if (!v || v->IsNull()) return OkStatus();
  if (!v->IsString()) return BadInput(Msg("{}: \"{}\" must be a string", path, key));
  *out = v->Text();
  return OkStatus();
}

/// What several checks found, as one.
void AddReport(AccCheckReport&& part, AccCheckReport* all) {
  all->passed += part.passed, all->warned += part.warned, all->failed += part.failed, all->skipped += part.skipped;
  all->known += part.known;
  for (size_t i = 0; i < part.verdicts.size(); ++i) all->verdicts[i] += part.verdicts[i];
  for (auto& [from, to] : {std::pair{&part.errors, &all->errors}, std::pair{&part.suspects, &all->suspects}}) {
    for (std::string& name : *from) {
      if (to->size() < kMostNamed) to->push_back(std::move(name));
    }
  }
  all->worst.insert(all->worst.end(), part.worst.begin(), part.worst.end());
  std::stable_sort(all->worst.begin(), all->worst.end(), [](const WorstCall& a, const WorstCall& b) {
    return a.verdict != b.verdict ? a.verdict > b.verdict : a.times > b.times;
  });
  if (all->worst.size() > kMostWorst) all->worst.resize(kMostWorst);
  all->device = part.device;
}

class OnlineCheck {
 public:
  OnlineCheck(const OnlineSettings& online, AccCheckSettings settings,
              const std::function<void(const Message&, bool)>& tell)
      : online_(online), settings_(std::move(settings)), tell_(tell) {
    settings_.devices = {std::string(kRecordedDevice)};
    root_ = settings_.output;
    journal_ = online_.folder.empty() ? JoinPath(root_, "online_journal") : online_.folder;
  }

  StatusOr<OnlineReport> Run() {
    MSP_RETURN_IF_ERROR(MakeOutputDir(root_));
    MSP_RETURN_IF_ERROR(Begin());
    for (bool ended = false; !ended;) {
      const Status status = Next(&ended);
      if (status.ok()) continue;
      if (status.code() != Code::kBadInput || process_alive_) return status;
      // What was acknowledged is in the journal, and judged after this.
      if (++restarts_ > kMostRestarts)
        return InternalError(Msg("the process of acc_check --online ended again and again: see what it wrote above"));
      MSP_RETURN_IF_ERROR(Begin());
    }
    report_.calls.device = "recorded";
    return std::move(report_);
  }

 private:
  Status Begin() {
    JsonWriter json;
    json.BeginObject();
    json.Member("journal", journal_);
    json.Member("tls", online_.tls), json.Member("token", online_.token), json.Member("host", online_.host);
    if (online_.folder.empty()) json.Key("port"), json.Int(port_ > 0 ? port_ : online_.port);
    json.Member("ranks", online_.ranks);
    json.Key("most_bytes"), json.Int(online_.journal_bytes);
    json.EndObject();
    MSP_ASSIGN_OR_RETURN(process_, PythonProcess::Start(kName, ReceiverProgram(), {json.Take()}));
    JsonDoc doc;
    MSP_RETURN_IF_ERROR(Read(&doc));
    if (const JsonValue* error = doc.Find("error"))
      return UsageError(Msg("acc_check --online: {}", OneLine(error->Text())));
    const std::string where(doc["listening"].Text());
    if (online_.folder.empty()) ReadPort(std::string_view(where).substr(where.rfind(':') + 1), &port_);
    if (restarts_ == 0) tell_(Msg("calls are taken at {}", OneLine(where)), false);
    return OkStatus();
  }

  Status Read(JsonDoc* doc) {
    process_alive_ = false;
    MSP_ASSIGN_OR_RETURN(const std::string line, process_->ReadLine());
    process_alive_ = true;
    return ParseJson(line, kAnswer, doc);
  }

  Status Say(std::string_view what) {
    const std::string line = "{\"" + std::string(what) + "\": true}\n";
    process_alive_ = false;
    MSP_RETURN_IF_ERROR(process_->Send(line.data(), line.size()));
    process_alive_ = true;
    return OkStatus();
  }

  Status Next(bool* ended) {
    MSP_RETURN_IF_ERROR(Say("next"));
    for (;;) {
      JsonDoc doc;
      MSP_RETURN_IF_ERROR(Read(&doc));
      if (const JsonValue* warning = doc.Find("warning")) {
        tell_(KnownText(OneLine(warning->Text())), true);
      } else if (const JsonValue* said = doc.Find("ended")) {
        for (const JsonValue& rank : said->Items()) {
          if (rank["calls"].IsInt()) report_.sent += static_cast<uint64_t>(rank["calls"].Int());
          if (rank["left"].IsInt()) report_.left += static_cast<uint64_t>(rank["left"].Int());
          if (rank["steps_left_out"].IsInt())
            report_.steps_left_out += static_cast<uint64_t>(rank["steps_left_out"].Int());
        }
        *ended = true;
        return OkStatus();
      } else {
        MSP_RETURN_IF_ERROR(Judge(doc));
        MSP_RETURN_IF_ERROR(Say("judged"));
        JsonDoc forgotten;
        return Read(&forgotten);
      }
    }
  }

  /// Rows that an earlier command has written are found in the table of the step, and not written again.
  Status Judge(const JsonDoc& doc) {
    const std::string place = "step" + std::to_string(doc["step"].Int()) + "/rank" + std::to_string(doc["rank"].Int());
    AccCheckSettings settings = settings_;
    settings.dump = doc["dump"].Text();
    settings.output = JoinPath(root_, place);
    MSP_ASSIGN_OR_RETURN(settings.resume, ResultIn(settings.output));
    if (doc["calls"].Int() == 0) return OkStatus();
    StatusOr<AccCheckReport> report = CheckAccuracy(settings, nullptr, &pool_);
    if (!report.ok())
      return report.status().code() == Code::kBadInput ? InternalError(report.status().text()) : report.status();
    if (std::find(report_.results.begin(), report_.results.end(), report->result) == report_.results.end())
      report_.results.push_back(report->result);
    report_.judged += report->passed + report->warned + report->failed + report->skipped;
    for (WorstCall& call : report->worst) call.full = place + " " + call.full;
    for (std::vector<std::string>* names : {&report->errors, &report->suspects}) {
      for (std::string& name : *names) name = place + " " + name;
    }
    AddReport(*std::move(report), &report_.calls);
    return OkStatus();
  }

  static StatusOr<std::string> ResultIn(const std::string& folder) {
    if (!PathExists(folder)) return std::string();
    MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
    for (const std::string& name : names) {
      if (StartsWith(name, "accuracy_checking_result_")) return JoinPath(folder, name);
    }
    return std::string();
  }

  const OnlineSettings& online_;
  AccCheckSettings settings_;
  const std::function<void(const Message&, bool)>& tell_;
  std::string root_, journal_;
  CheckPool pool_{{std::string(kRecordedDevice)}, LabFramework::kTorch};
  std::unique_ptr<PythonProcess> process_;
  OnlineReport report_;
  int restarts_ = 0, port_ = 0;
  bool process_alive_ = false;
};

}  // namespace

StatusOr<bool> ReadOnlineConfig(const std::string& path, OnlineSettings* out) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(file.text(), path, &doc));
  const JsonValue* section = doc.Find("acc_check");
  if (!section) section = doc.Find("run_ut");
  const JsonValue* online = section ? section->Find("is_online") : nullptr;
  if (!online || !online->IsBool() || !online->Bool()) return false;
  MSP_RETURN_IF_ERROR(ReadText(*section, "nfs_path", path, &out->folder));
  MSP_RETURN_IF_ERROR(ReadText(*section, "host", path, &out->host));
  MSP_RETURN_IF_ERROR(ReadText(*section, "tls_path", path, &out->tls));
  MSP_RETURN_IF_ERROR(ReadText(*section, "token_path", path, &out->token));
  if (const JsonValue* port = section->Find("port"); port && out->folder.empty()) {
    if (!port->IsInt() || port->Int() < 0 || port->Int() > 65535)
      return BadInput(Msg("{}: \"port\" must be a whole number from 0 to 65535", path));
    out->port = static_cast<int>(port->Int());
  }
  if (const JsonValue* ranks = section->Find("rank_list")) {
    out->ranks.clear();
    for (const JsonValue& rank : ranks->Items()) {
      if (!rank.IsInt() || rank.Int() < 0)
        return BadInput(Msg("{}: \"rank_list\" must be a list of numbers from 0", path));
      out->ranks.push_back(rank.Int());
    }
  }
  return true;
}

Status ReadOnlinePlace(const std::string& place, OnlineSettings* out) {
  if (IsDirectory(place)) {
    out->folder = place;
    return OkStatus();
  }
  const size_t colon = place.rfind(':');
  if (colon == std::string::npos || colon == 0 || !ReadPort(std::string_view(place).substr(colon + 1), &out->port))
    return UsageError(Msg("--online takes HOST:PORT, or a directory that is there, not {}", OneLine(place)));
  out->host = place.substr(0, colon);
  if (out->host.front() == '[' && out->host.back() == ']') out->host = out->host.substr(1, out->host.size() - 2);
  return OkStatus();
}

StatusOr<OnlineReport> CheckOnline(const OnlineSettings& online, AccCheckSettings settings,
                                   const std::function<void(const Message&, bool warning)>& tell) {
  return OnlineCheck(online, std::move(settings), tell).Run();
}

}  // namespace msprobe
