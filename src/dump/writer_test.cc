#include "dump/writer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>

#include "base/text.h"
#include "dump/reader.h"
#include "dump/test_files.h"
#include "json/writer.h"

namespace msprobe {
namespace {

// json.dumps(obj, indent=1) of Python 3.11.
constexpr char kPython[] = R"({
 "task": "statistics",
 "dump_data_dir": null,
 "data": {
  "F.\u00e9\u4e2d\ud83d\ude00.0.forward": {
   "input_args": [
    {
     "shape": [
      2,
      3
     ],
     "Max": 1e-05,
     "Min": -Infinity,
     "Mean": NaN,
     "Norm": 1e+16,
     "requires_grad": true
    },
    null,
    []
   ],
   "input_kwargs": {},
   "output": [
    [],
    [
     [
      1,
      -2
     ],
     {
      "k": "q\"\\\n\t\u0001/\u007f"
     }
    ]
   ]
  },
  "big": [
   18446744073709551615,
   -9223372036854775808,
   0.1,
   123456789012345.6,
   1.0,
   -0.0,
   false
  ]
 }
})";

void WriteTensor(JsonWriter* j) {
  j->BeginObject();
  j->Key("shape");
  j->BeginArray();
  j->Int(2);
  j->Int(3);
  j->EndArray();
  j->Key("Max");
  j->Number(1e-5);
  j->Key("Min");
  j->Number(-INFINITY);
  j->Key("Mean");
  j->Number(NAN);
  j->Key("Norm");
  j->Number(1e16);
  j->Key("requires_grad");
  j->Bool(true);
  j->EndObject();
}

/// The value of the first op, at nesting level 2.
void WriteOp(JsonWriter* j) {
  j->BeginObject();
  j->Key("input_args");
  j->BeginArray();
  WriteTensor(j);
  j->Null();
  j->BeginArray();
  j->EndArray();
  j->EndArray();
  j->Key("input_kwargs");
  j->BeginObject();
  j->EndObject();
  j->Key("output");
  j->BeginArray();
  j->BeginArray();
  j->EndArray();
  j->BeginArray();
  j->BeginArray();
  j->Int(1);
  j->Int(-2);
  j->EndArray();
  j->BeginObject();
  j->Key("k");
  j->String("q\"\\\n\t\x01/\x7f");
  j->EndObject();
  j->EndArray();
  j->EndArray();
  j->EndObject();
}

void WriteBig(JsonWriter* j) {
  j->BeginArray();
  j->UInt(UINT64_MAX);
  j->Int(INT64_MIN);
  j->Number(0.1);
  j->Number(123456789012345.6);
  j->Number(1);
  j->Number(-0.0);
  j->Bool(false);
  j->EndArray();
}

constexpr char kName[] = "F.\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80.0.forward";

TEST(JsonWriter, SameTextAsPython) {
  std::string text;
  JsonWriter j(&text, kJsonIndented);
  j.BeginObject();
  j.Key("task");
  j.String("statistics");
  j.Key("dump_data_dir");
  j.Null();
  j.Key("data");
  j.BeginObject();
  j.Key(kName);
  WriteOp(&j);
  j.Key("big");
  WriteBig(&j);
  j.EndObject();
  j.EndObject();
  EXPECT_EQ(text, kPython);
}

TEST(JsonWriter, RawTakesTextOfItsDepth) {
  std::string op, text;
  JsonWriter inner(&op, kJsonIndented, 2);
  WriteOp(&inner);
  JsonWriter j(&text, kJsonIndented, 2);
  j.Key(kName);
  j.Raw(op);
  j.Key("big");
  WriteBig(&j);
  EXPECT_TRUE(Contains(kPython, "\"data\": {" + text + "\n }\n}"));
}

constexpr char kHead[] = "{\n \"task\": \"statistics\",\n \"dump_data_dir\": null,\n \"data\": {";
constexpr char kTail[] = "\n }\n}";

