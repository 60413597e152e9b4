#include "cli/monitor/show_run.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "base/message.h"
#include "base/text.h"
#include "cli/monitor/outliers.h"
#include "curves/plot.h"
#include "json/writer.h"
#include "view/run/run_cache.h"
#include "view/run/run_events.h"

namespace msprobe {
namespace {

using view::BinCell;
using view::CellView;

constexpr size_t kUsualWidth = 100, kLeastWidth = 40, kMostWidth = 1000;
constexpr const char* kUsualMetric = "grad_reduced";
constexpr size_t kMostRowsShown = 400, kMostPlotted = 6, kMostEventsShown = 10, kMostOutliersNamed = 3;
constexpr std::array<const char*, 8> kBlocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<const char*, 8> kAscii{".", ":", "-", "=", "+", "*", "%", "@"};
constexpr std::array<char, kMostPlotted> kMarks{'*', '+', 'o', 'x', '#', '='};

view::Deadline Never() { return std::chrono::steady_clock::now() + std::chrono::hours(24); }

std::optional<int64_t> ReadStep(const std::string& text) {
  int64_t step = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(step) : std::nullopt;
}

size_t TerminalWidth(size_t wanted) {
  winsize size{};
  if (wanted == 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) wanted = size.ws_col;
  return wanted == 0 ? kUsualWidth : std::clamp(wanted, kLeastWidth, kMostWidth);
}

// What is shown of the run.
struct Shown {
  std::vector<int64_t> ranks;
  int64_t rank = 0;
  view::RunInfo info;
  view::RunTileQuery query;
  view::RunRowsAnswer rows;
  view::RunTile tile;
  std::vector<view::RunEvent> events;

  int64_t width() const { return info.interval << query.level; }  // steps of a bin
  const BinCell& Cell(size_t row, size_t bin) const { return tile.cells[row * tile.bins + bin]; }
};

// `wanted`: "" for the usual one.
Status ChooseMetric(const ShowRunRequest& request, const std::string& wanted, const view::RunInfo& info,
                    view::RunRowsQuery* query) {
  std::vector<std::string> names;
  for (const view::RunMetric& metric : info.metrics) names.push_back(metric.name);
  if (names.empty())
    return BadInput(Msg("{} has no values yet: wait for the first step of the monitor", request.directory));
  auto metric = std::find(names.begin(), names.end(), wanted.empty() ? std::string(kUsualMetric) : wanted);
  if (metric == names.end() && wanted.empty()) metric = names.begin();
  if (metric == names.end()) {
    return BadInput(Msg("{} has no metric {}: it has {}", request.directory, OneLine(wanted),
                        fmt::format("{}", fmt::join(names, ", "))));
  }
  const auto& stats = info.metrics[static_cast<size_t>(metric - names.begin())].stats;
  auto stat = std::find(stats.begin(), stats.end(), request.stat.empty() ? "norm" : request.stat);
  if (stat == stats.end() && request.stat.empty()) stat = stats.begin();
  if (stat == stats.end()) {
    return BadInput(Msg("{} of {} has no statistic {}: it has {}", *metric, request.directory, OneLine(request.stat),
                        fmt::format("{}", fmt::join(stats, ", "))));
  }
  query->metric = *metric;
  query->stat = *stat;
  return OkStatus();
}

// The metrics to look for series in, where only a part of their names is given: one of this name, the usual one, all.
std::vector<std::string> MetricsToSearch(const ShowRunRequest& request, const view::RunInfo& info) {
  if (request.series.empty() || !request.metric.empty()) return {request.metric};
  std::vector<std::string> names;
  for (const view::RunMetric& metric : info.metrics) names.push_back(metric.name);
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    const auto place = [&](const std::string& name) {
      return name == request.series ? 0 : name == kUsualMetric ? 1 : 2;
    };
    return place(a) < place(b);
  });
  if (names.empty()) names.emplace_back();
  return names;
}

