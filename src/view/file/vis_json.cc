#include "view/file/vis_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "json/parser.h"
#include "json/writer.h"
#include "view/file/sqlite_db.h"

namespace msprobe::view {
namespace {

constexpr JsonStyle kIndented{.indent = 4, .comma = ","};
constexpr size_t kFlushBytes = 1 << 20;
constexpr size_t kDecimals = 6;

// Fields that came with later releases.
constexpr std::string_view kLaterFields[] = {"requires_grad", "Requires_grad Consistent", "Result", "Err_message"};

/// A number with at most six decimals; other texts as they are.
std::string Shortened(std::string_view text) {
  const bool percent = EndsWith(text, "%");
  const std::string_view digits = percent ? text.substr(0, text.size() - 1) : text;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value)) return std::string(text);
  // Small and large numbers are written with an exponent.
  if (Contains(PyRepr(value), "e")) return percent ? std::string(text) : fmt::format("{:.6e}", value);
  const size_t dot = digits.find('.');
  if (dot == std::string_view::npos || digits.size() - dot - 1 <= kDecimals) return std::string(text);
  constexpr double kScale = 1e6;
  return percent ? fmt::format("{:.6f}%", value) : PyRepr(std::round(value * kScale) / kScale);
}

/// {"item": {"field": "text"}} of one node.
Status WriteItems(std::string_view key, std::string_view json, const std::string& path, JsonWriter* out) {
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(json.empty() ? std::string_view("{}") : json, path, &doc));
  out->ObjectMember(key, [&] {
    for (const auto& item : doc.Members()) {
      out->ObjectMember(item.name, [&] {
        for (const auto& field : item.value.Members()) {
          if (std::find(std::begin(kLaterFields), std::end(kLaterFields), field.name) != std::end(kLaterFields))
            continue;
          field.value.IsString() ? out->Member(field.name, Shortened(field.value.Text()))
                                 : (out->Key(field.name), out->Value(field.value));
        }
      });
    }
  });
  return OkStatus();
}

Status WriteText(std::string_view key, std::string_view json, const std::string& path, JsonWriter* out) {
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(json.empty() ? std::string_view("[]") : json, path, &doc));
  out->Key(key);
  out->Value(doc);
  return OkStatus();
}

class Export {
 public:
  Export(const std::string& path, SqliteDb db, OutputFile file)
      : path_(path), db_(std::move(db)), file_(std::move(file)) {}

  Status Write() {
    MSP_RETURN_IF_ERROR(CheckOneGraph());
    MSP_ASSIGN_OR_RETURN(SqliteStatement config, db_.Prepare("SELECT graph_type, task, tool_tip, micro_steps, "
                                                             "overflow_check, node_colors FROM tb_config"));
    MSP_ASSIGN_OR_RETURN(const bool found, config.Step());
    if (!found) return BadInput(Msg("{} is no graph file: its settings are missing", path_));
    const bool compared = config.Text(0) == "compare";
    JsonWriter json(&text_, kIndented);
    json.BeginObject();
    if (compared) {
      for (const char* side : {"NPU", "Bench"}) {
        json.Key(side);
        json.BeginObject();
        MSP_RETURN_IF_ERROR(WriteGraph(side, compared, &json));
        json.EndObject();
      }
      json.Member("ToolTip", config.Text(2));
      MSP_RETURN_IF_ERROR(WriteText("Colors", config.Text(5), path_, &json));
    } else {
      MSP_RETURN_IF_ERROR(WriteGraph("NPU", compared, &json));
    }
    json.Member("MicroSteps", config.Int(3));
    if (compared) json.Member("task", config.Text(1));
    json.Member("OverflowCheck", config.Int(4) != 0);
    json.EndObject();
    MSP_RETURN_IF_ERROR(Flush(0));
    return file_.CommitResult();
  }
  const std::string& written() const { return file_.path(); }

 private:
  Status CheckOneGraph() {
    MSP_ASSIGN_OR_RETURN(SqliteStatement count,
                         db_.Prepare("SELECT count(DISTINCT step || '_' || rank) FROM tb_nodes"));
    MSP_ASSIGN_OR_RETURN(const bool found, count.Step());
    if (found && count.Int(0) == 1) return OkStatus();
    return BadInput(Msg("{} holds several ranks or steps, and a .vis file one: give the directory of one rank", path_));
  }

