#include "certify/twice_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/message.h"
#include "json/writer.h"

namespace msprobe {
namespace {

bool Same(const RankTwice& r) { return !r.difference && r.op.empty(); }

std::string ResultText(const RankTwice& r) {
  if (!r.difference) return "every loss, gradient, parameter, buffer and random state is equal";
  return fmt::format("the first result to differ is the {} {} of step {}", r.difference->what, r.difference->name,
                     r.difference->step);
}

std::string OpText(const RankTwice& r) {
  if (r.op.empty()) return "no recorded op differs";
  const bool from_outside = r.kind == "input" || r.kind == "parameter";
  return fmt::format("{} in step {}: {}", from_outside ? "what comes from outside the recorded ops" : "the first op",
                     r.step, r.op);
}

}  // namespace

bool TwiceReport::Repeats() const { return !ranks.empty() && std::all_of(ranks.begin(), ranks.end(), Same); }

Message TwiceReport::Verdict() const {
  if (Repeats()) {
    return Msg("repeats itself: {} steps of {} processes are equal in every bit, and so is every recorded op",
               ranks.front().steps, ranks.size());
  }
  std::string out;
  bool first = true;
  for (const RankTwice& r : ranks) {
    if (Same(r)) continue;
    out += fmt::format("{}on {} {}, {}", first ? "" : "; ", r.rank, OpText(r), ResultText(r));
    first = false;
  }
  return Msg("does not repeat itself: {}", out);
}

std::string TwiceReport::Json() const {
  JsonWriter json(kJsonIndented);
  json.BeginObject();
  json.Member("kind", "twice");
  json.Member("repeats", Repeats());
  json.Member("verdict", Verdict());
  json.Member("created", created);
  json.Member("command", command);
  json.Member("msprobe", MSPROBE_VERSION);
  json.ArrayMember("ranks", ranks, [&](const RankTwice& r) {
    json.BeginObject();
    json.Member("rank", r.rank);
    json.Member("steps", r.steps);
    json.Member("step", r.step);
    json.Member("kind", r.kind);
    json.Member("op", r.op);
    json.Key("first_result");
    if (r.difference) {
      json.Object([&] {
        json.Member("step", r.difference->step);
        json.Member("what", r.difference->what);
        json.Member("name", r.difference->name);
      });
    } else {
      json.Null();
    }
    json.EndObject();
  });
  json.EndObject();
  return json.Take() + "\n";
}

std::string TwiceReport::Markdown() const {
  std::string md =
      fmt::format("# {}\n\n{}.\n\n`{}`\n\n| process | steps | first op that differs | results |\n|---|---|---|---|\n",
                  Repeats() ? "Repeats itself" : "Does not repeat itself", Verdict(), command);
  for (const RankTwice& r : ranks) {
    md += fmt::format("| {} | {} | {} | {} |\n", r.rank, r.steps, OpText(r), ResultText(r));
  }
  return md;
}

}  // namespace msprobe
