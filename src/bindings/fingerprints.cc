#include "bindings/fingerprints.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "bindings/python/raise.h"
#include "weights/fingerprint/fingerprint_file.h"
#include "weights/fingerprint/fingerprint_maker.h"
#include "weights/fingerprint/print_report.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

using Facts = std::map<std::string, int64_t>;
using Sizes = std::vector<int64_t>;

ModelFacts FactsFrom(const Facts& given) {
  ModelFacts out;
  const auto number = [&](const char* key, int64_t* to) {
    const auto found = given.find(key);
    if (found != given.end() && found->second > 0) *to = found->second;
  };
  const auto truth = [&](const char* key, std::optional<bool>* to) {
    const auto found = given.find(key);
    if (found != given.end()) *to = found->second != 0;
  };
  number("heads", &out.heads);
  number("groups", &out.groups);
  number("head_dim", &out.head_dim);
  number("hidden", &out.hidden);
  number("ffn", &out.ffn);
  number("vocab", &out.vocab);
  number("experts", &out.experts);
  truth("gated", &out.gated);
  truth("zero_centred", &out.zero_centred);
  truth("tied", &out.tied);
  return out;
}

FingerprintMaker* NewMaker(const std::string& name, const std::string& kind, const Facts& numbers, const Facts& facts) {
  Fingerprint head;
  head.name = name;
  head.kind = kind;
  head.step = numbers.at("step");
  head.rank = numbers.at("rank");
  head.world = numbers.at("world");
  head.facts = FactsFrom(facts);
  return new FingerprintMaker(std::move(head));
}

ShardCut CutFrom(const std::string& cut) {
  return cut == "rows"      ? ShardCut::kRows
         : cut == "columns" ? ShardCut::kColumns
         : cut == "name"    ? ShardCut::kByName
                            : ShardCut::kNone;
}

size_t AddShard(FingerprintMaker* maker, const std::string& name, const std::string& dtype, const std::string& stored,
                const Sizes& shape, const Sizes& whole, const Sizes& begin, const std::string& cut,
                const Facts& numbers) {
  const auto number = [&](const char* key, int64_t otherwise) {
    const auto found = numbers.find(key);
    return found == numbers.end() ? otherwise : found->second;
  };
  WeightShard shard;
  shard.name = name;
  shard.dtype = ParseDType(dtype);
  shard.stored = stored.empty() ? DType::kUnknown : ParseDType(stored);
  shard.shape = shape;
  shard.whole = whole;
  shard.begin = begin;
  shard.cut = CutFrom(cut);
  shard.flat_begin = number("flat_begin", -1);
  shard.shard = number("shard", 0);
  shard.shards = number("shards", 1);
  shard.kv_shard = number("kv_shard", shard.shard);
  shard.kv_shards = number("kv_shards", shard.shards);
  shard.first_expert = number("first_expert", 0);
  shard.buffer = number("buffer", 0) != 0;
  const bool fits = shard.shard >= 0 && shard.shard < shard.shards && shard.kv_shard >= 0 &&
                    shard.kv_shard < shard.kv_shards && shard.first_expert >= 0;
  int64_t count = 0;
  if (!fits || !CountElements(shape, &count) || !CountElements(whole, &count))
    throw nb::value_error("a shard that lies outside of its weight");
  return maker->Add(std::move(shard));
}

bool HashShard(FingerprintMaker* maker, size_t index, uintptr_t address, int64_t first, const Sizes& shape,
               const Sizes& strides) {
  const nb::gil_scoped_release release;
  return maker->Hash(index, {reinterpret_cast<const void*>(address), first, shape, strides});
}

std::string Write(FingerprintMaker* maker, const std::string& path) {
  Status status;
  std::string text;
  {
    const nb::gil_scoped_release release;
    const Fingerprint print = maker->Take();
    text = FingerprintText(print);
    if (!path.empty()) {
      status = MakeOutputDir(std::string(DirName(path)));
      if (status.ok()) status = WriteFingerprint(print, path);
    }
  }
  Raise(status);
  return text;
}

/// Texts of both sides, one for each rank.
std::string CompareTexts(const std::vector<std::string>& a, const std::vector<std::string>& b,
                         const std::vector<std::string>& history) {
  Status status;
  const auto whole = [&](const std::vector<std::string>& texts, const std::string& what) {
    std::vector<Fingerprint> prints;
    for (const std::string& text : texts) {
      auto print = ParseFingerprint(text, what);
      if (print.ok()) {
        prints.push_back(std::move(*print));
      } else if (status.ok()) {
        status = print.status();
      }
    }
    const std::string name = prints.empty() || prints[0].name.empty() ? what : prints[0].name;
    return WholeOf(name, std::move(prints));
  };
  std::string out;
  {
    const nb::gil_scoped_release release;
    WholeModel whole_a = whole(a, "A"), whole_b = whole(b, "B");
    std::vector<WholeModel> earlier;
    for (auto text = history.rbegin(); text != history.rend(); ++text) earlier.push_back(whole({*text}, "history"));
    if (status.ok()) out = PrintsJson(whole_a, whole_b, ComparePrints(&whole_a, &whole_b, earlier));
  }
  Raise(status);
  return out;
}

}  // namespace

void BindFingerprints(nb::module_& m) {
  nb::class_<FingerprintMaker>(m, "FingerprintMaker",
                               "Hashes of weights: all shards are added before the first is read.")
      .def(nb::new_(&NewMaker), nb::arg("name"), nb::arg("kind"), nb::arg("numbers"), nb::arg("facts"))
      .def("add", &AddShard, nb::arg("name"), nb::arg("dtype"), nb::arg("stored"), nb::arg("shape"), nb::arg("whole"),
           nb::arg("begin"), nb::arg("cut"), nb::arg("numbers"), "What this process holds of a weight; its number.")
      .def("hash", &HashShard, nb::arg("index"), nb::arg("address"), nb::arg("first"), nb::arg("shape"),
           nb::arg("strides"), "Reads rows of a shard from `first` on; False: they do not lie in it.")
      .def("same", &FingerprintMaker::Same, nb::arg("index"), nb::arg("other"), "Two names of one memory.")
      .def(
          "without", [](FingerprintMaker* maker, size_t index) { maker->Without(index, NoPrint::kNoValues); },
          nb::arg("index"), "The values are not there.")
      .def("write", &Write, nb::arg("path"), "Writes the file, unless the path is empty; its text.");
  m.def("compare_fingerprints", &CompareTexts, nb::arg("a"), nb::arg("b"), nb::arg("history"),
        "The comparison of two fingerprints as JSON.");
}

}  // namespace msprobe
