// SPDX-License-Identifier: Apache-2.0
// A TCP port for a test's server.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "api/os/descriptor.hpp"

namespace vfmgr::test {

// Returns a port that is free now. Another program could take it before the server does; the test
// then fails with the server's own message.
inline std::uint16_t free_port() {
    FileDescriptor const fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    return ntohs(address.sin_port);
}

}  // namespace vfmgr::test
