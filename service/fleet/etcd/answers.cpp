// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/etcd/answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace vfmgr::fleet {
namespace {

constexpr std::array<std::string_view, 17> code_names{
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

constexpr std::string_view out_of_range = "OUT_OF_RANGE";

// etcd's own answers, each given before anything is carried out: by its interceptors, by the checks
// before it proposes to Raft, or by those before it applies (etcdserver/api/v3rpc/interceptor.go,
// rpctypes/error.go, etcdserver/v3_server.go and apply.go of 3.4.23). Whatever else comes instead
// of an answer says nothing about what was done: a connection that broke, "request timed out",
// "leader changed", "server stopped".
struct Known {
    std::string_view text;  // part of etcd's
    Problem problem;
    std::string_view detail;
    std::string_view remedy;
};
constexpr std::string_view may_not = "etcd's user for this daemon's certificate may not do that";
constexpr std::string_view grant_it =
    "the certificate's CN names the user: etcdctl user get vfmgr-fleetd; etcdctl role get its role";
constexpr std::string_view see_members = "etcdctl endpoint status --cluster";
constexpr std::array known{
    Known{"permission denied", Problem::forbidden, may_not, grant_it},
    Known{"user name is empty", Problem::forbidden, may_not, grant_it},
    Known{"user name not found", Problem::forbidden, may_not, grant_it},
    Known{"authentication failed", Problem::forbidden, may_not, grant_it},
    Known{"invalid auth token", Problem::forbidden, may_not, grant_it},
    Known{"revision of auth store is old", Problem::unavailable,
          "etcd's users have just been changed", "try again"},
    Known{"database space exceeded", Problem::limit_exceeded, "etcd's database is full",
          "etcdctl compaction, etcdctl defrag --cluster, then etcdctl alarm disarm"},
    Known{"request is too large", Problem::limit_exceeded,
          "the request is larger than etcd's --max-request-bytes", "split the request"},
    Known{"too many operations in txn", Problem::limit_exceeded,
          "the transaction has more operations than etcd's --max-txn-ops", "split the request"},
    Known{"too many requests", Problem::unavailable, "etcd is overloaded", see_members},
    Known{"no leader", Problem::unavailable, "etcd has no leader", see_members},
    Known{"not capable", Problem::unavailable, "the member of etcd has just started", "try again"},
    Known{"not supported for learner", Problem::unavailable,
          "the member of etcd is a learner, which serves nobody",
          "leave learners out of [etcd] endpoints"},
    Known{"requested lease not found", Problem::not_found, "etcd has ended the lease", ""},
    Known{"corrupt cluster", Problem::unavailable, "etcd has found its data corrupt",
          "etcdctl alarm list; restore the members that differ"},
    Known{"has been compacted", Problem::not_found, "etcd has forgotten that revision",
          "try again"},
};

// gRPC's own texts quote addresses and system calls ("Permission denied"); etcd's have its name.
Known const* known_answer(std::string_view text) {
    if (text.find("etcdserver: ") == std::string_view::npos) return nullptr;
    auto const* const found = std::ranges::find_if(
        known, [&](Known const& one) { return text.find(one.text) != std::string_view::npos; });
    return found == known.end() ? nullptr : found;
}

// Answers that are not in the table, to a request that changes nothing.
Problem problem_of_read(int code) {
    switch (code) {
        case 4:
            return Problem::timed_out;  // DEADLINE_EXCEEDED
        case 8:
            return Problem::limit_exceeded;  // RESOURCE_EXHAUSTED: a larger answer than we take
        case 12:
            return Problem::unsupported;  // UNIMPLEMENTED
        case 3:
            return Problem::internal;  // INVALID_ARGUMENT
        default:
            return Problem::unavailable;
    }
}

std::string detail_of(EtcdCall const& call, Problem problem) {
    if (call.asked == Asked::write)
        return fmt::format(
            "etcd at {} was asked for a change and gave no answer; whether it was "
            "made is not known",
            call.endpoint);
    if (problem == Problem::timed_out)
        return fmt::format("etcd at {} did not answer in time", call.endpoint);
    return fmt::format("etcd at {} did not do what it was asked for", call.endpoint);
}

}  // namespace

std::string_view grpc_code_name(int code) {
    auto const index = static_cast<std::size_t>(code);
    return code >= 0 && index < code_names.size() ? code_names[index] : "?";
}

Error error_of(EtcdCall const& call, GrpcAnswer const& answer) {
    Cause cause{fmt::format("etcd {} at {}", call.name, call.endpoint),
                std::string(grpc_code_name(answer.code)), answer.text};
    Error error;
    error.causes = {std::move(cause)};
    if (auto const* const own = known_answer(answer.text)) {
        error.problem = own->problem;
        error.detail = fmt::format("{} ({})", own->detail, call.endpoint);
        error.remedy = own->remedy;
        return error;
    }
    error.problem = call.asked == Asked::write ? Problem::timed_out : problem_of_read(answer.code);
    error.detail = detail_of(call, error.problem);
    error.remedy = see_members;
    return error;
}

bool is_compacted(Error const& error) {
    return error.problem == Problem::not_found && !error.causes.empty() &&
           error.causes.front().code == out_of_range;
}

Error compacted(std::string detail, Cause cause) {
    cause.code = out_of_range;
    return {Problem::not_found, std::move(detail), "try again", {std::move(cause)}};
}

}  // namespace vfmgr::fleet
