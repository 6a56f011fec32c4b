// SPDX-License-Identifier: Apache-2.0
#include "api/os/socket_address.hpp"

#include <arpa/inet.h>
// linux/vm_sockets.h needs struct sockaddr declared before it.
#include <linux/vm_sockets.h>

#include <cstring>

namespace vfmgr {
namespace {

template <class Specific>
SocketAddress generic(Specific const& specific) {
    SocketAddress address;
    std::memcpy(&address.storage, &specific, sizeof specific);
    address.length = sizeof specific;
    return address;
}

}  // namespace

SocketAddress SocketAddress::of(IpAddress const& address, std::uint16_t port) {
    if (address.family == IpAddress::Family::v4) {
        sockaddr_in in{};
        in.sin_family = AF_INET;
        in.sin_port = htons(port);
        std::memcpy(&in.sin_addr, address.octets.data(), 4);
        return generic(in);
    }
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    std::memcpy(&in.sin6_addr, address.octets.data(), 16);
    return generic(in);
}

std::optional<SocketAddress> SocketAddress::of_unix(std::string const& path) {
    sockaddr_un address{};
    if (path.empty() || path.size() > unix_path_max) return std::nullopt;
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    return generic(address);
}

SocketAddress SocketAddress::of_vsock(std::uint32_t cid, std::uint32_t port) {
    sockaddr_vm address{};
    address.svm_family = AF_VSOCK;
    address.svm_cid = cid;
    address.svm_port = port;
    return generic(address);
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
