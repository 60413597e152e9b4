#include "view/trend/trend_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "view/query/viewer.h"
#include "view/test_db.h"
#include "view/trend/trend_json.h"

namespace msprobe::view {
namespace {

// Two ranks, three steps, four targets; the value of norm is 100 rank + 10 step + target.
std::string TrendSql() {
  std::string sql =
      "CREATE TABLE monitoring_targets(target_id INTEGER PRIMARY KEY, target_name TEXT, vpp_stage INTEGER, micro_step "
      "INTEGER);"
      "CREATE TABLE monitoring_metrics(metric_id INTEGER PRIMARY KEY, metric_name TEXT);"
      "CREATE TABLE monitoring_tags(tag_id INTEGER PRIMARY KEY, tag_name TEXT, category TEXT, metric_id INTEGER);"
      "CREATE TABLE tag_target_mapping(tag_id INTEGER, target_id INTEGER);"
      "CREATE TABLE trend_data(rank INTEGER, step INTEGER, target_id INTEGER, metric_id INTEGER, norm REAL, max REAL,"
      " evil REAL, PRIMARY KEY(rank, step, target_id, metric_id)) WITHOUT ROWID;"
      "INSERT INTO monitoring_metrics VALUES(1,'forward'),(2,'backward'),(3,'recompute');"
      "INSERT INTO monitoring_targets VALUES(1,'Module.a.input.0',0,0),(2,'Module.b.input.0',0,0),"
      "(3,'Module.b.input.0',0,1),(900,'Functional.relu.input.0',1,0);"
      "INSERT INTO monitoring_tags VALUES(1,'Module','default',1),(2,'input.0','index',1),(3,'b','module',1);"
      "INSERT INTO tag_target_mapping VALUES(1,1),(1,2),(1,3),(2,1),(2,2),(2,3),(2,900),(3,2),(3,3);";
  for (const int rank : {0, 2}) {
    for (const int step : {0, 1, 5}) {
      for (const int target : {1, 2, 3, 900}) {
        if (rank == 2 && step == 1 && target == 2) continue;
        const std::string key = std::to_string(rank) + "," + std::to_string(step) + "," + std::to_string(target);
        const int value = 100 * rank + 10 * step + target;
        sql += "INSERT INTO trend_data VALUES(" + key + ",1," + std::to_string(value) + ",NULL,1);";
      }
    }
  }
  return sql + "INSERT INTO trend_data VALUES(0,0,1,2,7,1000000001,1);";
}

struct TrendFileTest : testing::Test {
  void SetUp() override {
    RunSql(dir / "runs.trend.db", TrendSql());
    viewer = *Viewer::Open(dir.path());
    file = *viewer->Trend("runs.trend.db");
  }
  TrendQuery Query(TrendDimension dimension, int64_t value) {
    TrendQuery query;
    query.metric = "forward";
    query.stat = "norm";
    query.dimension = dimension;
    query.value = value;
    return query;
  }
  TestDir dir;
  std::unique_ptr<Viewer> viewer;
  std::shared_ptr<TrendFile> file;
};

TEST_F(TrendFileTest, SaysWhatThereIs) {
  EXPECT_EQ(ToJson(file->info()),
            "{\"metrics\":[{\"name\":\"forward\",\"stats\":[\"norm\",\"max\"],\"tags\":["
            "{\"name\":\"Module\",\"category\":\"default\"},{\"name\":\"input.0\",\"category\":\"index\"},"
            "{\"name\":\"b\",\"category\":\"module\"}]},"
            "{\"name\":\"backward\",\"stats\":[\"norm\",\"max\"],\"tags\":[]}],\"ranks\":[0,2],\"steps\":[0,1,5]}");
  const FileList list = *viewer->Files();
  ASSERT_EQ(list.trends.size(), 1u);
  EXPECT_EQ(list.trends[0].file, "runs.trend.db");
  EXPECT_TRUE(list.files.empty());
}

TEST_F(TrendFileTest, AStepHasTargetsByRanks) {
  const TrendGrid grid = *file->Grid(Query(TrendDimension::kStep, 1));
  EXPECT_EQ(grid.columns, (std::vector<int64_t>{0, 2}));
  ASSERT_EQ(grid.rows.size(), 4u);
  EXPECT_EQ(grid.rows[3].name, "Functional.relu.input.0");
  EXPECT_EQ(grid.rows[3].vpp_stage, 1);
  EXPECT_EQ(grid.rows[2].micro_step, 1);
  EXPECT_EQ(grid.values[0], 11);
  EXPECT_EQ(grid.values[1], 211);
  EXPECT_EQ(grid.values[2], 12);
  EXPECT_EQ(grid.values[3], kNoTrendCell);  // has no row
  EXPECT_EQ(grid.values[7], 1110);
  EXPECT_NE(ToJson(grid).find("\"values\":[11.0,211.0,12.0,null,"), std::string::npos) << ToJson(grid);
}

TEST_F(TrendFileTest, ARankHasTargetsByStepsAndATargetRanksBySteps) {
  const TrendGrid rank = *file->Grid(Query(TrendDimension::kRank, 2));
  EXPECT_EQ(rank.columns, (std::vector<int64_t>{0, 1, 5}));
  EXPECT_EQ(rank.values[2], 251);
  const TrendGrid target = *file->Grid(Query(TrendDimension::kTarget, 2));
  EXPECT_EQ(target.ranks, (std::vector<int64_t>{0, 2}));
  EXPECT_TRUE(target.rows.empty());
  EXPECT_EQ(target.values[0], 2);
  EXPECT_EQ(target.values[4], kNoTrendCell);
  EXPECT_EQ(target.values[5], 252);
}

TEST_F(TrendFileTest, AnExportHoldsTheValuesOfTheChosenStepsAndRanks) {
  const auto all = file->Export({}, {});
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->targets, 4u);
  EXPECT_EQ(all->json.rfind("{\"info\":" + ToJson(file->info()) + ",\"metrics\":[{\"targets\":[[1,", 0), 0u)
      << all->json;
  const ExportedTrend some = *file->Export({1, 5}, {2});
  EXPECT_EQ(some.json.substr(some.json.find("\"metrics\":[{\"targets\"")),
            "\"metrics\":[{\"targets\":[[1,\"Module.a.input.0\",0,0],[2,\"Module.b.input.0\",0,0],"
            "[3,\"Module.b.input.0\",0,1],[900,\"Functional.relu.input.0\",1,0]],"
            "\"tags\":[[0,1,2],[0,1,2,3],[1,2]],"
            "\"values\":[[[211.0,251.0,null,252.0,213.0,253.0,1110.0,1150.0]],"
            "[[\"nan\",\"nan\",null,\"nan\",\"nan\",\"nan\",\"nan\",\"nan\"]]]},"
            "{\"targets\":[[1,\"Module.a.input.0\",0,0]],\"tags\":[],\"values\":[[null],[null]]}]}");
  EXPECT_EQ(file->Export({7}, {}).status().code(), Code::kBadInput);
}

TEST_F(TrendFileTest, TagsAndTextNarrowAndPagesFollow) {
  TrendQuery query = Query(TrendDimension::kStep, 0);
  query.tags = {"Module", "b"};
  EXPECT_EQ((*file->Grid(query)).total, 2u);
  query.text = "FUNCTIONAL";
  EXPECT_EQ((*file->Grid(query)).total, 0u);
  query.tags.clear();
  EXPECT_EQ((*file->Grid(query)).rows.at(0).id, 900);
  query = Query(TrendDimension::kStep, 0);
  query.offset = 1;
  query.limit = 2;
  const TrendGrid page = *file->Grid(query);
  EXPECT_EQ(page.total, 4u);
  ASSERT_EQ(page.rows.size(), 2u);
  EXPECT_EQ(page.rows[0].id, 2);
  query.offset = 100;
  EXPECT_TRUE((*file->Grid(query)).rows.empty());
}

TEST_F(TrendFileTest, LinesFollowStepsOrRanks) {
  TrendLineQuery query{"forward", "norm", "Module.b.input.0", 0, 0, 2, std::nullopt};
  EXPECT_EQ(ToJson(*file->Line(query)), "{\"points\":[[0,202.0],[5,252.0]]}");
  query.rank.reset();
  query.step = 5;
  EXPECT_EQ(ToJson(*file->Line(query)), "{\"points\":[[0,52.0],[2,252.0]]}");
}

TEST_F(TrendFileTest, WhatIsNotThereIsSaid) {
  const auto code = [](const auto& answer) { return answer.ok() ? Code::kOk : answer.status().code(); };
  EXPECT_EQ(code(file->Grid(Query(TrendDimension::kStep, 3))), Code::kBadInput);
  EXPECT_EQ(code(file->Grid(Query(TrendDimension::kTarget, 77))), Code::kBadInput);
  TrendQuery query = Query(TrendDimension::kStep, 0);
  query.stat = "evil";
  EXPECT_EQ(code(file->Grid(query)), Code::kBadInput);
  query.stat = "norm";
  query.metric = "nothing";
  EXPECT_EQ(code(file->Grid(query)), Code::kBadInput);
  query.metric = "forward";
  query.tags = {"no tag"};
  EXPECT_EQ(code(file->Grid(query)), Code::kBadInput);
  EXPECT_EQ(code(file->Line({"forward", "norm", "Module.b.input.0", 0, 0, 0, 0})), Code::kUsage);
  EXPECT_EQ(code(file->Line({"forward", "norm", "Module.z", 0, 0, 0, std::nullopt})), Code::kBadInput);
}

TEST_F(TrendFileTest, OtherFilesAreRefused) {
  RunSql(dir / "other.trend.db", "CREATE TABLE t(a)");
  RunSql(dir / "view.trend.db", TrendSql() +
                                    "DROP TABLE trend_data; CREATE VIEW trend_data AS WITH RECURSIVE n(rank) AS"
                                    " (SELECT 0 UNION ALL SELECT rank+1 FROM n) SELECT rank, 0 AS step, 1 AS target_id,"
                                    " 1 AS metric_id, 1.0 AS norm FROM n;");
  std::string slow = TrendSql();
  const std::string key = ", PRIMARY KEY(rank, step, target_id, metric_id)) WITHOUT ROWID";
  slow.replace(slow.find(key), key.size(), ")");
  RunSql(dir / "slow.trend.db", slow);
  dir.Write("text.trend.db", "not a database, but long enough to look like one to a reader of headers");
  MakeCompareDb(dir / "graph.vis.db");
  for (const char* name : {"other.trend.db", "view.trend.db", "slow.trend.db", "text.trend.db", "graph.vis.db",
                           "gone.trend.db", "../runs.trend.db"}) {
    EXPECT_FALSE(viewer->Trend(name).ok()) << name;
  }
  EXPECT_FALSE(viewer->Config("runs.trend.db").ok());
}

TEST_F(TrendFileTest, RowsOfNothingAndMetricsOfOneIdCostNothing) {
  std::string sql =
      TrendSql() + "DROP TABLE monitoring_metrics; CREATE TABLE monitoring_metrics(metric_id, metric_name);";
  for (int i = 0; i < 20; ++i) sql += "INSERT INTO monitoring_metrics VALUES(1,'m" + std::to_string(i) + "');";
  RunSql(dir / "odd.trend.db", sql + "INSERT INTO trend_data VALUES(7,7,12345,1,1,1,1),(7,8,1,777,1,1,1);");
  const TrendInfo& info = (*viewer->Trend("odd.trend.db"))->info();
  ASSERT_EQ(info.metrics.size(), 20u);
  size_t tags = 0;
  for (const TrendMetric& metric : info.metrics) tags += metric.tags.size();
  EXPECT_EQ(tags, 3u) << "of several of one id the first has them";
}

TEST_F(TrendFileTest, ThreadsMayAskAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (int k = 0; k < 30; ++k) EXPECT_EQ((*file->Grid(Query(TrendDimension::kRank, 0))).values[2], 51);
    });
  }
  for (std::thread& t : threads) t.join();
}

