// SPDX-License-Identifier: Apache-2.0
// IpAddress and port in the form of the socket calls, and back. Pure; any thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>

#include "api/types/addresses.hpp"

namespace vfmgr {

struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t length = 0;

    [[nodiscard]] static SocketAddress of(IpAddress const& address, std::uint16_t port);
    [[nodiscard]] std::optional<IpAddress> address() const;
    [[nodiscard]] sockaddr const* get() const;
    [[nodiscard]] sockaddr* room();  // for calls that fill it: sets `length` to the full size
};

}  // namespace vfmgr
