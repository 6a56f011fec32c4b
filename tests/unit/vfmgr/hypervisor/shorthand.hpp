// SPDX-License-Identifier: Apache-2.0
// Deadlines and addresses, as the hypervisor's tests write them.
#pragma once

#include <chrono>
#include <string_view>

#include "api/types/addresses.hpp"
#include "api/types/time.hpp"

namespace vfmgr::test {

inline Deadline in(std::chrono::milliseconds time) {
    return std::chrono::steady_clock::now() + time;
}
inline constexpr std::chrono::seconds generous{20};

inline PciAddress pci(std::string_view text) {
    return PciAddress::parse(text).value();
}

}  // namespace vfmgr::test
