#include "compare/custom_metrics.h"

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/text.h"
#include "compare/custom_metrics_program.h"
#include "compare/tensor_diff.h"
#include "tensor/layout.h"

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
    if (!EndsWith(path, ".py")) return UsageError("--custom_metric: " + path + " is no Python file (.py)");
    files.push_back(path);
    return files;
  }
  if (!IsDirectory(path)) return UsageError("--custom_metric: " + path + " does not exist: name a file or a directory");
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  for (const std::string& name : names) {
    if (IsMetricName(name) && IsRegularFile(JoinPath(path, name))) files.push_back(JoinPath(path, name));
  }
  if (files.empty() || files.size() > kMostFiles) {
    return UsageError("--custom_metric: " + path + " holds " + std::to_string(files.size()) +
                      " files alg_*.py (lower case, digits, _); there must be 1 to " + std::to_string(kMostFiles));
  }
  return files;
}

void AppendHead(std::string* out, const TensorView& t, int64_t count) {
  *out += "{\"dtype\": \"";
  *out += DTypeName(t.dtype);
  *out += "\", \"shape\": [";
  for (int i = 0; i < t.ndim; ++i) {
    if (i) *out += ", ";
    AppendInt(*out, t.shape[i]);
  }
  *out += "], \"bytes\": ";
  AppendInt(*out, count * static_cast<int64_t>(ElementSize(t.dtype)));
  *out += '}';
}

void SetCell(const JsonValue& v, StatValue* out) {
  const JsonValue* odd = v.IsObject() ? Find(v, "float") : nullptr;
  if (!odd || !odd->IsString()) return out->Set(v);
  *out = StatValue();
  out->kind = StatValue::Kind::kDouble;
  out->d = std::strtod(std::string(Text(*odd)).c_str(), nullptr);
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
  if (const JsonValue* error = Find(doc, "error"); error && error->IsString()) {
    return UsageError("--custom_metric: " + OneLine(Text(*error)));
  }
  const JsonValue* columns = Find(doc, "columns");
  if (!columns || !columns->IsArray()) return process_->Ended();
  for (const JsonValue& column : columns->GetArray()) columns_.emplace_back(Text(column));
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (IsTensorModeColumn(columns_[i]) || std::count(columns_.begin(), columns_.end(), columns_[i]) > 1) {
      return UsageError("--custom_metric: the column \"" + OneLine(columns_[i]) +
                        "\" exists already: give it another column_name()");
    }
  }
  return OkStatus();
}

Status CustomMetrics::SendTensor(const TensorView& tensor) {
  Layout layout;
  if (!MakeLayout(tensor, Order::kLogical, &layout)) return BadInput("a tensor of unknown layout");
  Status status = OkStatus();
  LayoutWalker(layout).Walk(0, layout.count, [&](const void* data, size_t n) {
    if (status.ok()) status = process_->Send(data, n * layout.element);
  });
  return status;
}

Status CustomMetrics::Measure(const TensorView& target, const TensorView& golden, std::vector<StatValue>* cells,
                              std::string* error) {
  Layout a, b;
  if (!MakeLayout(target, Order::kLogical, &a) || !MakeLayout(golden, Order::kLogical, &b)) {
    return BadInput("a tensor of unknown layout");
  }
  std::string head = "{\"n\": ";
  AppendHead(&head, target, a.count);
  head += ", \"b\": ";
  AppendHead(&head, golden, b.count);
  head += "}\n";
  std::lock_guard lock(mutex_);
  MSP_RETURN_IF_ERROR(process_->Send(head.data(), head.size()));
  MSP_RETURN_IF_ERROR(SendTensor(target));
  MSP_RETURN_IF_ERROR(SendTensor(golden));
  MSP_ASSIGN_OR_RETURN(const std::string line, process_->ReadLine());
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(line, "the answer of --custom_metric", &doc));
  const JsonValue *values = Find(doc, "cells"), *errors = Find(doc, "errors");
  if (!values || !values->IsArray() || values->Size() != columns_.size() || !errors || !errors->IsArray()) {
    return process_->Ended();
  }
  cells->clear();
  for (const JsonValue& v : values->GetArray()) SetCell(v, &cells->emplace_back());
  for (const JsonValue& e : errors->GetArray()) {
    if (e.IsString() && error->empty()) *error = OneLine(Text(e));
  }
  return OkStatus();
}

}  // namespace msprobe
