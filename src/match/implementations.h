// Whether two runs of one framework are of two programs for one model: Megatron's GPT and that of transformers.
#pragma once

#include "dump/reader.h"
#include "match/structure.h"

namespace msprobe {

/// How two runs are akin, where they are not of one program.
struct Kinship {
  bool cross = false;            // of two frameworks, or of two implementations in one: names alone say little
  bool implementations = false;  // the latter
};

/// Their models are built of other classes, but for the layers of the framework, and of their modules hardly one has
/// the name of the other run's. Without a layer mapping (`mapped`) most of their layers with parameters must have a
/// partner, too: two models that have nothing in common are no such pair. False for dumps without modules and of two
/// frameworks.
bool AreImplementations(const DumpFile& target, const DumpFile& golden, bool mapped);

/// kCommon for dumps of different frameworks, kImplementations for such a pair.
Vocabulary VocabularyOf(const DumpFile& target, const DumpFile& golden, bool mapped);

/// Whether an inference engine wrote it, which stands against no trainer op by op: rows of its batches are kept with
/// it, or it has the module that such engines compute logits by.
bool IsEngineDump(const DumpFile& dump);

}  // namespace msprobe
