// SPDX-License-Identifier: Apache-2.0
// What an error of gRPC says about a request to etcd: whether it was surely not carried out, and
// why. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr::fleet {

// read: carried out or not makes no difference, so nothing is "not known".
enum class Asked { read, write };

// gRPC's code and text, which is etcd's if the answer is: "etcdserver: no leader".
struct GrpcAnswer {
    int code = 0;  // of grpc/impl/codegen/status.h
    std::string text;
};
[[nodiscard]] std::string_view grpc_code_name(int code);  // "UNAVAILABLE"

struct EtcdCall {
    std::string name;      // "Txn"
    std::string endpoint;  // "10.0.0.1:2379"
    Asked asked = Asked::read;
};
[[nodiscard]] Error error_of(EtcdCall const& call, GrpcAnswer const& answer);

// Whether a read or a watch failed because etcd has forgotten that revision.
[[nodiscard]] bool is_compacted(Error const& error);
[[nodiscard]] Error compacted(std::string detail, Cause cause);

}  // namespace vfmgr::fleet
