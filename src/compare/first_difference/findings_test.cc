// What is told beside and behind the first difference: modules of one run, makers of values, owners.
#include "compare/test_findings.h"

namespace msprobe {
namespace {

/// A norm in training gives the same with other running statistics: they are state all the same.
TEST_F(FindingsTest, RunningStatisticsAreStateThoughNothingInTheStepTakesThem) {
  const auto run = [](double mean) {
    std::string kept = TensorOf("8", mean / 3, mean);
    kept.insert(kept.size() - 1, R"(, "buffer": "running_mean")");
    return std::vector{Call("Functional.batch_norm.0.forward", Wide(2) + ", " + kept, Wide(1)),
                       Call("Module.bn.BatchNorm2d.forward.0", Wide(2), Wide(1))};
  };
  const std::string parents = R"("Functional.batch_norm.0.forward": "Module.bn.BatchNorm2d.forward.0",
                                 "Module.bn.BatchNorm2d.forward.0": null)";
  Write("t", run(2), parents);
  Write("g", run(1), parents);
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kParameter);
  EXPECT_EQ(d.Answer().parameter, "running_mean");
  EXPECT_TRUE(d.Answer().buffer);
}

TEST_F(FindingsTest, AModuleWithParametersInOneRunOnlyIsAlwaysTold) {
  // Its result is what went in: nothing behind it differs.
  const std::string own = Call("Module.extra.Scale.forward.0", Wide(2), Wide(2), "", R"("weight": )" + Wide(1));
  const std::string a = Call("Module.fc.Linear.forward.0", Wide(1), Wide(2), "", R"("weight": )" + Wide(3));
  const std::string b = Call("Functional.relu.0.forward", Wide(2), Wide(1));
  Write("t", {a, own, b});
  Write("g", {a, b});
  Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kExtraOp);
  EXPECT_EQ(d.Answer().name, "Module.extra.Scale.forward.0");
  EXPECT_EQ(d.target_modules, std::vector<std::string>{"Module.extra.Scale.forward.0"});
  EXPECT_TRUE(d.golden_modules.empty());

  Write("t", {a, b});
  Write("g", {a, own, b});
  d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kMissingOp);
  EXPECT_EQ(d.golden_modules, std::vector<std::string>{"Module.extra.Scale.forward.0"});
}

TEST_F(FindingsTest, AModuleOfAnotherClassAtItsPlaceIsNotOfOneRunOnly) {
  const auto norm = [](const std::string& kind, double out) {
    return Call("Module.norm." + kind + ".forward.0", Wide(2), Wide(out), "", R"("weight": )" + Wide(1));
  };
  const std::string a = Call("Module.fc.Linear.forward.0", Wide(1), Wide(2), "", R"("weight": )" + Wide(3));
  Write("t", {a, norm("RMSNorm", 1.5)});
  Write("g", {a, norm("LayerNorm", 1)});
  EXPECT_TRUE(Find().target_modules.empty());
}

TEST_F(FindingsTest, AWeightWithAnAdapterBesideItIsJudgedByWhatTheModuleGives) {
  const auto merged = [](double out) {
    return std::vector<std::string>{
        Call("Functional.linear.0.forward", Wide(1) + ", " + Wide(5), Wide(out)),
        Call("Module.q.Linear.forward.0", Wide(1), Wide(out), "", R"("weight": )" + Wide(5))};
  };
  const std::vector<std::string> adapted{Call("Functional.linear.0.forward", Wide(1) + ", " + Wide(3), Wide(1.5)),
                                         Call("Module.q.Adapted.forward.0", Wide(1), Wide(2), "",
                                              R"("weight": )" + Wide(3) + R"(, "a": )" + TensorOf("1, 8", 0.1, 0.2))};
  const auto parents_of = [&](const std::string& type) {
    return R"("Functional.linear.0.forward": "Module.q.)" + type + R"(.forward.0", "Module.q.)" + type +
           R"(.forward.0": null)";
  };
  Write("g", adapted, parents_of("Adapted"));
  Write("t", merged(2), parents_of("Linear"));
  Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kNone) << d.Answer().name;
  EXPECT_EQ(d.other_forms, 1u);
  EXPECT_EQ(d.first_other_form, "Module.q.Linear.forward.0");

  Write("t", merged(2.2), parents_of("Linear"));
  d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kOp);
  EXPECT_EQ(d.Answer().name, "Module.q.Linear.forward.0");
  EXPECT_EQ(d.Answer().item, ".output.0");
}

