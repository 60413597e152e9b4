// construct.json to micro steps: whatever the parents, each op gets a place, and no two calls of a name share one.
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "dump/reader.h"
#include "fuzz_file.h"
#include "trend/dump_trend.h"
#include "trend/micro_steps.h"
#include "trend/trend_tags.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const fuzz::MemoryFile file(data, size);
  const auto construct = ConstructFile::Open(file.path());
  if (!construct.ok()) return 0;
  std::vector<std::string_view> ops;
  for (const ConstructEntry& entry : construct->entries) ops.push_back(entry.name);
  const MicroSteps micro = FindMicroSteps(*construct, ops);
  fuzz::Check(micro.places.empty() || micro.places.size() == ops.size(), "each op has a place");
  std::set<std::tuple<std::string, int, int64_t>> seen;
  for (size_t i = 0; i < micro.places.size(); ++i) {
    const MicroPlace& place = micro.places[i];
    fuzz::Check(place.micro_step >= 0 && place.micro_step < micro.count, "a micro step is one of those counted");
    const CallNumber call = CallNumberOf(ops[i]);
    fuzz::Check((call.number < 0) == (place.call < 0), "a call has a number as its name has");
    if (place.call < 0) continue;
    std::string name(ops[i].substr(0, call.begin));
    name.append("\n").append(ops[i].substr(call.end));
    fuzz::Check(seen.emplace(std::move(name), place.micro_step, place.call).second, "calls have numbers of their own");
  }
  for (const std::string_view op : ops) {
    const DumpTarget target = DumpTargetOf(std::string(op), {{"Module.", "M."}}, false);
    fuzz::Check(target.call >= 0, "a call is not a negative number");
    DumpTags(op);
    MonitorTags(op);
  }
  return 0;
}
