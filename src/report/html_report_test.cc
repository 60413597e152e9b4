#include "report/html_report.h"

#include <gtest/gtest.h>
#include <libdeflate.h>

#include "base/text.h"
#include "dump/test_files.h"
#include "json/parser.h"
#include "report/fill_page.h"
#include "report/report_page.h"
#include "report/row_watch.h"

namespace msprobe {
namespace {

std::string FromBase64(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) break;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((count += 6) >= 8) out += static_cast<char>(bits >> (count -= 8));
  }
  return out;
}

TEST(HtmlReportTest, TheDataStandsInThePageAsBase64) {
  for (const std::string json : {"{}", "{\"a\": \"</script><script>alert(1)</script>\"}", "{\"ab\": [1, 2, 3]}"}) {
    const auto page = FillPage("<p>MSPROBE-REPORT-DATA</p>", json);
    ASSERT_TRUE(page.ok());
    ASSERT_TRUE(StartsWith(*page, "<p>") && EndsWith(*page, "</p>"));
    const std::string_view data = std::string_view(*page).substr(3, page->size() - 7);
    EXPECT_EQ(data.find_first_of("<>&\"'"), std::string::npos);
    EXPECT_EQ(data.size() % 4, 0u);
    const std::string packed = FromBase64(data);
    std::string out(json.size(), '\0');
    libdeflate_decompressor* unpacker = libdeflate_alloc_decompressor();
    EXPECT_EQ(libdeflate_gzip_decompress(unpacker, packed.data(), packed.size(), out.data(), out.size(), nullptr),
              LIBDEFLATE_SUCCESS);
    libdeflate_free_decompressor(unpacker);
    EXPECT_EQ(out, json);
  }
  EXPECT_FALSE(FillPage("<p></p>", "{}").ok());
}

TEST(HtmlReportTest, ABuildWithoutThePageSaysSo) {
  if (ReportPage().empty()) {
    EXPECT_EQ(CheckHtmlReport().code(), Code::kUsage);
    return;
  }
  EXPECT_TRUE(CheckHtmlReport().ok());
  EXPECT_TRUE(Contains(ReportPage(), "default-src 'none'; script-src 'sha256-"));
  EXPECT_EQ(ReportPage().find(kDataMark), ReportPage().rfind(kDataMark));
}