TEST_F(FindingsTest, AModuleOfAnotherClassWithTheSameParametersIsJudgedByThem) {
  const auto norm = [](const std::string& type, double weight) {
    return Call("Module.norm." + type + ".forward.0", Wide(1), Wide(2), "", R"("weight": )" + Wide(weight));
  };
  Write("t", {norm("RMSNorm", 3.3)});
  Write("g", {norm("LlamaRMSNorm", 3)});
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kParameter);
  EXPECT_EQ(d.other_forms, 0u);
}

TEST_F(FindingsTest, AGradientOfAnOpThatStandsElsewhereYieldsToOneThatDiffersByItself) {
  const auto call = [](const std::string& name, double in, double out) { return Call(name, Wide(in), Wide(out)); };
  const auto run = [&](bool inside, const std::string& gradient) {
    // The same but for a small number, which is added ahead of the root or behind it.
    const std::string add = call("Tensor.__add__.0.forward", inside ? 4 : 2, inside ? 4 : 2),
                      root = call("Tensor.sqrt.0.forward", 4, 2),
                      add_back = call("Tensor.__add__.0.backward", inside ? 0.3 : 0.7, inside ? 0.3 : 0.7),
                      root_back = Call("Tensor.sqrt.0.backward", Wide(0.7), gradient);
    std::vector<std::string> ops{call("Tensor.sum.0.forward", 3, 4)};
    for (const std::string& op : {inside ? add : root, inside ? root : add}) ops.push_back(op);
    ops.push_back(call("Functional.gelu.0.forward", 2, 1.5));
    ops.push_back(call("Functional.mse_loss.0.forward", 1.5, 0.5));
    ops.push_back(call("Functional.mse_loss.0.backward", 1, 0.6));
    ops.push_back(call("Functional.gelu.0.backward", 0.6, 0.7));
    for (const std::string& op : {inside ? root_back : add_back, inside ? add_back : root_back}) ops.push_back(op);
    ops.push_back(Call("Tensor.sum.0.backward", gradient, gradient));
    return ops;
  };
  const std::string nan = R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 8], "Max": "nan",
                              "Min": "nan", "Mean": "nan", "Norm": "nan"})";
  Write("t", run(false, nan));
  Write("g", run(true, Wide(0.3)));
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kOp);
  EXPECT_EQ(d.Answer().name, "Tensor.sqrt.0.backward");
}

TEST_F(FindingsTest, AnOpOfOneRunThatMadeWhatComesInIsFoundHoweverFarBack) {
  std::vector<std::string> target{Call("Tensor.exp.0.forward", Wide(1), Wide(2))}, golden = target;
  target.push_back(Call("Tensor.mul_.0.forward", Wide(2) + ", " + Number(1.5), Wide(3)));
  for (int i = 0; i < 200; ++i) {
    const std::string between = Call(fmt::format("Functional.silu.{}.forward", i), Wide(5 + i), Wide(6 + i));
    target.push_back(between);
    golden.push_back(between);
  }
  target.push_back(Call("Tensor.sin.0.forward", Wide(3), Wide(1)));
  golden.push_back(Call("Tensor.sin.0.forward", Wide(2), Wide(0.7)));
  Write("t", target);
  Write("g", golden);
  Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kExtraOp);
  EXPECT_EQ(d.Answer().name, "Tensor.mul_.0.forward");
  Write("g", target);
  Write("t", golden);
  d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kMissingOp);
  EXPECT_EQ(d.Answer().name, "Tensor.mul_.0.forward");
}

