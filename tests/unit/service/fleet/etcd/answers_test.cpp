// SPDX-License-Identifier: Apache-2.0
// What each answer of etcd and of gRPC means. The texts are those of etcd 3.4.23
// (etcdserver/api/v3rpc/rpctypes/error.go) and of gRPC 1.51.
#include "service/fleet/etcd/answers.hpp"

#include <gtest/gtest.h>

namespace vfmgr::fleet {
namespace {

Problem problem_of(Asked asked, int code, std::string text) {
    auto const error = error_of({"Txn", "10.0.0.1:2379", asked}, {code, std::move(text)});
    EXPECT_NE(error.detail.find("10.0.0.1:2379"), std::string::npos) << error.detail;
    EXPECT_EQ(error.causes.size(), 1U);
    return error.problem;
}

struct AnswerCase {
    int code;
    std::string text;
    Problem write;
    Problem read;
};

class AnswersTest : public testing::TestWithParam<AnswerCase> {};

TEST_P(AnswersTest, IsUnderstood) {
    auto const& [code, text, write, read] = GetParam();
    EXPECT_EQ(problem_of(Asked::write, code, text), write);
    EXPECT_EQ(problem_of(Asked::read, code, text), read);
}

using enum Problem;
INSTANTIATE_TEST_SUITE_P(
    All, AnswersTest,
    testing::Values(
        // Given before anything is done.
        AnswerCase{7, "etcdserver: permission denied", forbidden, forbidden},
        AnswerCase{3, "etcdserver: user name is empty", forbidden, forbidden},
        AnswerCase{14, "etcdserver: no leader", unavailable, unavailable},
        AnswerCase{8, "etcdserver: too many requests", unavailable, unavailable},
        AnswerCase{8, "etcdserver: mvcc: database space exceeded", limit_exceeded, limit_exceeded},
        AnswerCase{3, "etcdserver: request is too large", limit_exceeded, limit_exceeded},
        AnswerCase{5, "etcdserver: requested lease not found", not_found, not_found},
        AnswerCase{11, "etcdserver: mvcc: required revision has been compacted", not_found,
                   not_found},
        // The proposal may be in Raft's log.
        AnswerCase{14, "etcdserver: request timed out", timed_out, unavailable},
        AnswerCase{14, "etcdserver: request timed out, possibly due to previous leader failure",
                   timed_out, unavailable},
        AnswerCase{14, "etcdserver: leader changed", timed_out, unavailable},
        AnswerCase{14, "etcdserver: server stopped", timed_out, unavailable},
        AnswerCase{2, "raft proposal dropped", timed_out, unavailable},
        // gRPC's own, which can't tell.
        AnswerCase{14, "Socket closed", timed_out, unavailable},
        AnswerCase{14, "failed to connect to all addresses", timed_out, unavailable},
        AnswerCase{4, "Deadline Exceeded", timed_out, timed_out},
        AnswerCase{1, "CANCELLED", timed_out, unavailable},
        AnswerCase{8, "Received message larger than max (70 vs. 64)", timed_out, limit_exceeded},
        AnswerCase{12, "unknown service", timed_out, unsupported},
        // Not in etcd's words.
        AnswerCase{14, "connect: permission denied", timed_out, unavailable},
        AnswerCase{99, "", timed_out, unavailable}));

TEST(AnswersTest, AForgottenRevisionDiffersFromAMissingLease) {
    EtcdCall const call{"Range", "a:1"};
    EXPECT_TRUE(is_compacted(
        error_of(call, {11, "etcdserver: mvcc: required revision has been compacted"})));
    EXPECT_FALSE(is_compacted(error_of(call, {5, "etcdserver: requested lease not found"})));
    EXPECT_TRUE(is_compacted(compacted("gone", {"etcd Watch at a:1", "", "compacted"})));
}

TEST(AnswersTest, TheCauseNamesTheCallTheMemberAndTheCode) {
    auto const error = error_of({"Txn", "a:1", Asked::write}, {4, "Deadline Exceeded"});
    EXPECT_EQ(detail_with_causes(error),
              "etcd at a:1 was asked for a change and gave no answer; whether it was made is not "
              "known (etcd Txn at a:1: DEADLINE_EXCEEDED)");
    EXPECT_EQ(error.causes.front().text, "Deadline Exceeded");
}

}  // namespace
}  // namespace vfmgr::fleet