TEST(HtmlReportTest, ManyPairsShareTheRows) {
  EXPECT_EQ(PageOptions(1).rows, 10'000u);
  EXPECT_EQ(PageOptions(8).rows, 2'500u);
  EXPECT_EQ(PageOptions(100'000).rows, 50u);
  EXPECT_EQ(PageOptions(0).cells, WatchOptions().cells);
  EXPECT_EQ(PageOptions(64).bins, 100u);
}

class RowWatchTest : public testing::Test {
 protected:
  /// Layers 0 to 2; `norms` of their outputs, of a function in the last one, and of one op more.
  std::string Dump(const std::string& name, const std::vector<std::string>& norms) {
    std::string data;
    const std::vector<std::string> ops{"Module.m.layers.0.fc.Linear.forward.0", "Module.m.layers.1.fc.Linear.forward.0",
                                       "Module.m.layers.2.fc.Linear.forward.0", "Functional.</script>.0.forward"};
    for (size_t i = 0; i < norms.size(); ++i) {
      const auto leaf = [](const std::string& norm) {
        return R"([{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1], "Max": )" + norm +
               R"(, "Min": 0.5, "Mean": 0.5, "Norm": )" + norm + "}]";
      };
      data += (i ? ", \"" : "\"") + (i < ops.size() ? ops[i] : "Functional.more.0.forward") + R"(": {"input_args": )" +
              leaf("1.0") + R"(, "output": )" + leaf(norms[i]) + "}";
    }
    return dir_.Write(name,
                      R"({"task": "statistics", "level": "mix", "framework": "pytorch", "data": {)" + data + "}}");
  }
  std::string Page(const WatchOptions& options) {
    FilePair files;
    files.target = target_;
    files.golden = golden_;
    auto pair = OpenDumpPair(files, Mapping());
    EXPECT_TRUE(pair.ok()) << pair.status().message();
    RowSettings rows;
    rows.mode = pair->options.mode;
    const NoRows table;
    auto watch = RowWatch::Create(*pair, rows, table, options);
    EXPECT_TRUE(watch.ok());
    const auto take = [&](OpBlock&& block) {
      (*watch)->Take(block);
      return OkStatus();
    };
    EXPECT_TRUE(ComparePair(*pair, **watch, take, nullptr).ok());
    advice_ = AdvisorText((*watch)->advice());
    return (*watch)->PageJson();
  }
  TempDir dir_;
  std::string target_, golden_, advice_;
};

TEST_F(RowWatchTest, KeepsTheWorstAndTheirPlaces) {
  target_ = Dump("t/dump.json", {"1.0", "1.5", "NaN", "1.25", "1.0"});
  golden_ = Dump("g/dump.json", {"1.0", "1.0", "1.0", "1.0"});
  dir_.Write("t/construct.json", R"({"Functional.</script>.0.forward": "Module.m.layers.2.fc.Linear.forward.0"})");
  WatchOptions options;
  options.page = true;
  options.rows = 3;
  options.ops = 2;
  JsonDoc doc;
  ASSERT_TRUE(ParseJson(Page(options), "page", &doc).ok());
  EXPECT_TRUE(Contains(advice_, "Suspect Nodes: Module.m.layers.1.fc.Linear.forward.0")) << advice_;
  // Rows in the order of the table: the errors, and the larger of the other differences.
  const JsonValue& table = doc["table"];
  EXPECT_EQ(table["total"].Int32(), 10);
  ASSERT_EQ(table["rows"].size(), 3u);
  EXPECT_EQ(table["rows"][0][0].Int32(), 3);
  EXPECT_EQ(table["rows"][1][0].Int32(), 5);
  EXPECT_TRUE(table["rows"][1][1].IsNull()) << "not finite";
  EXPECT_EQ(table["rows"][0][3].size(), table["columns"].size());
  EXPECT_EQ(table["rows"][0][3][0].Text(), "Module.m.layers.1.fc.Linear.forward.0.output.0");
  EXPECT_EQ(table["rows"][0][3][4].Text(), "[1]");
  // Ops by error, dump order among equals.
  ASSERT_EQ(doc["worst"].size(), 2u);
  EXPECT_EQ(doc["worst"][0][0].Text(), "Module.m.layers.2.fc.Linear.forward.0");
  EXPECT_EQ(doc["worst"][1][0].Text(), "Module.m.layers.1.fc.Linear.forward.0");
  EXPECT_NEAR(doc["worst"][1][3].Number(), 0.5, 1e-4);  // of the golden side
  // One cell a layer; the function counts to its module's.
  const JsonValue& cells = doc["curves"]["cells"];
  ASSERT_EQ(cells.size(), 3u);
  EXPECT_EQ(cells[0][8].Number(), 0);
  EXPECT_EQ(cells[2][4].Int32(), 4) << "rows of both ops";
  EXPECT_TRUE(cells[2][8].IsNull());
  EXPECT_EQ(doc["curves"]["parts"][0].Text(), "fc");
  EXPECT_EQ(doc["roundoff"].Number(), 1e-5);
  ASSERT_EQ(doc["target_only"].size(), 1u);
  EXPECT_EQ(doc["target_only"][0].Text(), "Functional.more.0.forward");
}

TEST_F(RowWatchTest, BoundsHold) {
  target_ = Dump("t/dump.json", {"1.0", "1.5", "2.0", "1.25", "3.0"});
  golden_ = Dump("g/dump.json", {"1.0", "1.0", "1.0", "1.0"});
  WatchOptions options;
  options.page = true;
  options.rows = options.ops = options.names = 0;
  options.cells = options.bins = 1;
  JsonDoc doc;
  ASSERT_TRUE(ParseJson(Page(options), "page", &doc).ok());
  EXPECT_EQ(doc["table"]["rows"].size(), 0u);
  EXPECT_EQ(doc["worst"].size(), 0u);
  EXPECT_EQ(doc["curves"]["cells"].size(), 1u);
  EXPECT_EQ(doc["curves"]["run"].size(), 1u);
  EXPECT_EQ(doc["target_only"].size(), 0u);
}

TEST_F(RowWatchTest, TheAdvisorAloneKeepsNothing) {
  target_ = Dump("t/dump.json", {"1.0", "NaN"});
  golden_ = Dump("g/dump.json", {"1.0", "1.0"});
  Page(WatchOptions());
  EXPECT_TRUE(StartsWith(advice_, "Line: 5\nSuspect Nodes: Module.m.layers.1.fc.Linear.forward.0\n")) << advice_;
}

}  // namespace
}  // namespace msprobe
