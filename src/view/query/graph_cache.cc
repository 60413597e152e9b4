#include "view/query/graph_cache.h"

#include <algorithm>
#include <utility>

#include "view/file/load_graph.h"
#include "view/query/graph_memo.h"
#include "view/query/recompare.h"

namespace msprobe::view {
namespace {
constexpr size_t kMaxOpenFiles = 64;
constexpr size_t kMaxGraphs = 256;
}  // namespace

StatusOr<std::shared_ptr<const VisFile>> GraphCache::File(const std::string& real, const FileStamp& stamp,
                                                          std::string_view shown) {
  std::lock_guard lock(mutex_);
  const auto known = std::find_if(files_.begin(), files_.end(), [&](const OpenFile& f) { return f.real == real; });
  if (known != files_.end() && known->stamp == stamp) {
    files_.splice(files_.begin(), files_, known);
    return files_.front().file;
  }
  if (known != files_.end()) {
    graphs_.remove_if([&](const auto& slot) { return known->file.ok() && slot->file == *known->file; });
    files_.erase(known);
  }
  auto opened = VisFile::Open(real, shown);
  // Only what is wrong with the content is kept; a machine out of descriptors may recover.
  if (!opened.ok() && opened.status().code() != Code::kBadInput) return opened.status();
  auto file = opened.ok() ? StatusOr<std::shared_ptr<const VisFile>>(std::shared_ptr<const VisFile>(*std::move(opened)))
                          : StatusOr<std::shared_ptr<const VisFile>>(opened.status());
  files_.push_front({real, stamp, std::move(file)});
  while (files_.size() > kMaxOpenFiles) files_.pop_back();
  return files_.front().file;
}

std::shared_ptr<GraphCache::Slot> GraphCache::FindSlot(const std::shared_ptr<const VisFile>& file, int64_t step,
                                                       int64_t rank, const std::shared_ptr<const MatchEdits>& edits) {
  std::lock_guard lock(mutex_);
  const auto same_graph = [&](const auto& s) { return s->file == file && s->step == step && s->rank == rank; };
  const auto known = std::find_if(graphs_.begin(), graphs_.end(), [&](const auto& s) {
    return same_graph(s) && (s->edits == edits || (s->edits && edits && *s->edits == *edits));
  });
  if (known != graphs_.end()) {
    graphs_.splice(graphs_.begin(), graphs_, known);
    return graphs_.front();
  }
  // Of a graph that was edited before, only the one as it is in the file is of further use.
  if (edits) graphs_.remove_if([&](const auto& s) { return same_graph(s) && s->edits != nullptr; });
  graphs_.push_front(std::make_shared<Slot>());
  graphs_.front()->file = file;
  graphs_.front()->step = step;
  graphs_.front()->rank = rank;
  graphs_.front()->edits = edits;
  return graphs_.front();
}

StatusOr<GraphSides> GraphCache::Make(const Slot& slot) {
  if (!slot.edits) {
    MSP_ASSIGN_OR_RETURN(GraphSides graph, LoadGraph(*slot.file, slot.step, slot.rank));
    graph.memo = std::make_shared<GraphMemo>();
    return graph;
  }
  MSP_ASSIGN_OR_RETURN(const auto base, Graph(slot.file, slot.step, slot.rank));
  GraphSides graph = *base;
  graph.memo = std::make_shared<GraphMemo>();
  MSP_RETURN_IF_ERROR(ApplyEdits(*slot.file, slot.edits, meter_, &graph));
  return graph;
}

StatusOr<std::shared_ptr<const GraphSides>> GraphCache::Graph(const std::shared_ptr<const VisFile>& file, int64_t step,
                                                              int64_t rank,
                                                              const std::shared_ptr<const MatchEdits>& edits) {
  const std::shared_ptr<Slot> slot = FindSlot(file, step, rank, edits);
  std::shared_ptr<const GraphSides> graph;
  Status failure;
  bool loaded = false;
  {
    std::lock_guard lock(slot->loading);
    if (slot->graph == nullptr) {
      auto made = Make(*slot);
      if (made.ok()) {
        loaded = true;
        slot->graph = std::make_shared<const GraphSides>(*std::move(made));
      } else {
        failure = made.status();
      }
    }
    graph = slot->graph;
  }
  if (loaded) {
    std::lock_guard lock(mutex_);
    Trim();
  } else if (!failure.ok()) {
    std::lock_guard lock(mutex_);
    graphs_.remove(slot);
    return failure;
  }
  return graph;
}

void GraphCache::Trim() {
  size_t bytes = 0, kept = 0;
  for (auto it = graphs_.begin(); it != graphs_.end();) {
    // A slot that is being loaded has no size yet; it is counted when its own load ends.
    std::unique_lock lock((*it)->loading, std::try_to_lock);
    const size_t own = lock.owns_lock() && (*it)->graph != nullptr ? (*it)->graph->bytes() : 0;
    const bool drop = own != 0 && kept > 0 && (bytes + own > max_bytes_ || kept >= kMaxGraphs);
    if (lock.owns_lock()) lock.unlock();
    if (drop) {
      it = graphs_.erase(it);
      continue;
    }
    bytes += own;
    kept += own != 0;
    ++it;
  }
}

}  // namespace msprobe::view
