#include "diagnose/story/story.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "diagnose/divergence.h"
#include "diagnose/overflow/overflow.h"
#include "diagnose/story/divergence_json.h"
#include "diagnose/story/exchanged.h"
#include "json/parser.h"
#include "json/writer.h"

namespace msprobe {
namespace {

Divergence OfWeight() {
  Divergence d;
  d.step = 3;
  d.found = true;
  d.creator.rank = 2;
  d.creator.ranks = {1, 2};
  FirstDifference& f = d.creator.difference;
  f.kind = FirstDifference::Kind::kParameter;
  f.name = "Functional.linear.7.forward";
  f.module = "Module.layers.1.mlp.Linear.forward.0";
  f.frame = "model.py:93";
  f.function = "forward";
  f.item = ".input.1";
  f.parameter = "weight";
  f.difference = {"Norm", "12.650000000000001", "10.12", 25};
  f.units = 21000;
  d.handovers.push_back({0, {2}, "Distributed.all_reduce.36.forward"});
  d.infected_ops = 5;
  d.infected_forward = 3;
  d.infected_backward = 2;
  d.infected_modules.emplace_back("layers.1.mlp", 5);
  return d;
}

Story Told(const Divergence& d) {
  RulerCounts ops;
  ops.bit_equal = 10;
  ops.bug = 1;
  return StoryOf(d, ops, 0, 0);
}

TEST(Story, NamesThePlaceTheValuesAndTheWay) {
  EXPECT_EQ(
      StoryText(Told(OfWeight()), Language::kEnglish),
      "Origin: layers.1.mlp.weight differs by 25 % (Norm 12.65, golden 10.12) before it is used (ranks 2, 1, step 3)\n"
      "  op: Functional.linear.7.forward at model.py:93 in forward\n"
      "  value: input.1 differs by 21,000 times what rounding explains\n"
      "  spread: reaches rank 0 through Distributed.all_reduce.36.forward from rank 2\n"
      "  inherited: 5 ops only pass it on (3 forward, 2 backward); first in layers.1.mlp (5)\n"
      "  next: compare the checkpoints, the initialisation and the optimizer steps before it\n");
  EXPECT_EQ(StoryHeadline(Told(OfWeight()), Language::kChinese),
            "误差源头：layers.1.mlp.weight 在使用前就已相差 25 %（Norm 为 12.65，标杆为 10.12）（rank 2, 1，step 3）");
}

TEST(Story, ManyRanksStandOnOneLine) {
  Divergence d = OfWeight();
  d.creator.ranks = {2, 9, 10, 11, 12, 20};
  d.handovers.clear();
  for (const int rank : {3, 4, 5, 6, 8}) d.handovers.push_back({rank, {2}, "Distributed.all_reduce.4.forward"});
  d.handovers.push_back({0, {3}, "Distributed.all_reduce.9.forward"});
  d.infected_ops = d.infected_forward = 1;
  d.infected_backward = 0;
  const std::vector<std::string> lines = StoryLines(Told(d), Language::kEnglish);
  EXPECT_TRUE(lines[0].ends_with(" (ranks 2, 9-12, 20, step 3)")) << lines[0];
  EXPECT_EQ(lines[3], "spread: reaches ranks 3-6, 8 through Distributed.all_reduce.4.forward from rank 2");
  EXPECT_EQ(lines[4], "spread: reaches rank 0 through Distributed.all_reduce.9.forward from rank 3");
  EXPECT_TRUE(lines[5].starts_with("inherited: 1 op only passes it on (1 forward, 0 backward)")) << lines[5];
}

/// Autograd adds them up: no op has made them.
TEST(Story, AGradientIsNoResultOfAnOp) {
  Divergence d = OfWeight();
  FirstDifference& f = d.creator.difference;
  f.kind = FirstDifference::Kind::kOp;
  f.name = "Module.embed.Embedding.parameters_grad.0";
  f.module = f.parameter = "";
  f.item = ".weight";
  const std::string text = StoryText(Told(d), Language::kEnglish);
  EXPECT_NE(text.find("Origin: embed: the gradient of its weight differs by 25 % (Norm 12.65, golden 10.12), what "
                      "leads to it agrees ("),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("--repro"), std::string::npos);
}

/// A part of nn.Sequential has a number for a name, which alone would say nothing.
TEST(Story, SaysThatANumberIsAModule) {
  Divergence d = OfWeight();
  d.creator.difference.module = "Module.0.Linear.forward.0";
  d.infected_modules = {{"1 (backward)", 5}};
  const std::string text = StoryText(Told(d), Language::kEnglish);
  EXPECT_TRUE(text.starts_with("Origin: weight of module 0 (Linear) differs by 25 % (")) << text;
  EXPECT_NE(text.find("; first in module 1 (backward) ("), std::string::npos) << text;
  EXPECT_EQ(
      StoryHeadline(Told(d), Language::kChinese),
      "误差源头：模块 0（Linear）的 weight 在使用前就已相差 25 %（Norm 为 12.65，标杆为 10.12）（rank 2, 1，step 3）");
  d.creator.difference.module = "Module.net.0.Linear.forward.0";
  EXPECT_NE(StoryText(Told(d), Language::kEnglish).find("Origin: net.0.weight differs"), std::string::npos);
}

/// What is known of the place beyond its name, and what was recorded of one run only or not at all.
TEST(Story, TellsWhatIsBesideTheOrigin) {
  Divergence d = OfWeight();
  FirstDifference& f = d.creator.difference;
  f.verdict = RulerVerdict::kBug;
  f.recomputed = true;
  f.owner = "layers.1.mlp.weight";
  Story story = Told(d);
  story.target_modules = {"layers.1.adapter"};
  story.unrecorded = 2;
  story.first_unrecorded = "layers.0.kernel";
  const std::string text = StoryText(story, Language::kEnglish);
  for (const char* wanted : {"Origin: weight of layers.1.mlp (recomputation) differs",
                             "\n  parameter: layers.1.mlp.weight\n", "\n  verdict: bug: more than rounding can give\n",
                             "\n  modules: with parameters, only in the target: layers.1.adapter\n",
                             "\n  not recorded: anything inside of layers.0.kernel (2 modules in all)"}) {
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted << "\n" << text;
  }
  d.found = false;
  story = Told(d);
  story.golden_modules = {"head"};
  EXPECT_NE(StoryText(story, Language::kEnglish).find("with parameters, only in the golden run: head"),
            std::string::npos)
      << "also where nothing differs";
}

/// Rounding says nothing of what has no size.
TEST(Story, OnlyFiguresAreMeasuredAgainstRounding) {
  for (const char* what : {"checksum", "dtype", "shape", "value"}) {
    Divergence d = OfWeight();
    d.creator.difference.difference = {what, "b6901bcc", "bdddc382", -1};
    d.creator.difference.units = std::numeric_limits<double>::infinity();
    const std::string text = StoryText(Told(d), Language::kEnglish);
    const std::string wanted = what == std::string("checksum")
                                   ? "value: input.1 checksum b6901bcc, golden bdddc382\n"
                                   : fmt::format("differs ({} b6901bcc, golden bdddc382)", what);
    EXPECT_NE(text.find(wanted), std::string::npos) << text;
    EXPECT_EQ(text.find("rounding"), std::string::npos) << text;
  }
}

TEST(Story, SaysThatThereIsNothingOnlyWhenItKnows) {
  RulerCounts ops;
  EXPECT_TRUE(
      StoryHeadline(StoryOf(Divergence(), ops, 4, 0), Language::kEnglish).starts_with("Unknown: no op has a partner"));
  ops.bit_equal = 7;
  EXPECT_EQ(StoryHeadline(StoryOf(Divergence(), ops, 0, 0), Language::kEnglish),
            "No difference: all 7 compared ops are bit-equal");
  EXPECT_EQ(StoryHeadline(StoryOf(Divergence(), ops, 1, 2), Language::kEnglish),
            "No difference: all 7 compared ops are bit-equal; 1 ops only in the target, 2 only in the golden run");
  ops.round_off = 2;
  EXPECT_EQ(StoryOf(Divergence(), ops, 0, 0).outcome, Story::Outcome::kRoundOff);
  ops.suspicious = 1;
  const Story odd = StoryOf(Divergence(), ops, 0, 0);
  EXPECT_EQ(odd.outcome, Story::Outcome::kUnknown);
  EXPECT_TRUE(StoryHeadline(odd, Language::kEnglish).starts_with("Origin unknown: 1 suspicious ops"));
}

/// What adds up has a place where it shows, and no op that made it.
TEST(Story, WhatAddsUpHasNoKnownOrigin) {
  Story story = Told(OfWeight());
  story.origins[0].cause = Cause::kGrows;
  story.origins[0].parameter.clear();
  EXPECT_TRUE(StoryHeadline(story, Language::kEnglish).starts_with("Origin: ")) << "float32 adds up to little";
  story.origins[0].coarse = true;
  EXPECT_TRUE(StoryHeadline(story, Language::kEnglish).starts_with("Origin unknown: "));
  EXPECT_TRUE(StoryHeadline(story, Language::kChinese).starts_with("源头未知："));
  EXPECT_NE(StoryJson(story).find(R"("outcome": "unknown")"), std::string::npos) << StoryJson(story);
}

/// Every cause gives a sentence in both languages, without a place for an argument left over.
TEST(Story, EveryCauseHasItsWords) {
  for (int cause = 0; cause <= static_cast<int>(Cause::kMask); ++cause) {
    for (const bool overflow : {false, true}) {
      Story story = Told(OfWeight());
      story.origins[0].cause = static_cast<Cause>(cause);
      story.origins[0].overflow = overflow;
      if (overflow) story.origins[0].what.clear();
      EXPECT_FALSE(CauseName(story.origins[0].cause).empty());
      const auto english = StoryLines(story, Language::kEnglish), chinese = StoryLines(story, Language::kChinese);
      EXPECT_EQ(english.size(), chinese.size()) << cause;
      for (const std::string& line : english) {
        EXPECT_EQ(line.find('{'), std::string::npos) << line;
        for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << line;
      }
      EXPECT_NE(chinese[0].find("源头"), std::string::npos);
    }
  }
}

/// The short words of a cause are those of every surface: first_divergence.json, the terminal, the page.
TEST(Story, EveryCauseHasShortWords) {
  for (int cause = 0; cause <= static_cast<int>(Cause::kMask); ++cause) {
    const std::string english = CauseText(static_cast<Cause>(cause), Language::kEnglish);
    EXPECT_FALSE(english.empty()) << cause;
    EXPECT_EQ(english.find('{'), std::string::npos) << english;
    EXPECT_NE(CauseText(static_cast<Cause>(cause), Language::kChinese), english);
  }
}

std::string DivergenceText(const Divergence& d) {
  JsonWriter json;
  json.Object([&] { DivergenceMembers(&json, d); });
  return json.Take();
}

TEST(Story, TheFileForProgramsSaysTheSameOfTheCause) {
  EXPECT_NE(DivergenceText(Divergence()).find("\"creator\": null"), std::string::npos);
  JsonDoc doc;
  const std::string text = DivergenceText(OfWeight());
  ASSERT_TRUE(ParseJson(text, "", &doc).ok()) << text;
  EXPECT_EQ(doc.Find("creator")->Find("kind")->Text(), "parameter");
  EXPECT_EQ(doc.Find("creator")->Find("explanation")->Text(), CauseText(Cause::kWeight, Language::kEnglish));
  Divergence call = OfWeight();
  call.creator.collective = true;
  ASSERT_TRUE(ParseJson(DivergenceText(call), "", &doc).ok());
  EXPECT_EQ(doc.Find("creator")->Find("explanation")->Text(), CauseText(Cause::kCollective, Language::kEnglish));
}

TEST(Story, JsonHasTheSameWords) {
  Story story = Told(OfWeight());
  story.origins[0].units = std::numeric_limits<double>::infinity();
  JsonDoc doc;
  const std::string text = StoryJson(story);
  ASSERT_TRUE(ParseJson(text, "", &doc, 0, {.strict = true}).ok()) << text;
  EXPECT_EQ(doc.Find("outcome")->Text(), "origin");
  const JsonValue& origin = (*doc.Find("origins"))[0];
  EXPECT_EQ(origin.Find("cause")->Text(), "weight");
  EXPECT_EQ(origin.Find("units")->Text(), "inf");
  EXPECT_EQ((*origin.Find("ranks"))[0].Int(), 2);
  const JsonValue& lines = *doc.Find("text")->Find("en");
  const std::vector<std::string> said = StoryLines(story, Language::kEnglish);
  ASSERT_EQ(lines.Items().size(), said.size());
  for (size_t i = 0; i < said.size(); ++i) EXPECT_EQ(lines[i].Text(), said[i]);
}

OverflowReport BadWeight() {
  OverflowReport report;
  report.step = "step3";
  report.steps = report.ranks = 1;
  OverflowFinding f;
  f.kind = OverflowSource::Kind::kParameter;
  f.ops.push_back({2, "Module.layers.1.mlp.Linear.forward.0", "", "model.py:93", "forward"});
  f.item = ".parameters.weight";
  f.item_text = "float32 [2, 2], max inf";
  f.reached.push_back({3, "Distributed.all_reduce.4.forward", "", "", ""});
  f.carriers = 8;
  report.first.push_back(f);
  return report;
}

TEST(Story, OfOneRun) {
  const Story story = StoryOf(BadWeight());
  EXPECT_EQ(StoryHeadline(story, Language::kEnglish),
            "Origin: layers.1.mlp.weight holds NaN or infinities (rank 2, step 3)");
  EXPECT_EQ(story.inherited, 8u);
  ASSERT_EQ(story.reached.size(), 1u);
  // Rank 2 need not be in the group of that call.
  EXPECT_NE(StoryText(story, Language::kEnglish).find("reaches rank 3 through Distributed.all_reduce.4.forward\n"),
            std::string::npos);
  // Where a function in the module takes it in, it is named as a comparison names it.
  OverflowReport used = BadWeight();
  used.first[0].use = {2, "Functional.linear.7.forward", "Module.layers.1.mlp.Linear.forward.0", "model.py:61", "run"};
  used.first[0].use_item = ".input.1";
  EXPECT_EQ(StoryHeadline(StoryOf(used), Language::kEnglish), StoryHeadline(story, Language::kEnglish));
  EXPECT_NE(StoryText(StoryOf(used), Language::kEnglish)
                .find("op: Functional.linear.7.forward at model.py:61 in run\n  value: input.1 float32"),
            std::string::npos);
  OverflowReport clean;
  clean.steps = 2;
  clean.ranks = 4;
  EXPECT_EQ(StoryHeadline(StoryOf(clean), Language::kEnglish),
            "No NaN or infinity begins here: 4 ranks of 2 steps were looked at");
}

/// An argument that makes NaN is itself finite.
TEST(Story, TheWordsOfTheComparisonStayWhereOverflowBeginsThere) {
  Divergence d = OfWeight();
  FirstDifference& f = d.creator.difference;
  f.kind = FirstDifference::Kind::kArgument;
  f.name = "Distributed.all_reduce.0.forward";
  f.item = ".input.op";
  f.difference = {"value", "RedOpType.SUM", "RedOpType.MAX", -1};
  OverflowReport report = BadWeight();
  report.first[0].kind = OverflowSource::Kind::kCommunication;
  report.first[0].ops[0].name = f.name;
  Story story = Told(d);
  const std::string before = StoryHeadline(story, Language::kEnglish);
  EXPECT_NE(before.find("argument input.op is RedOpType.SUM, in the golden run RedOpType.MAX"), std::string::npos);
  AddOverflow(report, nullptr, &story);
  ASSERT_EQ(story.origins.size(), 1u);
  EXPECT_TRUE(story.origins[0].overflow);
  EXPECT_EQ(StoryHeadline(story, Language::kEnglish), before);
}

TEST(Story, OverflowOfTheSameWeightIsTheSameOrigin) {
  Story story = Told(OfWeight());
  AddOverflow(BadWeight(), nullptr, &story);
  ASSERT_EQ(story.origins.size(), 1u);
  EXPECT_TRUE(story.origins[0].overflow);
  EXPECT_EQ(story.reached.size(), 2u);  // what only one of the two searches saw is kept

  EXPECT_EQ(StoryHeadline(story, Language::kEnglish), StoryHeadline(Told(OfWeight()), Language::kEnglish));

  Story elsewhere = Told(OfWeight());
  OverflowReport other = BadWeight();
  other.first[0].ops[0].name = "Module.head.Linear.forward.0";
  other.first[0].ops[0].rank = 5;
  AddOverflow(other, nullptr, &elsewhere);
  EXPECT_EQ(elsewhere.origins.size(), 2u);

  // What the golden run has, too, is no fault of the target.
  Story same = StoryOf(Divergence(), RulerCounts{.bit_equal = 3}, 0, 0);
  const OverflowReport golden = BadWeight();
  AddOverflow(BadWeight(), &golden, &same);
  EXPECT_TRUE(same.origins.empty());
}

/// Two parameters that hold each other's values are one mistake; further pairs are counted.
TEST(Story, AnInputIsNamedAsItsFunctionNamesIt) {
  Divergence d = OfWeight();
  FirstDifference& f = d.creator.difference;
  f.module.clear();
  f.argument = "weight";
  f.kind = FirstDifference::Kind::kInput;
  const auto headline = [&](Language language) { return StoryHeadline(Told(d), language); };
  EXPECT_NE(headline(Language::kEnglish).find("its weight (input.1) differs by 25 %"), std::string::npos);
  f.made_by = "Functional.batch_norm.4.forward";
  EXPECT_NE(
      headline(Language::kEnglish).find(": Functional.batch_norm.4.forward made it, in the golden run no recorded op"),
      std::string::npos);
  f.golden_made_by = "Tensor.__add__.1.forward";
  EXPECT_NE(headline(Language::kEnglish)
                .find("its weight (input.1) is what Functional.batch_norm.4.forward gives, in the golden run "
                      "what Tensor.__add__.1.forward gives"),
            std::string::npos);
  f.made_by.clear();
  EXPECT_NE(
      headline(Language::kEnglish).find(": no recorded op made it, in the golden run Tensor.__add__.1.forward did"),
      std::string::npos);
  f.golden_made_by.clear();
  f.gradient = true;
  EXPECT_NE(headline(Language::kEnglish).find("its weight (input.1), a gradient, differs by 25 %"), std::string::npos);
  f.state = true;
  EXPECT_NE(
      headline(Language::kEnglish).find("its weight (input.1), which the optimizer keeps from step to step, differs"),
      std::string::npos);
  f.reordered = true;
  EXPECT_NE(headline(Language::kEnglish)
                .find("its weight (input.1) holds the same values in other places, by its statistics"),
            std::string::npos);
  EXPECT_NE(headline(Language::kChinese).find("从统计值看，weight (input.1) 的数值相同而位置不同"), std::string::npos);
  f.exchanged = ".input.2";
  EXPECT_NE(headline(Language::kEnglish).find("its weight (input.1) and input.2 are exchanged"), std::string::npos);
  f.kind = FirstDifference::Kind::kArgument;
  f.difference = {"value", "0.30000001192", "0.2", -1};
  EXPECT_NE(headline(Language::kEnglish).find("argument weight (input.1) is 0.3, in the golden run 0.2"),
            std::string::npos);
  f.difference = {"requires_grad", "False", "True", -1};
  EXPECT_NE(headline(Language::kEnglish).find("its weight (input.1) requires no gradient, in the golden run it does"),
            std::string::npos);
  EXPECT_NE(headline(Language::kChinese).find("weight (input.1) 不需要梯度，标杆侧则需要"), std::string::npos);
}

TEST(Story, ExchangedParametersAreOneOrigin) {
  Divergence d = OfWeight();
  d.handovers.clear();
  const auto weight = [&](const std::string& module, const std::string& op, const std::string& target,
                          const std::string& golden) {
    Origin out = OfWeight().creator;
    out.difference.module = "Module." + module + ".Linear.forward.0";
    out.difference.name = op;
    out.difference.difference = {"Norm", target, golden, 1};
    return out;
  };
  const auto older = [](const std::string& source) {
    Anatomy out;
    out.kind = AnatomyKind::kStale;
    out.source = source;
    return out;
  };
  d.creator = weight("a.gate", "Functional.linear.4.forward", "1.5", "1.25");
  d.others = {weight("a.up", "Functional.linear.5.forward", "1.25", "1.5"),
              weight("b.gate", "Functional.linear.8.forward", "1.75", "1.125"),
              weight("b.up", "Functional.linear.9.forward", "1.125", "1.75"),
              weight("c.up", "Functional.linear.10.forward", "2", "3")};
  Story story = Told(d);
  JoinExchanged(&story.origins);
  EXPECT_EQ(story.origins.size(), 5u) << "one figure alone proves nothing";
  d.creator.anatomy = older("Functional.linear.5.forward");
  story = Told(d);
  JoinExchanged(&story.origins);
  ASSERT_EQ(story.origins.size(), 2u);
  EXPECT_EQ(story.origins[0].exchanged, "a.up.weight");
  EXPECT_EQ(story.origins[0].exchanges, 1u);
  EXPECT_EQ(story.origins[1].module, "c.up");
  const std::string text = StoryText(story, Language::kEnglish);
  EXPECT_TRUE(text.starts_with("Origin: a.gate.weight and a.up.weight are exchanged before they are used (ranks 2, 1"))
      << text;
  EXPECT_NE(text.find("also: 1 more pair of parameters is exchanged\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace msprobe
