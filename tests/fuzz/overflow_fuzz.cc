// dump.json of two ranks as overflow_check reads them: nothing crashes, places lie inside the dumps, and what is
// written parses again.
#include <string>
#include <vector>

#include "diagnose/overflow/overflow.h"
#include "diagnose/overflow/overflow_describe.h"
#include "diagnose/story/story.h"
#include "fuzz_file.h"
#include "json/parser.h"

namespace msprobe::fuzz {
namespace {

void CheckJson(const std::string& text) {
  JsonDoc doc;
  Check(ParseJson(text, "output", &doc).ok(), "the output is JSON");
}

void Follow(const DumpFile& dump) {
  std::vector<OverflowRank> ranks(2);
  std::vector<RankDump> dumps;
  std::vector<OverflowFiles> files;
  for (int r = 0; r < 2; ++r) {
    auto scan = ScanForOverflow(dump, r == 0);
    if (!scan.ok()) return CheckRefusal(scan.status());
    ranks[static_cast<size_t>(r)] = {&dump, std::move(*scan)};
    dumps.push_back({r, &dump});
    files.emplace_back(r, &dump);
  }
  const auto graph = ReadCommunication(std::move(dumps));
  if (!graph.ok()) return CheckRefusal(graph.status());
  const std::vector<OverflowSource> sources = FollowOverflow(ranks, *graph);
  const OverflowStepView view{&ranks, &files, &sources};
  std::vector<const OverflowSource*> named;
  for (const OverflowSource& s : sources) {
    for (const OpPlace& p : s.places) Check(p.rank < 2 && p.op < dump.ops().size(), "a place is in its dump");
  }
  OverflowReport report;
  for (const size_t i : FirstSources(sources, *graph)) {
    named.push_back(&sources[i]);
    auto finding = DescribeSource(view, sources[i]);
    Check(finding.ok(), "what was parsed once parses again");
    report.first.push_back(std::move(*finding));
  }
  if (!named.empty()) {
    const auto nodes = OverflowNodes(view, named);
    Check(nodes.ok(), "what was parsed once parses again");
    CheckJson(*nodes);
  }
  const Story story = StoryOf(report);
  CheckJson(OverflowJson(report, StoryJson(story), {}, "file"));
  for (const Language language : {Language::kEnglish, Language::kChinese})
    (void)OverflowText(report, StoryText(story, language), "file");
}

}  // namespace
}  // namespace msprobe::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const fuzz::MemoryFile file(data, size);
  const auto dump = DumpFile::Open(file.path());
  dump.ok() ? fuzz::Follow(*dump) : fuzz::CheckRefusal(dump.status());
  return 0;
}
