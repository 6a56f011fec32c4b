// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/socket.hpp"

#include "network_namespace.hpp"

namespace vfmgr {
namespace {

using test::Bytes;
using test::soon;

nlmsghdr answer_header(std::uint32_t length, std::uint16_t type) {
    nlmsghdr header{};
    header.nlmsg_len = length;
    header.nlmsg_type = type;
    header.nlmsg_seq = 77;
    return header;
}

NlAnswer error_answer(std::uint16_t flags, ByteView payload) {
    return {NLMSG_ERROR, flags, 1, std::vector<std::byte>(payload.begin(), payload.end())};
}

TEST(SplitMessages, TakesEachMessageOfADatagram) {
    auto const bytes =
        Bytes().add(answer_header(20, 16)).add(std::uint32_t{5}).add(answer_header(16, NLMSG_DONE));
    auto const answers = split_messages(bytes.view());
    ASSERT_EQ(answers.size(), 2U);
    EXPECT_EQ(answers[0].type, 16);
    EXPECT_EQ(answers[0].sequence, 77U);
    EXPECT_EQ(answers[0].payload.size(), 4U);
    EXPECT_EQ(answers[1].type, NLMSG_DONE);
}

TEST(SplitMessages, StopsAtALengthThatCannotBeTrue) {
    for (std::uint32_t const length : {0U, 15U, 17U + 16U, 0xFFFFFFFFU}) {
        auto const bytes = Bytes().add(answer_header(16, 16)).add(answer_header(length, 17));
        EXPECT_EQ(split_messages(bytes.view()).size(), 1U) << "length " << length;
    }
}

TEST(ParseAck, ZeroIsDone) {
    auto const bytes = Bytes().add(std::int32_t{0}).add(answer_header(16, 16));
    EXPECT_TRUE(parse_ack(error_answer(0, bytes.view())).ok());
}

TEST(ParseAck, ReadsTheSentenceAfterACappedRequest) {
    auto const bytes = Bytes()
                           .add(std::int32_t{-EEXIST})
                           .add(answer_header(400, 16))
                           .text(NLMSGERR_ATTR_MSG, "taken");
    auto const flags = NLM_F_CAPPED | NLM_F_ACK_TLVS;
    EXPECT_EQ(parse_ack(error_answer(flags, bytes.view())), (NlAck{EEXIST, "taken"}));
}

TEST(ParseAck, ReadsTheSentenceAfterAnEchoedRequest) {
    auto const bytes = Bytes()
                           .add(std::int32_t{-EINVAL})
                           .add(answer_header(20, 16))
                           .add(std::uint32_t{9})
                           .text(NLMSGERR_ATTR_MSG, "bad");
    EXPECT_EQ(parse_ack(error_answer(NLM_F_ACK_TLVS, bytes.view())), (NlAck{EINVAL, "bad"}));
}

TEST(ParseAck, WhatCannotBeAnErrnoIsNotSuccess) {
    EXPECT_FALSE(parse_ack(error_answer(0, {})).ok());
    auto const positive = Bytes().add(std::int32_t{5});
    EXPECT_FALSE(parse_ack(error_answer(0, positive.view())).ok());
    auto const lowest = Bytes().add(INT32_MIN);
    EXPECT_FALSE(parse_ack(error_answer(0, lowest.view())).ok());
}

TEST(NlRefusal, NamesCallErrnoAndTheKernelsSentence) {
    auto const error = nl_refusal({EEXIST, "VLAN device already exists"}, "RTM_NEWLINK a.5",
                                  "a.5 could not be made", "choose another");
    EXPECT_EQ(error.problem, Problem::kernel_refused);
    EXPECT_EQ(error.detail, "a.5 could not be made: VLAN device already exists");
    EXPECT_EQ(error.remedy, "choose another");
    ASSERT_EQ(error.causes.size(), 1U);
    EXPECT_EQ(error.causes[0].call, "RTM_NEWLINK a.5");
    EXPECT_EQ(error.causes[0].code, "EEXIST");
}

TEST(NlRequest, ThatDoesNotFitIsAnError) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    NlRequest request(RTM_SETLINK, 0);
    std::vector<std::byte> const huge(70'000);
    request.header(ifinfomsg{}).put_bytes(1, huge);
    auto const reply = socket.ask(request, "RTM_SETLINK huge", soon());
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().problem, Problem::internal);
}

TEST(AwaitReadable, EndsAtTheDeadline) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    auto const start = std::chrono::steady_clock::now();
    auto const ready =
        await_readable(std::array{pipe[0]}, start + std::chrono::milliseconds(30)).value();
    EXPECT_EQ(ready, Readiness::deadline_passed);
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(30));
    ASSERT_EQ(::write(pipe[1], "x", 1), 1);
    EXPECT_EQ(await_readable(std::array{pipe[0]}, start).value(), Readiness::readable);
    ::close(pipe[0]);
    ::close(pipe[1]);
}

}  // namespace
}  // namespace vfmgr
