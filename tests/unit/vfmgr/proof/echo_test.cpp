// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/echo.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "vfmgr/proof/digest.hpp"
#include "vfmgr/proof/random_payload.hpp"

namespace vfmgr::verify {
namespace {

TEST(Digest, IsSha256OverNonceAndBytes) {
    // SHA-256("abc")
    std::string const rest = "bc";
    EXPECT_EQ(digest_hex("a", std::as_bytes(std::span(rest))),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Echo, QuestionsComeBackAsTheyWere) {
    auto const datagram = make_question({EchoKind::path_mtu, "0123abcd", 8972});
    EXPECT_EQ(datagram.size(), 8972U);
    auto const parsed = parse_question(datagram);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->kind, EchoKind::path_mtu);
    EXPECT_EQ(parsed->nonce, "0123abcd");
    EXPECT_EQ(parsed->bytes, 8972U);
}

TEST(Echo, AnythingElseIsNoQuestion) {
    auto const good = make_question({EchoKind::reachability, "0123abcd", 256});
    for (std::size_t length = 0; length < 6 + 8; ++length)
        EXPECT_FALSE(parse_question(std::span(good).first(length))) << length;
    EXPECT_TRUE(parse_question(std::span(good).first(14)));
    auto bad = good;
    bad[0] = std::byte{'x'};
    EXPECT_FALSE(parse_question(bad));
    bad = good;
    bad[4] = std::byte{3};
    EXPECT_FALSE(parse_question(bad));
    bad = good;
    bad[5] = std::byte{200};
    EXPECT_FALSE(parse_question(bad));
}

TEST(Echo, AnAnswerIsAsLongAsItsQuestion) {
    auto const secret = Payload::secret(0);
    for (std::size_t bytes : {6U, 14U, 256U, 1472U, 8972U})
        EXPECT_EQ(make_answer({EchoKind::reachability, "n", bytes}, secret).size(), bytes);
}

TEST(Echo, TheAnswerOfOneKindTellsNothingOfTheOther) {
    auto const secret = Payload::secret(0);
    auto const small = make_answer({EchoKind::reachability, "n", 256}, secret);
    auto const big = make_answer({EchoKind::path_mtu, "n", 256}, secret);
    EXPECT_NE(small, big);
    EXPECT_EQ(small, make_answer({EchoKind::reachability, "n", 256}, secret));
    EXPECT_NE(small, make_answer({EchoKind::reachability, "n", 256}, Payload::secret(0)));
}

TEST(Echo, FullDatagramsLeaveRoomForHeaders) {
    EXPECT_EQ(full_datagram_bytes(9000, IpAddress::Family::v4), 8972U);
    EXPECT_EQ(full_datagram_bytes(1500, IpAddress::Family::v6), 1452U);
    EXPECT_EQ(full_datagram_bytes(20, IpAddress::Family::v4), 0U);
}

TEST(Echo, ABusyPortIsNamed) {
    auto const address = *IpAddress::parse("127.0.0.1");
    auto const port = static_cast<std::uint16_t>(24000 + ::getpid() % 4000);
    auto const first = open_socket({address, port, ""});
    ASSERT_TRUE(first) << first.error().detail;
    auto const second = open_socket({address, port, ""});
    ASSERT_FALSE(second);
    auto const number = std::to_string(port);
    EXPECT_EQ(second.error().detail, "can't open a UDP socket on 127.0.0.1 port " + number);
    EXPECT_EQ(second.error().remedy, "stop the program that uses UDP port " + number);
    EXPECT_EQ(second.error().causes.front().code, "EADDRINUSE");
}

}  // namespace
}  // namespace vfmgr::verify
