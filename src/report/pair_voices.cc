#include "report/pair_voices.h"

#include <utility>

namespace msprobe {

void PairVoices::Progress(size_t pair, double share) {
  if (!settings_.progress) return;
  std::lock_guard lock(mutex_);
  if (pair == running_) settings_.progress(pairs_[pair].label, share);
}

void PairVoices::Early(size_t pair, std::string difference) {
  std::lock_guard lock(mutex_);
  voices_[pair].said = true;
  voices_[pair].waiting = std::move(difference);
  Pass();
}

void PairVoices::Glance(size_t pair, const std::string& line) {
  std::lock_guard lock(mutex_);
  settings_.glance(pairs_[pair].label, line);
}

void PairVoices::Ended(size_t pair) {
  std::lock_guard lock(mutex_);
  voices_[pair].ended = true;
  while (running_ < voices_.size() && voices_[running_].ended) ++running_;
  Pass();
}

void PairVoices::Pass() {
  for (; silent_ < voices_.size(); ++silent_) {
    Voice& voice = voices_[silent_];
    if (!voice.said && !voice.ended) return;
    if (voice.said) settings_.early(pairs_[silent_].label, voice.waiting);
    voice.waiting = {};
  }
}

}  // namespace msprobe
