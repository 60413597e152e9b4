#include "compare/values/custom_metrics.h"

#include <algorithm>
#include <cstdlib>
#include <span>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "compare/values/custom_metrics_program.h"
#include "json/parser.h"
#include "json/writer.h"
#include "tensor/kernels/layout.h"

namespace msprobe {
namespace {

constexpr size_t kMostFiles = 100;

bool IsMetricName(std::string_view name) {
  if (!StartsWith(name, "alg_") || !EndsWith(name, ".py") || name.size() == 7) return false;
  name = name.substr(4, name.size() - 7);
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

StatusOr<std::vector<std::string>> MetricFiles(const std::string& path) {
  std::vector<std::string> files;
  if (IsRegularFile(path)) {
    if (!EndsWith(path, ".py")) return UsageError(Msg("--custom_metric: {} is not a Python file (.py)", path));
    files.push_back(path);
    return files;
  }
  if (!IsDirectory(path))
    return UsageError(Msg("--custom_metric: {} does not exist: name a file or a directory", path));
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  for (const std::string& name : names) {
    if (IsMetricName(name) && IsRegularFile(JoinPath(path, name))) files.push_back(JoinPath(path, name));
  }
  if (files.empty() || files.size() > kMostFiles) {
    return UsageError(Msg("--custom_metric: {} holds {} files alg_*.py (lower case, digits, _); there must be 1 to {}",
                          path, files.size(), kMostFiles));
  }
  return files;
}

void WriteHead(JsonWriter* json, const TensorView& t, int64_t count) {
  json->BeginObject();
  json->Member("dtype", DTypeName(t.dtype));
  json->Member("shape", std::span(t.shape, static_cast<size_t>(t.ndim)));
  json->Member("bytes", count * static_cast<int64_t>(ElementSize(t.dtype)));
  json->EndObject();
}

void SetCell(const JsonValue& v, CustomCell* out) {
  const JsonValue* odd = v.Find("float");
  out->value =
      odd && odd->IsString() ? StatValue::Of(std::strtod(std::string(odd->Text()).c_str(), nullptr)) : StatValue::Of(v);
  if (out->value.IsNumber() || out->value.kind == StatValue::Kind::kBool) return;
  std::string text;
  out->value.AppendPyText(&text);
  out->SetText(std::move(text));
}

}  // namespace

StatusOr<std::unique_ptr<CustomMetrics>> CustomMetrics::Start(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> files, MetricFiles(path));
  std::unique_ptr<CustomMetrics> out(new CustomMetrics);
  MSP_ASSIGN_OR_RETURN(out->process_, PythonProcess::Start("--custom_metric", CustomMetricsProgram(), files));
  MSP_RETURN_IF_ERROR(out->ReadColumns());
  return out;
}

Status CustomMetrics::ReadColumns() {
  MSP_ASSIGN_OR_RETURN(const std::string line, process_->ReadLine());
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(line, "the answer of --custom_metric", &doc));
  if (const JsonValue* error = doc.Find("error"); error && error->IsString()) {
    return UsageError(Msg("--custom_metric: {}", OneLine(error->Text())));
  }
  const JsonValue* columns = doc.Find("columns");
  if (!columns || !columns->IsArray()) return process_->Ended();
  for (const JsonValue& column : columns->Items()) columns_.emplace_back(column.Text());
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (IsTensorModeColumn(columns_[i]) || std::count(columns_.begin(), columns_.end(), columns_[i]) > 1) {
      return UsageError(Msg("--custom_metric: the column \"{}\" exists already: give it another column_name()",
                            OneLine(columns_[i])));
    }
  }
  return OkStatus();
}

Status CustomMetrics::SendTensor(const TensorView& tensor) {
  Layout layout;
  if (!MakeLayout(tensor, Order::kLogical, &layout)) return BadInput(Msg("a tensor of unknown layout"));
  Status status = OkStatus();
  LayoutWalker(layout).Walk(0, layout.count, [&](const void* data, size_t n) {
    if (status.ok()) status = process_->Send(data, n * layout.element);
  });
  return status;
}

Status CustomMetrics::Measure(const TensorView& target, const TensorView& golden, std::vector<CustomCell>* cells,
                              std::string* error) {
  Layout a, b;
  if (!MakeLayout(target, Order::kLogical, &a) || !MakeLayout(golden, Order::kLogical, &b)) {
    return BadInput(Msg("a tensor of unknown layout"));
  }
  JsonWriter json;
  json.BeginObject();
  json.Key("n"), WriteHead(&json, target, a.count);
  json.Key("b"), WriteHead(&json, golden, b.count);
  json.EndObject();
  const std::string head = json.Take() + "\n";
  std::lock_guard lock(mutex_);
  MSP_RETURN_IF_ERROR(process_->Send(head.data(), head.size()));
  MSP_RETURN_IF_ERROR(SendTensor(target));
  MSP_RETURN_IF_ERROR(SendTensor(golden));
  MSP_ASSIGN_OR_RETURN(const std::string line, process_->ReadLine());
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(line, "the answer of --custom_metric", &doc));
  const JsonValue *values = doc.Find("cells"), *errors = doc.Find("errors");
  if (!values || !values->IsArray() || values->size() != columns_.size() || !errors || !errors->IsArray()) {
    return process_->Ended();
  }
  cells->clear();
  for (const JsonValue& v : values->Items()) SetCell(v, &cells->emplace_back());
  for (const JsonValue& e : errors->Items()) {
    if (e.IsString() && error->empty()) *error = OneLine(e.Text());
  }
  return OkStatus();
}

}  // namespace msprobe
