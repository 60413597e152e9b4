#include "view/run/run_json.h"

#include <algorithm>

#include "base/base64.h"
#include "base/file.h"
#include "base/words/translate.h"
#include "json/writer.h"

namespace msprobe::view {
namespace {

constexpr size_t kMostRanksNamed = 8;

void WriteSize(JsonWriter* json, std::string_view key, float value) {
  json->Key(key);
  value == kNoBinValue ? json->Null() : json->Rounded(value, 9);
}

void WritePacked(JsonWriter* json, std::string_view key, const RunTile& tile, CellView view) {
  std::vector<float> values;
  values.reserve(tile.cells.size());
  for (const BinCell& cell : tile.cells) values.push_back(CellValue(cell, view));
  json->Member(key, Base64({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}));
}

}  // namespace

std::string RunJson(const std::vector<int64_t>& ranks, const RunInfo& info, int64_t changed,
                    const std::optional<RunStatus>& status) {
  JsonWriter json(kJsonPage);
  json.Object([&] {
    json.Member("ranks", ranks);
    size_t at = 0;
    json.ArrayMember("metrics", info.metrics, [&](const RunMetric& metric) {
      json.Object([&] {
        json.Member("name", metric.name);
        json.Member("stats", metric.stats);
        json.Member("series", info.series[at++]);
      });
    });
    json.Member("first_step", info.first_step);
    json.Member("last_step", info.last_step);
    json.Member("interval", info.interval);
    json.Member("version", info.version);
    json.Member("behind", info.behind);
    json.Member("cut_rows", info.cut_rows.count);
    json.Member("cut_file", BaseName(info.cut_rows.file));
    json.Member("changed", changed);
    if (!status) return;
    const auto worse = [](const RankStatus& a, const RankStatus& b) { return a.health < b.health; };
    const auto worst = std::max_element(status->ranks.begin(), status->ranks.end(), worse);
    json.Member("health", NameOf(worst->health));
    json.Key("ranks_with_it"), json.BeginArray();
    size_t written = 0;
    for (const RankStatus& rank : status->ranks) {
      if (rank.health == worst->health && written++ < kMostRanksNamed) json.Int(rank.rank);
    }
    json.EndArray();
  });
  return json.Take();
}

std::string ToJson(const RunRowsAnswer& answer) {
  JsonWriter json(kJsonPage);
  json.Object([&] {
    size_t at = 0;
    json.ArrayMember("rows", answer.rows, [&](const RunRow& row) {
      const RunRowSize& size = answer.sizes[at++];
      json.Object([&] {
        json.Member("label", row.label);
        json.Member("series", row.members.size());
        WriteSize(&json, "middle", size.middle);
        json.Key("spread");
        json.Rounded(size.spread, 9);
      });
    });
    WriteSize(&json, "low", answer.low);
    WriteSize(&json, "high", answer.high);
    WriteSize(&json, "least", answer.least);
    json.Member("odd", answer.odd);
    json.Member("behind", answer.behind);
  });
  return json.Take();
}

std::string TileJson(const RunTile& tile, CellView view, bool whole) {
  JsonWriter json(kJsonPage);
  json.Object([&] {
    json.Member("rows", tile.rows.size());
    json.Member("bins", tile.bins);
    json.Member("final", tile.final);
    json.Member("behind", tile.behind);
    if (whole) {
      WritePacked(&json, "lowest", tile, CellView::kLowest);
      WritePacked(&json, "highest", tile, CellView::kHighest);
      WritePacked(&json, "mean", tile, CellView::kMean);
    } else {
      WritePacked(&json, "values", tile, view);
    }
  });
  return json.Take();
}

std::string ToJson(const RunFindings& findings) {
  JsonWriter json(kJsonPage);
  json.Object([&] {
    json.Member("judging", findings.judging);
    if (!findings.unjudged.empty()) {
      json.Member("unjudged", findings.unjudged.English());
      json.Member("unjudged_zh", InLanguage(findings.unjudged, Language::kChinese));
    }
    json.ArrayMember("events", findings.events, [&](const RunEvent& event) {
      json.Object([&] {
        json.Member("step", event.step);
        json.Member("rank", event.rank);
        json.Member("series", event.series);
        json.Member("text", event.text);
        json.Member("source", event.source);
        if (!event.text_zh.empty()) json.Member("text_zh", event.text_zh);
        if (!event.metric.empty()) json.Member("metric", event.metric);
        if (!event.stat.empty()) json.Member("stat", event.stat);
        if (!event.rows.empty()) json.Member("rows", event.rows);
        if (event.leads) json.Member("leads", true);
      });
    });
  });
  return json.Take();
}

}  // namespace msprobe::view
