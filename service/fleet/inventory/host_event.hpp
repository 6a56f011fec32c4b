// SPDX-License-Identifier: Apache-2.0
// An event of a host, as the fleet passes it on: the host's text, and what filters and readers of
// documents need of it. A value; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/types/event.hpp"

namespace vfmgr::fleet {

inline constexpr std::size_t event_bytes_max = 64 << 10;

struct HostEvent {
    std::uint64_t number = 0;
    std::optional<EventKind> kind{};  // absent: one that only newer versions know
    std::optional<PciAddress> pf{};
    std::optional<std::uint16_t> vf{};
    std::optional<std::string> attachment{};
    std::optional<std::string> vm{};
    std::optional<std::string> vm_uuid{};
    std::optional<std::string> network{};
    std::optional<std::string> pool{};
    std::optional<std::string> reservation{};
    std::optional<std::string> tenant{};
    std::string text{};  // its JSON, one line
};

// Reads the data of an event of a host's stream. It is outside input.
[[nodiscard]] Result<HostEvent> read_host_event(std::string_view data);

}  // namespace vfmgr::fleet
