#include "jobs/configuration/configuration_page.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "base/words/both_words.h"
#include "report/fill_page.h"
#include "report/report_page.h"

namespace msprobe {
namespace {

constexpr size_t kMostRows = 10'000;  // of a part: what a browser draws and searches at once

void WriteSides(JsonWriter* json, const ConfigurationSides& sides, const std::vector<Message>& warnings,
                const std::vector<std::string>& files) {
  for (const size_t side : {0, 1}) {
    json->ObjectMember(side == 0 ? "target" : "golden", [&] {
      json->Member("files", sides.files[side]);
      json->Member("frameworks", sides.frameworks[side]);
    });
  }
  std::vector<std::string> names;
  for (const std::string& file : files) names.emplace_back(BaseName(file));
  json->Member("files", names);
  json->Member("warnings", warnings);
}

void WriteBoth(JsonWriter* json, std::string_view key, std::string_view english, std::string_view chinese) {
  json->ObjectMember(key, [&] {
    json->Member("en", english);
    json->Member("zh", chinese);
  });
}

void WriteValue(JsonWriter* json, const SheetValue& value) {
  switch (value.kind) {
    case SheetValue::Kind::kNone: return json->Null();
    case SheetValue::Kind::kText: return json->Value(ToUtf8(value.text));
    case SheetValue::Kind::kNumber: return json->Value(value.number);
    case SheetValue::Kind::kBool: return json->Value(value.number != 0);
  }
}

/// Rows that agree stand last: a bounded page loses those.
bool Agrees(const std::vector<SheetValue>& row) {
  return std::any_of(row.begin(), row.end(),
                     [](const SheetValue& cell) { return cell.kind == SheetValue::Kind::kBool && cell.number != 0; });
}

void WriteSheet(JsonWriter* json, const Sheet& sheet) {
  std::vector<const std::vector<SheetValue>*> rows;
  for (const auto& row : sheet.rows) rows.push_back(&row);
  std::stable_partition(rows.begin(), rows.end(), [](const auto* row) { return !Agrees(*row); });
  rows.resize(std::min(rows.size(), kMostRows));
  json->Member("name", sheet.name);
  json->Member("columns", sheet.columns);
  json->Member("total", sheet.rows.size());
  json->ArrayMember("rows", rows, [&](const std::vector<SheetValue>* row) {
    json->BeginArray();
    for (const SheetValue& value : *row) WriteValue(json, value);
    json->EndArray();
  });
}

StatusOr<bool> WritePage(const std::string& path, const ReportHead& head,
                         const std::function<void(JsonWriter*)>& members) {
  if (ReportPage().empty()) return false;
  MSP_ASSIGN_OR_RETURN(const std::string html, FilledReportPage(head, [&](JsonWriter* json) {
                         json->ObjectMember("configuration", [&] { members(json); });
                       }));
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(html));
  MSP_RETURN_IF_ERROR(file.Commit());
  return true;
}

ReportHead Head(std::string_view outcome, const BothWords& headline) {
  return {"configuration", std::string(outcome), headline.en, headline.zh};
}

ReportHead HeadOfRules(const std::vector<const CheckFinding*>& findings, size_t settings) {
  size_t fail = 0, warn = settings;
  for (const CheckFinding* one : findings) {
    fail += one->verdict == CheckVerdict::kFail ? 1 : 0;
    warn += one->verdict == CheckVerdict::kWarn ? 1 : 0;
  }
  if (fail > 0) {
    return Head("origin", Both("{} of {} rules fail.", "{1} 条规则中 {0} 条未通过。", fail, findings.size()));
  }
  if (warn > 0) {
    return Head("unknown",
                Both("No rule fails; {} settings are to be looked at.", "没有规则不通过；{} 项配置需要确认。", warn));
  }
  return Head("equal", Both("No rule of the checklist fails.", "检查清单没有不通过的规则。"));
}

ReportHead HeadOfParts(const std::vector<PackPart>& parts) {
  std::string wrong, odd;
  for (const PackPart& part : parts) {
    std::string& names = part.verdict == PackVerdict::kError ? wrong : odd;
    if (part.verdict != PackVerdict::kPass) names += (names.empty() ? "" : ", ") + part.sheet.name;
  }
  if (parts.empty()) {
    return Head("unknown", Both("The two packs have no part in common.", "两个配置包没有共同的部分。"));
  }
  if (!wrong.empty()) return Head("origin", Both("These parts differ: {}.", "以下部分不同：{}。", wrong));
  if (!odd.empty()) {
    return Head("unknown", Both("Differences that may be intended: {}.", "可能是有意的差异：{}。", odd));
  }
  return Head("equal", Both("The two packs agree in every part.", "两个配置包的各部分均一致。"));
}

}  // namespace

