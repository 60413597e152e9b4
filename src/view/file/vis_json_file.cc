#include "view/file/vis_json_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <unordered_map>
#include <utility>

#include "base/interrupt.h"
#include "base/message.h"
#include "base/page_trim.h"
#include "base/text.h"
#include "json/members.h"
#include "json/parser.h"
#include "json/scan.h"

namespace msprobe::view {
namespace {

constexpr std::string_view kVisSuffix = ".vis", kVisRoot = "DefaultModel";
constexpr size_t kMostVisNodes = size_t{1} << 24;  // as many as a tree takes
constexpr int64_t kNoMicroStep = -1;

/// The number behind `word` in one of the parts of a file's name: 2 of "compare_step2_rank1_TIME.vis".
int64_t NumberInName(std::string_view name, std::string_view word) {
  for (size_t at = 0; at < name.size();) {
    const size_t end = std::min(name.find('_', at), name.size());
    std::string_view part = name.substr(at, end - at);
    at = end + 1;
    if (!StartsWith(part, word)) continue;
    part.remove_prefix(word.size());
    int64_t number = 0;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error == std::errc() && stop == part.data() + part.size() && number >= 0) return number;
  }
  return 0;
}

/// A small value of the file; of one that is no JSON, null.
const JsonValue& ValueOf(std::string_view json, JsonDoc* doc) {
  if (!ParseJson(json, "", doc).ok()) doc->Clear();
  return *doc;
}

/// What stands between the quotes when nothing in it is escaped.
bool PlainText(std::string_view json, std::string_view* text) {
  if (json.size() < 2 || json.front() != '"' || json.back() != '"') return false;
  *text = json.substr(1, json.size() - 2);
  return text->find('\\') == std::string_view::npos && IsUtf8(*text);
}

}  // namespace

bool IsVisJsonName(std::string_view path) { return EndsWith(path, kVisSuffix); }

/// Texts are pieces of the file, or of `kept` where they stand there in another form.
struct VisJsonFile::Node {
  std::string_view name, up, partner;
  std::string_view children;  // JSON
  size_t at = 0;
  int64_t micro_step = kNoMicroStep;
  uint8_t type = 0;
  Verdict level = Verdict::kNone;
  Overflow overflow = Overflow::kNone;
  bool placed = false;
};

struct VisJsonFile::Nodes {
  std::vector<Node> list;
  std::unordered_map<std::string_view, uint32_t> by_name;
  std::vector<uint32_t> order;  // children before their parents
  std::deque<std::string> kept;
  JsonDoc doc;

  std::string_view Text(std::string_view json) {
    std::string_view text;
    if (PlainText(json, &text)) return text;
    const JsonValue& value = ValueOf(json, &doc);
    return value.IsString() ? std::string_view(kept.emplace_back(value.Text())) : std::string_view();
  }
  void Place(uint32_t root);
  /// Opens the children of a node that are its own and have no place yet.
  size_t Open(uint32_t node, std::vector<uint32_t>* waiting);
};

size_t VisJsonFile::Nodes::Open(uint32_t node, std::vector<uint32_t>* waiting) {
  const size_t before = waiting->size();
  for (const JsonValue& child : ValueOf(list[node].children, &doc).Items()) {
    const auto found = by_name.find(child.Text());
    if (found == by_name.end()) continue;
    Node& own = list[found->second];
    if (own.placed || own.up != list[node].name) continue;
    own.placed = true;
    if (own.micro_step == kNoMicroStep) own.micro_step = list[node].micro_step;
    waiting->push_back(found->second);
  }
  std::reverse(waiting->begin() + static_cast<ptrdiff_t>(before), waiting->end());
  return waiting->size() - before;
}