TEST_F(FindingsTest, AUseOfAParameterInOneRunOnlyMakesItsGradient) {
  const auto run = [](bool more, double gradient) {
    std::vector<std::string> ops{
        Call("Module.embed.Embedding.forward.0", Wide(1), Wide(2), "", R"("weight": )" + Wide(3))};
    for (int i = 0; i < 50; ++i)
      ops.push_back(Call(fmt::format("Functional.silu.{}.forward", i), Wide(5 + i), Wide(6 + i)));
    if (more) ops.push_back(Call("Torch.abs.0.forward", Wide(3), Wide(2.5)));
    ops.push_back(Call("Functional.silu.0.backward", Wide(1), Wide(2)));
    ops.push_back(R"("Module.embed.Embedding.parameters_grad.0": {"weight": [)" + Wide(gradient) + "]}");
    return ops;
  };
  Write("t", run(true, 1.5));
  Write("g", run(false, 1));
  Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kExtraOp);
  EXPECT_EQ(d.Answer().name, "Torch.abs.0.forward");
  EXPECT_EQ(d.Answer().verdict, RulerVerdict::kBug);
  Write("t", run(false, 1.5));
  Write("g", run(true, 1));
  d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kMissingOp);
  EXPECT_EQ(d.Answer().name, "Torch.abs.0.forward");
  // Nothing that only one run has uses it.
  Write("g", run(false, 1));
  EXPECT_EQ(Find().Answer().name, "Module.embed.Embedding.parameters_grad.0");
}

TEST_F(FindingsTest, InfinitiesHideWhatIsMasked) {
  const std::string masked = R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 8], "Max": 0.5,
                             "Min": -Infinity, "Mean": -Infinity, "Norm": Infinity})";
  const auto ops = [&](double norm, double max) {
    return std::vector{Call("Tensor.masked_fill.0.forward", Wide(2), masked),
                       Call("Torch.softmax.0.forward", masked, TensorOf("4, 8", max, norm))};
  };
  // Rows that add up to the same: other elements are masked.
  Write("t", ops(1.2, 0.5));
  Write("g", ops(1, 0.5));
  Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kInput);
  EXPECT_EQ(d.Answer().name, "Tensor.masked_fill.0.forward");
  EXPECT_TRUE(d.Answer().hidden);
  // A sum that differs is the softmax's own doing.
  Write("t", ops(1.1, 0.55));
  d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kOp);
  EXPECT_EQ(d.Answer().name, "Torch.softmax.0.forward");
}

TEST_F(FindingsTest, WhatRunsAgainInBackwardIsARecomputation) {
  const auto ops = [](double second) {
    return std::vector{Call("Functional.silu.0.forward", Wide(2), Wide(1)),
                       Call("Functional.silu.1.forward", Wide(2), Wide(second)),
                       Call("Module.a.Block.backward.0", Wide(1), Wide(second + 1))};
  };
  const std::string parents =
      R"("Functional.silu.0.forward": "Module.a.Block.forward.0", "Module.a.Block.forward.0": null,
         "Functional.silu.1.forward": "Module.a.Block.forward.1", "Module.a.Block.forward.1": "Module.a.Block.backward.0",
         "Module.a.Block.backward.0": null)";
  Write("t", ops(3), parents);
  Write("g", ops(1), parents);
  const Differences d = Find();
  EXPECT_EQ(d.Answer().name, "Functional.silu.1.forward");
  EXPECT_TRUE(d.Answer().recomputed);
}

TEST_F(FindingsTest, ASettingIsFoundThoughShapesDiffer) {
  const auto run = [](int rows, double eps, double scale) {
    const std::string x = TensorOf(fmt::format("{}, 8", rows), 1, rows),
                      y = TensorOf(fmt::format("{}, 8", rows), 2, rows);
    return std::vector{Call("Functional.silu.0.forward", x, y),
                       Call("Functional.layer_norm.0.forward", y, x, R"("eps": )" + Number(eps)),
                       Call("Tensor.__truediv__.0.forward", TensorOf("", rows, rows) + ", " + Number(scale),
                            TensorOf("", rows / scale, rows / scale))};
  };
  Write("t", run(2, 1e-5, 4));
  Write("g", run(4, 1e-5, 2));
  EXPECT_EQ(Find().Answer().kind, Kind::kShape) << "the number follows the split";
  Write("t", run(2, 1e-3, 4));
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kArgument);
  EXPECT_EQ(d.Answer().name, "Functional.layer_norm.0.forward");
}