// "400-440", "420", "400-" or "-440": the part of the run that is shown.
Status ChooseSteps(const ShowRunRequest& request, view::RunInfo* info) {
  if (request.steps.empty()) return OkStatus();
  const size_t dash = request.steps.find('-');
  const std::string first = request.steps.substr(0, dash);
  const std::string last = dash == std::string::npos ? first : request.steps.substr(dash + 1);
  const auto number = [](const std::string& text, int64_t otherwise) {
    return text.empty() ? std::optional(otherwise) : ReadStep(text);
  };
  const auto from = number(first, 0), to = number(last, INT64_MAX);
  if (!from || !to || *from > *to || request.steps == "-")
    return UsageError(Msg("--steps is '{}'; expected steps such as 400-440", OneLine(request.steps)));
  if (*from > info->last_step || *to < info->first_step) {
    return BadInput(Msg("{} has no step of {}: it has {} to {}", request.directory, request.steps, info->first_step,
                        info->last_step));
  }
  info->first_step = std::max(*from, info->first_step);
  info->last_step = std::min(*to, info->last_step);
  return OkStatus();
}

// Room for `columns` bins.
StatusOr<Shown> Load(const ShowRunRequest& request, size_t columns) {
  Shown shown;
  view::RunCache cache;
  MSP_ASSIGN_OR_RETURN(shown.ranks, cache.Ranks(request.directory));
  shown.rank = request.rank.value_or(shown.ranks.front());
  MSP_ASSIGN_OR_RETURN(const auto rank, cache.Rank(request.directory, shown.rank));
  MSP_ASSIGN_OR_RETURN(shown.info, rank->Info(Never()));
  view::RunRowsQuery& rows = shown.query.rows;
  rows.text = request.series;
  rows.fold = request.series.empty() && !request.all_series ? view::RunFold::kLayer : view::RunFold::kNone;
  const std::vector<std::string> metrics = MetricsToSearch(request, shown.info);
  for (const std::string& metric : metrics) {
    MSP_RETURN_IF_ERROR(ChooseMetric(request, metric, shown.info, &rows));
    MSP_ASSIGN_OR_RETURN(shown.rows, rank->Rows(rows, Never()));
    if (!shown.rows.rows.empty()) break;
  }
  if (shown.rows.rows.empty()) {
    if (request.series.empty())
      return BadInput(Msg("{} was not recorded in {}: its series are empty", rows.metric, request.directory));
    if (metrics.size() > 1) {
      return BadInput(
          Msg("no series of any metric has {} in its name: give another part of a name", OneLine(request.series)));
    }
    return BadInput(
        Msg("no series of {} has {} in its name: give another part of a name", rows.metric, OneLine(request.series)));
  }
  MSP_RETURN_IF_ERROR(ChooseSteps(request, &shown.info));
  const int64_t records = (shown.info.last_step - shown.info.first_step) / shown.info.interval + 1;
  while ((records >> shown.query.level) >= static_cast<int64_t>(columns)) ++shown.query.level;
  shown.query.from = view::FloorDiv(shown.info.first_step, shown.width());
  shown.query.bins = static_cast<size_t>(view::FloorDiv(shown.info.last_step, shown.width()) - shown.query.from + 1);
  shown.query.limit = request.series.empty() ? kMostRowsShown : kMostPlotted;
  MSP_ASSIGN_OR_RETURN(shown.tile, rank->Tile(shown.query, Never()));
  shown.events = view::ReadRunEvents(request.directory, true);
  return shown;
}

// In eighths of the way from the lowest to the highest value, on a logarithmic scale where all are positive.
std::string Shade(const Shown& shown, float value, const ShowRunRequest& request) {
  if (value == view::kNoBinValue) return " ";
  if (std::isnan(value)) return "N";
  if (std::isinf(value)) return "I";
  const auto [low, high] = std::pair(shown.rows.low, shown.rows.high);
  double at = 0.5;
  if (high > low) at = low > 0 ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  const auto step = static_cast<size_t>(std::clamp(at * 8, 0.0, 7.0));
  return request.blocks ? kBlocks[step] : kAscii[step];
}

// What stands out of its row, the farthest first.
struct Outlier {
  size_t row = 0, bin = 0;
  int sign = 0;
  float value = 0;
  double times = 0;  // of the one beside it
};

