#include "capture/read_once.h"

#include <gtest/gtest.h>

#include <vector>

namespace msprobe {
namespace {

class ReadOnceTest : public testing::Test {
 protected:
  TensorRecord Values(double max) {
    TensorRecord t;
    t.has_stats = true;
    t.stats.max = max;
    return t;
  }
  TensorView View(const int64_t* shape, int ndim, const int64_t* strides = nullptr) {
    return {memory_.data(), DType::kFloat32, ndim, shape, strides};
  }
  bool Knows(const TensorView& view, int64_t count) {
    TensorRecord t;
    return once_.Find(view, count, &t) && t.has_stats && t.stats.max == 7;
  }

  std::vector<float> memory_ = std::vector<float>(8192);
  ReadOnce once_;
};

TEST_F(ReadOnceTest, KnowsTheSameMemoryInAnotherShape) {
  const int64_t rows[] = {64, 128}, flat[] = {8192}, steps[] = {1};
  once_.Enter(1);
  once_.Add(View(rows, 2), 8192, Values(7));
  EXPECT_TRUE(Knows(View(flat, 1), 8192));
  EXPECT_TRUE(Knows(View(flat, 1, steps), 8192));
}

TEST_F(ReadOnceTest, DoesNotKnowAPartOrAnotherOrderOrType) {
  const int64_t rows[] = {64, 128}, half[] = {32, 128}, turned[] = {1, 64};
  once_.Enter(1);
  once_.Add(View(rows, 2), 8192, Values(7));
  EXPECT_FALSE(Knows(View(half, 2), 4096));
  EXPECT_FALSE(Knows(View(rows, 2, turned), 8192));
  TensorView other = View(rows, 2);
  other.dtype = DType::kInt32;
  EXPECT_FALSE(Knows(other, 8192));
}

TEST_F(ReadOnceTest, DoesNotRememberWhatIsInAnotherOrder) {
  const int64_t rows[] = {64, 128}, turned[] = {1, 64};
  once_.Enter(1);
  once_.Add(View(rows, 2, turned), 8192, Values(7));
  EXPECT_FALSE(Knows(View(rows, 2), 8192));
}

TEST_F(ReadOnceTest, ForgetsWithTheHook) {
  const int64_t flat[] = {8192};
  once_.Enter(1);
  once_.Add(View(flat, 1), 8192, Values(7));
  once_.Enter(1);
  EXPECT_TRUE(Knows(View(flat, 1), 8192));
  once_.Enter(2);
  EXPECT_FALSE(Knows(View(flat, 1), 8192));
}

}  // namespace
}  // namespace msprobe