  Status Flush(size_t least) {
    if (text_.size() <= least) return OkStatus();
    MSP_RETURN_IF_ERROR(file_.Write(text_));
    text_.clear();
    return OkStatus();
  }

  Status WriteGraph(std::string_view side, bool compared, JsonWriter* json) {
    MSP_ASSIGN_OR_RETURN(
        SqliteStatement nodes,
        db_.Prepare("SELECT n.node_name, n.node_type, n.up_node, n.sub_nodes, n.precision_index, n.micro_step_id, "
                    "n.matched_node_link, s.stack_info, n.input_data, n.output_data, n.dump_data_dir, n.overflow_level "
                    "FROM tb_nodes n LEFT JOIN tb_stack s ON s.id = n.stack_id WHERE n.data_source = ? "
                    "ORDER BY n.step, n.rank, n.node_order"));
    nodes.Bind(1, side);
    bool first = true;
    for (;;) {
      MSP_ASSIGN_OR_RETURN(const bool more, nodes.Step());
      if (!more) break;
      if (std::exchange(first, false)) {
        json->Member("root", "DefaultModel");
        json->Key("dump_data_dir");
        nodes.IsNull(kDumpDir) ? json->Null() : json->String(nodes.Text(kDumpDir));
        json->Key("node");
        json->BeginObject();
      }
      MSP_RETURN_IF_ERROR(WriteNode(&nodes, compared && side == "NPU", json));
      MSP_RETURN_IF_ERROR(Flush(kFlushBytes));
    }
    if (first) return BadInput(Msg("{} holds no nodes of {}", path_, side));
    json->EndObject();
    return OkStatus();
  }

  enum Column : int {
    kName,
    kType,
    kUp,
    kChildren,
    kPrecision,
    kMicroStep,
    kLink,
    kStack,
    kInput,
    kOutput,
    kDumpDir,
    kOverflow
  };

  Status WriteNode(SqliteStatement* row, bool judged, JsonWriter* json) {
    const std::string name(row->Text(kName)), up(row->Text(kUp));
    int type = 0;
    (void)std::from_chars(row->Text(kType).data(), row->Text(kType).data() + row->Text(kType).size(), type);
    json->Key(name);
    json->BeginObject();
    json->Member("id", name);
    json->Member("node_type", type);
    MSP_RETURN_IF_ERROR(WriteItems("output_data", row->Text(kOutput), path_, json));
    MSP_RETURN_IF_ERROR(WriteItems("input_data", row->Text(kInput), path_, json));
    json->Member("upnode", up.empty() ? std::string("None") : up);
    MSP_RETURN_IF_ERROR(WriteText("subnodes", row->Text(kChildren), path_, json));
    MSP_RETURN_IF_ERROR(WriteText("matched_node_link", row->Text(kLink), path_, json));
    json->ObjectMember("suggestions", [] {});
    MSP_RETURN_IF_ERROR(WriteText("stack_info", row->Text(kStack), path_, json));
    if (up == "DefaultModel") json->Member("micro_step_id", row->Int(kMicroStep));
    json->ObjectMember("data", [&] {
      if (judged && row->IsNumber(kPrecision)) {
        const double index = row->Real(kPrecision);
        json->Key("precision_index");
        index == std::floor(index) ? json->Int(static_cast<int64_t>(index)) : json->Number(index);
      }
      if (!row->IsNull(kOverflow)) json->Member("overflow_level", row->Text(kOverflow));
    });
    json->EndObject();
    return OkStatus();
  }

  const std::string path_;
  SqliteDb db_;
  OutputFile file_;
  std::string text_;
};

}  // namespace

Status WriteVisJson(const std::string& db, const std::string& path) {
  MSP_ASSIGN_OR_RETURN(SqliteDb open, SqliteDb::OpenImmutable(db, db));
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  return Export(db, std::move(open), std::move(file)).Write();
}

}  // namespace msprobe::view