// The marks of a row; what stands out is added to `all`.
std::vector<int> MarkRow(const Shown& shown, size_t row, std::vector<Outlier>* all) {
  std::vector<float> values;
  for (size_t b = 0; b < shown.tile.bins; ++b) values.push_back(CellValue(shown.Cell(row, b), CellView::kHighest));
  const std::vector<int> marks = OutOfLine(values);
  for (size_t b = 1; b < marks.size(); ++b) {
    if (marks[b] != 0) all->push_back({row, b, marks[b], values[b], values[b] / values[b - 1]});
  }
  return marks;
}

const char* OutlierMark(int sign, const ShowRunRequest& request) {
  if (request.blocks) return sign > 0 ? "▲" : "▼";
  return sign > 0 ? "^" : "v";
}

Message OutlierLines(const Shown& shown, const ShowRunRequest& request, std::vector<Outlier> all) {
  std::stable_sort(all.begin(), all.end(), [](const Outlier& a, const Outlier& b) {
    return std::fabs(std::log(a.times)) > std::fabs(std::log(b.times));
  });
  Message text;
  for (size_t i = 0; i < all.size() && i < kMostOutliersNamed; ++i) {
    const Outlier& one = all[i];
    const int64_t first = (shown.query.from + static_cast<int64_t>(one.bin)) * shown.width();
    const std::string name = OneLine(shown.tile.rows[one.row].label), value = fmt::format("{:.4g}", one.value);
    const char* mark = OutlierMark(one.sign, request);
    const std::string times = fmt::format("{:.3g}", one.times);
    text += shown.width() == shown.info.interval
                ? Msg("{} step {}: {} is {}, {} times the one before\n", mark, first, name, value, times)
                : Msg("{} steps {} to {}: {} is {}, {} times the column before\n", mark, first,
                      first + shown.width() - 1, name, value, times);
  }
  if (all.size() > kMostOutliersNamed) text += Msg("and {} more outliers\n", all.size() - kMostOutliersNamed);
  return text;
}

std::string FittedName(const std::string& name, size_t room) {
  return name.size() <= room ? name
                             : name.substr(0, room / 2 - 1) + ".." + name.substr(name.size() - (room - room / 2 - 1));
}

Message Heading(const Shown& shown) {
  const auto& rows = shown.query.rows;
  const view::CutRows& cut = shown.info.cut_rows;
  Message out;
  if (cut.count > 0) {
    out += Msg("{}: {} rows that were cut are left out: the training may have been killed\n", OneLine(cut.file),
               cut.count);
  }
  if (shown.width() == 1) {
    out += Msg("{} {}, rank {} of {}, steps {} to {}, a column for each\n", rows.metric, rows.stat, shown.rank,
               shown.ranks.size(), shown.info.first_step, shown.info.last_step);
  } else {
    out += Msg("{} {}, rank {} of {}, steps {} to {}, {} steps a column\n", rows.metric, rows.stat, shown.rank,
               shown.ranks.size(), shown.info.first_step, shown.info.last_step, shown.width());
  }
  return out;
}

Message EventLines(const Shown& shown) {
  Message text;
  size_t count = 0;
  for (const view::RunEvent& event : shown.events) {
    if (event.rank >= 0 && event.rank != shown.rank) continue;
    if (event.step < shown.info.first_step || event.step > shown.info.last_step) continue;
    if (++count <= kMostEventsShown) {
      text += Msg("step {}: {} {}\n", event.step, OneLine(event.series), OneLine(event.text));
    }
  }
  if (count > kMostEventsShown) text += Msg("and {} more findings\n", count - kMostEventsShown);
  return text;
}

Message MapText(const Shown& shown, const ShowRunRequest& request, size_t names) {
  Message text = Heading(shown);
  std::vector<Outlier> outliers;
  for (size_t r = 0; r < shown.tile.rows.size(); ++r) {
    const std::vector<int> marks = MarkRow(shown, r, &outliers);
    std::string line = fmt::format("{:<{}} ", FittedName(OneLine(shown.tile.rows[r].label), names), names);
    BinCell all;
    for (size_t b = 0; b < shown.tile.bins; ++b) {
      line += marks[b] != 0 ? OutlierMark(marks[b], request)
                            : Shade(shown, CellValue(shown.Cell(r, b), CellView::kHighest), request);
      all.Merge(shown.Cell(r, b));
    }
    text += Message(line + (all.count == 0 ? "\n" : fmt::format("  {:.3g} to {:.3g}\n", all.low, all.high)));
  }
  if (shown.rows.rows.size() > shown.tile.rows.size()) {
    text += Msg("and {} more rows: narrow them with --series\n", shown.rows.rows.size() - shown.tile.rows.size());
  }
  if (shown.rows.odd > 0) text += Msg("{} cells hold NaN (N) or an infinity (I)\n", shown.rows.odd);
  text += OutlierLines(shown, request, std::move(outliers));
  text += EventLines(shown);
  return text;
}

