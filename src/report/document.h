// A report as sentences, tables, commands and lines, for tools that need no page of their own: web/report draws it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words/both_words.h"
#include "judgement/judgement.h"
#include "judgement/report_head.h"

namespace msprobe {

struct ReportCell {
  std::vector<BothWords> lines;
  std::string tone;  // "good", "bad", "odd": a badge; "code", "number"; "" for a text
  std::vector<std::string> commands;
};

struct ReportTable {
  std::vector<BothWords> columns;
  std::vector<std::vector<ReportCell>> rows;
};

struct ReportChartLine {
  std::string name, kind;  // kind: "a", "b", or "more" for what stands behind these
  std::vector<int64_t> steps;
  std::vector<double> values;
};

struct ReportChart {
  BothWords label;
  std::vector<ReportChartLine> lines;
  ReportChartLine band;         // half widths around zero
  std::optional<int64_t> mark;  // a step
  BothWords mark_words;
};

/// One of these.
struct ReportBlock {
  BothWords text;
  std::vector<std::string> commands;
  std::optional<ReportTable> table;
  std::optional<ReportChart> chart;
};

struct ReportPart {
  BothWords title;
  std::vector<ReportBlock> blocks;
};

struct ReportDocument {
  ReportHead head;
  std::vector<BothWords> lines;  // of the card, below the headline
  std::vector<ReportPart> parts;
};

/// The colour of a card for what was concluded.
std::string OutcomeOf(JudgementKind kind);
/// Its headline, and a table of what was judged, the worst first, what is bit-equal counted only.
ReportDocument DocumentOf(const Conclusion& conclusion, std::string kind);

/// At most 2,000 places of a line are kept: of each stretch the lowest and the highest.
ReportChartLine ChartLine(std::string name, std::string kind, const std::vector<int64_t>& steps,
                          const std::vector<double>& values);

/// False, and nothing is written, if this msprobe was built without the page.
StatusOr<bool> WriteDocument(const ReportDocument& document, const std::string& path);

}  // namespace msprobe
