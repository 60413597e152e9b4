#include "graph/build/legend.h"

#include <fmt/format.h>

#include <utility>

#include "compare/metrics/metric.h"
#include "compare/values/item_view.h"
#include "json/writer.h"

namespace msprobe {
namespace {

// JSON escapes of the Chinese texts that viewers show; they are part of the file format.
constexpr char kSummaryText[] =
    "\\u6b64\\u8282\\u70b9\\u6240\\u6709\\u8f93\\u5165\\u8f93\\u51fa\\u7684\\u7edf\\u8ba1\\u91cf"
    "\\u8bef\\u5dee, \\u989c\\u8272\\u8d8a\\u6df1\\u4ee3\\u8868\\u8c03\\u8bd5\\u4fa7\\u4e0e\\u6807"
    "\\u6746\\u4fa7\\u7684\\u504f\\u5dee\\u8d8a\\u5927";
constexpr char kTensorText[] =
    "\\u6b64\\u8282\\u70b9\\u6240\\u6709\\u8f93\\u5165\\u8f93\\u51fa\\u7684 tensor \\u8bef\\u5dee, \\"
    "u989c\\u8272\\u8d8a\\u6df1\\u4ee3\\u8868\\u8c03\\u8bd5\\u4fa7\\u4e0e\\u6807\\u6746\\u4fa7\\u7684"
    "\\u504f\\u5dee\\u8d8a\\u5927";
constexpr char kSameChecksum[] =
    "\\u4e0e\\u6807\\u6746\\u76f8\\u6bd4, \\u6b64\\u8282\\u70b9\\u6240\\u6709\\u8f93\\u5165\\u8f93"
    "\\u51fa\\u7684md5\\u503c\\u76f8\\u540c";
constexpr char kOtherChecksum[] =
    "\\u4e0e\\u6807\\u6746\\u76f8\\u6bd4, \\u6b64\\u8282\\u70b9\\u4efb\\u610f\\u8f93\\u5165\\u8f93"
    "\\u51fa\\u7684md5\\u503c\\u4e0d\\u540c";
constexpr char kUnmatchedText[] = "\\u6bd4\\u5bf9\\u8fc7\\u7a0b\\u4e2d\\u8282\\u70b9\\u672a\\u5339\\u914d\\u4e0a";
constexpr char kMaxTip[] =
    "NPU\\u4e0e\\u6807\\u6746API\\u7edf\\u8ba1\\u4fe1\\u606f\\u6bd4\\u5bf9\\uff0c\\u6700\\u5927"
    "\\u503c\\u7684\\u5dee\\u503c";
constexpr char kMinTip[] =
    "NPU\\u4e0e\\u6807\\u6746API\\u7edf\\u8ba1\\u4fe1\\u606f\\u6bd4\\u5bf9\\uff0c\\u6700\\u5c0f"
    "\\u503c\\u7684\\u5dee\\u503c";
constexpr char kMeanTip[] =
    "NPU\\u4e0e\\u6807\\u6746API\\u7edf\\u8ba1\\u4fe1\\u606f\\u6bd4\\u5bf9\\uff0c\\u5e73\\u5747"
    "\\u503c\\u7684\\u5dee\\u503c";
constexpr char kNormTip[] =
    "NPU\\u4e0e\\u6807\\u6746API\\u7edf\\u8ba1\\u4fe1\\u606f\\u6bd4\\u5bf9\\uff0c2\\u8303\\u6570"
    "\\uff08\\u5e73\\u65b9\\u6839\\uff09\\u7684\\u5dee\\u503c";
constexpr char kChecksumTip[] =
    "\\u6570\\u636eMD5\\u4fe1\\u606f\\uff0c\\u7528\\u4e8e\\u6bd4\\u8f83\\u4e24\\u4e2a\\u6570\\u636e\\"
    "u4fe1\\u606f\\u662f\\u5426\\u5b8c\\u5168\\u4e00\\u81f4";

void WriteEntry(JsonWriter* json, const char* colour, const char* range, const char* text, const char* level) {
  json->ObjectMember(colour, [&] {
    json->RawMember("value", fmt::format("[{}]", range));
    json->RawMember("description", fmt::format("\"{}\"", text));
    json->Member("accuracy_level", level);
  });
}

void WriteTip(JsonWriter* json, std::string_view key, const char* text) {
  json->RawMember(key, fmt::format("\"{}\"", text));
}

}  // namespace

std::string NodeColorsJson(CompareMode mode) {
  const bool md5 = mode == CompareMode::kChecksum;
  const char* text = mode == CompareMode::kTensor ? kTensorText : kSummaryText;
  JsonWriter json;
  json.BeginObject();
  if (mode != CompareMode::kStructure) {
    WriteEntry(&json, "#FFFCF3", "0, 0.3", md5 ? kSameChecksum : text, "pass");
    WriteEntry(&json, "#FFDC7F", "0.3, 0.6", md5 ? kOtherChecksum : text, "warning");
    WriteEntry(&json, "#FF704D", "0.6, 1", md5 ? kOtherChecksum : text, "error");
  }
  WriteEntry(&json, "#C7C7C7", "", kUnmatchedText, "unmatched node");
  json.EndObject();
  return json.Take();
}

std::string ToolTipJson(CompareMode mode) {
  JsonWriter json;
  json.BeginObject();
  if (mode == CompareMode::kStatistics) {
    for (const auto& [stat, tip] :
         {std::pair(kMax, kMaxTip), std::pair(kMin, kMinTip), std::pair(kMean, kMeanTip), std::pair(kNorm, kNormTip)}) {
      WriteTip(&json, kDiffTitles[stat], tip);
    }
  } else if (mode == CompareMode::kChecksum) {
    WriteTip(&json, "md5", kChecksumTip);
  } else {
    for (const Metric* metric : kMetrics) json.Member(metric->title, "");
  }
  json.EndObject();
  return json.Take();
}

}  // namespace msprobe