Message PlotText(const Shown& shown, const ShowRunRequest& request, size_t columns) {
  std::vector<PlotLine> lines;
  std::vector<Outlier> outliers;
  std::string legend;
  size_t odd = 0;
  for (size_t r = 0; r < shown.tile.rows.size(); ++r) {
    PlotLine line;
    line.mark = kMarks[r];
    MarkRow(shown, r, &outliers);
    for (size_t b = 0; b < shown.tile.bins; ++b) {
      const float value = CellValue(shown.Cell(r, b), CellView::kHighest);
      if (value == view::kNoBinValue) continue;
      odd += std::isfinite(value) ? 0 : 1;
      line.x.push_back(static_cast<double>((shown.query.from + static_cast<int64_t>(b)) * shown.width()));
      line.y.push_back(value);
    }
    legend += fmt::format("{} {}\n", line.mark, OneLine(shown.tile.rows[r].label));
    lines.push_back(std::move(line));
  }
  Message text = Heading(shown);
  text += Message(DrawPlot(lines, columns, std::clamp<size_t>(request.height, 4, 200)) + legend);
  if (shown.rows.rows.size() > shown.tile.rows.size()) {
    text +=
        Msg("and {} more series: give a longer part of the name\n", shown.rows.rows.size() - shown.tile.rows.size());
  }
  if (odd > 0) text += Msg("{} points are NaN or infinite and not drawn\n", odd);
  text += OutlierLines(shown, request, std::move(outliers));
  text += EventLines(shown);
  return text;
}

std::string ShownJson(const Shown& shown) {
  JsonWriter json(kJsonPage);
  const auto list = [&](std::string_view key, size_t row, CellView view) {
    json.Key(key);
    json.BeginArray();
    for (size_t b = 0; b < shown.tile.bins; ++b) {
      const float value = CellValue(shown.Cell(row, b), view);
      value == view::kNoBinValue ? json.Null() : json.Rounded(value, 9);
    }
    json.EndArray();
  };
  json.Object([&] {
    json.Member("metric", shown.query.rows.metric);
    json.Member("stat", shown.query.rows.stat);
    json.Member("rank", shown.rank);
    json.Member("ranks", shown.ranks.size());
    json.Member("first_step", shown.query.from * shown.width());
    json.Member("steps_of_column", shown.width());
    json.Member("cut_rows", shown.info.cut_rows.count);
    json.Member("cut_file", shown.info.cut_rows.file);
    json.Key("rows");
    json.BeginArray();
    for (size_t r = 0; r < shown.tile.rows.size(); ++r) {
      json.Object([&] {
        json.Member("name", shown.tile.rows[r].label);
        list("lowest", r, CellView::kLowest);
        list("mean", r, CellView::kMean);
        list("highest", r, CellView::kHighest);
      });
    }
    json.EndArray();
  });
  return json.Take() + "\n";
}

}  // namespace

StatusOr<Message> ShowRun(const ShowRunRequest& request, bool as_json) {
  constexpr size_t kRange = 24, kScale = 14;  // behind a row, before a plot
  const size_t width = TerminalWidth(request.width);
  const size_t names = std::min<size_t>(36, width / 3);
  const size_t columns = std::max<size_t>(10, request.series.empty() ? width - names - kRange : width - kScale);
  MSP_ASSIGN_OR_RETURN(const Shown shown, Load(request, columns));
  if (as_json) return Message(ShownJson(shown));
  return request.series.empty() ? MapText(shown, request, names) : PlotText(shown, request, columns);
}

}  // namespace msprobe