/// What is given and what PyTorch takes anyway are one, and so are an argument by its place and by its name.
TEST_F(FindingsTest, AnArgumentThatIsItsDefaultIsNoDifference) {
  const auto run = [](const std::string& arguments, const std::string& named, double out) {
    return std::vector{Call("Functional.scaled_dot_product_attention.0.forward",
                            Wide(1) + ", " + Wide(2) + ", " + Wide(3) + arguments, Wide(out), named)};
  };
  const std::string mask = ", null, ", dropout = R"("dropout_p": )";
  Write("t", run("", dropout + Number(0), 4));
  Write("g", run("", "", 4));
  EXPECT_EQ(Find().Answer().kind, Kind::kNone);
  Write("g", run(mask + Number(0), "", 4));
  EXPECT_EQ(Find().Answer().kind, Kind::kNone);
  Write("t", run("", dropout + Number(0.1), 4));
  Write("g", run("", "", 5));
  EXPECT_EQ(Find().Answer().kind, Kind::kArgument);
  Write("g", run(mask + Number(0.2), "", 5));
  EXPECT_EQ(Find().Answer().kind, Kind::kArgument);
  const auto in_mindspore = [](std::vector<std::string> calls) {
    for (size_t at; (at = calls[0].find("torch.float32")) != std::string::npos;) calls[0].replace(at, 13, "Float32");
    return calls;
  };
  Write("t", in_mindspore(run("", dropout + Number(0), 4)));
  Write("g", in_mindspore(run("", "", 5)));
  EXPECT_EQ(Find().Answer().kind, Kind::kArgument) << "the defaults are those of PyTorch";
}

TEST_F(FindingsTest, IndependentDifferencesAreToldToo) {
  const auto run = [](double first, double second, double eps) {
    const auto module = [](const std::string& name, double weight, double out) {
      return Call("Module." + name + ".Linear.forward.0", Wide(1), Wide(out), "", R"("weight": )" + Wide(weight));
    };
    return std::vector{
        module("a", first, 1 + first), module("b", second, 2 + first + second),
        Call("Functional.layer_norm.0.forward", Wide(2 + first + second), Wide(first), R"("eps": )" + Number(eps))};
  };
  Write("t", run(1.5, 2.5, 1e-3));
  Write("g", run(1, 2, 1e-5));
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kParameter);
  EXPECT_EQ(d.Answer().name, "Module.a.Linear.forward.0");
  ASSERT_EQ(d.others.size(), 2u);
  EXPECT_EQ(d.others[0].name, "Module.b.Linear.forward.0");
  EXPECT_EQ(d.others[1].name, "Functional.layer_norm.0.forward");
  EXPECT_EQ(d.others[1].kind, Kind::kArgument);
}

/// An op of another dtype explains no weight of the same one behind it.
TEST_F(FindingsTest, AWeightIsToldBehindAnOpOfAnotherDType) {
  const auto run = [](const std::string& dtype, double weight) {
    std::string input = Wide(1);
    input.replace(input.find("torch.float32"), 13, dtype);
    std::vector<std::string> out{
        Call("Functional.softmax.0.forward", input, Wide(dtype == "torch.float32" ? 1 : 1.003))};
    for (int i = 0; i < 8; ++i) out.push_back(Call(fmt::format("Functional.relu.{}.forward", i), Wide(3), Wide(2)));
    out.push_back(Call("Module.b.Linear.forward.0", Wide(dtype == "torch.float32" ? 1 : 1.003), Wide(weight), "",
                       R"("weight": )" + Wide(weight)));
    return out;
  };
  Write("t", run("torch.bfloat16", 2.45));
  Write("g", run("torch.float32", 1));
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kDType);
  ASSERT_EQ(d.others.size(), 1u);
  EXPECT_EQ(d.others[0].name, "Module.b.Linear.forward.0");
}