// Without recursion: a file may nest as deep as it likes.
void VisJsonFile::Nodes::Place(uint32_t root) {
  struct Opened {
    uint32_t node;
    size_t children;  // that wait
  };
  if (std::exchange(list[root].placed, true)) return;
  std::vector<uint32_t> waiting;
  std::vector<Opened> opened{{root, 0}};
  opened.back().children = Open(root, &waiting);
  while (!opened.empty()) {
    if (opened.back().children == 0) {
      order.push_back(opened.back().node);
      opened.pop_back();
      continue;
    }
    --opened.back().children;
    const uint32_t next = waiting.back();
    waiting.pop_back();
    opened.push_back({next, 0});
    opened.back().children = Open(next, &waiting);
  }
}

Status VisJsonFile::Cut() const {
  return BadInput(Msg("{} ends at byte {} in the middle of its text: wait for the writer to end, or write it again",
                      shown_, text_.size()));
}

Status VisJsonFile::Bad(size_t at, std::string_view expected) const {
  if (at >= text_.size()) return Cut();
  return BadInput(Msg("{} is damaged at byte {}: expected {} but found {}, write it again", shown_, at, expected,
                      ShownByte(text_[at])));
}

StatusOr<std::unique_ptr<VisJsonFile>> VisJsonFile::Open(const std::string& path, std::string_view shown,
                                                         VisSettings* settings) {
  MSP_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(path));
  auto file = std::unique_ptr<VisJsonFile>(new VisJsonFile(std::move(map), shown));
  file->text_ = file->file_.text();
  MSP_RETURN_IF_ERROR(file->ReadSettings(settings));
  std::string_view name = BaseName(shown);
  if (IsVisJsonName(name)) name.remove_suffix(kVisSuffix.size());
  settings->steps = {NumberInName(name, "step")};
  settings->ranks = {NumberInName(name, "rank")};
  return file;
}

Status VisJsonFile::ReadSettings(VisSettings* settings) {
  const size_t start = SkipSpace(text_, 0);
  if (start >= text_.size() || text_[start] != '{') {
    return BadInput(Msg("{} is not a graph of msprobe (no JSON object): graph_visualize writes graphs", shown_));
  }
  MemberScanner scanner(text_, start + 1);
  Member m;
  JsonDoc doc;
  for (;;) {
    switch (scanner.NextKey(&m)) {
      case MemberScanner::Step::kTruncated: return Cut();
      case MemberScanner::Step::kBad: return Bad(scanner.position(), scanner.expected());
      case MemberScanner::Step::kEnd:
        if (target_.nodes != 0 && settings->compared == (golden_.nodes != 0)) return OkStatus();
        return BadInput(
            Msg("{} is not a graph of msprobe (no member \"node\"): graph_visualize writes graphs", shown_));
      case MemberScanner::Step::kMember: break;
    }
    const bool object = text_[m.begin] == '{';
    if (object && (m.key == "NPU" || m.key == "Bench" || m.key == "node")) {
      settings->compared |= m.key != "node";
      size_t end = 0;
      if (m.key == "node") {  // of a single run: what "NPU" and "Bench" hold stands here
        target_.nodes = m.begin + 1;
        end = FindContainerEnd(text_, m.begin);
        if (end == kNoEnd) return Cut();
      } else {
        MSP_RETURN_IF_ERROR(ReadSide(m.begin + 1, m.key == "NPU" ? &target_ : &golden_, &end));
      }
      scanner.Continue(end);
      continue;
    }
    switch (scanner.SkipValue(&m)) {
      case MemberScanner::Step::kTruncated: return Cut();
      case MemberScanner::Step::kBad: return Bad(scanner.position(), scanner.expected());
      default: break;
    }
    const std::string_view value = text_.substr(m.begin, m.end - m.begin);
    if (m.key == "dump_data_dir") target_.data = ValueOf(value, &doc).Text();
    if (m.key == "task") settings->task = ValueOf(value, &doc).Text();
    if (m.key == "MicroSteps") settings->micro_steps = ValueOf(value, &doc).Int();
    if (m.key == "OverflowCheck") settings->overflow_check = ValueOf(value, &doc).Bool();
    if (m.key == "ToolTip") settings->tool_tip_json = ObjectText(ValueOf(value, &doc).Text());
    if (m.key == "Colors") {
      settings->colors_json = ObjectText(value);
      ReadLegend(settings->colors_json);
    }
  }
}

