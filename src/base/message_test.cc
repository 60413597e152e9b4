#include "base/message.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace msprobe {
namespace {

TEST(MessageTest, TheTemplateIsTheKeyAndTheEnglishHasTheValues) {
  const Message m = Msg("{} of {} is {:.2f}, {{x}}", std::string("a: {}\n"), 3, 0.5);
  EXPECT_EQ(m.English(), "a: {}\n of 3 is 0.50, {x}");
  EXPECT_EQ(m.key(), "{} of {} is {:.2f}, {{x}}");
  ASSERT_EQ(m.parts().size(), 3u);
  EXPECT_EQ(m.parts()[0].English(), "a: {}\n");
  EXPECT_EQ(m.parts()[0].kind(), Message::Kind::kText);
}

TEST(MessageTest, NumberedFieldsMayComeTwice) {
  const Message m = Msg("{0} and {1}: leave {0} out", "-I", 2);
  EXPECT_EQ(m.English(), "-I and 2: leave -I out");
  EXPECT_EQ(m.parts().size(), 3u);
}

TEST(MessageTest, AMessageWithinAnother) {
  const Status inner = BadInput(Msg("{} does not exist", "x"));
  const Status outer = BadInput(Msg("{}: {}", "step", inner.text()));
  EXPECT_EQ(outer.message(), "step: x does not exist");
  EXPECT_EQ(outer.text().parts()[1].kind(), Message::Kind::kTemplate);
}

TEST(MessageTest, JoinedKeepsItsParts) {
  Message m;
  m += Msg("first\n");
  m += Message(" second");
  m += Message();
  EXPECT_EQ(m.English(), "first\n second");
  EXPECT_EQ(m.kind(), Message::Kind::kJoined);
  EXPECT_EQ(Joined({Message("a"), Message(), Message("b")}, Message("; ")).English(), "a; b");
  EXPECT_EQ(OneLined(Msg("{} is\n", "a\nb")).parts()[0].English(), "a\\nb");
}

TEST(MessageTest, AStatusOfATextHasNoTemplate) {
  EXPECT_EQ(BadInput(std::string("out of memory")).text().kind(), Message::Kind::kText);
  EXPECT_EQ(OkStatus().message(), "");
}

}  // namespace
}  // namespace msprobe