// A row whose max is NaN, one where none was recorded, one that is infinite, and a metric that has no max.
std::string SpecialSql() {
  return TrendSql() +
         "CREATE TABLE msprobe_absent(rank INTEGER, step INTEGER, target_id INTEGER, metric_id INTEGER, stats INTEGER,"
         " PRIMARY KEY(rank, step, target_id, metric_id)) WITHOUT ROWID;"
         "INSERT INTO msprobe_absent VALUES(0,0,2,1,2);"
         "UPDATE trend_data SET max=-1000000001 WHERE rank=0 AND step=0 AND target_id=3;"
         "CREATE TABLE global_stats(max_rank INTEGER, forward TEXT, backward TEXT);"
         "INSERT INTO global_stats VALUES(9,'norm','norm'),(2,'norm,max','norm');";
}

TEST_F(TrendFileTest, NanIsToldFromNoValue) {
  RunSql(dir / "special.trend.db", SpecialSql());
  const std::shared_ptr<TrendFile> special = *viewer->Trend("special.trend.db");
  EXPECT_EQ(special->info().metrics[0].stats, (std::vector<std::string>{"norm", "max"}));
  EXPECT_EQ(special->info().metrics[1].stats, (std::vector<std::string>{"norm"})) << "the last row counts";
  TrendQuery query = Query(TrendDimension::kRank, 0);
  query.stat = "max";
  const std::string json = ToJson(*special->Grid(query));
  EXPECT_EQ(json.substr(json.find("\"values\"")),
            R"("values":["nan","nan","nan",null,"nan","nan","-inf","nan","nan","nan","nan","nan"]})");
  TrendLineQuery line{"forward", "max", "Module.b.input.0", 0, 0, 0, std::nullopt};
  EXPECT_EQ(ToJson(*special->Line(line)), R"({"points":[[1,"nan"],[5,"nan"]]})");
  line.micro_step = 1;
  EXPECT_EQ(ToJson(*special->Line(line)), R"({"points":[[0,"-inf"],[1,"nan"],[5,"nan"]]})");
  const ExportedTrend exported = *special->Export({0}, {0});
  EXPECT_NE(exported.json.find(R"([["nan",null,"-inf","nan"]])"), std::string::npos) << exported.json;
  // Without the table NULL in a row is NaN: what the earlier tool wrote for it.
  query.stat = "max";
  EXPECT_NE(ToJson(*file->Grid(query)).find(R"("values":["nan","nan","nan","nan",)"), std::string::npos);
}