TEST(GrowingJsonFile, CompleteAfterEachFlush) {
  const TempDir dir;
  const std::string path = dir.Write("dump.json", "old");
  auto file = GrowingJsonFile::Create(path, kHead, kTail);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(ReadAll(path), "{\n \"task\": \"statistics\",\n \"dump_data_dir\": null,\n \"data\": {}\n}");
  struct stat st {};
  ASSERT_EQ(stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0640u);
  for (int i = 0; i < 2; ++i) {
    std::string entry;
    JsonWriter j(&entry, kJsonIndented, 2);
    j.Key(i ? "big" : kName);
    i ? WriteBig(&j) : WriteOp(&j);
    ASSERT_TRUE((*file)->Append(entry).ok());
    ASSERT_TRUE((*file)->Flush().ok());
    const auto dump = DumpFile::Open(path);
    ASSERT_TRUE(dump.ok()) << dump.status().message();
    EXPECT_EQ(dump->truncated().English(), "");
    EXPECT_EQ(dump->ops().size(), static_cast<size_t>(i) + 1);
  }
  ASSERT_TRUE((*file)->Close().ok());
  EXPECT_EQ(ReadAll(path), kPython);
}

TEST(GrowingJsonFile, MuchPendingIsWrittenEarly) {
  const TempDir dir;
  const std::string path = dir.path() + "/dump.json";
  auto file = GrowingJsonFile::Create(path, kHead, kTail);
  ASSERT_TRUE(file.ok());
  const std::string value(1 << 20, 'x');
  for (int i = 0; i < 6; ++i) ASSERT_TRUE((*file)->Append("\n  \"" + std::to_string(i) + "\": \"" + value + "\"").ok());
  EXPECT_EQ(DumpFile::Open(path)->ops().size(), 4u);
  file->reset();
  EXPECT_EQ(DumpFile::Open(path)->ops().size(), 6u);
}

TEST(GrowingJsonFile, AFullDiskIsToldAndEarlierEntriesStay) {
  const TempDir dir;
  // The limit on file sizes stands in for the full disk.
  const std::string path = dir.path() + "/dump.json";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    auto file = GrowingJsonFile::Create(path, kHead, kTail);
    bool good = file.ok() && (*file)->Append("\n  \"a\": {}").ok() && (*file)->Flush().ok();
    const rlimit limit{200, 200};
    good = good && setrlimit(RLIMIT_FSIZE, &limit) == 0;
    good = good && (*file)->Append("\n  \"b\": \"" + std::string(1000, 'x') + "\"").ok();
    const Status full = good ? (*file)->Flush() : OkStatus();
    _exit(good && full.code() == Code::kInternal && Contains(full.message(), path) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  const auto dump = DumpFile::Open(path);
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  EXPECT_TRUE(dump->FindOp("a"));
}

// A writer killed in the middle of its work leaves everything flushed before.
TEST(GrowingJsonFile, KilledWriterLosesNothingFlushed) {
  const TempDir dir;
  const std::string path = dir.path() + "/dump.json";
  for (const int milliseconds : {5, 20, 60}) {
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(pipes[0]);
      auto file = GrowingJsonFile::Create(path, kHead, kTail);
      if (!file.ok()) _exit(1);
      for (int32_t i = 0;; ++i) {
        const std::string name = std::to_string(i);
        if (!(*file)
                 ->Append("\n  \"op" + name + "\": {\n   \"n\": " + name + ", \"pad\": \"" + std::string(5000, '}') +
                          "\"\n  }")
                 .ok())
          _exit(1);
        if (!(*file)->Flush().ok()) _exit(1);
        if (write(pipes[1], &i, sizeof i) != sizeof i) _exit(1);
      }
    }
    close(pipes[1]);
    int32_t last = -1;
    ASSERT_EQ(read(pipes[0], &last, sizeof last), static_cast<ssize_t>(sizeof last));
    usleep(static_cast<useconds_t>(milliseconds) * 1000);
    kill(child, SIGKILL);
    while (read(pipes[0], &last, sizeof last) == static_cast<ssize_t>(sizeof last)) {
    }
    close(pipes[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const auto dump = DumpFile::Open(path);
    ASSERT_TRUE(dump.ok()) << dump.status().message();
    ASSERT_GT(dump->ops().size(), static_cast<size_t>(last));
    JsonDoc doc;
    for (int32_t i = 0; i <= last; ++i) {
      const auto at = dump->FindOp("op" + std::to_string(i));
      ASSERT_TRUE(at);
      ASSERT_TRUE(dump->ParseOp(*at, &doc).ok());
      EXPECT_EQ(doc["n"].Int32(), i);
    }
  }
}

}  // namespace
}  // namespace msprobe
