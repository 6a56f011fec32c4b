// SPDX-License-Identifier: Apache-2.0
// Converts addresses to the form that socket calls use, and back. Pure; any thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <optional>
#include <string>

#include "api/types/addresses.hpp"

namespace vfmgr {

inline constexpr std::size_t unix_path_max = sizeof(sockaddr_un::sun_path) - 1;  // bytes

struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t length = 0;

    [[nodiscard]] static SocketAddress of(IpAddress const& address, std::uint16_t port);
    // Absent: the path is empty or longer than unix_path_max.
    [[nodiscard]] static std::optional<SocketAddress> of_unix(std::string const& path);
    [[nodiscard]] static SocketAddress of_vsock(std::uint32_t cid, std::uint32_t port);
    [[nodiscard]] std::optional<IpAddress> address() const;
    [[nodiscard]] sockaddr const* get() const;
    [[nodiscard]] sockaddr* room();  // for calls that fill it: sets `length` to the full size
};

}  // namespace vfmgr
