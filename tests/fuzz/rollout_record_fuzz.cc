// Records of rollouts, as lines, as one text and as a file of torch.save(), up to what the stages say of them.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rollout/records/read_records.h"
#include "rollout/stages/judge_stages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* path : {"a.jsonl", "a.json", "a.pt"}) {
    SideEvidence train, rollout;
    size_t numbers = size_t{1} << 16;
    if (!ReadRecordText(text, path, RolloutSide::kTrain, &numbers, &train.records.emplace()).ok()) continue;
    // Half of the requests again, as the engine's, so that both sides are compared.
    rollout.records = train.records;
    rollout.records->requests.resize(rollout.records->requests.size() / 2);
    const RequestPairs pairs = PairRequests(train.records, rollout.records);
    (void)TokenStage(train, rollout, pairs);
    (void)SamplingStage(pairs);
    (void)RoutingStage(pairs);
    (void)RoundOffStage({}, GapsOf(pairs), {});
  }
  return 0;
}