TEST_F(FindingsTest, ModulesWithoutRecordedOpsAreCounted) {
  const auto run = [](double out) {
    return std::vector{
        Call("Functional.silu.0.forward", Wide(2), Wide(1)),   Call("Module.a.Silu.forward.0", Wide(2), Wide(1)),
        Call("Functional.silu.1.forward", Wide(1), Wide(3)),   Call("Module.b.Silu.forward.0", Wide(1), Wide(3)),
        Call("Module.c.Kernel.forward.0", Wide(3), Wide(out)), Call("Module.d.Identity.forward.0", Wide(3), Wide(3))};
  };
  const std::string parents = R"("Functional.silu.0.forward": "Module.a.Silu.forward.0",
      "Functional.silu.1.forward": "Module.b.Silu.forward.0", "Module.a.Silu.forward.0": null, "Module.b.Silu.forward.0": null,
      "Module.c.Kernel.forward.0": null, "Module.d.Identity.forward.0": null)";
  Write("t", run(4), parents);
  Write("g", run(5), parents);
  const Differences d = Find();
  EXPECT_EQ(d.unrecorded, 1u);
  EXPECT_EQ(d.first_unrecorded, "Module.c.Kernel.forward.0");
}

TEST_F(FindingsTest, AJumpBehindSmallDriftStandsOut) {
  const auto run = [](double drift, double jump) {
    return std::vector{Call("Functional.silu.0.forward", Wide(1), Wide(2 * (1 + drift))),
                       Call("Functional.linear.0.forward", Wide(2 * (1 + drift)), Wide(3 * (1 + drift))),
                       Call("Functional.gelu.0.forward", Wide(3 * (1 + drift)), Wide(1.5 * (1 + jump))),
                       Call("Functional.linear.1.forward", Wide(1.5 * (1 + jump)), Wide(2 * (1 + 3 * jump)))};
  };
  Write("t", run(3e-8, 4e-5));
  Write("g", run(0, 0));
  EXPECT_EQ(Find().Answer().kind, Kind::kOp);
  EXPECT_EQ(Find().Answer().name, "Functional.gelu.0.forward");
  Write("t", run(4e-7, 4e-5));
  EXPECT_EQ(Find().Answer().kind, Kind::kGrows) << "not behind drift of this size";
}

TEST_F(FindingsTest, GradientsThatCancelOutSayNothing) {
  // The bias in front of a normalisation: its gradient is a sum of terms that cancel out.
  const auto run = [](double bias) {
    return std::vector{Call("Functional.linear.0.forward", TensorOf("64, 8", 1, 10), TensorOf("64, 8", 1, 10)),
                       Call("Functional.linear.0.backward", TensorOf("64, 8", 0.1, 1),
                            TensorOf("64, 8", 0.1, 1) + ", " + TensorOf("8", bias, bias))};
  };
  Write("t", run(3e-9));
  Write("g", run(1e-9));
  EXPECT_EQ(Find().Answer().kind, Kind::kNone);
  Write("t", run(3e-2));
  EXPECT_EQ(Find().Answer().kind, Kind::kOp);
}

TEST_F(FindingsTest, GradientsOfQueriesThatCancelOutSayNothing) {
  const auto run = [](double queries) {
    const std::string given = Wide(1);
    return std::vector{
        Call("Functional.gelu.0.forward", given, Wide(queries < 1e-8 ? 1 : 1.0000001)),
        Call("Functional.scaled_dot_product_attention.0.forward", given + ", " + given + ", " + given, Wide(1)),
        Call("Functional.scaled_dot_product_attention.0.backward", given,
             Wide(queries) + ", " + Wide(1) + ", " + Wide(1.5))};
  };
  Write("t", run(2e-8));
  Write("g", run(0.7e-8));
  EXPECT_EQ(Find().Answer().kind, Kind::kNone) << Find().Answer().name;
  Write("t", run(2e-2));
  EXPECT_EQ(Find().Answer().name, "Functional.scaled_dot_product_attention.0.backward");
}

