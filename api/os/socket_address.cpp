// SPDX-License-Identifier: Apache-2.0
#include "api/os/socket_address.hpp"

#include <arpa/inet.h>

#include <cstring>

namespace vfmgr {

SocketAddress SocketAddress::of(IpAddress const& address, std::uint16_t port) {
    SocketAddress result;
    if (address.family == IpAddress::Family::v4) {
        sockaddr_in in{};
        in.sin_family = AF_INET;
        in.sin_port = htons(port);
        std::memcpy(&in.sin_addr, address.octets.data(), 4);
        std::memcpy(&result.storage, &in, sizeof in);
        result.length = sizeof in;
        return result;
    }
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    std::memcpy(&in.sin6_addr, address.octets.data(), 16);
    std::memcpy(&result.storage, &in, sizeof in);
    result.length = sizeof in;
    return result;
}

std::optional<IpAddress> SocketAddress::address() const {
    IpAddress result;
    if (storage.ss_family == AF_INET) {
        sockaddr_in in{};
        std::memcpy(&in, &storage, sizeof in);
        std::memcpy(result.octets.data(), &in.sin_addr, 4);
        return result;
    }
    if (storage.ss_family != AF_INET6) return std::nullopt;
    sockaddr_in6 in{};
    std::memcpy(&in, &storage, sizeof in);
    result.family = IpAddress::Family::v6;
    std::memcpy(result.octets.data(), &in.sin6_addr, 16);
    return result;
}

sockaddr const* SocketAddress::get() const {
    return reinterpret_cast<sockaddr const*>(&storage);
}

sockaddr* SocketAddress::room() {
    length = sizeof storage;
    return reinterpret_cast<sockaddr*>(&storage);
}

}  // namespace vfmgr
