// SPDX-License-Identifier: Apache-2.0
// A summary of a run with packets of a size, for tests of messages and of text.
#pragma once

#include "guest-tools/traffic/messages.hpp"

namespace vfmgr::stream::test {

inline Summary summary_of_packets(std::uint32_t bytes) {
    Summary summary;
    summary.run = "0123456789abcdef";
    summary.packet_bytes = bytes;
    return summary;
}

}  // namespace vfmgr::stream::test
