#include "view/run/run_events.h"

#include <algorithm>
#include <tuple>

#include "base/file.h"
#include "json/parser.h"

namespace msprobe::view {
namespace {

constexpr size_t kMostEventBytes = size_t{64} << 20;

// Calls take(document) when the file is there and is JSON.
template <typename Take>
void ReadDocument(const std::string& path, const Take& take) {
  if (!IsRegularFile(path)) return;
  const auto file = MappedFile::Open(path);
  JsonDoc doc;
  if (file.ok() && file->text().size() <= kMostEventBytes && ParseJson(file->text(), path, &doc).ok()) take(doc);
}

void AddAnomalies(const std::string& path, std::vector<RunEvent>* events) {
  ReadDocument(path, [&](const JsonDoc& doc) {
    for (const JsonMember& member : doc.Members()) {
      const JsonValue& value = member.value;
      if (!value["step"].IsInt()) continue;
      RunEvent event;
      event.step = value["step"].Int();
      event.rank = value["rank"].Int();
      event.series = value["tag_name"].Text();
      event.text = value["message"].Text();
      event.source = "anomaly";
      events->push_back(std::move(event));
    }
  });
}

// What `msprobe monitor judge --json` prints.
void AddJudgement(const std::string& path, std::vector<RunEvent>* events) {
  ReadDocument(path, [&](const JsonDoc& doc) {
    for (const JsonValue& value : doc["events"].Items()) {
      if (!value["onset"].IsInt()) continue;
      RunEvent event;
      event.step = value["onset"].Int();
      event.rank = value["rank"].IsInt() ? value["rank"].Int() : -1;
      event.series = value["table"].Text();
      event.text = value["text"].Text();
      event.source = "judgement";
      event.metric = value["table"].Text();
      event.stat = value["column"].Text();
      event.leads = &value == &doc["events"].Items().front();
      events->push_back(std::move(event));
    }
  });
}

}  // namespace

std::vector<RunEvent> ReadRunEvents(const std::string& directory, bool judged) {
  std::vector<RunEvent> events;
  if (judged) AddJudgement(JoinPath(directory, "judgement.json"), &events);
  const std::string detected = JoinPath(directory, "anomaly_detected");
  if (const auto names = ListDirectory(detected); IsDirectory(detected) && names.ok()) {
    for (const std::string& name : *names) AddAnomalies(JoinPath(JoinPath(detected, name), "anomaly.json"), &events);
  }
  std::stable_sort(events.begin(), events.end(), [](const RunEvent& a, const RunEvent& b) {
    return std::tie(a.step, a.rank) < std::tie(b.step, b.rank);
  });
  if (events.size() > kMostEvents) events.resize(kMostEvents);
  return events;
}

}  // namespace msprobe::view