Status VisJsonFile::ReadSide(size_t begin, Side* side, size_t* end) const {
  MemberScanner scanner(text_, begin);
  Member m;
  JsonDoc doc;
  for (;;) {
    switch (scanner.Next(&m)) {
      case MemberScanner::Step::kTruncated: return Cut();
      case MemberScanner::Step::kBad: return Bad(scanner.position(), scanner.expected());
      case MemberScanner::Step::kEnd: *end = scanner.position(); return OkStatus();
      case MemberScanner::Step::kMember: break;
    }
    if (m.key == "node" && text_[m.begin] == '{') side->nodes = m.begin + 1;
    if (m.key == "dump_data_dir") side->data = ValueOf(text_.substr(m.begin, m.end - m.begin), &doc).Text();
  }
}

void VisJsonFile::ReadLegend(std::string_view colors) {
  JsonDoc doc;
  for (const JsonMember& color : ValueOf(colors, &doc).Members()) {
    const JsonValue& range = color.value["value"];
    if (range.size() != 2 || !range[0].IsNumber() || !range[1].IsNumber()) continue;
    const std::string_view level = color.value["accuracy_level"].Text();
    legend_.push_back({range[0].Number(), range[1].Number(),
                       level == "pass"      ? Verdict::kPass
                       : level == "warning" ? Verdict::kWarning
                       : level == "error"   ? Verdict::kError
                                            : Verdict::kNone});
  }
}

Verdict VisJsonFile::LevelOf(double index) const {
  // The bounds of our own three colours.
  constexpr double kWarningFrom = 0.3, kErrorFrom = 0.6;
  double place = index;
  for (size_t i = 0; i < legend_.size(); ++i) {
    const Shade& shade = legend_[i];
    const bool last = i + 1 == legend_.size();
    if (index < shade.from || index > shade.to || (index == shade.to && index != shade.from && !last)) continue;
    if (shade.level != Verdict::kNone) return shade.level;
    // The colours stand from the palest to the darkest. Of checksums 1 is the best, so the numbers do not tell.
    place = (static_cast<double>(i) + 0.5) / static_cast<double>(legend_.size());
  }
  return place >= kErrorFrom ? Verdict::kError : place >= kWarningFrom ? Verdict::kWarning : Verdict::kPass;
}

Status VisJsonFile::ReadNode(size_t begin, Nodes* nodes, Node* out) const {
  out->at = begin;
  if (text_[begin] != '{') return Bad(begin, "the '{' of a node");
  MemberScanner scanner(text_, begin + 1);
  Member m;
  for (;;) {
    switch (scanner.Next(&m)) {
      case MemberScanner::Step::kTruncated: return Cut();
      case MemberScanner::Step::kBad: return Bad(scanner.position(), scanner.expected());
      case MemberScanner::Step::kEnd: return OkStatus();
      case MemberScanner::Step::kMember: break;
    }
    const std::string_view value = text_.substr(m.begin, m.end - m.begin);
    if (m.key == "node_type") {
      out->type = static_cast<uint8_t>(std::clamp<int64_t>(ValueOf(value, &nodes->doc).Int(), 0, 9));
    } else if (m.key == "upnode") {
      out->up = nodes->Text(value);
      if (out->up == "None") out->up = {};
    } else if (m.key == "subnodes") {
      out->children = value;
    } else if (m.key == "matched_node_link") {
      std::string link = LastText(value);
      // Some releases say whose node it is.
      const bool marked = StartsWith(link, "N___") || StartsWith(link, "B___");
      if (!link.empty()) out->partner = nodes->kept.emplace_back(marked ? link.substr(4) : link);
    } else if (m.key == "micro_step_id") {
      const JsonValue& step = ValueOf(value, &nodes->doc);
      if (step.IsInt()) out->micro_step = step.Int();
    } else if (m.key == "data") {
      const JsonValue& data = ValueOf(value, &nodes->doc);
      if (data["precision_index"].IsNumber()) out->level = LevelOf(data["precision_index"].Number());
      out->overflow = OverflowOf(data["overflow_level"].Text());
    }
  }
}