TEST_F(TrendFileTest, OddRowsStandFirst) {
  std::string sql = TrendSql() + "DELETE FROM trend_data;";
  for (const int rank : {0, 1, 2, 3}) {
    for (const int target : {1, 2, 3, 900}) {
      for (const int step : {0, 1}) {
        // Ranks of target 1 differ by nature; one rank of target 900 is 1 % off; one of target 3 is NaN.
        const double natural = target == 1 ? 1 + 0.1 * rank : 1;
        const double odd = target == 900 && rank == 2 ? 1.01 : 1;
        const std::string value = target == 3 && rank == 1 ? "NULL" : std::to_string(target * natural * odd);
        sql += "INSERT INTO trend_data VALUES(" + std::to_string(rank) + "," + std::to_string(step) + "," +
               std::to_string(target) + ",1," + value + ",NULL,1);";
      }
    }
  }
  RunSql(dir / "odd_rank.trend.db", sql);
  const std::shared_ptr<TrendFile> odd = *viewer->Trend("odd_rank.trend.db");
  TrendQuery query = Query(TrendDimension::kStep, 0);
  query.outliers_first = true;
  TrendGrid grid = *odd->Grid(query);
  ASSERT_EQ(grid.rows.size(), 4u);
  EXPECT_EQ(grid.rows[0].id, 3);
  EXPECT_EQ(grid.rows[1].id, 900);
  EXPECT_EQ(grid.rows[2].id, 1);
  EXPECT_NEAR(grid.values[4 + 2], 909, 1e-6) << "values go with their rows";
  query.offset = 1;
  query.limit = 2;
  grid = *odd->Grid(query);
  EXPECT_EQ(grid.total, 4u);
  ASSERT_EQ(grid.rows.size(), 2u);
  EXPECT_EQ(grid.rows[0].id, 900);
  query = Query(TrendDimension::kTarget, 900);
  query.outliers_first = true;
  grid = *odd->Grid(query);
  EXPECT_EQ(grid.ranks, (std::vector<int64_t>{2, 0, 1, 3}));
  EXPECT_NEAR(grid.values[0], 909, 1e-6);
}

TEST_F(TrendFileTest, AFileWithoutTagsOpens) {
  RunSql(dir / "plain.trend.db", TrendSql() + "DROP TABLE tag_target_mapping; DROP TABLE monitoring_tags;");
  EXPECT_TRUE((*viewer->Trend("plain.trend.db"))->info().metrics[0].tags.empty());
}

}  // namespace
}  // namespace msprobe::view