TEST_F(FindingsTest, WhatAModuleMakesOfNumbersIsNotExcusedByTheModuleAround) {
  // A table of angles, of which the sums around it show next to nothing.
  const auto run = [](double table, bool inside) {
    std::vector<std::string> ops;
    if (inside)
      ops.push_back(Call("Torch.outer.0.forward", Wide(5) + ", " + TensorOf("4", table / 9, table), Wide(table)));
    ops.push_back(Call("Module.net.rope.Rotary.forward.0", Number(12), Wide(table)));
    ops.push_back(Call("Tensor.mul.0.forward", Wide(table), Wide(2 * table)));
    ops.push_back(Call("Module.net.Net.forward.0", Wide(1), Wide(7)));
    return ops;
  };
  const std::string parents =
      R"("Torch.outer.0.forward": "Module.net.rope.Rotary.forward.0", "Tensor.mul.0.forward": "Module.net.Net.forward.0",
         "Module.net.rope.Rotary.forward.0": "Module.net.Net.forward.0", "Module.net.Net.forward.0": null)";
  for (const bool inside : {false, true}) {
    Write("t", run(3.0003, inside), parents);
    Write("g", run(3, inside), parents);
    const Differences d = Find();
    EXPECT_EQ(d.Answer().kind, inside ? Kind::kInput : Kind::kOp) << inside;
    EXPECT_EQ(d.Answer().name, inside ? "Torch.outer.0.forward" : "Module.net.rope.Rotary.forward.0");
  }
}

TEST_F(FindingsTest, AnOpOfOneRunBehindTheAnswerIsADifferenceOfItsOwn) {
  const auto run = [](double weight, bool more) {
    std::vector<std::string> ops{
        Call("Module.a.Linear.forward.0", Wide(1), Wide(2 * weight), "", R"("weight": )" + Wide(weight))};
    for (int i = 0; i < 3; ++i)
      ops.push_back(Call(fmt::format("Functional.silu.{}.forward", i), Wide(5 + weight), Wide(6 + weight)));
    if (more) ops.push_back(Call("Tensor.mul.0.forward", Wide(6 + weight) + ", " + Number(1.5), Wide(9)));
    ops.push_back(Call("Module.b.Linear.forward.0", Wide(more ? 9 : 6 + weight), Wide(4 * weight)));
    return ops;
  };
  Write("t", run(3, true));
  Write("g", run(2, false));
  Differences d = Find();
  EXPECT_EQ(d.Answer().name, "Module.a.Linear.forward.0");
  ASSERT_EQ(d.others.size(), 1u);
  EXPECT_EQ(d.others[0].kind, Kind::kExtraOp);
  EXPECT_EQ(d.others[0].name, "Tensor.mul.0.forward");
  Write("t", run(3, false));
  Write("g", run(2, true));
  d = Find();
  ASSERT_EQ(d.others.size(), 1u);
  EXPECT_EQ(d.others[0].kind, Kind::kMissingOp);
  EXPECT_EQ(d.others[0].name, "Tensor.mul.0.forward");
}

/// Each run calls one function of its own in a module: the one stands for the other.
TEST_F(FindingsTest, AFunctionThatStandsForAnotherIsNamedWithIt) {
  const auto ops = [](const std::string& function, double out) {
    return std::vector<std::string>{Call(function + ".0.forward", Wide(1), Wide(out)),
                                    Call("Module.act.Act.forward.0", Wide(1), Wide(out)),
                                    Call("Functional.linear.0.forward", Wide(out), Wide(5 * out))};
  };
  const auto parents = [](const std::string& function) {
    return "\"" + function + R"(.0.forward": "Module.act.Act.forward.0", "Module.act.Act.forward.0": null,
            "Functional.linear.0.forward": null)";
  };
  Write("t", ops("Functional.gelu", 2), parents("Functional.gelu"));
  Write("g", ops("Functional.silu", 3), parents("Functional.silu"));
  const Differences d = Find();
  ASSERT_EQ(d.Answer().kind, Kind::kExtraOp);
  EXPECT_EQ(d.Answer().name, "Functional.gelu.0.forward");
  EXPECT_EQ(d.Answer().instead, "Functional.silu.0.forward");
}