Status VisJsonFile::ReadNodes(const Side& side, Nodes* out) const {
  MemberScanner scanner(text_, side.nodes);
  Member m;
  for (size_t n = 1;; ++n) {
    if (n % kStepsBetweenTrims == 0) {
      if (InterruptRequested()) return Interrupted();
      TrimMaps();
    }
    switch (scanner.Next(&m)) {
      case MemberScanner::Step::kTruncated: return Cut();
      case MemberScanner::Step::kBad: return Bad(scanner.position(), scanner.expected());
      case MemberScanner::Step::kEnd: return OkStatus();
      case MemberScanner::Step::kMember: break;
    }
    if (out->list.size() >= kMostVisNodes) {
      return BadInput(Msg("{} has more than 16 million nodes in one rank: split the dump by step", shown_));
    }
    Node node;
    // The quotes stand around the key in the file.
    node.name = out->Text(std::string_view(m.key.data() - 1, m.key.size() + 2));
    MSP_RETURN_IF_ERROR(ReadNode(m.begin, out, &node));
    if (out->by_name.emplace(node.name, static_cast<uint32_t>(out->list.size())).second) out->list.push_back(node);
  }
}

Status VisJsonFile::LoadSide(std::string_view side, Tree* out) const {
  Nodes nodes;
  if (const Side& read = side == "NPU" ? target_ : golden_; read.nodes != 0) {
    MSP_RETURN_IF_ERROR(ReadNodes(read, &nodes));
  }
  nodes.order.reserve(nodes.list.size());
  const auto root = nodes.by_name.find(kVisRoot);
  if (root != nodes.by_name.end()) {
    nodes.Place(root->second);
    nodes.order.pop_back();
  }
  for (uint32_t i = 0; i < nodes.list.size(); ++i) nodes.Place(i);
  if (root != nodes.by_name.end()) nodes.order.push_back(root->second);
  int64_t order = 0;
  for (const uint32_t i : nodes.order) {
    const Node& read = nodes.list[i];
    TreeNode node;
    node.rowid = static_cast<int64_t>(read.at);
    node.order = order++;
    node.micro_step = std::max<int64_t>(read.micro_step, 0);
    node.level = read.level;
    node.overflow = read.overflow;
    node.type = read.type;
    const Status added = out->Add(node, read.name, read.up, read.partner);
    if (!added.ok()) return BadInput(Msg("{} {}", shown_, added.text()));
  }
  out->Link();
  return OkStatus();
}

StatusOr<NodeRecord> VisJsonFile::LoadRecord(int64_t row) const {
  const auto begin = static_cast<size_t>(row);
  if (row < 0 || begin >= text_.size() || text_[begin] != '{') return Bad(begin, "the '{' of a node");
  NodeRecord record;
  MemberScanner scanner(text_, begin + 1);
  Member m;
  for (;;) {
    switch (scanner.Next(&m)) {
      case MemberScanner::Step::kTruncated: return Cut();
      case MemberScanner::Step::kBad: return Bad(scanner.position(), scanner.expected());
      case MemberScanner::Step::kEnd: return record;
      case MemberScanner::Step::kMember: break;
    }
    const std::string_view value = text_.substr(m.begin, m.end - m.begin);
    if (m.key == "input_data") record.inputs = ParseRows(value);
    if (m.key == "output_data") record.outputs = ParseRows(value);
    if (m.key == "stack_info") record.stack = ParseTexts(value);
    if (m.key == "matched_distributed") record.communication_json = ObjectText(value);
  }
}

}  // namespace msprobe::view
