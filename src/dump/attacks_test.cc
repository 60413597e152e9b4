// Files made to break readers: each must end in a value or in a one-line refusal.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/text.h"
#include "dump/flatten.h"
#include "dump/reader.h"
#include "dump/test_files.h"

namespace msprobe {
namespace {

std::filesystem::path AttackDir() { return std::filesystem::path(MSPROBE_SOURCE_DIR) / "tests" / "attacks"; }

void ExpectOneLine(const Status& status, const std::string& what) {
  EXPECT_EQ(status.code(), Code::kBadInput) << what;
  EXPECT_FALSE(status.message().empty()) << what;
  EXPECT_LT(status.message().size(), 1000u) << what;
  for (const char c : status.message()) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << what << status.message();
}

/// Ops of the file as a dump: how many there are and how many of them parse; -1 when it is refused.
std::pair<int, int> ReadAsDump(const std::string& path) {
  const auto dump = DumpFile::Open(path);
  if (!dump.ok()) {
    ExpectOneLine(dump.status(), path);
    return {-1, 0};
  }
  int good = 0;
  JsonDoc doc;
  std::vector<Item> items;
  for (size_t i = 0; i < dump->ops().size(); ++i) {
    const Status status = dump->ParseOp(i, &doc);
    if (!status.ok()) {
      ExpectOneLine(status, path);
      continue;
    }
    ++good;
    FlattenOp(dump->ops()[i].name, doc, &items);
  }
  return {static_cast<int>(dump->ops().size()), good};
}

TEST(Attacks, EveryFileEndsInAValueOrARefusal) {
  // Ops in the index and ops that parse, of the files that are accepted; all others must be refused.
  const std::map<std::string, std::pair<int, int>> accepted = {
      {"deep_objects.json", {0, 0}},          {"deep_closed_op.json", {2, 1}},      {"deep_allowed_op.json", {1, 1}},
      {"huge_numbers.json", {4, 4}},          {"unterminated_string.json", {0, 0}}, {"unterminated_name.json", {0, 0}},
      {"backslash_at_the_end.json", {1, 1}},  {"duplicate_keys.json", {1, 1}},      {"invalid_utf8.json", {1, 1}},
      {"overlong_utf8.json", {1, 1}},         {"control_characters.json", {1, 0}},  {"lone_surrogate.json", {1, 1}},
      {"header_of_wrong_types.json", {0, 0}}, {"leaf_lookalikes.json", {4, 4}},     {"bench_places_twice.json", {2, 2}},
  };
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(AttackDir())) {
    const std::string path = entry.path().string(), name = entry.path().filename().string();
    ++files;
    const auto found = ReadAsDump(path);
    const auto it = accepted.find(name);
    EXPECT_EQ(found, it == accepted.end() ? std::make_pair(-1, 0) : it->second) << name;
    if (const auto stacks = StackFile::Open(path); !stacks.ok()) ExpectOneLine(stacks.status(), path);
    if (const auto construct = ConstructFile::Open(path); !construct.ok()) ExpectOneLine(construct.status(), path);
  }
  EXPECT_GE(files, 35);
}

TEST(Attacks, WrongTypesInStackAndConstruct) {
  EXPECT_FALSE(StackFile::Open((AttackDir() / "stack_wrong_types.json").string()).ok());
  EXPECT_FALSE(ConstructFile::Open((AttackDir() / "construct_wrong_types.json").string()).ok());
  EXPECT_FALSE(ConstructFile::Open((AttackDir() / "construct_huge_micro_step.json").string()).ok());
}

TEST(Attacks, TheLastDuplicateCounts) {
  const auto dump = DumpFile::Open((AttackDir() / "duplicate_keys.json").string());
  ASSERT_TRUE(dump.ok());
  JsonDoc doc;
  ASSERT_TRUE(dump->ParseOp(0, &doc).ok());
  EXPECT_EQ(doc["x"].Int32(), 3);
  EXPECT_EQ(dump->task(), "statistics");
}

TEST(Attacks, NumbersBeyondDoubleAreReadAsPythonDoes) {
  const auto dump = DumpFile::Open((AttackDir() / "huge_numbers.json").string());
  ASSERT_TRUE(dump.ok());
  JsonDoc doc;
  ASSERT_TRUE(dump->ParseOp(1, &doc).ok());
  EXPECT_EQ(doc["x"].Number(), std::numeric_limits<double>::infinity());
  ASSERT_TRUE(dump->ParseOp(2, &doc).ok());
  EXPECT_EQ(doc["x"].Number(), 0);
  ASSERT_TRUE(dump->ParseOp(3, &doc).ok());
  EXPECT_EQ(doc["x"].Number(), 0);
}

TEST(Attacks, NamesOfDirectories) {
  const TempDir dir;
  dir.Dir("d/rank" + std::string(200, '9'));
  dir.Dir("d/rank-1");
  dir.Dir("d/rank 0");
  dir.Dir("d/step" + std::string(200, '1'));
  dir.Dir("d/proc");
  dir.Write("d/rank0", "a file");
  const auto none = ResolveDumpPath(dir.path() + "/d");
  ASSERT_FALSE(none.ok());
  ExpectOneLine(none.status(), "directory");
  for (int i = 0; i < 200; ++i) dir.Dir("many/rank" + std::to_string(1000000 + i));
  const auto many = ResolveDumpPath(dir.path() + "/many");
  ASSERT_TRUE(many.ok());
  EXPECT_EQ(many->steps[0].ranks.size(), 200u);
  EXPECT_EQ(many->steps[0].ranks[199].rank, 1000199);
  // A symbolic link that leads to itself is not followed for ever.
  std::filesystem::create_symlink("loop", dir.path() + "/loop");
  EXPECT_FALSE(ResolveDumpPath(dir.path() + "/loop").ok());
  EXPECT_FALSE(DumpFile::Open(dir.path()).ok());
}

}  // namespace
}  // namespace msprobe