/// Of functions alone: what a linear layer multiplies by, and what trains, is its weight.
TEST_F(FindingsTest, AWeightIsOneWithoutItsModule) {
  const auto trains = [](double norm) {
    std::string out = Wide(norm);
    return out.insert(out.rfind('}'), R"(, "requires_grad": true)");
  };
  const auto run = [&](const std::string& weight, const std::string& scale) {
    return std::vector<std::string>{Call("Functional.linear.0.forward", Wide(1) + ", " + weight, Wide(2)),
                                    Call("Tensor.mul.0.forward", Wide(2) + ", " + scale, Wide(4))};
  };
  Write("g", run(trains(3), trains(2)));
  Write("t", run(trains(3.5), trains(2)));
  EXPECT_EQ(Find().Answer().kind, Kind::kParameter);
  Write("t", run(Wide(3.5), trains(2)));
  EXPECT_EQ(Find().Answer().kind, Kind::kInput) << "data does not train";
  Write("t", run(trains(3), trains(2.5)));
  EXPECT_EQ(Find().Answer().kind, Kind::kInput) << "any op may have made what a product takes";
}

/// Where a mask is true does not show in statistics: the op is no bug for sure.
TEST_F(FindingsTest, AMaskThatStatisticsDoNotShowLeavesADoubt) {
  const auto run = [](const std::string& mask, double out) {
    return std::vector<std::string>{Call("Functional.scaled_dot_product_attention.0.forward",
                                         Wide(1) + ", " + Wide(1) + ", " + Wide(1), Wide(out), mask)};
  };
  const auto mask = [](const char* min) {
    return fmt::format(R"("attn_mask": {{"type": "torch.Tensor", "dtype": "torch.bool", "shape": [4, 4], "Max": true,
                           "Min": {}, "Mean": null, "Norm": null}})",
                       min);
  };
  Write("g", run(mask("false"), 2));
  Write("t", run(mask("false"), 2.2));
  EXPECT_EQ(Find().Answer().verdict, RulerVerdict::kSuspicious);
  Write("g", run(mask("true"), 2));
  Write("t", run(mask("true"), 2.2));
  EXPECT_EQ(Find().Answer().verdict, RulerVerdict::kBug) << "a mask of one value is known";
}

/// A module stands behind what is in it: another mask that it is given came before the op that shows it.
TEST_F(FindingsTest, AMaskThatCameInAroundAnOpIsTheOrigin) {
  const auto run = [](double mean, double out) {
    const std::string mask = fmt::format(
        R"("mask": {{"type": "torch.Tensor", "dtype": "torch.int64", "shape": [4, 8], "Max": 1, "Min": 0, "Mean": {},
            "Norm": 4.5}})",
        mean);
    return std::vector<std::string>{Call("Module.net.attention.Attention.forward.0", Wide(1), Wide(out)),
                                    Call("Module.net.Net.forward.0", Wide(1), Wide(out), mask)};
  };
  const std::string parents =
      R"("Module.net.attention.Attention.forward.0": "Module.net.Net.forward.0", "Module.net.Net.forward.0": null)";
  Write("g", run(0.75, 2), parents);
  Write("t", run(0.875, 2.2), parents);
  const Differences d = Find();
  EXPECT_EQ(d.Answer().kind, Kind::kInput);
  EXPECT_EQ(d.Answer().name, "Module.net.Net.forward.0");
  EXPECT_EQ(d.Answer().item, ".input.mask");
}

}  // namespace
}  // namespace msprobe
