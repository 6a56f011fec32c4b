// SPDX-License-Identifier: Apache-2.0
// A call of a host's API, as the fleet's plans decide it; others perform it. Values; any thread.
#pragma once

#include <string>

#include "api/types/time.hpp"

namespace vfmgr::fleet {

// Its answer comes when the operation that it began ended.
struct HostCall {
    std::string host;
    std::string method;
    std::string path;
    std::string body{};             // JSON; empty: none
    std::string idempotency_key{};  // empty: the call itself can be repeated
    bool operator==(HostCall const&) const = default;
};

// unknown: the answer was lost, or timed out. It is asked again; nothing is ever assumed.
enum class Outcome { success, refusal, unknown };

// Of the transaction that writes a document.
struct Stamp {
    Time at{};
    std::string act;  // random
};

}  // namespace vfmgr::fleet
