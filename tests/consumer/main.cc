// A program that uses nothing but the installed headers: reads a dump, compares two, writes their graph.
#include <msprobe/compare.h>
#include <msprobe/dump.h>
#include <msprobe/graph.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (0)

int main(int argc, char** argv) {
  CHECK(argc == 4);
  const std::string target = argv[1], golden = argv[2], out = argv[3];

  const auto missing = msprobe::Dump::Open(target + "/none.json");
  CHECK(!missing.ok() && missing.status().code() == msprobe::Code::kBadInput);
  CHECK(missing.status().message().find("none.json") != std::string::npos);

  auto opened = msprobe::Dump::Open(target + "/dump.json");
  CHECK(opened.ok());
  const msprobe::Dump dump = *std::move(opened);
  CHECK(dump.size() > 0 && dump.task() == "statistics" && dump.truncated().empty());
  for (size_t i = 0; i < dump.size(); ++i) {
    CHECK(dump.find(dump.name(i)) == i);
    CHECK(dump.json(i).front() == '{' && dump.json(i).back() == '}');
  }
  CHECK(dump.find("nothing") == dump.size());

  double share = 0;
  msprobe::CompareSettings compare{target, golden, out};
  compare.progress = [&](const std::string&, double now) { share = now; };
  const auto compared = msprobe::CompareDumps(compare);
  if (!compared.ok()) std::fprintf(stderr, "%s\n", compared.status().message().c_str());
  CHECK(compared.ok() && compared->pairs.size() == 1 && compared->failures.empty());
  const msprobe::ComparedPair& pair = compared->pairs[0];
  CHECK(pair.rows > 0 && pair.pass + pair.warning + pair.error <= pair.rows && pair.matched_ops <= pair.ops);
  CHECK(pair.results.size() == 1 && std::filesystem::file_size(pair.results[0]) > 0);
  CHECK(share == 1 && !compared->text.empty() && compared->json.front() == '{');

  const auto graph = msprobe::WriteGraph({target, golden, out});
  CHECK(graph.ok() && graph->graphs == 1 && graph->target_nodes > 0 && graph->golden_nodes > 0);
  CHECK(std::filesystem::file_size(graph->path) == graph->bytes);
  return 0;
}