StatusOr<bool> WriteChecklistPage(const std::string& path, const ConfigurationSides& sides,
                                  const std::vector<const CheckFinding*>& findings,
                                  const std::vector<SettingDifference>& settings, const Sheet& effective,
                                  const std::vector<Message>& warnings, const std::vector<std::string>& files) {
  const auto told =
      std::count_if(settings.begin(), settings.end(), [](const auto& one) { return !one.incidental && !one.alone; });
  return WritePage(path, HeadOfRules(findings, static_cast<size_t>(told)), [&](JsonWriter* json) {
    WriteSides(json, sides, warnings, files);
    json->Key("findings");
    json->BeginArray();
    const auto write = [&](std::string_view rule, std::string_view section, CheckVerdict verdict,
                           const std::vector<std::string>& values, const std::vector<std::string>& origins) {
      json->Member("rule", rule);
      json->Member("section", section);
      json->Member("verdict", NameOf(verdict));
      json->Member("values", values);
      json->Member("origins", origins);
    };
    for (const CheckFinding* finding : findings) {
      json->Object([&] {
        write(finding->rule->id, finding->rule->section, finding->verdict, {finding->target, finding->golden},
              {finding->target_origin, finding->golden_origin});
        WriteBoth(json, "reason", finding->Reason(Language::kEnglish), finding->Reason(Language::kChinese));
        WriteBoth(json, "fix", finding->Fix(Language::kEnglish), finding->Fix(Language::kChinese));
      });
    }
    for (const SettingDifference& one : settings) {
      if (one.incidental || one.alone) continue;
      json->Object([&] {
        write("setting." + one.key, "settings", CheckVerdict::kWarn, {one.target, one.golden},
              {one.target_origin, one.golden_origin});
        WriteBoth(json, "reason", "it differs, and no rule knows it", "两侧不同，且没有规则涉及它");
        WriteBoth(json, "fix", "set it to the same at both sides", "两侧设为相同的值");
      });
    }
    if (const AloneSettings alone = AloneOf(settings); alone.Any()) {
      json->Object([&] {
        write("settings.one_side", "settings", CheckVerdict::kAsk, {alone.target, alone.golden}, {"", ""});
        WriteBoth(json, "reason", "these are given at one side only, and what the other takes for them is not known",
                  "这些设置仅一侧给出，另一侧的默认值未知");
        WriteBoth(json, "fix", "give the program (.py) of the other side, or look up what it takes for them",
                  "给出另一侧的程序（.py），或查明其默认值");
      });
    }
    json->EndArray();
    json->ObjectMember("effective", [&] { WriteSheet(json, effective); });
  });
}

StatusOr<bool> WritePackPage(const std::string& path, const ConfigurationSides& sides,
                             const std::vector<PackPart>& parts, const std::vector<Message>& warnings,
                             const std::vector<std::string>& files) {
  return WritePage(path, HeadOfParts(parts), [&](JsonWriter* json) {
    WriteSides(json, sides, warnings, files);
    json->ArrayMember("parts", parts, [&](const PackPart& part) {
      json->Object([&] {
        json->Member("verdict", NameOf(part.verdict));
        WriteSheet(json, part.sheet);
      });
    });
  });
}

}  // namespace msprobe
