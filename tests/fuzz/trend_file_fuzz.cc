// .trend.db files: damaged or made to harm, they are refused or answered.
#include <cmath>
#include <string>

#include "fuzz_file.h"
#include "view/trend/trend_file.h"
#include "view/trend/trend_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const fuzz::MemoryFile input(data, size);
  auto file = view::TrendFile::Open(input.path(), "input");
  if (!file.ok()) {
    fuzz::Check(!file.status().message().empty(), "a refusal says why");
    return 0;
  }
  const view::TrendInfo& info = (*file)->info();
  (void)view::ToJson(info);
  for (const view::TrendMetric& metric : info.metrics) {
    view::TrendQuery query;
    query.metric = metric.name;
    query.stat = metric.stats.front();
    query.value = info.steps.front();
    query.outliers_first = size % 2 == 0;
    auto grid = (*file)->Grid(query);
    if (!grid.ok()) continue;
    fuzz::Check(grid->values.size() == grid->rows.size() * grid->columns.size(), "a value for each cell");
    (void)view::ToJson(*grid);
    if (grid->rows.empty()) continue;
    const view::TrendTargetName& target = grid->rows.front();
    (void)(*file)->Line(
        {metric.name, query.stat, target.name, target.vpp_stage, target.micro_step, info.ranks.front(), std::nullopt});
  }
  return 0;
}
