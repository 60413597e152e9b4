#include "compare/pair/dump_pair.h"

#include <utility>

#include "base/message.h"
#include "base/parallel.h"
#include "base/text.h"
#include "compare/pair/module_tree.h"
#include "compare/pair/unseen.h"

namespace msprobe {
namespace {

Status CheckTasks(const DumpFile& target, const DumpFile& golden) {
  const std::string task(target.task());
  if (task != golden.task()) {
    return BadInput(
        Msg("{} was dumped with task \"{}\" but {} with \"{}\": dump both runs with the same task, or compare their "
            "models with --structure",
            target.path(), task, golden.path(), golden.task()));
  }
  if (task == "structure") {
    return BadInput(
        Msg("{} has task \"structure\" and holds no values: what this option asks for needs task \"statistics\" or "
            "\"tensor\"",
            target.path()));
  }
  if (task != "statistics" && task != "tensor") {
    return BadInput(
        Msg("{} has task \"{}\": compare needs dumps with task \"statistics\" or \"tensor\"", target.path(), task));
  }
  return OkStatus();
}

StatusOr<CompareMode> ModeOf(const DumpFile& target, const DumpFile& golden) {
  if (target.task() == "tensor") return CompareMode::kTensor;
  MSP_ASSIGN_OR_RETURN(const Checksums a, target.FindChecksums());
  MSP_ASSIGN_OR_RETURN(const Checksums b, golden.FindChecksums());
  if (OneSided(a, b)) {
    const bool in_target = a == Checksums::kPresent;
    return BadInput(Msg("{} holds checksums and {} does not: dump both runs with the same summary_mode",
                        (in_target ? target : golden).path(), (in_target ? golden : target).path()));
  }
  // A dump without tensors is of either kind.
  return a == Checksums::kPresent || b == Checksums::kPresent ? CompareMode::kChecksum : CompareMode::kStatistics;
}

/// Modules (L0) and APIs (L1) have no names in common; mix has both.
Status CheckLevels(const DumpPair& pair) {
  const DumpFile &a = *pair.target, &b = *pair.golden;
  if (pair.plan.matched > 0 || a.level() == b.level() || a.ops().empty() || b.ops().empty()) return OkStatus();
  return BadInput(
      Msg("{} is of level \"{}\" and {} of level \"{}\", no op is in both: dump both runs with the same level",
          a.path(), a.level(), b.path(), b.level()));
}

Status CheckNotEmpty(const DumpFile& dump) {
  // Of a run that was cut before its first ops all is unseen.
  if (!dump.ops().empty() || !dump.wholeness().whole()) return OkStatus();
  return BadInput(Msg(
      "{} holds no ops: check that the run reached debugger.stop() and that the filters let ops through", dump.path()));
}

Status OpenStacks(const FilePair& files, DumpPair* pair) {
  const std::string path = files.stack.empty() ? JoinPath(DirName(files.target), "stack.json") : files.stack;
  if (files.stack.empty() && !IsRegularFile(path)) return OkStatus();
  MSP_ASSIGN_OR_RETURN(StackFile stacks, StackFile::Open(path));
  if (!stacks.truncated().empty()) pair->warnings.push_back(stacks.truncated());
  pair->stacks.emplace(std::move(stacks));
  return OkStatus();
}

}  // namespace

void NoteGaps(DumpPair* pair) {
  NoteGap(DumpSide::kTarget, *pair->target, &pair->gaps);
  NoteGap(DumpSide::kGolden, *pair->golden, &pair->gaps);
}

StatusOr<DumpPair> OpenPairFiles(const FilePair& files) {
  DumpPair pair;
  const auto open = [&](size_t i) -> Status {
    if (i == 2) return OpenStacks(files, &pair);
    MSP_ASSIGN_OR_RETURN(DumpFile dump, DumpFile::Open(i == 0 ? files.target : files.golden));
    (i == 0 ? pair.target : pair.golden) = std::make_unique<DumpFile>(std::move(dump));
    return OkStatus();
  };
  MSP_RETURN_IF_ERROR(ParallelFor(3, open));
  pair.trees = std::make_shared<PairTrees>(*pair.target, *pair.golden);
  const bool debug = pair.target->level() == "debug";
  if (debug != (pair.golden->level() == "debug")) {
    return BadInput(
        Msg("{} and {} differ in level (debug and not debug): compare dumps of one kind", files.target, files.golden));
  }
  for (const DumpFile* dump : {pair.target.get(), pair.golden.get()}) {
    if (!dump->truncated().empty()) pair.warnings.push_back(dump->truncated());
  }
  NoteGaps(&pair);
  return pair;
}

bool BothAreStructures(const DumpPair& pair) {
  return pair.target->task() == "structure" && pair.golden->task() == "structure";
}

Status MatchDumpPair(const FilePair& files, const Mapping& mapping, CustomMetrics* custom, DumpPair* pair,
                     const Postprocess* postprocess) {
  MSP_RETURN_IF_ERROR(CheckTasks(*pair->target, *pair->golden));
  MSP_RETURN_IF_ERROR(CheckNotEmpty(*pair->target));
  MSP_RETURN_IF_ERROR(CheckNotEmpty(*pair->golden));
  MSP_ASSIGN_OR_RETURN(pair->options.mode, ModeOf(*pair->target, *pair->golden));
  if (pair->options.mode == CompareMode::kTensor) {
    pair->tensors = std::make_unique<TensorPairs>(files.target, files.golden, custom, postprocess);
    pair->options.tensors = pair->tensors.get();
  }
  // Indexing read both files once; the comparison goes through them again from the start, so their pages can go
  // meanwhile.
  for (const DumpFile* dump : {pair->target.get(), pair->golden.get()})
    dump->file().Release(0, dump->file().text().size());
  MSP_ASSIGN_OR_RETURN(pair->plan, MatchDumps(*pair->target, *pair->golden, mapping));
  LeaveOutUnseen(pair->gaps, *pair->target, *pair->golden, &pair->plan);
  pair->warnings.insert(pair->warnings.end(), pair->plan.warnings.begin(), pair->plan.warnings.end());
  pair->options.cross = pair->plan.cross;
  pair->options.implementations = pair->plan.implementations;
  if (pair->tensors && pair->plan.cross) pair->tensors->CrossFrameworks(pair->plan.implementations);
  pair->options.fused = pair->plan.fused.has_value();
  pair->options.join_targets = pair->options.fused && pair->plan.fused->join_targets;
  pair->options.check_dtype = !mapping.data && !mapping.layer && !pair->options.fused;
  MSP_RETURN_IF_ERROR(CheckLevels(*pair));
  return OkStatus();
}

StatusOr<DumpPair> OpenDumpPair(const FilePair& files, const Mapping& mapping, CustomMetrics* custom) {
  MSP_ASSIGN_OR_RETURN(DumpPair pair, OpenPairFiles(files));
  MSP_RETURN_IF_ERROR(MatchDumpPair(files, mapping, custom, &pair));
  return pair;
}

}  // namespace msprobe
